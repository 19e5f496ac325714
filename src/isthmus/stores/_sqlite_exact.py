"""An exact search by sqlite-vec of rows that are not in memory, for a few queries.

It ends in the same scores and the same order as an index in memory: what finds the candidates only
decides how fast they are found.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import apsw
import numpy as np

from isthmus._types import FloatArray, IntArray, Metric
from isthmus.neighbors import top_k
from isthmus.stores._answers import no_rows
from isthmus.stores._sqlite_rows import RowTable

__all__ = ["DISTANCES", "search_nearest"]

# What sqlite-vec has; there is no inner product.
DISTANCES: Mapping[Metric, str] = {"cosine": "vec_distance_cosine", "l2": "vec_distance_l2"}

SPARE = 16  # candidates beyond k, among which rounding may decide
WIDEN = 8
ROUNDING = 2.0**-24


def search_nearest(
    connection: apsw.Connection,
    rows: RowTable,
    query: FloatArray,
    *,
    k: int,
    metric: Metric,
    where: Mapping[str, Any],
) -> tuple[IntArray, FloatArray] | None:
    """Search one query of shape (1, dim) by sqlite-vec; numbers and scores of shape (1, at most k).

    Its float32 distances find more candidates than asked for, and those are scored by the fixed
    formula. When a row that was left out could still belong to the k best, more are asked for.
    None when the distances cannot be trusted (they overflowed).
    """
    limit = k + SPARE
    while True:
        numbers, distances = rows.nearest(
            connection, DISTANCES[metric], query[0], limit=limit, where=where
        )
        if not np.isfinite(distances).all():
            return None
        if not len(numbers):
            return no_rows(1, 0)
        block = rows.by_number(connection, np.sort(numbers))
        found = top_k(query, block.vectors, k=min(k, len(numbers)), metric=metric)
        complete = len(numbers) < limit
        if complete or found.scores[0, -1] > _best_left_out(distances[-1], metric, rows.dim):
            return block.numbers[found.rows], found.scores
        limit *= WIDEN


def _best_left_out(distance: float, metric: Metric, dim: int) -> np.float32:
    """Bound the score of rows whose float32 distance is at least this.

    A float32 sum of d products is off by at most d roundings of the product of the lengths (Higham
    2002, section 3.1); the cosine divides by two such sums.
    """
    if metric == "cosine":
        return np.float32(1.0 - distance + 2.0 * (dim + 16) * ROUNDING)
    return np.float32(-distance * (1.0 - (dim + 16) * ROUNDING))
