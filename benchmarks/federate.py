"""Stores of two or three models searched as one: every map, every way to rank, every rival.

    python benchmarks/federate.py --data ../shared/data
    python benchmarks/federate.py --data ../shared/data --auxiliary in:0.4 --maps ridge mlp

The rest of the documents lies in equal parts in the stores. Queries are encoded by the hub's model
only, except in rows that say "all encoders". Per hub, map and split one cell is kept: the mean of
every row, and of some rows the values per query. Cells that are done are skipped.

Rows: ``score`` by the maps alone (and with a share w of the native similarity), ``score, common``
with the common space too, ``one_directional`` into each space, ``agg``, ``rrf``, ``combmnz``,
``cca``; ``ec``, all vectors carried into the hub's space; and, in the cells of the map "none",
``mig``, all documents natively in one space.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np
from federate_cells import (
    MAPS_ONLY,
    MODELS,
    RIVAL_MAPS,
    TITLE_MODELS,
    TITLES,
    WITH_COMMON,
    Judge,
    Maps,
    Problem,
    Stage,
    known_maps,
    pack,
    parser_of,
    stage,
    summary,
)
from link_measure import Kept

from isthmus.federate.fusion import Agg, Cca, CombMNZ, OneDirectional, Rrf, Score

TASK = "federate"
AUXILIARY = ("in:0.2", "other", TITLES)
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
NONE = "none"
BLIND = {"agg": Agg(), "rrf": Rrf(), "combmnz": CombMNZ()}
PER_QUERY = ("score", "score, common")
"""Rows of a map that are kept per query; of rivals and of no map, more."""


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--auxiliary", nargs="+", default=list(AUXILIARY))
    parser.add_argument("--maps", nargs="+", default=known_maps())
    parser.add_argument(
        "--models", nargs="+", default=list(settings()), help="the hub's first, between commas"
    )
    args = parser.parse_args()
    for seed in args.seeds:
        for dataset in args.datasets:
            for auxiliary in args.auxiliary:
                problem = Problem(args.data, dataset, auxiliary, seed, args.queries)
                maps = Maps(args.keep_maps)  # forgotten when the pairs change
                for models in args.models:
                    if auxiliary != TITLES or not set(models.split(",")) - set(TITLE_MODELS):
                        run(args, problem, models.split(","), maps)


def settings() -> Iterator[str]:
    """Yield pairs in both directions, then triples with each hub."""
    for hub in MODELS:
        yield from (f"{hub},{other}" for other in MODELS if other != hub)
    for hub in MODELS:
        yield ",".join([hub, *(other for other in MODELS if other != hub)])


def run(args: object, problem: Problem, models: Sequence[str], maps: Maps) -> None:
    """Measure the maps whose cells are not done."""
    name = f"{problem.dataset}.{'.'.join(models)}.{problem.auxiliary.replace(':', '')}"
    parameters = {
        "dataset": problem.dataset, "models": list(models), "auxiliary": problem.auxiliary,
    }  # fmt: skip
    kept = Kept(args.results, TASK, name, parameters, ("map", "seed"))
    wanted = [
        spec
        for spec in [NONE, *args.maps]
        if args.again or not kept.has(map=spec, seed=problem.seed)
    ]
    if not wanted:
        return
    with stage(
        problem, models[0], models, np.array_split(problem.split()[1], len(models))
    ) as ready:
        for spec in wanted:
            start = time.perf_counter()
            found, more = without_maps(ready, maps) if spec == NONE else with_map(ready, spec, maps)
            cell = {"map": spec, "seed": problem.seed, **more, **summary(found)}
            cell["seconds"] = time.perf_counter() - start
            if problem.queries is None:
                more_rows = {NONE: set(found)} | {key: {"agg", "ec"} for key in RIVAL_MAPS}
                rows = more_rows.get(spec, set()) | set(PER_QUERY)
                cell["per_query"] = {
                    row: [pack(one) for one in values]
                    for row, values in found.items()
                    if row in rows
                }
            kept.add(cell)
            means = {row: round(value, 4) for row, value in cell["nDCG@10"].items()}
            print(name, spec, problem.seed, means, flush=True)


def without_maps(ready: Stage, maps: Maps) -> tuple[dict[str, np.ndarray], dict]:
    """Return what needs no map: lists of natively asked stores, a common space, migration."""
    judge = Judge.of(ready.problem, ready.hub)
    pool = ready.pool(None, maps, Cca(), native=True)
    scores = {name: fusion.score(pool) for name, fusion in (BLIND | {"cca": Cca()}).items()}
    found = {f"{name}, all encoders": one for name, one in judge.of_scores(pool, scores).items()}
    for model in dict.fromkeys(ready.models):
        found[f"mig {model}"] = judge.of_ids(ready.integrated(model, {}))
    return found, {}


def with_map(ready: Stage, spec: str, maps: Maps) -> tuple[dict[str, np.ndarray], dict]:
    """Return every way to rank candidates through one map, and the map's own rivals."""
    start = time.perf_counter()
    both_ways = {model: ready.bridges(spec, maps, model) for model in ready.spokes}
    more = {
        "chosen": {model: [one.method for one in both] for model, both in both_ways.items()},
        "fit_seconds": time.perf_counter() - start,
    }
    judge = Judge.of(ready.problem, ready.hub)
    pool = ready.pool(spec, maps, WITH_COMMON)
    ways = BLIND | {"score": MAPS_ONLY, "score, common": WITH_COMMON, "cca": Cca()}
    ways |= {f"score w={share}": Score(weight=share, common=0.0) for share in SHARES}
    places = [ready.hub, *ready.spokes]
    ways |= {f"one_directional {m}": OneDirectional(space=p) for p, m in enumerate(places)}
    found = judge.of_scores(pool, {name: way.score(pool) for name, way in ways.items()})
    native = ready.pool(spec, maps, MAPS_ONLY, native=True)
    found |= judge.of_scores(native, {"score, all encoders": MAPS_ONLY.score(native)})
    found["ec"] = judge.of_ids(
        ready.integrated(ready.hub, {m: back for m, (_, back) in both_ways.items()})
    )
    return found, more


if __name__ == "__main__":
    main()
