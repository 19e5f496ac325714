"""The rows of an index file in memory, and how they are written down beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from isthmus._types import FloatArray, IntArray, Metric
from isthmus.errors import CorruptStoreError
from isthmus.spaces.ids import as_ids, check_unique
from isthmus.stores._connected import Rows

__all__ = ["FORMAT", "IndexRows", "Sidecar", "dump_ids"]

FORMAT = "isthmus-index-1"


@dataclass(frozen=True)
class IndexRows:
    """One state of a collection.

    Parameters
    ----------
    ids : list of str
    vectors : FloatArray of shape (n, dim)
    metadata : list of dict or None
    numbers : IntArray of shape (n,)
        Rising; a row keeps its number, and none is used twice.
    last : int
        The highest number that was ever used.
    entries : mapping of str to str
        The record; see `isthmus.stores._record.Record`.
    own : bool
        Whether Isthmus made the index; if not, its rows are only read.
    metrics : tuple of Metric
        That the index was made for.
    """

    ids: list[str]
    vectors: FloatArray
    metadata: list[dict[str, Any] | None]
    numbers: IntArray
    last: int
    entries: Mapping[str, str]
    own: bool
    metrics: tuple[Metric, ...]

    @classmethod
    def of_others(
        cls,
        ids: Any,
        vectors: FloatArray,
        entries: Mapping[str, str],
        metrics: tuple[Metric, ...],
    ) -> IndexRows:
        """Return the rows of an index that another program made.

        Raises
        ------
        InputError
            Ids that are empty, or not all different.
        """
        checked = as_ids(ids)
        check_unique(checked)
        rows = len(checked)
        numbers = np.arange(1, rows + 1)
        nothing: list[dict[str, Any] | None] = [None] * rows
        wide = np.asarray(vectors, np.float32)
        return cls(
            ids=checked.tolist(),
            vectors=wide,
            metadata=nothing,
            numbers=numbers,
            last=rows,
            entries=entries,
            own=False,
            metrics=metrics,
        )

    @cached_property
    def places(self) -> dict[str, int]:
        """The row of each id."""
        return {text: row for row, text in enumerate(self.ids)}

    def with_rows(self, rows: Rows) -> tuple[IndexRows, IntArray]:
        """Return the state after an upsert, and the places of the rows that were written."""
        metadata: list[dict[str, Any] | None] = [
            None if text is None else json.loads(text) for text in rows.metadata
        ]
        fresh = [text for text in rows.ids if text not in self.places]
        places = self.places | {text: len(self) + new for new, text in enumerate(fresh)}
        written = np.array([places[text] for text in rows.ids], np.int64)
        vectors = np.empty((len(self) + len(fresh), rows.vectors.shape[1]), np.float32)
        vectors[: len(self)] = self.vectors
        vectors[written] = rows.vectors
        fields = self.metadata + [None] * len(fresh)
        for place, one in zip(written.tolist(), metadata, strict=True):
            fields[place] = one
        last = self.last + len(fresh)
        numbers = np.concatenate([self.numbers, np.arange(self.last + 1, last + 1)])
        changed = replace(
            self,
            ids=self.ids + fresh,
            vectors=vectors,
            metadata=fields,
            numbers=numbers,
            last=last,
        )
        return changed, written

    def without(self, ids: Sequence[str]) -> IndexRows:
        """Return the state after a delete."""
        gone = {self.places[text] for text in ids if text in self.places}
        kept = np.array([row for row in range(len(self)) if row not in gone], np.int64)
        return replace(
            self,
            ids=[self.ids[row] for row in kept.tolist()],
            vectors=self.vectors[kept],
            metadata=[self.metadata[row] for row in kept.tolist()],
            numbers=self.numbers[kept],
        )

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.ids)

    def take(self, places: IntArray, *, vectors: bool) -> Rows:
        """Return some rows."""
        fields = [self.metadata[place] for place in places.tolist()]
        width = self.vectors.shape[1] if vectors else 0
        return Rows(
            [self.ids[place] for place in places.tolist()],
            self.vectors[places] if vectors else np.empty((len(places), width), np.float32),
            [None if one is None else json.dumps(one, ensure_ascii=False) for one in fields],
        )


@dataclass(frozen=True)
class Sidecar:
    """What stands beside an index, apart from its ids.

    Parameters
    ----------
    collection : str
    index_hash : str
        SHA-256 of the index.
    ids_hash : str or None
        Of the file of ids; None where another program made both.
    entries : dict of str to str
    numbers : list of int or None
        None: from 1 on.
    last : int
    metadata : list of dict or None, or None
        None: no row has any.
    """

    collection: str
    index_hash: str
    ids_hash: str | None
    entries: dict[str, str]
    numbers: list[int] | None = None
    last: int = 0
    metadata: list[dict[str, Any] | None] | None = None

    def dump(self) -> bytes:
        """Return it as JSON."""
        return json.dumps({"format": FORMAT, **vars(self)}, ensure_ascii=False).encode()

    @classmethod
    def of(cls, rows: IndexRows, collection: str, hashes: tuple[str, str | None]) -> Sidecar:
        """Return what is written down of a state."""
        entries = dict(rows.entries)
        if not rows.own:
            return cls(collection, *hashes, entries)
        plain = np.array_equal(rows.numbers, np.arange(1, len(rows) + 1))
        return cls(
            collection,
            *hashes,
            entries,
            None if plain else rows.numbers.tolist(),
            rows.last,
            rows.metadata if any(rows.metadata) else None,
        )

    @classmethod
    def load(cls, content: bytes, name: str) -> Sidecar:
        """Read it.

        Raises
        ------
        CorruptStoreError
        """
        try:
            values = json.loads(content)
            written = values.pop("format")
            found = cls(**values)
            found._check(written)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise _torn(name, str(error)[:200]) from error
        return found

    def _check(self, written: str) -> None:
        if written != FORMAT:
            raise ValueError(f"the format {written!r}")
        entries = self.entries
        if not all(isinstance(one, str) for pair in entries.items() for one in pair):
            raise ValueError("entries that are not text")
        if not all(one is None or isinstance(one, dict) for one in self.metadata or ()):
            raise ValueError("metadata that are no objects")
        numbers = np.array(self.numbers or [], np.int64)
        if (np.diff(numbers) <= 0).any() or (len(numbers) and numbers[-1] > self.last):
            raise ValueError("row numbers that do not rise")

    def rows(
        self, ids: list[str], vectors: FloatArray, metrics: tuple[Metric, ...], name: str
    ) -> IndexRows:
        """Return the state of an index that Isthmus made."""
        numbers = np.arange(1, len(ids) + 1) if self.numbers is None else np.array(self.numbers)
        nothing: list[dict[str, Any] | None] = [None] * len(ids)
        metadata = nothing if self.metadata is None else self.metadata
        lengths = {len(ids), len(vectors), len(numbers), len(metadata)}
        if len(lengths) > 1:
            raise _torn(name, f"{sorted(lengths)} rows")
        return IndexRows(
            ids=ids,
            vectors=vectors,
            metadata=metadata,
            numbers=numbers,
            last=self.last,
            entries=self.entries,
            own=True,
            metrics=metrics,
        )


def _torn(name: str, got: str) -> CorruptStoreError:
    return CorruptStoreError(
        expected=f"what Isthmus wrote in {name!r}",
        got=got,
        do="restore the index and the files beside it from one copy",
    )


def dump_ids(ids: list[str]) -> bytes:
    """Return ids as a JSON list."""
    return json.dumps(ids, ensure_ascii=False).encode()
