"""Time and memory of a coupling, beside the bare product of its tiles and beside POT.

    OMP_NUM_THREADS=2 python benchmarks/sinkhorn_speed.py --data ../shared/data

Real vectors of two models (minilm-l6 and mpnet; climate-fever, scifact and question titles in that
order), shuffled: 500 anchor pairs, and 2,500, 5,000 and 10,000 rows a side whose pairing is not
shown; gamma 1, eta .02. Each run is a process of its own; processor seconds (of all threads) say
what a busy machine hides. Peak memory is that of the process (reset before the work) less what it
held with the inputs loaded; the work is the cost, the coupling and its nearest rows. Bare: the same
tiles multiplied on the same threads, nothing else, in the same process. POT: `ot.sinkhorn` in the
log domain on the stored matrix, for at most 200 iterations, after which its marginal error is still
larger (`stored_error`), so that `largest_difference` of the plans says how far POT has come; and
`empirical_sinkhorn`, which stores no matrix, for a few iterations. Sizes at which POT would take
minutes are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import common
import numpy as np

from isthmus._threads import one_blas_thread
from isthmus.transport import AnchorProfile, SimilarityCost, anchor_cost, sinkhorn

TASK = "sinkhorn_speed"
SIZES = (2_500, 5_000, 10_000)
POT_SIZE, POT_ITERATIONS, LAZY_ITERATIONS = 2_500, 200, 5
ANCHORS, ETA, TOLERANCE = 500, 0.02, 1e-4
SETS, MODELS = ("climate-fever", "scifact", "stackoverflow"), ("minilm-l6", "mpnet")


def sides(data: Path, n: int, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the rows and the anchors of both sides, the target rows in an order of their own."""
    most = max(SIZES) + ANCHORS
    order = np.random.default_rng(seed).permutation(most)
    rows, anchors = [], []
    for model in MODELS:
        every = np.concatenate([common.documents(data, name, model).matrix() for name in SETS])
        every = every[:most][order].astype(np.float32)
        anchors.append(every[:ANCHORS].copy())
        rows.append(every[ANCHORS : ANCHORS + n].copy())
    rows[1] = rows[1][np.random.default_rng(seed + 1).permutation(n)]
    return rows, anchors


def held(field: str) -> float:
    """Return what the process holds (VmRSS) or held at most (VmHWM), in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def peak_above(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return by how many MB the process grew at most, and what the work gave."""
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    before = held("VmRSS")
    done = work()
    return held("VmHWM") - before, done


def coupling(data: Path, n: int, seed: int) -> dict[str, Any]:
    (X, Y), (A, B) = sides(data, n, seed)
    sinkhorn(anchor_cost(X[:600], Y[:600], A, B), max_iterations=2)  # what is made once

    def work() -> dict[str, Any]:
        start = time.perf_counter()
        cost = anchor_cost(X, Y, A, B)
        ready, busy = time.perf_counter(), time.process_time()
        found = sinkhorn(cost, eta=ETA, tolerance=TOLERANCE)
        coupled, busy = time.perf_counter(), time.process_time() - busy
        found.nearest(10)
        return {
            "cost_s": ready - start,
            "sinkhorn_s": coupled - ready,
            "sinkhorn_cpu_s": busy,
            "nearest_s": time.perf_counter() - coupled,
            "iterations": len(found.errors),
            "error": found.error,
            "epsilon": found.epsilon,
            "cost": cost,
        }

    peak, found = peak_above(work)
    cost = found.pop("cost")
    iteration = found["sinkhorn_s"] / found["iterations"]
    iteration_cpu = found["sinkhorn_cpu_s"] / found["iterations"]
    bare, bare_cpu = bare_pass(cost)
    return {
        "n": n,
        "columns": cost.source.shape[1],
        **found,
        "peak_mb": peak,
        "inputs_mb": sum(each.nbytes for each in (X, Y, A, B)) / 2**20,
        "arrays_mb": traced(X, Y, A, B),
        "ns_per_entry_and_iteration": 1e9 * iteration / n**2,
        "peak_kb_per_row": 1024 * peak / (2 * n),
        "bare_pass_s": bare,
        "bare_pass_cpu_s": bare_cpu,
        "rate_of_bare": bare / iteration,
        "rate_of_bare_cpu": bare_cpu / iteration_cpu,
    }


def traced(X: np.ndarray, Y: np.ndarray, A: np.ndarray, B: np.ndarray) -> float:
    """Return the peak of Python's own count of memory over three iterations, in MB."""
    tracemalloc.start()
    sinkhorn(anchor_cost(X, Y, A, B), eta=ETA, max_iterations=3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def bare_pass(cost: SimilarityCost) -> tuple[float, float]:
    """Return the wall and processor seconds of multiplying all tiles: medians of five."""
    module = sys.modules["isthmus.transport.sinkhorn"]
    n, m = cost.shape
    step = min(module.MOST_ROWS, max(module.LEAST_ROWS, module.TILE // m // 16 * 16))
    others = cost.target.T

    def multiply(start: int) -> None:
        np.matmul(cost.source[start : start + step], others)

    times = []
    with one_blas_thread() as threads, ThreadPoolExecutor(threads) as pool:
        for _ in range(6):
            start, busy = time.perf_counter(), time.process_time()
            list(pool.map(multiply, range(0, n, step)))
            times.append((time.perf_counter() - start, time.process_time() - busy))
    wall, busy = np.median(times[1:], axis=0)
    return float(wall), float(busy)


def plain(data: Path, n: int, seed: int) -> dict[str, Any]:
    """Couple without over-relaxation."""
    sys.modules["isthmus.transport.sinkhorn"].MOST_RELAXED = 1.0
    (X, Y), (A, B) = sides(data, n, seed)
    cost = anchor_cost(X, Y, A, B)
    start, busy = time.perf_counter(), time.process_time()
    found = sinkhorn(cost, eta=ETA, tolerance=TOLERANCE)
    return {
        "n": n,
        "sinkhorn_s": time.perf_counter() - start,
        "sinkhorn_cpu_s": time.process_time() - busy,
        "iterations": len(found.errors),
        "error": found.error,
    }


def pot(data: Path, n: int, seed: int) -> dict[str, Any]:
    """Couple by POT, with the matrix and without."""
    import ot

    warnings.simplefilter("ignore")
    (X, Y), (A, B) = sides(data, n, seed)
    cost = anchor_cost(X, Y, A, B)
    mine = sinkhorn(cost, eta=ETA, tolerance=TOLERANCE)
    mass = np.full(n, 1 / n)

    def stored() -> tuple[float, float, np.ndarray, dict[str, Any]]:
        start, busy = time.perf_counter(), time.process_time()
        matrix = cost.tile(slice(None), slice(None)).astype(np.float64)
        plan, log = ot.sinkhorn(
            mass, mass, matrix, mine.epsilon, method="sinkhorn_log", log=True,
            stopThr=TOLERANCE / np.sqrt(n), numItermax=POT_ITERATIONS,
        )  # fmt: skip
        return time.perf_counter() - start, time.process_time() - busy, plan, log

    peak, (seconds, busy, plan, log) = peak_above(stored)
    profiles = [
        AnchorProfile.of(anchors).transform(rows).astype(np.float64)
        for rows, anchors in ((X, A), (Y, B))
    ]
    profiles = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in profiles]
    start = time.process_time()
    ot.bregman.empirical_sinkhorn(
        *profiles, 2 * mine.epsilon, isLazy=True, batchSize=512, numIterMax=LAZY_ITERATIONS,
        stopThr=0.0,
    )  # fmt: skip
    lazy = (time.process_time() - start) / LAZY_ITERATIONS
    there = mine.block(slice(None), slice(None))
    return {
        "n": n,
        "version": ot.__version__,
        "stored_s": seconds,
        "stored_cpu_s": busy,
        "stored_iterations": int(log["niter"]) + 1,
        "stored_error": float(np.abs(plan.sum(axis=0) - mass).sum()),
        "stored_peak_mb": peak,
        "lazy_cpu_s_per_iteration": lazy,
        "largest_difference": float(n * np.abs(plan - there).max()),
    }


RUNS = {"coupling": coupling, "plain": plain, "pot": pot}


def main() -> None:
    parser = common.arguments(__doc__)
    parser.set_defaults(seeds=[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    seed = options.seeds[0]
    if options.one:
        what, n = options.one
        print(json.dumps(RUNS[what](options.data, int(n), seed)))
        return
    cells = [("coupling", n) for n in options.sizes]
    cells += [("plain", n) for n in options.sizes if n <= POT_SIZE]
    cells += [("pot", n) for n in options.sizes if n <= POT_SIZE]
    result: dict[str, Any] = {"coupling": [], "plain": [], "pot": []}
    for name in ("geomloss", "ott"):
        if importlib.util.find_spec(name) is None:
            result[name] = "not installed, not measured"
    parameters = {
        "anchors": ANCHORS,
        "gamma": 1.0,
        "eta": ETA,
        "tolerance": TOLERANCE,
        "threads": os.environ.get("OMP_NUM_THREADS", "all"),
        "load": os.getloadavg()[0],
        "seed": seed,
    }
    for what, n in cells:
        command = [sys.executable, __file__, "--data", str(options.data), "--seeds", str(seed)]
        command += ["--one", what, str(n)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        result[what].append(json.loads(done.stdout))
        common.write(options.results, TASK, f"seed{seed}", parameters, result)
        print(what, done.stdout.strip(), flush=True)


if __name__ == "__main__":
    main()
