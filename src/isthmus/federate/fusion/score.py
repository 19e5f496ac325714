"""SCORE: the native and the mapped similarity of each candidate, weighted.

For a candidate x of space k and the query q in every space,

    SCORE2(x) = w1 sim(q_k, x) + (1 - w1) sim(q_j, f_kj(x)),        two spaces k and j,
    SCORE_N(x) = w1 sim(q_k, x) + (1 - w1) mean_j sim(q_j, f_kj(x)),   j over all other spaces.

Spaces may be trusted differently, with one weight v_j each, which sum to 1:

    SCORE_v(x) = sum_j v_j sim(q_j, f_kj(x)),   j over all spaces, f_kk(x) = x,

or, where w1 is given too, as SCORE_N with the mean weighted by v_j. Where sources have a bridge to
a common space (see `Cca`), the similarity there counts as well:

    (1 - c) SCORE(x) + c cos(A q, B x).                                (this project's)

When to use it: the default. It needs bridges both ways and compares sources by evidence, so that
relevant documents may all sit in one of them. `OneDirectional` looks at one space only; `Agg`,
`Rrf` and `CombMNZ` need no bridge for candidates but assume that sources are equally relevant.

Reference: HVMap, sections 3.3 (SCORE2) and 3.4.1 (more than two spaces, through the hub).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from isthmus._types import FloatArray
from isthmus._validate import check_share
from isthmus.errors import ParameterError
from isthmus.federate.candidates import Candidates
from isthmus.federate.fusion.base import Fusion
from isthmus.federate.fusion.cca import DIRECTIONS, common_similarities

__all__ = ["Score"]

COMMON = 0.2
"""Default share of the similarity in the common space, where there is one."""


@dataclass(frozen=True, kw_only=True)
class Score(Fusion):
    """Weighted sum of native and mapped similarity.

    Parameters
    ----------
    weight : float in [0, 1], optional
        Share w1 of the native similarity; default 1 / N, the same weight for each of N spaces.
        HVMap does that for more than two spaces and takes .7 for two (section 5.1.3), with maps
        trained on millions of pairs. With maps of hundreds or thousands of pairs, .5 was as good or
        better on splits that are not reported (``benchmarks/federate.py --seeds 100 101 102``).
    weights : tuple of float, optional
        How much each space counts, the hub's first, from 0 on; only their ratios matter. Default:
        equal. `isthmus.federate.weights.fit_weights` learns both from a few labelled queries.
    common : float in [0, 1], optional
        Share c of the similarity in the common space; over 0, every spoke needs ``common``
        (``bridge_common``). Default: .2 where every spoke has one and all metrics are the cosine,
        else 0. On splits that are not reported, .2 gained nDCG@10 in 10 of 12 cells with about
        1,000 pairs (mean +.008, from -.004 to +.020; ``benchmarks/federate_fusion.py --seeds 102
        103 --methods procrustes ridge``), in all of 8 with 300 or 600 pairs, nothing or a
        little with 100, and lost in 2 of 4 with 30.

    Raises
    ------
    ParameterError
        A weight or share outside [0, 1]; weights that are negative, all zero, or not one per space.

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
    >>> Score(weights=(1, 0)).score(candidates).tolist()
    [[0.5, 0.25]]
    """

    name: ClassVar[str] = "score"

    weight: float | None = None
    weights: tuple[float, ...] | None = None
    common: float | None = None

    def __post_init__(self) -> None:
        if self.common is not None:
            check_share(self.common, name="common")
        if self.weights is not None:
            object.__setattr__(self, "weights", _as_weights(self.weights))
        if self.weight is not None and not 0 <= self.weight <= 1:
            raise ParameterError(
                expected="a weight of the native similarity from 0 to 1",
                got=f"{self.weight}",
                do="leave it out for the default",
            )

    @property
    def common_directions(self) -> int:
        """Ask for the common space where it counts."""
        return DIRECTIONS if self.common else 0

    def settled(self, *, common: bool) -> Self:
        """Return it with the default share of the common space, where there is one."""
        return replace(self, common=COMMON) if common and self.common is None else self

    def spaces(self, n_spaces: int) -> tuple[int, ...]:
        """Ask for every space."""
        if self.weights is not None and len(self.weights) != n_spaces:
            raise ParameterError(
                expected=f"one weight for each of the {n_spaces} spaces, the hub's first",
                got=f"{len(self.weights)}",
                do="see Federation.spaces for their order",
            )
        return tuple(range(n_spaces))

    def shares(self, n_spaces: int) -> FloatArray:
        """Return what each similarity counts; see `Fusion.shares`."""
        weights = self.weights or (1.0,) * n_spaces
        native = self.weight
        if self.weights is None and native is None:
            native = 1 / n_spaces
        common = self.common or 0.0
        there = np.full((n_spaces, 1), common)
        return np.hstack([(1 - common) * _shares(weights, native), there])

    def score(self, candidates: Candidates) -> FloatArray:
        """Return the weighted sum; only the native similarity where there is one space.

        Raises
        ------
        ParameterError
            Candidates that were not compared in a space that counts, or in the common space.
        """
        counted = self.spaces(candidates.n_spaces)
        if self.weights is not None and self.weight is None:
            counted = tuple(space for space in counted if self.weights[space])
        candidates.check_compared(counted)
        scores = self._in_their_spaces(candidates)
        common = self.settled(common=candidates.common is not None).common
        if not common:
            return scores
        share, there = np.float32(common), common_similarities(candidates, DIRECTIONS)
        mixed: FloatArray = (1 - share) * scores + share * there
        return mixed

    def _in_their_spaces(self, candidates: Candidates) -> FloatArray:
        if candidates.n_spaces == 1:
            return candidates.native
        if self.weights is not None:
            return _in_spaces(candidates, self.weights, self.weight)
        weight = 1 / candidates.n_spaces if self.weight is None else self.weight
        native, mapped = np.float32(weight), np.float32(1 - weight)
        scores: FloatArray = native * candidates.native + mapped * candidates.mapped
        return scores


def _in_spaces(
    candidates: Candidates, weights: tuple[float, ...], native: float | None
) -> FloatArray:
    """Return the sum over the spaces, with a share of its own for the native one where given."""
    shares = _shares(weights, native)
    scores = np.zeros(candidates.ids.shape, dtype=np.float32)
    for space, similarities in enumerate(candidates.similarities):
        share = shares[candidates.space, space].astype(np.float32)
        counted = share > 0  # what does not count may be unknown
        scores[:, counted] += share[counted] * similarities[:, counted]
    return np.where(candidates.found, scores, np.float32("nan"))


def _shares(weights: tuple[float, ...], native: float | None) -> FloatArray:
    """Return the share of every space, one row per native space."""
    shares = np.asarray(weights, dtype=np.float64)
    shares = np.tile(shares / shares.sum(), (len(shares), 1))
    if native is not None:
        np.fill_diagonal(shares, 0.0)
        others = shares.sum(axis=1, keepdims=True)
        # a space that alone counts is its own candidates' only evidence
        shares *= np.divide(1 - native, others, out=np.zeros_like(others), where=others > 0)
        np.fill_diagonal(shares, np.where(others[:, 0] > 0, native, 1.0))
    return shares


def _as_weights(weights: Iterable[float]) -> tuple[float, ...]:
    values = tuple(float(weight) for weight in weights)
    if not all(np.isfinite(value) and value >= 0 for value in values) or not sum(values) > 0:
        raise ParameterError(
            expected="weights of the spaces from 0 on, not all of them 0",
            got=str(values)[:80],
            do="leave them out for equal weights",
        )
    return values
