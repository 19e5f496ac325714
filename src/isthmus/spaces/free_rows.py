"""Rows of a set that stand in no pair, by their ids and by their vectors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isthmus._linalg import normalise
from isthmus._types import FloatArray, IdArray, IntArray
from isthmus.neighbors import top_k
from isthmus.spaces._mapped import gather
from isthmus.spaces.sampling import draw_rows
from isthmus.spaces.vector_set import VectorSet

__all__ = ["MOST_ROWS", "free_rows"]

MOST_ROWS = 20_000
"""Of more rows than this, that many are drawn: what is done with them grows with their product."""
NEAR_COPY = 0.01
"""Distance from a paired row, as a share of its length, within which a row is a copy of it: what
numbers of 8 bits leave. Copies of held-out rows, if only rounded to 16 bits, raised a bridge's
held-out overlap from .538 to .578 and its verdict with it, where new rows got .539 (Climate-FEVER
in 48 directions, 100 pairs, `barycentric`)."""


def free_rows(vectors: VectorSet, ids: IdArray, paired: FloatArray, *, seed: int) -> IntArray:
    """Return rows of a set that stand in no pair, at most 20,000 drawn at random, in their order.

    Parameters
    ----------
    vectors : VectorSet
    ids : IdArray of shape (n,)
        Of this side of the pairs.
    paired : FloatArray of shape (n, dim)
        Vectors of this side. A copy of one under another id stands in a pair all the same: within a
        hundredth of its length, and where the metric is the cosine of whatever length.
    seed : int
    """
    free = np.ones(len(vectors), dtype=np.bool_)
    places = vectors.find(ids)
    free[places[places >= 0]] = False
    rows = np.flatnonzero(free)
    drawn = rows[draw_rows(len(rows), MOST_ROWS, seed=seed)]
    found = gather(vectors.vectors, drawn)
    if vectors.space.metric == "cosine":
        found, paired = normalise(found), normalise(paired)
    return drawn[~_copies(found, paired)]


def _copies(rows: FloatArray, paired: FloatArray) -> npt.NDArray[np.bool_]:
    """Tell which rows lie within a hundredth of its length from a paired one."""
    if not len(rows):
        return np.zeros(0, dtype=np.bool_)
    nearest = paired[top_k(rows, paired, k=1, metric="l2").rows[:, 0]].astype(np.float64)
    distance = np.linalg.norm(rows - nearest, axis=1)
    near: npt.NDArray[np.bool_] = distance <= NEAR_COPY * np.linalg.norm(nearest, axis=1)
    return near
