"""Real vectors of SciFact in two models, bundled for the demo and the examples."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

from isthmus.spaces import Qrels, VectorSet

__all__ = ["MODELS", "Sample", "load"]

MODELS = ("minilm-l6", "mpnet")


@dataclass(frozen=True)
class Sample:
    """SciFact in part: 1,500 abstracts and all 300 test claims, each in two models.

    Parameters
    ----------
    documents, queries : dict of VectorSet
        By model: ``minilm-l6`` (384 wide) and ``mpnet`` (768 wide); the same ids in both.
    qrels : Qrels
        Which documents answer which claims.
    """

    documents: dict[str, VectorSet]
    queries: dict[str, VectorSet]
    qrels: Qrels


def load() -> Sample:
    """Read the sample.

    Examples
    --------
    >>> sample = load()
    >>> sample.documents["mpnet"].matrix().shape, len(sample.queries["mpnet"])
    ((1500, 768), 300)
    """
    folder = resources.files("isthmus.sample")

    def read(kind: str) -> dict[str, VectorSet]:
        sets = {}
        for model in MODELS:
            with resources.as_file(folder / f"{kind}.{model}.npz") as path:
                sets[model] = VectorSet.load(path)
        return sets

    with resources.as_file(folder / "qrels.tsv") as path:
        qrels = Qrels.load(path)
    return Sample(documents=read("documents"), queries=read("queries"), qrels=qrels)
