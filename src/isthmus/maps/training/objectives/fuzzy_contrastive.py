"""Fuzzy contrastive loss: the mapped row must be as similar to every target as its own target is.

    L = sum over i, j of (mu(y_i, y_j) - d(f(x_i), y_j))^2,   mu and d one minus the cosine,

so that each term is ``((f(x_i) - y_i) . y_j)^2``: one product of two matrices, never an array of
batch x batch x dimension.

When to use it: the default. It keeps the similarities that a search of the untouched target
collection ranks by.
Reference: HVMap, section 3.5.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["fuzzy_contrastive"]


def fuzzy_contrastive(mapped: Tensor, target: Tensor) -> Tensor:
    """Return the loss of each row, shape (b,): the mean over the targets of the batch.

    Parameters
    ----------
    mapped, target : Tensor of shape (b, dim)
        Of length one where the space is normalised.
    """
    return ((mapped - target) @ target.T).square().mean(dim=1)
