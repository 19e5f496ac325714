"""Keypoint-guided cost: rows as distributions over their anchors, compared by Jensen-Shannon.

    R(z)_k = exp(-d(z, a_k) / tau) / sum over l of exp(-d(z, a_l) / tau)
    C(x, y) = JS(R(x) | R(y)) = H((R(x) + R(y)) / 2) - H(R(x)) / 2 - H(R(y)) / 2

with cosine distances and the entropy H (AnchorDOT, appendix C.3.2); without the mask of the first
paper. When to use it: as a rival of `anchor_cost`. Time grows with n_source * n_target * n_anchors
logarithms: the whole cost is kept, and more than 100 million entries are refused.
Shapes: (n_source, dim_source) and (n_target, dim_target) to (n_source, n_target).
References: Gu, Yang, Zeng, Sun and Xu (2022).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray
from isthmus._validate import check_positive
from isthmus.transport._anchor_distances import AnchorDistances
from isthmus.transport.cost import StoredCost

__all__ = ["kpg_rl_cost"]

BLOCK = 1 << 18
"""Numbers whose logarithms are in memory at once, per thread: 1 MB."""

LEAST = np.float32(1e-30)
"""Smallest share of a profile: its logarithm is finite and no entropy notices it."""


def kpg_rl_cost(
    source: npt.ArrayLike,
    target: npt.ArrayLike,
    anchors_source: npt.ArrayLike,
    anchors_target: npt.ArrayLike,
    *,
    tau: float = 0.1,
) -> StoredCost:
    """Return the Jensen-Shannon divergence of the relation profiles, for all rows of both sides.

    Parameters
    ----------
    source : array-like of shape (n_source, dim_source)
    target : array-like of shape (n_target, dim_target)
    anchors_source : array-like of shape (n_anchors, dim_source)
    anchors_target : array-like of shape (n_anchors, dim_target)
        Row k of both is one anchor pair.
    tau : float, default 0.1
        Temperature of the profiles, as a share of the largest distance of a side (Gu et al. 2022).

    Returns
    -------
    StoredCost
        From 0 to log 2.

    Raises
    ------
    ParameterError
        More than 100 million entries, or a temperature that is not over 0.
    ZeroVectorError, CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError

    Examples
    --------
    >>> axes = np.eye(2)
    >>> kpg_rl_cost(axes, axes, axes, axes).matrix.round(3)
    array([[0.   , 0.693],
           [0.693, 0.   ]], dtype=float32)
    """
    check_positive(tau, name="tau")
    near = AnchorDistances.of(source, target, anchors_source, anchors_target)
    mine, theirs = _profiles(near.source, tau), _profiles(near.target, tau)
    entropies = _entropies(mine), _entropies(theirs)
    shape, width = (len(mine), len(theirs)), mine.shape[1]
    step = max(1, BLOCK // width)

    def diverge(rows: slice) -> FloatArray:
        out = np.empty((rows.stop - rows.start, shape[1]), dtype=np.float32)
        for place, row in enumerate(range(rows.start, rows.stop)):
            for start in range(0, shape[1], step):
                block = slice(start, start + step)
                mean = (theirs[block] + mine[row]) * np.float32(0.5)
                out[place, block] = _entropies(mean) - entropies[1][block] / 2
            out[place] -= entropies[0][row] / 2
        np.maximum(out, np.float32(0), out=out)
        return out

    return StoredCost.of(shape, diverge, rows=16)


def _profiles(distances: FloatArray, tau: float) -> FloatArray:
    """Return the softmax over distances to anchors (n, n_anchors), float32."""
    scale = tau * max(float(distances.max()), 1e-12)
    logs = (distances.min(axis=1, keepdims=True) - distances) / np.float32(scale)
    shares: FloatArray = np.exp(logs)
    shares /= shares.sum(axis=1, keepdims=True)
    np.maximum(shares, LEAST, out=shares)
    return shares


def _entropies(shares: FloatArray) -> FloatArray:
    """Return the entropy of each row, in nats: (n,) float32."""
    product = np.log(shares)
    product *= shares
    entropies: FloatArray = -product.sum(axis=1)
    return entropies
