"""What training a learned map costs: seconds, quality, and how busy the processor is.

    OMP_NUM_THREADS=2 python benchmarks/federate_training.py --data ../shared/data

20,000 titles in two models, 384 to 768 columns, default settings. Every matrix product of torch is
counted while the map is fitted, by its shape; after each fit the same products are made bare, with
nothing between them. ``share`` compares the seconds of these with those of training (batches,
steps, looks at held-out pairs); the closed forms that it starts from are in the seconds of the fit.
Quality: neighbours kept of documents of other data sets, beside those of the closed forms.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import common
import numpy as np
from federate_cells import DATASETS, DEFAULT_MLP, TITLE_MODELS, TITLES, make_map
from federate_studies import kept_neighbours

from isthmus.maps.training import fitting

TASK = "federate_training"
Shape = tuple[int, int, int]
REPEATS = 20
"""Of each bare product at most; the rest of the fit's number is reckoned."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--results", type=Path, default=common.RESULTS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--map", default=DEFAULT_MLP)
    args = parser.parse_args()
    import torch

    torch.set_num_threads(args.threads)
    source, target = (
        common.documents(args.data, TITLES, model).matrix()[: args.pairs] for model in TITLE_MODELS
    )
    few = np.arange(min(200, len(source)))
    make_map(args.map, 0).fit(source[few], target[few])  # loads what torch loads late
    fits = [measure(args, source, target, seed) for seed in args.seeds]
    plain = {}
    for name in ("procrustes", "ridge"):
        start = time.perf_counter()
        fitted = make_map(name, 0).fit(source, target)
        plain[name] = {"seconds": time.perf_counter() - start, **quality(args.data, fitted)}
    parameters = {
        "pairs": len(source), "dims": [source.shape[1], target.shape[1]],
        "threads": args.threads, "map": args.map, "seed": args.seeds[0],
    }  # fmt: skip
    name = f"{args.map.replace(':', '.')}.{len(source)}"
    result = {"fits": fits, "closed forms": plain, "torch": torch.__version__}
    common.write(args.results, TASK, name, parameters, result)
    for fit in fits:
        print({key: value for key, value in fit.items() if key != "products"})
    shares = [fit["share"] for fit in fits]
    print(f"median share of the bare products' rate {statistics.median(shares):.2f}", plain)


def measure(
    args: argparse.Namespace, source: np.ndarray, target: np.ndarray, seed: int
) -> dict[str, Any]:
    """Fit with products counted, then make the same products bare."""
    unfitted = make_map(args.map, seed)
    start = time.perf_counter()
    with counting() as counts, timing() as trained:
        fitted = unfitted.fit(source, target)
    seconds = time.perf_counter() - start
    bare = bare_seconds(counts)
    flops = float(sum(2 * m * k * n * count for (m, k, n), count in counts.items()))
    return {
        "seed": seed,
        "seconds": seconds,
        "training seconds": sum(trained),
        "flops": flops,
        "gflops": flops / sum(trained) / 1e9,
        "bare gflops": flops / bare / 1e9,
        "share": bare / sum(trained),
        "share of the fit": bare / seconds,
        "about": getattr(fitted.inner_, "about", ""),
        **quality(args.data, fitted),
        "products": [[*shape, count] for shape, count in counts.most_common(12)],
    }


@contextmanager
def timing() -> Iterator[list[float]]:
    """Note the seconds of every training inside the block: batches, steps, looks."""
    seconds: list[float] = []
    whole = fitting.train

    def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            return whole(*args, **kwargs)
        finally:
            seconds.append(time.perf_counter() - start)

    fitting.train = timed
    try:
        yield seconds
    finally:
        fitting.train = whole


@contextmanager
def counting() -> Iterator[Counter[Shape]]:
    """Count how often torch makes each matrix product, (m, k) by (k, n), inside the block."""
    from torch.utils._python_dispatch import TorchDispatchMode

    counts: Counter[Shape] = Counter()

    class Counting(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            del types
            if func.__name__.startswith(("mm.", "addmm.")):
                one, two = args[-2:]
                counts[(one.shape[0], one.shape[1], two.shape[1])] += 1
            return func(*args, **(kwargs or {}))

    with Counting():
        yield counts


def bare_seconds(counts: Counter[Shape]) -> float:
    """Return the seconds that these products take with nothing between them."""
    import torch

    total = 0.0
    for (m, k, n), count in counts.items():
        one, two = torch.randn(m, k), torch.randn(k, n)
        torch.mm(one, two)
        repeats = min(count, REPEATS)
        start = time.perf_counter()
        for _ in range(repeats):
            torch.mm(one, two)
        total += (time.perf_counter() - start) / repeats * count
    return total


def quality(data: Path, fitted: Any) -> dict[str, float]:
    """Return the neighbours kept of the documents of other data sets."""
    return {
        f"neighbours kept, {dataset}": kept_neighbours(
            *(common.documents(data, dataset, model).matrix() for model in TITLE_MODELS), fitted
        )
        for dataset in DATASETS
    }


if __name__ == "__main__":
    main()
