"""Mini-vec2vec: a rotation between two clouds, without a single pair.

k-means on both sides; centroids matched by a quadratic assignment of their similarities; a rotation
grown from those anchors; then, again and again, source rows paired with the mean of their nearest
target rows, and Procrustes on these pairs. Parts of the clouds are matched apart, until two
maps agree.

When to use it: no pairs at all, two text models, at least some thousand rows of the same kind of
text on each side. The clouds need not share objects. Look at ``confidence_``: it is near 0 where
nothing was found. With pairs, a few hundred of them, every paired map is better.
Shapes: (n, dim_source) and (m, dim_target) to (n, dim_target).
References: G. Dar (2025), mini-vec2vec. Unlike there: widths may differ, no number depends on the
batch, rotations stay orthogonal, directions are admitted step by step, attempts stop by a rule, and
the result says how sure it is.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from isthmus._types import FloatArray
from isthmus._validate import check_whole
from isthmus.maps._refinement import average, grow
from isthmus.maps._starts import Anchors, clusters
from isthmus.maps._unpaired import UnpairedMap

__all__ = ["MiniVec2Vec"]

TRIES = 8
"""Clusterings in one attempt, of which the best match is grown."""

LAST_NEIGHBORS = 5

ATTEMPT_ROUNDS = 8
"""Rounds of averages in one attempt."""


class MiniVec2Vec(UnpairedMap):
    """A rotation between two clouds, by matched clusters and averages of neighbours.

    Parameters
    ----------
    n_clusters : int, default 30
        Centroids on each side (the paper: 20; its code: 20 to 50).
    restarts : int, default 100
        Random assignments of centroids that swaps improve, per clustering (the paper: 30, in 30
        runs).
    neighbors : int, default 50
        Target rows in the average at first (the paper's k); 5 in the end.
    attempts : int, default 16
        At most.
    rounds : int, default 30
        Rounds of averages, at most.
    tolerance : float, default 1e-3
        Mean change of rows, as one minus the cosine, that stops them.
    sample : int, default 10,000
        Rows of each cloud that are looked at, at most (the paper's subsample); rounds of averages
        take the first 5,000 of them.
    seed : int, default 0

    Attributes
    ----------
    rotation_ : (dim_source, dim_target) float32
    scale_ : () float64
        Ratio of the clouds' spreads.
    mean_source_, mean_target_ : (dim_source,) and (dim_target,) float64
    confidence_ : () float64
        ``agreement_``; 0 where that may be chance: in fewer than 20 effective directions, without
        twice the mutual neighbours of maps that grew from random matches. Under 0.3 the map is
        worthless (``reliable``).
    agreement_ : () float64
        Share of rows, 0 to 1, that two attempts send to the same of 1,000 target rows.
    attempts_made_, rounds_made_ : () int64

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.standard_normal((12, 8)) * 3
    >>> cloud = np.concatenate([c + rng.standard_normal((40, 8)) * 0.7 for c in centres])
    >>> turned = rng.permutation(cloud @ np.linalg.qr(rng.standard_normal((8, 8)))[0])
    >>> MiniVec2Vec(n_clusters=12).fit(cloud, turned).reliable
    True
    """

    name: ClassVar[str] = "mini_vec2vec"

    def __init__(
        self,
        *,
        n_clusters: int = 30,
        restarts: int = 100,
        neighbors: int = 50,
        attempts: int = 16,
        rounds: int = 30,
        tolerance: float = 1e-3,
        sample: int = 10_000,
        seed: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.restarts = restarts
        self.neighbors = neighbors
        self.attempts = attempts
        self.rounds = rounds
        self.tolerance = tolerance
        self.sample = sample
        self.seed = seed

    def _start(self, source: FloatArray, target: FloatArray, rng: np.random.Generator) -> Anchors:
        tries = (
            clusters(source, target, count=self.n_clusters, restarts=self.restarts, rng=rng)
            for _ in range(TRIES)
        )
        return max(tries, key=lambda found: found.objective)

    def _grow(self, source: FloatArray, target: FloatArray, anchors: Anchors) -> FloatArray:
        grown = grow(source, target, anchors)
        return self._averaged(source, target, grown, min(ATTEMPT_ROUNDS, self.rounds))[0]

    def _refine(
        self, source: FloatArray, target: FloatArray, rotation: FloatArray
    ) -> tuple[FloatArray, int]:
        return self._averaged(source, target, rotation, self.rounds)

    def _averaged(
        self,
        source: FloatArray,
        target: FloatArray,
        rotation: FloatArray,
        rounds: int,
    ) -> tuple[FloatArray, int]:
        return average(
            source,
            target,
            rotation,
            neighbors=(self.neighbors, min(LAST_NEIGHBORS, self.neighbors)),
            rounds=rounds,
            tolerance=self.tolerance,
        )

    def _check_params(self) -> None:
        super()._check_params()
        check_whole(self.restarts, name="restarts", maximum=1_000_000)
        check_whole(self.neighbors, name="neighbors", maximum=1_000)
