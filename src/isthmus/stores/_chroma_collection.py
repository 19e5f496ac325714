"""A Chroma collection behind Chroma's client, wherever it runs.

Rows lie as any Chroma user expects them: flat metadata as fields, a text as the document.
The record of the space lies among the metadata of the collection, under keys of ``isthmus:``.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from isthmus._optional import require
from isthmus._types import FloatArray, Metric
from isthmus.errors import (
    IsthmusError,
    ParameterError,
    UnsupportedOperationError,
)
from isthmus.spaces import Space
from isthmus.stores._chroma_errors import in_our_words, is_transient
from isthmus.stores._chroma_metadata import DOCUMENT, from_chroma, to_chroma, where_chroma
from isthmus.stores._connected import ConnectedStore, Hits, Page, Rows
from isthmus.stores._digits import reads_back
from isthmus.stores._tokens import token, tokens
from isthmus.stores._url import StoreUrl
from isthmus.stores.base import Capabilities, NameRule

__all__ = ["CAPABILITIES", "ChromaCollection"]

MAX_BATCH = 5_461  # SQLite's 32,766 variables, six for each row: what every Chroma says by default
EXACT = 2**53  # larger whole numbers are compared as rounded ones
RECORD = "isthmus"
SPACES: dict[str, Metric] = {"cosine": "cosine", "ip": "dot", "l2": "l2"}
NAMES = NameRule(
    r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]",
    "3 to 255 of A-Z, a-z, 0-9, '.', '_' and '-', the first and the last a letter or a digit",
)
CAPABILITIES = Capabilities(
    native_scores=MappingProxyType({"cosine": "1 - cosine", "dot": "1 - dot", "l2": "squared l2"}),
    stores_raw=True,
    read_back_error=1e-6,
    exact_search=False,
    ties_by_insertion=False,
    filters=True,
    scan=True,
    notes="after a batch",
    max_batch=MAX_BATCH,
    names=NAMES,
    switch="two renames",
    persistent=True,
    concurrency="one process",
)


class ChromaCollection(ConnectedStore):
    """What both schemes share: a collection behind Chroma's client."""

    capabilities = CAPABILITIES
    options: ClassVar[tuple[str, ...]] = ("database", "document", "tenant")
    place_options: ClassVar[tuple[str, ...]] = ("database", "tenant")

    def __init__(self, url: StoreUrl) -> None:
        super().__init__(url)
        self._client: Any = None
        self._collection: Any = None
        self._document = url.options.get("document", DOCUMENT)

    @abstractmethod
    def _open_client(self, settings: Any, place: Mapping[str, str]) -> Any:
        """Return the client of a tenant's database."""

    def _connect(self) -> None:
        settings = require("chromadb.config", extra="chroma").Settings(anonymized_telemetry=False)
        options = self._url.options
        place = {key: options[key] for key in ("tenant", "database") if key in options}
        self._client = self._open_client(settings, place)
        most = self._client.get_max_batch_size()
        rows = min(most, self.capabilities.max_batch or most)
        self.capabilities = replace(self.capabilities, max_batch=rows)

    def _disconnect(self) -> None:
        client, self._client, self._collection = self._client, None, None
        if client is not None:
            client.close()

    def _named(self, name: str) -> Any:
        """Return a collection by name, None where there is none."""
        missing = require("chromadb.errors", extra="chroma").NotFoundError
        try:
            return self._client.get_collection(name, embedding_function=None)
        except missing:
            return None

    def _exists(self) -> bool:
        self._collection = self._named(self._url.collection)
        return self._collection is not None

    def _create(self, space: Space) -> None:
        (hnsw,) = (name for name, metric in SPACES.items() if metric == space.metric)
        self._collection = self._client.get_or_create_collection(
            self._url.collection,
            configuration={"hnsw": {"space": hnsw}},
            embedding_function=None,
        )

    def _describe(self) -> tuple[int | None, Metric | None]:
        name = self._space_name()
        if name not in SPACES:
            raise UnsupportedOperationError(
                expected=f"a collection whose space is {', '.join(SPACES)}",
                got=repr(name),
                do="read it with Chroma's own client",
            )
        dim = self._collection._model.dimension  # noqa: SLF001 - the client shows it nowhere else
        return dim, SPACES[name]

    def _space_name(self) -> str:
        configuration = self._collection.configuration_json
        index = configuration.get("hnsw") or configuration.get("spann") or {}
        return str(index.get("space", "l2"))

    def _fresh(self) -> Any:
        """Return the collection with the metadata that it has now, under whatever name."""
        return self._client.get_collection_by_id(self._collection.id, embedding_function=None)

    def _read_record(self) -> dict[str, str]:
        metadata = self._fresh().metadata or {}
        return {
            key.removeprefix(RECORD): value
            for key, value in metadata.items()
            if key.startswith(f"{RECORD}:") and isinstance(value, str)
        }

    def _write_record(self, entries: dict[str, str]) -> None:
        collection = self._fresh()
        theirs = {
            key: value
            for key, value in (collection.metadata or {}).items()
            if not key.startswith(f"{RECORD}:")
        }
        # `modify` refuses the key "hnsw:space" that older programs wrote and still look for, even
        # unchanged; the request beneath it keeps it. Neither touches the index.
        self._client._server._modify(  # noqa: SLF001
            id=collection.id,
            new_metadata={**theirs, **{RECORD + key: text for key, text in entries.items()}},
            tenant=self._client.tenant,
            database=self._client.database,
        )

    def _count(self) -> int:
        return int(self._collection.count())

    def _write(self, rows: Rows) -> None:
        """Upsert; Chroma keeps old fields of a row that is replaced, so those are set to null."""
        there = self._collection.get(ids=rows.ids, include=["metadatas", "documents"])
        former = dict(
            zip(there["ids"], zip(there["metadatas"], there["documents"], strict=True), strict=True)
        )
        metadatas, documents = [], []
        for text, metadata in zip(rows.ids, rows.metadata, strict=True):
            fields, document = to_chroma(metadata, document=self._document)
            old, old_document = former.get(text, ({}, None))
            stale = dict.fromkeys(key for key in old or {} if key not in fields)
            metadatas.append({**fields, **stale} or None)
            documents.append(document if document or old_document else None)
        some = any(document is not None for document in documents)
        self._collection.upsert(
            ids=rows.ids,
            embeddings=rows.vectors,
            metadatas=metadatas,
            documents=[document or "" for document in documents] if some else None,
        )

    def _remove(self, ids: list[str]) -> None:
        self._collection.delete(ids=ids)

    def _read(self, ids: list[str], *, vectors: bool) -> Rows:
        return self._rows(vectors=vectors, ids=ids)

    def _rows(self, *, vectors: bool, **which: Any) -> Rows:
        include = ["metadatas", "documents", *(["embeddings"] if vectors else [])]
        got = self._collection.get(**which, include=include)
        texts = [
            from_chroma(fields, text, document=self._document)
            for fields, text in zip(got["metadatas"], got["documents"], strict=True)
        ]
        if vectors and texts:
            return Rows(got["ids"], np.asarray(got["embeddings"], np.float32), texts)
        return Rows(got["ids"], np.empty((len(texts), self.space.dim if vectors else 0)), texts)

    def _find(self, queries: FloatArray, *, k: int, where: Mapping[str, Any]) -> Hits:
        if not self._count():
            return [[] for _ in queries]
        request: dict[str, Any] = {}
        asked = dict(where)
        text = asked.get(self._document)
        if isinstance(text, str) and text:
            request["ids"] = self._with_document(asked.pop(self._document))
        if asked:
            request["where"] = where_chroma(asked, document=self._document)
        numbers = [value for value in asked.values() if isinstance(value, int | float)]
        if any(abs(value) >= EXACT or not reads_back(value) for value in numbers):
            request = {"ids": self._with_numbers(asked, request)}
        if request.get("ids") == []:
            return [[] for _ in queries]
        got = self._collection.query(
            query_embeddings=queries, n_results=k, include=["distances"], **request
        )
        return [
            list(zip(ids, map(float, scores), strict=True))
            for ids, scores in zip(got["ids"], got["distances"], strict=True)
        ]

    def _with_document(self, text: str) -> list[str]:
        """Return the ids of the rows with exactly this document, or a field of its name."""
        by_field: list[str] = self._collection.get(
            where={self._document: {"$eq": text}}, include=[]
        )["ids"]
        got = self._collection.get(
            where_document={"$contains": text}, include=["metadatas", "documents"]
        )
        return by_field + [
            text_id
            for text_id, fields, document in zip(
                got["ids"], got["metadatas"], got["documents"], strict=True
            )
            if document == text and self._document not in (fields or {})
        ]

    def _with_numbers(self, asked: Mapping[str, Any], request: dict[str, Any]) -> list[str]:
        """Return the ids of rows with exactly these values: Chroma compares rounded numbers."""
        rows = self._rows(vectors=False, **request)
        wanted = {token(key, value) for key, value in asked.items()}
        kept = zip(rows.ids, rows.metadata, strict=True)
        return [text for text, metadata in kept if wanted.issubset(tokens(metadata))]

    def _page(self, after: str, limit: int) -> Page:
        """Read on by position; the row before it tells whether positions moved meanwhile."""
        start, last = json.loads(after) if after else (0, "")
        if start:
            before = self._collection.get(limit=1, offset=start - 1, include=[])["ids"]
            if before != [last]:
                start = self._behind(last, start)
        rows = self._rows(vectors=True, limit=limit, offset=start)
        if not rows.ids:
            return Page(rows, after)
        after = json.dumps([start + len(rows.ids), rows.ids[-1]], ensure_ascii=False)
        return Page(rows, after)

    def _behind(self, last: str, start: int) -> int:
        """Return where to go on after rows were removed: behind the last row, if it is there.

        If it is gone as well, from the start: rows may come twice, but none is missed.
        """
        before = self._collection.get(limit=start, offset=0, include=[])["ids"]
        return before.index(last) + 1 if last in before else 0

    def _take_name(self, name: str, former: str) -> str:
        holder, taken = self._named(name), self._named(former)
        if holder is not None and holder.id == self._collection.id:
            return former if taken is not None else ""
        if holder is not None:
            if taken is not None:
                raise ParameterError(
                    expected="a free name for the collection that had it",
                    got=f"{former!r}, which is a collection",
                    do="choose another",
                )
            holder.modify(name=former)
            taken = holder
        self._collection.modify(name=name)
        return former if taken is not None else ""

    def _is_transient(self, error: Exception) -> bool:
        return is_transient(error)

    def _in_our_words(self, error: Exception) -> IsthmusError:
        found = in_our_words(error, url=self.url, secret=self._secret)
        return found or super()._in_our_words(error)
