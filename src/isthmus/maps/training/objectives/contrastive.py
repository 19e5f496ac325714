"""Contrastive loss with a fixed margin: pairs together, all others a margin apart.

    L = sum over i, j of [i = j] |f(x_i) - y_j|^2 + [i != j] max(0, m - |f(x_i) - y_j|)^2

When to use it: to compare with. All negatives are pushed equally far, however near their documents
are to each other.
Reference: HVMap, section 3.5.1 (the basic form that its loss generalises); margin m = 1, under the
distance of unrelated rows of length one, the square root of 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["contrastive"]

MARGIN = 1.0
LEAST_SQUARE = 1e-9
"""Under the root, whose slope has no end at 0."""


def contrastive(mapped: Tensor, target: Tensor) -> Tensor:
    """Return the loss of each row, shape (b,): the mean over the targets of the batch.

    Parameters
    ----------
    mapped, target : Tensor of shape (b, dim)
        Of length one where the space is normalised.
    """
    lengths = mapped.square().sum(dim=1)[:, None] + target.square().sum(dim=1)
    squared = (lengths - 2 * (mapped @ target.T)).clamp(min=LEAST_SQUARE)
    apart = (MARGIN - squared.sqrt()).clamp(min=0).square()
    together = squared.diagonal() - apart.diagonal()
    return (apart.sum(dim=1) + together) / len(target)
