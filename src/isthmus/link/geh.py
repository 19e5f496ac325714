"""GEH, geometric embedding hashing: links voted for by many small sets of anchors.

Vector Linking via Cross-Model Local Isometric Consistency (arXiv 2605.31100), sections 3 and 4,
appendices B and C, as published.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from isthmus._types import FloatArray, IntArray
from isthmus._validate import check_positive, check_whole
from isthmus.errors import ParameterError, UnknownNameError
from isthmus.link.base import Linker, LinkState
from isthmus.link.hashing import HashDistance
from isthmus.link.links import Iteration, Links, LinkVerdict
from isthmus.link.one_to_one import one_to_one
from isthmus.link.otsu import otsu_threshold
from isthmus.link.problem import LinkProblem
from isthmus.link.proposals import AnchorPairs, Bandwidth, Hashing, Kernel, propose
from isthmus.link.views import furthest_points, random_points, schedule
from isthmus.link.votes import VoteTable, posterior_mean

__all__ = ["Geh"]

ViewSampling = Literal["fps", "random"]
ViewSize = Literal["drawn", "total"]
FpsStart = Literal["random", "seeds"]
Side = Literal["source", "target"]
EqualViews = Literal["each", "once"]
ScheduleRule = Literal["log", "fixed"]
Voting = Literal["multi_view", "single_view"]
Bootstrapping = Literal["iterate", "once"]
StopOn = Literal["links", "proposals"]


@dataclass(frozen=True)
class _Views:
    """Places in the anchors of each view, and how many equal views each stands for."""

    places: IntArray
    each: int


@dataclass(frozen=True, kw_only=True)
class Geh(Linker):
    """Link by hashes of distances to anchors, voted over many views.

    Every iteration draws views (small sets of anchor pairs) from the links so far; represents each
    vector, within its own space, by its kernelised distances to a view's anchors; proposes mutual
    nearest neighbours by CSLS among these hashes; counts how many views have proposed each pair,
    ever; and promotes pairs to links, one-to-one, whose posterior reaches Otsu's threshold.

    Use it to compare with the paper. On encoders that agree less than the paper's it takes the
    false links of the first iteration for anchors and does not recover.

    Parameters
    ----------
    growth : float, default 0.3
        c of sf = 1 + c log(anchors / seeds) (section 4; appendix C.2.4). At least 0.
    fraction : float, default 0.4
        rho0: share of the anchors in a view before growth (C.2.4).
    base_views : int, optional
        m0; ceil(2 / fraction) by default, 5 with the paper's fraction (C.2.4).
    csls_neighborhood : int, default 50
        k_CSLS (C.2.4).
    kernel : {"exponential", "none"}, default "exponential"
        Hash exp(-distance / sigma), or the raw distances.
    hash_distance : {"cosine", "l2"}, default "cosine"
        Distance to anchors (section 4: cosine).
    bandwidth : {"cloud_hashes", "anchor_hashes"}, default "cloud_hashes"
        sigma is "the median of the nonzero pairwise l2 distances between hashes within the view";
        whose hashes is not said. Here: the raw distances of a sample of both clouds, 256 rows
        each, taken together; or those of the view's own anchors on both sides.
    view_sampling : {"fps", "random"}, default "fps"
        Furthest-point sampling, or uniform.
    view_size : {"drawn", "total"}, default "drawn"
        The seeds are in every view; whether s_t counts them is not said. ``drawn``: they come on
        top of s_t drawn anchors. ``total``: s_t - n_seeds are drawn (at least one), which leaves
        small problems with views of hardly anything but seeds.
    fps_start : {"random", "seeds"}, default "random"
        What the sampling moves away from: its random start and what it adds (the text), or the
        seeds of the view, too.
    side : {"source", "target"}, default "source"
        The "one side" on which anchors are furthest.
    equal_views : {"each", "once"}, default "each"
        Where there is nothing to choose, as in the first iteration, whose only anchors are the
        seeds, all m_t views are equal. They are hashed once, and count as m_t votes of m_t (the
        text) or as one of one.
    schedule : {"log", "fixed"}, default "log"
        ``fixed`` keeps m_0 views of rho0 times the anchors.
    voting : {"multi_view", "single_view"}, default "multi_view"
        ``single_view``: one view of all anchors, and its proposals are the links, without votes of
        earlier iterations. Its memory is rows times anchors.
    bootstrapping : {"iterate", "once"}, default "iterate"
        ``once``: a single iteration, on the seeds.
    otsu_bins : int, optional
        Bins of the histogram for Otsu's threshold; every different posterior by default.
    stop_on : {"links", "proposals"}, default "links"
        Pairs whose mutual-nearest-neighbour ratio must settle, "the set of MNN pairs returned at
        iteration t" in C.2.1: those promoted (section 4: "GEH stops when L_t stabilizes"), or all
        that a view of the iteration proposed. Which views are drawn moves the latter by about .01
        in clouds of 1,500: there all 100 iterations are made, for the same links.
    burn_in : int, default 10
        T_min of C.2.1: how many changes of the ratio in a row must be small.
    tolerance : float, default 0.01
        What they must stay under (C.2.1).
    max_iterations : int, default 100
        (C.2.1)

    Raises
    ------
    ParameterError, UnknownNameError

    Notes
    -----
    Seeds that are rows of the clouds are links with posterior 1, whatever the votes: they were
    given. Candidates are all pairs with votes, thinned out one-to-one; the threshold is the last of
    Otsu. The posterior is the share of views, not a calibrated probability.

    Examples
    --------
    >>> cloud = np.random.default_rng(0).standard_normal((60, 8))
    >>> problem = LinkProblem.of_rows(cloud, -cloud[::-1], [(row, 59 - row) for row in range(9)])
    >>> method = Geh(csls_neighborhood=10, max_iterations=3)
    >>> links = method.link(problem).matched_rows()
    >>> bool((links.source_rows + links.target_rows == 59).all()), len(links)
    (True, 60)
    """

    name: ClassVar[str] = "geh"

    growth: float = 0.3
    fraction: float = 0.4
    base_views: int | None = None
    csls_neighborhood: int = 50
    kernel: Kernel = "exponential"
    hash_distance: HashDistance = "cosine"
    bandwidth: Bandwidth = "cloud_hashes"
    view_sampling: ViewSampling = "fps"
    view_size: ViewSize = "drawn"
    fps_start: FpsStart = "random"
    side: Side = "source"
    equal_views: EqualViews = "each"
    schedule: ScheduleRule = "log"
    voting: Voting = "multi_view"
    bootstrapping: Bootstrapping = "iterate"
    otsu_bins: int | None = None
    stop_on: StopOn = "links"
    burn_in: int = 10
    tolerance: float = 0.01
    max_iterations: int = 100

    def __post_init__(self) -> None:
        check_positive(self.fraction, name="fraction", maximum=1.0)
        check_positive(self.tolerance, name="tolerance")
        if not (np.isfinite(self.growth) and self.growth >= 0):
            raise ParameterError(
                expected="growth of at least 0", got=f"{self.growth}", do="change it"
            )
        for name in ("base_views", "csls_neighborhood", "otsu_bins", "burn_in", "max_iterations"):
            value = getattr(self, name)
            if value is not None:
                check_whole(value, name=name)
        for name, known in NAMES.items():
            if getattr(self, name) not in known:
                raise UnknownNameError.of(name, str(getattr(self, name)), known)

    def iterate(
        self, problem: LinkProblem, *, seed: int, state: LinkState | None
    ) -> Iterator[LinkState]:
        """Yield the state after each iteration, the last one done."""
        kept = state or _start(problem)
        while not kept.done:
            number = len(kept.history) + 1
            kept = self._next(problem, kept, np.random.default_rng((seed, number)))
            yield kept

    def finish(
        self, problem: LinkProblem, state: LinkState, *, seed: int, interrupted: bool
    ) -> Links:
        """Thin all candidates out one-to-one."""
        del seed
        table = VoteTable(state.pairs, state.votes)
        rows, posterior = _promote(problem, table.pairs, posterior_mean(table.votes, state.views))
        return Links(
            source_rows=rows[:, 0],
            target_rows=rows[:, 1],
            posterior=posterior,
            votes=table.of(rows),
            views=state.views,
            threshold=state.history[-1].threshold,
            method=self.name,
            history=state.history,
            verdict=LinkVerdict("not_judged"),
            interrupted=interrupted,
        )

    # --- the steps of an iteration ---------------------------------------------------------------

    def _next(self, problem: LinkProblem, state: LinkState, rng: np.random.Generator) -> LinkState:
        started = time.perf_counter()
        anchors = _anchors(problem, state)
        views = self._draw(anchors, rng)
        proposed = self._propose(problem, anchors, views, rng)
        table, views_before = VoteTable(state.pairs, state.votes), state.views
        if self.voting == "single_view":
            table, views_before = VoteTable.empty(), 0
        table = table.plus(proposed, each=views.each)
        n_views = len(views.places) * views.each
        posterior = posterior_mean(table.votes, views_before + n_views)
        threshold = otsu_threshold(posterior, bins=self.otsu_bins) if len(table) else 1.0
        over = posterior >= threshold
        rows, sure = _promote(problem, table.pairs[over], posterior[over])
        larger = max(len(problem.source), len(problem.target))
        iteration = Iteration(
            number=len(state.history) + 1,
            phase=self.name,
            views=n_views,
            anchors=len(anchors),
            candidates=len(table),
            links=len(rows),
            ratio=sum(len(np.unique(side)) for side in proposed.T) / larger,
            threshold=threshold,
            seconds=time.perf_counter() - started,
        )
        history = (*state.history, iteration)
        return LinkState(
            source_rows=rows[:, 0],
            target_rows=rows[:, 1],
            posterior=sure,
            pairs=table.pairs,
            votes=table.votes,
            views=views_before + n_views,
            history=history,
            done=self._is_done(history, larger),
        )

    def _draw(self, anchors: AnchorPairs, rng: np.random.Generator) -> _Views:
        """Draw the views: the seeds, and what furthest-point sampling adds to them."""
        n, n_seeds = len(anchors), anchors.n_seeds
        if self.voting == "single_view":
            return _Views(np.arange(n)[None], each=1)
        plan = schedule(
            n,
            n_seeds,
            base_views=self.base_views or math.ceil(2 / self.fraction),
            fraction=self.fraction,
            growth=self.growth if self.schedule == "log" else 0.0,
        )
        size = plan.size if self.view_size == "drawn" else max(plan.size - n_seeds, 1)
        if size >= n - n_seeds:
            return _Views(np.arange(n)[None], each=plan.views if self.equal_views == "each" else 1)
        vectors = anchors.source if self.side == "source" else anchors.target
        if self.view_sampling == "random":
            drawn = random_points(n - n_seeds, views=plan.views, size=size, rng=rng)
        else:
            drawn = furthest_points(
                vectors[n_seeds:],
                views=plan.views,
                size=size,
                rng=rng,
                given=vectors[:n_seeds] if self.fps_start == "seeds" else None,
            )
        seeds = np.broadcast_to(np.arange(n_seeds), (plan.views, n_seeds))
        return _Views(np.hstack([seeds, n_seeds + drawn]), each=1)

    def _propose(
        self,
        problem: LinkProblem,
        anchors: AnchorPairs,
        views: _Views,
        rng: np.random.Generator,
    ) -> IntArray:
        """Return the candidate links of all views, one after the other."""
        hashing = Hashing(
            kernel=self.kernel,
            distance=self.hash_distance,
            bandwidth=self.bandwidth,
            neighborhood=self.csls_neighborhood,
        )
        found = propose(
            problem.source, problem.target, anchors, views.places, hashing=hashing, rng=rng
        )
        return np.concatenate(list(found))

    def _is_done(self, history: tuple[Iteration, ...], rows: int) -> bool:
        """Whether linking ends here (appendix C.2.1)."""
        if self.bootstrapping == "once" or len(history) >= self.max_iterations:
            return True
        if history[-1].ratio == 0.0:
            return True
        ratios = [
            each.ratio if self.stop_on == "proposals" else 2 * each.links / rows
            for each in history[-self.burn_in - 1 :]
        ]
        return len(ratios) > self.burn_in and float(np.abs(np.diff(ratios)).max()) < self.tolerance


NAMES = {
    "kernel": get_args(Kernel),
    "hash_distance": get_args(HashDistance),
    "bandwidth": get_args(Bandwidth),
    "view_sampling": get_args(ViewSampling),
    "view_size": get_args(ViewSize),
    "fps_start": get_args(FpsStart),
    "side": get_args(Side),
    "equal_views": get_args(EqualViews),
    "schedule": get_args(ScheduleRule),
    "voting": get_args(Voting),
    "bootstrapping": get_args(Bootstrapping),
    "stop_on": get_args(StopOn),
}


def _start(problem: LinkProblem) -> LinkState:
    """Return the state before the first iteration: the seeds, and no votes."""
    table = VoteTable.empty()
    rows, posterior = _promote(problem, table.pairs, np.empty(0))
    return LinkState(
        source_rows=rows[:, 0],
        target_rows=rows[:, 1],
        posterior=posterior,
        pairs=table.pairs,
        votes=table.votes,
        views=0,
        history=(),
    )


def _anchors(problem: LinkProblem, state: LinkState) -> AnchorPairs:
    """Return the seeds, then the links that are not seeds, by source row."""
    rows = np.stack([state.source_rows, state.target_rows], axis=1)
    if problem.seed_rows is not None:
        rows = rows[~np.isin(rows[:, 0], problem.seed_rows[:, 0])]
    rows = rows[np.argsort(rows[:, 0])]
    return AnchorPairs(
        source=np.concatenate([problem.seed_source, problem.source[rows[:, 0]]]),
        target=np.concatenate([problem.seed_target, problem.target[rows[:, 1]]]),
        n_seeds=problem.n_seeds,
    )


def _promote(
    problem: LinkProblem, pairs: IntArray, posterior: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Return pairs one-to-one, the seeds before all others, with their posteriors."""
    seeds = problem.seed_rows
    if seeds is None:
        seeds = np.empty((0, 2), np.int64)
    free = ~(np.isin(pairs[:, 0], seeds[:, 0]) | np.isin(pairs[:, 1], seeds[:, 1]))
    pairs, posterior = pairs[free], posterior[free]
    kept = one_to_one(pairs, posterior)
    return (
        np.concatenate([seeds, pairs[kept]]),
        np.concatenate([np.ones(len(seeds)), posterior[kept]]),
    )
