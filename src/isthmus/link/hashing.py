"""Distance-to-anchor hashes: where a vector lies, told by its distances to a view's anchors.

Two vectors of one object have like hashes in two spaces that cannot be compared otherwise
(vector linking, sections 3 and 4).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import numpy as np

from isthmus._linalg import normalise
from isthmus._threads import one_blas_thread
from isthmus._types import FloatArray

__all__ = ["HashDistance", "anchor_distances", "kernel_hashes", "median_distance"]

HashDistance = Literal["cosine", "l2"]

BLOCK_ROWS = 1_024

EQUAL = 1e-12
"""Squared distances under this share of the largest are rounding: the two are equal."""


def anchor_distances(
    points: FloatArray, anchors: FloatArray, *, distance: HashDistance
) -> FloatArray:
    """Return the distance of every point to every anchor.

    Parameters
    ----------
    points : FloatArray of shape (n, dim), float32
        Rows of length one.
    anchors : FloatArray of shape (n_anchors, dim), float32
        Rows of length one.
    distance : {"cosine", "l2"}
        1 - cosine, or the length of the difference.

    Returns
    -------
    FloatArray of shape (n, n_anchors), float32

    Examples
    --------
    >>> axes = np.eye(2, dtype=np.float32)
    >>> anchor_distances(axes, axes, distance="cosine").tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    out = np.empty((len(points), len(anchors)), np.float32)

    def fill(start: int) -> None:
        block = out[start : start + BLOCK_ROWS]
        np.matmul(points[start : start + BLOCK_ROWS], anchors.T, out=block)
        np.subtract(1.0, block, out=block)
        np.maximum(block, 0.0, out=block)
        if distance == "l2":
            block *= 2.0
            np.sqrt(block, out=block)

    _for_blocks(fill, len(points))
    return out


def median_distance(hashes: FloatArray) -> float:
    """Return the median of the L2 distances between hashes that differ; 1 if none do.

    Parameters
    ----------
    hashes : FloatArray of shape (n, size)
        A sample: all n^2 distances are in memory.

    Examples
    --------
    >>> median_distance(np.array([[0.0], [0.0], [3.0]]))
    3.0
    """
    rows = hashes - hashes.mean(axis=0, dtype=np.float64)  # small numbers: less cancels
    with one_blas_thread():
        products = rows @ rows.T
    lengths = np.einsum("ij,ij->i", rows, rows)
    squares = lengths[:, None] + lengths - 2.0 * products
    apart = squares[np.triu_indices(len(rows), 1)]
    apart = apart[apart > EQUAL * apart.max(initial=0.0)]
    return float(np.median(np.sqrt(apart))) if len(apart) else 1.0


def kernel_hashes(distances: FloatArray, *, bandwidth: float | None) -> FloatArray:
    """Return hashes of length one, to be compared by their inner product.

    Parameters
    ----------
    distances : FloatArray of shape (n, size), float32
        Of every point to the view's anchors.
    bandwidth : float, optional
        sigma of exp(-distance / sigma), which far anchors hardly move; None leaves the distances
        as they are (ablation "- Kernel" of Table 4).

    Returns
    -------
    FloatArray of shape (n, size), float32

    Examples
    --------
    >>> kernel_hashes(np.array([[0.0, 0.0]], np.float32), bandwidth=1.0).round(3).tolist()
    [[0.7070000171661377, 0.7070000171661377]]
    """
    if bandwidth is None:
        return normalise(distances)
    # A factor common to a row leaves its direction: with the nearest anchor at 1, none vanishes.
    nearest = distances.min(axis=1, keepdims=True)
    values = nearest - distances
    values /= np.float32(bandwidth)
    return normalise(np.exp(values, out=values))


def _for_blocks(work: Callable[[int], None], rows: int) -> None:
    """Do the work of every block of rows, on as many threads as the matrix library has."""
    starts = range(0, rows, BLOCK_ROWS)
    with one_blas_thread() as threads:
        if threads == 1 or len(starts) == 1:
            for start in starts:
                work(start)
            return
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, starts))
