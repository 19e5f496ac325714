"""The studies of alignment; align.py says what they are and runs them.

Each takes the arguments, a map's name (nothing where it compares no maps) and a seed, and yields
what tells a cell apart with the work that measures it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import align_cells as cells
import numpy as np
from align_cells import Split, fit, fit_for, measure, profile, ranked, recalls, split_of
from align_same import AUTO, SAME_METHODS, same_modality

from isthmus.evaluate.hubness import hubness_both_ways
from isthmus.transport import (
    AnchorProfile,
    Cost,
    anchor_cost,
    bridge_cost,
    gromov,
    icp,
    kpg_rl_cost,
    match,
    sinkhorn,
    wasserstein_procrustes,
)

GAMMA, ETA = 1.0, 0.02
"""Where nothing is chosen: of the trials that set the numbers to reach."""
ANCHORS, RESERVED = (50, 100, 200, 500, 1_000, 2_000), 2_000
POOLS = (100, 300, 1_000, 2_000, 2_850)
OVERLAPS, OVERLAP_POOL = (0.0, 0.5, 1.0), 2_000
RULES = ("nearest", "inverted_softmax", "csls", "sinkhorn")
ALPHAS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
GAMMAS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
SIZES = ((100, 2_000), (500, 500), (500, 2_000), (500, 2_600), (1_000, 2_000))
OTHER = ("scifact", *cells.DOCUMENTS[1:])
LEARNED = ("anchor_cca", "anchordot", "sotalign")
SWEPT = (*LEARNED, "contrastive", "ridge", *cells.TUNED)
RETRIEVAL = (
    "anchor_cca", cells.WITHOUT_PLAN, "anchordot", cells.AS_PUBLISHED, "ridge", "cca",
    *cells.TUNED, "procrustes", "procrustes_ridge", "low_rank", "relative", "asif", "csa",
    "contrastive", "sotalign", "sue", "mlp", "barycentric",
)  # fmt: skip

Cell = tuple[dict[str, Any], Callable[[], dict[str, Any]]]
Make = Callable[[argparse.Namespace, str, int], Iterator[Cell]]


def retrieval(args: argparse.Namespace, method: str, seed: int) -> Iterator[Cell]:
    """Every map on the same split."""
    split = split_of(args.data, cells.MOLECULES, seed=seed)
    yield {}, lambda: measure(args, "retrieval", split, method, seed)


def anchors(args: argparse.Namespace, method: str, seed: int) -> Iterator[Cell]:
    """More and more anchor pairs; pool and test pairs stay."""
    for count in ANCHORS:
        split = split_of(args.data, cells.MOLECULES, seed=seed, anchors=count, reserved=RESERVED)
        yield {"anchors": count}, lambda s=split: measure(args, "anchors", s, method, seed)


def pool(args: argparse.Namespace, method: str, seed: int) -> Iterator[Cell]:
    """More and more unpaired rows; anchor pairs and test pairs stay."""
    for count in POOLS:
        split = split_of(args.data, cells.MOLECULES, seed=seed, pool=count)
        yield {"pool": count}, lambda s=split: measure(args, "pool", s, method, seed)


def overlap(args: argparse.Namespace, method: str, seed: int) -> Iterator[Cell]:
    """A share of the unpaired rows has its partner on the other side, unknown to the map."""
    for share in OVERLAPS:
        split = split_of(
            args.data, cells.MOLECULES, seed=seed, pool=OVERLAP_POOL, overlap=share
        )  # fmt: skip
        yield {"overlap": share}, lambda s=split: measure(args, "overlap", s, method, seed)


def hubness(args: argparse.Namespace, _: str, seed: int) -> Iterator[Cell]:
    """Four rules on the anchor cost of the test pairs, of rows centred (as the maps do) or not."""
    for centred in (True, False):
        split = placed(split_of(args.data, cells.MOLECULES, seed=seed), centred=centred)
        cost = anchor_cost(*split.test, *split.anchors, gamma=GAMMA)
        for rule in RULES:
            key = {"centred": centred, "rule": rule}
            yield key, lambda c=cost, r=rule: matched(c, r, seed)


def placed(split: Split, *, centred: bool) -> Split:
    return split.centred() if centred else split


def matched(cost: Cost, rule: str, seed: int) -> dict[str, Any]:
    """Return recall and skewness both ways of one rule on one cost."""
    start = time.perf_counter()
    found = match(cost, rule, k=10, eta=ETA, seed=seed)
    return {
        "there": ranked(found.target_rows),
        "back": ranked(found.source_rows),
        "skewness": list(hubness_both_ways(found.target_rows, found.source_rows)),
        "seconds": time.perf_counter() - start,
    }


COSTS: dict[str, Callable[..., Cost]] = {
    "anchor": lambda *sides: anchor_cost(*sides, gamma=GAMMA),
    "bridge": bridge_cost,
    "kpg_rl": kpg_rl_cost,
}


def costs(args: argparse.Namespace, _: str, seed: int) -> Iterator[Cell]:
    """Three costs in one coupling: of the test pairs, and of them within the pools."""
    split = split_of(args.data, cells.MOLECULES, seed=seed).centred()
    for name, cost in COSTS.items():

        def work(cost: Callable[..., Cost] = cost) -> dict[str, Any]:
            start = time.perf_counter()
            found = matched(cost(*split.test, *split.anchors), "sinkhorn", seed)
            return {
                **found,
                "teacher": taught(split, cost, seed=seed),
                "seconds": time.perf_counter() - start,
            }

        yield {"cost": name}, work


def taught(
    split: Split, cost: Callable[..., Cost], *, seed: int, eta: float = ETA
) -> dict[str, Any]:
    """Couple the pools with the test pairs among them; recall of these among themselves."""
    both = [np.concatenate(two) for two in zip(split.test, split.pools, strict=True)]
    plan = sinkhorn(cost(*both, *split.anchors), eta=eta, seed=seed)
    test = np.arange(len(split.test[0]))
    logs = plan.log_block(test, test)
    return {
        name: ranked(np.argsort(-side, axis=1, kind="stable")[:, : max(cells.KS)])
        for name, side in (("there", logs), ("back", logs.T))
    }


def teacher(args: argparse.Namespace, _: str, seed: int) -> Iterator[Cell]:
    """The coupling itself, which needs the test rows, beside retrieval's students, which do not."""
    split = split_of(args.data, cells.MOLECULES, seed=seed)

    def work(*, chosen: bool) -> dict[str, Any]:
        gamma, eta = GAMMA, ETA
        if chosen:
            found = profile(args, "retrieval", split, seed)
            gamma, eta = found["gamma"], found["eta"]
        start = time.perf_counter()
        recall = taught(
            split.centred(), lambda *sides: anchor_cost(*sides, gamma=gamma), seed=seed, eta=eta
        )
        return {**recall, "gamma": gamma, "eta": eta, "seconds": time.perf_counter() - start}

    for chosen in (True, False):
        yield {"chosen": chosen}, lambda c=chosen: work(chosen=c)


def fgw(args: argparse.Namespace, _: str, seed: int) -> Iterator[Cell]:
    """The anchor cost with more or less of a structural term, on the test pairs."""
    split = split_of(args.data, cells.MOLECULES, seed=seed).centred()
    cost = anchor_cost(*split.test, *split.anchors, gamma=GAMMA)
    for alpha in ALPHAS:
        yield {"alpha": alpha}, lambda a=alpha: coupled(*split.test, cost=cost, alpha=a)


def coupled(source: np.ndarray, target: np.ndarray, **how: Any) -> dict[str, Any]:
    """Return recall of rows by a Gromov-Wasserstein plan."""
    start = time.perf_counter()
    plan = gromov(source, target, eta=ETA, **how)
    k = max(cells.KS)
    return {
        "there": ranked(plan.nearest(k)[0]),
        "back": ranked(plan.nearest(k, side="target")[0]),
        "settled": plan.converged,
        "seconds": time.perf_counter() - start,
    }


def participation(args: argparse.Namespace, _: str, seed: int) -> Iterator[Cell]:
    """The participation ratio of the profiles of unpaired rows, by gamma."""
    for count in (cells.N_ANCHORS, RESERVED):
        drawn = split_of(args.data, cells.MOLECULES, seed=seed, anchors=count, reserved=RESERVED)
        for centred in (True, False):
            split = placed(drawn, centred=centred)

            def work(split: Split = split) -> dict[str, Any]:
                return {
                    name: [
                        directions(AnchorProfile.of(split.anchors[side], gamma=gamma), rows)
                        for gamma in GAMMAS
                    ]
                    for side, (name, rows) in enumerate(
                        zip(("source", "target"), split.pools, strict=True)
                    )
                }

            yield {"anchors": count, "centred": centred}, work


def directions(profile: AnchorProfile, rows: np.ndarray) -> float:
    """Return (sum of eigenvalues)^2 / sum of squares of the second moments of profiles."""
    profiles = profile.transform(rows).astype(np.float64)
    moments = profiles.T @ profiles
    return float(np.trace(moments) ** 2 / (moments**2).sum())


GROMOV = "gromov"
CLOUDS = {"wasserstein_procrustes": wasserstein_procrustes, "icp": icp}


def zero_pairs(args: argparse.Namespace, method: str, seed: int) -> Iterator[Cell]:
    """Without a pair: two modalities, and two text models where such methods are at home.

    Gromov-Wasserstein has no other rows than the test pairs'; all others learn from the pools.
    """
    for names in (cells.MOLECULES, cells.DOCUMENTS):

        def work(names: tuple[str, str, str] = names) -> dict[str, Any]:
            split = split_of(args.data, names, seed=seed)
            start = time.perf_counter()
            if method == GROMOV:
                return coupled(*split.centred().test)
            notes = {}
            if method in CLOUDS:
                found = CLOUDS[method](*split.pools, seed=seed)
                sides = found.transform(split.test[0]), found.transform_target(split.test[1])
            else:
                made = fit(split, method, seed=seed)
                sides, notes = made.carry(split, split.test), dict(made.notes)
            return {**recalls(*sides), **notes, "seconds": time.perf_counter() - start}

        yield {"dataset": names[0]}, work


def time_of(args: argparse.Namespace, method: str, seed: int) -> Iterator[Cell]:
    """Seconds of a fit with gamma and eta given; and with the search for them where there is one.

    The search is that of `anchor_cca`, which has nothing slow beside it.
    """
    for count, rows in SIZES:
        split = split_of(
            args.data, cells.MOLECULES, seed=seed, anchors=count, reserved=RESERVED // 2, pool=rows
        )
        given = {"gamma": GAMMA, "eta": ETA}
        if args.epochs is not None:
            given["epochs"] = args.epochs

        def work(split: Split = split, given: dict[str, Any] = given) -> dict[str, Any]:
            made = fit(split, method, seed=seed, **given)
            found = {"seconds": made.seconds, "processor seconds": made.processor_seconds}
            if method == "anchor_cca":
                found["with search"] = fit(split, method, seed=seed).processor_seconds
            return found

        yield {"anchors": count, "pool": rows}, work


def transfer(args: argparse.Namespace, method: str, seed: int) -> Iterator[Cell]:
    """Documents of two text models: fitted on one data set, tested on it and on another."""

    def work() -> dict[str, Any]:
        split = split_of(args.data, cells.DOCUMENTS, seed=seed)
        far = split_of(args.data, OTHER, seed=seed)
        made = fit_for(args, "transfer", split, method, seed)
        whole = tuple(side.matrix() for side in cells.both_sides(args.data, *OTHER))
        return {
            "own": recalls(*made.carry(split, split.test)),
            "other": recalls(*made.carry(split, far.test)),
            "other, all documents": recalls(*made.carry(split, whole)),
            "seconds": made.seconds,
            **made.notes,
        }

    yield {}, work


class Study(NamedTuple):
    """What makes the cells, what tells them apart, and the methods: maps, and ``others``."""

    make: Make
    keys: tuple[str, ...]
    methods: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


STUDIES: dict[str, Study] = {
    "retrieval": Study(retrieval, (), RETRIEVAL),
    "hubness": Study(hubness, ("centred", "rule")),
    "costs": Study(costs, ("cost",)),
    "overlap": Study(overlap, ("overlap",), LEARNED),
    "same_modality": Study(same_modality, ("pairs", "overlap"), SAME_METHODS, AUTO),
    "anchors": Study(anchors, ("anchors",), (*LEARNED, "contrastive", "ridge", *cells.TUNED)),
    "time": Study(time_of, ("anchors", "pool"), LEARNED),
    "participation": Study(participation, ("anchors", "centred")),
    "teacher": Study(teacher, ("chosen",)),
    "zero_pairs": Study(
        zero_pairs,
        ("dataset",),
        (GROMOV, *CLOUDS, "mini_vec2vec", "unpaired_iterative"),
        (GROMOV, *CLOUDS),
    ),
    "fgw": Study(fgw, ("alpha",)),
    "pool": Study(pool, ("pool",), LEARNED),
    "transfer": Study(transfer, (), (*LEARNED, "ridge", *cells.TUNED)),
}
