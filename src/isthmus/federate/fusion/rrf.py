"""RRF: reciprocal rank fusion.

    RRF(x) = sum over the lists l that hold x of 1 / (c + rank_l(x))

When to use it: sources that share documents, merged by id (``dedup="id"``): what several lists hold
rises. Over disjoint sources it is `Agg` with ties.

Reference: Cormack, Clarke, Buettcher, "Reciprocal rank fusion outperforms Condorcet and individual
rank learning methods", SIGIR 2009 (c = 60); HVMap, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isthmus._types import FloatArray
from isthmus._validate import check_positive
from isthmus.federate.candidates import Candidates
from isthmus.federate.fusion.base import Fusion

__all__ = ["Rrf"]


@dataclass(frozen=True, kw_only=True)
class Rrf(Fusion):
    """Sum of reciprocal ranks.

    Parameters
    ----------
    c : float, default 60
        Smoothing constant, over 0 (the paper's value).

    Examples
    --------
    >>> candidates = Candidates(
    ...     ids=np.array([["a", "b"]]),
    ...     similarities=np.array([[[0.9, 0.2]]], dtype=np.float32),
    ...     source=np.array([0, 0]), rank=np.array([1, 2]), space=np.array([0, 0]),
    ...     same=np.array([[0, 1]]),
    ... )
    >>> (1 / Rrf(c=2).score(candidates)).round(4).tolist()
    [[3.0, 4.0]]
    """

    name: ClassVar[str] = "rrf"
    adds_up_lists: ClassVar[bool] = True

    c: float = 60.0

    def __post_init__(self) -> None:
        check_positive(self.c, name="c of RRF")

    def spaces(self, n_spaces: int) -> tuple[int, ...]:
        """Ask for none: ranks are enough."""
        del n_spaces
        return ()

    def score(self, candidates: Candidates) -> FloatArray:
        """Return the sum of reciprocal ranks of each document."""
        reciprocal = np.broadcast_to(1 / (self.c + candidates.rank), candidates.ids.shape)
        total = candidates.total(reciprocal)
        scores: FloatArray = np.where(candidates.found, total, np.nan).astype(np.float32)
        return scores
