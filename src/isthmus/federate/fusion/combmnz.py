"""CombMNZ: sum of normalised similarities times the number of lists that hold the document.

    CombMNZ(x) = N(x) sum over the lists l that hold x of (s_l(x) - min_l) / (max_l - min_l)

The minimum and maximum are those of the list that source l gave for this query.

When to use it: as the score-based baseline, and over sources that share documents, merged by id
(``dedup="id"``). The best candidate of every source gets 1, relevant or not; with `Score` it does
not.

Reference: Fox and Shaw, "Combination of multiple searches", TREC-2, 1994 (CombMNZ); HVMap, sections
3.2 and 5.1.4 (min-max normalisation).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isthmus._types import FloatArray
from isthmus.federate.candidates import Candidates
from isthmus.federate.fusion.base import Fusion

__all__ = ["CombMNZ"]


@dataclass(frozen=True, kw_only=True)
class CombMNZ(Fusion):
    """Min-max normalised native similarities, summed and multiplied by the number of lists.

    A list whose similarities are all equal (one candidate, for example) is normalised to 1: each of
    them is the best that its source has.

    Examples
    --------
    >>> candidates = Candidates(
    ...     ids=np.array([["a", "b", "c"]]),
    ...     similarities=np.array([[[0.75, 0.5, 0.25]]], dtype=np.float32),
    ...     source=np.array([0, 0, 0]), rank=np.array([1, 2, 3]), space=np.array([0, 0, 0]),
    ...     same=np.array([[0, 1, 2]]),
    ... )
    >>> CombMNZ().score(candidates).tolist()
    [[1.0, 0.5, 0.0]]
    """

    name: ClassVar[str] = "combmnz"
    adds_up_lists: ClassVar[bool] = True

    def spaces(self, n_spaces: int) -> tuple[int, ...]:
        """Ask for none: native similarities are enough."""
        del n_spaces
        return ()

    def score(self, candidates: Candidates) -> FloatArray:
        """Return N(x) times the sum of the normalised similarities of each document."""
        normalised = np.zeros(candidates.ids.shape, dtype=np.float64)
        for source in range(int(candidates.source.max()) + 1):
            columns = candidates.source == source
            normalised[:, columns] = _min_max(
                candidates.native[:, columns].astype(np.float64), candidates.found[:, columns]
            )
        lists = candidates.total(np.ones_like(normalised))
        total = lists * candidates.total(normalised)
        scores: FloatArray = np.where(candidates.found, total, np.nan).astype(np.float32)
        return scores


def _min_max(similarities: FloatArray, found: np.ndarray) -> FloatArray:
    """Bring each row to [0, 1]; a row without spread to 1."""
    low = np.min(similarities, axis=1, where=found, initial=np.inf, keepdims=True)
    high = np.max(similarities, axis=1, where=found, initial=-np.inf, keepdims=True)
    spread = high > low
    scale = np.where(spread, high - low, 1.0)
    return np.where(spread, (similarities - np.where(spread, low, 0.0)) / scale, 1.0)
