"""Whether links can be used: what grows from parts of the seeds has to be the same.

Links that grow from the seeds confirm each other, true or not: from wrong seeds, or between clouds
that share nothing, a consistent set of wrong links grows, and decoys made from it lie under it as
decoys lie under true links. But it depends on the seeds. Two parts of the seeds lead to the same
true links (97 to 100 % of them on the real problems tried) and to different wrong ones (0 to 2 %).
The part that agrees best decides how far links are believed, as the other may hold the wrong seeds;
the part that agrees least decides whether that is said.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isthmus._types import FloatArray
from isthmus.link.growth import Anchors, Growth
from isthmus.link.links import Links, LinkVerdict, MatchedRows
from isthmus.link.posterior import LEAST_CANDIDATES
from isthmus.link.problem import MIN_SEEDS, LinkProblem

__all__ = ["Judgement", "judge", "regrow"]

SURE = 0.9
"""Posterior from which a link is called sure."""

LEAST_SURE = 0.01
"""Share of the smaller cloud that has to be linked surely; less is what chance gives."""

LEAST_SURE_LINKS = 5
LEAST_SURE_SHARE = 0.3
"""Of the links, those that have to be sure. Real problems had .48 and more; between sets of one
subject that share nothing or little it was .23 and less."""

LEAST_MASS = 0.25
"""Mean posterior of the candidates under which most of them are wrong."""

NOT_BELIEVED, BELIEVED = 0.2, 0.5
"""Share of the sure links found again from a part of the seeds: nothing is believed up to the
first, everything from the second."""

UNCHECKED = 0.5
"""Belief in links from seeds too few to be parted."""

LEAST_SEEDS_FOUND = 0.5
PART = 0.7
PARTS = 2


@dataclass(frozen=True)
class Judgement:
    """What is thought of links.

    Parameters
    ----------
    belief : float
        From 0 to 1: what every posterior is multiplied with.
    verdict : LinkVerdict
    """

    belief: float
    verdict: LinkVerdict


def judge(problem: LinkProblem, links: Links, *, growth: Growth, seed: int) -> Judgement:
    """Return how far links with posteriors are to be believed, and the verdict.

    Parameters
    ----------
    problem : LinkProblem
    links : Links
    growth : Growth
        With which parts of the seeds are grown again.
    seed : int
    """
    smaller = min(len(problem.source), len(problem.target))
    sure = links.matched_rows(SURE)
    enough = len(sure) >= min(max(LEAST_SURE_LINKS, LEAST_SURE * smaller), smaller / 2)
    again = _found_again(
        problem, sure if enough else links.matched_rows("max_f1"), growth=growth, seed=seed
    )
    belief = UNCHECKED
    if again:
        share = (max(again) - NOT_BELIEVED) / (BELIEVED - NOT_BELIEVED)
        belief = float(np.clip(share, 0.0, 1.0))
    if enough and belief > 0.0:
        return Judgement(belief, _verdict(problem, links, len(sure), again))
    seen = f"{len(sure):,} of {len(links):,} candidates have a posterior of {SURE} or more"
    if belief == 0.0:
        seen = f"from {PART:.0%} of the seeds, {max(again):.0%} of the links were found again"
    reason = (
        f"{seen}: the clouds share nothing or too little, or the {problem.n_seeds:,} seeds are too "
        "few or wrong"
    )
    return Judgement(belief, LinkVerdict("no_overlap_found", (reason,)))


def _found_again(
    problem: LinkProblem, linked: MatchedRows, *, growth: Growth, seed: int
) -> list[float]:
    """Return the share of links that each growth from a part of the seeds finds, too."""
    if not len(linked):
        return []
    codes = problem.codes(linked.source_rows, linked.target_rows)
    return [
        float(np.isin(codes, problem.codes(found.source_rows, found.target_rows)).mean())
        for found in regrow(problem, growth=growth, seed=seed)
    ]


def _verdict(problem: LinkProblem, links: Links, n_sure: int, again: list[float]) -> LinkVerdict:
    against = []
    lost = _lost_seeds(problem, links)
    mass = float(links.posterior.mean())
    if mass < LEAST_MASS:
        against.append(f"the mean posterior of the candidates is {mass:.2f}: most are wrong")
    kept = len(links.matched_rows("max_f1"))
    if n_sure < LEAST_SURE_SHARE * kept:
        against.append(
            f"only {n_sure:,} of {kept:,} links are sure: the others may be alike without being "
            "the same; keep the surest (precision)"
        )
    if len(links) < LEAST_CANDIDATES:
        against.append(f"{len(links)} candidates are too few to tell true links from wrong ones")
    if not again:
        against.append(f"{problem.n_seeds} seeds are too few to see whether links depend on them")
    elif min(again) < BELIEVED:
        against.append(
            f"links change with the seeds: from {PART:.0%} of them, only {min(again):.0%} of the "
            "sure links were found again; add seeds"
        )
    if len(lost) > (1.0 - LEAST_SEEDS_FOUND) * problem.n_seeds:
        against.append(_about(lost, problem.n_seeds))
    if against:
        return LinkVerdict("doubtful", tuple(against))
    reason = (
        f"{n_sure:,} links have a posterior of {SURE} or more; from {PART:.0%} of the seeds, "
        f"{min(again):.0%} of them were found again"
    )
    more = (_about(lost, problem.n_seeds),) if lost else ()
    return LinkVerdict("linked", (reason, *more))


def regrow(problem: LinkProblem, *, growth: Growth, seed: int) -> list[Anchors]:
    """Grow from random parts of the seeds; nothing where the parts would be under 3 seeds."""
    count = round(PART * problem.n_seeds)
    if count < MIN_SEEDS or count == problem.n_seeds:
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
    codes = problem.codes(links.source_rows, links.target_rows)
    seeds = problem.codes(*problem.seed_rows.T)
    lost: list[list[int]] = problem.seed_rows[~np.isin(seeds, codes)].tolist()
    return lost


def _about(lost: list[list[int]], n_seeds: int) -> str:
    few = ", ".join(f"{source} with {target}" for source, target in lost[:5])
    return (
        f"{len(lost)} of {n_seeds} seed pairs are no candidates, and hard to find or wrong "
        f"(source row with target row: {few}{', ...' if len(lost) > 5 else ''})"
    )
