"""Queries of one model over documents of another: nDCG@10 beside native queries and three peers.

    make peers && python benchmarks/query_mapping.py --data ../shared/data

Pairs are documents that are relevant to no query; the search runs over all other documents. Each
peer is called as its own documentation says, with its defaults (embspec has none for the penalty:
.01, as in its examples).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from common import arguments, documents, judgements, ndcg_of, queries, read, write

from isthmus import Pairs, VectorSet
from isthmus.bridge.selection import select
from isthmus.neighbors import top_k

SIZES = (500, 1000, 2000)
Search = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--datasets", nargs="+", default=["climate-fever", "scifact"])
    parser.add_argument("--source", default="minilm-l6")
    parser.add_argument("--target", default="mpnet")
    args = parser.parse_args()
    for dataset in args.datasets:
        for size in SIZES:
            for seed in args.seeds:
                run(args, dataset, size, seed)
    print(table(read(args.results, "query_mapping"), args))


def run(args: argparse.Namespace, dataset: str, size: int, seed: int) -> None:
    source, target = (documents(args.data, dataset, name) for name in (args.source, args.target))
    asked, native = (queries(args.data, dataset, name) for name in (args.source, args.target))
    qrels = judgements(args.data, dataset)
    order = np.random.default_rng(seed).permutation(len(source))
    free = order[~np.isin(source.ids[order], qrels.document_ids[qrels.scores > 0])]
    paired = free[:size]
    rest = np.setdiff1d(np.arange(len(source)), paired)
    X, Y = source.matrix()[paired], target.matrix()[paired]
    pairs = Pairs.from_rows(source, target, paired, paired)
    searched = target.select(rest)
    chosen = select(pairs, collection=target.matrix(), collection_rows=paired, seed=seed)

    def score(rows: np.ndarray) -> float:
        return float(np.nanmean(ndcg_of(searched.ids[rows], asked.ids, qrels)))

    def nearest(mapped: np.ndarray) -> np.ndarray:
        return top_k(mapped, searched.matrix(), k=10).rows

    reference = score(nearest(native.matrix()))
    found = {
        f"isthmus ({chosen.map.inner.name})": nearest(chosen.map.transform(asked.matrix())),
        "isotrieve": nearest(isotrieve(X, Y)(asked.matrix())),
        "rat-embed": rat(X, Y, asked.matrix(), searched),
    }
    if size >= X.shape[1]:  # embspec refuses fewer pairs than dimensions
        found["embspec"] = nearest(embspec(X, Y)(asked.matrix()))
    ratios = {name: score(rows) / reference for name, rows in found.items()}
    parameters = {
        "dataset": dataset,
        "source": args.source,
        "target": args.target,
        "pairs": size,
        "seed": seed,
    }
    name = f"{dataset}.{args.source}.{args.target}.{size}.{seed}"
    write(args.results, "query_mapping", name, parameters, {"native": reference, "ratio": ratios})
    print(parameters, {name: round(ratio, 3) for name, ratio in ratios.items()}, flush=True)


def isotrieve(X: np.ndarray, Y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    from isotrieve.mapping import RidgeMapping

    mapping = RidgeMapping()
    mapping.fit(X, Y)
    return lambda Q: np.asarray(mapping.transform(Q), dtype=np.float32)


def embspec(X: np.ndarray, Y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    from embspec import DriftAdapter

    adapter = DriftAdapter.fit(X, Y, regularization=0.01)
    return lambda Q: np.asarray(adapter.transform(Q), dtype=np.float32)


def rat(X: np.ndarray, Y: np.ndarray, Q: np.ndarray, searched: VectorSet) -> np.ndarray:
    from rat import RATranslator

    translator = RATranslator(kernel="poly", normalize="always").fit_embeddings(X, Y)
    return np.asarray(translator.retrieve(Q, searched.matrix(), top_k=10)["indices"], np.int64)


def table(records: list[dict], args: argparse.Namespace) -> str:
    """Return mean ratios over the seeds, a line per data set and number of pairs."""
    lines = []
    for dataset in args.datasets:
        for size in SIZES:
            cells = [
                record["result"]["ratio"]
                for record in records
                if record["parameters"] | {"dataset": dataset, "pairs": size}
                == record["parameters"]
                and record["parameters"]["seed"] in args.seeds
                and record["parameters"]["source"] == args.source
                and record["parameters"]["target"] == args.target
            ]
            means: dict[str, list[float]] = {}
            for cell in cells:
                for name, ratio in cell.items():
                    means.setdefault(name.split(" ")[0], []).append(ratio)
            said = ", ".join(f"{name} {np.mean(each):.3f}" for name, each in means.items())
            lines.append(f"{dataset} {args.source} -> {args.target}, {size} pairs: {said}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
