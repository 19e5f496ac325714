"""Whether links can be used: they stand out from decoys, and parts of the seeds agree."""

from __future__ import annotations

import numpy as np

from isthmus._types import FloatArray
from isthmus.link.growth import Anchors, Growth
from isthmus.link.links import Links, LinkVerdict
from isthmus.link.problem import MIN_SEEDS, LinkProblem

__all__ = ["judge", "regrow"]

SURE = 0.9
"""Posterior from which a link is called sure."""

LEAST_SURE = 0.01
"""Share of the smaller cloud that has to be linked surely; less is what chance gives."""

LEAST_SURE_LINKS = 5
LEAST_MASS = 0.25
"""Mean posterior of the candidates under which most of them are wrong."""

LEAST_STABLE = 0.5
"""Share of the sure links that every growth from a part of the seeds has to find again."""

LEAST_SEEDS_FOUND = 0.7
PART = 0.7
PARTS = 2


def judge(problem: LinkProblem, links: Links, *, growth: Growth, seed: int) -> LinkVerdict:
    """Return the verdict on links with posteriors.

    Parameters
    ----------
    problem : LinkProblem
    links : Links
    growth : Growth
        With which parts of the seeds are grown again.
    seed : int
    """
    sure = links.matched_rows(SURE)
    least = max(LEAST_SURE_LINKS, LEAST_SURE * min(len(problem.source), len(problem.target)))
    mass = float(links.posterior.mean()) if len(links) else 0.0
    if len(sure) < least:
        reason = (
            f"{len(sure):,} of {len(links):,} candidates have a posterior of {SURE} or more; "
            f"{least:,.0f} would be more than chance: the clouds share nothing, or the "
            f"{problem.n_seeds:,} seeds are too few or wrong"
        )
        return LinkVerdict("no_overlap_found", (reason,))
    against = []
    if mass < LEAST_MASS:
        against.append(f"the mean posterior of the candidates is {mass:.2f}: most are wrong")
    codes = sure.source_rows * len(problem.target) + sure.target_rows
    shares = [
        float(np.isin(codes, found.source_rows * len(problem.target) + found.target_rows).mean())
        for found in regrow(problem, growth=growth, seed=seed)
    ]
    if shares and min(shares) < LEAST_STABLE:
        against.append(
            f"links change with the seeds: from {PART:.0%} of them, only {min(shares):.0%} of the "
            "sure links were found again; add seeds"
        )
    lost = _lost_seeds(problem, links)
    if len(lost) > (1.0 - LEAST_SEEDS_FOUND) * problem.n_seeds:
        against.append(_about(lost, problem.n_seeds))
    if against:
        return LinkVerdict("doubtful", tuple(against))
    reasons = [f"{len(sure):,} links have a posterior of {SURE} or more"]
    if shares:
        reasons.append(f"from {PART:.0%} of the seeds, {min(shares):.0%} of them were found again")
    if lost:
        reasons.append(_about(lost, problem.n_seeds))
    return LinkVerdict("linked", tuple(reasons))


def regrow(problem: LinkProblem, *, growth: Growth, seed: int) -> list[Anchors]:
    """Grow from random parts of the seeds; nothing where the parts would be under 3 seeds."""
    count = round(PART * problem.n_seeds)
    if count < MIN_SEEDS:
        return []
    rounds = growth.rounds(min(problem.source.shape[1], problem.target.shape[1]))
    found = []
    for rng in np.random.default_rng(seed).spawn(PARTS):
        part = np.sort(rng.permutation(problem.n_seeds)[:count])
        source, target = problem.seed_source[part], problem.seed_target[part]
        weight: FloatArray = np.ones(count)
        for number in range(rounds):
            links = growth.grow(
                problem.source, problem.target, source, target, weight, round_=number
            )
            if len(links) < MIN_SEEDS:
                break
            source = problem.source[links.source_rows]
            target = problem.target[links.target_rows]
            weight = links.weight
        found.append(links)
    return found


def _lost_seeds(problem: LinkProblem, links: Links) -> list[list[int]]:
    """Return the seed pairs that are not among the candidates."""
    if problem.seed_rows is None:
        return []
    codes = links.source_rows * len(problem.target) + links.target_rows
    seeds = problem.seed_rows[:, 0] * len(problem.target) + problem.seed_rows[:, 1]
    lost: list[list[int]] = problem.seed_rows[~np.isin(seeds, codes)].tolist()
    return lost


def _about(lost: list[list[int]], n_seeds: int) -> str:
    few = ", ".join(f"{source}-{target}" for source, target in lost[:5])
    return (
        f"{len(lost)} of {n_seeds} seed pairs were not found again and may be wrong "
        f"(rows {few}{', ...' if len(lost) > 5 else ''})"
    )
