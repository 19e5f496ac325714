"""How alike two spaces are before any map: neighbours and distances of the same objects.

Both sides are vectors of the same objects, row by row, of any two dimensions. Nothing is mapped:
each side is looked at within itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IntArray, Metric
from isthmus._validate import as_matrix, check_pairs
from isthmus.errors import ParameterError, UnknownNameError
from isthmus.evaluate.k_means import ready_rows
from isthmus.evaluate.preservation.overlap import overlap_counts
from isthmus.neighbors import check_k, top_k

__all__ = ["DistanceBins", "JaccardCurve", "distance_correlation", "jaccard_curve", "nno"]

Spacing = Literal["count", "width"]

# Pairs of rows compared at once: 32 MB of float64 on each side.
BLOCK_NUMBERS = 2**22


@dataclass(frozen=True)
class JaccardCurve:
    """Agreement of the k nearest neighbours for every k up to a bound.

    Parameters
    ----------
    k : IntArray of shape (max_k,)
        1, 2, ..., max_k.
    mean, std : FloatArray of shape (max_k,)
        Over the queries, in [0, 1].
    per_query : FloatArray of shape (n_queries, max_k)
    """

    k: IntArray
    mean: FloatArray
    std: FloatArray
    per_query: FloatArray


@dataclass(frozen=True)
class DistanceBins:
    """Correlation of distances in two spaces, by the distance in the first.

    Parameters
    ----------
    median : FloatArray of shape (n_bins,)
        Median distance in the first space of the pairs in the bin; NaN in an empty one.
    correlation : FloatArray of shape (n_bins,)
        Pearson's, in [-1, 1]; NaN with too few pairs or no spread.
    count : IntArray of shape (n_bins,)
        Pairs in the bin.
    """

    median: FloatArray
    correlation: FloatArray
    count: IntArray


def nno(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    k: int = 10,
    metric: Metric = "cosine",
    rows: npt.ArrayLike | None = None,
) -> FloatArray:
    """Return the nearest-neighbour overlap NNO@k of two spaces, per row.

    |N_k(a_i) and N_k(b_i)| / k, each among the other rows of its own side (Lin and Smith 2019). Not
    `nbr_overlap`, which searches one side from mapped vectors, and not Jaccard.

    Parameters
    ----------
    a : array-like of shape (n, dim_a)
    b : array-like of shape (n, dim_b)
        Row i of both is the same object.
    k : int, default 10
        Fewer where there are fewer other rows.
    metric : {"cosine", "dot", "l2"}, default "cosine"
        Of both sides.
    rows : array-like of int, optional
        Rows to ask from; all by default.

    Returns
    -------
    FloatArray of shape (n_rows,), float64
        In [0, 1]; k / (n - 1) by chance. NaN where there is no other row.

    Raises
    ------
    CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError, ParameterError
    UnknownNameError, ZeroVectorError

    Examples
    --------
    >>> side = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    >>> nno(side, side[:, ::-1], k=1).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    check_k(k)
    first, second, asked = _as_sides(a, b, rows)
    lists = _neighbors(first, second, asked, k, metric)
    possible = min(k, len(first) - 1)
    if possible == 0:
        return np.full(len(asked), np.nan)
    return overlap_counts(*lists) / possible


def jaccard_curve(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    max_k: int = 50,
    queries: int | None = 100,
    metric: Metric = "cosine",
    seed: int = 0,
) -> JaccardCurve:
    """Return the Jaccard index of the k nearest neighbours in two spaces for k = 1 to max_k.

    |N_k(a_i) and N_k(b_i)| / |N_k(a_i) or N_k(b_i)| over random rows i, the row itself left out
    (vector linking, appendix A.5 and figure 8). It is lower than the overlap NNO = 2J / (1 + J).

    Parameters
    ----------
    a : array-like of shape (n, dim_a)
    b : array-like of shape (n, dim_b)
    max_k : int, default 50
        The paper's range; fewer where there are fewer other rows.
    queries : int, optional
        Random rows to ask from: 100 by default as in the paper, all of them with None.
    metric : {"cosine", "dot", "l2"}, default "cosine"
    seed : int, default 0
        Of the choice of rows.

    Returns
    -------
    JaccardCurve

    Raises
    ------
    CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError, ParameterError
    UnknownNameError, ZeroVectorError

    Examples
    --------
    >>> side = np.random.default_rng(0).standard_normal((30, 4))
    >>> jaccard_curve(side, -side, max_k=3).mean.tolist()
    [1.0, 1.0, 1.0]
    """
    check_k(max_k, name="max_k")
    first, second, asked = _as_sides(a, b, None)
    if len(first) < 2:
        raise ParameterError(
            expected="at least two rows", got="one", do="give the vectors of more objects"
        )
    if queries is not None:
        check_k(queries, name="queries")
        if queries < len(asked):
            draw = np.random.default_rng(seed)
            asked = np.sort(draw.choice(len(first), queries, replace=False))
    max_k = min(max_k, len(first) - 1)
    shared = _shared_by_k(*_neighbors(first, second, asked, max_k, metric))
    k = np.arange(1, max_k + 1)
    per_query = shared / (2 * k - shared)
    return JaccardCurve(
        k=k, mean=per_query.mean(axis=0), std=per_query.std(axis=0), per_query=per_query
    )


def distance_correlation(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    bins: int = 20,
    spacing: Spacing = "count",
    rows: int = 2000,
    metric: Metric = "cosine",
    minimum: int = 30,
    seed: int = 0,
) -> DistanceBins:
    """Return Pearson's correlation of distances in two spaces, per bin of the first's distance.

    All pairs of random rows, in bins by their distance in the first space (vector linking, section
    2.1 and figure 1). Not symmetric: the first space is the reference. A bin with little spread has
    a low correlation whatever the spaces: with bins of equal count, part of the fall from short to
    long distances is that the first bin is the widest; bins of equal width do not have this, but
    hold few short pairs.

    Parameters
    ----------
    a : array-like of shape (n, dim_a)
        The reference.
    b : array-like of shape (n, dim_b)
    bins : int, default 20
    spacing : {"count", "width"}, default "count"
        Bins with equally many pairs, which give the paper's picture, or equally wide ones.
    rows : int, default 2000
        Random rows whose pairs are compared; all where there are fewer.
    metric : {"cosine", "dot", "l2"}, default "cosine"
        Distances are Euclidean, for the cosine between rows of unit length, as in the paper.
    minimum : int, default 30
        Pairs that a bin needs for a correlation.
    seed : int, default 0
        Of the choice of rows.

    Returns
    -------
    DistanceBins

    Raises
    ------
    CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError, ParameterError
    UnknownNameError

    Examples
    --------
    >>> side = np.random.default_rng(0).standard_normal((60, 4))
    >>> found = distance_correlation(side, 3.0 * side, bins=2, metric="l2")
    >>> found.correlation.round(6).tolist(), int(found.count.sum())
    ([1.0, 1.0], 1770)
    """
    for name, value in (("bins", bins), ("rows", rows), ("minimum", minimum)):
        check_k(value, name=name)
    if spacing not in get_args(Spacing):
        raise UnknownNameError.of("spacing", str(spacing), get_args(Spacing))
    first, second, chosen = _as_sides(a, b, None)
    if rows < len(first):
        chosen = np.sort(np.random.default_rng(seed).choice(len(first), rows, replace=False))
    x, y = (_pair_distances(ready_rows(side[chosen], metric)) for side in (first, second))
    if not len(x):
        nothing = np.full(bins, np.nan)
        return DistanceBins(nothing, nothing.copy(), np.zeros(bins, np.int64))
    shares = np.linspace(0.0, 1.0, bins + 1)
    edges = np.quantile(x, shares) if spacing == "count" else x.min() + shares * np.ptp(x)
    place = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, bins - 1)
    found = [_one_bin(x[place == one], y[place == one], minimum) for one in range(bins)]
    return DistanceBins(
        median=np.array([median for median, _ in found]),
        correlation=np.array([correlation for _, correlation in found]),
        count=np.bincount(place, minlength=bins),
    )


def _as_sides(
    a: npt.ArrayLike, b: npt.ArrayLike, rows: npt.ArrayLike | None
) -> tuple[FloatArray, FloatArray, IntArray]:
    first, second = as_matrix(a, name="a"), as_matrix(b, name="b")
    check_pairs(first, second, minimum=1)
    if rows is None:
        return first, second, np.arange(len(first))
    asked = np.asarray(rows)
    wrong = asked.ndim != 1 or not asked.size or asked.dtype.kind not in "iu"
    if wrong or asked.min() < 0 or asked.max() >= len(first):
        raise ParameterError(
            expected=f"rows as whole numbers from 0 to {len(first) - 1}",
            got=f"shape {asked.shape}, type {asked.dtype}",
            do="give rows of both sides",
        )
    return first, second, asked.astype(np.int64)


def _neighbors(
    first: FloatArray, second: FloatArray, asked: IntArray, k: int, metric: Metric
) -> tuple[IntArray, IntArray]:
    """Return the neighbours of the same rows within each side, themselves left out."""
    one, other = (
        top_k(side[asked], side, k=k, metric=metric, exclude=asked).rows for side in (first, second)
    )
    return one, other


def _shared_by_k(one: IntArray, other: IntArray) -> IntArray:
    """Count the rows shared by the first k of two lists, for every k; shape (m, max_k)."""
    m, max_k = one.shape
    counts = np.zeros((m, max_k), np.int64)
    places = np.arange(max_k)
    joined = np.maximum(places[:, None], places)  # a row is shared once both lists have it
    at_once = max(1, BLOCK_NUMBERS // max_k**2)
    for start in range(0, m, at_once):
        block = slice(start, start + at_once)
        query, here, there = np.nonzero(one[block, :, None] == other[block, None, :])
        np.add.at(counts[block], (query, joined[here, there]), 1)
    totals: IntArray = counts.cumsum(axis=1)
    return totals


def _pair_distances(rows: FloatArray) -> FloatArray:
    """Return the Euclidean distances of all pairs of rows, in one fixed order."""
    squares = (rows**2).sum(axis=1)
    parts = []
    for start in range(0, len(rows) - 1, 512):
        stop = min(start + 512, len(rows))
        block = squares[start:stop, None] + squares - 2.0 * rows[start:stop] @ rows.T
        later = np.arange(len(rows)) > np.arange(start, stop)[:, None]
        parts.append(np.sqrt(np.maximum(block[later], 0.0)).astype(np.float32))
    return np.concatenate(parts) if parts else np.empty(0, np.float32)


def _one_bin(x: FloatArray, y: FloatArray, minimum: int) -> tuple[float, float]:
    if not len(x):
        return float("nan"), float("nan")
    one, other = (side.astype(np.float64) - side.mean(dtype=np.float64) for side in (x, y))
    length = float(np.sqrt((one**2).sum() * (other**2).sum()))
    known = len(x) >= minimum and length > 0
    return float(np.median(x)), float((one * other).sum()) / length if known else float("nan")
