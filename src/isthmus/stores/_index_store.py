"""What stores share that are one index file, with its ids and metadata beside it.

Everything is in memory; every change writes the files anew, all of them or none.
"""

from __future__ import annotations

import errno
import json
import os
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from isthmus._types import FloatArray, IntArray, Metric
from isthmus.errors import (
    AccessDeniedError,
    CorruptFileError,
    CorruptStoreError,
    IsthmusError,
    MissingCollectionError,
    MissingFileError,
    NotAStoreError,
    ReadOnlyStoreError,
    StoreError,
    StoreFullError,
)
from isthmus.neighbors import Exact
from isthmus.spaces import Space
from isthmus.stores._checks import as_number, matches
from isthmus.stores._connected import ConnectedStore, Hits, Page, Rows
from isthmus.stores._file_set import FileSet, hash_of
from isthmus.stores._index_rows import IndexRows, Sidecar, dump_ids
from isthmus.stores._lock import locked
from isthmus.stores._native import NATIVE_SCORES
from isthmus.stores._record import Record
from isthmus.stores._url import StoreUrl

__all__ = ["Change", "IndexStore", "theirs"]

ALL_AT_ONCE = 2**62
FULL = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}
FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


class _TornError(Exception):
    """Files that do not belong together, for a moment or for good."""


@dataclass(frozen=True)
class Change:
    """From one state to the next.

    Parameters
    ----------
    before, after : IndexRows
    written : IntArray
        Places, in ``after``, of the rows that are new or replaced.
    removed : IntArray
        Numbers of the rows that are gone.
    """

    before: IndexRows
    after: IndexRows
    written: IntArray
    removed: IntArray


class IndexStore(ConnectedStore):
    """A collection that is an index file.

    Parameters
    ----------
    url : StoreUrl
    """

    def __init__(self, url: StoreUrl) -> None:
        super().__init__(url)
        index = Path(os.path.realpath(url.file()))  # a link stays, and leads to the new file
        self._index = index
        self._files = FileSet([index, beside(index, ".ids.json"), beside(index, ".isthmus.json")])
        self._state: tuple[Any, ...] = ()
        self._rows: IndexRows
        self._searched: tuple[IndexRows, IntArray, Exact] | None = None
        self._wanted: Metric | None = None

    # --- what an index of one library is ------------------------------------------------------

    @abstractmethod
    def _read_theirs(self, path: Path) -> IndexRows:
        """Read an index that another program made, and trust nothing in it."""

    @abstractmethod
    def _read_own(self, content: bytes, numbers: IntArray, path: Path) -> FloatArray:
        """Return the vectors of an index that is as Isthmus wrote it, in the order of numbers."""

    @abstractmethod
    def _dump(self, change: Change, space: Space) -> bytes | memoryview:
        """Return the index after a change."""

    # --- the files ----------------------------------------------------------------------------

    def _disconnect(self) -> None:
        self._state, self._searched = (), None

    @property
    def _batch_rows(self) -> int:
        return ALL_AT_ONCE

    def _exists(self) -> bool:
        if not self._files.now(self._index).exists():
            if self._files.now(self._files.paths[-1]).exists():
                raise CorruptStoreError(
                    expected=f"an index at {str(self._index)!r}",
                    got="only what stood beside it",
                    do="restore the index from a copy, or remove the files beside it",
                )
            return False
        self._refresh()
        return True

    def _refresh(self) -> IndexRows:
        """Read the files, if anybody changed them."""
        state = self._files.state()
        if state != self._state:
            self._rows = self._load()
            self._state, self._searched = state, None
        return self._rows

    def _load(self) -> IndexRows:
        index, ids, last = (self._files.now(path) for path in self._files.paths)
        if not last.exists():
            return self._read_theirs(index)
        sidecar = Sidecar.load(last.read_bytes(), last.name)
        if sidecar.collection != self._url.collection:
            raise MissingCollectionError(
                expected=f"the collection {self._url.collection!r} in {str(self._index)!r}",
                got=f"{sidecar.collection!r}: an index file is one collection",
                do="correct the URL, or give the new collection a file of its own",
            )
        content = index.read_bytes()
        if hash_of(content) != sidecar.index_hash:
            raise _TornError
        if sidecar.ids_hash is None:
            return replace(self._read_theirs(index), entries=sidecar.entries)
        listed = ids.read_bytes() if ids.exists() else b""
        if hash_of(listed) != sidecar.ids_hash:
            raise _TornError
        names = json.loads(listed)
        numbers = sidecar.numbers or range(1, len(names) + 1)
        metrics = tuple(self.capabilities.metrics)
        vectors = self._read_own(content, np.array(numbers, np.int64), index)
        return sidecar.rows(names, vectors, metrics, index.name)

    def _change(self, make: Callable[[IndexRows], Change]) -> None:
        """Write what a change makes of the newest state."""
        with locked(beside(self._index, ".lock"), seconds=self.timeout):
            change = make(self._refresh())
            self._commit(change)

    def _commit(self, change: Change, space: Space | None = None) -> None:
        rows, same = change.after, change.after.vectors is change.before.vectors
        try:
            if rows.own and not same:
                content = self._dump(change, space or self.space)
                ids = dump_ids(rows.ids)
                hashes = hash_of(content), hash_of(ids)
                sidecar = Sidecar.of(rows, self._url.collection, hashes)
                self._files.replace([content, ids, sidecar.dump()])
            else:
                hashes_now = self._hashes(rows)
                sidecar = Sidecar.of(rows, self._url.collection, hashes_now)
                self._files.replace([None, None, sidecar.dump()])
        except BaseException:
            self._disconnect()  # what is in memory may be ahead of the files
            raise
        self._rows, self._state, self._searched = rows, self._files.state(), None

    def _hashes(self, rows: IndexRows) -> tuple[str, str | None]:
        index, ids, _ = (self._files.now(path) for path in self._files.paths)
        own = hash_of(ids.read_bytes()) if rows.own else None
        return hash_of(index.read_bytes()), own

    # --- the contract's requests --------------------------------------------------------------

    def _settle(self, space: Space | None) -> None:
        self._wanted = None if space is None else space.metric
        super()._settle(space)

    def _create(self, space: Space) -> None:
        empty = IndexRows(
            ids=[],
            vectors=np.empty((0, space.dim), np.float32),
            metadata=[],
            numbers=np.empty(0, np.int64),
            last=0,
            entries=Record({}).with_space(space, own=True).entries,
            own=True,
            metrics=tuple(self.capabilities.metrics),
        )
        with locked(beside(self._index, ".lock"), seconds=self.timeout):
            if not self._exists():
                new = replace(empty, vectors=empty.vectors.copy())
                nothing = np.empty(0, np.int64)
                self._commit(Change(empty, new, nothing, nothing), space)

    def _describe(self) -> tuple[int, Metric | None]:
        metrics = self._rows.metrics
        metric = self._wanted if self._wanted in metrics else metrics[0]
        return self._rows.vectors.shape[1], metric

    def _read_record(self) -> dict[str, str]:
        return dict(self._refresh().entries)

    def _write_record(self, entries: dict[str, str]) -> None:
        with locked(beside(self._index, ".lock"), seconds=self.timeout):
            rows = self._refresh()
            if entries != rows.entries:
                nothing = np.empty(0, np.int64)
                new = replace(rows, entries=entries)
                self._commit(Change(rows, new, nothing, nothing))

    def _count(self) -> int:
        return len(self._refresh())

    def _write(self, rows: Rows) -> None:
        self._write_whole(rows, {})

    def _write_noted(self, rows: Rows, notes: dict[str, str]) -> None:
        self._ask(self._write_whole, rows, notes)

    def _write_whole(self, rows: Rows, notes: dict[str, str]) -> None:
        def change(before: IndexRows) -> Change:
            self._check_own(before)
            after, written = before.with_rows(rows)
            if notes:
                entries = Record(before.entries).with_notes(notes).entries
                after = replace(after, entries=dict(entries))
            return Change(before, after, written, np.empty(0, np.int64))

        self._change(change)

    def _remove(self, ids: list[str]) -> None:
        def change(before: IndexRows) -> Change:
            self._check_own(before)
            after = before.without(ids)
            removed = np.setdiff1d(before.numbers, after.numbers)
            return Change(before, after, np.empty(0, np.int64), removed)

        self._change(change)

    def _check_own(self, rows: IndexRows) -> None:
        if not rows.own:
            raise ReadOnlyStoreError(
                expected=f"an index that Isthmus made at {str(self._index)!r}",
                got="one of another program, whose rows are only read",
                do="copy it into a collection of its own: isthmus integrate or convert",
            )

    def _read(self, ids: list[str], *, vectors: bool) -> Rows:
        rows = self._refresh()
        places = [rows.places[text] for text in ids if text in rows.places]
        return rows.take(np.array(places, np.int64), vectors=vectors)

    def _page(self, after: str, limit: int) -> Page:
        rows = self._refresh()
        start = int(np.searchsorted(rows.numbers, as_number(after), side="right"))
        places = np.arange(start, min(start + limit, len(rows)))
        if not len(places):
            return Page(rows.take(places, vectors=True), after)
        return Page(rows.take(places, vectors=True), str(rows.numbers[places[-1]]))

    def _find(self, queries: FloatArray, *, k: int, where: Mapping[str, Any]) -> Hits:
        rows = self._refresh()
        places, index = self._searcher(rows)
        if where:
            fits = [matches(rows.metadata[place] or {}, where) for place in places.tolist()]
            places = places[np.array(fits, bool)]
            index = None
        if not len(places):
            return [[] for _ in queries]
        if index is None:
            index = Exact(rows.vectors[places], metric=self.space.metric, keep=False)
        found = index.search(queries, k=min(k, len(places)))
        name = self.capabilities.native_scores[self.space.metric]
        native = NATIVE_SCORES[name].native(found.scores.astype(np.float64))
        return [
            [
                (rows.ids[places[row]], score)
                for row, score in zip(near, scores, strict=True)
                if row >= 0
            ]
            for near, scores in zip(found.rows.tolist(), native.tolist(), strict=True)
        ]

    def _searcher(self, rows: IndexRows) -> tuple[IntArray, Exact | None]:
        """Return the places of the rows that have a similarity, and an index of them."""
        if self._searched is None or self._searched[0] is not rows:
            usable = np.isfinite(rows.vectors).all(axis=1)
            if self.space.metric == "cosine":
                usable &= rows.vectors.any(axis=1)
            places = np.flatnonzero(usable)
            if not len(places):
                return places, None
            vectors = rows.vectors if len(places) == len(rows) else rows.vectors[places]
            self._searched = rows, places, Exact(vectors, metric=self.space.metric)
        return self._searched[1], self._searched[2]

    # --- errors -------------------------------------------------------------------------------

    def _is_transient(self, error: Exception) -> bool:
        return isinstance(error, _TornError | FileNotFoundError) and self._index.parent.is_dir()

    def _in_our_words(self, error: Exception) -> IsthmusError:
        where = repr(str(self._index))
        if isinstance(error, _TornError):
            return CorruptStoreError(
                expected=f"the index at {where} as it was when the files beside it were written",
                got="another one, or other ids",
                do="restore all of them from one copy; if the index is new, remove what stands "
                "beside it and record its space again",
            )
        if isinstance(error, OSError):
            return self._of_system(error, where)
        return StoreError(
            expected=f"to work on the index at {where}",
            got=f"{type(error).__name__}: {str(error)[:300]}",
            do="report it as a bug of Isthmus, with the call that led to it",
        )

    def _of_system(self, error: OSError, where: str) -> IsthmusError:
        got = error.strerror or str(error)
        if error.errno in FULL:
            return StoreFullError(
                expected=f"room to write to {where}",
                got=f"a disk that is full or refuses ({got})",
                do="free space and repeat the call; nothing of it was kept",
            )
        if error.errno in FORBIDDEN:
            if self._index.exists() and not os.access(self._index, os.R_OK):
                return AccessDeniedError(
                    expected=f"an index that may be read at {where}", got=got, do="ask its owner"
                )
            return ReadOnlyStoreError(
                expected=f"a folder that may be written for {where}",
                got=f"one that may not ({got})",
                do="change the permissions of the folder and of the files, or copy them",
            )
        if error.errno == errno.EISDIR:
            return NotAStoreError(expected=f"an index at {where}", got=got, do="check the path")
        return MissingFileError(
            expected=f"files that can be opened at {where}", got=got, do="check the path"
        )


def beside(index: Path, ending: str) -> Path:
    """Return the path of a file beside an index."""
    return index.with_name(index.name + ending)


def theirs(error: CorruptFileError, path: Path) -> StoreError:
    """Say of a file of another program that it is none of an index, or damaged."""
    kind = NotAStoreError if "the mark" in error.got else CorruptStoreError
    return kind(expected=f"an index at {str(path)!r}: {error.expected}", got=error.got, do=error.do)
