"""What a federated search costs beside the searches of its stores alone.

    python benchmarks/federated_overhead.py --data ../shared/data

Climate-FEVER: minilm-l6 is the hub and fills one SQLite store, mpnet fills the other; bridges are
linear (ridge) and fitted on a random fifth of the documents. The two searches alone (of queries
that were mapped before the clock starts) and the federated search of the same queries take turns
within one run, and the ratio is that of their medians:

- first: nothing is remembered, every candidate is mapped;
- new: the other queries were asked before, so that some candidates are remembered;
- again: the same queries were asked before.

The ratio of processor seconds says how much more is computed, whatever else the machine does; the
wall clock also gains from searching both stores at one time. Times of every turn are kept in one
JSON.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, documents, write

from isthmus import Bridge, Federation, Pairs, VectorSet
from isthmus.federate import Source
from isthmus.stores import Store, open_store

DATASET, MODELS = "climate-fever", ("minilm-l6", "mpnet")
SEED = 0
K = 10
BATCHES = ((1000, 1), (500, 1), (300, 1), (1, 100))
"""Queries at a time, and searches between two readings of the clock."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--method", default="ridge", help="map of both bridges")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    both = [documents(asked.data, DATASET, model) for model in MODELS]
    queries = VectorSet.load(asked.data / DATASET / f"queries.{MODELS[0]}.npz")
    order = np.random.default_rng(SEED).permutation(len(both[0]))
    paired, rest = order[: len(order) // 5], order[len(order) // 5 :]
    bridges = fit_bridges([one.select(paired) for one in both], method=asked.method)
    layouts = {
        "40 % of the documents in each": np.array_split(rest, 2),
        "all documents in each": [np.arange(len(order))] * 2,
    }
    cells = []
    for layout, rows in layouts.items():
        sets = [one.select(some) for one, some in zip(both, rows, strict=True)]
        cells += [
            {"layout": layout, **cell} for cell in compare(sets, bridges, queries, asked.turns)
        ]
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    parameters = {"dataset": DATASET, "method": asked.method, "k": K, "seed": SEED}
    write(
        asked.results,
        "federated_overhead",
        f"{DATASET}-{asked.method}-{threads}-threads",
        {**parameters, "turns": asked.turns, "threads": threads},
        {"cells": cells},
    )
    report(cells)


def compare(
    sets: list[VectorSet], bridges: tuple[Bridge, Bridge], queries: VectorSet, turns: int
) -> list[dict[str, Any]]:
    """Fill a store per model and measure."""
    with tempfile.TemporaryDirectory() as folder:
        stores = [
            fill(f"sqlite:///{folder}/{place}.db?collection=docs", one)
            for place, one in enumerate(sets)
        ]
        cells = measure(stores, bridges, queries, turns)
        for store in stores:
            store.close()
    return cells


def fit_bridges(pairs: list[VectorSet], *, method: str) -> tuple[Bridge, Bridge]:
    there = Pairs.from_ids(*pairs)
    return Bridge.fit(there, method=method), Bridge.fit(there.reverse(), method=method)


def fill(url: str, vectors: VectorSet) -> Store:
    store = open_store(url, space=vectors.space)
    store.upsert(vectors)
    return store


def measure(
    stores: list[Store], bridges: tuple[Bridge, Bridge], queries: VectorSet, turns: int
) -> list[dict[str, Any]]:
    """Return one cell per number of queries at a time, with the times of every turn in seconds."""
    sources = [Source("one", stores[0]), Source("two", stores[1], *bridges)]
    cells = []
    for batch, searches in BATCHES:
        asked = [queries.select(np.arange(batch) + start) for start in range(searches)]
        others = queries.select(np.arange(batch * searches, len(queries)))
        native = [(one.matrix(), bridges[0].transform(one.matrix())) for one in asked]
        times: dict[str, dict[str, list[float]]] = {}
        for turn in range(turns + 1):
            federation = Federation(stores[0].space, sources)
            kinds = {
                "alone": partial(search_alone, stores, native),
                "first": partial(search_joined, federation, asked),
                "again": partial(search_joined, federation, asked),
                "new": partial(search_joined, Federation(stores[0].space, sources), asked),
            }
            kinds["new"].args[0].search(others, k=K)
            for kind, action in kinds.items():
                seconds = clock(action)
                if turn:  # the first one loads the stores into memory
                    for name, value in seconds.items():
                        times.setdefault(kind, {}).setdefault(name, []).append(value)
        cells.append({"queries at a time": batch, "searches": searches, "seconds": times})
    return cells


def search_alone(stores: list[Store], native: list[tuple[Any, Any]]) -> None:
    for queries in native:
        for store, one in zip(stores, queries, strict=True):
            store.search(one, k=K)


def search_joined(federation: Federation, asked: list[VectorSet]) -> None:
    for one in asked:
        federation.search(one, k=K)


def clock(action: Callable[[], None]) -> dict[str, float]:
    start = time.perf_counter(), time.process_time()
    action()
    return {
        "wall": time.perf_counter() - start[0],
        "processor": time.process_time() - start[1],
    }


def report(cells: list[dict[str, Any]]) -> None:
    print(
        f"{'layout':30} {'queries':>7} {'alone ms':>9}   ratios of wall clock (of processor time)"
    )
    for cell in cells:
        medians = {
            kind: {name: statistics.median(values) for name, values in clocks.items()}
            for kind, clocks in cell["seconds"].items()
        }
        alone = medians.pop("alone")
        ratios = "   ".join(
            "{} {:.2f} ({:.2f})".format(kind, *(one[name] / alone[name] for name in alone))
            for kind, one in medians.items()
        )
        print(
            f"{cell['layout']:30} {cell['queries at a time']:7} "
            f"{alone['wall'] / cell['searches'] * 1000:9.2f}   {ratios}"
        )


if __name__ == "__main__":
    main()
