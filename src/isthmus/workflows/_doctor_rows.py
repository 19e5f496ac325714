"""The rows of a collection, read once in batches: all of them counted, some of them kept."""

from __future__ import annotations

from collections.abc import Iterator
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

__all__ = ["Collection", "Survey", "opened", "survey"]

BATCH_ROWS = 10_000


@dataclass(frozen=True)
class Collection:
    """Where rows come from: a store, a set, or a file that may hold bad rows.

    Parameters
    ----------
    source : Store, VectorSet, or (ids, matrix)
    space : Space or None
        None where a file names none.
    count, dim : int
    """

    source: Any
    space: Space | None
    count: int
    dim: int

    def batches(self) -> Iterator[tuple[npt.NDArray[Any], FloatArray]]:
        """Yield ids and rows; only a file that no set could be made of has bad ones."""
        if isinstance(self.source, Store):
            for batch in self.source.scan(batch_size=BATCH_ROWS):
                yield batch.vectors.ids, np.asarray(batch.vectors.vectors)
        elif isinstance(self.source, VectorSet):
            for part in self.source.iter_batches(BATCH_ROWS):
                yield part.ids, np.asarray(part.vectors)
        else:
            ids, matrix = self.source
            for start in range(0, len(matrix), BATCH_ROWS):
                with np.errstate(over="ignore"):  # what float32 cannot hold is counted as bad
                    rows = np.asarray(matrix[start : start + BATCH_ROWS], dtype=np.float32)
                yield ids[start : start + BATCH_ROWS], rows
                release(matrix)

    def close(self) -> None:
        """Let go of a store that was opened here."""
        if isinstance(self.source, Store):
            self.source.close()


@dataclass(frozen=True, eq=False)
class Survey:
    """What one pass over a collection gives.

    Parameters
    ----------
    count : int
        Rows that were read.
    ids : array of shape (kept,)
    vectors : FloatArray of shape (kept, dim)
        Drawn uniformly from all rows, or all of them, in the order of the scan.
    marks : RowMarks
        Of all rows, or of those kept where a sample was asked for.
    hashes : array of shape (looked,)
        Of the numbers of each row that was looked at.
    low, high : FloatArray of shape (dim,)
        Smallest and largest value of each dimension over the sound rows that were looked at.
    """

    count: int
    ids: npt.NDArray[Any]
    vectors: FloatArray
    marks: RowMarks
    hashes: npt.NDArray[np.int64]
    low: FloatArray
    high: FloatArray


def opened(place: Store | VectorSet | Path | str) -> Collection:
    """Open what is to be looked at, without changing it.

    Raises
    ------
    MissingFileError, UnknownFormatError, CorruptFileError, InputError, StoreError
    """
    if is_store_url(place):
        place = open_store(str(place))
    if isinstance(place, Store):
        return Collection(place, place.space, place.count(), place.space.dim)
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
    count = 0
    steps = -(-collection.count // BATCH_ROWS)
    for names, rows in track(collection.batches(), "reading", steps):
        if every:
            looked.append(_look(rows))
        # each row has a key: the rows with the smallest keys are a uniform sample
        keys = draw.random(len(rows))
        keys = np.concatenate([old_keys, keys])
        chosen = np.sort(np.argsort(keys, kind="stable")[:keep])
        fresh = chosen[chosen >= len(kept)] - len(kept)
        stay = chosen[chosen < len(kept)]
        ids = np.concatenate([ids[stay], np.asarray(names, object)[fresh]])
        kept = np.concatenate([kept[stay], np.asarray(rows[fresh], np.float32)])
        old_keys = keys[chosen]
        count += len(rows)
    if not count:
        raise EmptyInputError(
            expected="at least one vector to look at", got="an empty collection", do="fill it first"
        )
    if not every:
        looked = [
            _look(kept[start : start + BATCH_ROWS]) for start in range(0, len(kept), BATCH_ROWS)
        ]
    marks = RowMarks(
        *(
            np.concatenate([getattr(one.marks, name) for one in looked])
            for name in ("length", "width", "grid")
        )
    )
    return Survey(
        count,
        ids,
        kept,
        marks,
        np.concatenate([one.hashes for one in looked]),
        np.min([one.low for one in looked], axis=0),
        np.max([one.high for one in looked], axis=0),
    )


@dataclass(frozen=True, eq=False)
class _Look:
    marks: RowMarks
    hashes: npt.NDArray[np.int64]
    low: FloatArray
    high: FloatArray


def _look(rows: FloatArray) -> _Look:
    block = np.ascontiguousarray(rows, np.float32)
    sound = block[np.isfinite(block).all(axis=1)]
    empty = np.full(block.shape[1], np.inf, np.float32)
    return _Look(
        mark_rows(block),
        np.array([hash(row.tobytes()) for row in block + np.float32(0)], np.int64),  # -0 is 0
        sound.min(axis=0, initial=np.inf) if len(sound) else empty,
        sound.max(axis=0, initial=-np.inf) if len(sound) else -empty,
    )
