"""What the connectors of Elasticsearch and OpenSearch share: all but how vectors are declared."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar
from urllib.parse import quote

import numpy as np

from isthmus._types import FloatArray, Metric
from isthmus.errors import (
    IsthmusError,
    MissingCollectionError,
    ParameterError,
    UnsupportedOperationError,
)
from isthmus.spaces import Space
from isthmus.stores._client_errors import not_an_alias
from isthmus.stores._connected import ConnectedStore, Hits, Page, Rows, stacked
from isthmus.stores._elastic_errors import Refused, in_our_words, is_busy
from isthmus.stores._elastic_fields import OWN_FIELDS, VECTORS, Fields
from isthmus.stores.base import Capabilities, NameRule

__all__ = ["ElasticStore"]

MESSAGE_BYTES = 16 * 2**20
"""Bytes of one request or answer: a sixth of what the databases take by default."""
NUMBER_BYTES = 22
"""Bytes of a number, written out."""
MAX_ROWS = 10_000
"""Most rows of one answer (``index.max_result_window``)."""
MAX_BATCH = 5_000
QUERIES = 16
"""Searches of one request: each may look at every row, and all must end in time."""
PUT_ALL = "ctx._source.putAll(params.row)"
"""Script that replaces some fields of a document whole: a plain update would merge mappings."""


REMOVE = "ctx._source.remove(params.field)"
CONFLICTS = 3
"""How often an update is done again where another writer was faster."""


class ElasticStore(ConnectedStore):
    """An index whose documents are the rows.

    Its ``_id`` is the id. The record lies in ``_meta`` of the mapping. Searches are exact, by a
    script, unless the URL says ``&index=hnsw``.
    """

    options: ClassVar[tuple[str, ...]] = ("ca", "field", "index", "sort", "tls")
    serial: ClassVar[bool] = False
    capabilities = Capabilities(
        native_scores={
            "cosine": "(1 + cosine) / 2",
            "dot": "dot + 1, or 1 / (1 - dot)",
            "l2": "1 / (1 + squared l2)",
        },
        stores_raw=True,
        exact_search=True,
        ties_by_insertion=False,
        scan_order="key",
        filters=True,
        scan=True,
        notes="after a batch",
        atomic=False,
        max_batch=MAX_BATCH,
        max_id_bytes=512,
        names=NameRule(
            r"(?!\.\.?$)[^-_+A-Z\\/*?\"<>| ,#:][^A-Z\\/*?\"<>| ,#:]{0,254}",
            "1 to 255 characters: no capitals, spaces or signs of paths and patterns, no -_+ first",
        ),
        several_vectors=True,
        switch="alias",
        persistent=True,
        concurrency="many writers",
        proof="protocol fake",
    )

    _client: Any = None
    _name: str
    _fields: Fields
    _index_dim = 0

    # --- what the two databases differ in -----------------------------------------------------

    @abstractmethod
    def _send(self, method: str, path: str, *, body: Any, query: Mapping[str, str]) -> Any:
        """Send a request and return the JSON of its answer; raise `Refused` where it is none."""

    @abstractmethod
    def _vector_field(self, space: Space) -> dict[str, Any]:
        """Return how a mapping declares a vector."""

    @abstractmethod
    def _metric_of(self, field: Mapping[str, Any]) -> Metric | None:
        """Return the metric that a vector is indexed by."""

    @abstractmethod
    def _script(self, query: list[float]) -> dict[str, Any]:
        """Return the script that scores a document exactly."""

    @abstractmethod
    def _nearest(self, query: list[float], k: int, clauses: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the body of a search through the graph."""

    @abstractmethod
    def _fetched(self, *, vectors: bool) -> dict[str, Any]:
        """Return the part of a search that says what of a document comes back."""

    @abstractmethod
    def _vector_of(self, hit: Mapping[str, Any]) -> Sequence[float]:
        """Return the vector of a hit."""

    def _settings(self) -> dict[str, Any]:
        """Return the settings of a new index."""
        return {}

    # --- connection ---------------------------------------------------------------------------

    def _check_options(self) -> None:
        self._hnsw = self._url.choice("index", ("exact", "hnsw")) == "hnsw"
        self._url.flag("tls")

    def _address(self) -> str:
        host, port = self._url.address(9_200)
        protocol = "https" if self._url.flag("tls") else "http"
        return f"{protocol}://{f'[{host}]' if ':' in host else host}:{port}"

    def _disconnect(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _request(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        return self._send(method, path, body=body, query=query)

    # --- the collection -----------------------------------------------------------------------

    def _exists(self) -> bool:
        try:
            mapping = self._mapping()
        except Refused as error:
            if error.status_code == 404:
                return False
            raise
        second = self._url.options.get("vector")
        there = mapping.get("properties", {}).get(second, {})
        return second is None or there.get("type") in VECTORS

    def _mapping(self) -> dict[str, Any]:
        """Return the mapping, and note the name of the index behind an alias."""
        found = self._request("GET", f"/{quote(self._url.collection, safe='')}/_mapping")
        if len(found) != 1:
            raise UnsupportedOperationError(
                expected=f"one index behind {self._url.collection!r}",
                got=", ".join(sorted(found)) or "none",
                do="name one of them",
            )
        ((self._name, entry),) = found.items()
        return dict(entry["mappings"])

    @property
    def _path(self) -> str:
        return f"/{quote(self._name, safe='')}"

    def _create(self, space: Space) -> None:
        second = self._url.options.get("vector")
        if second is not None:
            if second in self._mapping().get("properties", {}):
                raise ParameterError(
                    expected="a name for the second vector that is free",
                    got=repr(second),
                    do="choose another",
                )
            added = {"properties": {second: self._vector_field(space)}}
            self._request("PUT", f"{self._path}/_mapping", added)
            return
        self._name = self._url.collection
        mapping = {
            "dynamic": False,
            "properties": {**OWN_FIELDS, "vector": self._vector_field(space)},
        }
        body = {"mappings": mapping, **self._settings()}
        try:
            self._request("PUT", self._path, body)
        except Refused as error:
            if error.kind != "resource_already_exists_exception":
                raise

    def _read_record(self) -> dict[str, str]:
        try:
            mapping = self._mapping()
        except Refused as error:
            if error.status_code != 404:
                raise
            raise MissingCollectionError(
                expected=f"the collection of {self.url}",
                got="none of that name any more",
                do="check who removed it",
            ) from error
        found: dict[str, str] = mapping.get("_meta", {}).get("isthmus", {})
        options = self._url.options
        own = ":layout" in found
        self._fields = Fields.of(
            mapping.get("properties", {}),
            vector=options.get("vector", options.get("field")) or None,
            sort=options.get("sort"),
            own=own,
        )
        self._look_at_fields()
        return dict(found)

    def _look_at_fields(self) -> None:
        """Find out what this index can do less, and how many rows go into a request."""
        rows = MESSAGE_BYTES // (NUMBER_BYTES * max(self._fields.dim, 1) + 512)
        # A vector that is indexed by the cosine is kept with length 1, and its length beside it.
        kept = self._metric_of(self._fields.properties[self._fields.vector])
        self.capabilities = replace(
            type(self).capabilities,
            exact_search=not self._hnsw,
            read_back_error=1e-6 if kept == "cosine" else 0.0,
            max_batch=max(1, min(MAX_BATCH, rows)),
        )

    def _describe(self) -> tuple[int | None, Metric | None]:
        field = self._fields.properties[self._fields.vector]
        return self._fields.dim or self._dim_of_a_row(), self._metric_of(field)

    def _dim_of_a_row(self) -> int | None:
        hits = self._search({"size": 1, "query": self._has({}), **self._fetched(vectors=True)})
        return len(self._vector_of(hits[0])) if hits else None

    def _write_record(self, entries: dict[str, str]) -> None:
        meta = {**self._mapping().get("_meta", {}), "isthmus": entries}
        self._request("PUT", f"{self._path}/_mapping", {"_meta": meta})

    def _take_name(self, name: str, former: str) -> str:
        del former
        try:
            found = self._request("GET", f"/_alias/{quote(name, safe='')}")
        except Refused as error:
            if error.status_code != 404:
                raise
            found = {}
        if len(found) > 1:
            raise ParameterError(
                expected="an alias of one index",
                got=f"{name!r}, which leads to {', '.join(sorted(found))}",
                do="take it from all of them but one, or use another alias",
            )
        actions = [{"remove": {"index": there, "alias": name}} for there in sorted(found)]
        actions.append({"add": {"index": self._name, "alias": name}})
        try:
            self._request("POST", "/_aliases", {"actions": actions})
        except Refused as error:
            if error.kind != "invalid_alias_name_exception":
                raise
            raise not_an_alias(name) from error
        return next(iter(found), "")

    # --- rows ---------------------------------------------------------------------------------

    def _has(self, where: Mapping[str, Any], *more: dict[str, Any]) -> dict[str, Any]:
        return {"bool": {"filter": [*self._fields.where(where), *more]}}

    def _search(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._request("POST", f"{self._path}/_search", body)["hits"][
            "hits"
        ]
        return found

    def _count(self) -> int:
        return int(self._request("POST", f"{self._path}/_count", {"query": self._has({})})["count"])

    def _write(self, rows: Rows) -> None:
        lines: list[tuple[dict[str, Any], dict[str, Any] | None]] = []
        whole = self._fields.own and not self._ask(self._has_several)
        for text, vector, metadata in zip(
            rows.ids, rows.vectors.tolist(), rows.metadata, strict=True
        ):
            source = self._fields.to_source(text, vector, metadata)
            if whole:
                lines.append(({"index": {"_id": text}}, source))
                continue
            if metadata is None and "vector" in self._url.options:
                source = {
                    name: source[name] for name in ("id", self._fields.vector) if name in source
                }
            lines.append(_update(text, PUT_ALL, row=source))
        self._bulk(lines)

    def _has_several(self) -> bool:
        """Whether rows have other vectors, which must stay; another program may have added one."""
        fields = self._mapping().get("properties", {}).values()
        return sum(field.get("type") in VECTORS for field in fields) > 1

    def _remove(self, ids: list[str]) -> None:
        if "vector" not in self._url.options:
            self._bulk([({"delete": {"_id": text}}, None) for text in ids])
            return
        field = self._fields.vector
        self._bulk([_update(text, REMOVE, create=False, field=field) for text in ids])

    def _bulk(self, lines: list[tuple[dict[str, Any], dict[str, Any] | None]]) -> None:
        for body in _messages(lines):
            answer = self._request("POST", f"{self._path}/_bulk", body, refresh="true")
            if not answer["errors"]:
                continue
            for item in answer["items"]:
                ((action, result),) = item.items()
                gone = action != "index" and result["status"] == 404
                if result["status"] >= 300 and not gone:
                    raise Refused.of(result["status"], result)

    def _read(self, ids: list[str], *, vectors: bool) -> Rows:
        wanted = self._has({}, {"ids": {"values": ids}})
        hits = self._search({"size": len(ids), "query": wanted, **self._fetched(vectors=vectors)})
        return self._rows(hits, vectors=vectors)

    def _page(self, after: str, limit: int) -> Page:
        rows = MESSAGE_BYTES // (NUMBER_BYTES * self._fields.dim + 1_024)
        body: dict[str, Any] = {
            "size": max(1, min(limit, rows, MAX_ROWS)),
            "query": self._has({}),
            "sort": [{self._fields.sort: "asc"}],
            **self._fetched(vectors=True),
        }
        if after:
            body["search_after"] = [_cursor(after)]
        hits = self._search(body)
        return Page(
            self._rows(hits, vectors=True), json.dumps(hits[-1]["sort"][0]) if hits else after
        )

    def _rows(self, hits: list[dict[str, Any]], *, vectors: bool) -> Rows:
        dim = self._fields.dim or getattr(getattr(self, "_space", None), "dim", 0)
        matrix = (
            stacked([self._vector_of(hit) for hit in hits], dim)
            if vectors
            else np.empty((len(hits), 0), np.float32)
        )
        metadata = [self._fields.metadata(hit.get("_source", {})) for hit in hits]
        return Rows([hit["_id"] for hit in hits], matrix, metadata)

    # --- search -------------------------------------------------------------------------------

    def _find(self, queries: FloatArray, *, k: int, where: Mapping[str, Any]) -> Hits:
        if k > MAX_ROWS:
            if self._count() > MAX_ROWS:
                raise ParameterError(
                    expected=f"k of at most {MAX_ROWS:,}, as {self.scheme} allows",
                    got=f"{k:,}",
                    do="ask for fewer",
                )
            k = MAX_ROWS
        clauses = self._fields.where(where)
        found: Hits = []
        vectors = queries.tolist()
        for start in range(0, len(vectors), QUERIES):
            bodies: list[Any] = []
            for query in vectors[start : start + QUERIES]:
                bodies += [{}, {**self._best(query, k, clauses), "_source": False, "size": k}]
            answer = self._request("POST", f"{self._path}/_msearch", bodies)
            found += [_hits(one) for one in answer["responses"]]
        return found

    def _best(self, query: list[float], k: int, clauses: list[dict[str, Any]]) -> dict[str, Any]:
        if self._hnsw:
            return self._nearest(query, k, clauses)
        scored = {"query": {"bool": {"filter": clauses}}, "script": self._script(query)}
        return {"query": {"script_score": scored}}

    # --- errors -------------------------------------------------------------------------------

    def _is_transient(self, error: Exception) -> bool:
        name = type(error).__name__
        return is_busy(error) or "Connection" in name or "Timeout" in name

    def _in_our_words(self, error: Exception) -> IsthmusError:
        if not isinstance(error, Refused) or is_busy(error):
            return super()._in_our_words(error)
        where = f"{self.scheme} at {self._url.place!r}"
        return in_our_words(error, name=self._url.collection, where=where, secret=self._secret)


def _update(
    text: str, source: str, *, create: bool = True, **params: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the lines that change a document by a script, or make it by the same one."""
    body: dict[str, Any] = {"script": {"source": source, "lang": "painless", "params": params}}
    if create:
        body |= {"scripted_upsert": True, "upsert": {}}
    return {"update": {"_id": text, "retry_on_conflict": CONFLICTS}}, body


def _messages(lines: list[tuple[dict[str, Any], dict[str, Any] | None]]) -> Iterator[list[str]]:
    """Write the lines of a bulk request, in requests that are not too large."""
    message: list[str] = []
    size = 0
    for action, source in lines:
        written = [json.dumps(action, ensure_ascii=False)]
        if source is not None:
            written.append(json.dumps(source, ensure_ascii=False))
        grown = sum(map(len, written))
        if message and size + grown > MESSAGE_BYTES:
            yield message
            message, size = [], 0
        message += written
        size += grown
    if message:
        yield message


def _hits(answer: dict[str, Any]) -> list[tuple[str, float]]:
    if "error" in answer:
        raise Refused.of(answer.get("status", 500), answer)
    return [(hit["_id"], hit["_score"]) for hit in answer["hits"]["hits"]]


def _cursor(after: str) -> Any:
    try:
        return json.loads(after)
    except json.JSONDecodeError as error:
        raise ParameterError(
            expected="the cursor of a batch of this collection",
            got=repr(after[:40]),
            do="pass what the last batch gave",
        ) from error
