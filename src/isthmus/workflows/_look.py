"""One set of vectors, looked at row by row: lengths, bad rows, repeated rows, hubs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from isthmus._progress import Track, silent
from isthmus._types import FloatArray
from isthmus.spaces import Space
from isthmus.spaces._mapped import gather, release
from isthmus.spaces.sampling import draw_rows
from isthmus.spaces.vector_set import UNIT as UNIT_REFUSED

__all__ = ["SetInspection", "look_at_rows"]

BLOCK_ROWS = 16_384
ASKED_ROWS = 2_000
"""Rows whose neighbours are looked at: enough for a standard error of about a hundredth."""
SEARCHED_ROWS = 50_000
"""Rows among which they are looked for, which bounds memory and time."""
UNIT = 2e-3
"""How far from 1 a unit length may be: float16 on disk costs up to half of it."""
K = 10


@dataclass(frozen=True, kw_only=True)
class SetInspection:
    """What a set of vectors is like.

    Parameters
    ----------
    space : Space or None
        None where the file names none.
    rows, dim : int
    dtype : str
        As stored.
    norm_low, norm_median, norm_high : float
        Smallest, median and largest length of the rows; NaN without a valid row.
    invalid_rows, zero_rows : int
        Rows with NaN or infinity, and rows of length zero.
    duplicate_rows, duplicate_ids : int
        Rows equal to an earlier one, and ids that stand there before.
    hubness : float
        Skewness of how often a row is among the 10 nearest of others (``hubness@10``); over 1 says
        that a few rows are near to everything. NaN for a set that is too small or has bad rows.
    asked_rows, searched_rows : int
        Rows that hubness was measured on: those asked from, and those searched.
    notes : tuple of str
        What should be seen to.
    """

    space: Space | None
    rows: int
    dim: int
    dtype: str
    norm_low: float
    norm_median: float
    norm_high: float
    invalid_rows: int
    zero_rows: int
    duplicate_rows: int
    duplicate_ids: int
    hubness: float = float("nan")
    asked_rows: int = 0
    searched_rows: int = 0
    notes: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether the set can be used as it is."""
        bad_zero = self.zero_rows and (self.space is None or self.space.metric == "cosine")
        bad = self.invalid_rows or bad_zero or self.duplicate_ids or self.space is None
        return not bad and self.lengths_fit(UNIT_REFUSED)

    def lengths_fit(self, tolerance: float) -> bool:
        """Say whether all lengths are 1 where the space promises it; zero rows have none."""
        if self.space is None or not self.space.normalized or not np.isfinite(self.norm_low):
            return True
        low = 1.0 if self.norm_low == 0 else self.norm_low
        return abs(low - 1) <= tolerance and abs(self.norm_high - 1) <= tolerance

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        space = None if self.space is None else self.space.to_dict()
        fingerprint = None if self.space is None else self.space.fingerprint
        return {**vars(self), "space": space, "fingerprint": fingerprint, "sound": self.sound}


def look_at_rows(
    ids: npt.NDArray[np.str_],
    vectors: npt.NDArray[Any],
    space: Space | None,
    *,
    seed: int = 0,
    track: Track[Any] = silent,
) -> SetInspection:
    """Look at every row once, and at the neighbours of some.

    Parameters
    ----------
    ids : array of shape (n,)
    vectors : array of shape (n, dim)
        Of any number type, in memory or mapped; bad rows are counted and not refused.
    space : Space or None
    seed : int, default 0
        Of the rows whose neighbours are looked at.
    track : Track, default silent
        One step per block of rows.
    """
    lengths = np.empty(len(vectors), np.float64)
    hashes = np.empty(len(vectors), np.int64)
    steps = -(-len(vectors) // BLOCK_ROWS)
    for start, block in track(_blocks(vectors), "looking at rows", steps):
        here = slice(start, start + len(block))
        with np.errstate(over="ignore", invalid="ignore"):
            lengths[here] = np.sqrt(np.einsum("ij,ij->i", block, block, dtype=np.float64))
        hashes[here] = [hash(row.tobytes()) for row in block + np.float32(0)]  # -0 is 0
    valid = np.isfinite(lengths)
    sizes = lengths[valid]
    low, median, high = (sizes.min(), np.median(sizes), sizes.max()) if len(sizes) else [np.nan] * 3
    looked = SetInspection(
        space=space,
        rows=len(vectors),
        dim=int(vectors.shape[1]),
        dtype=str(vectors.dtype),
        norm_low=float(low),
        norm_median=float(median),
        norm_high=float(high),
        invalid_rows=int(np.count_nonzero(~valid)),
        zero_rows=int(np.count_nonzero(sizes == 0)),
        duplicate_rows=len(vectors) - len(np.unique(hashes)),
        duplicate_ids=len(ids) - len(np.unique(ids)),
    )
    return _with_notes(_with_hubness(looked, vectors, seed=seed))


def _blocks(vectors: npt.NDArray[Any]) -> Iterator[tuple[int, FloatArray]]:
    for start in range(0, len(vectors), BLOCK_ROWS):
        with np.errstate(over="ignore"):
            yield start, np.asarray(vectors[start : start + BLOCK_ROWS], dtype=np.float32)
        release(vectors)


def _with_hubness(looked: SetInspection, vectors: npt.NDArray[Any], *, seed: int) -> SetInspection:
    """Add the hubness, where the rows can be compared."""
    from isthmus.evaluate.hubness import hubness

    metric = "cosine" if looked.space is None else looked.space.metric
    bad = looked.invalid_rows or (looked.zero_rows and metric == "cosine")
    if bad or looked.rows <= K:
        return looked
    searched = draw_rows(looked.rows, SEARCHED_ROWS, seed=seed)
    asked = draw_rows(len(searched), ASKED_ROWS, seed=seed)
    database = gather(vectors, searched)
    value = hubness(database[asked], database, k=K, metric=metric, exclude=asked)
    return replace(looked, hubness=value.mean, asked_rows=len(asked), searched_rows=len(searched))


def _with_notes(looked: SetInspection) -> SetInspection:
    notes = []
    space = looked.space
    if space is None:
        notes.append(
            "the file names no space: only you know which model made these vectors; write it into "
            "NAME.space.json beside it"
        )
    if looked.invalid_rows:
        notes.append(f"{looked.invalid_rows:,} rows hold NaN or infinity: drop or re-embed them")
    if looked.zero_rows:
        notes.append(f"{looked.zero_rows:,} rows are all zero: an empty text often gives one")
    if looked.duplicate_ids:
        notes.append(f"{looked.duplicate_ids:,} ids stand there more than once")
    if looked.duplicate_rows:
        notes.append(
            f"{looked.duplicate_rows:,} rows repeat an earlier one: they tie in every search"
        )
    if not looked.lengths_fit(UNIT):
        notes.append(
            "the space says unit length, yet lengths go from "
            f"{looked.norm_low:.3g} to {looked.norm_high:.3g}"
        )
    if space is not None and space.bridged_from:
        notes.append(f"a bridge carried these vectors here ({space.bridged_from[:12]})")
    return replace(looked, notes=tuple(notes))
