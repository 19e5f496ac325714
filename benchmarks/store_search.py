"""Speed of the SQLite store on real vectors, beside faiss in memory.

    python benchmarks/store_search.py --data ../shared/data

1,000 queries in one batch over 10,000 vectors (question titles, two models), and their candidates
fetched back: what a federated search over two stores adds to the searches. The calls take turns, so
that every ratio compares times of the same run. Times of every turn are kept in one JSON.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from common import RESULTS, documents, write

from isthmus import VectorSet
from isthmus.stores import Store, open_store

ROWS, QUERIES, K = 10_000, 1_000, 10
MODELS = ("minilm-l6", "mpnet")
Calls = dict[str, Callable[[], object]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    result = measure(asked.data, turns=asked.turns)
    threads = faiss.omp_get_max_threads()
    parameters = {"rows": ROWS, "queries": QUERIES, "k": K, "turns": asked.turns}
    write(
        asked.results,
        "store_search",
        f"sqlite-{threads}-threads",
        {**parameters, "faiss threads": threads},
        result,
    )
    for name, value in {**result["once"], **result["ratios"]}.items():
        print(f"{name:64} {value:9.3f}")
    for name, values in result["seconds"].items():
        print(f"{name + ', ms':64} {statistics.median(values) * 1e3:9.1f}")


def measure(data: Path, *, turns: int) -> dict[str, Any]:
    """Fill a store per model, note what happens once, then let all calls take turns."""
    once: dict[str, float] = {}
    calls: Calls = {}
    with tempfile.TemporaryDirectory() as folder:
        stores = []
        for model in MODELS:
            whole = documents(data, "stackoverflow", model)
            rows, queries = whole.select(np.arange(ROWS)), whole.matrix()[ROWS : ROWS + QUERIES]
            labels = [{"label": row % 20} for row in range(ROWS)]
            url = f"sqlite:///{folder}/{model}.db?collection=docs"
            stores.append(open_store(url, space=rows.space))
            once |= first_times(model, stores[-1], rows, labels, queries)
            calls |= repeated(model, stores[-1], rows, queries)
        seconds = in_turns(calls, turns=turns)
        for store in stores:
            store.close()
    return {"once": once, "ratios": ratios(seconds), "seconds": seconds}


def first_times(
    model: str,
    store: Store,
    rows: VectorSet,
    labels: list[dict[str, int]],
    queries: np.ndarray,
) -> dict[str, float]:
    """Time what is done once: writing, the first search, the first after opening again."""
    times = {
        "insert, s": clock(lambda: store.upsert(rows, metadata=labels)),
        "one query on the file, s": clock(lambda: store.search(queries[:1], k=K)),
    }
    before = resident_mb()
    times["first batch: read, build, keep, search, s"] = clock(lambda: store.search(queries, k=K))
    times["resident memory it took, MB"] = resident_mb() - before
    with open_store(store.url) as again:
        kept = clock(lambda: again.search(queries, k=K))
    times["first batch from the kept index, s"] = kept
    return {f"{model}: {name}": value for name, value in times.items()}


def repeated(model: str, store: Store, rows: VectorSet, queries: np.ndarray) -> Calls:
    """Return the calls that take turns."""
    index = faiss.IndexFlatIP(rows.dim)
    index.add(rows.matrix())
    ids = store.search(queries, k=K).ids
    return {
        f"{model}: faiss, 1,000 queries": lambda: index.search(queries, K),
        f"{model}: store, 1,000 queries": lambda: store.search(queries, k=K),
        f"{model}: fetch of their 10,000 candidates": lambda: store.gather(ids),
        f"{model}: faiss, one query": lambda: index.search(queries[:1], K),
        f"{model}: store, one query": lambda: store.search(queries[:1], k=K),
        f"{model}: store, 1,000 queries, 5 % of the rows": lambda: store.search(
            queries, k=K, where={"label": 3}
        ),
        f"{model}: scan of all rows": lambda: list(store.scan()),
    }


def ratios(seconds: dict[str, list[float]]) -> dict[str, float]:
    """Return the ratios that the project asks for: medians over the turns."""
    searches = [f"{model}: store, 1,000 queries" for model in MODELS]
    fetches = [f"{model}: fetch of their 10,000 candidates" for model in MODELS]
    return {
        **{
            f"{model}: store over faiss, {what}": ratio(
                seconds, [f"{model}: store, {what}"], [f"{model}: faiss, {what}"]
            )
            for model in MODELS
            for what in ("1,000 queries", "one query")
        },
        "two searches and two fetches over two searches": ratio(
            seconds, searches + fetches, searches
        ),
    }


def ratio(seconds: dict[str, list[float]], over: list[str], under: list[str]) -> float:
    turns = range(len(seconds[over[0]]))
    return statistics.median(
        sum(seconds[name][turn] for name in over) / sum(seconds[name][turn] for name in under)
        for turn in turns
    )


def in_turns(calls: Calls, *, turns: int) -> dict[str, list[float]]:
    """Time each call once per turn, after one turn that does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(turns + 1):
        for name, call in calls.items():
            taken = clock(call)
            if turn:
                seconds[name].append(taken)
    return seconds


def clock(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
