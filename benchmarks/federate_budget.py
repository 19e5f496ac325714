"""The adaptive budget: share of the answer lost against stores and time saved.

    python benchmarks/federate_budget.py --data ../shared/data --seeds 100 101 102

Six stores of one data set, cut by topic (k-means) or at random, half of them of another model than
the hub's; and three stores of three data sets, of one model. What is lost is measured against the
search of all stores (SCORE, K = 10), by the queries of the data sets.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from common import arguments, documents, judgements, ndcg_of, queries, read, split_auxiliary, write

from isthmus import Bridge, Federation, Pairs, VectorSet
from isthmus.federate import Source
from isthmus.federate.adaptive import Adaptive
from isthmus.federate.candidates import Candidates
from isthmus.spaces import Qrels
from isthmus.spaces.sampling import find_centroids
from isthmus.stores.registry import open_store

K = 10
LOSSES = (0.002, 0.01, 0.05, 0.1)
CASES = ("random", "topical", "domains")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--datasets", nargs="+", default=["climate-fever", "scifact"])
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--hub", default="minilm-l6")
    parser.add_argument("--other", default="mpnet")
    parser.add_argument("--stores", type=int, default=6)
    args = parser.parse_args()
    for seed in args.seeds:
        for case in args.cases:
            for dataset in ["domains"] if case == "domains" else args.datasets:
                with tempfile.TemporaryDirectory() as folder:
                    run(args, dataset, case, seed, Path(folder))
    print(table(read(args.results, "federate_budget"), args))


def run(args: argparse.Namespace, dataset: str, case: str, seed: int, folder: Path) -> None:
    parts, bridges, asked, qrels = (
        _domains(args) if case == "domains" else _cut(args, dataset, case, seed)
    )
    sources = []
    for place, part in enumerate(parts):
        store = open_store(f"sqlite:///{folder}/{place}.db?collection=docs", space=part.space)
        store.upsert(part)
        other = part.space.fingerprint != asked.space.fingerprint
        sources.append(Source(str(place), store, *(bridges if other else ())))
    hub = parts[0].space
    with Federation(hub, sources) as federation:
        result = measure(federation, sources, asked, qrels, seed)
    parameters = {
        "dataset": dataset,
        "case": case,
        "hub": args.hub,
        "other": args.other,
        "stores": len(parts),
        "seed": seed,
    }
    name = f"{dataset}.{case}.{len(parts)}.{seed}"
    write(args.results, "federate_budget", name, parameters, result)
    print(parameters, result, flush=True)


def measure(
    federation: Federation, sources: list[Source], asked: VectorSet, qrels: Qrels | None, seed: int
) -> dict:
    """Compare each budget with the search of all stores."""
    whole = federation.candidates(asked, depth=K)
    full = federation.rank(whole, asked.ids, k=K)
    in_spaces = [
        spoke.from_hub(asked.matrix()) if spoke.into else asked.matrix()
        for spoke in federation.spokes
    ]
    places = [
        next(
            i
            for i, space in enumerate(federation.spaces)
            if space.fingerprint == source.store.space.fingerprint
        )
        for source in sources
    ]
    spaces = np.array(places)
    search_all = _search_seconds(
        sources, in_spaces, spaces, np.ones((len(asked), len(sources)), bool)
    )
    result: dict = {"queries": len(asked), "search seconds": search_all, "losses": {}}
    if qrels is not None:
        result["nDCG@10"] = float(np.nanmean(ndcg_of(full, asked.ids, qrels)))
    for loss in LOSSES:
        start = time.perf_counter()
        budget = Adaptive.fit(federation.hub, sources, loss=loss, seed=seed)
        fitted = time.perf_counter() - start
        start = time.perf_counter()
        chosen = budget.choose(in_spaces, spaces=spaces, k=K)
        choosing = time.perf_counter() - start
        hidden = ~chosen[:, whole.source]
        cut = _without(whole, hidden)
        ranking = federation.rank(cut, asked.ids, k=K)
        cell = {
            "lost": float(
                1
                - np.mean(
                    [
                        len(set(one) & set(two)) / K
                        for one, two in zip(full.ids, ranking.ids, strict=True)
                    ]
                )
            ),
            "searched": float(chosen.mean()),
            "level": budget.level,
            "measured loss": budget.measured_loss,
            "fit seconds": fitted,
            "choose seconds": choosing,
            "search seconds": _search_seconds(sources, in_spaces, spaces, chosen),
        }
        if qrels is not None:
            cell["nDCG@10"] = float(np.nanmean(ndcg_of(ranking, asked.ids, qrels)))
        result["losses"][str(loss)] = cell
    return result


def _without(candidates: Candidates, hidden: np.ndarray) -> Candidates:
    """Take candidates away, as if their stores had not been searched."""
    return replace(
        candidates,
        ids=np.where(hidden, "", candidates.ids),
        similarities=np.where(hidden[None], np.float32("nan"), candidates.similarities),
    )


def _search_seconds(
    sources: list[Source], in_spaces: list[np.ndarray], spaces: np.ndarray, chosen: np.ndarray
) -> float:
    start = time.perf_counter()
    for place, source in enumerate(sources):
        rows = np.flatnonzero(chosen[:, place])
        if len(rows):
            source.search(in_spaces[spaces[place]][rows], depth=K)
    return time.perf_counter() - start


def _cut(
    args: argparse.Namespace, dataset: str, case: str, seed: int
) -> tuple[list[VectorSet], list[Bridge], VectorSet, Qrels]:
    """Cut one data set in stores; every second one is of the other model."""
    sides = [documents(args.data, dataset, name) for name in (args.hub, args.other)]
    asked = queries(args.data, dataset, args.hub)
    qrels = judgements(args.data, dataset)
    paired, rest = split_auxiliary(qrels, sides[0].ids, share=0.2, seed=seed)
    bridges = fit_bridges(sides, paired, seed)
    rows = sides[0].matrix()[rest]
    if case == "random":
        label = np.arange(len(rest)) % args.stores
    else:
        centroids = find_centroids(rows, args.stores, seed=seed)
        label = ((centroids**2).sum(axis=1) - 2 * rows @ centroids.T).argmin(axis=1)
    parts = [sides[place % 2].select(rest[label == place]) for place in range(args.stores)]
    return parts, bridges, asked, qrels


def fit_bridges(sides: list[VectorSet], paired: np.ndarray, seed: int) -> list[Bridge]:
    """Fit the bridge from the hub's space to the other, and the one back."""
    out = Pairs.from_rows(*sides, paired, paired)
    return [
        Bridge.fit(out, collection=sides[1], seed=seed),
        Bridge.fit(out.reverse(), purpose="score", collection=sides[0], seed=seed),
    ]


def _domains(
    args: argparse.Namespace,
) -> tuple[list[VectorSet], list[Bridge], VectorSet, None]:
    """Three data sets of one model as stores, asked by the queries of two of them."""
    names = ("scifact", "climate-fever", "stackoverflow")
    parts = [documents(args.data, name, args.hub) for name in names]
    few = [queries(args.data, name, args.hub) for name in names[:2]]
    matrix = np.concatenate([one.matrix()[:300] for one in few])
    ids = np.concatenate(
        [[f"{name}-{i}" for i in one.ids[:300]] for name, one in zip(names, few, strict=False)]
    )
    return parts, [], VectorSet(ids, matrix, few[0].space), None


def table(records: list[dict], args: argparse.Namespace) -> str:
    """Return the means over the seeds, one line per case and loss."""
    lines = [
        "| stores | loss allowed | lost | searched | search time | choosing | nDCG@10 |",
        "|---|---|---|---|---|---|---|",
    ]
    cells: dict[tuple[str, str], list[dict]] = {}
    for record in records:
        if record["parameters"]["seed"] in args.seeds:
            key = (record["parameters"]["dataset"], record["parameters"]["case"])
            cells.setdefault(key, []).append(record["result"])
    for (dataset, case), results in cells.items():
        for loss in results[0]["losses"]:
            each = [
                one["losses"][loss] | {"whole": one["search seconds"], "all": one.get("nDCG@10")}
                for one in results
            ]
            mean = {
                name: np.mean([one[name] for one in each])
                for name in ("lost", "searched", "search seconds", "choose seconds", "whole")
            }
            ndcg = (
                ""
                if each[0]["all"] is None
                else f"{np.mean([one['nDCG@10'] for one in each]):.3f} of "
                f"{np.mean([one['all'] for one in each]):.3f}"
            )
            lines.append(
                f"| {dataset} {case} | {loss} | {mean['lost']:.4f} | {mean['searched']:.2f} | "
                f"{mean['search seconds'] / mean['whole']:.2f} | "
                f"{mean['choose seconds'] / mean['whole']:.3f} | {ndcg} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
