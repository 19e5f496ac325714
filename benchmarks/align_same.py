"""Queries of one text model over documents of another, from few pairs: nDCG@10.

Pairs are documents that are relevant to no query; all other documents are searched, and are the
unpaired rows: all of them of both sides (overlap 1), or one half of each side (overlap 0). ``auto``
is what `fit --method auto` chooses, without and with the unpaired rows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import align_cells as cells
import common
import numpy as np
from align_cells import Sides, Split, fit_for

from isthmus import Pairs, VectorSet
from isthmus.bridge.selection import select
from isthmus.bridge.unpaired import Unpaired
from isthmus.maps import MAPS, Compose
from isthmus.neighbors import top_k
from isthmus.spaces import Qrels

PAIRS = (100, 200, 500)
AUTO = ("auto", "auto, unpaired")
SAME_METHODS = (
    *AUTO, "anchor_cca", "ridge", "procrustes", "procrustes_ridge", "cca", *cells.TUNED, "relative",
    "barycentric", "mlp", "contrastive", "sotalign", "anchordot",
)  # fmt: skip

Cell = tuple[dict[str, Any], Callable[[], dict[str, Any]]]


@dataclass(frozen=True, eq=False)
class Problem:
    """Documents and queries of two models, and which documents are pairs."""

    documents: tuple[VectorSet, VectorSet]
    queries: tuple[VectorSet, VectorSet]
    qrels: Qrels
    paired: np.ndarray
    rest: np.ndarray
    seed: int

    @classmethod
    def of(cls, data: Path, *, pairs: int, seed: int) -> Problem:
        """Draw the pairs of a split; those of fewer pairs are among those of more."""
        dataset, *names = cells.DOCUMENTS
        models = [name.removeprefix("docs.") for name in names]
        documents = [common.documents(data, dataset, model) for model in models]
        queries = [common.queries(data, dataset, model) for model in models]
        qrels = common.judgements(data, dataset)
        ids = documents[0].ids
        order = np.random.default_rng(seed).permutation(len(ids))
        free = order[~np.isin(ids[order], qrels.document_ids[qrels.scores > 0])]
        rest = np.setdiff1d(np.arange(len(ids)), free[:pairs])
        return cls(tuple(documents), tuple(queries), qrels, free[:pairs], rest, seed)

    def split(self, *, overlap: float) -> Split:
        """Return the pairs as anchors and the other documents as pools, in no common order.

        With an overlap of 1 all of them are on both sides; with 0, one half on each.
        """
        source, target = (side.matrix() for side in self.documents)
        mixed = np.random.default_rng([self.seed, 1]).permutation(self.rest)
        pools = (self.rest, mixed) if overlap else tuple(np.array_split(mixed, 2))
        asked = tuple(side.matrix() for side in self.queries)
        key = {"dataset": cells.DOCUMENTS[0], "anchors": len(self.paired), "reserved": 0,
               "pool": len(pools[0]), "overlap": overlap, "seed": self.seed}  # fmt: skip
        return Split(
            (self.documents[0].space, self.documents[1].space),
            (source[self.paired], target[self.paired]),
            (source[pools[0]], target[pools[1]]),
            asked,
            key,
        )

    def choose(self, pools: Sides | None) -> Compose:
        """Return the map that ``auto`` chooses, without or with rows without a pair."""
        pairs = Pairs.from_rows(*self.documents, self.paired, self.paired)
        more = {} if pools is None else {"unpaired": Unpaired(*pools)}
        target = self.documents[1].matrix()
        return select(
            pairs, collection=target, collection_rows=self.paired, seed=self.seed, **more
        ).map

    def score(self, asked: np.ndarray, searched: np.ndarray) -> float:
        """Return the mean nDCG@10 of rankings of the documents that are no pairs."""
        rows = top_k(asked, searched, k=10).rows
        ids = self.documents[1].ids[self.rest][rows]
        return float(np.nanmean(common.ndcg_of(ids, self.queries[0].ids, self.qrels)))


def same_modality(args: argparse.Namespace, method: str, seed: int) -> Iterator[Cell]:
    """Yield a cell per number of pairs, and per overlap where it matters."""
    looks = method == AUTO[1] or (method in MAPS and MAPS[method].sees_unpaired)
    for overlap in (1.0, 0.0) if looks else (1.0,):
        for pairs in PAIRS:
            work = partial(measure, args, method, pairs=pairs, overlap=overlap, seed=seed)
            yield {"pairs": pairs, "overlap": overlap}, work


def measure(
    args: argparse.Namespace, method: str, *, pairs: int, overlap: float, seed: int
) -> dict[str, Any]:
    """Return nDCG@10 of mapped queries, and of native ones."""
    problem = Problem.of(args.data, pairs=pairs, seed=seed)
    split = problem.split(overlap=overlap)
    start = time.perf_counter()
    if method in AUTO:
        made = problem.choose(None if method == AUTO[0] else split.pools)
        notes: dict[str, Any] = {"chosen": made.inner_.name}
        seconds = time.perf_counter() - start
    else:
        found = fit_for(args, "same_modality", split, method, seed)
        made, notes, seconds = found.map, dict(found.notes), found.seconds
    searched = problem.documents[1].matrix()[problem.rest]
    return {
        "nDCG@10": problem.score(
            made.transform(problem.queries[0].matrix()), made.transform_target(searched)
        ),
        "native": problem.score(problem.queries[1].matrix(), searched),
        "seconds": seconds,
        **notes,
    }
