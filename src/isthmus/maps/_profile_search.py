"""Choosing gamma and eta of a transport plan by the rank of held-out anchor pairs.

A tenth of the anchor pairs is taken out of the profile and put into both pools; each candidate's
plan then says at which rank their partners are. The mean rank over both directions decides
(AnchorDOT, appendix D).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isthmus._progress import current_track
from isthmus._types import FloatArray, IntArray
from isthmus.evaluate.hubness import k_occurrence, skewness
from isthmus.maps._sides import Sides
from isthmus.transport import Coupling, anchor_cost, sinkhorn

__all__ = ["ETAS", "GAMMAS", "ProfileSearch", "search_profile"]

GAMMAS = (0.0, 0.25, 0.5, 0.75, 1.0)
ETAS = (0.1, 0.05, 0.02, 0.01)
"""Gamma from 0 to 1, as appendix D has it; the points, and those of eta, are a choice. The largest
eta comes first: its potentials are where the next one starts."""

HELD_OUT_SHARE = 0.1
LEAST_HELD_OUT, MOST_SPLITS = 40, 5
"""Of few anchors a tenth says nothing: then several splits are tried, for so many pairs in all."""
MOST_ROWS = 2_000
"""Unpaired rows of each side that are coupled; the paper takes all of its pool."""
TOLERANCE = 1e-3
"""Of the marginals: ranks are settled long before 1e-4."""


@dataclass(frozen=True, eq=False)
class ProfileSearch:
    """What was tried, and what came out (AnchorDOT, figure 17).

    Parameters
    ----------
    gamma, eta : FloatArray of shape (n_candidates,)
    rank : FloatArray of shape (n_candidates,)
        Mean rank of the partner of held-out anchors, both directions; 1 is the best.
    skewness : FloatArray of shape (n_candidates,)
        Of N_10 in the plan, the mean of both directions.
    recall : FloatArray of shape (n_candidates,)
        Share of held-out anchors whose partner comes first.
    """

    gamma: FloatArray
    eta: FloatArray
    rank: FloatArray
    skewness: FloatArray
    recall: FloatArray

    @property
    def best(self) -> tuple[float, float]:
        """Return gamma and eta of the lowest mean rank, the first on a tie."""
        place = int(np.argmin(self.rank))
        return float(self.gamma[place]), float(self.eta[place])


def search_profile(
    sides: Sides, *, grid: Sequence[tuple[float, float]], seed: int = 0
) -> ProfileSearch:
    """Try each gamma and eta of a grid on held-out anchor pairs.

    Parameters
    ----------
    sides : Sides
    grid : sequence of (gamma, eta)
    seed : int
        Of the pairs held out and the rows drawn.
    """
    n = len(sides.anchors[0])
    held = max(1, round(HELD_OUT_SHARE * n))
    splits = min(MOST_SPLITS, math.ceil(LEAST_HELD_OUT / held))
    order = np.random.default_rng([seed, 2]).permutation(n)
    drawn = [_draw(pool, seed=seed) for pool in sides.pools]
    found = np.zeros((3, len(grid)))
    plans = [(number, place) for number in range(splits) for place in range(len(grid))]
    last: tuple[int, float, Coupling] | None = None
    for number, place in current_track()(plans, "choosing gamma and eta", len(plans)):
        gamma, eta = grid[place]
        rest, out = sides.split(order[number * held : (number + 1) * held])
        source, target = (np.concatenate(two) for two in zip(drawn, out, strict=True))
        cost = anchor_cost(source, target, *rest.anchors, gamma=gamma)
        start = last[2] if last is not None and last[:2] == (number, gamma) else None
        plan = sinkhorn(cost, eta=eta, tolerance=TOLERANCE, start=start, seed=seed)
        last = (number, gamma, plan)
        found[:, place] += _look(plan, held)
    rank, skew, recall = found / splits
    gammas, etas = (np.array(values) for values in zip(*grid, strict=True))
    return ProfileSearch(gammas, etas, rank, skew, recall)


def _draw(rows: FloatArray, *, seed: int) -> FloatArray:
    if len(rows) <= MOST_ROWS:
        return rows
    drawn: IntArray = np.random.default_rng([seed, 3]).choice(len(rows), MOST_ROWS, replace=False)
    return rows[np.sort(drawn)]


def _look(plan: Coupling, held: int) -> FloatArray:
    """Return mean rank, skewness and recall of the last ``held`` rows of both sides."""
    ranks, skews = [], []
    for of in (plan, plan.transpose()):
        n, m = of.shape
        rows = of.log_block(np.arange(n - held, n), slice(None))
        own = rows[np.arange(held), np.arange(m - held, m)]
        ranks.append((rows > own[:, None]).sum(axis=1) + 1)
        skews.append(skewness(k_occurrence(of.nearest(10)[0], n=m)))
    both = np.concatenate(ranks)
    return np.array([both.mean(), np.mean(skews), (both == 1).mean()])
