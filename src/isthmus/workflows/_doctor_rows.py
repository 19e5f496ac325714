"""The rows of a collection, read once in batches: all of them counted, some of them kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isthmus._progress import Track, silent
from isthmus._types import FloatArray
from isthmus.errors import EmptyInputError, InputError
from isthmus.evaluate.row_marks import RowMarks, mark_rows
from isthmus.spaces import Space, VectorSet
from isthmus.spaces._mapped import release
from isthmus.spaces.io import format_of
from isthmus.spaces.io.registry import load_stored, read_raw
from isthmus.stores import Store, open_store
from isthmus.stores.reading import is_store_url

__all__ = ["Collection", "OtherLength", "Part", "Survey", "opened", "survey"]

BATCH_ROWS = 10_000
NAMED = 10
"""Ids of bad rows that are kept, to be named."""


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows, as they lie there.

    Parameters
    ----------
    ids : array of shape (n,)
    vectors : FloatArray of shape (n, dim)
    others : sequence of (str, float)
        Id and length of rows of which no matrix can be made.
    """

    ids: npt.NDArray[Any]
    vectors: FloatArray
    others: Sequence[tuple[str, float]] = ()


@dataclass(frozen=True)
class Collection:
    """Where rows come from: a store, a set, or a file. Only a set is free of bad rows.

    Parameters
    ----------
    source : Store, VectorSet, or (ids, matrix)
    space : Space or None
        None where none is recorded.
    count, dim : int
    """

    source: Any
    space: Space | None
    count: int
    dim: int

    def batches(self) -> Iterator[Part]:
        """Yield all rows."""
        if isinstance(self.source, Store):
            for batch in self.source.scan_unchecked(batch_size=BATCH_ROWS):
                yield Part(np.array(batch.ids, object), batch.vectors, batch.others)
        elif isinstance(self.source, VectorSet):
            for part in self.source.iter_batches(BATCH_ROWS):
                yield Part(part.ids.astype(object), np.asarray(part.vectors))
        else:
            ids, matrix = self.source
            for start in range(0, len(matrix), BATCH_ROWS):
                with np.errstate(over="ignore"):  # what float32 cannot hold is counted as bad
                    rows = np.asarray(matrix[start : start + BATCH_ROWS], dtype=np.float32)
                yield Part(ids[start : start + BATCH_ROWS].astype(object), rows)
                release(matrix)

    @property
    def exact(self) -> bool:
        """Whether the numbers are those that were written, so that their type can be told."""
        able = self.source.capabilities if isinstance(self.source, Store) else None
        return able is None or (able.read_back_error == 0 and able.stores_raw)

    def close(self) -> None:
        """Let go of a store that was opened here."""
        if isinstance(self.source, Store):
            self.source.close()


@dataclass(frozen=True)
class OtherLength:
    """Rows whose vectors are longer or shorter than those of the collection.

    Parameters
    ----------
    numbers : float
        In each of their vectors; not whole where a database keeps bytes, and some are missing.
    rows : int
    ids : tuple of str
        The first ten.
    """

    numbers: float
    rows: int
    ids: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Survey:
    """What one pass over a collection gives.

    Parameters
    ----------
    count : int
        Rows that were read, those of another length among them.
    ids : array of shape (kept,)
    vectors : FloatArray of shape (kept, dim)
        Drawn uniformly from all rows, or all of them, in the order of the scan.
    marks : RowMarks
        Of all rows, or of those kept where a sample was asked for.
    hashes : array of shape (looked,)
        Of the numbers of each row that was looked at.
    repeated_ids : int
        Rows that were looked at whose id is that of an earlier one.
    invalid_ids, zero_ids : tuple of str
        The first ten rows with NaN or infinity, and of length zero, of those looked at.
    low, high : FloatArray of shape (dim,)
        Smallest and largest value of each dimension over the sound rows that were looked at.
    others : tuple of OtherLength
        By length; of all rows, also where a sample was asked for.
    """

    count: int
    ids: npt.NDArray[Any]
    vectors: FloatArray
    marks: RowMarks
    hashes: npt.NDArray[np.int64]
    repeated_ids: int
    invalid_ids: tuple[str, ...]
    zero_ids: tuple[str, ...]
    low: FloatArray
    high: FloatArray
    others: tuple[OtherLength, ...]


def opened(place: Store | VectorSet | Path | str) -> Collection:
    """Open what is to be looked at, without changing it.

    Raises
    ------
    MissingFileError, UnknownFormatError, CorruptFileError, InputError, StoreError
    """
    if is_store_url(place):
        place = open_store(str(place))
    if isinstance(place, Store):
        space = place.space if place.recorded else None
        return Collection(place, space, place.count(), place.space.dim)
    if isinstance(place, VectorSet):
        return Collection(place, place.space, len(place), place.dim)
    path = Path(place)
    mapped = format_of(path).memory_maps
    try:
        made, _ = load_stored(path, memory_map=mapped)
    except InputError:
        return _as_it_is(path, memory_map=mapped)
    # a mapped file is checked when it is read, and may hold bad rows
    source = (made.ids, made.vectors) if isinstance(made.vectors, np.memmap) else made
    return Collection(source, made.space, len(made), made.dim)


def _as_it_is(path: Path, *, memory_map: bool) -> Collection:
    """Open a file that no set can be made of: bad rows, repeated ids, no space."""
    raw = read_raw(path, memory_map=memory_map)
    vectors = np.asanyarray(raw.vectors)
    sound = vectors.ndim == 2 and vectors.size and vectors.dtype.kind in "fiu"
    ids = np.array([str(one) for one in raw.ids], dtype=np.str_)
    if not sound or len(ids) != len(vectors):
        load_stored(path, memory_map=memory_map)  # raises, and says what is wrong
    return Collection((ids, vectors), raw.space, len(vectors), int(vectors.shape[1]))


def survey(
    collection: Collection,
    *,
    keep: int,
    every: bool = True,
    seed: int = 0,
    track: Track[Any] = silent,
) -> Survey:
    """Read a collection once.

    Parameters
    ----------
    collection : Collection
    keep : int
        Rows to keep, drawn uniformly over the scan; all where there are no more.
    every : bool, default True
        Look at every row, not only at those kept.
    seed : int, default 0
    track : Track, default silent

    Raises
    ------
    EmptyInputError
    """
    draw = np.random.default_rng(seed)
    old_keys: FloatArray = np.empty(0)
    ids: npt.NDArray[Any] = np.empty(0, object)
    kept: FloatArray = np.empty((0, collection.dim), np.float32)
    looked: list[_Look] = []
    others: dict[float, OtherLength] = {}
    count = 0
    steps = -(-collection.count // BATCH_ROWS)
    for batch in track(collection.batches(), "reading", steps):
        names, rows = batch.ids, batch.vectors
        count += len(rows) + len(batch.others)
        for name, numbers in batch.others:
            before = others.get(numbers, OtherLength(numbers, 0, ()))
            named = (*before.ids, name)[:NAMED]
            others[numbers] = OtherLength(numbers, before.rows + 1, named)
        if not len(rows):
            continue
        if every:
            looked.append(_look(names, rows))
        # each row has a key: the rows with the smallest keys are a uniform sample
        keys = draw.random(len(rows))
        keys = np.concatenate([old_keys, keys])
        chosen = np.sort(np.argsort(keys, kind="stable")[:keep])
        fresh = chosen[chosen >= len(kept)] - len(kept)
        stay = chosen[chosen < len(kept)]
        ids = np.concatenate([ids[stay], names[fresh]])
        kept = np.concatenate([kept[stay], np.asarray(rows[fresh], np.float32)])
        old_keys = keys[chosen]
    if not len(kept):
        raise _nothing(collection, others)
    if not every:
        steps_of = range(0, len(kept), BATCH_ROWS)
        looked = [_look(ids[at : at + BATCH_ROWS], kept[at : at + BATCH_ROWS]) for at in steps_of]
    return Survey(
        count=count,
        ids=ids,
        vectors=kept,
        others=tuple(others[numbers] for numbers in sorted(others)),
        **_together(looked),
    )


def _nothing(collection: Collection, others: Mapping[float, OtherLength]) -> EmptyInputError:
    if not others:
        return EmptyInputError(
            expected="at least one vector to look at", got="an empty collection", do="fill it first"
        )
    told = ", ".join(f"{one.rows:,} of {one.numbers:g}" for one in others.values())
    return EmptyInputError(
        expected=f"at least one vector of {collection.dim} numbers, as the space says",
        got=told,
        do="record the space of the model that made them",
    )


@dataclass(frozen=True, eq=False)
class _Look:
    marks: RowMarks
    hashes: npt.NDArray[np.int64]
    names: npt.NDArray[np.int64]
    invalid: tuple[str, ...]
    zero: tuple[str, ...]
    low: FloatArray
    high: FloatArray


def _look(names: npt.NDArray[Any], rows: FloatArray) -> _Look:
    block = np.ascontiguousarray(rows, np.float32)
    sound = block[np.isfinite(block).all(axis=1)]
    empty = np.full(block.shape[1], np.inf, np.float32)
    marks = mark_rows(block)
    invalid = np.isnan(marks.length)
    return _Look(
        marks=marks,
        # -0 is 0
        hashes=np.array([hash(row.tobytes()) for row in block + np.float32(0)], np.int64),
        names=np.array([hash(name) for name in names.tolist()], np.int64),
        invalid=tuple(names[invalid][:NAMED].tolist()),
        zero=tuple(names[(marks.grid < 0) & ~invalid][:NAMED].tolist()),
        low=sound.min(axis=0, initial=np.inf) if len(sound) else empty,
        high=sound.max(axis=0, initial=-np.inf) if len(sound) else -empty,
    )


def _together(looked: Sequence[_Look]) -> dict[str, Any]:
    """Put what was seen of each batch together."""
    marks = RowMarks(
        *(
            np.concatenate([getattr(one.marks, name) for one in looked])
            for name in ("length", "width", "grid")
        )
    )
    names = np.concatenate([one.names for one in looked])
    return {
        "marks": marks,
        "hashes": np.concatenate([one.hashes for one in looked]),
        "repeated_ids": len(names) - len(np.unique(names)),
        "invalid_ids": tuple(name for one in looked for name in one.invalid)[:NAMED],
        "zero_ids": tuple(name for one in looked for name in one.zero)[:NAMED],
        "low": np.min([one.low for one in looked], axis=0),
        "high": np.max([one.high for one in looked], axis=0),
    }
