"""Linking on real vectors: the grid of the paper for our methods, one corner of it for the others.

    python benchmarks/link.py --data ../shared/data
    python benchmarks/link.py --data ../shared/data --quick

Split as in section 5.1 of the paper: overlap = shared / union, seeds drawn at random out of the
shared objects. One JSON per data set, pair of models and method in benchmarks/results/link/,
written after every cell; cells that are done are skipped. Side by side, run different data sets or
methods.

Methods that are trained on the seeds once are run at overlap .3 and 15 seeds, on two draws. `ugw`
and `ao` hold matrices of all rows by all rows and refuse the large data set. vecmap is called where
--vecmap names the folder of its scripts (map_embeddings.py); it is not part of this repository.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from link_cells import Pair, chosen, every_pair, parser_of, problem_of
from link_measure import Kept, Method, report, run
from link_vecmap import Vecmap

from isthmus.errors import IsthmusError
from isthmus.link.registry import make

TASK = "link"
GRID = ("procrustes", "geh", "self_training", "auto")
OTHERS = ("linear", "cca", "rcsls", "mlp", "ugw", "ao")
OVERLAPS, SEEDS = (0.15, 0.2, 0.3, 0.45), (15, 20, 30)
CORNER_OVERLAP, CORNER_SEEDS, CORNER_DRAWS = 0.3, 15, (0, 1)
KEYS = ("overlap", "n_seeds", "draw")
QUICK = ("climate-fever.minilm-l6.para-l3",)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--methods", nargs="+", help="of the grid and the corner; all by default")
    parser.add_argument("--overlap", type=float, nargs="+", default=OVERLAPS)
    parser.add_argument("--n-seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--vecmap", type=Path, help="folder with vecmap's map_embeddings.py")
    parser.add_argument("--quick", action="store_true", help="a subset of about two minutes")
    args = parser.parse_args()
    if args.quick:
        args.cells, args.overlap, args.n_seeds, args.draws = QUICK, [0.3], [15], args.draws[:1]
        args.methods = args.methods or GRID
    if args.vecmap is None:
        print("vecmap is left out: --vecmap DIR names the folder of its scripts")
    for pair, method in planned(args):
        run_method(args, pair, method)


def planned(args: argparse.Namespace) -> Iterator[tuple[Pair, str]]:
    """Yield what is asked for: pair by pair, the fast methods first."""
    vecmap = [Vecmap.name] if args.vecmap else []
    for pair in chosen(args.cells, every_pair()):
        for method in args.methods or [*GRID, *OTHERS, *vecmap]:
            yield pair, method


def run_method(args: argparse.Namespace, pair: Pair, method: str) -> None:
    """Run the cells of one file that are not done yet."""
    parameters = {**pair.parameters, "method": method}
    kept = Kept(args.results, TASK, f"{pair.name}.{method}", parameters, KEYS)
    for key in keys(args, method):
        if kept.has(**key) and not args.again:
            continue
        problem, truth = problem_of(args.data, pair, **key)
        try:
            made = method_of(args, method, len(truth))
            cell = run(made, problem, truth, seed=key["draw"])
        except (ImportError, IsthmusError) as error:
            print(f"{pair.name}: {method} is left out: {error}")
            return
        kept.add({**key, **cell})
        report(f"{pair.name} {method}", cell, key)


def keys(args: argparse.Namespace, method: str) -> Iterator[dict[str, Any]]:
    """Yield overlap, seeds and draw of the cells of a method."""
    left_out = set() if method == Vecmap.name else set(range(5)) - set(CORNER_DRAWS)
    for overlap in args.overlap:
        for n_seeds in args.n_seeds:
            for draw in args.draws:
                corner = (overlap, n_seeds) == (CORNER_OVERLAP, CORNER_SEEDS)
                if method in GRID or (corner and draw not in left_out):
                    yield {"overlap": overlap, "n_seeds": n_seeds, "draw": draw}


def method_of(args: argparse.Namespace, name: str, shared: int) -> Method:
    """Make a method; anchor optimisation is told the overlap, as in the paper."""
    if name == Vecmap.name:
        return Vecmap(args.vecmap)
    if name == "ao":
        return make(name, overlap=shared)
    return make(name)


if __name__ == "__main__":
    main()
