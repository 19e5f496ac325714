"""Which rows to pair, when every pair has to be paid for.

    python benchmarks/pair_choice.py --data DIR

For 50, 100, 200 and 500 pairs chosen by each strategy of `Pairs.suggest`, three maps are fitted on
them; hit@10 of 400 held-out pairs, among the 400 and among the whole collection. The strategy
``uncertainty`` buys a random half first and the other half as `isthmus suggest` proposes it from
that; ``half`` buys its other half by k-means, so that the difference is that of the scores. Then
what `b` is worth: half of the target collection, cut by a plane, is taken away, and the rows that
are suggested are counted that have no partner left, with and without looking at where the other
half lies. Writes one JSON into benchmarks/results/pair_choice/.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from common import arguments, write

from isthmus import Pairs, VectorSet
from isthmus.bridge.selection import compose_for
from isthmus.neighbors import top_k
from isthmus.workflows import suggest_pairs
from isthmus.workflows.suggest_pairs import COUPLED_ROWS

CELLS = (
    ("climate-fever", "docs.minilm-l6", "docs.mpnet"),
    ("chebi20", "molecules.minimol", "texts.minilm-l6"),
)
PAIRS = (50, 100, 200, 500)
MAPS = ("procrustes_ridge", "ridge", "cca")
HELD_OUT = 400
BRIDGE_PAIRS = 100


def main() -> None:
    options = arguments(__doc__).parse_args()
    cells, partners = [], []
    for dataset, source, target in CELLS:
        sets = [VectorSet.load(options.data / dataset / f"{name}.npz") for name in (source, target)]
        every = Pairs.from_ids(*sets)
        for seed in options.seeds:
            shuffled = np.random.default_rng([seed, 1]).permutation(len(every))
            test, pool = every.select(shuffled[:HELD_OUT]), every.select(shuffled[HELD_OUT:])
            collection = sets[1]
            for n in PAIRS:
                about = {"dataset": dataset, "seed": seed, "n": n}
                cells += [about | row for row in compare(pool, test, collection, n=n, seed=seed)]
            partners += [
                {"dataset": dataset, "seed": seed, **row} for row in find_partners(pool, seed=seed)
            ]
            show(cells, dataset, seed)
    parameters = {
        "cells": CELLS,
        "pairs": PAIRS,
        "maps": MAPS,
        "held_out": HELD_OUT,
        "coupled": COUPLED_ROWS,
        "seeds": options.seeds,
    }
    write(
        options.results, "pair_choice", "pair_choice", parameters, {"cells": cells, "b": partners}
    )


def compare(
    pool: Pairs, test: Pairs, collection: VectorSet, *, n: int, seed: int
) -> Iterator[dict[str, Any]]:
    """Choose n pairs of the pool by each strategy, and yield what each map makes of them."""
    for strategy, choose in STRATEGIES.items():
        start = time.perf_counter()
        chosen = choose(pool, n, seed)
        seconds = time.perf_counter() - start
        for method in MAPS:
            hits = measure(pool.select(chosen), test, collection, method)
            yield {"strategy": strategy, "map": method, "seconds": seconds, **hits}


def measure(pairs: Pairs, test: Pairs, collection: VectorSet, method: str) -> dict[str, float]:
    """Return hit@10 of held-out rows, in the direction from source to target."""
    fitted = compose_for(pairs, method).fit(pairs.source, pairs.target)
    mapped = fitted.transform(test.source)
    among = {
        "hit@10 of 400": (test.target, np.arange(len(test))),
        "hit@10": (collection.matrix(), collection.rows_of(test.target_ids)),
    }
    hits = {}
    for name, (rows, own) in among.items():
        found = top_k(mapped, fitted.transform_target(rows), k=10, metric="cosine").rows
        hits[name] = float((found == own[:, None]).any(axis=1).mean())
    return hits


# --- strategies ----------------------------------------------------------------------------------


def at_once(strategy: str) -> Callable[[Pairs, int, int], np.ndarray]:
    """Return what spends the whole budget by one strategy that needs no scores."""

    def choose(pool: Pairs, n: int, seed: int) -> np.ndarray:
        return Pairs.suggest(source_of(pool), n=n, strategy=strategy, seed=seed).rows

    return choose


def by_halves(pool: Pairs, n: int, seed: int) -> np.ndarray:
    """Buy a random half, then the rest by k-means."""
    first, rest = first_half(pool, n, seed)
    left = source_of(pool.select(rest))
    return np.r_[first, rest[Pairs.suggest(left, n=n - len(first), seed=seed).rows]]


def by_uncertainty(pool: Pairs, n: int, seed: int) -> np.ndarray:
    """Buy a random half, then what a coupling from it is least sure of."""
    first, _ = first_half(pool, n, seed)
    found = suggest_pairs(
        source_of(pool),
        target_of(pool),
        pool.select(first),
        n=n - len(first),
        strategy="uncertainty",
        seed=seed,
    )
    return np.r_[first, found.rows]


def first_half(pool: Pairs, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng([seed, 2]).permutation(len(pool))
    return order[: n // 2], order[n // 2 :]


def source_of(pairs: Pairs) -> VectorSet:
    return VectorSet(pairs.source_ids, pairs.source, pairs.source_space)


def target_of(pairs: Pairs) -> VectorSet:
    return VectorSet(pairs.target_ids, pairs.target, pairs.target_space)


STRATEGIES = {
    **{name: at_once(name) for name in ("random", "fps", "kmeans", "coverage")},
    "half": by_halves,
    "uncertainty": by_uncertainty,
}


# --- what b is worth -----------------------------------------------------------------------------


def find_partners(pool: Pairs, *, seed: int) -> Iterator[dict[str, Any]]:
    """Take away the targets on one side of a plane; count suggestions that have a partner left."""
    rng = np.random.default_rng([seed, 4])
    bought = rng.choice(len(pool), BRIDGE_PAIRS, replace=False)
    along = pool.target @ rng.standard_normal(pool.target.shape[1]).astype(np.float32)
    there = along > np.median(along)
    first = pool.select(bought)
    fitted = compose_for(first, "procrustes_ridge").fit(first.source, first.target)
    space = pool.target_space
    carried = fitted.transform(pool.source)
    carried /= np.linalg.norm(carried, axis=1, keepdims=True)
    a = VectorSet(pool.source_ids, carried, space)
    b = VectorSet(pool.target_ids[there], pool.target[there], space)
    for strategy in ("random", "kmeans"):
        for name, other in (("without", None), ("with", b)):
            rows = Pairs.suggest(a, other, n=200, strategy=strategy, seed=seed).rows
            yield {"strategy": strategy, "b": name, "have_partner": float(there[rows].mean())}


def show(cells: list[dict[str, Any]], dataset: str, seed: int) -> None:
    """Print the means so far."""
    for n in PAIRS:
        for method in MAPS:
            told = []
            for strategy in STRATEGIES:
                found = [
                    one["hit@10"]
                    for one in cells
                    if (one["dataset"], one["n"], one["map"], one["strategy"])
                    == (dataset, n, method, strategy)
                ]
                told.append(f"{strategy} {np.mean(found):.3f}")
            print(dataset, f"to seed {seed}", n, method, *told, flush=True)


if __name__ == "__main__":
    main()
