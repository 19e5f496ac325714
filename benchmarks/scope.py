"""How well the scope tells rows of another domain from new rows of the same one.

    python benchmarks/scope.py --data DIR

For every data set, model and number of pairs: the share of new rows of that data set, of its own
queries, and of every other data set, that lies outside the scope learned on the pairs. The rule in
use (`Scope`) stands beside the ones that were turned down: the nearest pair, the nearest of 64
centroids, the Mahalanobis distance with a shrunken covariance; all with the same radius, the .97
quantile of rows left out in five folds. Writes one JSON into benchmarks/results/scope/.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from common import arguments, write

from isthmus import VectorSet
from isthmus._linalg import normalise
from isthmus.bridge.scope import INSIDE, Scope

MODELS = ("minilm-l6", "mpnet", "para-l3")
PAIRS = (100, 200, 500, 1_000, 2_000)
Score = Callable[[np.ndarray], np.ndarray]


def main() -> None:
    options = arguments(__doc__).parse_args()
    cells = []
    for model in MODELS:
        sets = load_all(options.data, model)
        for home in (name for name in sets if not name.endswith("queries")):
            for n in PAIRS:
                for seed in options.seeds:
                    cells += measure(sets, model=model, home=home, n=n, seed=seed)
    parameters = {"models": MODELS, "pairs": PAIRS, "seeds": options.seeds}
    write(options.results, "scope", "scope", parameters, {"cells": cells})
    print_table(cells)


def load_all(data: Path, model: str) -> dict[str, np.ndarray]:
    """Return unit rows of every set of vectors of a model."""
    files = sorted(data.glob(f"*/*.{model}.npz"))
    named = {f"{file.parent.name} {file.name.split('.')[0]}": file for file in files}
    return {
        name.removesuffix(" docs").removesuffix(" texts"): normalise(VectorSet.load(file).matrix())
        for name, file in named.items()
    }


def measure(
    sets: dict[str, np.ndarray], *, model: str, home: str, n: int, seed: int
) -> list[dict[str, object]]:
    """Learn each rule on n rows of one set and look at all the others."""
    order = np.random.default_rng(seed).permutation(len(sets[home]))
    pairs, new = sets[home][order[:n]], sets[home][order[n:]]
    asked = {**sets, home: new}
    rules = {"principal residual": Scope.fit(pairs, unit_rows=True, kind="passage").outside}
    if seed == 0:  # the rules that were turned down are slow, and one seed says enough
        rules |= {name: with_radius(score, pairs) for name, score in TURNED_DOWN.items()}
    return [
        {
            "model": model,
            "home": home,
            "pairs": n,
            "seed": seed,
            "rule": rule,
            "outside": {name: float(outside(rows).mean()) for name, rows in asked.items()},
        }
        for rule, outside in rules.items()
    ]


def with_radius(fit: Callable[[np.ndarray], Score], pairs: np.ndarray) -> Score:
    """Give a score the radius that `Scope` takes: a quantile of rows left out in five folds."""
    n = len(pairs)
    fold = np.arange(n) % 5
    left = np.empty(n)
    for number in range(5):
        left[fold == number] = fit(pairs[fold != number])(pairs[fold == number])
    radius = np.sort(left)[min(n, int(np.ceil(INSIDE * (n + 1)))) - 1]
    score = fit(pairs)
    return lambda rows: score(rows) > radius


def nearest_pair(pairs: np.ndarray) -> Score:
    return lambda rows: 1 - (rows @ pairs.T).max(axis=1)


def nearest_centroid(pairs: np.ndarray) -> Score:
    from sklearn.cluster import KMeans

    count = min(64, len(pairs) // 4)
    centroids = normalise(KMeans(count, n_init=1, random_state=0).fit(pairs).cluster_centers_)
    return lambda rows: 1 - (rows @ centroids.T).max(axis=1)


def mahalanobis(pairs: np.ndarray) -> Score:
    from sklearn.covariance import ledoit_wolf

    center, (covariance, _) = pairs.mean(axis=0), ledoit_wolf(pairs)
    root = np.linalg.cholesky(np.linalg.inv(covariance))
    return lambda rows: np.square((rows - center) @ root).sum(axis=1)


TURNED_DOWN = {
    "nearest pair": nearest_pair,
    "nearest of 64 centroids": nearest_centroid,
    "Mahalanobis": mahalanobis,
}


def print_table(cells: list[dict[str, object]]) -> None:
    """Print, for each rule and number of pairs, the shares outside over all cells."""
    print(f"{'rule':<24} pairs  same set (range)         own queries  other sets (least)")
    for rule in ("principal residual", *TURNED_DOWN):
        for n in PAIRS:
            chosen = [cell for cell in cells if cell["rule"] == rule and cell["pairs"] == n]
            same = [cell["outside"][cell["home"]] for cell in chosen]
            asked = [
                share
                for cell in chosen
                for name, share in cell["outside"].items()
                if name == f"{cell['home']} queries"
            ]
            others = [
                share
                for cell in chosen
                for name, share in cell["outside"].items()
                if not name.startswith(str(cell["home"]))
            ]
            print(
                f"{rule:<24} {n:>5}  {np.mean(same):.3f} ({min(same):.3f} to {max(same):.3f})"
                f"   {np.mean(asked):.3f}        {np.mean(others):.3f} ({min(others):.3f})"
            )


if __name__ == "__main__":
    main()
