"""K-means from given rows, so that two spaces can be clustered from the same start.

The rooms above have one of their own (`isthmus.spaces.sampling.find_centroids`): for many rows and
centroids in float32, without a say in the start.
"""

from __future__ import annotations

import numpy as np

from isthmus._types import FloatArray, IntArray, Metric

__all__ = ["cluster_count", "cluster_from", "cluster_rows", "ready_rows"]

# Starts, of which the tightest clustering is kept.
STARTS = 4
ITERATIONS = 100


def cluster_rows(rows: FloatArray, count: int, *, seed: int) -> tuple[IntArray, IntArray]:
    """Cluster rows from k-means++ starts and keep the tightest clustering.

    Parameters
    ----------
    rows : FloatArray of shape (m, dim), float64
    count : int
        At most m.
    seed : int

    Returns
    -------
    labels : IntArray of shape (m,)
    start : IntArray of shape (count,)
        The rows that the centres started from.
    """
    from sklearn.cluster import kmeans_plusplus

    tries = []
    for start_seed in np.random.SeedSequence(seed).generate_state(STARTS):
        _, start = kmeans_plusplus(rows, count, random_state=int(start_seed))
        tries.append((*cluster_from(rows, start), start.astype(np.int64)))
    labels, _, start = min(tries, key=lambda found: found[1])
    return labels, start


def cluster_from(rows: FloatArray, start: IntArray) -> tuple[IntArray, float]:
    """Run Lloyd's algorithm from given rows; a cluster that empties keeps its centre.

    Parameters
    ----------
    rows : FloatArray of shape (m, dim), float64
    start : IntArray of shape (count,)

    Returns
    -------
    labels : IntArray of shape (m,)
    inertia : float
        Sum of squared distances to the centres.
    """
    centres = rows[start]
    squares = float((rows**2).sum())
    labels = np.full(len(rows), -1)
    inertia = float("inf")
    for _ in range(ITERATIONS):
        distances = (centres**2).sum(axis=1) - 2.0 * (rows @ centres.T)
        nearest = distances.argmin(axis=1)
        inertia = squares + float(distances.min(axis=1).sum())
        if (nearest == labels).all():
            break
        labels = nearest
        member = np.zeros((len(centres), len(rows)))
        member[labels, np.arange(len(rows))] = 1.0
        sizes = member.sum(axis=1, keepdims=True)
        centres = np.where(sizes > 0, member @ rows / np.maximum(sizes, 1.0), centres)
    return labels, inertia


def cluster_count(rows: int) -> int:
    """Return the default number of clusters: sqrt(rows / 2), from 2 to 20, at most one per row."""
    return min(rows, int(np.clip(round(np.sqrt(rows / 2)), 2, 20)))


def ready_rows(rows: FloatArray, metric: Metric) -> FloatArray:
    """Return a float64 copy, scaled to unit length for the cosine (zero rows stay zero).

    Not `isthmus._linalg.normalise`: in float32 rows that are equally far would differ by rounding.
    """
    wide = rows.astype(np.float64)
    if metric == "cosine":
        lengths = np.linalg.norm(wide, axis=1, keepdims=True)
        wide /= np.where(lengths > 0, lengths, 1.0)
    return wide
