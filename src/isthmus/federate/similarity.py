"""Canonical similarity of each query and its own candidates, without an n x m matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isthmus._linalg import normalise
from isthmus._types import FloatArray, IntArray

if TYPE_CHECKING:
    from isthmus.spaces import Space

__all__ = ["pair_similarity"]

BLOCK_BYTES = 2**21
"""Gathered candidate vectors at a time: about a core's second-level cache."""


def pair_similarity(
    queries: FloatArray, vectors: FloatArray, rows: IntArray, *, space: Space
) -> FloatArray:
    """Return the similarity of each query and the vectors at its rows, float32 (m, k).

    Cosine, inner product, or minus the unsquared distance, as the space says. A query's numbers do
    not depend on the queries beside it.

    Parameters
    ----------
    queries : FloatArray of shape (m, dim)
    vectors : FloatArray of shape (n, dim)
        Each candidate once, however many queries found it; of unit length where the space is
        normalised.
    rows : IntArray of shape (m, k)
        Row in ``vectors`` of each query's candidates; -1 for none, which gives NaN.
    space : Space

    Examples
    --------
    >>> from isthmus.spaces import Space
    >>> pair_similarity(
    ...     np.array([[0, 2]], dtype=np.float32), np.array([[3, 0], [0, 3]], dtype=np.float32),
    ...     np.array([[1, 0, -1]]), space=Space(model="m", dim=2),
    ... ).tolist()
    [[1.0, 0.0, nan]]
    """
    similarities = np.full(rows.shape, np.nan, dtype=np.float32)
    if not len(vectors) or not rows.size:
        return similarities
    if space.metric == "cosine":
        queries = normalise(queries)
        vectors = vectors if space.normalized else normalise(vectors)
    step = max(1, BLOCK_BYTES // (rows.shape[1] * vectors.shape[1] * 4))
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        near = vectors[np.maximum(rows[block], 0)]
        if space.metric == "l2":
            away = near - queries[block, None, :]
            similarities[block] = -np.sqrt((away * away).sum(axis=2))
        else:
            similarities[block] = np.matmul(near, queries[block, :, None])[:, :, 0]
    similarities[rows < 0] = np.nan
    return similarities
