"""Time and memory of linking: whole methods, one view of `geh`, and growth.

    python benchmarks/link_speed.py --data ../shared/data

- methods: climate-fever at overlap .3 and 15 seeds, 3,406 x 3,406 vectors, three pairs of widths.
  Each run is a process of its own; its peak memory holds all of Python, libraries and inputs.
- view: one view of 100 true anchors on the same clouds (384 and 768 columns), by turns with the
  bare product of its hashes and with the product and numpy's top 50 both ways, which is what CSLS
  needs done plainly. Medians, on one thread and on all.
- growth: 20,000 question titles are all there are, so 20,000 on each side share everything or are
  filled up. Three sizes: the paper's split of the titles (overlap .3, 13,000 a side); all titles on
  both sides (overlap 1); and the split of titles, climate-fever and scifact together (30,423
  objects, overlap .315: 20,004 a side). Duplicates: 20 of the titles have equal vectors.

Writes benchmarks/results/link_speed/: one JSON for the view, one per run. Runs that are done are
skipped.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import common
import numpy as np
from link_cells import Pair, matrix, parser_of, problem_of, split
from link_measure import Kept, plain, run
from threadpoolctl import threadpool_info, threadpool_limits

from isthmus.link import LinkProblem
from isthmus.link.hashing import anchor_distances, kernel_hashes, median_distance
from isthmus.link.registry import make
from isthmus.neighbors import mutual_by_csls

TASK = "link_speed"
CLIMATE = [
    Pair("climate-fever", *models)
    for models in (("minilm-l6", "para-l3"), ("minilm-l6", "mpnet"), ("mpnet", "minilm-l6"))
]
TITLES = Pair("stackoverflow", "minilm-l6", "mpnet")
MIXED = Pair("titles+climate-fever+scifact", "minilm-l6", "mpnet")
GROWTH = ((TITLES, 0.3), (TITLES, 1.0), (MIXED, 0.315))
KEYS = ("overlap", "n_seeds", "draw")
ANCHORS, NEIGHBORHOOD, SAMPLE = 100, 50, 256


def main() -> None:
    parser = parser_of(__doc__)
    parser.set_defaults(draws=[0])
    parser.add_argument("--parts", nargs="+", default=["view", "methods", "growth"])
    parser.add_argument("--methods", nargs="+", help="auto and geh by default; growth: auto")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        one(args.data, **json.loads(args.one))
        return
    if "view" in args.parts:
        view(args)
    if "methods" in args.parts:
        whole_runs(args, [(pair, 0.3) for pair in CLIMATE], args.methods or ["auto", "geh"])
    if "growth" in args.parts:
        whole_runs(args, GROWTH, args.methods or ["auto"])


def whole_runs(
    args: argparse.Namespace, runs: Sequence[tuple[Pair, float]], methods: Sequence[str]
) -> None:
    for pair, overlap in runs:
        if pair.name.startswith(tuple(args.cells)):
            for method in methods:
                for draw in args.draws:
                    keep(args, pair, method, {"overlap": overlap, "n_seeds": 15, "draw": draw})


def keep(args: argparse.Namespace, pair: Pair, method: str, key: dict[str, Any]) -> None:
    """Run in a process of its own, unless that is done."""
    parameters = {**pair.parameters, "method": method}
    kept = Kept(args.results, TASK, f"{pair.name}.{method}", parameters, KEYS)
    if kept.has(**key) and not args.again:
        return
    asked = json.dumps({"pair": pair.parameters, "method": method, "key": key})
    command = [sys.executable, __file__, "--data", str(args.data), "--one", asked]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    cell = json.loads(done.stdout)
    kept.add({**key, **cell})
    print(
        f"{pair.name} {method} {cell['rows']}: {cell['seconds']:.1f} s, {cell['peak_mb']:.0f} MB, "
        f"F1 {cell['own']['f1']:.3f}",
        flush=True,
    )


def one(data: Path, *, pair: dict[str, str], method: str, key: dict[str, Any]) -> None:
    problem, truth = problem_for(data, Pair(**pair), **key)
    cell = run(make(method), problem, truth, seed=key["draw"])
    print(json.dumps(plain({**cell, "threads": blas_threads()})))


def problem_for(
    data: Path, pair: Pair, *, overlap: float, n_seeds: int, draw: int
) -> tuple[LinkProblem, np.ndarray]:
    if pair != MIXED:
        return problem_of(data, pair, overlap=overlap, n_seeds=n_seeds, draw=draw)
    sets = ("stackoverflow", "climate-fever", "scifact")
    source, target = (
        np.concatenate([matrix(data, name, model) for name in sets])
        for model in (pair.source, pair.target)
    )
    cut = split(len(source), overlap=overlap, draw=draw)
    clouds = source[cut.source_rows], target[cut.target_rows]
    return LinkProblem.of_rows(*clouds, cut.truth[:n_seeds]), cut.truth


def view(args: argparse.Namespace) -> None:
    """Time one view beside what it cannot do without."""
    for pair in CLIMATE[:2]:
        problem, truth = problem_of(args.data, pair, overlap=0.3, n_seeds=ANCHORS, draw=0)
        rng = np.random.default_rng(0)
        left, right = hashes_of(problem, rng)
        calls: dict[str, Callable[[], object]] = {
            "view": lambda problem=problem: one_view(problem, np.random.default_rng(0)),
            "product": lambda left=left, right=right: left @ right.T,
            "numpy top 50": lambda left=left, right=right: plain_view(left, right),
        }
        with threadpool_limits(1):
            single = in_turns(calls, args.repeats)
        every = in_turns(calls, args.repeats)
        found = {
            "rows": [len(problem.source), len(problem.target)],
            "dims": [problem.source.shape[1], problem.target.shape[1]],
            "anchors": ANCHORS,
            "threads": blas_threads(),
            "ms_one_thread": single,
            "ms_all_threads": every,
            "shared": len(truth),
        }
        name = f"view.{pair.name}"
        common.write(args.results, TASK, name, {**pair.parameters, "part": "view"}, plain(found))
        print(name, {"one thread": single, "all threads": every}, flush=True)


def one_view(problem: LinkProblem, rng: np.random.Generator) -> object:
    """Do what `geh` does in a view: distances, bandwidth, hashes, mutual pairs by CSLS."""
    return mutual_by_csls(*hashes_of(problem, rng), neighborhood=NEIGHBORHOOD)


def hashes_of(problem: LinkProblem, rng: np.random.Generator) -> list[np.ndarray]:
    clouds = (problem.source, problem.target)
    anchors = (problem.seed_source, problem.seed_target)
    tables = [
        anchor_distances(cloud, side, distance="cosine")
        for cloud, side in zip(clouds, anchors, strict=True)
    ]
    some = [table[rng.permutation(len(table))[:SAMPLE]] for table in tables]
    sigma = median_distance(np.concatenate(some).astype(np.float64))
    return [kernel_hashes(table, bandwidth=sigma) for table in tables]


def plain_view(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Find the mutual pairs by CSLS with numpy: all products, top 50 both ways."""
    products = left @ right.T
    near = [
        np.partition(side, side.shape[1] - NEIGHBORHOOD, axis=1)[:, -NEIGHBORHOOD:].mean(axis=1)
        for side in (products, np.ascontiguousarray(products.T))
    ]
    products = 2.0 * products - near[0][:, None] - near[1]
    best, back = products.argmax(axis=1), products.argmax(axis=0)
    return np.flatnonzero(back[best] == np.arange(len(best)))


def in_turns(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the median milliseconds of each call, after one round that is not counted."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(repeats + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if turn:
                times[name].append(1e3 * (time.perf_counter() - start))
    return {name: round(statistics.median(each), 3) for name, each in times.items()}


def blas_threads() -> int:
    return max(
        (lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"), default=1
    )


if __name__ == "__main__":
    main()
