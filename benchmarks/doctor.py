"""What the doctor finds: mixed spaces, and no alarm where there is one; canaries; drift.

    python benchmarks/doctor.py all --data ../shared/data

Seeds 0 to 9 are reported; the limits were set on seeds from 100.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from common import arguments, read, write
from doctor_data import MIXTURES, Cell, Loader, mixed, unmixed
from doctor_drift import canaries, drift
from doctor_ideas import ideas

from isthmus.evaluate.mixture import find_mixture

SHARES = (0.02, 0.05, 0.2, 0.5)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument(
        "part", choices=("all", "mixtures", "unmixed", "ideas", "canaries", "drift")
    )
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)
    parser.set_defaults(seeds=list(range(10)))
    args = parser.parse_args()
    load = Loader(args.data)
    parts = {
        "mixtures": mixtures,
        "unmixed": alarms,
        "ideas": ideas,
        "canaries": canaries,
        "drift": drift,
    }
    for name, run in parts.items():
        if args.part in ("all", name):
            run(args, load)
    for record in read(args.results, "doctor"):
        print(record["parameters"]["part"], record["parameters"]["name"], record["result"])


def mixtures(args: argparse.Namespace, load: Loader) -> None:
    """Measure every mixture in every draw."""
    for name, (first, second, how) in MIXTURES.items():
        for share in args.shares:
            cells = [
                measured(mixed(load(*first), load(*second), share, how, seed), seed)
                for seed in args.seeds
            ]
            keep(args, "mixtures", f"{share:.0%} {name}", {"draws": cells, "share": share})


def alarms(args: argparse.Namespace, load: Loader) -> None:
    """Look for a second space where there is one only; one draw of everything."""
    for seed in args.seeds[:1]:
        for cell in unmixed(load, seed):
            keep(args, "unmixed", f"{cell.name}, {seed}", measured(cell, seed))


def measured(cell: Cell, seed: int) -> dict:
    """Return the verdict, the share, and how well the rows are told apart."""
    from sklearn.metrics import roc_auc_score

    start = time.perf_counter()
    found = find_mixture(cell.vectors, seed=seed)
    told = {**found.to_dict(), "dim": cell.vectors.shape[1]}
    told["seconds"] = round(time.perf_counter() - start, 2)
    if cell.foreign.any():
        energy, posterior = found.energy, found.posterior
        told["true_share"] = float(cell.foreign.mean())
        # at one half either part may be called the foreign one
        auc = [roc_auc_score(cell.foreign, scores) for scores in (energy, posterior)]
        even = 0.45 < cell.foreign.mean() < 0.55
        told["auc"], told["auc_posterior"] = [max(x, 1 - x) if even else x for x in auc]
        told["auc_first_component"] = first_component(cell)
        wrong = float(((posterior > 0.5) != cell.foreign).mean())
        told["errors"] = min(wrong, 1 - wrong) if even else wrong
        truth = cell.foreign if told["errors"] == wrong else ~cell.foreign
        told["calibration"] = calibration(posterior, truth)
    return {
        name: round(value, 5) if isinstance(value, float) else value
        for name, value in told.items()
        if name != "reason"
    }


def first_component(cell: Cell) -> float:
    """Return the AUC of the first principal component alone, whichever end is foreign."""
    from sklearn.metrics import roc_auc_score

    centred = cell.vectors - cell.vectors.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    found = roc_auc_score(cell.foreign, centred @ axes[:, -1])
    return float(max(found, 1 - found))


def calibration(posterior: np.ndarray, foreign: np.ndarray) -> float:
    """Return the expected calibration error in ten equal bins."""
    bins = np.minimum((posterior * 10).astype(int), 9)
    return float(
        sum(
            abs(posterior[bins == one].mean() - foreign[bins == one].mean()) * (bins == one).mean()
            for one in np.unique(bins)
        )
    )


def keep(args: argparse.Namespace, part: str, name: str, result: dict) -> None:
    parameters = {"part": part, "name": name, "seeds": args.seeds}
    safe = "".join(letter if letter.isalnum() or letter in "-." else "_" for letter in name)
    write(args.results, "doctor", f"{part}.{safe}", parameters, result)
    print(part, name, brief(result), flush=True)


def brief(result: dict) -> str:
    if "gap" in result:
        return str({name: (min(some), max(some)) for name, some in result.items() if name != "gap"})
    draws = result.get("draws", [result])
    if "drift" in result or "kinds" in result:
        return " ".join(f"{k} {v}" for k, v in result.items() if k != "p_values")
    shown = (
        "verdict",
        "contrast",
        "share",
        "outliers",
        "smallest_share",
        "auc",
        "errors",
        "seconds",
    )
    return " | ".join(" ".join(str(one[key]) for key in shown if key in one) for one in draws)


if __name__ == "__main__":
    main()
