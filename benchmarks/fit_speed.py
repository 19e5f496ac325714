"""Time and memory of fitting every closed-form map, beside the decomposition it stands for.

    python benchmarks/fit_speed.py --data ../shared/data

The reference is `scipy.linalg.svd(X, full_matrices=False)` of the float32 source rows; for maps
that choose a penalty, also one float32 product (n, dim_source) x (dim_source, dim_target) per
penalty of the grid; CCA has a second ratio beside the SVD of both sides. Vectors are real (question
titles, minilm-l6 of 384 and mpnet of 768 columns; 768 to 768 maps mpnet to minilm-l6 beside half of
mpnet), as the maps are fitted in a bridge: unit rows, centred. All calls of a size run by turns,
and a ratio is that of the smallest times: once with one thread, in CPU seconds, which other
programs on the machine hardly change, and once with all threads, in seconds of the clock.

Memory is the peak of a process of its own that loads the two float32 matrices and fits once: all of
Python, libraries and inputs included, and beside it what the process held just before `fit`. Writes
one JSON into benchmarks/results/fit_speed/.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import common
import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits

from isthmus.maps import MAPS, make

CLOSED_FORM = [name for name in MAPS if name != "mlp_small" and not MAPS[name]().costly]
CHOOSES_PENALTY = ("low_rank", "procrustes_ridge", "ridge")
PENALTIES = 25
SIZES = [
    (500, 384, 768),
    (1_000, 384, 768),
    (2_000, 384, 768),
    (2_000, 768, 384),
    (2_000, 768, 768),
    (5_000, 768, 768),
    (20_000, 384, 768),
    (20_000, 768, 768),
]
MEMORY_SIZE = (20_000, 768, 768)


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--largest", type=int, default=20_000, help="skip sizes of more pairs")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.memory_of:
        fit_once(args)
        return
    sizes = [size for size in SIZES if size[0] <= args.largest]
    times = [measure(args, size) for size in sizes]
    memory = {name: peak(args, name) for name in CLOSED_FORM} if MEMORY_SIZE in sizes else {}
    common.write(
        args.results,
        "fit_speed",
        "stackoverflow",
        {"repeats": args.repeats, "penalties": PENALTIES, "memory size": MEMORY_SIZE},
        {"times": times, "memory_mb": memory},
    )


def load(data: Path, n: int, dim_source: int, dim_target: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n centred pairs of the asked widths, float32."""
    rows = np.random.default_rng(0).permutation(20_000)[:n]
    small, large = (
        common.documents(data, "stackoverflow", model).matrix()[rows]
        for model in ("minilm-l6", "mpnet")
    )
    widths = {384: small, 768: large}
    source, target = widths[dim_source], widths[dim_target]
    if dim_source == dim_target:
        target = np.hstack([small, large[:, :384]])
    return tuple(np.ascontiguousarray(side - side.mean(axis=0)) for side in (source, target))


def measure(args: argparse.Namespace, size: tuple[int, int, int]) -> dict[str, object]:
    """Time the reference calls and every map at one size, with one thread and with all."""
    X, Y = load(args.data, *size)
    weight = np.ones((size[1], size[2]), dtype=np.float32)
    calls: dict[str, Callable[[], object]] = {
        "svd of source": lambda: scipy.linalg.svd(X, full_matrices=False),
        "svd of target": lambda: scipy.linalg.svd(Y, full_matrices=False),
        "product": lambda: X @ weight,
    }
    for name in CLOSED_FORM:
        calls[name] = lambda name=name: make(name).fit(X, Y)
    with threadpool_limits(1):
        one = in_turns(calls, args.repeats, time.process_time)
    every = in_turns(calls, args.repeats, time.perf_counter)
    result = {
        "size": size,
        "cpu_seconds_one_thread": one,
        "seconds_all_threads": every,
        "ratios_one_thread": ratios(one),
        "ratios_all_threads": ratios(every),
    }
    print(f"\n{size[0]:,} pairs, {size[1]} to {size[2]}: svd {one['svd of source']:.3f} s")
    for name, ratio in ratios(one).items():
        print(f"  {name:<24} {ratio:5.2f} (all threads {ratios(every)[name]:5.2f})")
    return result


def in_turns(
    calls: dict[str, Callable[[], object]], repeats: int, clock: Callable[[], float]
) -> dict[str, float]:
    """Return the smallest time of each call, after one round that is not counted."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(repeats + 1):
        for name, call in calls.items():
            start = clock()
            call()
            if turn:
                times[name].append(clock() - start)
    return {name: min(seconds) for name, seconds in times.items()}


def ratios(times: dict[str, float]) -> dict[str, float]:
    """Return the time of every map over that of its reference calls."""
    svd, products = times["svd of source"], PENALTIES * times["product"]
    found = {
        name: times[name] / (svd + (products if name in CHOOSES_PENALTY else 0))
        for name in CLOSED_FORM
    }
    return {**found, "cca, svd of both sides": times["cca"] / (svd + times["svd of target"])}


def peak(args: argparse.Namespace, name: str) -> dict[str, float]:
    """Fit in a process of its own and return its peak memory, in MB."""
    command = [sys.executable, __file__, "--data", str(args.data), "--memory-of", name]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    print(f"{name}: peak {found['peak']:.0f} MB, {found['before fit']:.0f} MB before fit")
    return found


def fit_once(args: argparse.Namespace) -> None:
    X, Y = load(args.data, *MEMORY_SIZE)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    before = pages * resource.getpagesize() / 2**20
    make(args.memory_of).fit(X, Y)
    lines = Path("/proc/self/status").read_text().splitlines()
    highest = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    print(json.dumps({"peak": highest, "before fit": before}))


if __name__ == "__main__":
    main()
