"""Planted clouds that overlap in part, for the tests of growing and weighing links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from isthmus._linalg import normalise
from isthmus.link import LinkProblem, Links, MatchedRows
from isthmus.testing import planted_pair


@dataclass(frozen=True)
class Overlapping:
    """Two shuffled views of clustered objects; ``partner`` is the target row of each, or -1."""

    source: np.ndarray
    target: np.ndarray
    partner: np.ndarray
    seeds: np.ndarray

    @property
    def shared(self) -> int:
        return int(np.count_nonzero(self.partner >= 0))

    def problem(self) -> LinkProblem:
        return LinkProblem.of_rows(self.source, self.target, self.seeds)

    def hits(self, links: Links | MatchedRows) -> int:
        return int(np.count_nonzero(self.partner[links.source_rows] == links.target_rows))


def _overlapping(
    shared: int = 200,
    alone: tuple[int, int] = (50, 50),
    *,
    dims: tuple[int, int] = (24, 24),
    noise: float = 0.1,
    seeds: int = 15,
    wrong: int = 0,
    seed: int = 100,
) -> Overlapping:
    n = shared + sum(alone)
    pair = planted_pair(n, *dims, noise=noise, seed=seed)
    rng = np.random.default_rng(seed)
    of_source = rng.permutation(shared + alone[0])
    of_target = rng.permutation(np.r_[:shared, shared + alone[0] : n])
    place = np.full(n, -1)
    place[of_target] = np.arange(len(of_target))
    partner = place[of_source]
    rows = rng.permutation(np.flatnonzero(partner >= 0))[:seeds]
    targets = partner[rows]
    targets[:wrong] = np.roll(targets[:wrong], 1)  # each of them with the partner of another
    return Overlapping(
        normalise(pair.source.vectors[of_source]),
        normalise(pair.target.vectors[of_target]),
        partner,
        np.column_stack((rows, targets)),
    )


@pytest.fixture(scope="session")
def overlapping():
    """Make two clouds of planted objects: `shared` in both, `alone` in one of them each."""
    return _overlapping


@pytest.fixture(scope="session")
def unrelated():
    """Make a problem of two clustered clouds that share nothing, with seeds drawn at random."""

    def make(seed: int, *, n: int = 250, dim: int = 16, seeds: int = 15) -> LinkProblem:
        sides = [planted_pair(n, dim, dim, seed=seed + other).source.vectors for other in (0, 500)]
        rng = np.random.default_rng(seed)
        drawn = np.column_stack([rng.permutation(n)[:seeds] for _ in range(2)])
        return LinkProblem.of_rows(*sides, drawn)

    return make
