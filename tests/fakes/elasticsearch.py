"""Elasticsearch and OpenSearch as their REST API has them: what a connector needs, in Python.

The two differ where a connector must know it: Elasticsearch (as of 9.2) leaves vectors out of the
source and gives them as ``fields``, keeps those that are indexed by the cosine with length 1, and
sorts by no ``_id``. What this fake does not know is an error, as an unknown field is there.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from tests.fakes.http_server import FakeServer, Refusal

if TYPE_CHECKING:
    from tests.fakes.http_server import Request

WINDOW = 10_000
PUT_ALL = "ctx._source.putAll(params.row)"
REMOVE = "ctx._source.remove(params.field)"
FORBIDDEN = set('\\/*?"<>| ,#:')


class Rejected(Refusal):
    """An error with the type that the databases give it."""

    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(status, reason)
        self.kind = kind


def bad(reason: str, kind: str = "parsing_exception") -> Rejected:
    return Rejected(400, kind, reason)


@dataclass
class Index:
    """One index: its mapping, and its documents as they were given."""

    properties: dict[str, Any] = field(default_factory=dict)
    dynamic: Any = True
    meta: dict[str, Any] = field(default_factory=dict)
    knn: bool = False
    written: dict[str, dict[str, Any]] = field(default_factory=dict)
    seen: dict[str, dict[str, Any]] = field(default_factory=dict)  # as of the last refresh


@dataclass
class FakeElasticsearch(FakeServer):
    """An HTTP server that answers as Elasticsearch, or as its subclass does."""

    vector_type: ClassVar[str] = "dense_vector"
    headers: ClassVar[dict[str, str]] = {"X-Elastic-Product": "Elasticsearch"}

    indices: dict[str, Index] = field(default_factory=dict)
    aliases: dict[str, set[str]] = field(default_factory=dict)
    authorization: str | None = None  # the header that every request must have
    blocked: str | None = None  # why nothing can be written

    def parsed(self, body: bytes) -> Any:
        lines = body.decode().split("\n")
        if len(lines) > 1:
            assert not lines[-1], "a body of lines ends in a line break"
            return [json.loads(line) for line in lines[:-1]]
        return json.loads(body)

    def refusal(self, refusal: Refusal) -> Any:
        kind = getattr(refusal, "kind", "exception")
        cause = {"type": kind, "reason": refusal.message}
        return {"error": {"root_cause": [cause], **cause}, "status": refusal.status}

    # --- endpoints ----------------------------------------------------------------------------

    def answer(self, request: Request) -> Any:
        if self.authorization not in (None, request.headers.get("authorization")):
            raise Rejected(401, "security_exception", "unable to authenticate user")
        expected = {"_bulk": {"refresh"}}.get(request.path[-1] if request.path else "", set())
        unknown = request.query.keys() - expected
        if unknown:
            raise bad(f"unrecognized parameters {sorted(unknown)}", "illegal_argument_exception")
        match (request.method, request.path):
            case ("POST", ("_aliases",)):
                return self.change_aliases(request.body)
            case ("GET", ("_alias", name)):
                return self.alias(name)
            case ("PUT", (name,)):
                return self.create(name, request.body)
            case (method, (name, action)):
                found = self.found(name)
                answers = {
                    ("GET", "_mapping"): lambda: self.mappings(found),
                    ("PUT", "_mapping"): lambda: self.put_mapping(found, request.body),
                    ("POST", "_search"): lambda: self.search(found, request.body),
                    ("POST", "_count"): lambda: self.count(found, request.body),
                    ("POST", "_msearch"): lambda: self.many(found, request.body),
                    ("POST", "_bulk"): lambda: self.bulk(found, request.body, request.query),
                }
                if (method, action) in answers:
                    return answers[method, action]()
        raise bad(f"no handler found for uri [{request.path}] and method [{request.method}]")

    def found(self, name: str) -> list[str]:
        names = sorted(self.aliases.get(name, {name}))
        if any(one not in self.indices for one in names):
            raise Rejected(404, "index_not_found_exception", f"no such index [{name}]")
        return names

    def one(self, names: list[str]) -> Index:
        if len(names) != 1:
            raise bad("more than one index", "illegal_argument_exception")
        return self.indices[names[0]]

    def create(self, name: str, body: dict[str, Any]) -> Any:
        if name != name.lower() or FORBIDDEN & set(name) or name[0] in "-_+" or name in {".", ".."}:
            raise bad(f"Invalid index name [{name}]", "invalid_index_name_exception")
        if name in self.indices or name in self.aliases:
            raise bad(f"index [{name}] already exists", "resource_already_exists_exception")
        only(body, "mappings", "settings")
        index = Index()
        settings = body.get("settings", {})
        only(settings, "index")
        only(settings.get("index", {}), "knn")
        index.knn = settings.get("index", {}).get("knn", False)
        self.change(index, body["mappings"])
        self.indices[name] = index
        return {"acknowledged": True, "shards_acknowledged": True, "index": name}

    def mappings(self, names: list[str]) -> Any:
        answer = {}
        for name in names:
            index = self.indices[name]
            mapping: dict[str, Any] = {"properties": index.properties}
            if index.dynamic is not True:
                mapping["dynamic"] = str(index.dynamic).lower()
            if index.meta:
                mapping["_meta"] = index.meta
            answer[name] = {"mappings": mapping}
        return answer

    def put_mapping(self, names: list[str], body: dict[str, Any]) -> Any:
        self.change(self.one(names), body)
        return {"acknowledged": True}

    def change(self, index: Index, mapping: dict[str, Any]) -> None:
        only(mapping, "properties", "dynamic", "_meta")
        for name, one in mapping.get("properties", {}).items():
            self.check_field(name, one)
            old = index.properties.get(name)
            if old is not None and old != one:
                raise bad(f"mapper [{name}] cannot be changed", "illegal_argument_exception")
        index.properties |= copy.deepcopy(mapping.get("properties", {}))
        index.dynamic = mapping.get("dynamic", index.dynamic)
        index.meta = mapping.get("_meta", index.meta)

    def check_field(self, name: str, one: dict[str, Any]) -> None:
        kind = one.get("type")
        if kind == self.vector_type:
            self.check_vector_field(one)
        elif kind == "text":
            only(one, "type", "fields")
        elif kind == "object":
            only(one, "type", "enabled")
        elif kind in {"keyword", "long", "double", "float", "boolean", "date"}:
            only(one, "type")
        else:
            raise bad(f"No handler for type [{kind}] declared on field [{name}]")

    def check_vector_field(self, one: dict[str, Any]) -> None:
        only(one, "type", "dims", "index", "similarity", "index_options", "element_type")
        if not 1 <= one["dims"] <= 4096:
            raise bad("The number of dimensions must be in [1, 4096]")
        if not one.get("index", True):
            if "similarity" in one or "index_options" in one:
                raise bad("[similarity] and [index_options] need [index] to be true")
            return
        if one.get("similarity") not in {
            None,
            "cosine",
            "dot_product",
            "l2_norm",
            "max_inner_product",
        }:
            raise bad("unknown similarity")
        only(one.get("index_options", {}), "type", "m", "ef_construction")

    # --- aliases ------------------------------------------------------------------------------

    def alias(self, name: str) -> Any:
        if name not in self.aliases:
            raise Rejected(404, "aliases_not_found_exception", f"alias [{name}] missing")
        return {one: {"aliases": {name: {}}} for one in self.aliases[name]}

    def change_aliases(self, body: dict[str, Any]) -> Any:
        only(body, "actions")
        changed = copy.deepcopy(self.aliases)
        for action in body["actions"]:
            ((what, how),) = action.items()
            only(how, "index", "alias")
            index, alias = how["index"], how["alias"]
            if index not in self.indices:
                raise Rejected(404, "index_not_found_exception", f"no such index [{index}]")
            if alias in self.indices:
                raise bad(
                    f"Invalid alias name [{alias}]: an index or data stream exists with the same "
                    "name as the alias",
                    "invalid_alias_name_exception",
                )
            match what:
                case "add":
                    changed.setdefault(alias, set()).add(index)
                case "remove":
                    changed[alias].remove(index)
                case _:
                    raise bad(f"unknown alias action [{what}]")
        self.aliases = {name: names for name, names in changed.items() if names}
        return {"acknowledged": True, "errors": False}

    # --- writing ------------------------------------------------------------------------------

    def bulk(self, names: list[str], lines: list[Any], query: dict[str, str]) -> Any:
        index, rest, items = self.one(names), iter(lines), []
        for line in rest:
            ((action, how),) = line.items()
            only(how, "_id", *(("retry_on_conflict",) if action == "update" else ()))
            body = None if action == "delete" else next(rest)
            try:
                status = self.do(index, action, how["_id"], body)
                items.append({action: {"_index": names[0], "_id": how["_id"], "status": status}})
            except Rejected as error:
                what = {"type": error.kind, "reason": error.message}
                items.append({action: {"_id": how["_id"], "status": error.status, "error": what}})
        if query.get("refresh", "false") not in {"true", "false", "wait_for"}:
            raise bad("Unknown value for refresh", "illegal_argument_exception")
        if query.get("refresh", "false") != "false":
            index.seen = dict(index.written)
        errors = any("error" in result for item in items for result in item.values())
        return {"took": 1, "errors": errors, "items": items}

    def do(self, index: Index, action: str, text: str, body: dict[str, Any] | None) -> int:
        if self.blocked:
            raise Rejected(429, "cluster_block_exception", self.blocked)
        if len(text.encode()) > 512:
            reason = f"id is too long, must be no longer than 512 bytes but was: {len(text)}"
            raise bad(reason, "illegal_argument_exception")
        there = index.written.get(text)
        if action == "delete":
            index.written.pop(text, None)
            return 404 if there is None else 200
        if action == "index":
            index.written[text] = self.checked(index, body or {})
            return 201 if there is None else 200
        if action != "update" or body is None:
            raise bad(f"Malformed action/metadata line: [{action}]", "illegal_argument_exception")
        only(body, "script", "upsert", "scripted_upsert")
        if there is None:
            if "upsert" not in body:
                raise Rejected(404, "document_missing_exception", f"[{text}]: document missing")
            made = body["upsert"]
            if body.get("scripted_upsert"):
                made = changed(made, body["script"])
            index.written[text] = self.checked(index, made)
            return 201
        index.written[text] = self.checked(index, changed(there, body["script"]))
        return 200

    def checked(self, index: Index, source: dict[str, Any]) -> dict[str, Any]:
        for name, value in source.items():
            one = index.properties.get(name)
            if one is None:
                if index.dynamic is True:
                    index.properties[name] = guessed(value)
                elif index.dynamic == "strict":
                    raise bad(f"[{name}] is not allowed", "strict_dynamic_mapping_exception")
            elif one["type"] == self.vector_type and value is not None:
                self.check_vector(name, one, value)
            elif one["type"] in {"long", "double", "float"} and isinstance(value, str):
                raise bad(
                    f"failed to parse field [{name}] of type [{one['type']}]",
                    "document_parsing_exception",
                )
        return copy.deepcopy(source)

    def check_vector(self, name: str, one: dict[str, Any], value: Any) -> None:
        dim = one.get("dims") or one.get("dimension")
        if not isinstance(value, list) or len(value) != dim:
            raise bad(
                f"The [{name}] field has a different number of dimensions [{len(value)}] than "
                f"defined in the mapping [{dim}]",
                "document_parsing_exception",
            )
        if self.by_cosine(one) and not np.any(value):
            raise bad(
                "The [cosine] similarity does not support vectors with zero magnitude.",
                "document_parsing_exception",
            )

    def by_cosine(self, one: dict[str, Any]) -> bool:
        return one.get("index", True) and one.get("similarity", "cosine") == "cosine"

    # --- reading ------------------------------------------------------------------------------

    def count(self, names: list[str], body: dict[str, Any]) -> Any:
        only(body, "query")
        return {"count": len(self.matching(self.one(names), body["query"]))}

    def many(self, names: list[str], lines: list[Any]) -> Any:
        responses = []
        for header, body in zip(lines[::2], lines[1::2], strict=True):
            only(header)
            try:
                responses.append({**self.search(names, body), "status": 200})
            except Rejected as error:
                responses.append({**self.refusal(error), "status": error.status})
        return {"took": 1, "responses": responses}

    def search(self, names: list[str], body: dict[str, Any]) -> Any:
        index = self.one(names)
        only(body, "size", "query", "sort", "search_after", "_source", "fields", "knn")
        size = body.get("size", 10)
        if size > WINDOW:
            reason = f"Result window is too large, must be at most [{WINDOW}] but was [{size}]"
            raise bad(reason, "illegal_argument_exception")
        if "sort" in body:
            found = self.sorted_by(index, body)
        else:
            scores = self.scored(index, body)
            ordered = sorted(scores, key=lambda text: -scores[text])
            found = [(text, {"_score": scores[text]}) for text in ordered]
        hits = [
            {"_index": names[0], "_id": text, **more, **self.fetched(index, text, body)}
            for text, more in found[:size]
        ]
        return {"took": 1, "timed_out": False, "hits": {"hits": hits}}

    def sorted_by(self, index: Index, body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        ((name, order),) = body["sort"][0].items()
        assert order == "asc"
        assert len(body["sort"]) == 1
        if name == "_id":
            self.check_sort_by_id()
        elif index.properties.get(name, {}).get("type") not in {"keyword", "long", "double"}:
            raise bad(f"No mapping found for [{name}] in order to sort on")
        values = {
            text: text if name == "_id" else index.seen[text][name]
            for text in self.matching(index, body["query"])
        }
        after = body.get("search_after")
        if after is not None and len(after) != 1:
            raise bad("search_after must have as many values as sort")
        return [
            (text, {"_score": None, "sort": [value]})
            for text, value in sorted(values.items(), key=lambda item: in_order(item[1]))
            if after is None or in_order(value) > in_order(after[0])
        ]

    def check_sort_by_id(self) -> None:
        raise bad(
            "Fielddata access on the _id field is disallowed, you can re-enable it by updating "
            "the dynamic cluster setting: indices.id_field_data.enabled",
            "illegal_argument_exception",
        )

    def fetched(self, index: Index, text: str, body: dict[str, Any]) -> dict[str, Any]:
        source, answer = index.seen[text], {}
        how = body.get("_source", {})
        if how is not False:
            only(how, "excludes")
            left_out = {*how.get("excludes", []), *self.never_in_source(index)}
            answer["_source"] = {key: one for key, one in source.items() if key not in left_out}
        if "fields" in body:
            answer["fields"] = {
                name: self.kept(index.properties[name], source[name]) for name in body["fields"]
            }
        return answer

    def never_in_source(self, index: Index) -> set[str]:
        return {name for name, one in index.properties.items() if one["type"] == "dense_vector"}

    def kept(self, one: dict[str, Any], value: Any) -> Any:
        vector = np.asarray(value, np.float32)
        if self.by_cosine(one):
            length = np.sqrt((vector * vector).sum(dtype=np.float32))
            vector = (vector / length).astype(np.float32) * length
        return vector.astype(np.float64).tolist()

    # --- queries ------------------------------------------------------------------------------

    def matching(self, index: Index, query: dict[str, Any]) -> list[str]:
        ((kind, how),) = query.items()
        if kind == "match_none":
            return []
        if kind == "ids":
            only(how, "values")
            return [text for text in dict.fromkeys(how["values"]) if text in index.seen]
        if kind == "exists":
            only(how, "field")
            return [t for t, source in index.seen.items() if source.get(how["field"]) is not None]
        if kind == "term":
            ((name, value),) = how.items()
            return self.with_term(index, name, value)
        if kind == "bool":
            only(how, "filter")
            found = [set(self.matching(index, clause)) for clause in how["filter"]]
            return [text for text in index.seen if all(text in some for some in found)]
        raise bad(f"unknown query [{kind}]")

    def with_term(self, index: Index, name: str, value: Any) -> list[str]:
        outer, _, inner = name.partition(".")
        one = index.properties.get(outer, {})
        if inner:
            one = one.get("fields", {}).get(inner, {})
        kind = one.get("type")
        if kind is None:
            return []  # unmapped fields match nothing
        if kind not in {"keyword", "long", "double", "float", "boolean"}:
            raise bad(f"this fake has no term queries on [{kind}]")
        found = []
        for text, source in index.seen.items():
            values = source.get(outer)
            values = values if isinstance(values, list) else [values]
            if any(same_term(kind, given, value) for given in values if given is not None):
                found.append(text)
        return found

    def scored(self, index: Index, body: dict[str, Any]) -> dict[str, float]:
        if "knn" in body:
            assert "query" not in body
            return self.near(index, body["knn"])
        query = body["query"]
        if "script_score" not in query:
            return dict.fromkeys(self.matching(index, query), 1.0)
        only(query, "script_score")
        only(query["script_score"], "query", "script")
        texts = self.matching(index, query["script_score"]["query"])
        return self.by_script(index, texts, query["script_score"]["script"])

    def vectors(self, index: Index, texts: list[str], name: str) -> np.ndarray:
        if index.properties.get(name, {}).get("type") != self.vector_type:
            raise bad(f"field [{name}] is no vector", "script_exception")
        rows = [index.seen[text].get(name) for text in texts]
        if None in rows:
            raise bad("A document doesn't have a value for a vector field!", "script_exception")
        return np.array(rows, np.float32).astype(np.float64).reshape(len(texts), -1)

    def by_script(self, index: Index, texts: list[str], script: dict[str, Any]) -> dict[str, float]:
        only(script, "source", "lang", "params")
        only(script["params"], "query", "field")
        metric = {
            "(1.0 + cosineSimilarity(params.query, params.field)) / 2.0": "cosine",
            "double d = dotProduct(params.query, params.field); "
            "return d < 0 ? 1.0 / (1.0 - d) : d + 1.0;": "dot",
            "double d = l2norm(params.query, params.field); return 1.0 / (1.0 + d * d);": "l2",
        }.get(script["source"])
        if metric is None or script["lang"] != "painless":
            raise bad(f"compile error: {script['source']}", "script_exception")
        params = script["params"]
        return scores(self, index, texts, by=(params["field"], params["query"], metric))

    def near(self, index: Index, knn: dict[str, Any]) -> dict[str, float]:
        only(knn, "field", "query_vector", "k", "num_candidates", "filter")
        if not knn["k"] <= knn["num_candidates"] <= WINDOW:
            raise bad("[num_candidates] must be from [k] to 10000", "illegal_argument_exception")
        one = index.properties[knn["field"]]
        if not one.get("index", True):
            raise bad(f"[{knn['field']}] is not indexed", "illegal_argument_exception")
        metric = {"cosine": "cosine", "max_inner_product": "dot", "l2_norm": "l2"}[
            one.get("similarity", "cosine")
        ]
        texts = self.matching(index, {"bool": {"filter": knn["filter"]}})
        found = scores(self, index, texts, by=(knn["field"], knn["query_vector"], metric))
        best = sorted(found, key=lambda text: -found[text])[: knn["k"]]
        return {text: found[text] for text in best}


@dataclass
class FakeOpensearch(FakeElasticsearch):
    """The same as OpenSearch answers."""

    vector_type: ClassVar[str] = "knn_vector"
    headers: ClassVar[dict[str, str]] = {}

    def check_vector_field(self, one: dict[str, Any]) -> None:
        only(one, "type", "dimension", "method", "space_type", "data_type")
        if not 1 <= one["dimension"] <= 16_000:
            raise bad("dimension must be from 1 to 16000", "mapper_parsing_exception")
        method = one.get("method", {})
        only(method, "name", "engine", "space_type", "parameters")
        only(method.get("parameters", {}), "m", "ef_construction")

    def by_cosine(self, one: dict[str, Any]) -> bool:
        return one.get("method", {}).get("space_type") == "cosinesimil"

    def check_sort_by_id(self) -> None:
        pass

    def never_in_source(self, index: Index) -> set[str]:
        del index
        return set()

    def by_script(self, index: Index, texts: list[str], script: dict[str, Any]) -> dict[str, float]:
        only(script, "source", "lang", "params")
        params = script["params"]
        if script["lang"] == "knn" and script["source"] == "knn_score":
            only(params, "field", "query_value", "space_type")
            metric = {"innerproduct": "dot", "l2": "l2"}[params["space_type"]]
        else:
            only(params, "field", "query_value")
            source = "(1.0 + cosineSimilarity(params.query_value, doc[params.field])) / 2.0"
            if script["lang"] != "painless" or script["source"] != source:
                raise bad(f"compile error: {script['source']}", "script_exception")
            metric = "cosine"
        return scores(self, index, texts, by=(params["field"], params["query_value"], metric))

    def scored(self, index: Index, body: dict[str, Any]) -> dict[str, float]:
        if "knn" in body:
            raise bad("Unknown key for a START_OBJECT in [knn].")
        if "knn" not in body["query"]:
            return super().scored(index, body)
        ((name, how),) = body["query"]["knn"].items()
        only(how, "vector", "k", "filter")
        one = index.properties[name]
        if not index.knn or "method" not in one:
            raise bad(f"Field '{name}' is not built for ANN search.", "query_shard_exception")
        metric = {"cosinesimil": "cosine", "innerproduct": "dot", "l2": "l2"}[
            one["method"]["space_type"]
        ]
        texts = self.matching(index, how["filter"])
        found = scores(self, index, texts, by=(name, how["vector"], metric))
        best = sorted(found, key=lambda text: -found[text])[: how["k"]]
        return {text: found[text] for text in best}


def only(mapping: dict[str, Any], *names: str) -> None:
    if unknown := mapping.keys() - set(names):
        raise bad(f"unknown field {sorted(unknown)}", "x_content_parse_exception")


def scores(
    fake: FakeElasticsearch, index: Index, texts: list[str], *, by: tuple[str, list[float], str]
) -> dict[str, float]:
    """Score rows by a field, a query and a metric; a score is a float32, and never negative."""
    name, query, metric = by
    asked = np.float64(query)
    dim = index.properties[name].get("dims") or index.properties[name].get("dimension")
    if len(asked) != dim:
        raise bad(f"the query vector has a different dimension [{len(asked)}] than [{dim}]")
    if not texts:
        return {}
    rows = fake.vectors(index, texts, name)
    dot = rows @ asked
    if metric == "cosine":
        found = (1 + dot / np.linalg.norm(rows, axis=1) / np.linalg.norm(asked)) / 2
    elif metric == "dot":
        found = np.where(dot < 0, 1 / (1 - np.minimum(dot, 0)), dot + 1)
    else:
        found = 1 / (1 + ((rows - asked) ** 2).sum(axis=1))
    found = np.maximum(found, 0).astype(np.float32)
    return dict(zip(texts, found.tolist(), strict=True))


def changed(source: dict[str, Any], script: dict[str, Any]) -> dict[str, Any]:
    only(script, "source", "lang", "params")
    assert script["lang"] == "painless"
    if script["source"] == PUT_ALL:
        return {**source, **script["params"]["row"]}
    if script["source"] == REMOVE:
        return {key: one for key, one in source.items() if key != script["params"]["field"]}
    raise bad(f"compile error: {script['source']}", "script_exception")


def guessed(value: Any) -> dict[str, Any]:
    """Return the field that a dynamic mapping makes."""
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, int):
        return {"type": "long"}
    if isinstance(value, float):
        return {"type": "float"}
    if isinstance(value, dict):
        return {"type": "object"}
    return {"type": "text", "fields": {"keyword": {"type": "keyword"}}}


def same_term(kind: str, given: Any, asked: Any) -> bool:
    if kind == "keyword":
        return as_keyword(given) == as_keyword(asked)
    if kind == "boolean":
        return as_keyword(given) == as_keyword(asked)
    return float(given) == float(asked)


def as_keyword(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def in_order(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value
