"""Embedding-Converter's objective: each row at its place, and the distances among rows kept.

    L = sum over i of |f(x_i) - y_i|^2
        + mean over all j of (d(f(x_i), f(x_j)) - d(y_i, y_j))^2              (global)
        + mean over the k targets j nearest to y_i of the same                (local)

with d half the squared distance: one minus the cosine where rows have length one.

When to use it: to compare with; by `EmbeddingConverter`. Like `rkd_mse` it looks at distances among
mapped rows, while a search compares mapped rows with native ones.
Reference: Yoon and Arik, "Embedding-Converter", ACL 2025: a point-wise term and distances kept
globally and locally. Its text was not at hand: the form of d, the weights of the three terms (one
each), the place of the neighbours (the batch) and k = 10 are this project's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["embedding_converter"]

NEIGHBORS = 10


def embedding_converter(mapped: Tensor, target: Tensor) -> Tensor:
    """Return the loss of each row, shape (b,): its own distance, and two means over the batch.

    Parameters
    ----------
    mapped, target : Tensor of shape (b, dim)
        Of length one where the space is normalised.
    """
    apart = _distances(target)
    error = (_distances(mapped) - apart).square()
    place = (mapped - target).square().sum(dim=1)
    k = min(NEIGHBORS, len(target) - 1)
    if not k:  # a row alone has no distances to keep
        return place
    nearest = apart.detach().clone().fill_diagonal_(float("inf")).topk(k, largest=False).indices
    return place + error.mean(dim=1) + error.gather(1, nearest).mean(dim=1)


def _distances(rows: Tensor) -> Tensor:
    """Return half the squared distances among rows, (b, b), by one product."""
    half = rows.square().sum(dim=1) / 2
    return half[:, None] + half - rows @ rows.T
