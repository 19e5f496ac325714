"""What the benchmarks share: loading the real vectors, and one JSON per run with its machine."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from isthmus import VectorSet
from isthmus.rankings import Ranking
from isthmus.spaces import Qrels

RESULTS = Path(__file__).parent / "results"
LIBRARIES = ("isthmus", "numpy", "scipy", "scikit-learn", "faiss-cpu")


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with what every benchmark takes."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the real vectors")
    parser.add_argument(
        "--seeds",
        type=int,
        nargs="+",
        default=[0, 1, 2, 3, 4],
        help="splits; 0 to 4 are reported, so tune on 100 and over",
    )
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser


def documents(data: Path, dataset: str, model: str) -> VectorSet:
    """Load the documents of a data set in one model."""
    name = model if dataset == "chebi20" else f"docs.{model}"
    return VectorSet.load(data / dataset / f"{name}.npz")


def queries(data: Path, dataset: str, model: str) -> VectorSet:
    """Load the judged queries of a data set in one model."""
    every = VectorSet.load(data / dataset / f"queries.{model}.npz")
    return every.select(np.flatnonzero(judgements(data, dataset).judged(every.ids)))


def judgements(data: Path, dataset: str) -> Qrels:
    """Load who is relevant to whom."""
    return Qrels.load(data / dataset / "qrels.tsv")


def split_auxiliary(qrels: Qrels, ids: np.ndarray, *, share: float, seed: int) -> list[np.ndarray]:
    """Return shuffled rows: auxiliary documents, relevant to no query, and all others."""
    order = np.random.default_rng(seed).permutation(len(ids))
    free = ~np.isin(ids[order], qrels.document_ids[qrels.scores > 0])
    auxiliary = order[free][: round(share * len(ids))]
    return [auxiliary, order[~np.isin(order, auxiliary)]]


def ndcg_of(ranking: Ranking | np.ndarray, query_ids: np.ndarray, qrels: Qrels) -> np.ndarray:
    """Return nDCG@10 per query."""
    from isthmus.evaluate.retrieval import ndcg

    ids = ranking.ids if isinstance(ranking, Ranking) else ranking
    return ndcg(qrels.gains(query_ids, ids), qrels.ideal(query_ids, 10), 10)


def write(
    results: Path, task: str, name: str, parameters: Mapping[str, Any], result: Mapping[str, Any]
) -> None:
    """Keep the raw result of one run."""
    folder = results / task
    folder.mkdir(parents=True, exist_ok=True)
    record = {
        "task": task,
        "parameters": dict(parameters),
        "result": dict(result),
        "versions": {name: importlib.metadata.version(name) for name in LIBRARIES},
        "python": platform.python_version(),
        "machine": {"processor": platform.machine(), "cores": os.cpu_count()},
    }
    (folder / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")


def read(results: Path, task: str) -> list[dict[str, Any]]:
    """Read all raw results of a task."""
    return [json.loads(path.read_text()) for path in sorted((results / task).glob("*.json"))]
