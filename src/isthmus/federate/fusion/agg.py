"""AGG: the lists of the sources, interleaved.

    AGG(A, B) = <a1, b1, a2, b2, ...>

When to use it: as the baseline that needs no scores at all. It assumes that relevant documents are
spread evenly over the sources, and loses when they are not; `Score` does not assume it.

Reference: HVMap, section 3.2 (AGG).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isthmus._types import FloatArray
from isthmus.federate.candidates import Candidates
from isthmus.federate.fusion.base import Fusion

__all__ = ["Agg"]


@dataclass(frozen=True, kw_only=True)
class Agg(Fusion):
    """Round robin over the sources in their order.

    The canonical score is one over the place in the interleaved list, so that no two are equal and
    a tool that sorts a run by score keeps the order.

    Examples
    --------
    >>> candidates = Candidates(
    ...     ids=np.array([["a1", "a2", "b1", "b2"]]),
    ...     similarities=np.array([[[0.9, 0.8, 0.2, 0.1]]], dtype=np.float32),
    ...     source=np.array([0, 0, 1, 1]), rank=np.array([1, 2, 1, 2]),
    ...     space=np.array([0, 0, 0, 0]), same=np.array([[0, 1, 2, 3]]),
    ... )
    >>> (1 / Agg().score(candidates)).tolist()
    [[1.0, 3.0, 2.0, 4.0]]
    """

    name: ClassVar[str] = "agg"

    def spaces(self, n_spaces: int) -> tuple[int, ...]:
        """Ask for none: ranks are enough."""
        del n_spaces
        return ()

    def score(self, candidates: Candidates) -> FloatArray:
        """Return one over the place in the interleaved list."""
        n_sources = int(candidates.source.max()) + 1
        place = (candidates.rank - 1) * n_sources + candidates.source + 1
        scores: FloatArray = np.where(candidates.found, 1 / place, np.nan).astype(np.float32)
        return scores
