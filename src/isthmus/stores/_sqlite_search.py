"""Which way a search of a SQLite collection goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import apsw
import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IntArray
from isthmus.neighbors import Exact, Hnsw
from isthmus.stores._answers import no_rows
from isthmus.stores._exact import search_blocks
from isthmus.stores._resident import Resident
from isthmus.stores._sidecar import load_index, save_index, sidecar_path
from isthmus.stores._sqlite_collection import Collection
from isthmus.stores._sqlite_exact import DISTANCES, search_nearest
from isthmus.stores._sqlite_file import SqliteFile

__all__ = ["IndexKind", "Searcher"]

IndexKind = Literal["flat", "hnsw"]

READ_ROWS = 16_384
# Fewer rows are read from the store as fast as from a file beside it.
KEEP_ROWS = 5_000
# A scan of the file costs about a third of loading it, so that a few are cheaper.
SCAN_QUERIES = 4
SCANS_BEFORE_LOADING = 8
# Outside these lengths float32 squares, which sqlite-vec sums, lose their digits.
SCAN_LENGTHS = (1e-9, 1e9)


@dataclass(frozen=True)
class Hits:
    """Rows of ``ids``, and their scores, both of shape (m, at most k)."""

    rows: IntArray
    scores: FloatArray
    ids: npt.NDArray[np.object_]


class Searcher:
    """Searches one collection, and keeps its rows in memory while they are those of the file.

    Parameters
    ----------
    collection : Collection
    index : {"flat", "hnsw"}
    """

    def __init__(self, collection: Collection, index: IndexKind) -> None:
        self.collection = collection
        self.index = index
        self.not_kept = ""  # why the index could not be kept beside the file
        self._resident: Resident | None = None
        self._built = False  # whether what is in memory was made anew, and not offered to be kept
        self._verified = -1  # the change counter under which every row was checked
        self._scanned = (0, 0)  # a change counter, and how many queries were scanned under it

    def forget(self) -> None:
        """Let go of the rows in memory."""
        self._resident = None

    def describe(self) -> dict[str, Any]:
        """Return the kind of index, whether rows are in memory, and the file beside the store."""
        path = sidecar_path(self.collection, self.index)
        return {
            "kind": self.index,
            "in_memory": self._resident is not None,
            "file": str(path) if path.exists() else None,
            "not_kept": self.not_kept or None,
        }

    def fresh(self, connection: apsw.Connection) -> Resident | None:
        """Return the rows in memory, if they are those of the file."""
        resident = self._resident
        change = self.collection.change(connection)
        return resident if resident is not None and resident.change == change else None

    def search(
        self, file: SqliteFile, queries: FloatArray, *, k: int, where: Mapping[str, Any]
    ) -> Hits:
        """Search by the cheapest way; all of them but HNSW give the same answer."""
        with file.reading() as connection:
            resident = self.fresh(connection)
            if resident is None and self._may_scan(connection, len(queries)):
                hits = self._scan(connection, queries, k, where)
                if hits is not None:
                    return hits
            if where:
                return self._search_matching(connection, queries, k, where, resident)
            if resident is None:
                resident = self._load(connection) or self._build(connection)
        if resident is None:
            return Hits(*no_rows(len(queries), k), np.empty(0, object))
        self._keep(file, resident)
        found = resident.index.search(queries, k=k)
        return Hits(found.rows, found.scores, resident.ids)

    def _may_scan(self, connection: apsw.Connection, n_queries: int) -> bool:
        """Whether to scan the file for these queries; counts them if so."""
        if self.index != "flat" or self.collection.space.metric not in DISTANCES:
            return False
        change = self.collection.change(connection)
        scanned = n_queries + (self._scanned[1] if self._scanned[0] == change else 0)
        shortest, longest = self.collection.lengths(connection)
        safe = shortest >= SCAN_LENGTHS[0] and longest <= SCAN_LENGTHS[1]
        if n_queries > SCAN_QUERIES or scanned > SCANS_BEFORE_LOADING or not safe:
            return False
        self._scanned = (change, scanned)
        return True

    def _verify(self, connection: apsw.Connection) -> None:
        """Check every row once per change counter: SQL reads rows that never come back checked.

        A damaged vector would not be found, and damaged metadata would not match.
        """
        change = self.collection.change(connection)
        if self._verified != change:
            self.collection.rows.verify(connection)
            self._verified = change

    def _scan(
        self, connection: apsw.Connection, queries: FloatArray, k: int, where: Mapping[str, Any]
    ) -> Hits | None:
        self._verify(connection)
        numbers, scores = no_rows(len(queries), k)
        for row in range(len(queries)):
            found = search_nearest(
                connection,
                self.collection.rows,
                queries[row : row + 1],
                k=k,
                metric=self.collection.space.metric,
                where=where,
            )
            if found is None:
                return None
            width = found[0].shape[1]
            numbers[row, :width], scores[row, :width] = found[0][0], found[1][0]
        return self._hits(connection, numbers, scores)

    def _search_matching(
        self,
        connection: apsw.Connection,
        queries: FloatArray,
        k: int,
        where: Mapping[str, Any],
        resident: Resident | None,
    ) -> Hits:
        self._verify(connection)
        numbers = self.collection.rows.matching(connection, where)
        blocks = self._read(connection, numbers) if resident is None else resident.blocks(numbers)
        metric = self.collection.space.metric
        return self._hits(connection, *search_blocks(queries, blocks, k=k, metric=metric))

    def _read(
        self, connection: apsw.Connection, numbers: IntArray
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        for start in range(0, len(numbers), READ_ROWS):
            some = numbers[start : start + READ_ROWS]
            block = self.collection.rows.by_number(connection, some)
            yield block.numbers, block.vectors

    def _hits(self, connection: apsw.Connection, numbers: IntArray, scores: FloatArray) -> Hits:
        """Name rows by their numbers in the file."""
        wanted = np.unique(numbers[numbers >= 0])
        rows = np.where(numbers >= 0, np.searchsorted(wanted, numbers), -1)
        return Hits(rows, scores, self.collection.rows.names(connection, wanted))

    def _load(self, connection: apsw.Connection) -> Resident | None:
        """Take the index that is kept beside the file, if it is that of this state."""
        index = load_index(connection, self.collection, self.index)
        if index is None:
            return None
        numbers, ids = self.collection.rows.all_names(connection)
        if len(numbers) != len(index):
            return None
        self._resident = Resident(self.collection.change(connection), numbers, ids, index)
        self._built, self.not_kept = False, ""
        return self._resident

    def _build(self, connection: apsw.Connection) -> Resident | None:
        """Make the index from the file; None of an empty collection."""
        rows, space = self.collection.rows, self.collection.space
        numbers, ids = rows.all_names(connection)
        if not len(numbers):
            return None
        vectors = np.empty((len(numbers), space.dim), np.float32)
        start = 0
        for block in rows.blocks(connection, rows=READ_ROWS):
            vectors[start : start + len(block.ids)] = block.vectors
            start += len(block.ids)
        make = Hnsw if self.index == "hnsw" else Exact
        index = make(vectors, metric=space.metric)
        self._resident = Resident(self.collection.change(connection), numbers, ids, index)
        self._built, self._verified = True, self._resident.change
        return self._resident

    def _keep(self, file: SqliteFile, resident: Resident) -> None:
        """Write what was built beside the store, once; outside the transaction that read it."""
        if not self._built:
            return
        self._built, self.not_kept = False, ""
        if self.index == "hnsw" or len(resident.numbers) >= KEEP_ROWS:
            self.not_kept = save_index(file, self.collection, self.index, resident)
