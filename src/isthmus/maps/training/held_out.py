"""Held-out preservation: how many of a row's native neighbours the mapped row finds.

What early stopping looks at. Neighbours are searched among the target collection where it is
given, as in use: among the targets of some hundred training pairs near-ties are missing, and what
keeps them apart cannot show. They are those by the target space's metric.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isthmus._linalg import normalise
from isthmus._types import FloatArray, Metric

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Preservation", "as_neighbors", "draw_targets"]

NEIGHBORS = 10
"""The neighbours that a bridge's report counts."""
MOST_TARGETS = 10_000
"""A round number: each look is a product with all of them."""


def draw_targets(targets: FloatArray, *, seed: int) -> FloatArray:
    """Return the rows in their order; of more than 10,000 a random 10,000.

    Examples
    --------
    >>> draw_targets(np.ones((3, 2)), seed=0).shape
    (3, 2)
    """
    if len(targets) <= MOST_TARGETS:
        return targets
    rng = np.random.default_rng([seed, 3])
    return targets[np.sort(rng.choice(len(targets), MOST_TARGETS, replace=False))]


def as_neighbors(targets: FloatArray, metric: Metric) -> tuple[FloatArray, FloatArray]:
    """Return rows U (n, dim) and numbers v (n,) so that row x is nearest where x U^T + v is large.

    By the cosine, U has rows of length one; by l2, v is minus half the squared length.

    Examples
    --------
    >>> as_neighbors(np.array([[3.0, 4.0]]), "cosine")[0].tolist()
    [[0.6000000238418579, 0.800000011920929]]
    >>> as_neighbors(np.array([[3.0, 4.0]]), "l2")[1].tolist()
    [-12.5]
    """
    rows, nothing = targets.astype(np.float32, copy=False), np.zeros(len(targets), np.float32)
    if metric == "cosine":
        return normalise(rows), nothing
    if metric == "dot":
        return rows, nothing
    squares = np.sum(rows.astype(np.float64) ** 2, axis=1)
    return rows, (-squares / 2).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Preservation:
    """Neighbour overlap at 10 of mapped and native held-out rows, among some targets.

    Parameters
    ----------
    source : Tensor of shape (m, dim_source)
        Held-out source rows.
    targets : Tensor of shape (n, dim_target)
        Where neighbours are searched.
    offset : Tensor of shape (n,)
        Added to the inner product with each target, see `as_neighbors`.
    native : Tensor of shape (m, k)
        Rows of ``targets`` that are nearest to the held-out targets.
    """

    source: Tensor
    targets: Tensor
    offset: Tensor
    native: Tensor

    @classmethod
    def of(cls, source: Tensor, target: Tensor, targets: Tensor, offset: Tensor) -> Preservation:
        """Search the native neighbours of held-out targets (m, dim_target)."""
        k = min(NEIGHBORS, len(targets))
        near = _nearest(target @ targets.T + offset, k)
        native = near.nonzero()[:, 1].reshape(len(target), k)
        return cls(source, targets, offset, native)

    def score(self, mapped: Tensor) -> float:
        """Return the mean share of native neighbours that mapped rows (m, dim_target) find."""
        near = _nearest(mapped @ self.targets.T + self.offset, self.native.shape[1])
        return float(near.gather(1, self.native).sum().item()) / self.native.numel()


def _nearest(scores: Tensor, k: int) -> Tensor:
    """Return which k of each row of scores (m, n) are the largest; of equal ones, the first."""
    last = scores.topk(k, dim=1).values[:, -1:]
    above, equal = scores > last, scores == last
    room = k - above.sum(1, keepdim=True)
    return above | (equal & (equal.cumsum(1) <= room))
