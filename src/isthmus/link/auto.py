"""Linking that grows from few seeds, weighs every link, and abstains: the default.

1. Grow: rotations fitted on the links so far, from coarse to fine (`isthmus.link.growth`).
2. Weigh, ``passes`` times: collect evidence for every candidate in several views
   (`isthmus.link.evidence`), make decoys from the clouds themselves (`isthmus.link.decoys`), and
   turn both into a posterior per link (`isthmus.link.posterior`); the surest links, by their
   posterior, are the anchors of the next pass.
3. Judge: grow again from parts of the seeds and see whether the links are the same
   (`isthmus.link.judging`).

When to use it: always, unless results have to follow the paper (`Geh`).
Shapes: clouds (n_source, dim_source) and (n_target, dim_target).
References: vector linking, sections 3 to 5, for the problem and for hashes; what is added is ours.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from isthmus._types import FloatArray, IntArray
from isthmus._validate import check_whole
from isthmus.link.base import Linker, LinkState
from isthmus.link.clouds import Clouds, Side
from isthmus.link.decoys import Decoys, make_decoys
from isthmus.link.evidence import Evidence, collect
from isthmus.link.growth import Anchors, Growth
from isthmus.link.judging import judge
from isthmus.link.links import Iteration, Links, LinkVerdict
from isthmus.link.map_views import VIEWS
from isthmus.link.one_to_one import one_to_one
from isthmus.link.posterior import LEAST_CANDIDATES, MOST, posterior_by_decoys
from isthmus.link.problem import MIN_SEEDS, LinkProblem

__all__ = ["Auto"]

GROW, WEIGH = "grow", "weigh"

LARGE_ROWS = 8_000
"""Rows a side, in the mean of their product, from which time counts more than the last hundredth:
one pass less, and directions that grow faster."""

ANCHOR_POSTERIOR = 0.5
"""Least posterior of a link that the next pass is fitted on."""

STOPPED = "stopped before the links were weighed and judged: posteriors are no probabilities yet"

REFITS = 2
"""Rounds of refitting in sample inside a pass; see `isthmus.link.evidence.collect`."""

LEAST_POSTERIOR = 0.1
"""What the method stands for is never surer to be wrong than this, whatever F1 expects."""

FEW = 0.9
"""Posterior at most where the candidates are too few to learn from: they may all be chance."""

FIRST_ANCHORS = 0.75
"""Share of the grown links, the surest, that the first pass is fitted on."""


@dataclass(frozen=True, kw_only=True)
class Auto(Linker):
    """Grow links from the seeds, weigh them against decoys, and say how sure each is.

    Parameters
    ----------
    passes : int, optional
        Times that links are weighed. By default 2, and 1 for large clouds (over 8,000 rows a side);
        more were not seen to help.
    csls_neighborhood : int, default 10
        Neighbours in the local scaling (Lample et al. 2018, section 2.3).

    Notes
    -----
    The seeds start the growth and are not held to afterwards; a seed pair is in the result only
    where the links agree with it. ``overlap`` is the sum of the posteriors: shared objects that did
    not become candidates do not count.

    Examples
    --------
    >>> from isthmus.link import LinkProblem
    >>> cloud = np.random.default_rng(0).standard_normal((300, 16))
    >>> turned = cloud[::-1] @ np.linalg.qr(cloud[:16])[0]
    >>> problem = LinkProblem.of_rows(cloud, turned, [(row, 299 - row) for row in range(15)])
    >>> links = Auto().link(problem)
    >>> len(links.matched_rows()), links.verdict.status
    (300, 'linked')
    """

    name: ClassVar[str] = "auto"

    passes: int | None = None
    csls_neighborhood: int = 10

    def __post_init__(self) -> None:
        if self.passes is not None:
            check_whole(self.passes, name="passes")
        check_whole(self.csls_neighborhood, name="csls_neighborhood")

    def iterate(
        self, problem: LinkProblem, *, seed: int, state: LinkState | None
    ) -> Iterator[LinkState]:
        """Yield the state after each round of growth and after each pass."""
        rounds = self._growth(problem).rounds(min(problem.source.shape[1], problem.target.shape[1]))
        steps = rounds + (self.passes or (1 if _is_large(problem) else 2))
        number = 0 if state is None else len(state.history)
        while number < rounds and not (state is not None and state.done):
            state = self._grow(problem, state, number)
            number += 1
            yield state
        if number < steps and state is not None and not state.done:
            clouds = Clouds(Side.of(problem.source), Side.of(problem.target))
            while number < steps and not state.done:
                number += 1
                last = number == steps
                state = self._weigh(clouds, state, seed=(seed, number), last=last)
                yield state

    def finish(
        self, problem: LinkProblem, state: LinkState, *, seed: int, interrupted: bool
    ) -> Links:
        """Return the links with the threshold of the highest expected F1, and the verdict."""
        weighed = bool(state.history) and state.history[-1].phase == WEIGH
        linked = problem.codes(state.source_rows, state.target_rows)
        places = np.searchsorted(problem.codes(*state.pairs.T), linked)
        links = Links(
            source_rows=state.source_rows,
            target_rows=state.target_rows,
            posterior=state.posterior,
            votes=state.votes[places],
            views=state.views,
            threshold=0.0,
            method=self.name,
            overlap=float(state.posterior.sum()) if weighed else None,
            history=state.history,
            verdict=LinkVerdict("not_judged", (STOPPED,) if interrupted else ()),
            interrupted=interrupted,
        )
        if interrupted:
            return _with_threshold(links)
        if not weighed:
            few = f"only {len(links)} links grew from the {problem.n_seeds:,} seeds"
            verdict = LinkVerdict("doubtful", (f"{few}: they say too little; add seeds",))
            return _with_threshold(replace(links, verdict=verdict))
        try:
            judged = judge(problem, links, growth=self._growth(problem), seed=seed)
        except KeyboardInterrupt:  # weighed links are kept, as after any other step
            verdict = LinkVerdict("not_judged", (STOPPED,))
            return _with_threshold(replace(links, interrupted=True, verdict=verdict))
        believed = replace(
            links,
            posterior=links.posterior * judged.belief,
            overlap=float(links.posterior.sum()) * judged.belief,
            verdict=judged.verdict,
        )
        return _with_threshold(believed)

    def _growth(self, problem: LinkProblem) -> Growth:
        faster = 1.3 if _is_large(problem) else Growth.rank_growth
        return Growth(rank_growth=faster, neighborhood=self.csls_neighborhood)

    def _grow(self, problem: LinkProblem, before: LinkState | None, number: int) -> LinkState:
        started = time.perf_counter()
        source, target = problem.seed_source, problem.seed_target
        weight: FloatArray = np.ones(problem.n_seeds)
        if before is not None:
            source = problem.source[before.source_rows]
            target = problem.target[before.target_rows]
            weight = before.posterior
        found = self._growth(problem).grow(
            problem.source, problem.target, source, target, weight, round_=number
        )
        return _state(
            problem_sizes=(len(problem.source), len(problem.target)),
            links=found,
            pairs=np.column_stack((found.source_rows, found.target_rows)),
            votes=np.ones(len(found), np.int64),
            views=1,
            before=before,
            phase=GROW,
            n_anchors=len(source),
            started=started,
            done=len(found) < MIN_SEEDS,
        )

    def _weigh(
        self, clouds: Clouds, before: LinkState, *, seed: tuple[int, int], last: bool
    ) -> LinkState:
        started = time.perf_counter()
        anchors = _anchors(before)
        k = self.csls_neighborhood
        found = collect(clouds, anchors, neighborhood=k, rounds=REFITS, seed=(*seed, 0))
        decoys = make_decoys(clouds, anchors, neighborhood=k, rounds=REFITS, seed=(*seed, 1))
        sizes = len(clouds.source), len(clouds.target)
        posterior = posterior_by_decoys(
            found.features,
            decoys.features,
            prior=_prior(found, decoys, min(sizes)),
            seed=(*seed, 2),
        )
        kept = one_to_one(found.pairs, posterior)
        kept = kept[np.argsort(found.pairs[kept, 0])]
        return _state(
            problem_sizes=sizes,
            links=Anchors(found.pairs[kept, 0], found.pairs[kept, 1], posterior[kept]),
            pairs=found.pairs,
            votes=found.votes,
            views=len(VIEWS),
            before=before,
            phase=WEIGH,
            n_anchors=len(anchors),
            started=started,
            done=last or len(kept) < MIN_SEEDS,
        )


def _is_large(problem: LinkProblem) -> bool:
    return len(problem.source) * len(problem.target) > LARGE_ROWS**2


def _with_threshold(links: Links) -> Links:
    """Return the links with the threshold of the highest expected F1, but never a hopeless one.

    Where no overlap was found it stands for no link.
    """
    kept = links.matched_rows("max_f1").confidence
    kept = kept[kept >= LEAST_POSTERIOR]
    found = len(kept) > 0 and links.verdict.status != "no_overlap_found"
    return replace(links, threshold=float(kept[-1]) if found else 1.0)


def _anchors(state: LinkState) -> Anchors:
    """Return the links that a pass is fitted on, with their weights."""
    links = Anchors(state.source_rows, state.target_rows, state.posterior)
    if state.history[-1].phase == WEIGH:
        sure = state.posterior >= ANCHOR_POSTERIOR
        if np.count_nonzero(sure) >= MIN_SEEDS:
            return links.select(sure)
    count = max(MIN_SEEDS, round(FIRST_ANCHORS * len(links)))
    return links.select(np.sort(np.argsort(-state.posterior, kind="stable")[:count]))


def _prior(found: Evidence, decoys: Decoys, smaller: int) -> float:
    """Return the share of true candidates, if lone objects become candidates as the decoys did.

    Of n objects o have a partner and are candidates, and the others are at the rate q:
    C = o + q (n - o).
    """
    count, tried = len(found.pairs), len(decoys.features)
    rate = min(tried / max(decoys.alone, 1), 0.99)
    shared = (count - rate * smaller) / (1.0 - rate)
    return float(np.clip(shared / max(count, 1), 0.0, MOST if count >= LEAST_CANDIDATES else FEW))


def _state(
    *,
    problem_sizes: tuple[int, int],
    links: Anchors,
    pairs: IntArray,
    votes: IntArray,
    views: int,
    before: LinkState | None,
    phase: str,
    n_anchors: int,
    started: float,
    done: bool,
) -> LinkState:
    history = () if before is None else before.history
    threshold = ANCHOR_POSTERIOR if phase == WEIGH else 0.0
    step = Iteration(
        number=len(history) + 1,
        phase=phase,
        views=views,
        anchors=n_anchors,
        candidates=len(pairs),
        links=int(np.count_nonzero(links.weight >= threshold)),
        ratio=2 * len(links) / max(problem_sizes),
        threshold=threshold,
        seconds=time.perf_counter() - started,
    )
    return LinkState(
        source_rows=links.source_rows,
        target_rows=links.target_rows,
        posterior=links.weight,
        pairs=pairs,
        votes=votes,
        views=views,
        history=(*history, step),
        done=done,
    )
