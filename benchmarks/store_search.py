"""Speed of the SQLite store on real vectors, beside faiss in memory.

    python benchmarks/store_search.py --data ../shared/data --out benchmarks/results/store_search.json

1,000 queries in one batch over 10,000 vectors (question titles, two models), and the candidates
fetched back. Every ratio compares times of the same run, taken in turns.
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

import faiss
import numpy as np

import isthmus
from isthmus.spaces import Space, VectorSet
from isthmus.stores import Store
from isthmus.stores.sqlite import SqliteStore

ROWS, QUERIES, K = 10_000, 1_000, 10
MODELS = ("minilm-l6", "mpnet")


def load(data: Path, model: str) -> tuple[VectorSet, np.ndarray]:
    with np.load(data / "stackoverflow" / f"docs.{model}.npz") as file:
        space = Space.from_json(str(file["space"]))
        vectors = file["vectors"].astype(np.float32)
        stored = VectorSet(file["ids"][:ROWS], vectors[:ROWS], space)
    return stored, vectors[ROWS : ROWS + QUERIES]


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def in_turns(calls: dict[str, Callable[[], object]], *, repeats: int) -> dict[str, list[float]]:
    """Time each call once per round, after one round that is not counted."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(repeats + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if turn:
                times[name].append(time.perf_counter() - start)
    return times


def once(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def ratio(times: dict[str, list[float]], over: list[str], under: list[str]) -> float:
    """Median over the rounds of one sum of times over another."""
    rounds = range(len(next(iter(times.values()))))
    return statistics.median(
        sum(times[name][turn] for name in over) / sum(times[name][turn] for name in under)
        for turn in rounds
    )


def measure(data: Path, *, repeats: int) -> dict[str, object]:
    calls: dict[str, Callable[[], object]] = {}
    report: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:
        stores: list[Store] = []
        for model in MODELS:
            stored, queries = load(data, model)
            url = f"sqlite:///{folder}/{model}.db?collection=docs"
            store = SqliteStore.open(url, space=stored.space)
            stores.append(store)
            report[f"{model}: insert s"] = once(lambda: store.upsert(stored))  # noqa: B023
            report[f"{model}: file MB"] = Path(f"{folder}/{model}.db").stat().st_size / 1e6
            report[f"{model}: one query by scan s"] = once(lambda: store.search(queries[:1], k=K))  # noqa: B023
            before = resident_mb()
            report[f"{model}: first batch s (load, index, search)"] = once(
                lambda: store.search(queries, k=K)  # noqa: B023
            )
            report[f"{model}: resident MB of the loaded rows"] = resident_mb() - before
            found = store.search(queries, k=K)
            calls |= turns(model, store, stored, queries, found.ids)
            again = SqliteStore.open(url)
            report[f"{model}: first batch s, from the kept index"] = once(
                lambda: again.search(queries, k=K)  # noqa: B023
            )
            again.close()
        times = in_turns(calls, repeats=repeats)
        for store in stores:
            store.close()
    for model in MODELS:
        report[f"{model}: batch over faiss"] = ratio(times, [f"{model} batch"], [f"{model} faiss"])
        report[f"{model}: one query over faiss"] = ratio(
            times, [f"{model} one query"], [f"{model} faiss one"]
        )
    searches = [f"{model} batch" for model in MODELS]
    report["two searches and two fetches over two searches"] = ratio(
        times, searches + [f"{model} fetch" for model in MODELS], searches
    )
    report["times"] = times
    return report


def turns(
    model: str, store: Store, stored: VectorSet, queries: np.ndarray, ids: np.ndarray
) -> dict[str, Callable[[], object]]:
    index = faiss.IndexFlatIP(stored.dim)
    index.add(stored.matrix())
    return {
        f"{model} faiss": lambda: index.search(queries, K),
        f"{model} batch": lambda: store.search(queries, k=K),
        f"{model} fetch": lambda: store.gather(ids),
        f"{model} faiss one": lambda: index.search(queries[:1], K),
        f"{model} one query": lambda: store.search(queries[:1], k=K),
        f"{model} filtered batch of 100": lambda: store.search(
            queries[:100], k=K, where={"absent": 1}
        ),
        f"{model} scan all": lambda: list(store.scan()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--repeats", type=int, default=7)
    asked = parser.parse_args()
    report = measure(asked.data, repeats=asked.repeats)
    report["versions"] = {
        "isthmus": isthmus.__version__,
        "numpy": np.__version__,
        "faiss": faiss.__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "faiss threads": faiss.omp_get_max_threads(),
    }
    if asked.out:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text(json.dumps(report, indent=1) + "\n")
    for name, value in report.items():
        if isinstance(value, float):
            print(f"{name:60} {value:8.3f}")
    for name, values in report["times"].items():
        print(f"{name + ' ms':60} {statistics.median(values) * 1e3:8.1f}")


if __name__ == "__main__":
    main()
