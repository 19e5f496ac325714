"""How well copies of a document in two stores of different models are found by their vectors.

    python benchmarks/federate_dedup.py --data ../shared/data

A random fifth of the documents are the pairs that the bridges are fitted on. Of the rest, half
stands in both stores and a quarter in each alone. Precision and recall are those of the pairs of
candidates that are merged, against the pairs with one id, over all queries and at several settings
of ``dedup_similarity``. Near-duplicates with ids of their own count as errors.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from common import arguments, documents, write

from isthmus import Bridge, Federation, Pairs, VectorSet
from isthmus.federate import Source
from isthmus.federate.candidates import Candidates
from isthmus.stores import open_store

CELLS = (
    ("climate-fever", "minilm-l6", "mpnet"),
    ("climate-fever", "mpnet", "minilm-l6"),
    ("scifact", "minilm-l6", "mpnet"),
    ("scifact", "mpnet", "minilm-l6"),
)
SETTINGS = (0.8, 0.85, 0.9, 0.95)
DEPTH = 10


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--method", default="ridge", help="map of both bridges")
    asked = parser.parse_args()
    for cell in CELLS:
        found = np.array([measure(asked.data, cell, asked.method, seed) for seed in asked.seeds])
        name = "-".join((*cell, asked.method))
        parameters = {"cell": cell, "method": asked.method, "seeds": asked.seeds, "depth": DEPTH}
        raw = {
            "settings": SETTINGS,
            "precision": found[:, :, 0].tolist(),
            "recall": found[:, :, 1].tolist(),
        }
        write(asked.results, "federate_dedup", name, parameters, raw)
        for setting, (precision, recall) in zip(SETTINGS, found.mean(axis=0), strict=True):
            print(f"{name:40} {setting:.2f}  precision {precision:.3f}  recall {recall:.3f}")


def measure(
    data: Path, cell: tuple[str, str, str], method: str, seed: int
) -> list[tuple[float, float]]:
    """Return precision and recall at every setting."""
    dataset, *models = cell
    both = [documents(data, dataset, model) for model in models]
    queries = VectorSet.load(data / dataset / f"queries.{models[0]}.npz")
    order = np.random.default_rng(seed).permutation(len(both[0]))
    ends = (np.array([0.2, 0.6, 0.8]) * len(order)).astype(int)
    paired, shared, one, other = np.split(order, ends)
    pairs = Pairs.from_ids(*(each.select(paired) for each in both))
    bridges = Bridge.fit(pairs, method=method), Bridge.fit(pairs.reverse(), method=method)
    halves = [
        each.select(np.concatenate([shared, own]))
        for each, own in zip(both, (one, other), strict=True)
    ]
    with tempfile.TemporaryDirectory() as folder:
        stores = [
            open_store(f"sqlite:///{folder}/{place}.db?collection=docs", space=half.space)
            for place, half in enumerate(halves)
        ]
        for store, half in zip(stores, halves, strict=True):
            store.upsert(half)
        sources = [Source("one", stores[0]), Source("two", stores[1], *bridges)]
        results = []
        for setting in SETTINGS:
            federation = Federation(
                halves[0].space, sources, dedup="vector", dedup_similarity=setting
            )
            results.append(agreement(federation.candidates(queries, depth=DEPTH)))
        federation.close()
    return results


def agreement(candidates: Candidates) -> tuple[float, float]:
    """Return precision and recall of the merged pairs."""
    ids, other = candidates.ids[:, :DEPTH, None], candidates.ids[:, None, DEPTH:]
    truth = ids == other
    merged = candidates.same[:, :DEPTH, None] == candidates.same[:, None, DEPTH:]
    right = float((truth & merged).sum())
    return right / max(1.0, float(merged.sum())), right / max(1.0, float(truth.sum()))


if __name__ == "__main__":
    main()
