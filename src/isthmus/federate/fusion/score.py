"""SCORE: the native and the mapped similarity of each candidate, weighted.

For a candidate x of space k and the query q in every space,

    SCORE2(x) = w1 sim(q_k, x) + (1 - w1) sim(q_j, f_kj(x)),        two spaces k and j,
    SCORE_N(x) = w1 sim(q_k, x) + (1 - w1) mean_j sim(q_j, f_kj(x)),   j over all other spaces.

When to use it: the default. It needs bridges both ways and compares sources by evidence, so that
relevant documents may all sit in one of them. `OneDirectional` looks at one space only; `Agg`,
`Rrf` and `CombMNZ` need no bridge for candidates but assume that sources are equally relevant.

Reference: HVMap, sections 3.3 (SCORE2) and 3.4.1 (more than two spaces, through the hub).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isthmus._types import FloatArray
from isthmus.errors import ParameterError
from isthmus.federate.candidates import Candidates
from isthmus.federate.fusion.base import Fusion

__all__ = ["Score"]


@dataclass(frozen=True, kw_only=True)
class Score(Fusion):
    """Weighted sum of native and mapped similarity.

    Parameters
    ----------
    weight : float in [0, 1], optional
        Share w1 of the native similarity; default 1 / N, the same weight for each of N spaces.
        HVMap does that for more than two spaces and takes .7 for two (section 5.1.3), with maps
        trained on millions of pairs. With maps of hundreds or thousands of pairs, .5 was as good or
        better on splits that are not reported (``benchmarks/federate_two.py --seeds 100 101 102``).

    Raises
    ------
    ParameterError
        A weight outside [0, 1].

    Examples
    --------
    >>> candidates = Candidates(
    ...     ids=np.array([["a", "b"]]),
    ...     similarities=np.array([[[0.5, 0.25]], [[0.25, 0.75]]], dtype=np.float32),
    ...     source=np.array([0, 1]), rank=np.array([1, 1]), space=np.array([0, 1]),
    ...     same=np.array([[0, 1]]),
    ... )
    >>> Score(weight=0.5).score(candidates).tolist()
    [[0.375, 0.5]]
    """

    name: ClassVar[str] = "score"

    weight: float | None = None

    def __post_init__(self) -> None:
        if self.weight is not None and not 0 <= self.weight <= 1:
            raise ParameterError(
                expected="a weight of the native similarity from 0 to 1",
                got=f"{self.weight}",
                do="leave it out for the default",
            )

    def spaces(self, n_spaces: int) -> tuple[int, ...]:
        """Ask for every space."""
        return tuple(range(n_spaces))

    def score(self, candidates: Candidates) -> FloatArray:
        """Return w1 x native + (1 - w1) x mapped; only native where there is one space."""
        if candidates.n_spaces == 1:
            return candidates.native
        weight = 1 / candidates.n_spaces if self.weight is None else self.weight
        native, mapped = np.float32(weight), np.float32(1 - weight)
        scores: FloatArray = native * candidates.native + mapped * candidates.mapped
        return scores
