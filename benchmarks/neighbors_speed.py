"""Speed of the exact search and of the measures on real vectors, beside bare loops.

    python benchmarks/neighbors_speed.py --data ../shared/data

1,000 rows against 20,000 x 768 (question titles, mpnet): `top_k` beside faiss alone and beside a
numpy product with `argpartition`, both of which break ties as it happens and change their numbers
with the batch; then HNSW, and the whole preservation family for a ridge map of minilm-l6 vectors.
Calls are timed in turns; ratios are of medians.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import common
import faiss
import numpy as np

from isthmus.evaluate import Native, measure_pairs
from isthmus.neighbors import Exact, Hnsw, csls, top_k

QUERIES, PAIRS, K = 1_000, 2_000, 10


def with_faiss(queries: np.ndarray, database: np.ndarray) -> np.ndarray:
    return faiss.knn(queries, database, K, metric=faiss.METRIC_INNER_PRODUCT)[1]


def with_numpy(queries: np.ndarray, database: np.ndarray) -> np.ndarray:
    found = np.empty((len(queries), K), np.int64)
    for start in range(0, len(queries), 256):
        scores = queries[start : start + 256] @ database.T
        rows = np.argpartition(scores, -K, axis=1)[:, -K:]
        order = np.argsort(-np.take_along_axis(scores, rows, axis=1), axis=1)
        found[start : start + 256] = np.take_along_axis(rows, order, axis=1)
    return found


def in_turns(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the median seconds of each call, after one round that is not counted."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(repeats + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if turn:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def ridge(source: np.ndarray, target: np.ndarray, rows: np.ndarray) -> Callable[..., np.ndarray]:
    """Fit a plain ridge map, so that the measures have something to measure."""
    mean_source, mean_target = source[rows].mean(axis=0), target[rows].mean(axis=0)
    centred = source[rows] - mean_source
    penalised = centred.T @ centred + 5.0 * np.eye(centred.shape[1])
    weight = np.linalg.solve(penalised, centred.T @ (target[rows] - mean_target))
    return lambda vectors: ((vectors - mean_source) @ weight + mean_target).astype(np.float32)


def time_search(queries: np.ndarray, database: np.ndarray, repeats: int) -> dict[str, float]:
    index = Exact(database)
    calls: dict[str, Callable[[], object]] = {
        "faiss": lambda: with_faiss(queries, database),
        "numpy": lambda: with_numpy(queries, database),
        "top_k": lambda: top_k(queries, database, k=K),
        "Exact": lambda: index.search(queries, k=K),
        "faiss, one query": lambda: with_faiss(queries[:1], database),
        "Exact, one query": lambda: index.search(queries[:1], k=K),
        "csls": lambda: csls(queries, database, k=K),
    }
    return in_turns(calls, repeats)


def time_hnsw(queries: np.ndarray, database: np.ndarray) -> dict[str, float]:
    start = time.perf_counter()
    graph = Hnsw(database)
    built = time.perf_counter() - start
    start = time.perf_counter()
    found = graph.search(queries, k=K)
    searched = time.perf_counter() - start
    truth = top_k(queries, database, k=K)
    shared = [np.isin(*lists).mean() for lists in zip(found.rows, truth.rows, strict=True)]
    return {"build": built, "search": searched, "recall@10": float(np.mean(shared))}


def time_measures(data: Path, seed: int, repeats: int) -> dict[str, float]:
    source, target = (
        common.documents(data, "stackoverflow", model).matrix() for model in ("minilm-l6", "mpnet")
    )
    order = np.random.default_rng(seed).permutation(len(target))
    held_out = order[PAIRS : PAIRS + QUERIES]
    mapped = ridge(source, target, order[:PAIRS])(source[held_out])
    own = {"own_rows": held_out}
    native = Native(target[held_out], target, **own)
    native.clusters(seed=0)
    shared = (mapped, target[held_out], target)
    calls: dict[str, Callable[[], object]] = {
        "native side, once": lambda: Native(target[held_out], target, **own),
        "measure_pairs": lambda: measure_pairs(*shared, native=native),
        "measure_pairs without clusters": lambda: measure_pairs(
            *shared, native=native, clusters=False
        ),
    }
    return in_turns(calls, repeats)


def main() -> None:
    parser = common.arguments(__doc__)
    parser.set_defaults(seeds=[0])
    parser.add_argument("--repeats", type=int, default=5)
    options: argparse.Namespace = parser.parse_args()
    database = common.documents(options.data, "stackoverflow", "mpnet").matrix()
    seed = options.seeds[0]
    queries = database[np.random.default_rng(seed).permutation(len(database))[:QUERIES]]
    search = time_search(queries, database, options.repeats)
    result = {
        "search_s": search,
        "ratios": {
            "top_k / faiss": search["top_k"] / search["faiss"],
            "top_k / numpy": search["top_k"] / search["numpy"],
            "Exact / faiss": search["Exact"] / search["faiss"],
            "Exact / faiss, one query": search["Exact, one query"] / search["faiss, one query"],
        },
        "hnsw": time_hnsw(queries, database),
        "measures_s": time_measures(options.data, seed, options.repeats),
    }
    common.write(options.results, "neighbors_speed", f"seed{seed}", {"k": K, "seed": seed}, result)
    for group, values in result.items():
        for name, value in values.items():
            sys.stdout.write(f"{group:12} {name:32} {value:8.4f}\n")


if __name__ == "__main__":
    main()
