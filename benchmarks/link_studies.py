"""Linking where something is hard: the seeds, the sizes of the clouds, no overlap at all.

    python benchmarks/link_studies.py all --data ../shared/data
    python benchmarks/link_studies.py wrong --data ../shared/data --cells climate-fever --draws 0

- other: 30 seeds from another data set in the same two models (section 5.4 of the paper, figure 5).
- wrong: 10 % and 20 % of the seeds name a wrong partner.
- strategies: how seeds lie in the shared objects: nearest, random, fps, centroids (table 7).
- sizes: overlap from .05 to 1, and clouds ten times as large as the other.
- unrelated: nothing is shared; seeds are right pairs from elsewhere, or rows at random.

One JSON per study, pair of models and method in benchmarks/results/link_studies/; cells that are
done are skipped. Studies of `geh` itself are in link_geh.py.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import common
import numpy as np
from link_cells import (
    PLANTED,
    THREE,
    Pair,
    chosen,
    every_pair,
    matrix,
    parser_of,
    problem_of,
    sides,
    split,
)
from link_measure import Kept, report, run

from isthmus.link import LinkProblem
from isthmus.link.registry import make

TASK = "link_studies"
METHODS = ("geh", "self_training", "auto")
STRATEGIES = ("nearest", "random", "fps", "centroids")
OVERLAPS = (0.05, 0.1, 0.2, 0.3, 0.45, 0.7, 1.0)
ELSEWHERE = "scifact"  # shares nothing with the clouds of `unrelated`
PLANTED_PAIR = Pair("climate-fever", "minilm-l6", PLANTED)
STRATEGY_PAIRS = [
    *(Pair(dataset, "minilm-l6", "mpnet") for dataset in ("climate-fever", "scifact")),
    PLANTED_PAIR,
]
UNRELATED_PAIRS = [Pair("climate-fever", *models) for models in THREE]

Made = tuple[LinkProblem, np.ndarray]


@dataclass(frozen=True)
class Trial:
    """One run of a study: what tells it apart, and how its problem is made."""

    pair: Pair
    key: Mapping[str, Any]
    problem: Callable[[], Made]
    settings: Mapping[str, Any] = field(default_factory=dict)


def main() -> None:
    args = arguments(__doc__, STUDIES, METHODS)
    for study in args.studies:
        for trial in STUDIES[study](args):
            for method in args.methods:
                run_trial(args, study, trial, method)


def arguments(
    description: str | None, studies: Mapping[str, Any], methods: Sequence[str]
) -> argparse.Namespace:
    """Read what studies take; "all" stands for all of them."""
    parser = parser_of(description)
    parser.add_argument("studies", nargs="+", choices=[*studies, "all"])
    parser.add_argument("--methods", nargs="+", default=list(methods))
    parser.add_argument("--overlap", type=float, nargs="+")
    parser.add_argument("--n-seeds", type=int, nargs="+")
    args = parser.parse_args()
    if "all" in args.studies:
        args.studies = list(studies)
    return args


def run_trial(args: argparse.Namespace, study: str, trial: Trial, method: str) -> None:
    """Run a trial unless it is done, and keep it."""
    parameters = {"study": study, **trial.pair.parameters, "method": method}
    name = f"{study}.{trial.pair.name}.{method}"
    kept = Kept(args.results, TASK, name, parameters, tuple(trial.key))
    if kept.has(**trial.key) and not args.again:
        return
    problem, truth = trial.problem()
    made = make(method, **trial.settings)
    cell = {**trial.key, **run(made, problem, truth, seed=trial.key["draw"])}
    kept.add(cell)
    report(name, cell, trial.key)


def other(args: argparse.Namespace) -> Iterator[Trial]:
    """Seeds out of every other data set that both models have embedded."""
    for pair in chosen(args.cells, every_pair()):
        for home in homes(pair):
            for n_seeds in args.n_seeds or [30]:
                for overlap in args.overlap or [0.3]:
                    for draw in args.draws:
                        given = {"overlap": overlap, "n_seeds": n_seeds, "draw": draw}
                        yield Trial(
                            pair,
                            {"seeds_from": home, **given},
                            partial(seeded_elsewhere, args.data, pair, home, **given),
                        )


def homes(pair: Pair) -> list[str]:
    """Name the other data sets with vectors of both models."""
    return [
        each.dataset
        for each in every_pair()
        if (each.source, each.target) == (pair.source, pair.target) and each.dataset != pair.dataset
    ]


def seeded_elsewhere(
    data: Path, pair: Pair, home: str, *, overlap: float, n_seeds: int, draw: int
) -> Made:
    source, target = sides(data, pair, draw)
    cut = split(len(source), overlap=overlap, draw=draw)
    first, second = (matrix(data, home, model) for model in (pair.source, pair.target))
    rows = np.random.default_rng([draw, 2]).permutation(len(first))[:n_seeds]
    clouds = source[cut.source_rows], target[cut.target_rows]
    return LinkProblem.of_vectors(*clouds, first[rows], second[rows]), cut.truth


def wrong(args: argparse.Namespace) -> Iterator[Trial]:
    """Seeds of which a share, rounded to the nearest number, is wrong."""
    for pair in chosen(args.cells, [*every_pair()[:6], PLANTED_PAIR]):
        for n_seeds in args.n_seeds or [15, 30]:
            for overlap in args.overlap or [0.3]:
                for share in (0.1, 0.2):
                    for draw in args.draws:
                        given = {"overlap": overlap, "n_seeds": n_seeds, "draw": draw}
                        yield Trial(
                            pair,
                            {"wrong": share, **given},
                            partial(misled, args.data, pair, share, **given),
                        )


def misled(
    data: Path, pair: Pair, share: float, *, overlap: float, n_seeds: int, draw: int
) -> Made:
    """Give the first seeds a random target row that is no seed's partner."""
    right, truth = problem_of(data, pair, overlap=overlap, n_seeds=n_seeds, draw=draw)
    seeds = truth[:n_seeds].copy()
    rng = np.random.default_rng([draw, 3])
    free = np.setdiff1d(np.arange(len(right.target)), seeds[:, 1])
    count = round(share * n_seeds)
    seeds[:count, 1] = rng.choice(free, size=count, replace=False)
    return LinkProblem.of_rows(right.source, right.target, seeds), truth


def strategies(args: argparse.Namespace) -> Iterator[Trial]:
    """Seeds chosen out of the shared objects as in appendix C.2.3."""
    for pair in chosen(args.cells, STRATEGY_PAIRS):
        for overlap in args.overlap or [0.3]:
            for n_seeds in args.n_seeds or [15, 20, 30]:
                for strategy in STRATEGIES:
                    for draw in args.draws:
                        given = {"overlap": overlap, "n_seeds": n_seeds, "draw": draw}
                        yield Trial(
                            pair,
                            {"strategy": strategy, **given},
                            partial(seeded_by, args.data, pair, strategy, **given),
                        )


def seeded_by(
    data: Path, pair: Pair, strategy: str, *, overlap: float, n_seeds: int, draw: int
) -> Made:
    drawn, truth = problem_of(data, pair, overlap=overlap, n_seeds=n_seeds, draw=draw)
    if strategy == "random":
        return drawn, truth
    shared = drawn.source[truth[:, 0]]
    places = {"nearest": nearest, "fps": furthest, "centroids": centroids}[strategy](
        shared, n_seeds, draw
    )
    return LinkProblem.of_rows(drawn.source, drawn.target, truth[places]), truth


def nearest(shared: np.ndarray, n_seeds: int, draw: int) -> np.ndarray:
    """Return a random row and its nearest ones."""
    start = np.random.default_rng([draw, 4]).integers(len(shared))
    return np.argsort(-(shared @ shared[start]), kind="stable")[:n_seeds]


def furthest(shared: np.ndarray, n_seeds: int, draw: int) -> np.ndarray:
    """Return a random row, and again and again the row furthest from all before."""
    places = [int(np.random.default_rng([draw, 4]).integers(len(shared)))]
    closest = shared @ shared[places[0]]
    while len(places) < n_seeds:
        places.append(int(np.argmin(closest)))
        closest = np.maximum(closest, shared @ shared[places[-1]])
    return np.array(places)


def centroids(shared: np.ndarray, n_seeds: int, draw: int) -> np.ndarray:
    """Return of each cluster by k-means the row nearest to its centre."""
    from sklearn.cluster import KMeans

    found = KMeans(n_seeds, n_init=1, random_state=draw).fit(shared)
    away = np.linalg.norm(shared - found.cluster_centers_[found.labels_], axis=1)
    order = np.lexsort((away, found.labels_))
    _, first = np.unique(found.labels_[order], return_index=True)
    return order[first]


def sizes(args: argparse.Namespace) -> Iterator[Trial]:
    """Any overlap; and clouds of one to ten, each way, which allows an overlap of .1 at most."""
    for pair in chosen(args.cells, every_pair()[:6]):
        shapes = [("1:1", overlap) for overlap in args.overlap or OVERLAPS]
        shapes += [(shape, 0.05) for shape in ("1:10", "10:1")]
        for shape, overlap in shapes:
            for n_seeds in args.n_seeds or [15]:
                for draw in args.draws:
                    given = {"overlap": overlap, "n_seeds": n_seeds, "draw": draw}
                    yield Trial(
                        pair,
                        {"shape": shape, **given},
                        partial(shaped, args.data, pair, shape, **given),
                    )


def shaped(data: Path, pair: Pair, shape: str, *, overlap: float, n_seeds: int, draw: int) -> Made:
    source, target = sides(data, pair, draw)
    n = len(source)
    wanted = None
    if shape != "1:1":
        both = n + round(overlap * n)  # every object is used
        small = both // 11
        wanted = (small, both - small) if shape == "1:10" else (both - small, small)
    cut = split(n, overlap=overlap, draw=draw, sizes=wanted)
    clouds = source[cut.source_rows], target[cut.target_rows]
    return LinkProblem.of_rows(*clouds, cut.truth[:n_seeds]), cut.truth


def unrelated(args: argparse.Namespace) -> Iterator[Trial]:
    """Two data sets, or the two halves of one, that share nothing."""
    for pair in chosen(args.cells, UNRELATED_PAIRS):
        for clouds in ("two data sets", "two halves"):
            for seeds in ("queries", "random rows"):
                for n_seeds in args.n_seeds or [15, 30]:
                    for draw in args.draws:
                        given = {"n_seeds": n_seeds, "draw": draw}
                        yield Trial(
                            pair,
                            {"clouds": clouds, "seeds": seeds, "overlap": 0.0, **given},
                            partial(apart, args.data, pair, clouds, seeds, **given),
                        )


def apart(data: Path, pair: Pair, clouds: str, seeds: str, *, n_seeds: int, draw: int) -> Made:
    """Make clouds of half a data set each; right seeds are queries from elsewhere."""
    source, target = sides(data, pair, draw)
    cut = split(len(source), overlap=0.0, draw=draw)
    first, second = source[cut.source_rows], target[cut.target_rows]
    if clouds == "two data sets":
        second = matrix(data, ELSEWHERE, pair.target)[: len(second)]
    nothing = np.empty((0, 2), np.int64)
    rng = np.random.default_rng([draw, 5])
    if seeds == "random rows":
        rows = [rng.permutation(len(cloud))[:n_seeds] for cloud in (first, second)]
        return LinkProblem.of_rows(first, second, np.stack(rows, axis=1)), nothing
    asked = [
        common.queries(data, ELSEWHERE, model).matrix() for model in (pair.source, pair.target)
    ]
    rows = rng.permutation(len(asked[0]))[:n_seeds]
    return LinkProblem.of_vectors(first, second, *(side[rows] for side in asked)), nothing


STUDIES: dict[str, Callable[[argparse.Namespace], Iterator[Trial]]] = {
    "other": other,
    "wrong": wrong,
    "strategies": strategies,
    "sizes": sizes,
    "unrelated": unrelated,
}

if __name__ == "__main__":
    main()
