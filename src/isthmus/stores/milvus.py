"""Milvus: ``milvus://host:19530?collection=NAME``, and Milvus Lite in a file of this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

import numpy as np

from isthmus._optional import require
from isthmus._types import FloatArray, Metric
from isthmus.errors import (
    InputError,
    IsthmusError,
    ParameterError,
    StoreBusyError,
    UnsupportedOperationError,
)
from isthmus.spaces import Space
from isthmus.stores._client_errors import not_an_alias, refused
from isthmus.stores._connected import ConnectedStore, Hits, Page, Rows, stacked
from isthmus.stores._milvus_errors import NOT_LOADED, in_our_words, is_away
from isthmus.stores._milvus_fields import MAX_TOKENS, Fields
from isthmus.stores._tokens import token, tokens
from isthmus.stores.base import Capabilities, NameRule

__all__ = ["MilvusLiteStore", "MilvusStore"]

MESSAGE_BYTES = 32 * 2**20
"""Half of what Milvus takes in one message by default, for what else is in it."""
MAX_ROWS = 16_384
"""Most rows of one answer, as Milvus has it."""
HITS = 100_000
"""Hits that one request asks for: what a client holds as Python objects at a time."""
MAX_BATCH = 10_000
FLUSH_ROWS = 1_000
"""Rows that Milvus Lite keeps unsorted before a search makes it write them: it is slow on them."""
INDEXES: Mapping[str, tuple[str, dict[str, int]]] = MappingProxyType(
    {"exact": ("FLAT", {}), "hnsw": ("HNSW", {"M": 16, "efConstruction": 200})}
)
SEARCH_WIDTH = 128
METRICS: Mapping[Metric, str] = MappingProxyType({"cosine": "COSINE", "dot": "IP", "l2": "L2"})
RECORD = "isthmus"
"""Beginning of the names of the collection's properties that hold the record."""
"""Words of a server whose parts have not found each other yet; it gives them no code."""

T = TypeVar("T")


class MilvusStore(ConnectedStore):
    """A collection of a Milvus server.

    Its vectors, keys and metadata are fields; the record lies in the properties of the collection.
    A collection that Isthmus makes is searched exactly (``FLAT``) unless the URL says
    ``&index=hnsw``.
    """

    scheme: ClassVar[str] = "milvus"
    options: ClassVar[tuple[str, ...]] = ("consistency", "database", "field", "index", "tls")
    place_options: ClassVar[tuple[str, ...]] = ("database",)
    serial: ClassVar[bool] = False
    lite: ClassVar[bool] = False
    capabilities = Capabilities(
        native_scores={"cosine": "cosine", "dot": "dot", "l2": "squared l2"},
        stores_raw=True,
        exact_search=True,
        ties_by_insertion=False,
        scan_order="key",
        filters=True,
        scan=True,
        notes="after a batch",
        atomic=False,
        max_batch=MAX_BATCH,
        max_id_bytes=65_535,
        max_metadata_bytes=65_536,
        names=NameRule(
            "[A-Za-z_][A-Za-z0-9_]{0,254}",
            "1 to 255 letters, digits and underscores, no digit first",
        ),
        switch="alias",
        persistent=True,
        concurrency="many writers",
        proof="real server",
    )

    _client: Any = None
    _name: str
    _fields: Fields
    _metric: Metric
    _in_memory = False

    # --- connection ---------------------------------------------------------------------------

    def _connect(self) -> None:
        self._check_options()
        secret = self._secret or ""
        host, port = self._url.address(19_530)
        self._open_client(
            f"{'https' if self._tls else 'http'}://{host}:{port}",
            extra="milvus",
            user=self._url.user,
            password=secret if self._url.user else "",
            token="" if self._url.user else secret,
            db_name=self._url.options.get("database", ""),
        )

    def _open_client(self, uri: str, *, extra: str, **arguments: str) -> None:
        client = require("pymilvus", extra=extra).MilvusClient
        self._client = client(uri=uri, timeout=self.timeout, dedicated=not self.lite, **arguments)

    def _disconnect(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _check_options(self) -> None:
        self._tls = self._url.flag("tls")
        self._index_kind = self._url.choice("index", tuple(INDEXES))
        self._consistency = self._url.choice("consistency", ("strong", "session", "bounded"))

    # --- the collection -----------------------------------------------------------------------

    def _exists(self) -> bool:
        return bool(self._client.has_collection(self._url.collection, timeout=self.timeout))

    def _create(self, space: Space) -> None:
        types = require("pymilvus", extra=self.scheme).DataType
        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", types.VARCHAR, is_primary=True, max_length=65_535)
        schema.add_field("vector", types.FLOAT_VECTOR, dim=space.dim)
        schema.add_field("metadata", types.JSON)
        schema.add_field(
            "tokens",
            types.ARRAY,
            element_type=types.VARCHAR,
            max_length=32,
            max_capacity=MAX_TOKENS,
        )
        kind, params = INDEXES[self._index_kind]
        index = self._client.prepare_index_params()
        index.add_index("vector", index_type=kind, metric_type=METRICS[space.metric], params=params)
        name = self._url.collection
        try:
            self._client.create_collection(
                name, schema=schema, consistency_level="Strong", timeout=self.timeout
            )
        except Exception:  # another process may have been faster
            if not self._client.has_collection(name, timeout=self.timeout):
                raise
        if not self._client.list_indexes(name, timeout=self.timeout):
            self._client.create_index(name, index, sync=False, timeout=self.timeout)

    def _read_record(self) -> dict[str, str]:
        described = self._client.describe_collection(self._url.collection, timeout=self.timeout)
        self._name = described["collection_name"]
        found = {
            key.removeprefix(RECORD): text
            for key, text in described.get("properties", {}).items()
            if key.startswith(f"{RECORD}:") and text
        }
        own = ":layout" in found
        self._fields = Fields.of(
            described, vector="" if own else self._url.options.get("field", ""), own=own
        )
        self._look_at_index()
        return found

    def _look_at_index(self) -> None:
        """Find out how the vectors are searched, and what this collection can do less."""
        found: dict[str, Any] = {"metric_type": "COSINE", "index_type": "FLAT"}
        for name in self._client.list_indexes(self._name, timeout=self.timeout):
            index = self._client.describe_index(self._name, name, timeout=self.timeout)
            if index and index["field_name"] == self._fields.vector:
                found = index
        self._index = found["index_type"]
        metrics = {theirs: ours for ours, theirs in METRICS.items()}
        if found["metric_type"] not in metrics:
            raise UnsupportedOperationError(
                expected="an index of the metric " + ", ".join(metrics),
                got=found["metric_type"],
                do="build an index of one of these",
            )
        self._metric = metrics[found["metric_type"]]
        self.capabilities = replace(
            type(self).capabilities,
            exact_search=self._index == "FLAT",
            max_batch=max(1, min(MAX_BATCH, MESSAGE_BYTES // (4 * self._fields.dim + 256))),
            max_id_bytes=None if self._fields.whole else self._fields.key_bytes,
        )

    def _describe(self) -> tuple[int, Metric]:
        return self._fields.dim, self._metric

    def _write_record(self, entries: dict[str, str]) -> None:
        gone = self._read_record().keys() - entries.keys()
        texts = {**dict.fromkeys(gone, ""), **entries}  # a property can be emptied, not removed
        properties = {f"{RECORD}{key}": text for key, text in texts.items()}
        for _ in range(2):  # Milvus 2.3 writes to its disk what was there before the last change
            self._client.alter_collection_properties(self._name, properties, timeout=self.timeout)

    def _take_name(self, name: str, former: str) -> str:
        del former
        there = self._client.has_collection(name, timeout=self.timeout)
        if not there:
            self._client.create_alias(self._name, name, timeout=self.timeout)
            return ""
        described = self._client.describe_collection(name, timeout=self.timeout)
        leads = str(described["collection_name"])
        if leads == name:
            raise not_an_alias(name)
        self._client.alter_alias(self._name, name, timeout=self.timeout)
        return leads

    # --- rows ---------------------------------------------------------------------------------

    @property
    def _asking(self) -> dict[str, Any]:
        level = self._consistency.capitalize()
        return {"consistency_level": level, "timeout": self.timeout}

    def _loaded(self, action: Callable[[], T]) -> T:
        """Do what needs the collection in memory; load it where it is not."""
        end = time.monotonic() + self.timeout
        while True:
            self._in_memory = self._in_memory or self._wait_for_memory(end)
            try:
                return action()
            except Exception as error:
                if getattr(error, "code", None) not in NOT_LOADED or time.monotonic() > end:
                    raise
            self._in_memory = False  # somebody released it, or the server was started again

    def _wait_for_memory(self, end: float) -> bool:
        """Load the collection and wait until it says that it is there; True at the latest then."""
        self._client.load_collection(self._name, _async=True, timeout=self.timeout)
        while True:
            found = self._client.get_load_state(self._name, timeout=self.timeout)
            if found["state"].name == "Loaded" or time.monotonic() > end:
                return True
            time.sleep(0.05)

    def _query(self, expression: str, fields: list[str], **how: Any) -> list[Mapping[str, Any]]:
        def ask() -> list[Mapping[str, Any]]:
            return list(
                self._client.query(
                    self._name, filter=expression, output_fields=fields, **how, **self._asking
                )
            )

        return self._loaded(ask)

    def _count(self) -> int:
        return int(self._query("", ["count(*)"])[0]["count(*)"])

    def _write(self, rows: Rows) -> None:
        if self._fields.made:
            raise UnsupportedOperationError(
                expected="a collection whose keys are given with its rows",
                got=f"the collection {self._name!r}, whose keys Milvus makes (auto_id)",
                do="write into a collection of your own",
            )
        for some in _messages(self._fields.to_rows(rows), rows):
            self._client.upsert(self._name, some, timeout=self.timeout)

    def _remove(self, ids: list[str]) -> None:
        if among := self._fields.among(ids):
            self._client.delete(self._name, filter=among, timeout=self.timeout)

    def _read(self, ids: list[str], *, vectors: bool) -> Rows:
        among = self._fields.among(ids)
        found = self._query(among, self._names(vectors=vectors)) if among else []
        return self._rows(found, vectors=vectors)

    def _page(self, after: str, limit: int) -> Page:
        ahead = f"{self._fields.key} > {self._after(after)}" if after else ""
        most = MESSAGE_BYTES // (4 * self._fields.dim + 1_024)
        found = self._query(
            ahead,
            self._names(vectors=True),
            limit=max(1, min(limit, most, MAX_ROWS)),
            iterator="True",  # Milvus Lite goes by key only then
        )
        rows = self._rows(found, vectors=True)
        return Page(rows, rows.ids[-1] if rows.ids else after)

    def _after(self, text: str) -> str:
        literal = self._fields.literal(text)
        if literal is None:
            raise ParameterError(
                expected="the cursor of a batch of this collection",
                got=repr(text[:40]),
                do="pass what the last batch gave",
            )
        return literal

    def _names(self, *, vectors: bool) -> list[str]:
        return [
            self._fields.key,
            *([self._fields.vector] if vectors else []),
            *self._fields.read,
        ]

    def _rows(self, found: list[Mapping[str, Any]], *, vectors: bool) -> Rows:
        fields = self._fields
        matrix = (
            stacked([row[fields.vector] for row in found], fields.dim)
            if vectors
            else np.empty((len(found), 0), np.float32)
        )
        return Rows(
            [str(row[fields.key]) for row in found], matrix, [fields.metadata(row) for row in found]
        )

    # --- search -------------------------------------------------------------------------------

    def _find(self, queries: FloatArray, *, k: int, where: Mapping[str, Any]) -> Hits:
        if k > MAX_ROWS and self._count() > MAX_ROWS:
            raise ParameterError(
                expected=f"k of at most {MAX_ROWS:,}, as Milvus allows", got=f"{k:,}", do="ask less"
            )
        expression = self._fields.where(where)
        unsure = self._fields.unsure(where, lite=self.lite)
        if unsure:
            expression = self._fields.among(self._that_have(unsure, expression))
            if not expression:
                return [[] for _ in queries]
        k = min(k, MAX_ROWS)
        step = max(1, HITS // k)
        hits: Hits = []
        for start in range(0, len(queries), step):
            hits += self._search(queries[start : start + step], k, expression)
        return hits

    def _search(self, queries: FloatArray, k: int, expression: str) -> Hits:
        wide = {"ef": max(k, SEARCH_WIDTH)} if self._index == "HNSW" else {}

        def ask() -> Any:
            return self._client.search(
                self._name,
                data=list(queries),
                limit=k,
                filter=expression,
                anns_field=self._fields.vector,
                output_fields=[self._fields.key],
                search_params={"metric_type": METRICS[self._metric], "params": wide},
                **self._asking,
            )

        return [
            [(str(text), score) for text, score in zip(hits.ids, hits.distances, strict=True)]
            for hits in self._loaded(ask)
        ]

    def _that_have(self, unsure: Mapping[str, Any], expression: str) -> list[str]:
        """Return the ids of rows with these values, which no expression can ask for."""
        wanted = {token(name, value) for name, value in unsure.items()}
        expression = expression or f"{self._fields.key} not in []"
        found = self._rows(self._query(expression, self._names(vectors=False)), vectors=False)
        return [
            text
            for text, metadata in zip(found.ids, found.metadata, strict=True)
            if wanted.issubset(tokens(metadata))
        ]

    # --- errors -------------------------------------------------------------------------------

    def _is_transient(self, error: Exception) -> bool:
        # The client has tried for as long as it may where it says so.
        return self._is_away(error) and "Retry" not in str(error)

    def _is_away(self, error: Exception) -> bool:
        return is_away(error, lite=self.lite)

    def _in_our_words(self, error: Exception) -> IsthmusError:
        where = f"{self.scheme} at {self._url.place or self._url.path!r}"
        known = in_our_words(error, url=self.url, name=self._url.collection, secret=self._secret)
        if known is None and self._is_away(error):
            return super()._in_our_words(error)
        return known or refused(error, where=where, secret=self._secret)


class MilvusLiteStore(MilvusStore):
    """A collection of Milvus Lite: the same, in a folder of this machine, without a server."""

    scheme: ClassVar[str] = "milvus-lite"
    options: ClassVar[tuple[str, ...]] = ("field", "index")
    place_options: ClassVar[tuple[str, ...]] = ()
    serial: ClassVar[bool] = True
    lite: ClassVar[bool] = True
    capabilities = replace(
        MilvusStore.capabilities,
        max_metadata_bytes=None,
        concurrency="one process",
        proof="in process",
    )

    _unflushed = 0

    def _connect(self) -> None:
        self._check_options()
        path = self._url.file()
        if path.suffix != ".db":
            raise InputError(
                expected="a path that ends in .db, as Milvus Lite wants",
                got=repr(path.name),
                do="rename it",
            )
        require("milvus_lite", extra="milvus-lite")
        if path.exists():
            self._open()

    def _open(self) -> None:
        if self._client is None:
            self._open_client(os.path.abspath(self._url.file()), extra="milvus-lite")  # noqa: PTH100

    def _exists(self) -> bool:
        return self._client is not None and super()._exists()

    def _create(self, space: Space) -> None:
        self._open()
        super()._create(space)

    def _write(self, rows: Rows) -> None:
        super()._write(rows)
        self._unflushed += len(rows.ids)

    def _search(self, queries: FloatArray, k: int, expression: str) -> Hits:
        if self._unflushed >= FLUSH_ROWS:
            self._client.flush(self._name, timeout=self.timeout)
            self._unflushed = 0
        return super()._search(queries, k, expression)

    def _in_our_words(self, error: Exception) -> IsthmusError:
        if type(error).__name__ == "ConnectionConfigException":
            return StoreBusyError(
                expected=f"{self._url.path!r} for this process alone",
                got="a file that another process has open",
                do="close it there, or use a server: milvus://",
            )
        return super()._in_our_words(error)


def _messages(built: list[dict[str, Any]], rows: Rows) -> Iterator[list[dict[str, Any]]]:
    """Split rows so that no message grows too large, however long their metadata are."""
    start, size = 0, 0
    for row, metadata in enumerate(rows.metadata):
        grown = rows.vectors.shape[1] * 4 + len(metadata or "") * 4 + 4 * len(rows.ids[row])
        if size + grown > MESSAGE_BYTES and row > start:
            yield built[start:row]
            start, size = row, 0
        size += grown
    yield built[start:]
