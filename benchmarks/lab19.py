"""Map bake-off (Lab 19 of the map family): which map, and which pairs to fit it on.

    python benchmarks/lab19.py --data ../shared/data
    python benchmarks/tables.py

Per data set, direction and seed, every map is fitted on the same 1,000 pairs with the same
preprocessing, once for each way of choosing the pairs. What is meant:

* held out: 1,000 documents drawn at random, the same for all maps and choices of pairs; they look
  for their neighbours, and queries for their answers, in the whole target collection.
* pairs come from the other documents, of these only such as are relevant to no query.
* easy: no hard negative close by. All-easy pairs are the 1,000 whose nearest other document, in the
  source space, is furthest away. "one spot" (a document and its 999 nearest) is the worst coverage.
* hard: the native search hardly tells its best answer from the next (for a document the best is
  itself): its margin is in the lowest quarter. Equal up to rounding is not hard but hopeless: such
  rows count as not hard.

One JSON per run holds its means. One more per data set and direction pools the seeds: each query's
(document's) value is averaged over the seeds, and a paired bootstrap over queries (documents) gives
the intervals of values and of differences.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from common import arguments, documents, judgements, ndcg_of, queries, write

from isthmus import Pairs, VectorSet
from isthmus.bridge.held_out import fit
from isthmus.bridge.selection import compose_for
from isthmus.evaluate.bootstrap import intervals, paired_difference, ratio
from isthmus.evaluate.preservation import Native
from isthmus.evaluate.preservation.decisions import margin
from isthmus.evaluate.preservation.order import neighbor_order
from isthmus.evaluate.preservation.overlap import answers_kept, neighbors_kept, own_found
from isthmus.evaluate.reconstruction import cos_to_target
from isthmus.evaluate.view import View
from isthmus.maps import MAPS, Compose
from isthmus.spaces import Qrels
from isthmus.spaces.sampling import hard_range, nearest_distance

DATASETS = ("scifact", "climate-fever")
DIRECTIONS = ("minilm-l6:mpnet", "mpnet:minilm-l6", "minilm-l6:para-l3")
METHODS = tuple(name for name in MAPS if not MAPS[name]().costly)
CHOICES = {  # how pairs are chosen: the strategy of `Pairs.sample`, None for the one made here
    "all-easy": None,
    "one spot": "nearest",
    "random": "random",
    "coverage": "coverage",
}
ALSO_HARD = ("nbr_overlap@10", "rank_corr", "hit@1", "agreement@10", "agreement@1", "nDCG@10")
# Differences are kept for these; the first three are what the success criterion asks of a map.
COMPARED = (
    "nbr_overlap@10",
    "rank_corr",
    "agreement@10",
    "agreement@10, hard",
    "agreement@1, hard",
    "nbr_overlap@10, hard",
    "nDCG@10",
)
MOVES = (("all-easy", "coverage"), ("random", "coverage"), ("one spot", "coverage"))
K = 10
# Per (choice of pairs, map): a number per document or per query for each measure.
Scores = dict[tuple[str, str], dict[str, np.ndarray]]


@dataclass(frozen=True)
class Cell:
    """One data set in two models, with what the native side says: the same for every seed."""

    source: VectorSet
    target: VectorSet
    asked: VectorSet
    asked_native: VectorSet
    qrels: Qrels

    @classmethod
    def load(cls, args: argparse.Namespace, dataset: str, direction: str) -> Cell:
        """Load both models' documents and labelled queries."""
        models = direction.split(":")
        return cls(
            *(documents(args.data, dataset, model) for model in models),
            *(queries(args.data, dataset, model) for model in models),
            judgements(args.data, dataset),
        )

    @cached_property
    def collection(self) -> np.ndarray:
        """What everything searches: all target documents."""
        return self.target.matrix()

    @cached_property
    def native(self) -> Native:
        """What the labelled queries find when they are encoded by the target's model."""
        return Native(self.asked_native.matrix(), self.collection)

    @cached_property
    def closeness(self) -> np.ndarray:
        """How far each source document is from its nearest other one."""
        rows, own = self.source.matrix(), np.arange(len(self.source))
        return nearest_distance(rows, rows, metric=self.source.space.metric, exclude=own)

    @cached_property
    def hard_queries(self) -> np.ndarray:
        """Which queries have two answers that the target's model hardly tells apart."""
        return hard(self.native)

    @cached_property
    def hard_documents(self) -> np.ndarray:
        """Which documents have another one close by."""
        own = np.arange(len(self.target))
        return hard(Native(self.collection, self.collection, own_rows=own, depth=1))

    @cached_property
    def free(self) -> np.ndarray:
        """Whether a document is relevant to no query."""
        relevant = self.qrels.document_ids[self.qrels.scores > 0]
        return ~np.isin(self.source.ids, relevant)

    def gains(self, found: np.ndarray) -> np.ndarray:
        """Return nDCG@10 per query of the rows that were found."""
        return ndcg_of(self.target.ids[found], self.asked.ids, self.qrels)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS))
    parser.add_argument("--directions", nargs="+", default=list(DIRECTIONS))
    parser.add_argument("--pairs", type=int, default=1_000)
    parser.add_argument("--held-out", type=int, default=1_000)
    args = parser.parse_args()
    for dataset, direction in product(args.datasets, args.directions):
        run(args, dataset, direction)


def run(args: argparse.Namespace, dataset: str, direction: str) -> None:
    """Run all seeds of a data set and direction; keep one JSON for each, and the pooled one."""
    cell = Cell.load(args, dataset, direction)
    source, target = direction.split(":")
    shared = {
        "dataset": dataset,
        "source": source,
        "target": target,
        "pairs": args.pairs,
        "held_out": args.held_out,
    }
    name, every = f"{dataset}.{source}.{target}", []
    for seed in args.seeds:
        scores, notes = run_seed(args, cell, seed)
        write(args.results, "lab19", f"{name}.{seed}", {**shared, "seed": seed}, notes)
        every.append(scores)
        said = {
            key: round(one["agreement@10"], 3) for key, one in notes["means"]["coverage"].items()
        }
        print(dataset, direction, "seed", seed, "agreement@10:", said, flush=True)
    pooled = pool(every)
    result = {
        "queries": len(cell.asked),
        "hard_queries": int(cell.hard_queries.sum()),
        "documents": len(cell.target),
        "hard_documents": int(cell.hard_documents.sum()),
        "native": mean_values(native_gains(cell)),
        "values": values(pooled),
        "ratio": ratios(pooled, cell),
        "below_best": below_best(pooled),
        "moves": moves(pooled),
    }
    write(args.results, "lab19", f"{name}.pooled", {**shared, "seeds": args.seeds}, result)


def run_seed(args: argparse.Namespace, cell: Cell, seed: int) -> tuple[Scores, dict[str, Any]]:
    """Fit and measure every map on every choice of pairs."""
    order = np.random.default_rng(seed).permutation(len(cell.source))
    held = np.sort(order[: args.held_out])
    pool_rows = np.sort(order[args.held_out :][cell.free[order[args.held_out :]]])
    native = Native(cell.collection[held], cell.collection, own_rows=held)
    scores: Scores = {}
    anchors, seconds = {}, {}
    for choice in CHOICES:
        pairs = choose(cell, pool_rows, choice, n=args.pairs, seed=seed)
        anchors[choice] = describe(pairs, cell)
        for method in METHODS:
            start = time.perf_counter()
            fitted = fit(compose_for(pairs, method), pairs, np.arange(len(pairs)))
            seconds[method] = seconds.get(method, 0.0) + time.perf_counter() - start
            scores[choice, method] = measure(fitted, cell, native, held)
    means = nested({key: mean_values(one) for key, one in scores.items()})
    times = {method: rounded(total / len(CHOICES)) for method, total in seconds.items()}
    return scores, {"anchors": anchors, "means": means, "fit_seconds": times}


def choose(cell: Cell, pool_rows: np.ndarray, choice: str, *, n: int, seed: int) -> Pairs:
    """Choose the pairs to fit on; only the choice differs, the documents to choose from do not."""
    strategy = CHOICES[choice]
    rows = pool_rows
    if strategy is None:
        rows = pool_rows[np.argsort(-cell.closeness[pool_rows], kind="stable")[:n]]
    pairs = Pairs.from_rows(cell.source, cell.target, rows, rows)
    return pairs if strategy is None else pairs.sample(n, strategy, seed)


def describe(pairs: Pairs, cell: Cell) -> dict[str, Any]:
    """Say how the pairs lie in the source documents, and how many are next to a hard negative."""
    side = pairs.coverage(cell.source, cell.target).source
    return {
        "covered": rounded(side.covered),
        "hard_pairs": rounded(side.hard_pairs),
        "empty_clusters": side.empty_clusters,
        "clusters": len(side.cluster_rows),
    }


def hard(native: Native) -> np.ndarray:
    """Return where the best native answer hardly beats the next."""
    margins = (native.found.scores[:, 0] - native.found.scores[:, 1]).astype(np.float64)
    low, high = hard_range(margins)
    return (margins > low) & (margins <= high)


def measure(fitted: Compose, cell: Cell, native: Native, held: np.ndarray) -> dict[str, np.ndarray]:
    """Measure a map on the held-out documents and on the labelled queries."""
    moved = None
    if fitted.lands_in != "target":  # both sides move: search the collection where they meet
        moved = fitted.transform_target(cell.collection)
    rows = view(fitted, cell.source.matrix()[held], native, moved)
    asked = view(fitted, cell.asked.matrix(), cell.native, moved)
    of_rows = {
        "cos_to_target": cos_to_target(rows.mapped, rows.target),
        f"nbr_overlap@{K}": neighbors_kept(rows, K),
        "rank_corr": neighbor_order(rows),
        "hit@1": own_found(rows, 1),
        "hard_negative_margin": margin(rows),
    }
    of_queries = {
        f"agreement@{K}": answers_kept(asked, K),
        "agreement@1": answers_kept(asked, 1),
        f"nDCG@{K}": cell.gains(asked.found.rows[:, :K]),
    }
    found = {name: spread(one, held, len(cell.target)) for name, one in of_rows.items()}
    return with_hard(found, cell.hard_documents) | with_hard(of_queries, cell.hard_queries)


def view(fitted: Compose, rows: np.ndarray, native: Native, moved: np.ndarray | None) -> View:
    target = None if moved is None else fitted.transform_target(native.target)
    return View(fitted.transform(rows), native, target=target, collection=moved, depth=K)


def spread(values: np.ndarray, rows: np.ndarray, n: int) -> np.ndarray:
    """Put values at their documents' places, so that seeds can be averaged; NaN elsewhere."""
    out = np.full(n, np.nan)
    out[rows] = values
    return out


def with_hard(found: dict[str, np.ndarray], subset: np.ndarray) -> dict[str, np.ndarray]:
    """Add the values of the hard ones alone."""
    return found | {
        f"{name}, hard": np.where(subset, found[name], np.nan)
        for name in ALSO_HARD
        if name in found
    }


def pool(every: list[Scores]) -> Scores:
    """Average each query and document over the seeds that have a value for it."""
    return {
        key: {name: mean_of([scores[key][name] for scores in every]) for name in every[0][key]}
        for key in every[0]
    }


def mean_of(runs: list[np.ndarray]) -> np.ndarray:
    stack = np.stack(runs)
    there = ~np.isnan(stack)
    sums, counts = np.where(there, stack, 0.0).sum(axis=0), there.sum(axis=0)
    return np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)


def mean_values(one: dict[str, np.ndarray]) -> dict[str, float]:
    return {name: rounded(np.nanmean(each)) for name, each in one.items()}


def values(pooled: Scores) -> dict[str, Any]:
    """Return mean, low and high of every measure; one set of draws for all of a measure."""
    out: dict[tuple[str, str], dict[str, list[float]]] = {key: {} for key in pooled}
    for name in next(iter(pooled.values())):
        columns = np.stack([one[name] for one in pooled.values()], axis=1)
        for key, bounds in zip(pooled, intervals(columns), strict=True):
            out[key][name] = triple(np.nanmean(pooled[key][name]), *bounds)
    return nested(out)


def native_gains(cell: Cell) -> dict[str, np.ndarray]:
    """Return nDCG@10 of queries that the target's own model encoded: the oracle."""
    found = cell.gains(cell.native.found.rows[:, :K])
    return with_hard({f"nDCG@{K}": found}, cell.hard_queries)


def ratios(pooled: Scores, cell: Cell) -> dict[str, Any]:
    """Return nDCG@10 over that of native queries, overall and for hard queries."""
    own = native_gains(cell)
    return nested(
        {
            key: {name: triple(*ratio(one[name], native)) for name, native in own.items()}
            for key, one in pooled.items()
        }
    )


def below_best(pooled: Scores) -> dict[str, Any]:
    """Return by how much each map stays below the best one fitted on the same pairs."""
    out: dict[str, Any] = {}
    for choice, name in product(CHOICES, COMPARED):
        found = {method: pooled[choice, method][name] for method in METHODS}
        best = max(found, key=lambda method: float(np.nanmean(found[method])))
        below = {method: triple(*paired_difference(found[best], found[method])) for method in found}
        out.setdefault(choice, {})[name] = {"best": best, **below}
    return out


def moves(pooled: Scores) -> dict[str, Any]:
    """Return what each map gains when other pairs are chosen."""
    return {
        f"{old} to {new}": {
            method: {
                name: triple(
                    *paired_difference(pooled[new, method][name], pooled[old, method][name])
                )
                for name in COMPARED
            }
            for method in METHODS
        }
        for old, new in MOVES
    }


def nested(flat: dict[tuple[str, str], Any]) -> dict[str, dict[str, Any]]:
    out: dict[str, dict[str, Any]] = {}
    for (choice, method), value in flat.items():
        out.setdefault(choice, {})[method] = value
    return out


def triple(*numbers: float) -> list[float]:
    return [rounded(number) for number in numbers]


def rounded(number: float) -> float:
    return round(float(number), 4)


if __name__ == "__main__":
    main()
