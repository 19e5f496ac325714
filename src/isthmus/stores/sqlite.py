"""The embedded store: many collections in one SQLite file, with an index kept beside it.

The file is the truth; see docs/stores.md for its tables. Searches are exact unless ``index=hnsw``
is asked for, and go one of three ways, which give the same answer:

- a few queries are scanned by sqlite-vec, with nothing kept in memory;
- many filtered queries read the rows that match in blocks;
- everything else loads the rows into memory once, where they stay until the change counter of the
  collection moves, whoever moved it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, Self, get_args

import apsw
import numpy as np

from isthmus._types import FloatArray, IdArray, IntArray
from isthmus._validate import check_positive
from isthmus.errors import UnknownIdError, UnknownNameError
from isthmus.spaces import Space, VectorSet
from isthmus.spaces.ids import as_ids, name_few
from isthmus.stores._answers import answers
from isthmus.stores._checks import (
    as_number,
    as_queries,
    as_texts,
    check_notes,
    check_where,
    to_json,
)
from isthmus.stores._native import to_native
from isthmus.stores._sqlite_collection import Collection
from isthmus.stores._sqlite_file import SqliteFile
from isthmus.stores._sqlite_rows import Block
from isthmus.stores._sqlite_search import IndexKind, Searcher
from isthmus.stores._url import StoreUrl, as_seconds
from isthmus.stores.base import Batch, Capabilities, Found, Gathered, Held, Store

__all__ = ["SqliteStore"]

TIMEOUT_SECONDS = 5.0
INDEXES: Mapping[str, IndexKind] = MappingProxyType({"exact": "flat", "hnsw": "hnsw"})
WRITE_ROWS = 10_000


class SqliteStore(Store):
    """A collection in a SQLite file. Made by `open`.

    Parameters
    ----------
    file : SqliteFile
    collection : Collection
    url : StoreUrl
    index : {"flat", "hnsw"}

    Examples
    --------
    >>> import tempfile
    >>> space = Space(model="m", dim=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     url = f"sqlite:///{folder}/one.db?collection=docs"
    ...     with SqliteStore.open(url, space=space) as store:
    ...         store.upsert(VectorSet(["a", "b"], [[1, 0], [0, 2]], space))
    ...         found = store.search([[0, 1]], k=1)
    >>> found.ids.tolist(), found.scores.tolist()
    ([['b']], [[1.0]])
    """

    scheme: ClassVar[str] = "sqlite"
    capabilities: Capabilities = Capabilities(
        native_scores=MappingProxyType({"cosine": "1 - cosine", "dot": "dot", "l2": "l2"}),
        stores_raw=True,
        exact_search=True,
        filters=True,
        scan=True,
        notes="with a batch",
        switch="rename",
        persistent=True,
        concurrency="one writer, many readers",
        max_batch=None,
    )

    def __init__(
        self, file: SqliteFile, collection: Collection, *, url: StoreUrl, index: IndexKind
    ) -> None:
        self._file = file
        self._collection = collection
        self._url = url
        self._rows = collection.rows
        self._searcher = Searcher(collection, index)
        if index == "hnsw":
            self.capabilities = replace(self.capabilities, exact_search=False)

    @classmethod
    def open(cls, url: str, *, space: Space | None = None, index: IndexKind | None = None) -> Self:
        """Open a collection; see `Store.open`.

        Parameters
        ----------
        url : str
            ``sqlite:///file.db?collection=NAME``, then ``&index=hnsw`` and ``&timeout=SECONDS``
            (to wait for another writer, 5 by default).
        space : Space, optional
        index : {"flat", "hnsw"}, optional
            Instead of the URL's; flat (exact) by default.

        Raises
        ------
        MissingFileError, MissingCollectionError, SpaceMismatchError
        NotAStoreError, StoreVersionError, CorruptStoreError
        """
        parsed = StoreUrl.parse(url, options=("index", "timeout"))
        kind = index or INDEXES[parsed.choice("index", tuple(INDEXES))]
        if kind not in get_args(IndexKind):
            raise UnknownNameError.of("index", kind, get_args(IndexKind))
        options = {name: text for name, text in parsed.options.items() if name != "index"}
        if kind != "flat":
            options["index"] = kind
        timeout = as_seconds(options.get("timeout", str(TIMEOUT_SECONDS)))
        file = SqliteFile(parsed.file(), create=space is not None, timeout=timeout)
        try:
            collection = Collection.find(file, parsed.collection, space)
        except BaseException:
            file.close()
            raise
        full = StoreUrl(cls.scheme, "", str(file.path), parsed.collection, options)
        return cls(file, collection, url=full, index=kind)

    @property
    def space(self) -> Space:
        """The space that is recorded in the file."""
        return self._collection.space

    @property
    def url(self) -> str:
        """The URL that opens this collection again, with an absolute path."""
        return str(self._url)

    def count(self) -> int:
        """Count the vectors."""
        with self._file.reading() as connection:
            return self._rows.count(connection)

    def upsert(
        self,
        vectors: VectorSet,
        *,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        """Write rows and notes in one transaction; see `Store.upsert`.

        Raises
        ------
        StoreBusyError, ReadOnlyStoreError, StoreFullError
        """
        self.space.check(vectors.space)
        texts = to_json(metadata, rows=len(vectors))
        checked = check_notes(notes)
        with self._file.writing() as connection:
            start = 0
            for batch in vectors.iter_batches(WRITE_ROWS):
                stop = start + len(batch)
                self._rows.write(connection, batch.ids.tolist(), batch.vectors, texts[start:stop])
                self._collection.widen(connection, batch.vectors)
                start = stop
            self._collection.write_notes(connection, checked)
            self._collection.count_change(connection)

    def notes(self) -> dict[str, str]:
        """Return the notes; see `Store.notes`."""
        with self._file.reading() as connection:
            return self._collection.notes(connection)

    def write_notes(self, notes: Mapping[str, str]) -> None:
        """Keep notes without rows; see `Store.write_notes`."""
        checked = check_notes(notes)
        with self._file.writing() as connection:
            self._collection.write_notes(connection, checked)

    def delete(self, ids: Sequence[str]) -> int:
        """Remove rows by id; return how many were there."""
        texts = as_texts(ids)
        with self._file.writing() as connection:
            removed = self._rows.delete(connection, texts)
            if removed:
                self._collection.count_change(connection)
        return removed

    def fetch(self, ids: Sequence[str]) -> VectorSet:
        """Return rows by id; see `Store.fetch`."""
        texts = as_texts(ids)
        with self._file.reading() as connection:
            resident = self._searcher.fresh(connection)
            if resident is None:
                block = self._read(connection, texts)
                return VectorSet(np.array(block.ids, np.str_), block.vectors, self.space)
        places = resident.find(np.array(texts, np.str_))
        self._refuse_unknown(np.array(texts, np.str_), places)
        return VectorSet(np.array(texts, np.str_), resident.vectors[places], self.space)

    def fetch_metadata(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        """Return metadata by id; see `Store.fetch_metadata`."""
        with self._file.reading() as connection:
            return [_fields(text) for text in self._read(connection, as_texts(ids)).metadata]

    def held(self, ids: Sequence[str]) -> Held:
        """Return the rows that are there; see `Store.held`."""
        with self._file.reading() as connection:
            block = self._rows.by_id(connection, list(ids))
        return Held(block.ids, block.vectors, [_fields(text) for text in block.metadata])

    def gather(self, ids: IdArray) -> Gathered:
        """Return rows by id where ids repeat, from memory when they are there."""
        with self._file.reading() as connection:
            resident = self._searcher.fresh(connection)
        if resident is None:
            return super().gather(ids)
        asked = np.asarray(ids, np.str_)
        flat = asked.ravel()
        places = resident.find(flat)
        self._refuse_unknown(flat[flat != ""], places[flat != ""])
        unique, inverse = np.unique(places, return_inverse=True)
        rows = inverse.reshape(asked.shape).astype(np.int64)
        if unique.size and unique[0] < 0:
            unique, rows = unique[1:], rows - 1
        if not unique.size:
            return Gathered(vectors=None, rows=rows)
        names = resident.ids[unique].astype(np.str_)
        return Gathered(VectorSet(names, resident.vectors[unique], self.space), rows)

    def search(
        self, queries: FloatArray | VectorSet, *, k: int, where: Mapping[str, Any] | None = None
    ) -> Found:
        """Return the k best rows for each query; see `Store.search`."""
        matrix = as_queries(queries, self.space, k=k)
        asked = check_where(where)
        found = self._searcher.search(self._file, matrix, k=k, where=asked)
        name = self.capabilities.native_scores[self.space.metric]
        return answers(
            found.rows,
            found.scores,
            ids=found.ids,
            native=lambda scores: to_native(scores, name),
        )

    def scan(self, *, batch_size: int = 10_000, cursor: str = "") -> Iterator[Batch]:
        """Yield all rows in order of insertion; see `Store.scan`.

        Each batch is read when it is asked for: rows that are written meanwhile come at the end.
        """
        check_positive(batch_size, name="batch_size")
        after = as_number(cursor)
        while True:
            with self._file.reading() as connection:
                block = self._rows.after(connection, after, limit=batch_size)
            if not block.ids:
                return
            after = int(block.numbers[-1])
            vectors = VectorSet(np.array(block.ids, np.str_), block.vectors, self.space)
            yield Batch(vectors, str(after), tuple(_fields(text) for text in block.metadata))

    def take_name(self, name: str, *, former: str = "") -> str:
        """Take a name in one transaction; see `Store.take_name`.

        Raises
        ------
        ParameterError
            ``former`` is taken.
        """
        with self._file.writing() as connection:
            before, self._collection = self._collection.renamed(connection, name, former)
        self._url = replace(self._url, collection=name)
        return before

    def info(self) -> dict[str, Any]:
        """Return what `Store.info` does, and the index."""
        return {**super().info(), "index": self._searcher.describe()}

    def close(self) -> None:
        """Let go of the file and the memory."""
        self._searcher.forget()
        self._file.close()

    def _read(self, connection: apsw.Connection, texts: list[str]) -> Block:
        block = self._rows.by_id(connection, texts)
        if len(block.ids) < len(texts):
            known = set(block.ids)
            places = np.array([0 if text in known else -1 for text in texts])
            self._refuse_unknown(np.array(texts, np.str_), places)
        return block

    def _refuse_unknown(self, ids: IdArray, places: IntArray) -> None:
        if (places < 0).any():
            unknown = as_ids(ids[places < 0])
            raise UnknownIdError(
                expected=f"ids of {self.url}",
                got=f"{len(unknown):,} of {len(ids):,} that it does not have: {name_few(unknown)}",
                do="check that both come from the same collection",
            )


def _fields(text: str | None) -> dict[str, Any]:
    return {} if text is None else dict(json.loads(text))
