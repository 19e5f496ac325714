"""What tells two encoders from two topics of one: statistics of the two true parts."""

from __future__ import annotations

import argparse
from itertools import combinations, permutations

import numpy as np
from doctor_data import MINILM, Loader

SIDES = (
    *(("minilm-l6", dataset, name, 0) for dataset, name in MINILM),
    ("para-l3", "scifact", "para-l3", 0),
    ("para-l3", "climate-fever", "para-l3", 0),
    ("openai-3-small", "locomo", "openai-3-small", 384),
    ("mpnet", "scifact", "mpnet", 0),
    ("mpnet", "climate-fever", "mpnet", 0),
    ("mpnet", "stackoverflow", "mpnet", 0),
    ("openai-3-small", "locomo", "openai-3-small", 768),
)
NEIGHBOR_ROWS = 1_500


def ideas(args: argparse.Namespace, load: Loader) -> None:
    from doctor import keep

    found: dict[str, dict[str, list[float]]] = {}
    for one, other in combinations(SIDES, 2):
        first, second = (load(*side[1:]) for side in (one, other))
        if first.shape[1] != second.shape[1]:
            continue
        kind = "one encoder" if one[0] == other[0] else "two encoders"
        for name, values in statistics(first, second).items():
            found.setdefault(name, {}).setdefault(kind, []).extend(values)
    for name, kinds in found.items():
        result = {kind: [round(value, 4) for value in values] for kind, values in kinds.items()}
        keep(args, "ideas", name, {**result, "gap": gap(result)})


def statistics(first: np.ndarray, second: np.ndarray) -> dict[str, list[float]]:
    """Return each statistic of two parts; those that have a direction, both ways."""
    one, other = (covariance(side) for side in (first, second))
    means = [side.mean(axis=0) for side in (first, second)]
    variances = [np.diag(side) for side in (one, other)]
    told = {
        "cosine of means": [cosine(*means)],
        "correlation of covariances": [cosine(traceless(one), traceless(other))],
        "correlation of variances": [rank_correlation(*variances)],
        "neighbours across": crossing(first, second),
    }
    for share in (0.05, 0.25, 0.5):
        name = f"energy in the emptiest {share:.0%}"
        told[name] = [energy(a, b, share) for a, b in permutations((one, other), 2)]
    return told


def covariance(rows: np.ndarray) -> np.ndarray:
    centred = (rows - rows.mean(axis=0)).astype(np.float64)
    return centred.T @ centred / len(rows)


def traceless(matrix: np.ndarray) -> np.ndarray:
    return (matrix / np.trace(matrix) - np.eye(len(matrix)) / len(matrix)).ravel()


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def rank_correlation(one: np.ndarray, other: np.ndarray) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(one, other)[0])


def energy(main: np.ndarray, other: np.ndarray, share: float) -> float:
    """Return the other part's variance in the main part's emptiest directions; 1 in a ball."""
    _, directions = np.linalg.eigh(main)
    empty = directions[:, : max(1, round(share * len(main)))]
    held = np.trace(empty.T @ other @ empty) / np.trace(other)
    return float(held * len(main) / empty.shape[1])


def crossing(first: np.ndarray, second: np.ndarray) -> list[float]:
    """Return the share of the ten nearest that are of the other part, in equal parts together."""
    from isthmus.neighbors import top_k

    count = min(NEIGHBOR_ROWS, len(first), len(second))
    rows = np.concatenate([first[:count], second[:count]])
    own = np.arange(len(rows))
    found = top_k(rows, rows, k=10, exclude=own).rows
    sides = own >= count
    across = (sides[found] != sides[:, None]).mean(axis=1)
    return [float(across[~sides].mean()), float(across[sides].mean())]


def gap(result: dict[str, list[float]]) -> float:
    """Return the distance between the two kinds: negative where they overlap."""
    one, two = result["one encoder"], result["two encoders"]
    return round(max(min(two) - max(one), min(one) - max(two)), 4)
