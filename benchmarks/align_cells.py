"""What the benchmarks of alignment share: splits, one fitted map, recall both ways.

A split cuts objects that are known on both sides into test pairs, anchor pairs and a pool. The
pool's source rows and target rows are of different objects, unless hidden pairs are asked for: then
a share of the source rows has its partner among the target rows, which no map is told.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import common
import numpy as np
from link_measure import Kept

import isthmus
from isthmus import Space, VectorSet
from isthmus._linalg import normalise
from isthmus.bridge.selection import compose_between
from isthmus.maps import MAPS, Compose, Normalise
from isthmus.neighbors import top_k

TASK = "align"
MOLECULES = ("chebi20", "molecules.minimol", "texts.minilm-l6")
DOCUMENTS = ("climate-fever", "docs.minilm-l6", "docs.mpnet")
N_ANCHORS, N_TEST = 500, 400
KS = (1, 5, 10)
PLANNED = ("anchordot", "anchor_cca")
"""Maps with a plan: gamma and eta are chosen once for both."""
TUNED: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "ridge, tuned": ("ridge", {"penalty": 0.3}),
    "cca, tuned": ("cca", {"shrinkage": 0.5, "power": 1.0}),
}
"""Rivals at their best: by recall on seeds 100 and 101 of the molecules, where a ridge chooses its
penalty by distance; rows are brought to length one again after centring."""
WITHOUT_PLAN = "anchor_cca, no plan"
"""What that map has from the unpaired rows beside the plan: the covariances of both sides."""
AS_PUBLISHED = "anchordot, random start"
"""The paper's schedule: 200 epochs from drawn weights."""
VARIANTS = {
    **TUNED,
    AS_PUBLISHED: ("anchordot", {"start": "random"}),
    WITHOUT_PLAN: ("anchor_cca", {"gamma": 1.0, "eta": 0.02, "plan_pairs": 1e-6}),
}

Sides = tuple[np.ndarray, np.ndarray]


def known(method: str) -> bool:
    """Tell whether this version has a map."""
    return method in VARIANTS or method in MAPS


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with what every benchmark of alignment takes."""
    parser = common.arguments(description)
    parser.add_argument("--methods", nargs="+", help="maps; by default those of the study")
    parser.add_argument("--again", action="store_true", help="run cells that are done, too")
    parser.add_argument("--epochs", type=int, help="of maps that are trained: to try a command")
    parser.add_argument("--jobs", type=int, default=1, help="studies that run side by side")
    return parser


@dataclass(frozen=True, eq=False)
class Split:
    """Rows of both sides: anchor pairs, unpaired rows, test pairs.

    ``key`` tells splits of one data set apart.
    """

    spaces: tuple[Space, Space]
    anchors: Sides
    pools: Sides
    test: Sides
    key: Mapping[str, Any]

    @property
    def means(self) -> Sides:
        """Return the mean of the rows of each side that a map may see."""
        left, right = (
            np.concatenate(both).astype(np.float64).mean(axis=0)
            for both in zip(self.anchors, self.pools, strict=True)
        )
        return left, right

    def centred(self) -> Split:
        """Return the split less these means, at length one, as maps with a plan see it."""
        sides = {}
        for name in ("anchors", "pools", "test"):
            both = zip(getattr(self, name), self.means, strict=True)
            sides[name] = tuple(normalise((rows - mean).astype(np.float32)) for rows, mean in both)
        return replace(self, **sides)


@lru_cache(maxsize=4)
def both_sides(data: Path, dataset: str, source: str, target: str) -> tuple[VectorSet, VectorSet]:
    """Load the objects that are known on both sides, in one order."""
    left, right = (VectorSet.load(data / dataset / f"{name}.npz") for name in (source, target))
    rows = right.find(left.ids)
    return left.select(np.flatnonzero(rows >= 0)), right.select(rows[rows >= 0])


def split_of(
    data: Path,
    names: tuple[str, str, str],
    *,
    seed: int,
    anchors: int | None = None,
    reserved: int = 0,
    pool: int | None = None,
    overlap: float = 0.0,
) -> Split:
    """Cut the objects of a data set at random.

    Parameters
    ----------
    anchors : int, optional
        Anchor pairs: the first ones of those ``reserved``.
    pool : int, optional
        Unpaired rows of each side. Default: half of what is left.
    overlap : float
        Share of these rows whose partner is in the other side's pool.
    """
    count = N_ANCHORS if anchors is None else anchors
    sides = both_sides(data, *names)
    order = np.random.default_rng(seed).permutation(len(sides[0]))
    test, paired = order[:N_TEST], order[N_TEST : N_TEST + count]
    rest = order[N_TEST + max(count, reserved) :]
    m = len(rest) // 2 if pool is None else pool
    shared = round(overlap * m)
    if 2 * m - shared > len(rest) or not len(paired):
        raise SystemExit(f"{names[0]} has too few objects: {m} rows a side of {len(rest)}")
    other = np.concatenate([rest[:shared], rest[m : 2 * m - shared]])
    pools = rest[:m], np.random.default_rng([seed, 1]).permutation(other)
    left, right = (side.matrix() for side in sides)
    key = {"dataset": names[0], "anchors": count, "reserved": reserved, "pool": m,
           "overlap": overlap, "seed": seed}  # fmt: skip
    return Split(
        (sides[0].space, sides[1].space),
        (left[paired], right[paired]),
        (left[pools[0]], right[pools[1]]),
        (left[test], right[test]),
        key,
    )


@dataclass(frozen=True)
class Fit:
    """A fitted map, the seconds that it took, also of processors, and what it says about itself."""

    map: Compose
    seconds: float
    processor_seconds: float
    notes: Mapping[str, Any]

    def carry(self, split: Split, rows: Sides) -> Sides:
        """Return rows of both sides where they are compared; a target space is centred."""
        left, right = self.map.transform(rows[0]), self.map.transform_target(rows[1])
        if self.map.lands_in == "target":
            mean = split.means[1].astype(np.float32)
            return left - mean, right - mean
        return left, right


def fit(split: Split, method: str, *, seed: int, **params: Any) -> Fit:
    """Fit a map with its default steps; every map is given the unpaired rows."""
    name, told = VARIANTS.get(method, (method, {}))
    takes = MAPS[name]().get_params()
    given = {"seed": seed, **told, **params}
    made = compose_between(
        split.spaces, name, **{each: value for each, value in given.items() if each in takes}
    )
    if method in TUNED:
        made.source_steps, made.target_steps = (
            [*steps, Normalise()] for steps in (made.source_steps, made.target_steps)
        )
    start, used = time.perf_counter(), time.process_time()
    X, Y = split.anchors if made.paired else split.pools
    more = {"unpaired_source": split.pools[0], "unpaired_target": split.pools[1]}
    made.fit(X, Y, **(more if made.paired else {}))
    seconds, used = time.perf_counter() - start, time.process_time() - used
    inner = made.inner_
    notes = {
        name: float(getattr(inner, f"{name}_"))
        for name in ("gamma", "eta", "penalty", "confidence")
        if np.ndim(getattr(inner, f"{name}_", None)) == 0 and hasattr(inner, f"{name}_")
    }
    return Fit(made, seconds, used, notes)


def profile(args: argparse.Namespace, study: str, split: Split, seed: int) -> dict[str, float]:
    """Return gamma and eta for a split, chosen by held-out anchors; kept with their seconds."""
    kept = Kept(args.results, TASK, f"profile.{study}", {"study": "profile"}, tuple(split.key))
    for cell in kept.cells():
        if all(cell[name] == value for name, value in split.key.items()):
            return cell
    found = fit(split, "anchor_cca", seed=seed)
    cell = {**split.key, **found.notes, "seconds": found.seconds}
    kept.add(cell)
    return cell


def fit_for(args: argparse.Namespace, study: str, split: Split, method: str, seed: int) -> Fit:
    """Fit a map of a study: those with a plan have gamma and eta chosen before, and once."""
    params: dict[str, Any] = {}
    if args.epochs is not None:
        params["epochs"] = args.epochs
    name, told = VARIANTS.get(method, (method, {}))
    if name in PLANNED and "gamma" not in told:
        chosen = profile(args, study, split, seed)
        params |= {"gamma": chosen["gamma"], "eta": chosen["eta"]}
    return fit(split, method, seed=seed, **params)


def measure(
    args: argparse.Namespace, study: str, split: Split, method: str, seed: int
) -> dict[str, Any]:
    """Fit a map and return its recall on the test pairs."""
    found = fit_for(args, study, split, method, seed)
    return {
        **recalls(*found.carry(split, split.test)),
        "seconds": found.seconds,
        **found.notes,
    }


def recalls(source: np.ndarray, target: np.ndarray) -> dict[str, list[float]]:
    """Return recall at 1, 5 and 10 of row i for row i by cosine, there and back."""
    k = max(KS)
    return {
        "there": ranked(top_k(source, target, k=k).rows),
        "back": ranked(top_k(target, source, k=k).rows),
    }


def ranked(rows: np.ndarray) -> list[float]:
    """Return recall of row i for row i in rankings, at 1, 5 and 10."""
    hit = rows == np.arange(len(rows))[:, None]
    return [float(hit[:, :k].any(axis=1).mean()) for k in KS]


@lru_cache(maxsize=1)
def code_commit() -> str:
    """Return the commit of the library that runs, or nothing outside a repository."""
    folder = Path(isthmus.__file__).parent
    asked = ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
