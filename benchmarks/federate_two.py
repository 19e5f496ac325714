"""Two databases of two models, searched as one: Isthmus beside AGG, one direction and the oracle.

    python benchmarks/federate_two.py --data ../shared/data

A random fifth of the documents, relevant to no query, is embedded by both models: the pairs. The
others lie half in one store (the hub's model), half in the other. Queries are encoded by the hub's
model only, except where a row says "both encoders".
"""

from __future__ import annotations

import argparse

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
from isthmus.federate import Source
from isthmus.federate.fusion import Fusion, OneDirectional, Score, make
from isthmus.neighbors import top_k
from isthmus.stores.registry import open_store

WEIGHTS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
K = 10


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--datasets", nargs="+", default=["climate-fever", "scifact"])
    parser.add_argument("--hub", default="minilm-l6")
    parser.add_argument("--other", default="mpnet")
    parser.add_argument("--methods", nargs=2, default=["auto", "auto"], help="maps out and back")
    args = parser.parse_args()
    for dataset in args.datasets:
        for seed in args.seeds:
            run(args, dataset, seed)
    print(table(read(args.results, "federate_two"), args))


def run(args: argparse.Namespace, dataset: str, seed: int) -> None:
    sides = [documents(args.data, dataset, name) for name in (args.hub, args.other)]
    asked = [queries(args.data, dataset, name) for name in (args.hub, args.other)]
    qrels = judgements(args.data, dataset)
    paired, rest = split_auxiliary(qrels, sides[0].ids, share=0.2, seed=seed)
    held = [side.select(rows) for side, rows in zip(sides, np.array_split(rest, 2), strict=True)]
    bridges = fit_bridges(sides, paired, args.methods, seed)
    stores = []
    for number, documents_held in enumerate(held):
        store = open_store(f"memory://{number}?collection=docs", space=documents_held.space)
        store.upsert(documents_held)
        stores.append(store)
    sources = [Source("hub", stores[0]), Source("other", stores[1], *bridges)]
    found = {}
    with Federation(sides[0].space, sources) as federation:
        candidates = federation.candidates(asked[0], depth=K)
        both = federation.candidates(asked[0], depth=K, native_queries={"other": asked[1]})
        spaces = federation.spaces

    def add(name: str, fusion: Fusion, pool: object) -> None:
        with Federation(sides[0].space, sources, fusion=fusion) as federation:
            found[name] = federation.rank(pool, asked[0].ids, k=K).ids

    for name in ("agg", "rrf", "combmnz"):
        add(f"{name}, both encoders", make(name), both)
        add(name, make(name), candidates)
    for place, space in enumerate(spaces):
        where = "hub" if place == 0 else "other"
        add(f"one-directional into {where}", OneDirectional(space=place), candidates)
        del space
    for weight in WEIGHTS:
        add(f"score w1 = {weight}", Score(weight=weight), candidates)
    for name, side, query in zip(("hub", "other"), sides, asked, strict=True):
        found[f"oracle, all in {name}"] = native(side.select(rest), query)
    means = {
        name: float(np.nanmean(ndcg_of(ids, asked[0].ids, qrels))) for name, ids in found.items()
    }
    parameters = {
        "dataset": dataset,
        "hub": args.hub,
        "other": args.other,
        "seed": seed,
        "methods": list(args.methods),
        "chosen": [bridge.method for bridge in bridges],
    }
    name = f"{dataset}.{args.hub}.{args.other}.{'.'.join(args.methods)}.{seed}"
    write(args.results, "federate_two", name, parameters, {"nDCG@10": means})
    print(parameters, {name: round(mean, 3) for name, mean in means.items()}, flush=True)


def fit_bridges(
    sides: list[VectorSet], paired: np.ndarray, methods: list[str], seed: int
) -> list[Bridge]:
    """Fit the bridge from the hub's space to the other, and the one back."""
    out = Pairs.from_rows(*sides, paired, paired)
    return [
        Bridge.fit(pairs, method=method, purpose=purpose, collection=collection, seed=seed)
        for pairs, method, purpose, collection in (
            (out, methods[0], "search", sides[1]),
            (out.reverse(), methods[1], "score", sides[0]),
        )
    ]


def native(held: VectorSet, asked: VectorSet) -> np.ndarray:
    """Search everything in one model."""
    return held.ids[top_k(asked.matrix(), held.matrix(), k=K).rows]


def table(records: list[dict], args: argparse.Namespace) -> str:
    """Return mean nDCG@10 over the seeds, a block per data set, and the ratios asked for."""
    lines = []
    for dataset in args.datasets:
        wanted = {
            "dataset": dataset,
            "hub": args.hub,
            "other": args.other,
            "methods": list(args.methods),
        }
        cells = [
            record["result"]["nDCG@10"]
            for record in records
            if record["parameters"] | wanted == record["parameters"]
            and record["parameters"]["seed"] in args.seeds
        ]
        means = {name: float(np.mean([cell[name] for cell in cells])) for name in cells[0]}
        one = max(mean for name, mean in means.items() if name.startswith("one-directional"))
        lines.append(f"{dataset}, {args.hub} as hub, {args.other}; {len(cells)} splits")
        for name, mean in means.items():
            ratio = mean / means["agg, both encoders"]
            lines.append(f"  {name:32} {mean:.4f}  {ratio:.3f} x AGG  {mean - one:+.4f} to one way")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
