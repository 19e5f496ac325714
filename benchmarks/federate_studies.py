"""Studies of federation: how many stores, skew, depth, shared documents, pairs, maps, graphs.

    python benchmarks/federate_studies.py all --data ../shared/data
    python benchmarks/federate_studies.py stores skew --data ../shared/data --seeds 0

- stores: N = 2 to 6, of two models over disjoint shards and of three (HVMap, figure 8).
- skew: all relevant documents of a query in one store, or half of them in each (section 5.4.6).
- depth: K = 10, 50, 100 candidates and answers (figure 13b).
- overlap: two stores share 0 to 90 % of their documents; copies are merged by id.
- sizes: 200 to 15,000 pairs of stackoverflow and both corpora; ridge beside networks of 1, 2 and 4
  layers (figure 12a): neighbours kept on 2,000 pairs held out, mapped queries, federation.
- composition: which pairs (figure 12b): own, other, titles, mixed; of one number and all of them.
- similarity: overlap of the spaces' own neighbours beside Hit@1 and Hit@5 of held-out documents,
  and the gain over an untrained map (figure 11).
- graphs: stores that search by HNSW at five settings: quality and time of search (figure 13a).

One JSON per study and data set in benchmarks/results/federate_studies/; cells that are done are
skipped. Objectives (table 3) and weights (figure 10) come from federate.py.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from federate_cells import (
    DATASETS,
    DEFAULT_MLP,
    MAPS_ONLY,
    MODELS,
    TITLE_MODELS,
    TITLES,
    WITH_COMMON,
    Judge,
    Maps,
    Problem,
    Stage,
    documents,
    fit_map,
    judgements,
    parser_of,
    stage,
)
from link_measure import Kept

from isthmus import Pairs, VectorSet
from isthmus.federate.fusion import Agg
from isthmus.maps import Compose
from isthmus.neighbors import Hnsw, top_k
from isthmus.spaces import Qrels
from isthmus.stores import Found, Store, open_store

TASK = "federate_studies"
PAIRS = tuple((hub, other) for hub in MODELS for other in MODELS if hub != other)
HUB, OTHER_MODEL = TITLE_MODELS
THIRD = "para-l3"
SIZES = (200, 500, 1_000, 2_000, 5_000, 15_000)
HELD_OUT = 2_000
NETWORKS = tuple(f"mlp:depth={depth}" for depth in (1, 2, 4))
GRAPHS = ((8, 64), (16, 128), (32, 256), (48, 384), (64, 512))
OVERLAPS = (0.0, 0.1, 0.5, 0.9)
DEPTHS = (10, 50, 100)
SAME_NUMBER = 1_000

Sides = tuple[np.ndarray, np.ndarray]
Cell = tuple[dict[str, Any], dict[str, Any]]
"""What tells a cell apart, and what was measured."""


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("studies", nargs="+", choices=[*STUDIES, "all"])
    parser.add_argument("--maps", nargs="+", default=["ridge", DEFAULT_MLP])
    args = parser.parse_args()
    studies = STUDIES if "all" in args.studies else args.studies
    for study in studies:
        for dataset in args.datasets:
            for seed in args.seeds:
                run(args, study, dataset, seed)


def run(args: argparse.Namespace, study: str, dataset: str, seed: int) -> None:
    """Run a study on one split unless it is done."""
    make, keys = STUDIES[study]
    parameters = {"study": study, "dataset": dataset}
    kept = Kept(args.results, TASK, f"{study}.{dataset}", parameters, keys)
    if not args.again and any(cell["seed"] == seed for cell in kept.cells()):
        return
    problem = Problem(args.data, dataset, seed=seed, queries=args.queries)
    for key, measured in list(make(args, problem, Maps(args.keep_maps))):
        kept.add({**key, "seed": seed, **measured})
        print(study, dataset, seed, key, measured, flush=True)


def stores(args: argparse.Namespace, problem: Problem, maps: Maps) -> Iterator[Cell]:
    """Cut the rest in N shards whose models take turns."""
    rest = problem.split()[1]
    for used in ((HUB, OTHER_MODEL), (HUB, OTHER_MODEL, THIRD)):
        for n in range(len(used), 7):
            models = [used[place % len(used)] for place in range(n)]
            with stage(problem, HUB, models, np.array_split(rest, n)) as ready:
                found = beside_agg(ready, args.maps, maps)
            yield {"models": ",".join(used), "N": n}, found


def beside_agg(ready: Stage, specs: Sequence[str], maps: Maps) -> dict[str, float]:
    """Return mean nDCG@10 of score by every map, of agg with all encoders, and of mig."""
    judge = Judge.of(ready.problem, ready.hub)
    pool = ready.pool(None, maps, Agg(), native=True)
    found = judge.of_scores(pool, {"agg, all encoders": Agg().score(pool)})
    for spec in specs:
        found |= ready.scored(spec, maps, judge)
    for model in dict.fromkeys([ready.hub, *ready.models]):
        found[f"mig {model}"] = judge.of_ids(ready.integrated(model, {}))
    return {name: float(np.nanmean(values[0])) for name, values in found.items()}


def skew(args: argparse.Namespace, problem: Problem, maps: Maps) -> Iterator[Cell]:
    """Place relevant documents; others fill the stores to equal sizes."""
    rest = problem.split()[1]
    ids = problem.documents(HUB).ids
    groups = relevant_groups(judgements(problem.data, problem.dataset), ids)
    relevant = rest[groups[rest] >= 0]
    others = rest[groups[rest] < 0]
    rng = np.random.default_rng([problem.seed, 1])
    halves = rng.permutation(len(relevant)) % 2
    for layout, place in {
        "balanced": halves,
        "each query's in one store": by_group(groups[relevant], rng),
        "all in the hub's store": np.zeros(len(relevant), int),
        "all in the other store": np.ones(len(relevant), int),
    }.items():
        first = relevant[place == 0]
        fill = min(len(others), max(0, len(rest) // 2 - len(first)))
        rows = [
            np.concatenate([first, others[:fill]]),
            np.concatenate([relevant[place == 1], others[fill:]]),
        ]
        for other in (OTHER_MODEL, THIRD):
            with stage(problem, HUB, [HUB, other], rows) as ready:
                found = beside_agg(ready, args.maps, maps)
            yield {"layout": layout, "models": f"{HUB},{other}"}, found


def relevant_groups(qrels: Qrels, ids: np.ndarray) -> np.ndarray:
    """Return per document the first of the documents that queries join it with; -1 for none."""
    places = {str(one): place for place, one in enumerate(ids)}
    group = np.full(len(ids), -1)
    wanted: dict[str, list[int]] = {}
    for query, document, grade in zip(
        qrels.query_ids, qrels.document_ids, qrels.scores, strict=True
    ):
        if grade > 0 and str(document) in places:
            wanted.setdefault(str(query), []).append(places[str(document)])
    for rows in wanted.values():
        joined = {int(one) for one in group[rows]} - {-1}
        members = [*rows, *np.flatnonzero(np.isin(group, list(joined)))]
        group[members] = min(members)
    return group


def by_group(groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Place whole groups in store 0 or 1, the largest first, where there is less so far."""
    names, counts = np.unique(groups, return_counts=True)
    order = rng.permutation(len(names))
    order = order[np.argsort(-counts[order], kind="stable")]
    held, place = [0, 0], {}
    for one in order:
        place[names[one]] = int(held[1] < held[0])
        held[place[names[one]]] += counts[one]
    return np.array([place[one] for one in groups])


def depth(args: argparse.Namespace, problem: Problem, maps: Maps) -> Iterator[Cell]:
    """As many candidates per store as answers."""
    rest = problem.split()[1]
    for hub, other in PAIRS:
        with stage(problem, hub, [hub, other], np.array_split(rest, 2)) as ready:
            judge = Judge.of(problem, hub)
            for k in DEPTHS:
                pool = ready.pool(None, maps, Agg(), native=True, depth=k)
                found = judge.of_scores(pool, {"agg, all encoders": Agg().score(pool)}, k=k)
                for spec in args.maps:
                    found |= ready.scored(spec, maps, judge, k=k)
                for model in (hub, other):
                    found[f"mig {model}"] = judge.of_ids(ready.integrated(model, {}, k=k), k=k)
                means = {name: float(np.nanmean(one[0])) for name, one in found.items()}
                yield {"models": f"{hub},{other}", "K": k}, means


def overlap(args: argparse.Namespace, problem: Problem, maps: Maps) -> Iterator[Cell]:
    """Let a share of the documents lie in both stores; the same document is merged by its id."""
    rest = problem.split()[1]
    for share in OVERLAPS:
        both, alone = np.split(rest, [round(share * len(rest))])
        rows = [np.concatenate([both, half]) for half in np.array_split(alone, 2)]
        with stage(problem, HUB, [HUB, OTHER_MODEL], rows) as ready:
            judge = Judge.of(problem, HUB)
            found = {}
            for name, spec, fusion in (
                ("agg, all encoders", None, Agg()),
                *((spec, spec, MAPS_ONLY) for spec in args.maps),
                *((f"{spec}, common", spec, WITH_COMMON) for spec in args.maps),
            ):
                federation, asked, native = ready.federation(spec, maps, fusion, dedup="id")
                ranked = federation.search(asked, native_queries=None if spec else native)
                found[name] = judge.of_ids(ranked.ids)
            for model in (HUB, OTHER_MODEL):
                found[f"mig {model}"] = judge.of_ids(ready.integrated(model, {}))
        means = {name: float(np.nanmean(one[0])) for name, one in found.items()}
        yield {"overlap": share}, means


def sizes(args: argparse.Namespace, problem: Problem, maps: Maps) -> Iterator[Cell]:
    """Fit on more and more pairs of all three data sets."""
    del args
    here, there = pooled(problem)
    order = np.random.default_rng([problem.seed, 2]).permutation(len(here))
    held, order = order[:HELD_OUT], order[HELD_OUT:]
    kept_out = here[held], there[held]
    with stage(problem, HUB, [HUB, OTHER_MODEL], np.array_split(problem.split()[1], 2)) as ready:
        for size in SIZES:
            rows = order[: min(size, len(order))]
            for spec in ("procrustes", "ridge", *NETWORKS):
                found = measure_size(ready, maps, spec, (here[rows], there[rows]), kept_out)
                yield {"pairs": size, "map": spec}, found


def pooled(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of stackoverflow and of the auxiliary documents of both corpora."""
    each = [
        *(replace(problem, dataset=name).pairs(HUB, OTHER_MODEL) for name in DATASETS),
        replace(problem, auxiliary=TITLES).pairs(HUB, OTHER_MODEL),
    ]
    return (
        np.concatenate([one.source for one in each]),
        np.concatenate([one.target for one in each]),
    )


def measure_size(
    ready: Stage, maps: Maps, spec: str, pairs: Sides, held: Sides
) -> dict[str, float]:
    """Return what a map keeps of held-out neighbours, of mapped queries and of federation."""
    start = time.perf_counter()
    out, back = fit_both(maps, ready.problem, spec, pairs)
    seconds = time.perf_counter() - start
    judge = Judge.of(ready.problem, HUB)
    pool = ready.pool(spec, maps, MAPS_ONLY)
    rest = np.concatenate(ready.rows)
    into = ready.problem.documents(OTHER_MODEL)
    asked = out.transform(ready.problem.asked(HUB).matrix())
    mapped = into.ids[rest][top_k(asked, into.matrix()[rest], k=10).rows]
    return {
        "neighbours kept": kept_neighbours(*held, out),
        "neighbours kept back": kept_neighbours(*held[::-1], back),
        "mapped queries": float(np.nanmean(judge.of_ids(mapped)[0])),
        "score": float(np.nanmean(judge.of_scores(pool, {"": MAPS_ONLY.score(pool)})[""][0])),
        "fit seconds": seconds,
    }


def fit_both(maps: Maps, problem: Problem, spec: str, pairs: Sides) -> tuple[Compose, Compose]:
    """Fit a map each way, and let a federation use both under this name."""
    out, back = (
        fit_map(spec, *each, seed=problem.seed, collection=problem.documents(target).matrix())
        for each, target in ((pairs, OTHER_MODEL), (pairs[::-1], HUB))
    )
    maps.put(spec, problem, HUB, OTHER_MODEL, out)
    maps.put(spec, problem, OTHER_MODEL, HUB, back)
    return out, back


def kept_neighbours(source: np.ndarray, target: np.ndarray, fitted: Compose, k: int = 10) -> float:
    """Return the share of the k nearest other targets that a mapped row finds."""
    found = top_k(fitted.transform(source), target, k=k + 1).rows
    native = top_k(target, target, k=k + 1).rows
    own = np.arange(len(source))[:, None]
    shares = [
        len(set(one[one != i][:k]) & set(two[two != i][:k])) / k
        for i, one, two in zip(own[:, 0], found, native, strict=True)
    ]
    return float(np.mean(shares))


def composition(args: argparse.Namespace, problem: Problem, maps: Maps) -> Iterator[Cell]:
    """Train on different texts, of one number or all there are."""
    own, other, titles = (
        sides(replace(problem, auxiliary=name).pairs(HUB, OTHER_MODEL))
        for name in (problem.auxiliary, "other", TITLES)
    )
    rng = np.random.default_rng([problem.seed, 3])
    few = {
        f"{name}, {SAME_NUMBER:,}": taken(one, rng.permutation(len(one[0]))[:SAME_NUMBER])
        for name, one in (("own", own), ("other", other), ("titles", titles))
    }
    half = np.arange(SAME_NUMBER // 2)
    chosen = few | {
        f"own and titles, {SAME_NUMBER:,}": stacked(
            [taken(few[f"{name}, {SAME_NUMBER:,}"], half) for name in ("own", "titles")]
        ),
        "titles, all": titles,
        "other and titles, all": stacked([other, titles]),
        "own, other and titles, all": stacked([own, other, titles]),
    }
    judge = Judge.of(problem, HUB)
    with stage(problem, HUB, [HUB, OTHER_MODEL], np.array_split(problem.split()[1], 2)) as ready:
        for name, pairs in chosen.items():
            for spec in args.maps:
                fit_both(maps, problem, spec, pairs)
                pool = ready.pool(spec, maps, MAPS_ONLY)
                scored = judge.of_scores(pool, {"": MAPS_ONLY.score(pool)})[""]
                measured = {"pairs": len(pairs[0]), "score": float(np.nanmean(scored[0]))}
                yield {"trained on": name, "map": spec}, measured


def sides(pairs: Pairs) -> Sides:
    return pairs.source, pairs.target


def taken(both: Sides, rows: np.ndarray) -> Sides:
    return both[0][rows], both[1][rows]


def stacked(each: Sequence[Sides]) -> Sides:
    return np.concatenate([one for one, _ in each]), np.concatenate([two for _, two in each])


def similarity(args: argparse.Namespace, problem: Problem, maps: Maps) -> Iterator[Cell]:
    """Measure how alike two spaces are, how well documents are found, and what a map gains."""
    rest = problem.split()[1]
    native = {
        name: top_k(rows, rows, k=11).rows[:, 1:]
        for name in MODELS
        for rows in [problem.documents(name).matrix()[rest]]
    }
    for hub, other in PAIRS:
        both = (
            len(set(one) & set(two)) / 10
            for one, two in zip(native[hub], native[other], strict=True)
        )
        with stage(problem, hub, [hub, other], np.array_split(rest, 2)) as ready:
            judge = Judge.of(problem, hub)
            found: dict[str, Any] = {"NNO@10": float(np.mean(list(both)))}
            for spec in ("dummy", *args.maps):
                out = ready.bridges(spec, maps, other)[0]
                mapped = out.transform(problem.documents(hub).matrix()[rest])
                near = top_k(mapped, problem.documents(other).matrix()[rest], k=5).rows
                hit = near == np.arange(len(rest))[:, None]
                pool = ready.pool(spec, maps, MAPS_ONLY)
                scored = judge.of_scores(pool, {"": MAPS_ONLY.score(pool)})[""]
                found[spec] = {
                    "Hit@1": float(hit[:, 0].mean()),
                    "Hit@5": float(hit.any(axis=1).mean()),
                    "score": float(np.nanmean(scored[0])),
                }
        yield {"models": f"{hub},{other}"}, found


class GraphStore:
    """A store that searches by HNSW what another holds, and counts the seconds."""

    def __init__(self, inner: Store, held: VectorSet, graph: tuple[int, int]) -> None:
        self._inner, self._ids, self.seconds = inner, held.ids, 0.0
        inner.upsert(held)
        self._index = Hnsw(held.matrix(), connections=graph[0], build_effort=graph[1])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def search(self, queries: np.ndarray, *, k: int) -> Found:
        """Search the graph; see `Store.search`."""
        start = time.perf_counter()
        found = self._index.search(queries, k=k)
        self.seconds += time.perf_counter() - start
        scores = found.scores.astype(np.float32)
        return Found(self._ids[found.rows], scores, scores)


def graphs(args: argparse.Namespace, problem: Problem, maps: Maps) -> Iterator[Cell]:
    """Search two stores by graphs, and one of all documents; titles make them larger."""
    halves = np.array_split(problem.split()[1], 2)
    models = (HUB, OTHER_MODEL)
    for graph in GRAPHS:
        with TemporaryDirectory() as folder:
            stores = []
            for place, (model, rows) in enumerate(zip(models, halves, strict=True)):
                held = with_titles(problem, model, rows, place)
                url = f"sqlite:///{folder}/{place}.db?collection=docs"
                stores.append(GraphStore(open_store(url, space=held.space), held, graph))
            ready = Stage(problem, HUB, models, halves, stores)
            found = searched_by_graphs(ready, args.maps, maps)
            for store in stores:
                store.close()
        for model in models:
            found[f"mig {model}"] = migrated_graph(problem, model, halves, graph)
        yield {"connections": graph[0], "effort": graph[1]}, found


def with_titles(problem: Problem, model: str, rows: np.ndarray, *halves: int) -> VectorSet:
    """Return documents of a problem, and one half or both of the titles."""
    held = problem.documents(model).select(rows)
    titles = documents(problem.data, TITLES, model)
    chosen = np.concatenate([np.array_split(np.arange(len(titles)), 2)[half] for half in halves])
    ids = np.concatenate([held.ids, np.char.add("title ", titles.ids[chosen])])
    return VectorSet(ids, np.concatenate([held.matrix(), titles.matrix()[chosen]]), held.space)


def searched_by_graphs(ready: Stage, specs: Sequence[str], maps: Maps) -> dict[str, Any]:
    judge = Judge.of(ready.problem, ready.hub)
    found = {}
    for spec in specs:
        for store in ready.stores:
            store.seconds = 0.0
        pool = ready.pool(spec, maps, MAPS_ONLY)
        seconds = [store.seconds for store in ready.stores]
        scored = judge.of_scores(pool, {"": MAPS_ONLY.score(pool)})[""][0]
        found[spec] = {"nDCG@10": float(np.nanmean(scored)), "search seconds": sum(seconds)}
    return found


def migrated_graph(
    problem: Problem, model: str, halves: Sequence[np.ndarray], graph: tuple[int, int]
) -> dict[str, float]:
    held = with_titles(problem, model, np.concatenate(halves), 0, 1)
    index = Hnsw(held.matrix(), connections=graph[0], build_effort=graph[1])
    asked = problem.asked(model).matrix()
    start = time.perf_counter()
    rows = index.search(asked, k=10).rows
    seconds = time.perf_counter() - start
    scored = Judge.of(problem, model).of_ids(held.ids[rows])[0]
    return {"nDCG@10": float(np.nanmean(scored)), "search seconds": seconds}


STUDIES: Mapping[str, tuple[Callable[..., Iterator[Cell]], tuple[str, ...]]] = {
    "stores": (stores, ("models", "N", "seed")),
    "skew": (skew, ("layout", "models", "seed")),
    "depth": (depth, ("models", "K", "seed")),
    "overlap": (overlap, ("overlap", "seed")),
    "sizes": (sizes, ("pairs", "map", "seed")),
    "composition": (composition, ("trained on", "map", "seed")),
    "similarity": (similarity, ("models", "seed")),
    "graphs": (graphs, ("connections", "effort", "seed")),
}


if __name__ == "__main__":
    main()
