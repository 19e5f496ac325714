"""The best columns of every row of a tile, with ties in a fixed order."""

from __future__ import annotations

import numpy as np

from isthmus._types import FloatArray, IntArray

__all__ = ["best_columns", "log_sums"]


def best_columns(tile: FloatArray, k: int) -> IntArray:
    """Return the k columns with the highest numbers of each row, best first.

    Equal numbers go to the lowest column, where the cut falls among them too.

    Parameters
    ----------
    tile : FloatArray of shape (n, m)
    k : int
        At most m.

    Examples
    --------
    >>> best_columns(np.array([[1.0, 3.0, 2.0, 3.0], [0.0, 0.0, 0.0, 0.0]]), 2).tolist()
    [[1, 3], [0, 1]]
    """
    if k == 1:
        first: IntArray = tile.argmax(axis=1)[:, None]
        return first
    if k < tile.shape[1]:
        top = np.argpartition(tile, tile.shape[1] - k, axis=1)[:, -k:]
        least = np.take_along_axis(tile, top, axis=1).min(axis=1, keepdims=True)
        tied = np.flatnonzero((tile >= least).sum(axis=1) > k)
        for row in tied:
            top[row] = np.argsort(-tile[row], kind="stable")[:k]
        top.sort(axis=1)
    else:
        top = np.broadcast_to(np.arange(tile.shape[1]), tile.shape)
    order = np.argsort(-np.take_along_axis(tile, top, axis=1), axis=1, kind="stable")
    return np.take_along_axis(top, order, axis=1)


def log_sums(tile: FloatArray) -> FloatArray:
    """Return the logarithm of the sum of the exponentials of each row: (n,) float64.

    Examples
    --------
    >>> log_sums(np.zeros((1, 4), dtype=np.float32)).round(4).tolist()
    [1.3863]
    """
    top = tile.max(axis=1)
    sums = np.exp(tile - top[:, None]).sum(axis=1, dtype=np.float64)
    total: FloatArray = np.log(sums) + top
    return total
