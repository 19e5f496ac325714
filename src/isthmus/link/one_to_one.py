"""Greedy one-to-one matching: the surest pair first, and no row twice."""

from __future__ import annotations

import numpy as np

from isthmus._types import FloatArray, IntArray

__all__ = ["one_to_one"]


def one_to_one(pairs: IntArray, score: FloatArray) -> IntArray:
    """Return which pairs to keep so that no row is in two, taken by decreasing score.

    Parameters
    ----------
    pairs : IntArray of shape (n, 2)
        Source row, target row.
    score : FloatArray of shape (n,)
        Equal scores are taken by source row, then by target row.

    Returns
    -------
    IntArray of shape (n_kept,)
        Places in ``pairs``, in the order taken.

    Examples
    --------
    >>> one_to_one(np.array([[0, 0], [0, 1], [1, 1]]), np.array([0.5, 0.9, 0.7])).tolist()
    [1]
    >>> one_to_one(np.array([[0, 0], [0, 1], [1, 1]]), np.array([0.9, 0.8, 0.7])).tolist()
    [0, 2]
    """
    if not len(pairs):
        return np.empty(0, np.int64)
    order = np.lexsort((pairs[:, 1], pairs[:, 0], -score))
    used_source = bytearray(int(pairs[:, 0].max()) + 1)
    used_target = bytearray(int(pairs[:, 1].max()) + 1)
    kept = []
    ordered = pairs[order]
    rows = zip(order.tolist(), ordered[:, 0].tolist(), ordered[:, 1].tolist(), strict=True)
    for place, source, target in rows:
        if not (used_source[source] or used_target[target]):
            used_source[source] = used_target[target] = 1
            kept.append(place)
    return np.array(kept, np.int64)
