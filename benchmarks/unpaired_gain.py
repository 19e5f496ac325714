"""What rows without a pair add to `fit --method auto`: nDCG@10 of mapped queries, from few pairs.

    python benchmarks/unpaired_gain.py --data ../shared/data

Pairs are documents that are relevant to no query; the search runs over all other documents. The
unpaired rows are those other documents: the same on both sides (overlap 1), or one half of them on
each side, so that no object is on both (overlap 0). Nothing says which of them belong together.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from common import arguments, documents, judgements, ndcg_of, queries, read, write

from isthmus import Pairs, VectorSet
from isthmus.bridge import Bridge
from isthmus.neighbors import top_k

TASK = "unpaired_gain"
SIZES = (100, 200, 500)
OVERLAPS = (1, 0)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--datasets", nargs="+", default=["climate-fever", "scifact"])
    parser.add_argument("--source", default="minilm-l6")
    parser.add_argument("--target", default="mpnet")
    parser.add_argument("--pairs", nargs="+", type=int, default=SIZES)
    args = parser.parse_args()
    for seed in args.seeds:
        for size in args.pairs:
            for dataset in args.datasets:
                run(args, dataset, size, seed)
    print(table(read(args.results, TASK), args))


def run(args: argparse.Namespace, dataset: str, size: int, seed: int) -> None:
    """Measure one split: without unpaired rows, and with those of each overlap."""
    source, target = (documents(args.data, dataset, name) for name in (args.source, args.target))
    asked, native = (queries(args.data, dataset, name) for name in (args.source, args.target))
    qrels = judgements(args.data, dataset)
    order = np.random.default_rng(seed).permutation(len(source))
    free = order[~np.isin(source.ids[order], qrels.document_ids[qrels.scores > 0])]
    paired, rest = free[:size], np.setdiff1d(order, free[:size])
    searched = target.select(rest)
    pairs = Pairs.from_rows(source, target, paired, paired)

    def score(rows: np.ndarray) -> float:
        found = top_k(rows, searched.matrix(), k=10).rows
        return float(np.nanmean(ndcg_of(searched.ids[found], asked.ids, qrels)))

    def measure(**unpaired: VectorSet) -> dict[str, Any]:
        started = time.perf_counter()
        bridge = Bridge.fit(pairs, collection=target, seed=seed, **unpaired)
        seconds = time.perf_counter() - started
        mapped = bridge.map.transform(asked.matrix())
        kept = bridge.report.values["nbr_overlap@10"].mean
        return {
            "method": bridge.method,
            "ndcg@10": score(mapped),
            "nbr_overlap@10": kept,
            "seconds": seconds,
        }

    result: dict[str, Any] = {"native": score(native.matrix()), "without": measure()}
    mixed = np.random.default_rng([seed, 1]).permutation(rest)
    half = len(mixed) // 2
    for overlap in OVERLAPS:
        left, right = (mixed, rest) if overlap else (mixed[:half], mixed[half:])
        result[f"overlap {overlap}"] = measure(
            unpaired_source=source.select(left), unpaired_target=target.select(right)
        )
    parameters = {
        "dataset": dataset,
        "source": args.source,
        "target": args.target,
        "pairs": size,
        "seed": seed,
    }
    name = f"{dataset}.{args.source}.{args.target}.{size}.{seed}"
    write(args.results, TASK, name, parameters, result)
    print(parameters, result, flush=True)


def table(records: list[dict], args: argparse.Namespace) -> str:
    """Return mean nDCG@10 over the seeds, a line per data set and number of pairs."""
    lines = []
    for dataset in args.datasets:
        for size in args.pairs:
            wanted = {
                "dataset": dataset,
                "source": args.source,
                "target": args.target,
                "pairs": size,
            }
            cells = [
                record["result"]
                for record in records
                if record["parameters"] | wanted == record["parameters"]
                and record["parameters"]["seed"] in args.seeds
            ]
            if not cells:
                continue
            plain = np.mean([cell["without"]["ndcg@10"] for cell in cells])
            said = [f"native {np.mean([cell['native'] for cell in cells]):.3f}"]
            for case in ("without", *(f"overlap {overlap}" for overlap in OVERLAPS)):
                mean = np.mean([cell[case]["ndcg@10"] for cell in cells])
                methods = sorted({cell[case]["method"] for cell in cells})
                said.append(f"{case} {mean:.3f} ({mean / plain - 1:+.0%}, {', '.join(methods)})")
            lines.append(
                f"{dataset} {args.source} -> {args.target}, {size} pairs, {len(cells)} seeds: "
                + "; ".join(said)
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
