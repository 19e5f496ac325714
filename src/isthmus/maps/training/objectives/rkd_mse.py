"""Relational knowledge distillation and squared distance: the geometry, and where it lies.

    L = sum over i, j of (d(y_i, y_j) - d(f(x_i), f(x_j)))^2 + |f(x_i) - y_i|^2,

d one minus the cosine.

When to use it: to compare with. It keeps the distances among mapped rows, while a search compares a
mapped row with native ones; alone it says nothing of where the rows lie, so the squared distance is
added, each with weight one.
References: Park, Kim, Lu and Cho, "Relational knowledge distillation", CVPR 2019; HVMap, section
3.5.2 and Table 3 (RKD + MSE).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["rkd_mse"]


def rkd_mse(mapped: Tensor, target: Tensor) -> Tensor:
    """Return the loss of each row, shape (b,): the mean over the batch, and its own distance.

    Parameters
    ----------
    mapped, target : Tensor of shape (b, dim)
        Of length one where the space is normalised.
    """
    among = (mapped @ mapped.T - target @ target.T).square().mean(dim=1)
    return among + (mapped - target).square().sum(dim=1)
