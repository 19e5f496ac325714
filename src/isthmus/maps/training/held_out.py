"""Held-out preservation: how many of a row's native neighbours the mapped row finds.

What early stopping looks at. Neighbours are searched among the target collection where it is
given, as in use: among the targets of some hundred training pairs near-ties are missing, and what
keeps them apart cannot show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Preservation"]

NEIGHBORS = 10
MOST_TARGETS = 10_000
"""Of more targets the first: each look is a product with all of them."""


@dataclass(frozen=True)
class Preservation:
    """Neighbour overlap at 10 of mapped and native held-out rows, among some targets.

    Parameters
    ----------
    source : Tensor of shape (m, dim_source)
        Held-out source rows.
    targets : Tensor of shape (n, dim_target)
        Where neighbours are searched.
    native : Tensor of shape (m, k)
        Rows of ``targets`` that are nearest to the held-out targets.
    """

    source: Tensor
    targets: Tensor
    native: Tensor

    @classmethod
    def of(cls, source: Tensor, target: Tensor, targets: Tensor) -> Preservation:
        """Search the native neighbours of held-out targets (m, dim_target)."""
        targets = targets[:MOST_TARGETS]
        k = min(NEIGHBORS, len(targets))
        return cls(source, targets, (target @ targets.T).topk(k, dim=1).indices)

    def score(self, mapped: Tensor) -> float:
        """Return the mean share of native neighbours that mapped rows (m, dim_target) find."""
        k = self.native.shape[1]
        found = (mapped @ self.targets.T).topk(k, dim=1).indices
        kept = (found[:, :, None] == self.native[:, None, :]).sum().item()
        return float(kept) / self.native.numel()
