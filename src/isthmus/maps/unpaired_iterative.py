"""Iterated Procrustes between two clouds, without a single pair.

A first guess from the shapes of the clouds (``start``), then pseudo-pairs: mutual nearest
neighbours by CSLS, Procrustes on them, neighbours again, with more directions from round to round,
until the pairs stay the same.

When to use it: no pairs, and many objects that are in both clouds: mutual neighbours are then pairs
indeed. Where few objects are shared, `MiniVec2Vec` averages neighbours instead. Look at
``confidence_``: it is near 0 where nothing was found.
Shapes: (n, dim_source) and (m, dim_target) to (n, dim_target).
References: M. Artetxe, G. Labaka, E. Agirre (2018) for self-learning from an unsupervised start;
S. Umeyama (1988) for the spectral start; G. Lample et al. (2018) for CSLS.
"""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

import numpy as np

from isthmus._types import FloatArray
from isthmus.errors import UnknownNameError
from isthmus.maps._refinement import grow, settle
from isthmus.maps._starts import Anchors, gaussian, spectral
from isthmus.maps._unpaired import UnpairedMap

__all__ = ["UnpairedIterative"]

StartName = Literal["gaussian", "spectral"]

TRIES = 8
"""Starts in one attempt, of which the best match is grown."""

SPECTRAL_TRIES = 100
"""Turns of the eigenvectors that are improved, per clustering."""


class UnpairedIterative(UnpairedMap):
    """A rotation between two clouds, by mutual neighbours and Procrustes in turn.

    Parameters
    ----------
    start : {"spectral", "gaussian"}, default "spectral"
        ``spectral``: k-means centroids matched by the eigenvectors of their similarities, then by
        swaps. ``gaussian``: principal axes matched in the order of their variance, with signs by
        the third moment; cheap, and enough only where both clouds have nearly the same spectrum.
    n_clusters : int, default 30
        Centroids on each side, for the spectral start.
    attempts : int, default 16
        At most.
    rounds : int, default 20
        Rounds of mutual neighbours in all directions, at most.
    tolerance : float, default 0.01
        Share of new pairs in a round that stops them.
    sample : int, default 10,000
        Rows of each cloud that are looked at, at most.
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
    >>> UnpairedIterative(n_clusters=12).fit(cloud, turned).reliable
    True
    """

    name: ClassVar[str] = "unpaired_iterative"

    def __init__(
        self,
        *,
        start: StartName = "spectral",
        n_clusters: int = 30,
        attempts: int = 16,
        rounds: int = 20,
        tolerance: float = 0.01,
        sample: int = 10_000,
        seed: int = 0,
    ) -> None:
        self.start = start
        self.n_clusters = n_clusters
        self.attempts = attempts
        self.rounds = rounds
        self.tolerance = tolerance
        self.sample = sample
        self.seed = seed

    def _start(self, source: FloatArray, target: FloatArray, rng: np.random.Generator) -> Anchors:
        if self.start == "gaussian":
            return gaussian(source, target)
        tries = (
            spectral(source, target, count=self.n_clusters, restarts=SPECTRAL_TRIES, rng=rng)
            for _ in range(TRIES)
        )
        return max(tries, key=lambda found: found.objective)

    def _grow(self, source: FloatArray, target: FloatArray, anchors: Anchors) -> FloatArray:
        return grow(source, target, anchors)

    def _refine(
        self, source: FloatArray, target: FloatArray, rotation: FloatArray
    ) -> tuple[FloatArray, int]:
        return settle(source, target, rotation, rounds=self.rounds, tolerance=self.tolerance)

    def _check_params(self) -> None:
        super()._check_params()
        if self.start not in get_args(StartName):
            raise UnknownNameError.of("start", str(self.start), get_args(StartName))
