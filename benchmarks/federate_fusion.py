"""Ways to rank the candidates of several stores, and what a few labelled queries add.

    python benchmarks/federate_fusion.py --data ../shared/data --seeds 100 101 102

Stores of two or three models hold disjoint shards of one data set; a random fifth of its documents,
relevant to no query, is embedded by all models: the pairs. Every fusion method and the integrations
(ec, mig) rank the same stores; then the share of the native similarity is swept (HVMap, figure 10),
and that of the common space, weights are fitted on 20, 50 and 200 labelled queries, and scores are
calibrated on half of the queries and measured on the other half.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from common import (
    arguments,
    documents,
    judgements,
    ndcg_of,
    queries,
    read,
    split_auxiliary,
    write,
)

from isthmus import Bridge, Federation, Pairs, VectorSet
from isthmus.errors import TooFewPairsError
from isthmus.evaluate.retrieval import ndcg
from isthmus.federate import Source
from isthmus.federate.calibration import ScoreCalibration
from isthmus.federate.calibration_quality import measure
from isthmus.federate.candidates import Candidates
from isthmus.federate.cost import Setting, cost_of
from isthmus.federate.fusion import Fusion, OneDirectional, Score, make
from isthmus.federate.weights import fit_weights
from isthmus.neighbors import top_k
from isthmus.spaces import Qrels
from isthmus.stores.registry import open_store

K = 10
COMMON = (0.0, 0.1, 0.2, 0.3, 0.4)
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
LABELLED = (20, 50, 200)
DRAWS = 5


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--datasets", nargs="+", default=["climate-fever", "scifact"])
    parser.add_argument(
        "--models",
        nargs="+",
        default=["minilm-l6,mpnet", "minilm-l6,mpnet,para-l3"],
        help="the hub's first, between commas",
    )
    parser.add_argument("--methods", nargs=2, default=["auto", "auto"], help="maps out and back")
    args = parser.parse_args()
    for seed in args.seeds:
        for dataset in args.datasets:
            for models in args.models:
                run(args, dataset, models.split(","), seed)
    print(table(read(args.results, "federate_fusion"), args))


def run(args: argparse.Namespace, dataset: str, models: list[str], seed: int) -> None:
    sides = [documents(args.data, dataset, name) for name in models]
    asked = [queries(args.data, dataset, name) for name in models]
    qrels = judgements(args.data, dataset)
    paired, rest = split_auxiliary(qrels, sides[0].ids, share=0.2, seed=seed)
    parts = np.array_split(rest, len(models))
    sources, floor = make_sources(sides, parts, paired, args.methods, seed)
    result: dict = {"nDCG@10": rank_all(sides, sources, floor, asked, qrels)}
    result["nDCG@10"] |= integrated(sides, parts, sources, asked, qrels)
    with Federation(sides[0].space, sources) as federation:
        pool = federation.candidates(asked[0], depth=K)
    gains, ideal = qrels.gains(asked[0].ids, pool.ids), qrels.ideal(asked[0].ids, K)
    result["sweep"] = {
        str(share): float(np.nanmean(rank(pool, Score(weight=share), gains, ideal)))
        for share in SHARES
    }
    result["common"] = {
        str(share): float(np.nanmean(rank(pool, Score(common=share), gains, ideal)))
        for share in COMMON
    }
    result["fitted"] = fitted(pool, gains, ideal)
    result["calibrated"] = calibrated(pool, gains, ideal)
    setting = Setting(
        rows=tuple(map(len, parts)), spaces=tuple(range(len(models))), k=K, pairs=len(paired)
    )
    result["cost"] = {
        name: cost_of(name, setting).to_dict() for name in ("score", "agg", "cca", "ec", "mig")
    }
    parameters = {
        "dataset": dataset,
        "models": models,
        "methods": list(args.methods),
        "chosen": [[one.to_store.method, one.to_hub.method] for one in sources[1:]],
        "seed": seed,
    }
    name = f"{dataset}.{'.'.join(models)}.{'.'.join(args.methods)}.{seed}"
    write(args.results, "federate_fusion", name, parameters, result)
    print(parameters, {k: round(v, 4) for k, v in result["nDCG@10"].items()}, flush=True)


def make_sources(
    sides: list[VectorSet],
    parts: list[np.ndarray],
    paired: np.ndarray,
    methods: list[str],
    seed: int,
) -> tuple[list[Source], list[Source]]:
    """Return the sources with fitted bridges, and with untrained ones."""
    sources, floor = [], []
    for place, (side, rows) in enumerate(zip(sides, parts, strict=True)):
        held = side.select(rows)
        store = open_store(f"memory://{seed}-{place}?collection=docs", space=held.space)
        store.upsert(held)
        if not place:
            sources.append(Source("0", store))
            floor.append(Source("0", store))
            continue
        there = Pairs.from_rows(sides[0], side, paired, paired)
        back = there.reverse()
        trained = (
            Bridge.fit(there, method=methods[0], collection=side, seed=seed),
            Bridge.fit(back, method=methods[1], purpose="score", collection=sides[0], seed=seed),
        )
        common = Bridge.fit(there, method="cca", seed=seed)
        sources.append(Source(str(place), store, *trained, common=common))
        few = there.select(np.arange(min(100, len(there))))
        untrained = [Bridge.fit(one, method="dummy", seed=seed) for one in (few, few.reverse())]
        floor.append(Source(str(place), store, *untrained))
    return sources, floor


def rank_all(
    sides: list[VectorSet],
    sources: list[Source],
    floor: list[Source],
    asked: list[VectorSet],
    qrels: Qrels,
) -> dict[str, float]:
    """Return the mean nDCG@10 of every fusion method, and of score through untrained maps."""
    native = {str(place): one for place, one in enumerate(asked) if place}
    methods: dict[str, Fusion] = {
        name: make(name) for name in ("score", "agg", "rrf", "combmnz", "cca")
    }
    methods["score, no common"] = Score(common=0)
    methods |= {f"one_directional {p}": OneDirectional(space=p) for p in range(len(sides))}
    found = {}
    for name, fusion in methods.items():
        with Federation(sides[0].space, sources, fusion=fusion) as federation:
            found[name] = federation.search(asked[0], k=K)
            if name in ("score", "agg", "combmnz", "cca"):
                both = federation.search(asked[0], k=K, native_queries=native)
                found[f"{name}, all encoders"] = both
    with Federation(sides[0].space, floor) as federation:
        found["score, dummy maps"] = federation.search(asked[0], k=K)
    return {
        name: float(np.nanmean(ndcg_of(one, asked[0].ids, qrels))) for name, one in found.items()
    }


def integrated(
    sides: list[VectorSet],
    parts: list[np.ndarray],
    sources: list[Source],
    asked: list[VectorSet],
    qrels: Qrels,
) -> dict[str, float]:
    """Return mig into every space, and ec into the hub's: what `isthmus integrate` writes."""
    rest = np.concatenate(parts)
    found = {}
    for place, (side, query) in enumerate(zip(sides, asked, strict=True)):
        found[f"mig into {place}"] = (side.matrix()[rest], query)
    moved = [
        side.matrix()[rows]
        if source.to_hub is None
        else source.to_hub.transform(side.matrix()[rows])
        for side, rows, source in zip(sides, parts, sources, strict=True)
    ]
    found["ec into 0"] = (np.concatenate(moved), asked[0])
    ids = sides[0].ids[rest]
    return {
        name: float(np.nanmean(ndcg_of(ids[top_k(one.matrix(), rows, k=K).rows], one.ids, qrels)))
        for name, (rows, one) in found.items()
    }


def rank(pool: Candidates, method: Score, gains: np.ndarray, ideal: np.ndarray) -> np.ndarray:
    """Return nDCG@10 per query."""
    order = np.argsort(-method.score(pool), axis=1, kind="stable")[:, :K]
    return ndcg(np.take_along_axis(gains, order, axis=1), ideal, K)


def take(pool: Candidates, rows: np.ndarray) -> Candidates:
    """Return the candidates of some of the queries."""
    return replace(
        pool,
        ids=pool.ids[rows],
        similarities=pool.similarities[:, rows],
        same=pool.same[rows],
        common=None if pool.common is None else pool.common[rows],
    )


def fitted(pool: Candidates, gains: np.ndarray, ideal: np.ndarray) -> dict:
    """Fit weights on a few labelled queries and compare them with the default on all others."""
    default = rank(pool, Score(), gains, ideal)
    told: dict = {}
    for count in (count for count in LABELLED if count < len(gains)):
        differences, accepted = [], 0
        for draw in range(DRAWS):
            order = np.random.default_rng(draw).permutation(len(gains))
            some, others = order[:count], order[count:]
            try:
                found = fit_weights(take(pool, some), gains[some], ideal[some], seed=draw)
            except TooFewPairsError:
                continue
            accepted += found.fitted
            better = rank(take(pool, others), found.score, gains[others], ideal[others])
            differences.append(float(np.nanmean(better - default[others])))
        if not differences:
            continue
        told[str(count)] = {
            "mean": float(np.mean(differences)),
            "worst": min(differences),
            "accepted": accepted / DRAWS,
        }
    return told


def calibrated(pool: Candidates, gains: np.ndarray, ideal: np.ndarray) -> dict:
    """Calibrate on half of the queries and measure on the other."""
    scores = Score().score(pool)
    names = [str(place) for place in range(int(pool.source.max()) + 1)]
    order = np.random.default_rng(0).permutation(len(gains))
    some, others = order[: len(order) // 2], order[len(order) // 2 :]
    curves = ScoreCalibration.fit(scores[some], gains[some], pool.source, names=names)
    one = np.zeros_like(pool.source)
    alike = ScoreCalibration.fit(scores[some], gains[some], one, names=["all"])
    told = {}
    for name, values in (
        ("score", scores[others]),
        ("one curve", alike.probability(scores[others], one)),
        ("one curve per source", curves.probability(scores[others], pool.source)),
    ):
        found = measure(values, gains[others], pool.source, ideal=ideal[others])
        told[name] = {"error": list(found.error), "spread": found.spread, "nDCG@10": found.ndcg}
    return told


def table(records: list[dict], args: argparse.Namespace) -> str:
    """Return the means over the seeds, one block per data set and models."""
    lines = []
    for dataset in args.datasets:
        for models in args.models:
            results = [
                record["result"]
                for record in records
                if record["parameters"]["dataset"] == dataset
                and record["parameters"]["models"] == models.split(",")
                and record["parameters"]["methods"] == list(args.methods)
                and record["parameters"]["seed"] in args.seeds
            ]
            lines += [f"{dataset}, {models}; {len(results)} splits", *_block(results)]
    return "\n".join(lines)


def _block(results: Sequence[dict]) -> list[str]:
    agg = np.mean([one["nDCG@10"]["agg, all encoders"] for one in results])
    lines = []
    for name in results[0]["nDCG@10"]:
        mean = np.mean([one["nDCG@10"][name] for one in results])
        lines.append(f"  {name:28} {mean:.4f}  {mean / agg:.3f} x AGG")
    for name in ("sweep", "common"):
        means = (
            f"{share} {np.mean([one[name][share] for one in results]):.4f}"
            for share in results[0][name]
        )
        lines.append(f"  {name}: " + "  ".join(means))
    for count in results[0]["fitted"]:
        each = [one["fitted"][count] for one in results]
        lines.append(
            f"  weights from {count} queries: {np.mean([one['mean'] for one in each]):+.4f}, worst "
            f"{min(one['worst'] for one in each):+.4f}, accepted "
            f"{np.mean([one['accepted'] for one in each]):.2f}"
        )
    for name in results[0]["calibrated"]:
        each = [one["calibrated"][name] for one in results]
        lines.append(
            f"  {name:22} calibration error {np.mean([one['error'] for one in each]):.3f}, spread "
            f"of precision {np.mean([one['spread'] for one in each]):.3f}, nDCG "
            f"{np.mean([one['nDCG@10'] for one in each]):.4f}"
        )
    return lines


if __name__ == "__main__":
    main()
