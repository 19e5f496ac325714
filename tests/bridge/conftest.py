"""Two planted spaces that share a subspace, and bridges between them, fitted once."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from isthmus.bridge import Bridge
from isthmus.spaces import Pairs, Space, VectorSet

SOURCE = Space(model="old", revision="1", dim=12, normalized=True)
TARGET = Space(model="new", revision="2", dim=16, normalized=True)


@dataclass(frozen=True)
class Planted:
    """Vectors of the same objects in both spaces: the first 120 are the pairs."""

    source: VectorSet
    target: VectorSet

    @property
    def pairs(self) -> Pairs:
        """The first 120 objects."""
        rows = np.arange(120)
        return Pairs.from_rows(self.source, self.target, rows, rows)


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(scope="session")
def planted() -> Planted:
    rng = np.random.default_rng(7)
    shared = rng.normal(size=(400, 8))
    X = shared @ rng.normal(size=(8, 12)) + 0.2 * rng.normal(size=(400, 12))
    Y = shared @ rng.normal(size=(8, 16)) + 0.2 * rng.normal(size=(400, 16))
    ids = [f"doc{row}" for row in range(400)]
    return Planted(VectorSet(ids, unit(X), SOURCE), VectorSet(ids, unit(Y), TARGET))


@pytest.fixture(scope="session")
def fitted(planted) -> Callable[[str], Bridge]:
    """Return bridges by the name of their map, each fitted once."""
    known: dict[str, Bridge] = {}

    def get(method: str) -> Bridge:
        if method not in known:
            known[method] = Bridge.fit(planted.pairs, method=method, collection=planted.target)
        return known[method]

    return get


@pytest.fixture(scope="session")
def bridge(fitted) -> Bridge:
    return fitted("procrustes")
