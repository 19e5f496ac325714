"""Squared distance of each mapped row to its own target.

    L = sum over i of |f(x_i) - y_i|^2

When to use it: to compare with; it looks at each row alone.
Reference: HVMap, section 3.5.1 (the natural baseline).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["mse"]


def mse(mapped: Tensor, target: Tensor) -> Tensor:
    """Return the loss of each row, shape (b,).

    Parameters
    ----------
    mapped, target : Tensor of shape (b, dim)
        Of length one where the space is normalised.
    """
    return (mapped - target).square().sum(dim=1)
