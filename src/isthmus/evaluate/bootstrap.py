"""Intervals by resampling queries: never rows, which would then tie with themselves.

Every function takes one value per query. Queries are drawn with replacement, all columns together,
so that two systems are compared on the same draws (paired bootstrap). A query whose value is NaN
is undefined and is left out of the means.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, stdtrit

from isthmus._types import FloatArray
from isthmus._validate import check_positive
from isthmus.errors import (
    CountMismatchError,
    DimensionError,
    EmptyInputError,
    InvalidVectorsError,
    ParameterError,
)

__all__ = [
    "as_per_query",
    "draw_counts",
    "interval",
    "intervals",
    "paired_difference",
    "percentile_interval",
    "ratio",
    "resampled_means",
]

LEVEL = 0.95
RESAMPLES = 1000
# Counts held at once: 32 MB of float64.
BLOCK_NUMBERS = 2**22


def interval(
    per_query: npt.ArrayLike,
    *,
    seed: int = 0,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
) -> tuple[float, float]:
    """Return the percentile interval of the mean over queries.

    The percentiles are widened for few queries as a t interval is (the expanded percentile interval
    of Hesterberg 2015, "What teachers should know about the bootstrap"): 2 % at 100 queries.

    Parameters
    ----------
    per_query : array-like of shape (n_queries,)
        NaN leaves the query out.
    seed : int, default 0
    level : float, default 0.95
        Coverage, in (0, 1).
    resamples : int, default 1000

    Returns
    -------
    low, high : float
        NaN with fewer than two queries: one query says nothing about the next.

    Raises
    ------
    DimensionError, EmptyInputError, InvalidVectorsError, ParameterError

    Examples
    --------
    >>> low, high = interval([0.0, 1.0] * 50)
    >>> 0.39 < low < 0.42, 0.58 < high < 0.61
    (True, True)
    >>> interval([0.5])
    (nan, nan)
    """
    column = as_per_query(per_query, name="per_query")[:, None]
    bounds = intervals(column, seed=seed, level=level, resamples=resamples)
    return float(bounds[0, 0]), float(bounds[0, 1])


def intervals(
    columns: FloatArray, *, seed: int = 0, level: float = LEVEL, resamples: int = RESAMPLES
) -> FloatArray:
    """Return `interval` of many measures of the same queries from one set of draws.

    Parameters
    ----------
    columns : FloatArray of shape (n_queries, n_measures)
    seed, level, resamples
        As in `interval`.

    Returns
    -------
    FloatArray of shape (n_measures, 2), float64
    """
    means = resampled_means(columns, seed=seed, resamples=resamples)
    defined = (~np.isnan(columns)).sum(axis=0)
    return np.array(
        [
            percentile_interval(means[:, place], queries=int(count), level=level)
            for place, count in enumerate(defined)
        ]
    ).reshape(len(defined), 2)


def paired_difference(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    seed: int = 0,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
) -> tuple[float, float, float]:
    """Return the mean of a - b over the queries that both define, with its interval.

    Parameters
    ----------
    a, b : array-like of shape (n_queries,)
        The same queries in the same order.
    seed, level, resamples
        As in `interval`.

    Returns
    -------
    mean, low, high : float

    Raises
    ------
    CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError, ParameterError

    Examples
    --------
    >>> paired_difference([0.5, 0.9, 0.1], [0.25, 0.65, -0.15])
    (0.25, 0.25, 0.25)
    """
    first, second = _as_paired(a, b)
    difference = first - second
    low, high = interval(difference, seed=seed, level=level, resamples=resamples)
    return _mean(difference), low, high


def ratio(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    seed: int = 0,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
) -> tuple[float, float, float]:
    """Return mean(a) / mean(b) over the queries that both define, with its interval.

    It is a ratio of means, not a mean of per-query ratios: those do not exist where b is 0.

    Parameters
    ----------
    a, b : array-like of shape (n_queries,)
        The same queries in the same order; b is the oracle.
    seed, level, resamples
        As in `interval`.

    Returns
    -------
    ratio, low, high : float
        NaN where mean(b) is 0.

    Raises
    ------
    CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError, ParameterError

    Examples
    --------
    >>> ratio([0.2, 0.4], [0.4, 0.8])
    (0.5, 0.5, 0.5)
    """
    first, second = _as_paired(a, b)
    both = np.where(np.isnan(first + second)[:, None], np.nan, np.stack([first, second], axis=1))
    means = resampled_means(both, seed=seed, resamples=resamples)
    queries = int((~np.isnan(both[:, 0])).sum())
    low, high = percentile_interval(_divide(means[:, 0], means[:, 1]), queries=queries, level=level)
    point = _divide(np.array([_mean(both[:, 0])]), np.array([_mean(both[:, 1])]))
    return float(point[0]), low, high


def resampled_means(
    columns: FloatArray, *, seed: int = 0, resamples: int = RESAMPLES
) -> FloatArray:
    """Return the mean of every column in every draw of the queries, leaving NaN out.

    Parameters
    ----------
    columns : FloatArray of shape (n_queries, n_columns)
    seed : int, default 0
        The draws depend on the seed and on n_queries only.
    resamples : int, default 1000

    Returns
    -------
    FloatArray of shape (resamples, n_columns), float64
    """
    defined = ~np.isnan(columns)
    wide = np.concatenate([np.where(defined, columns, 0.0), defined], axis=1, dtype=np.float64)
    sums = np.concatenate(
        [counts @ wide for counts in draw_counts(len(columns), seed=seed, resamples=resamples)]
    )
    return _divide(sums[:, : columns.shape[1]], sums[:, columns.shape[1] :])


def draw_counts(queries: int, *, seed: int = 0, resamples: int = RESAMPLES) -> Iterator[FloatArray]:
    """Draw how often each query occurs in each resample, in blocks of (rows, queries) float64.

    Raises
    ------
    ParameterError
        No resample, or no whole number of them.
    """
    if isinstance(resamples, bool) or not isinstance(resamples, int) or resamples < 1:
        raise ParameterError(
            expected="resamples as a whole number over 0", got=repr(resamples), do="change it"
        )
    draw = np.random.default_rng(seed)
    at_once = max(1, BLOCK_NUMBERS // queries)
    for start in range(0, resamples, at_once):
        rows = min(at_once, resamples - start)
        places = draw.integers(0, queries, (rows, queries)) + queries * np.arange(rows)[:, None]
        counts = np.bincount(places.ravel(), minlength=rows * queries)
        yield counts.reshape(rows, queries).astype(np.float64)


def percentile_interval(
    values: FloatArray, *, queries: int, level: float = LEVEL
) -> tuple[float, float]:
    """Return the expanded percentile interval of resampled values; NaN under two queries.

    Parameters
    ----------
    values : FloatArray of shape (resamples,)
        Undefined ones (NaN) are left out.
    queries : int
        Queries that each value comes from.
    level : float, default 0.95
    """
    check_positive(level, name="level", maximum=1.0)
    values = values[~np.isnan(values)]
    if queries < 2 or not len(values):
        return float("nan"), float("nan")
    tail = ndtr(np.sqrt(queries / (queries - 1)) * stdtrit(queries - 1, (1.0 - level) / 2.0))
    low, high = np.quantile(values, [tail, 1.0 - tail])
    return float(low), float(high)


def as_per_query(values: npt.ArrayLike, *, name: str) -> FloatArray:
    """Return one number per query as float64 of shape (n_queries,); NaN is allowed.

    Raises
    ------
    DimensionError, EmptyInputError, InvalidVectorsError
    """
    array = np.asarray(values)
    if array.dtype.kind not in "fiub" or np.isinf(array).any():
        raise InvalidVectorsError(
            expected=f"{name} as numbers, NaN where undefined",
            got=f"infinity, or an array of type {array.dtype}",
            do="give one finite number per query",
        )
    if array.ndim != 1:
        raise DimensionError(
            expected=f"{name} with one number per query", got=f"shape {array.shape}", do="fix it"
        )
    if not len(array):
        raise EmptyInputError(
            expected=f"{name} of at least one query", got="none", do="give at least one query"
        )
    return array.astype(np.float64)


def _as_paired(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    first, second = as_per_query(a, name="a"), as_per_query(b, name="b")
    if len(first) != len(second):
        raise CountMismatchError(
            expected="the same queries on both sides",
            got=f"{len(first)} and {len(second)}",
            do="give both values for every query",
        )
    return first, second


def _mean(values: FloatArray) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")


def _divide(a: FloatArray, b: FloatArray) -> FloatArray:
    """Divide; NaN where the divisor is 0."""
    quotient: FloatArray = np.divide(a, b, out=np.full(a.shape, np.nan), where=b != 0)
    return quotient
