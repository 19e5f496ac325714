"""Bridge cost: the shortest path from a source row to a target row over one anchor pair.

    C(x, y) = min over k of  d_X(x, a_k) + d_Y(b_k, y)            (AnchorDOT, appendix C.3.1)

with cosine distances. When to use it: as a rival of `anchor_cost`; it asks only the one anchor that
lies best between two rows. Time grows with n_source * n_target * n_anchors and nothing of it is a
matrix product: the whole cost is kept, and more than 100 million entries are refused.
Shapes: (n_source, dim_source) and (n_target, dim_target) to (n_source, n_target).
References: Gholamzadeh and Sajid (2025).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray
from isthmus.transport._anchor_distances import AnchorDistances
from isthmus.transport.cost import StoredCost

__all__ = ["bridge_cost"]

BLOCK = 1 << 16
"""Entries of a block, which is gone over once per anchor: 256 KB stay in a core's cache."""


def bridge_cost(
    source: npt.ArrayLike,
    target: npt.ArrayLike,
    anchors_source: npt.ArrayLike,
    anchors_target: npt.ArrayLike,
) -> StoredCost:
    """Return the length of the shortest path over one anchor pair, for all rows of both sides.

    Parameters
    ----------
    source : array-like of shape (n_source, dim_source)
    target : array-like of shape (n_target, dim_target)
    anchors_source : array-like of shape (n_anchors, dim_source)
    anchors_target : array-like of shape (n_anchors, dim_target)
        Row k of both is one anchor pair.

    Returns
    -------
    StoredCost
        From 0 to 4.

    Raises
    ------
    ParameterError
        More than 100 million entries.
    ZeroVectorError, CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError

    Examples
    --------
    >>> axes = np.eye(2)
    >>> bridge_cost(axes, axes, axes[:1], axes[:1]).matrix
    array([[0., 1.],
           [1., 2.]], dtype=float32)
    """
    near = AnchorDistances.of(source, target, anchors_source, anchors_target)
    others = np.ascontiguousarray(near.target.T)
    shape = len(near.source), len(near.target)

    def shortest(rows: slice) -> FloatArray:
        mine = near.source[rows]
        best = np.full((len(mine), shape[1]), np.inf, dtype=np.float32)
        path = np.empty_like(best)
        for anchor in range(len(others)):
            np.add(mine[:, anchor, None], others[anchor], out=path)
            np.minimum(best, path, out=best)
        return best

    return StoredCost.of(shape, shortest, rows=max(1, BLOCK // shape[1]))
