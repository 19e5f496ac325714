"""Do clusters remain clusters: k-means on both sides, from the same rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IntArray, Metric
from isthmus._validate import as_matrix, check_pairs
from isthmus.evaluate import bootstrap
from isthmus.evaluate.k_means import cluster_count, cluster_from, cluster_rows, ready_rows
from isthmus.evaluate.report import Value
from isthmus.neighbors import check_k

__all__ = ["adjusted_rand", "cluster_agreement"]


def cluster_agreement(
    mapped: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    clusters: int | None = None,
    metric: Metric = "cosine",
    seed: int = 0,
) -> Value:
    """Return how well the clusters of the mapped rows agree with those of the native rows.

    The adjusted Rand index of two runs of k-means, one on each side. Both start from the same rows
    (k-means++ on the native side, the tightest of four), so that the index speaks of the map and
    not of two lucky starts. Not agreement with labels.

    Parameters
    ----------
    mapped : array-like of shape (m, dim)
    target : array-like of shape (m, dim_target)
        The dimensions may differ: the sides never meet.
    clusters : int, optional
        sqrt(m / 2), from 2 to 20, by default.
    metric : {"cosine", "dot", "l2"}, default "cosine"
        For the cosine, rows are scaled to unit length first.
    seed : int, default 0
        Of the starts and of the draws for the interval.

    Returns
    -------
    Value
        At most 1; 0 by chance. NaN with fewer than four rows, or where the native rows make one
        cluster. Interval: rows are drawn, their clusters stay; pairs of a row with itself do not
        count.

    Raises
    ------
    CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError, ParameterError

    Examples
    --------
    >>> rows = [[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]]
    >>> cluster_agreement(rows, rows, clusters=2).mean
    1.0
    """
    first, second = as_matrix(mapped, name="mapped"), as_matrix(target, name="target")
    check_pairs(first, second, minimum=1)
    if clusters is not None:
        check_k(clusters, name="clusters")
    count = min(clusters or cluster_count(len(second)), len(second))
    native, start = cluster_rows(ready_rows(second, metric), count, seed=seed)
    return agreement_with(first, native, start, metric=metric, seed=seed)


def agreement_with(
    mapped: FloatArray, native: IntArray, start: IntArray, *, metric: Metric, seed: int
) -> Value:
    """Return `cluster_agreement` with native clusters and the rows that they started from."""
    if len(mapped) < 4 or native.max() == native.min():
        return Value("cluster_agreement", float("nan"), float("nan"), float("nan"))
    labels, _ = cluster_from(ready_rows(mapped, metric), start)
    mean = float(adjusted_rand(labels, native, np.ones((1, len(labels))))[0])
    resampled = [
        adjusted_rand(labels, native, counts)
        for counts in bootstrap.draw_counts(len(labels), seed=seed)
    ]
    low, high = bootstrap.percentile_interval(np.concatenate(resampled), queries=len(labels))
    return Value("cluster_agreement", mean, low, high)


def adjusted_rand(a: IntArray, b: IntArray, weights: FloatArray) -> FloatArray:
    """Return the adjusted Rand index under whole-number weights of the rows.

    Hubert and Arabie 1985, with pairs counted as sums of products of weights over different rows: a
    row that was drawn twice does not agree with itself.

    Parameters
    ----------
    a, b : IntArray of shape (m,)
        Clusters from 0.
    weights : FloatArray of shape (r, m)

    Returns
    -------
    FloatArray of shape (r,)
        1 where all pairs are alike on both sides.

    Examples
    --------
    >>> adjusted_rand(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 2]), np.ones((1, 4))).round(4)
    array([0.5714])
    """
    cells = a * (int(b.max()) + 1) + b
    both, one, other = (_pairs(labels, weights) for labels in (cells, a, b))
    every = _pairs(np.zeros_like(a), weights)
    expected = np.divide(one * other, every, out=np.zeros_like(every), where=every > 0)
    room = (one + other) / 2.0 - expected
    index: FloatArray = np.ones_like(room)
    np.divide(both - expected, room, out=index, where=room > 1e-12)
    return index


def _pairs(labels: IntArray, weights: FloatArray) -> FloatArray:
    """Sum the products of weights over pairs of different rows with the same label."""
    _, places = np.unique(labels, return_inverse=True)
    member = np.zeros((len(labels), int(places.max()) + 1))
    member[np.arange(len(labels)), places] = 1.0
    sums: FloatArray = ((weights @ member) ** 2).sum(axis=1) - (weights**2).sum(axis=1)
    return sums / 2.0
