"""Outlines of stores: centroids, how many rows lie around each, and how they spread.

From an outline follows how many rows of a store are at least so similar to a query, without looking
at any row: around a centroid c with n rows the similarities to a query q are taken as normal, with
mean q.c and variance q'Sq, S being the covariance of the store's rows around their centroids (its
first directions, and the mean variance of the rest).

Outlines of several stores live in one space, the hub's, so that their counts can be compared. An l2
space is turned into one of inner products: -|q - x|^2 / 2 orders as -|q - x| does, and is linear in
(q, 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isthmus._linalg import normalise, pca
from isthmus._rowwise import affine
from isthmus._types import FloatArray, Metric

__all__ = ["StoreOutline", "as_products", "expected_counts"]

SPREAD = 1.4
"""Factor on the standard deviation: the tails of real clusters are heavier than a normal's. Chosen
on splits that are not reported (``benchmarks/federate_budget.py``, seeds 100 and over)."""

LEAST_VARIANCE = 1e-8
STEPS = 8
"""Towards the threshold: the count above it is then k within a few percent."""

LEAST_COUNT = 1e-30

QUERY_ROWS = 1024
"""Queries at a time: queries x centroids numbers are in memory."""


@dataclass(frozen=True, eq=False)
class StoreOutline:
    """A store in c centroids.

    Parameters
    ----------
    centroids : FloatArray of shape (c, dim), float32
        None (c = 0) for an empty store.
    sizes : FloatArray of shape (c,), float32
        Rows of the store around each.
    directions : FloatArray of shape (dim, r), float32
        Of the rows around their centroids, most variance first.
    variances : FloatArray of shape (r + 1,), float32
        Along each, and the mean over all other directions.

    Examples
    --------
    >>> rows = np.random.default_rng(0).standard_normal((100, 8)).astype(np.float32)
    >>> outline = StoreOutline.fit(rows, count=500, n_centroids=4, n_directions=2, seed=0)
    >>> float(outline.sizes.sum())
    500.0
    """

    centroids: FloatArray
    sizes: FloatArray
    directions: FloatArray
    variances: FloatArray

    @classmethod
    def fit(
        cls, rows: FloatArray, *, count: int, n_centroids: int, n_directions: int, seed: int
    ) -> StoreOutline:
        """Outline a store from a sample of its rows.

        Parameters
        ----------
        rows : FloatArray of shape (n, dim)
            As `as_products` gives them.
        count : int
            Rows of the whole store.
        n_centroids, n_directions : int
            At most so many.
        seed : int
        """
        from isthmus.spaces.sampling import find_centroids

        n, dim = rows.shape
        if not n:
            return cls.empty(dim)
        centroids = find_centroids(rows, min(n_centroids, n), seed=seed)
        squares = np.square(centroids).sum(axis=1)
        nearest = (squares - 2 * affine(rows, centroids.T)).argmin(axis=1)
        sizes = np.bincount(nearest, minlength=len(centroids))
        _, directions, variances = pca(rows - centroids[nearest], min(n_directions, dim))
        total = float(np.square(rows - centroids[nearest], dtype=np.float64).sum()) / n
        others = max(1, dim - directions.shape[1])
        rest = max(LEAST_VARIANCE, (total - float(variances.sum())) / others)
        return cls(
            centroids=centroids,
            sizes=(sizes * (count / n)).astype(np.float32),
            directions=directions.astype(np.float32),
            variances=np.append(variances, rest).astype(np.float32),
        )

    @classmethod
    def empty(cls, dim: int) -> StoreOutline:
        """Outline a store without rows."""
        nothing = np.zeros((0, dim), dtype=np.float32)
        return cls(nothing, np.zeros(0, np.float32), nothing.T, np.zeros(1, np.float32))

    def deviation(self, queries: FloatArray) -> FloatArray:
        """Return the standard deviation of similarities around a centroid, (m,), float32."""
        along, rest = self.variances[:-1], self.variances[-1]
        squares = np.square(queries).sum(axis=1) * rest
        if len(along):
            squares += (np.square(affine(queries, self.directions)) * (along - rest)).sum(axis=1)
        deviation: FloatArray = np.sqrt(np.maximum(squares, LEAST_VARIANCE))
        return deviation


def as_products(rows: FloatArray, metric: Metric, *, query: bool) -> FloatArray:
    """Return rows whose inner products order as the metric's similarities do, float32.

    Parameters
    ----------
    rows : FloatArray of shape (n, dim)
    metric : Metric
    query : bool
        Queries and stored rows differ for l2, where both get one column more.

    Examples
    --------
    >>> stored = as_products(np.array([[3.0, 4.0]]), "l2", query=False)
    >>> stored.tolist(), as_products(np.array([[1.0, 0.0]]), "l2", query=True).tolist()
    ([[3.0, 4.0, -12.5]], [[1.0, 0.0, 1.0]])
    """
    rows = np.asarray(rows, dtype=np.float32)
    if metric == "cosine":
        return normalise(rows) if len(rows) else rows
    if metric == "dot":
        return rows
    column = (
        np.ones(len(rows), np.float32) if query else np.square(rows).sum(axis=1) / np.float32(-2)
    )
    return np.column_stack([rows, column])


def expected_counts(outlines: Sequence[StoreOutline], queries: FloatArray, k: int) -> FloatArray:
    """Return how many of the k most similar rows of all stores each store is expected to hold.

    The threshold is where the stores together are expected to hold k rows.

    Parameters
    ----------
    outlines : sequence of StoreOutline
    queries : FloatArray of shape (m, dim)
        As `as_products` gives them.
    k : int

    Returns
    -------
    FloatArray of shape (m, n_stores)
        Sums to about k, or to the number of rows where that is smaller.
    """
    blocks = [
        _expected(outlines, queries[start : start + QUERY_ROWS], k)
        for start in range(0, len(queries), QUERY_ROWS)
    ]
    return np.concatenate(blocks) if blocks else np.zeros((0, len(outlines)), np.float32)


def _expected(outlines: Sequence[StoreOutline], queries: FloatArray, k: int) -> FloatArray:
    filled = [outline for outline in outlines if len(outline.sizes)]
    counts = np.zeros((len(queries), len(outlines)), dtype=np.float32)
    if not filled:
        return counts
    sizes = np.concatenate([outline.sizes for outline in filled])
    mean = affine(queries, np.concatenate([outline.centroids for outline in filled]).T)
    widths = [
        np.repeat(SPREAD * outline.deviation(queries)[:, None], len(outline.sizes), axis=1)
        for outline in filled
    ]
    wide = np.concatenate(widths, axis=1).astype(np.float32)
    each = _above(mean, wide, sizes, _threshold(mean, wide, sizes, k))
    ends = np.cumsum([len(outline.sizes) for outline in filled])[:-1]
    holders = [place for place, outline in enumerate(outlines) if len(outline.sizes)]
    for place, part in zip(holders, np.split(each, ends, axis=1), strict=True):
        counts[:, place] = part.sum(axis=1)
    return counts


def _above(
    mean: FloatArray, wide: FloatArray, sizes: FloatArray, threshold: FloatArray
) -> FloatArray:
    """Return how many rows around each centroid are expected over the threshold, (m, c)."""
    from scipy.special import ndtr

    away = mean - threshold[:, None]
    away /= wide
    over: FloatArray = ndtr(away, out=away)
    over *= sizes
    return over


def _threshold(mean: FloatArray, wide: FloatArray, sizes: FloatArray, k: int) -> FloatArray:
    """Return where k rows are expected to lie above, (m,): false position on the logarithm."""

    def excess(threshold: FloatArray) -> FloatArray:
        count = _above(mean, wide, sizes, threshold).sum(axis=1)
        logarithm: FloatArray = np.log(np.maximum(count, LEAST_COUNT)) - np.log(np.float32(k))
        return logarithm

    low, high = (mean - 2 * wide).min(axis=1), (mean + 4 * wide).max(axis=1)
    at_low, at_high = excess(low), excess(high)
    middle = low
    for _ in range(STEPS):
        span = at_low - at_high
        middle = np.where(span > 0, low + (high - low) * at_low / np.where(span > 0, span, 1), low)
        middle = np.asarray(np.clip(middle, low, high))
        at = excess(middle)
        over = at > 0
        # the end that stays counts half (Illinois), so that both ends close in
        low, high = np.where(over, middle, low), np.where(over, high, middle)
        at_low, at_high = np.where(over, at, at_low / 2), np.where(over, at_high / 2, at)
    return np.asarray(middle)
