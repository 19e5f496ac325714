"""Write the archive of a format version: one bridge per map, with the numbers that it gives.

    python tests/archives/write_archive.py v1 [MAP ...]

Once per format version, and once more before the release of a new map. What is there already is
never written again: it stands for the files that users have.
"""

import sys
from pathlib import Path

import numpy as np

from isthmus import Bridge, Pairs, Space, VectorSet
from isthmus.maps import MAPS, names

SOURCE = Space(model="archived-source", revision="1", dim=6, normalized=True)
TARGET = Space(model="archived-target", revision="1", dim=8, normalized=True)


def planted() -> tuple[VectorSet, VectorSet]:
    """Return 60 objects in two spaces that share a subspace."""
    rng = np.random.default_rng(20)
    shared = rng.normal(size=(60, 4))
    sides = [
        shared @ rng.normal(size=(4, dim)) + 0.2 * rng.normal(size=(60, dim)) for dim in (6, 8)
    ]
    ids = [f"doc{row}" for row in range(60)]
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in sides]
    return VectorSet(ids, unit[0], SOURCE), VectorSet(ids, unit[1], TARGET)


PARAMS = {
    "mlp_small": {"hidden": (8, 4)},
    "drift_adapter": {"hidden": 8, "learning_rate": 1e-2},
    "mlp": {"width": 8, "learning_rate": 1e-2, "objective": "mse"},
    "embedding_converter": {"width": 8},
    "contrastive": {"width": 8, "epochs": 10},
    "sotalign": {"width": 8, "epochs": 10, "batch": 10},
    "anchordot": {"width": 8, "epochs": 10, "warm_up": 5},
    "vec2vec": {"width": 8, "steps": 10},
}
"""Learned maps are made smaller, to keep the archive small, and quick to leave their start."""


def fit(source: VectorSet, target: VectorSet, method: str) -> Bridge:
    """Fit a bridge on 40 pairs, beside the other rows, or on two clouds of all rows.

    Learned maps that take no other rows hold some out, and get all 60.
    """
    params = PARAMS.get(method, {})
    known = {name: value for name, value in params.items() if name in MAPS[method]().get_params()}
    if not MAPS[method].paired:
        sides = {"unpaired_source": source, "unpaired_target": target}
        return Bridge.fit(None, method=method, params=known, **sides)
    rows, sides = np.arange(60 if params else 40), {}
    if MAPS[method].sees_unpaired:
        rows, rest = np.arange(40), np.arange(40, 60)
        sides = {"unpaired_source": source.select(rest), "unpaired_target": target.select(rest)}
    pairs = Pairs.from_rows(source, target, rows, rows)
    return Bridge.fit(pairs, method=method, params=known, **sides)


def numbers(bridge: Bridge, source: VectorSet, target: VectorSet) -> dict[str, np.ndarray]:
    """Return what a bridge gives for all rows: what an archived one must give for ever."""
    return {
        "mapped": bridge.transform(source.vectors),
        "target": bridge.transform_target(target.vectors),
        "outside": bridge.outside(source.vectors),
        "calibrated": bridge.calibration.to_native(np.linspace(-1, 1, 41)),
        "hash": np.array(bridge.hash),
    }


def main(version: str, *methods: str) -> None:
    """Write the bridges that the archive of this version does not have yet."""
    source, target = planted()
    for method in methods or names():
        folder = Path(__file__).parent / version / method
        if folder.exists():
            continue
        bridge = fit(source, target, method)
        folder.mkdir(parents=True)
        bridge.save(folder / "bridge")
        np.savez(folder / "numbers.npz", **numbers(bridge, source, target))


if __name__ == "__main__":
    main(*sys.argv[1:])
