"""What was done to each vector after the encoder, read off its numbers alone.

Cut to fewer dimensions and filled up with zeros, scaled to unit length, rounded to a coarser type
of number: each leaves a mark that chance does not make.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IntArray
from isthmus.evaluate._any_rows import as_any_rows

__all__ = ["GRIDS", "MarkSummary", "Part", "RowMarks", "mark_rows", "summarise_marks"]

GRIDS = ("float32", "float16", "bfloat16", "int8", "binary")
"""Types of numbers by how coarse they are; a row has the coarsest that holds it exactly."""

BLOCK_ROWS = 4_096
UNIT = 2e-3
"""How far from 1 a unit length may be: float16 on disk costs up to half of it."""
LEVELS = 256
INT8_DIMS = 32
"""Dimensions without which 256 levels and any numbers cannot be told apart."""
FEWEST_LEVELS = 12
"""Different values without which a row that is mostly zero would lie on levels by chance."""
ON_LEVEL = 0.12
"""Of a step: how far from a level a number may be that float16 has rounded since."""
FEWEST, LEAST_SHARE = 3, 2e-3
"""Rows, and share of the rows, from which a mark counts as a part of the collection."""
SHELL = 5.0
"""How many times denser unit lengths must be than lengths near by."""


@dataclass(frozen=True, eq=False)
class RowMarks:
    """Marks of rows, one entry a row.

    Parameters
    ----------
    length : FloatArray of shape (n,)
        NaN for rows with NaN or infinity.
    width : IntArray of shape (n,)
        Dimensions before the zeros at the end; the whole dimension where these are few, or where
        zeros stand everywhere.
    grid : IntArray of shape (n,)
        Place in `GRIDS`; -1 for zero rows and rows with NaN or infinity.
    """

    length: FloatArray
    width: IntArray
    grid: IntArray


def mark_rows(vectors: npt.ArrayLike) -> RowMarks:
    """Return the marks of each row.

    Parameters
    ----------
    vectors : array-like of shape (n, dim)

    Raises
    ------
    DimensionError, EmptyInputError, InvalidVectorsError

    Examples
    --------
    >>> marks = mark_rows([[0.5, 0.1, 0.7, 0.3], [0.5, 0.25, 0.125, 1.0]])
    >>> [GRIDS[code] for code in marks.grid]
    ['float32', 'bfloat16']
    """
    rows = as_any_rows(vectors, name="vectors")
    dim = rows.shape[1]
    length = np.full(len(rows), np.nan)
    width = np.full(len(rows), dim, np.int64)
    grid = np.full(len(rows), -1, np.int64)
    for start in range(0, len(rows), BLOCK_ROWS):
        block = np.asarray(rows[start : start + BLOCK_ROWS], np.float32)
        here = start + np.flatnonzero(np.isfinite(block).all(axis=1))
        sound = block[here - start]
        with np.errstate(over="ignore"):
            length[here] = np.sqrt(np.einsum("ij,ij->i", sound, sound, dtype=np.float64))
        some = sound.any(axis=1)
        width[here[some]] = _widths(sound[some])
        grid[here[some]] = _grids(sound[some])
    return RowMarks(length, width, grid)


def _widths(rows: FloatArray) -> IntArray:
    """Return how many dimensions come before a row's zeros at the end."""
    dim = rows.shape[1]
    filled = rows != 0
    width = dim - np.argmax(filled[:, ::-1], axis=1)
    # in sparse vectors zeros at the end are nothing particular
    dense = filled.sum(axis=1) > 0.5 * width
    cut = (dim - width >= max(4, dim // 16)) & dense
    found: IntArray = np.where(cut, width, dim).astype(np.int64)
    return found


def _grids(rows: FloatArray) -> IntArray:
    codes = np.zeros(len(rows), np.int64)
    with np.errstate(over="ignore"):
        halves = rows.astype(np.float16).astype(np.float32)
    codes[(halves == rows).all(axis=1)] = GRIDS.index("float16")
    short = (np.ascontiguousarray(rows).view(np.uint32) & 0xFFFF) == 0
    codes[short.all(axis=1)] = GRIDS.index("bfloat16")
    if rows.shape[1] >= INT8_DIMS:
        codes[_on_levels(rows)] = GRIDS.index("int8")
    sizes = np.abs(rows)
    low, high = np.where(sizes > 0, sizes, np.inf).min(axis=1), sizes.max(axis=1)
    several = (rows != 0).sum(axis=1) >= min(8, rows.shape[1])
    codes[several & (high - low <= 1e-3 * high) & (rows.shape[1] >= 8)] = GRIDS.index("binary")
    return codes


def _on_levels(rows: FloatArray) -> npt.NDArray[np.bool_]:
    """Say which rows hold at most 256 equally spaced values."""
    values = np.sort(rows.astype(np.float64), axis=1)
    steps = np.diff(values, axis=1)
    reach = values[:, -1] - values[:, 0]
    step = np.where(steps > 1e-3 * reach[:, None] / LEVELS, steps, np.inf).min(axis=1)
    single = (steps > 0.5 * step[:, None]) & (steps < 1.5 * step[:, None])
    places = values - values[:, :1]
    with np.errstate(invalid="ignore", divide="ignore"):
        # what float16 rounded since: the smallest step is too small, so take the mean, then all
        step = (steps * single).sum(axis=1) / single.sum(axis=1)
        near = np.round(places / step[:, None])
        step = (near * places).sum(axis=1) / (near**2).sum(axis=1)
        off = np.abs(places / step[:, None] - near).max(axis=1)
    several = (steps > 1e-3 * reach[:, None] / LEVELS).sum(axis=1) >= FEWEST_LEVELS
    few: npt.NDArray[np.bool_] = several & (off < ON_LEVEL) & (reach > 0) & (reach / step < LEVELS)
    return few


@dataclass(frozen=True)
class Part:
    """Rows that bear a mark.

    Parameters
    ----------
    name : str
        For example ``width 256`` or ``int8``.
    rows : int
    share : float
        Of the rows that are neither zero nor bad.
    """

    name: str
    rows: int
    share: float


@dataclass(frozen=True, kw_only=True)
class MarkSummary:
    """What the marks of a collection's rows say.

    Parameters
    ----------
    normalized : {"all", "none", "some"}
        Whether lengths are 1.
    unit_rows : int
    widths, grids, lengths : tuple of Part
        Parts of the collection by width, by type of number, and by unit length or not; one part
        where all rows are alike, the largest first.
    """

    normalized: str
    unit_rows: int
    widths: tuple[Part, ...]
    grids: tuple[Part, ...]
    lengths: tuple[Part, ...]

    @property
    def mixed(self) -> tuple[str, ...]:
        """Kinds of marks that part the collection: ``width``, ``number type``, ``length``."""
        kinds = {"width": self.widths, "number type": self.grids, "length": self.lengths}
        return tuple(kind for kind, parts in kinds.items() if len(parts) > 1)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        parts = {
            name: [vars(part) for part in getattr(self, name)]
            for name in ("widths", "grids", "lengths")
        }
        return {**vars(self), **parts, "mixed": list(self.mixed)}


def summarise_marks(marks: RowMarks) -> MarkSummary:
    """Say which parts a collection has by the marks of its rows.

    Parameters
    ----------
    marks : RowMarks

    Examples
    --------
    >>> rows = np.random.default_rng(0).standard_normal((100, 64)).astype(np.float32)
    >>> rows[:20, 32:] = 0
    >>> [part.name for part in summarise_marks(mark_rows(rows)).widths]
    ['width 64', 'width 32']
    """
    sound = marks.grid >= 0
    count = int(sound.sum())
    width, grid, length = marks.width[sound], marks.grid[sound], marks.length[sound]
    unit = np.abs(length - 1) <= UNIT
    widths = _parts([f"width {one}" for one in np.unique(width)], np.unique(width), width)
    grids = _parts(list(GRIDS), np.arange(len(GRIDS)), grid)
    lengths: tuple[Part, ...] = ()
    if count:
        lengths = _parts(["unit length", "other lengths"], np.array([1, 0]), unit.astype(np.int64))
    if len(lengths) > 1 and not _stands_out(length, unit):
        name = "unit length" if unit.mean() > 0.5 and not _far(length) else "other lengths"
        lengths = (Part(name, count, 1.0),)
    return MarkSummary(
        normalized="some" if len(lengths) > 1 else _normalized(lengths),
        unit_rows=int(unit.sum()),
        widths=widths,
        grids=grids,
        lengths=lengths,
    )


def _normalized(lengths: tuple[Part, ...]) -> str:
    return "all" if lengths and lengths[0].name == "unit length" else "none"


def _parts(names: list[str], values: IntArray, found: IntArray) -> tuple[Part, ...]:
    """Return the parts that are large enough, the largest first; the small ones join that."""
    counts = np.array([int((found == value).sum()) for value in values], dtype=np.int64)
    if not counts.sum():
        return ()
    keep = counts >= max(FEWEST, LEAST_SHARE * counts.sum())
    keep[counts.argmax()] = True
    order = [place for place in np.argsort(-counts, kind="stable") if keep[place]]
    total = int(counts.sum())
    return tuple(Part(names[one], int(counts[one]), int(counts[one]) / total) for one in order)


def _far(length: FloatArray) -> bool:
    """Say whether some lengths are well away from 1, and not only a little more than rounding."""
    far = int((np.abs(length - 1) > SHELL * UNIT).sum())
    return far >= max(FEWEST, LEAST_SHARE * len(length))


def _stands_out(length: FloatArray, unit: npt.NDArray[np.bool_]) -> bool:
    """Say whether there are more unit lengths than lengths near by let expect, and others too."""
    near = (np.abs(length - 1) <= SHELL * UNIT) & ~unit
    expected = near.sum() / (SHELL - 1)
    return _far(length) and bool(unit.sum() > SHELL * expected + FEWEST)
