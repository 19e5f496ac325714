"""Whether the interval of a report, from held-out pairs alone, holds on the rest of the corpus.

    python benchmarks/honesty.py --data ../shared/data

For every (data set, ordered pair of models, number of pairs): fit with method auto, and compare the
report's retention@10 with the value measured on rows that are in no pair (all of them, or
``--measured`` drawn at random). Both search the whole target collection, the row itself left out.
"""

from __future__ import annotations

import argparse
import time
from itertools import permutations

import numpy as np
from common import arguments, documents, read, write

from isthmus import Pairs
from isthmus.bridge.selection import select
from isthmus.evaluate.preservation import nbr_overlap

MODELS = {
    "scifact": ("minilm-l6", "para-l3", "mpnet"),
    "climate-fever": ("minilm-l6", "para-l3", "mpnet"),
    "stackoverflow": ("minilm-l6", "mpnet"),
    "locomo": ("openai-3-small", "minilm-l6"),
    "chebi20": ("molecules.minimol", "texts.minilm-l6"),
}
SIZES = (100, 200, 500, 1000, 2000)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--measured", type=int, default=5000, help="rows to measure on at most")
    parser.add_argument("--datasets", nargs="+", default=list(MODELS))
    args = parser.parse_args()
    for dataset in args.datasets:
        for source, target in permutations(MODELS[dataset], 2):
            for seed in args.seeds:
                run(args, dataset, source, target, seed)
    print(summary(read(args.results, "honesty"), args.seeds))


def run(args: argparse.Namespace, dataset: str, source: str, target: str, seed: int) -> None:
    one, two = documents(args.data, dataset, source), documents(args.data, dataset, target)
    order = np.random.default_rng(seed).permutation(len(one))
    for size in SIZES:
        start = time.perf_counter()
        rows, rest = order[:size], order[size:][: args.measured]
        chosen = select(
            Pairs.from_rows(one, two, rows, rows),
            collection=two.matrix(),
            collection_rows=rows,
            seed=seed,
        )
        mapped = chosen.map.transform(one.matrix()[rest])
        measured = nbr_overlap(
            mapped, two.matrix()[rest], k=10, collection=two.matrix(), own_rows=rest
        )
        value, plain = (chosen.report.values[name] for name in ("retention@10", "nbr_overlap@10"))
        result = {
            "reported": [value.mean, value.low, value.high],
            "plain": [plain.mean, plain.low, plain.high],
            "measured": float(measured.mean()),
            "method": chosen.map.inner.name,
            "verdict": chosen.verdict.status,
            "pairs_needed": chosen.verdict.pairs_needed,
            "held_out_means": {row["method"]: row["nbr_overlap@10"] for row in chosen.candidates},
            "seconds": time.perf_counter() - start,
        }
        parameters = {
            "dataset": dataset,
            "source": source,
            "target": target,
            "pairs": size,
            "seed": seed,
            "measured_on": len(rest),
        }
        write(
            args.results,
            "honesty",
            f"{dataset}.{source}.{target}.{size}.{seed}",
            parameters,
            result,
        )
        print(
            f"{dataset} {source} {target} {size} seed {seed}: {value} measured "
            f"{result['measured']:.3f} {result['method']} {result['verdict']} "
            f"{result['seconds']:.1f} s",
            flush=True,
        )


def summary(records: list[dict], seeds: list[int]) -> str:
    """Say coverage, width and verdicts over all cells of these seeds."""
    cells = [record for record in records if record["parameters"]["seed"] in seeds]
    reported = np.array([cell["result"]["reported"] for cell in cells])
    plain = np.array([cell["result"]["plain"] for cell in cells])
    measured = np.array([cell["result"]["measured"] for cell in cells])
    sizes = np.array([cell["parameters"]["pairs"] for cell in cells])
    verdicts = np.array([cell["result"]["verdict"] for cell in cells])
    held = (reported[:, 1] <= measured) & (measured <= reported[:, 2])
    widths = reported[:, 2] - reported[:, 1]
    plain_widths = plain[:, 2] - plain[:, 1]
    good = np.isin(verdicts, ("bridge", "pre_aligned"))
    high = measured >= 0.8
    lines = [
        f"cells {len(cells)}, seeds {seeds}",
        f"interval holds the measured value: {held.mean():.3f} "
        + str({int(size): round(float(held[sizes == size].mean()), 3) for size in SIZES}),
        "mean width / mean width of the plain bootstrap: "
        f"{widths.mean() / plain_widths.mean():.2f}, "
        f"mean of ratios {np.mean(widths / plain_widths):.2f}",
        f"mean error {np.mean(reported[:, 0] - measured):+.4f}",
        f"verdict bridge: {good.sum()}; of these measured under half of reported: "
        f"{int((good & (measured < reported[:, 0] / 2)).sum())}",
        f"measured >= .8: {high.sum()}, of these bridge: {int((high & good).sum())}",
        f"measured >= .5: {(measured >= 0.5).sum()}, of these bridge: "
        f"{int(((measured >= 0.5) & good).sum())}; bridge though measured < .5: "
        f"{int(((measured < 0.5) & good).sum())}",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
