"""What a federated search costs, part by part, and what it costs to build.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    python benchmarks/federate_cost.py --data ../shared/data

N = 2 to 6 SQLite stores of 10,000 vectors each: the documents of two data sets in three models, and
the same rotated at random where more than three models are asked for. Bridges are ridge. Encoding
is excluded: no model runs here, and a federated query is encoded once, by the hub's model.

Parts are processor seconds of the threads that do them: map (queries and candidates), search,
fetch (candidate vectors out of the stores), and rank (similarities, fusion, the ranking: all that
is left, remembering candidates too). A batch is searched when nothing is remembered (first), when
five other batches were asked before (new), and when the same was (again); turns alternate within
one run, and medians are kept.

Construction: seconds per pair trained, vector mapped and vector indexed, measured here too; with
them `isthmus.federate.cost` reckons 50 million and a billion vectors.
"""

from __future__ import annotations

import argparse
import os
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import common
import numpy as np
from federate_cells import DATASETS, MODELS, bridge_of, make_map

from isthmus import Bridge, Federation, Space, VectorSet
from isthmus.federate import Source
from isthmus.federate.cost import METHODS, Rates, Setting, cost_of, estimate
from isthmus.federate.fusion import Agg
from isthmus.stores import Store, open_store

TASK = "federate_cost"
WIDEST = "mpnet"
ROWS, BATCH, SEED, PAIRS = 10_000, 100, 0, 2_000
SIZES = (2, 3, 4, 5, 6)
DEPTHS = (10, 50, 100)
LAYOUTS = {"three models": 3, "a model per store": 6}
BUILT = {"50M": 50_000_000, "1B": 1_000_000_000}
EMBED_SECONDS = 1e-3
"""Of one document, assumed: a small model on a GPU; costs grow in proportion."""


class Parts:
    """Processor seconds by the name of the part, over all threads."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._lock = threading.Lock()

    def timed(self, part: str, action: Callable[..., Any]) -> Callable[..., Any]:
        """Return the action, timed."""

        def run(*args: Any, **kwargs: Any) -> Any:
            start = time.thread_time()
            try:
                return action(*args, **kwargs)
            finally:
                with self._lock:
                    self.seconds[part] += time.thread_time() - start

        return run


class Timed:
    """Something whose methods are timed; everything else of it is as it was."""

    def __init__(self, inner: object, parts: Parts, **names: str) -> None:
        self._inner = inner
        for method, part in names.items():
            setattr(self, method, parts.timed(part, getattr(inner, method)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--results", type=Path, default=common.RESULTS)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--rows", type=int, default=ROWS, help="vectors per store")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--depths", type=int, nargs="+", default=list(DEPTHS))
    parser.add_argument("--layouts", nargs="+", default=list(LAYOUTS), choices=LAYOUTS)
    parser.add_argument("--map", default="ridge")
    args = parser.parse_args()
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    spaces = all_spaces(args.data)
    cells: list[dict[str, Any]] = []
    for layout in args.layouts:
        cells += measure(args, layout, spaces)
    parameters = {
        "map": args.map, "rows": args.rows, "batch": BATCH, "turns": args.turns, "threads": threads,
    }  # fmt: skip
    built = construction(args, spaces, cells)
    result = {"cells": cells, "growth": growth(cells), **built}
    common.write(args.results, TASK, f"{args.map}.{threads}-threads", parameters, result)
    report(cells)


def all_spaces(data: Path) -> list[tuple[VectorSet, VectorSet]]:
    """Return documents and queries in six spaces: three models, and each rotated at random."""
    found = []
    for name in MODELS:
        docs, asked = (
            joined([load(data, dataset, name) for dataset in DATASETS])
            for load in (common.documents, common.queries)
        )
        found.append((docs, asked))
    rng = np.random.default_rng(SEED)
    for docs, asked in found[:3]:
        turn = np.linalg.qr(rng.standard_normal((docs.dim, docs.dim)))[0].astype(np.float32)
        space = Space(model=f"{docs.space.model}, rotated", dim=docs.dim, normalized=True)
        turned = [VectorSet(one.ids, one.matrix() @ turn, space) for one in (docs, asked)]
        found.append((turned[0], turned[1]))
    return found


def joined(sets: Sequence[VectorSet]) -> VectorSet:
    """Return the rows of several sets, with new ids."""
    matrix = np.concatenate([one.matrix() for one in sets])
    return VectorSet(np.arange(len(matrix)).astype(np.str_), matrix, sets[0].space)


def measure(
    args: argparse.Namespace, layout: str, spaces: Sequence[tuple[VectorSet, VectorSet]]
) -> list[dict[str, Any]]:
    """Return a cell per number of stores and candidates."""
    used = [place % LAYOUTS[layout] for place in range(max(args.sizes))]
    bridges = {
        place: fit_both(spaces[0][0], spaces[place][0], args.map) for place in set(used) - {0}
    }
    parts, cells = Parts(), []
    order = np.random.default_rng(SEED).permutation(len(spaces[0][1]))
    asked = [spaces[place][1].select(order[:BATCH]) for place in used]
    others = spaces[0][1].select(order[BATCH : 6 * BATCH])
    with TemporaryDirectory() as folder:
        stores = [fill(folder, place, spaces[one][0], args.rows) for place, one in enumerate(used)]
        sources = timed_sources(used, stores, bridges, parts)
        for n in args.sizes:
            for depth in args.depths:
                cell = one_cell(args.turns, asked[:n], others, sources[:n], parts, depth=depth)
                cells.append({"layout": layout, "N": n, "K": depth, **cell})
        for store in stores:
            store.close()
    return cells


def fit_both(hub: VectorSet, other: VectorSet, name: str) -> tuple[Bridge, Bridge]:
    rows = np.random.default_rng(SEED).permutation(len(hub))[:PAIRS]
    sides = [one.matrix()[rows] for one in (hub, other)]
    spaces = [hub.space, other.space]
    there, back = (make_map(name, SEED).fit(*each) for each in (sides, sides[::-1]))
    return bridge_of(there, *spaces), bridge_of(back, *spaces[::-1])


def fill(folder: str, place: int, held: VectorSet, rows: int) -> Store:
    store = open_store(f"sqlite:///{folder}/{place}.db?collection=docs", space=held.space)
    order = np.random.default_rng([SEED, place]).permutation(len(held))[:rows]
    store.upsert(held.select(order))
    return store


def timed_sources(
    used: Sequence[int],
    stores: Sequence[Store],
    bridges: dict[int, tuple[Bridge, Bridge]],
    parts: Parts,
) -> list[Source]:
    timed = {
        place: [Timed(one, parts, transform="map") for one in both]
        for place, both in bridges.items()
    }
    return [
        Source(
            str(place),
            Timed(store, parts, search="search", gather="fetch"),
            *timed.get(space, (None, None)),
        )
        for place, (space, store) in enumerate(zip(used, stores, strict=True))
    ]


def one_cell(
    turns: int,
    asked: Sequence[VectorSet],
    others: VectorSet,
    sources: Sequence[Source],
    parts: Parts,
    *,
    depth: int,
) -> dict[str, Any]:
    """Return medians of processor seconds by part and of seconds by the clock, by state.

    ``asked`` are the queries in the space of every source, the hub's first.
    """
    hub = asked[0].space
    native = {source.name: one for source, one in zip(sources, asked, strict=True)}
    agg = Federation(hub, sources, fusion=Agg())
    seconds: dict[str, list[dict[str, float]]] = defaultdict(list)
    for turn in range(turns + 1):
        cold, warm = (Federation(hub, sources) for _ in range(2))
        for start in range(0, len(others), BATCH):
            warm.search(others.select(np.arange(start, start + BATCH)), k=depth)
        for state, action in {
            "first": partial(cold.search, asked[0], k=depth),
            "agg": partial(agg.search, asked[0], k=depth, native_queries=native),
            "again": partial(cold.search, asked[0], k=depth),
            "new": partial(warm.search, asked[0], k=depth),
        }.items():
            found = clock(action, parts)
            if turn:  # the first one loads the stores into memory
                seconds[state].append(found)
    cell: dict[str, Any] = {
        state: {name: statistics.median(one[name] for one in each) for name in each[0]}
        for state, each in seconds.items()
    }
    return cell


def clock(action: Callable[[], object], parts: Parts) -> dict[str, float]:
    """Return seconds by the clock, and processor seconds by part."""
    parts.seconds.clear()
    wall, whole = time.perf_counter(), time.process_time()
    action()
    wall, whole = time.perf_counter() - wall, time.process_time() - whole
    found = {name: parts.seconds[name] for name in ("map", "search", "fetch")}
    found["rank"] = max(0.0, whole - sum(found.values()))
    found["share"] = (found["map"] + found["rank"]) / found["search"]
    return {**found, "wall": wall}


def growth(cells: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Fit a power of N (at the least K) and of K (at the most N) to every part."""
    fitted: dict[str, dict[str, float]] = {}
    for layout in {cell["layout"]: 0 for cell in cells}:
        mine = [cell for cell in cells if cell["layout"] == layout]
        for axis, other, end in (("N", "K", min), ("K", "N", max)):
            kept = end(cell[other] for cell in mine)
            line = [cell for cell in mine if cell[other] == kept]
            if len(line) < 2:
                continue
            for part in ("map", "search", "fetch", "rank"):
                seconds = [max(cell["first"][part], 1e-7) for cell in line]
                slope = np.polyfit(np.log([cell[axis] for cell in line]), np.log(seconds), 1)[0]
                fitted.setdefault(f"{layout}, {axis}", {})[part] = float(slope)
    return fitted


def construction(
    args: argparse.Namespace,
    spaces: Sequence[tuple[VectorSet, VectorSet]],
    cells: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """Measure rates on this machine, and reckon what each method costs at larger sizes."""
    hub, other = spaces[0][0], spaces[MODELS.index(WIDEST)][0]
    start = time.perf_counter()
    bridge = fit_both(hub, other, args.map)[0]
    train = (time.perf_counter() - start) / (2 * PAIRS)
    rows = hub.matrix()
    start = time.perf_counter()
    bridge.transform(rows)
    mapped = (time.perf_counter() - start) / len(rows)
    with TemporaryDirectory() as folder:
        start = time.perf_counter()
        fill(folder, 0, hub, args.rows).close()
        index = (time.perf_counter() - start) / min(args.rows, len(hub))
    largest = max(cells, key=lambda cell: (cell["N"], -cell["K"]))
    n, layout = largest["N"], LAYOUTS[largest["layout"]]
    spaces_of = tuple(place % layout for place in range(n))
    asked = Setting(rows=(args.rows,) * n, spaces=spaces_of, k=largest["K"])
    counts = cost_of("score", asked)
    rates = Rates(
        embed=EMBED_SECONDS,
        train=train,
        map=mapped,
        index=index,
        search_row=largest["first"]["search"] / (BATCH * largest["N"] * args.rows),
        similarity=largest["first"]["rank"] / (BATCH * counts.similarities_per_query),
    )
    reckoned = []
    for size, total in BUILT.items():
        for n in SIZES:
            setting = Setting(rows=(total // n,) * n, spaces=tuple(range(n)))
            for method in METHODS:
                seconds = estimate(cost_of(method, setting), rates)
                reckoned.append({"size": size, "N": n, "method": method, **asdict(seconds)})
    return {"rates": asdict(rates), "reckoned": reckoned}


def report(cells: Sequence[dict[str, Any]]) -> None:
    print("processor ms per batch of 100; share: (map + rank) / search")
    for cell in cells:
        for state in ("first", "new", "again", "agg"):
            found = " ".join(
                f"{name} {1000 * cell[state][name]:7.1f}"
                for name in ("search", "map", "fetch", "rank", "wall")
            )
            print(
                f"{cell['layout']:18} N {cell['N']} K {cell['K']:3} {state:6} {found} "
                f"share {cell[state]['share']:.2f}"
            )


if __name__ == "__main__":
    main()
