"""From rows and canonical scores to what a search gives back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IntArray
from isthmus.stores.base import Found

__all__ = ["answers", "best", "no_rows"]


def best(rows: IntArray, scores: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
    """Sort candidates of shape (m, c) by score, then by row, and keep k; row -1 goes last.

    Examples
    --------
    >>> best(np.array([[7, 3, -1]]), np.float32([[0.5, 0.5, np.nan]]), 2)[0].tolist()
    [[3, 7]]
    """
    scores = np.where(rows < 0, -np.inf, scores)
    places = np.where(rows < 0, np.iinfo(np.int64).max, rows)
    order = np.lexsort((places, -scores), axis=1)[:, :k]
    rows = np.take_along_axis(rows, order, axis=1)
    scores = np.take_along_axis(scores, order, axis=1).astype(np.float32)
    scores[rows < 0] = np.nan
    return rows, scores


def no_rows(n_queries: int, k: int) -> tuple[IntArray, FloatArray]:
    """Return the rows and scores of queries that found nothing."""
    rows = np.full((n_queries, k), -1, np.int64)
    return rows, np.full((n_queries, k), np.nan, np.float32)


def answers(
    rows: IntArray,
    scores: FloatArray,
    *,
    ids: npt.NDArray[np.object_],
    native: Callable[[FloatArray], FloatArray],
) -> Found:
    """Name the rows of a search.

    Parameters
    ----------
    rows : IntArray of shape (m, k)
        -1 where there is none.
    scores : FloatArray of shape (m, k)
    ids : array of str objects of shape (n,)
        By row.
    native : callable
        Turns canonical similarities into the database's own scores.
    """
    found = rows >= 0
    named: npt.NDArray[np.object_] = np.full(rows.shape, "", object)
    named[found] = ids[rows[found]]
    return Found(ids=named.astype(np.str_), native_scores=native(scores), scores=scores)
