"""Typesense: a collection with a field of vectors, our own or anybody's."""

from __future__ import annotations

import bisect
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar
from urllib.parse import quote

from isthmus._types import FloatArray, Metric
from isthmus.errors import IsthmusError, ReadOnlyStoreError, StoreBusyError
from isthmus.spaces import Space
from isthmus.stores._client_errors import gone, not_an_alias
from isthmus.stores._connected import ConnectedStore, Hits, Page, Rows
from isthmus.stores._typesense_documents import ODD, Schema, read_schema
from isthmus.stores._typesense_server import MOST_HITS, Server
from isthmus.stores._url import StoreUrl
from isthmus.stores.base import Capabilities, NameRule

__all__ = ["TypesenseStore"]

RECORDS = "isthmus_records"
INDEXES = ("exact", "hnsw")
EXACT = "flat_search_cutoff: 1000000000"
"""With a filter that leaves fewer documents than this, each of them is compared."""
QUERY_LENGTH = 3_500
"""Of a filter that stands in an address."""


class RecordNotThereError(Exception):
    """A record that this store has read before, and that the server does not have now."""


class TypesenseStore(ConnectedStore):
    """A collection of Typesense; see docs/stores/typesense.md.

    Options of its URL: ``index`` (``hnsw``: an approximate search, where ours is exact), ``field``
    (of the vectors, where a collection has several), ``tls``.
    """

    scheme: ClassVar[str] = "typesense+http"
    options: ClassVar[tuple[str, ...]] = ("index", "field", "tls")
    capabilities: Capabilities = Capabilities(
        native_scores=MappingProxyType({"cosine": "1 - cosine"}),
        stores_raw=True,
        exact_search=True,
        ties_by_insertion=False,
        scan_order="key",
        filters=True,
        scan=True,
        notes="after a batch",
        atomic=False,
        max_batch=1_000,
        names=NameRule(
            r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}", "1 to 255 of A-Z, a-z, 0-9, '_', '-' and '.'"
        ),
        switch="alias",
        persistent=True,
        concurrency="many writers",
        proof="real server",
    )

    _schema: Schema
    _server: Server

    def __init__(self, url: StoreUrl) -> None:
        super().__init__(url)
        self._ids: list[str] = []
        url.flag("tls")
        self._exact = url.choice("index", INDEXES) == INDEXES[0]

    # --- what ConnectedStore asks for ---------------------------------------------------------

    def _connect(self) -> None:
        self._server = Server(self._url, self.timeout)

    def _disconnect(self) -> None:
        if hasattr(self, "_server"):
            self._server.close()

    def _settle(self, space: Space | None) -> None:
        super()._settle(space)
        exact = self._schema.own and self._exact
        self.capabilities = replace(self.capabilities, exact_search=exact)

    def _exists(self) -> bool:
        answer = self._server.get("collections", self._url.collection)
        if answer is None:
            return False
        self._schema = read_schema(answer, self._url.options.get("field", ""))
        return True

    def _create(self, space: Space) -> None:
        fields: list[dict[str, Any]] = [
            {"name": "embedding", "type": "float[]", "num_dim": space.dim},
            {"name": "tokens", "type": "string[]", "optional": True},
            {"name": "written", "type": "int64"},
        ]
        with self._writing():
            self._make(self._url.collection, fields)
        self._exists()

    def _describe(self) -> tuple[int, Metric | None]:
        return self._schema.dim, "cosine"

    def _read_record(self) -> dict[str, str]:
        found = self._server.get("collections", RECORDS, "documents", self._record_id)
        if found is None and self._recorded:  # a server that has just started may not have it yet
            raise RecordNotThereError
        return {} if found is None else dict(json.loads(found["entries"]))

    def _write_record(self, entries: dict[str, str]) -> None:
        text = json.dumps(entries)
        line = {"id": self._record_id, "collection": self._schema.name, "entries": text}
        with self._writing():
            self._make(RECORDS, [{"name": "collection", "type": "string"}])
            self._import(RECORDS, [line], "upsert")

    def _count(self) -> int:
        if not self._schema.optional:
            return self._count_all()
        ids = self._list_ids()
        parts = (self._documents(ids[at : at + 1_000]) for at in range(0, len(ids), 1_000))
        return sum(len(self._schema.to_rows(part, vectors=False).ids) for part in parts)

    def _write(self, rows: Rows) -> None:
        lists = [row.tolist() for row in rows.vectors]
        made = zip(rows.ids, lists, rows.metadata, strict=True)
        documents = [self._schema.to_document(*row) for row in made]
        with self._writing():
            self._import(self._schema.name, documents, "upsert" if self._schema.own else "emplace")

    def _remove(self, ids: list[str]) -> None:
        place = ("collections", self._schema.name, "documents")
        names = [self._schema.document_id(text) for text in ids]
        with self._writing():
            for chosen in _short_filters([text for text in names if not ODD.search(text)]):
                self._server.delete(*place, filter_by=chosen)
            for text in names:
                if ODD.search(text):
                    self._server.delete(*place, text)

    def _read(self, ids: list[str], *, vectors: bool) -> Rows:
        found = self._documents([self._schema.document_id(text) for text in ids])
        return self._schema.to_rows(found, vectors=vectors)

    def _find(self, queries: FloatArray, *, k: int, where: Mapping[str, Any]) -> Hits:
        chosen = self._schema.filter_of(where)
        if chosen is None:
            return [[] for _ in queries]
        vectors = ["[" + ",".join(map(repr, query.tolist())) + "]" for query in queries]
        hits = self._nearest(vectors, k=k, chosen=chosen, where=where)
        # Where some had the words of a text and not the text, further ones may have it.
        asked, most = k, self._count_all() if where and not self._schema.own else k
        while asked < most and (short := [at for at, some in enumerate(hits) if len(some) < k]):
            asked = min(4 * asked, most)
            again = [vectors[at] for at in short]
            found = self._nearest(again, k=asked, chosen=chosen, where=where)
            for at, some in zip(short, found, strict=True):
                hits[at] = some[:k]
        return hits

    def _page(self, after: str, limit: int) -> Page:
        if not after:
            self._ids = self._list_ids()
        rows = self._schema.to_rows([], vectors=True)
        while not rows.ids:  # documents without a vector are no rows
            ids = self._behind(after)[:limit]
            if not ids:
                self._ids = self._list_ids()  # what came since, or the first page after a break
                ids = self._behind(after)[:limit]
            if not ids:
                break
            rows, after = self._schema.to_rows(self._documents(ids), vectors=True), ids[-1]
        return Page(rows, after)

    def _is_transient(self, error: Exception) -> bool:
        return isinstance(error, RecordNotThereError) or self._server.is_transient(error)

    def _in_our_words(self, error: Exception) -> IsthmusError:
        if isinstance(error, RecordNotThereError):
            return StoreBusyError(
                expected=f"the record of {self.url}, which was there",
                got="none: the server has just started, or somebody removed it",
                do="try again in a moment; if it is gone, open the collection with its space",
            )
        return self._server.in_our_words(error, self._url.collection)

    # --- how it is done -----------------------------------------------------------------------

    @property
    def _record_id(self) -> str:
        schema = self._schema
        return schema.name if schema.own else f"{schema.name}:{schema.vector}"

    def _make(self, name: str, fields: list[dict[str, Any]]) -> None:
        if self._server.get("collections", name) is None:
            try:
                self._server.send({"name": name, "fields": fields}, "collections")
            except self._server.errors.ObjectAlreadyExists:
                return

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Say of a key that is refused that it may not write: it could read a moment ago."""
        errors = self._server.errors
        try:
            yield
        except (errors.RequestUnauthorized, errors.RequestForbidden) as error:
            raise ReadOnlyStoreError(
                expected="a key that may write to the collection",
                got="one that may not",
                do=f"use a key for it and for {RECORDS!r} that may do documents:*, "
                "collections:create and aliases:*",
            ) from error

    def _import(self, name: str, documents: Sequence[Mapping[str, Any]], action: str) -> None:
        lines = [json.dumps(one, ensure_ascii=False) for one in documents]
        place = ("collections", name, "documents", "import")
        answers = self._server.send_lines(lines, *place, action=action)
        if len(answers) != len(lines):
            raise self._server.refusal(f"{len(answers)} answers to {len(lines)} documents")
        for line in answers:
            said = json.loads(line)
            if not said["success"]:
                raise self._server.refusal(str(said.get("error")))

    def _take_name(self, name: str, former: str) -> str:
        del former
        found = self._server.get("aliases", name)
        try:
            with self._writing():
                self._server.put({"collection_name": self._schema.name}, "aliases", name)
        except self._server.errors.ServerError as error:
            if "conflicts" not in str(error):
                raise
            raise not_an_alias(name) from error
        return "" if found is None else str(found["collection_name"])

    def _count_all(self) -> int:
        found = self._server.get("collections", self._schema.name)
        if found is None:
            raise gone(self._schema.name)
        return int(found["num_documents"])

    def _list_ids(self) -> list[str]:
        place = ("collections", self._schema.name, "documents", "export")
        lines = self._server.lines(*place, include_fields="id")
        return sorted(json.loads(line)["id"] for line in lines)

    def _behind(self, after: str) -> list[str]:
        return self._ids[bisect.bisect(self._ids, after) if after else 0 :]

    def _documents(self, ids: list[str]) -> list[dict[str, Any]]:
        """Return the documents of these ids that are there, in their order."""
        place = ("collections", self._schema.name, "documents")
        # An export is several times faster than a search that gives the same documents.
        lines = [
            line
            for chosen in _short_filters([text for text in ids if not ODD.search(text)])
            for line in self._server.lines(*place, "export", filter_by=chosen)
        ]
        odd = [self._server.get(*place, text) for text in ids if ODD.search(text)]
        found = map(json.loads, lines)
        by_id = {one["id"]: one for one in (*found, *odd) if one is not None}
        return [by_id[text] for text in ids if text in by_id]

    def _nearest(
        self, vectors: Sequence[str], *, k: int, chosen: str, where: Mapping[str, Any]
    ) -> Hits:
        exact = f", {EXACT}" if self.capabilities.exact_search else ""
        pages = range(1, -(-k // MOST_HITS) + 1)
        searches = [
            {
                "vector_query": f"{self._schema.vector}:({vector}, k: {k}{exact})",
                "filter_by": chosen,
                "include_fields": ",".join(("id", *(() if self._schema.own else where))),
                "page": page,
                "per_page": min(k, MOST_HITS),
            }
            for vector in vectors
            for page in pages
        ]
        answers = self._server.search(self._schema.name, searches)
        hits: Hits = []
        for start in range(0, len(answers), len(pages)):
            found = [hit for one in answers[start : start + len(pages)] for hit in one["hits"]]
            hits.append(
                [
                    (self._schema.row_id(hit["document"]["id"]), float(hit["vector_distance"]))
                    for hit in found[:k]
                    if self._schema.has(hit["document"], where)
                ]
            )
        return hits


def _by_ids(ids: Sequence[str]) -> str:
    return "id:[" + ",".join(f"`{text}`" for text in ids) + "]"


def _short_filters(ids: Sequence[str]) -> Iterator[str]:
    """Yield filters by ids, each short enough for an address."""
    some: list[str] = []
    length = 0
    for text in ids:
        size = len(quote(f",`{text}`"))
        if some and length + size > QUERY_LENGTH:
            yield _by_ids(some)
            some, length = [], 0
        some.append(text)
        length += size
    if some:
        yield _by_ids(some)
