"""What `geh` is made of: whether it is the paper's, its parts, its parameters, its votes.

    python benchmarks/link_geh.py all --data ../shared/data
    python benchmarks/link_geh.py faithful --data ../shared/data

- faithful: climate-fever minilm-l6, first 2,400 rows, against the same rows rotated, with noise.
- ablation: every component off (table 4 of the paper).
- sensitivity: c, k of CSLS, rho0 (figure 10).
- views: furthest-point or random views, kernelised or raw distances, over the overlap (figure 4).
- proximity: precision and posterior by the distance to the nearest anchor (figure 9).
- votes: votes of true and of spurious pairs, from true anchors (figure 2).

The rotated problem stands in for encoders that agree as the paper's do; on the real pairs, which
agree far less, `geh` fails, and its parts with it. Results go where link_studies.py puts them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from link_cells import Pair, chosen, problem_of
from link_measure import Kept
from link_studies import PLANTED_PAIR, TASK, Trial, arguments, run_trial

from isthmus.evaluate.linking import are_true
from isthmus.link import LinkProblem
from isthmus.link.geh import Geh
from isthmus.link.hashing import anchor_distances, kernel_hashes, median_distance
from isthmus.link.views import random_points
from isthmus.link.votes import VoteTable
from isthmus.neighbors import mutual_by_csls

REAL = Pair("climate-fever", "minilm-l6", "mpnet")
ABLATION: dict[str, dict[str, Any]] = {
    "GEH": {},
    "- Kernel": {"kernel": "none"},
    "- FPS": {"view_sampling": "random"},
    "- FPS & Kernel": {"view_sampling": "random", "kernel": "none"},
    "- Adaptive schedule": {"schedule": "fixed"},
    "- Multi-view voting": {"voting": "single_view"},
    "- Bootstrapping": {"bootstrapping": "once"},
}
SWEEPS = {
    "growth": (0.0, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0),
    "csls_neighborhood": (1, 4, 10, 20, 50, 100, 200),
    "fraction": (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0),  # m0 = ceil(2 / rho0) follows by itself
}
ENCODINGS = {"kernelized": "exponential", "raw": "none"}
OVERLAPS = (0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)
PROXIMITY_BINS = 30
POOL, VOTING_VIEWS, VIEW_SIZE, SAMPLE = 500, 500, 30, 256


def main() -> None:
    args = arguments(__doc__, {**STUDIES, **LOOKS}, ("geh",))
    for study in args.studies:
        if study in STUDIES:
            for trial in STUDIES[study](args):
                run_trial(args, study, trial, "geh")
        else:
            look(args, study)


def problems(
    args: argparse.Namespace, pairs: list[Pair], overlap: tuple[float, ...]
) -> Iterator[tuple[Pair, dict[str, Any], Callable[[], tuple[LinkProblem, np.ndarray]]]]:
    """Yield pair, key and problem for all overlaps, numbers of seeds and draws."""
    for pair in chosen(args.cells, pairs):
        for share in args.overlap or overlap:
            for n_seeds in args.n_seeds or [15]:
                for draw in args.draws:
                    key = {"overlap": share, "n_seeds": n_seeds, "draw": draw}
                    yield pair, key, partial(problem_of, args.data, pair, **key)


def faithful(args: argparse.Namespace) -> Iterator[Trial]:
    """The check of faithfulness: F1 of a plain implementation is .896."""
    for pair, key, problem in problems(args, [PLANTED_PAIR], (0.3,)):
        yield Trial(pair, key, problem)


def ablation(args: argparse.Namespace) -> Iterator[Trial]:
    for pair, key, problem in problems(args, [PLANTED_PAIR, REAL], (0.15, 0.3)):
        for variant, settings in ABLATION.items():
            yield Trial(pair, {"variant": variant, **key}, problem, settings)


def sensitivity(args: argparse.Namespace) -> Iterator[Trial]:
    for pair, key, problem in problems(args, [PLANTED_PAIR, REAL], (0.3,)):
        for name, values in SWEEPS.items():
            for value in values:
                setting = {"parameter": name, "value": value}
                yield Trial(pair, {**setting, **key}, problem, {name: value})


def views(args: argparse.Namespace) -> Iterator[Trial]:
    for pair, key, problem in problems(args, [PLANTED_PAIR, REAL], OVERLAPS):
        for sampling in ("fps", "random"):
            for encoding, kernel in ENCODINGS.items():
                setting = {"views_by": sampling, "encoding": encoding}
                settings = {"view_sampling": sampling, "kernel": kernel}
                yield Trial(pair, {**setting, **key}, problem, settings)


def look(args: argparse.Namespace, study: str) -> None:
    """Run a study that looks inside and is not one run of a method, and keep its cells."""
    for pair, key, problem in problems(args, [PLANTED_PAIR, REAL], (0.2,)):
        parameters = {"study": study, **pair.parameters, "method": "geh"}
        kept = Kept(args.results, TASK, f"{study}.{pair.name}.geh", parameters, tuple(key))
        if kept.has(**key) and not args.again:
            continue
        kept.add({**key, **LOOKS[study](*problem(), draw=key["draw"])})
        print(f"{study} {pair.name}", key, flush=True)


def proximity(problem: LinkProblem, truth: np.ndarray, *, draw: int) -> dict[str, Any]:
    """Bin the links of the first and of the last iteration by the distance to their anchors.

    The anchors of the first iteration are the seeds, and all its views are the same, so that its
    posteriors are all equal. Those of the last are seeds and links; a link is no anchor of itself.
    """
    first = Geh(bootstrapping="once").link(problem, seed=draw).matched_rows()
    last = Geh().link(problem, seed=draw).matched_rows()
    found = {}
    for name, links in (("first", first), ("last", last)):
        rows = np.stack([links.source_rows, links.target_rows], axis=1)
        seeds = problem.seed_rows if problem.seed_rows is not None else np.empty((0, 2), np.int64)
        new = ~np.isin(rows[:, 0], seeds[:, 0])
        anchors = problem.seed_rows if name == "first" else rows
        away = nearest_anchor(problem, rows[new], anchors)
        order = np.argsort(away, kind="stable")
        right, sure = are_true(rows[new], truth), links.confidence[new]
        bins = [part for part in np.array_split(order, PROXIMITY_BINS) if len(part)]
        found[name] = [
            [
                len(part),
                np.median(away[part]),
                right[part].mean(),
                sure[part].mean(),
            ]
            for part in bins
        ]
    return found


def nearest_anchor(problem: LinkProblem, rows: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    """Return the least cosine distance of each link to another anchor, in any space."""
    own = rows[:, :1] == anchors[:, 0]
    away = [
        1.0 - cloud[rows[:, side]] @ cloud[anchors[:, side]].T
        for side, cloud in enumerate((problem.source, problem.target))
    ]
    closest: np.ndarray = np.where(own, np.inf, np.minimum(*away)).min(axis=1)
    return closest


def votes(problem: LinkProblem, truth: np.ndarray, *, draw: int) -> dict[str, Any]:
    """Count the votes of true and spurious pairs from views of true anchors, as in section 3."""
    rng = np.random.default_rng([draw, 6])
    pool = truth[rng.permutation(len(truth))[:POOL]]
    clouds = (problem.source, problem.target)
    tables = [
        anchor_distances(cloud, cloud[pool[:, side]], distance="cosine")
        for side, cloud in enumerate(clouds)
    ]
    samples = [rng.permutation(len(cloud))[:SAMPLE] for cloud in clouds]
    drawn = random_points(len(pool), views=VOTING_VIEWS, size=VIEW_SIZE, rng=rng)
    table = VoteTable.empty()
    for view in drawn:
        some = [each[rows][:, view] for each, rows in zip(tables, samples, strict=True)]
        sigma = median_distance(np.concatenate(some).astype(np.float64))
        hashes = [kernel_hashes(np.take(each, view, axis=1), bandwidth=sigma) for each in tables]
        found = mutual_by_csls(*hashes, neighborhood=50)
        table = table.plus(np.stack([found.source_rows, found.target_rows], axis=1))
    right = are_true(table.pairs, truth)
    counted = {
        name: np.unique(table.votes[kind], return_counts=True)
        for name, kind in (("true", right), ("spurious", ~right))
    }
    return {
        "views": VOTING_VIEWS,
        "view_size": VIEW_SIZE,
        "anchors": len(pool),
        "median_true": float(np.median(table.votes[right])) if right.any() else None,
        "pairs": {name: int(counts.sum()) for name, (_, counts) in counted.items()},
        "histogram": {name: np.stack(both, axis=1) for name, both in counted.items()},
    }


STUDIES: Mapping[str, Callable[[argparse.Namespace], Iterator[Trial]]] = {
    "faithful": faithful,
    "ablation": ablation,
    "sensitivity": sensitivity,
    "views": views,
}
LOOKS: Mapping[str, Callable[..., dict[str, Any]]] = {"proximity": proximity, "votes": votes}

if __name__ == "__main__":
    main()
