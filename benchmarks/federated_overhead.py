"""What a federated search costs beside the searches of its stores alone.

    python benchmarks/federated_overhead.py --data ../shared/data

Climate-FEVER: minilm-l6 is the hub and fills one SQLite store, mpnet fills the other; bridges are
linear (ridge) and fitted on a random fifth of the documents. The two searches alone and the
federated search of the same queries take turns within one run; the ratio is that of their medians.
Times of every turn are kept in one JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from isthmus import Bridge, Federation, Pairs, VectorSet, __version__
from isthmus.federate import Source
from isthmus.stores.base import Store
from isthmus.stores.registry import open_store

RESULTS = Path(__file__).parent / "results"
SEED = 0
K = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--method", default="ridge", help="map of both bridges")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--out", type=Path, default=RESULTS / "federated_overhead.json")
    args = parser.parse_args()
    folder = args.data / "climate-fever"
    documents = [VectorSet.load(folder / f"docs.{name}.npz") for name in ("minilm-l6", "mpnet")]
    queries = VectorSet.load(folder / "queries.minilm-l6.npz")
    fifth, rest = np.split(
        np.random.default_rng(SEED).permutation(len(documents[0])), [len(documents[0]) // 5]
    )
    bridges = fit_bridges([one.select(fifth) for one in documents], method=args.method)
    layouts = {
        "40 % of the documents in each": np.array_split(rest, 2),
        "all documents in each": [np.arange(len(documents[0]))] * 2,
    }
    cells = []
    for layout, rows in layouts.items():
        with tempfile.TemporaryDirectory() as place:
            stores = [
                fill(f"sqlite:///{place}/{number}.db?collection=docs", one.select(some))
                for number, (one, some) in enumerate(zip(documents, rows, strict=True))
            ]
            cells += [
                {"layout": layout, **cell} for cell in measure(stores, bridges, queries, args.turns)
            ]
            for store in stores:
                store.close()
    record = {
        "task": "federated_overhead",
        "data": "climate-fever",
        "method": args.method,
        "seed": SEED,
        "k": K,
        "environment": environment(),
        "cells": cells,
    }
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    report(cells)


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
    federation = Federation(
        stores[0].space, [Source("one", stores[0]), Source("two", stores[1], *bridges)]
    )
    cells = []
    for batch, sets in ((1000, 1), (300, 1), (1, 200)):
        blocks = [queries.select(np.arange(batch) + start) for start in range(sets)]
        native = [(one.matrix(), bridges[0].transform(one.matrix())) for one in blocks]

        def alone(native: list[tuple[Any, Any]] = native) -> None:
            for here, there in native:
                stores[0].search(here, k=K)
                stores[1].search(there, k=K)

        def federated(blocks: list[VectorSet] = blocks) -> None:
            for block in blocks:
                federation.search(block, k=K)

        times = take_turns({"alone": alone, "federated": federated}, turns=turns)
        cells.append({"queries at a time": batch, "searches": sets, "seconds": times})
    return cells


def take_turns(actions: dict[str, Callable[[], None]], *, turns: int) -> dict[str, list[float]]:
    """Time each action in turn, after one turn that warms up."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for turn in range(turns + 1):
        for name, action in actions.items():
            start = time.perf_counter()
            action()
            if turn:
                times[name].append(time.perf_counter() - start)
    return times


def environment() -> dict[str, Any]:
    return {
        "isthmus": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS", "all"),
    }


def report(cells: list[dict[str, Any]]) -> None:
    print(f"{'layout':32} {'queries':>8} {'alone ms':>10} {'federated ms':>13} {'ratio':>7}")
    for cell in cells:
        alone, federated = (
            statistics.median(cell["seconds"][name]) / cell["searches"] * 1000
            for name in ("alone", "federated")
        )
        print(
            f"{cell['layout']:32} {cell['queries at a time']:8} {alone:10.2f} {federated:13.2f} "
            f"{federated / alone:7.2f}"
        )


if __name__ == "__main__":
    main()
