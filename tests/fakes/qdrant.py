"""A fake of the part of Qdrant's REST interface that its client uses, with exact search.

It keeps what a server keeps: cosine vectors normalised, points as wholes, aliases, and in its
metadata what `PATCH` merges into them. `version` says which server it is: metadata of collections
came with 1.16, new vectors for a collection that is there with 1.18.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.fakes.http_server import FakeServer, Refusal, Request
from tests.fakes.qdrant_filter import fulfils

METADATA, NEW_VECTORS = (1, 16), (1, 18)


@dataclass
class Collection:
    """Vectors by name, points by id, metadata."""

    config: dict[str, dict[str, Any]]
    single: bool
    points: dict[int | str, dict[str, Any]] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class FakeQdrant(FakeServer):
    """A server in this process; `api_key` and `read_only_key` are asked for where they are set."""

    version: tuple[int, int] = NEW_VECTORS
    api_key: str | None = None
    read_only_key: str | None = None
    collections: dict[str, Collection] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)

    def answer(self, request: Request) -> Any:
        self._check_key(request)
        return {"result": self._route(request), "status": "ok", "time": 0.0}

    def refusal(self, refusal: Refusal) -> Any:
        return {"status": {"error": refusal.message}, "time": 0.0}

    def _check_key(self, request: Request) -> None:
        if self.api_key is None:
            return
        given = request.headers.get("api-key")
        if given is None or given not in (self.api_key, self.read_only_key):
            raise Refusal(401, "Must provide an API key or an Authorization bearer token")
        reads = request.method == "GET" or request.path[-1] in ("scroll", "count")
        if given == self.read_only_key and not reads:
            raise Refusal(403, "Forbidden: Write access is required")

    def _route(self, request: Request) -> Any:
        match request.method, request.path:
            case "GET", ("aliases",):
                return {
                    "aliases": [
                        {"alias_name": name, "collection_name": to}
                        for name, to in self.aliases.items()
                    ]
                }
            case "POST", ("collections", "aliases"):
                return self._change_aliases(request.body["actions"])
            case "DELETE", ("collections", name):
                return self._remove(name)
            case "PUT", ("collections", name):
                return self._create(name, request.body)
            case method, ("collections", name, *rest):
                return self._of_collection(method, self._find(name), tuple(rest), request.body)
        raise Refusal(404, "")

    def _of_collection(
        self, method: str, collection: Collection, rest: tuple[str, ...], body: Any
    ) -> Any:
        if method == "PUT" and rest[:1] == ("vectors",):
            return self._add_vector(collection, rest[1], body)
        answer = {
            ("GET",): self._info,
            ("PATCH",): self._patch,
            ("PUT", "points"): _upsert,
            ("POST", "points"): _retrieve,
            ("POST", "points", "delete"): _delete,
            ("POST", "points", "vectors", "delete"): _delete_vectors,
            ("POST", "points", "batch"): _batch,
            ("POST", "points", "scroll"): _scroll,
            ("POST", "points", "count"): _count,
            ("POST", "points", "query", "batch"): _query_batch,
        }.get((method, *rest))
        if answer is None:
            raise Refusal(404, "")
        return answer(collection, body)

    def _patch(self, collection: Collection, body: dict[str, Any]) -> bool:
        if self.version >= METADATA:
            collection.metadata |= body.get("metadata") or {}
        return True

    # --- collections --------------------------------------------------------------------------

    def _find(self, name: str) -> Collection:
        found = self.collections.get(self.aliases.get(name, name))
        if found is None:
            raise Refusal(404, f"Not found: Collection `{name}` doesn't exist!")
        return found

    def _create(self, name: str, body: dict[str, Any]) -> bool:
        if name in self.collections:
            raise Refusal(409, f"Wrong input: Collection `{name}` already exists!")
        if name in self.aliases or set(name) & set('<>:"/\\|?*'):
            raise Refusal(422, f"Validation error in path parameters: [{name}]")
        given = body.get("vectors") or {}
        single = "size" in given
        self.collections[name] = Collection({"": given} if single else dict(given), single)
        if self.version >= METADATA:
            self.collections[name].metadata |= body.get("metadata") or {}
        return True

    def _remove(self, name: str) -> bool:
        self.aliases = {key: to for key, to in self.aliases.items() if to != name}
        return self.collections.pop(name, None) is not None

    def _add_vector(self, collection: Collection, name: str, body: dict[str, Any]) -> Any:
        if self.version < NEW_VECTORS:
            raise Refusal(404, "")
        if name in collection.config:
            raise Refusal(409, f"Wrong input: Vector `{name}` already exists")
        collection.config[name] = body["dense"]
        return _done()

    def _info(self, collection: Collection, _: Any) -> Any:
        config = collection.config
        vectors = config[""] if collection.single and len(config) == 1 else config
        return {
            "status": "green",
            "optimizer_status": "ok",
            "segments_count": 1,
            "points_count": len(collection.points),
            "config": {
                "params": {"vectors": vectors},
                "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000},
                "optimizer_config": {"default_segment_number": 0, "flush_interval_sec": 5},
                **({"metadata": collection.metadata} if collection.metadata else {}),
            },
            "payload_schema": {},
        }

    def _change_aliases(self, actions: list[dict[str, Any]]) -> bool:
        changed = dict(self.aliases)
        for action in actions:
            if "delete_alias" in action:
                if changed.pop(action["delete_alias"]["alias_name"], None) is None:
                    raise Refusal(404, "Not found: Alias does not exists!")
                continue
            new = action["create_alias"]
            if new["alias_name"] in self.collections:
                raise Refusal(409, "Wrong input: Collection with the same name exists")
            self._find(new["collection_name"])
            changed[new["alias_name"]] = new["collection_name"]
        self.aliases = changed
        return True


def _done() -> Any:
    return {"operation_id": 0, "status": "completed"}


def _order(native: int | str) -> tuple[int, Any]:
    return (0, native) if isinstance(native, int) else (1, native)


def _checked_id(native: Any) -> int | str:
    if isinstance(native, int) and not isinstance(native, bool) and 0 <= native < 2**64:
        return native
    try:
        return str(uuid.UUID(str(native)))
    except ValueError:
        valid = "valid values are either an unsigned integer or a UUID"
        message = f"Format error in JSON body: value {native} is not a valid point ID, {valid}"
        raise Refusal(400, message) from None


def _stored(collection: Collection, given: Any) -> dict[str, Any]:
    """Return vectors by name, as a server keeps them."""
    named = given if isinstance(given, dict) else {"": given}
    kept = {}
    for name, numbers in named.items():
        if name not in collection.config:
            raise Refusal(400, f"Wrong input: Not existing vector name error: {name}")
        config = collection.config[name]
        vector = np.array(numbers, np.float32)
        if vector.shape != (config["size"],):
            expected, got = config["size"], len(vector)
            message = f"Vector dimension error: expected dim: {expected}, got {got}"
            raise Refusal(400, f"Wrong input: {message}")
        if config["distance"] == "Cosine":
            length = np.sqrt(np.square(vector).sum(dtype=np.float32))
            if length**2 >= np.finfo(np.float32).eps:
                vector = vector / length
        kept[name] = vector
    return kept


def _upsert(collection: Collection, body: dict[str, Any]) -> Any:
    points = _rows(body["batch"]) if "batch" in body else body["points"]
    new = [
        {
            "id": _checked_id(one["id"]),
            "vectors": _stored(collection, one["vector"]),
            "payload": one.get("payload") or {},
        }
        for one in points
    ]
    collection.points |= {one["id"]: one for one in new}
    return _done()


def _rows(batch: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a batch, which comes as columns, as rows."""
    ids, vectors = batch["ids"], batch["vectors"]
    if isinstance(vectors, dict):
        columns = zip(*vectors.values(), strict=True)
        vectors = [dict(zip(vectors, one, strict=True)) for one in columns]
    payloads = batch.get("payloads") or [None] * len(ids)
    rows = zip(ids, vectors, payloads, strict=True)
    return [{"id": one, "vector": given, "payload": payload} for one, given, payload in rows]


def _update_vectors(collection: Collection, body: dict[str, Any]) -> Any:
    new = [(one["id"], _stored(collection, one["vector"])) for one in body["points"]]
    for native, kept in new:
        if native not in collection.points:
            raise Refusal(404, f"Not found: No point with id {native} found")
        collection.points[native]["vectors"] |= kept
    return _done()


def _batch(collection: Collection, body: dict[str, Any]) -> Any:
    for operation in body["operations"]:
        ((kind, given),) = operation.items()
        if kind == "update_vectors":
            _update_vectors(collection, given)
            continue
        for native in given["points"]:
            point = collection.points[native]
            point["payload"] = _changed(point["payload"], kind, given)
    return [_done() for _ in body["operations"]]


def _changed(payload: dict[str, Any], kind: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return a payload after one operation; a key is a path, in quotes or of one plain word."""
    if kind == "overwrite_payload":
        return dict(given["payload"])
    if kind == "delete_payload":
        gone = [json.loads(key) for key in given["keys"]]
        return {key: one for key, one in payload.items() if key not in gone}
    if kind != "set_payload":
        raise Refusal(400, f"unknown variant `{kind}`")
    key = given.get("key")
    if key is None:
        return payload | given["payload"]
    return payload | {key: (payload.get(key) or {}) | given["payload"]}


def _delete(collection: Collection, body: dict[str, Any]) -> Any:
    for native in body["points"]:
        collection.points.pop(native, None)
    return _done()


def _delete_vectors(collection: Collection, body: dict[str, Any]) -> Any:
    for native in body["points"]:
        for name in body["vector"]:
            collection.points[native]["vectors"].pop(name, None)
    return _done()


def _retrieve(collection: Collection, body: dict[str, Any]) -> Any:
    found = [collection.points[one] for one in body["ids"] if one in collection.points]
    return [_shown(point, body) for point in found]


def _count(collection: Collection, body: dict[str, Any]) -> Any:
    asked = body.get("filter")
    return {"count": sum(fulfils(asked, one) for one in collection.points.values())}


def _query_batch(collection: Collection, body: dict[str, Any]) -> Any:
    return [{"points": _query(collection, one)} for one in body["searches"]]


def _shown(point: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": point["id"]}
    fields = asked.get("with_payload")
    if isinstance(fields, list):
        shown["payload"] = {key: point["payload"][key] for key in fields if key in point["payload"]}
    elif fields:
        shown["payload"] = point["payload"]
    wanted = asked.get("with_vector")
    if wanted:
        kept = point["vectors"]
        names = kept if wanted is True else [name for name in wanted if name in kept]
        vectors = {name: kept[name].tolist() for name in names}
        shown["vector"] = vectors[""] if set(vectors) == {""} else vectors
    return shown


def _scroll(collection: Collection, body: dict[str, Any]) -> Any:
    start = body.get("offset")
    ids = sorted(collection.points, key=_order)
    if start is not None:
        ids = [native for native in ids if _order(native) >= _order(start)]
    found = [collection.points[i] for i in ids if fulfils(body.get("filter"), collection.points[i])]
    limit = body["limit"]
    rest = found[limit : limit + 1]
    return {
        "points": [_shown(point, body) for point in found[:limit]],
        "next_page_offset": rest[0]["id"] if rest else None,
    }


def _query(collection: Collection, asked: dict[str, Any]) -> list[dict[str, Any]]:
    name = asked.get("using") or ""
    distance = collection.config[name]["distance"]
    given = asked["query"]
    given = given["nearest"] if isinstance(given, dict) else given
    query = _stored(collection, {name: given})[name]
    points = [one for one in collection.points.values() if name in one["vectors"]]
    points = [one for one in points if fulfils(asked.get("filter"), one)]
    if not points:
        return []
    matrix = np.stack([one["vectors"][name] for one in points])
    if distance == "Euclid":
        scores = np.sqrt(np.square(matrix - query).sum(axis=1))
        order = np.argsort(scores, kind="stable")
    else:
        scores = matrix @ query
        order = np.argsort(-scores, kind="stable")
    return [
        {"version": 0, "score": float(scores[row]), **_shown(points[row], asked)}
        for row in order[: asked["limit"]].tolist()
    ]
