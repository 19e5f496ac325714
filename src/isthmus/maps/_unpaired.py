"""What all maps share that learn from two clouds without pairs.

Each attempt starts from rows drawn anew and other random numbers. Two attempts that send rows to
the same places hardly do so by chance, so rotations are attempted until two agree, and what these
still agree on when both are refined on all rows is the confidence. Its limit: in few directions,
clouds of a few well-separated groups match in one best way whatever they are. There the map must
also bring twice as many rows to each other as maps do that grew from a random match of the groups,
which asks for objects that are in both clouds.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from isthmus._linalg import affine, cross_product
from isthmus._types import FloatArray
from isthmus._validate import check_positive, check_whole
from isthmus.maps._clouds import LEAST_ROWS, Cloud, check_clouds, matching_coordinates
from isthmus.maps._refinement import NEIGHBORHOOD, nearest_by_csls, turn
from isthmus.maps._starts import Anchors, random_match
from isthmus.maps.base import Map
from isthmus.neighbors import mutual_by_csls

__all__ = ["MOST", "RELIABLE", "CloudMap", "UnpairedMap", "agreement", "compared"]

RELIABLE = 0.3
"""Confidence under which a map is worthless; see `CloudMap.reliable`."""

CLEAR = 0.5
"""Agreement from which no further attempt is made."""

COMPARED_ROWS = 1_000
"""Rows on each side that agreement and mutual neighbours are measured on."""

ATTEMPT_ROWS = 2_000
"""Rows of a side in one attempt."""

FEW_DIRECTIONS = 20
"""Effective directions (participation ratio) under which agreement may be chance. Text vectors have
38 to 73; planted clouds of 14 groups in 12 dimensions agree about nothing up to .67."""

BY_CHANCE = 5
"""Maps from random matches, of which the median counts."""

ABOVE_CHANCE = 2.0
"""Mutual neighbours, times those by chance, that a map must have in few directions: planted clouds
that share their objects have four times as many, unrelated ones up to 1.6 times."""

MOST = 10**6


class CloudMap(Map):
    """A map between two clouds, with a confidence.

    A subclass has the parameters ``attempts``, ``sample`` and ``seed``.
    """

    paired: ClassVar[bool] = False

    attempts: int
    sample: int
    seed: int

    confidence_: FloatArray
    attempts_made_: npt.NDArray[np.int64]

    @property
    def costly(self) -> bool:
        """Matching takes long."""
        return True

    @property
    def reliable(self) -> bool:
        """Whether the confidence is at least 0.3; a map under it is worthless."""
        self._check_fitted()
        return bool(self.confidence_ >= RELIABLE)

    def fit(
        self,
        X: npt.ArrayLike,
        Y: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        unpaired_source: npt.ArrayLike | None = None,
        unpaired_target: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from the clouds X (n, dim_source) and Y (m, dim_target), at least 50 rows each.

        The order of the rows says nothing, and ``unpaired_source`` and ``unpaired_target`` are
        more rows of the same clouds.

        Raises
        ------
        MissingExtraError, DivergedTrainingError
            Of maps that are trained with torch.
        ParameterError
            A parameter out of its range; weights.
        TooFewPairsError, InputError
            As :func:`isthmus.maps._clouds.check_clouds` says.
        """
        self._check_params()
        sides = check_clouds(X, Y, sample_weight, unpaired_source, unpaired_target)
        rng = np.random.default_rng(self.seed)
        source, target = (Cloud.of(side, sample=self.sample, rng=rng) for side in sides)
        self._learn(source, target, rng)
        self.n_features_in_, self.n_features_target_ = (side.shape[1] for side in sides)
        return self

    @abstractmethod
    def _learn(self, source: Cloud, target: Cloud, rng: np.random.Generator) -> None:
        """Learn all arrays."""

    def _check_params(self) -> None:
        check_whole(self.attempts, name="attempts", minimum=2, maximum=1_000)
        check_whole(self.sample, name="sample", minimum=LEAST_ROWS, maximum=MOST)
        check_whole(self.seed, name="seed", minimum=0)


class UnpairedMap(CloudMap):
    """A rotation between two clouds.

    A subclass has also the parameters ``rounds`` and ``tolerance``.
    """

    freedom: ClassVar[int] = 10
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "rotation": ("source", "target"),
        "scale": (),
        "mean_source": ("source",),
        "mean_target": ("target",),
        "confidence": (),
        "agreement": (),
        "attempts_made": (),
        "rounds_made": (),
    }

    n_clusters: int
    rounds: int
    tolerance: float

    rotation_: FloatArray
    scale_: FloatArray
    mean_source_: FloatArray
    mean_target_: FloatArray
    agreement_: FloatArray
    rounds_made_: npt.NDArray[np.int64]

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Carry source rows into the target space: (n, dim_target), float32."""
        source = self._check_source(X)
        scale = float(self.scale_)
        turned_mean = self.mean_source_ @ self.rotation_.astype(np.float64)
        return affine(source, self.rotation_, self.mean_target_ - scale * turned_mean, scale=scale)

    def _learn(self, source: Cloud, target: Cloud, rng: np.random.Generator) -> None:
        *reduced, axes_source, axes_target = matching_coordinates(source.rows, target.rows)
        found = _search(reduced[0], reduced[1], self._attempt, attempts=self.attempts, rng=rng)
        (rotation, rounds), (other, _) = (
            self._refine(source.rows, target.rows, axes_source @ each @ axes_target.T)
            for each in found.rotations
        )
        self.rotation_ = rotation.astype(np.float32)
        self.scale_ = np.asarray(target.scale / source.scale)
        self.mean_source_, self.mean_target_ = source.mean, target.mean
        self.attempts_made_, self.rounds_made_ = np.asarray(found.attempts), np.asarray(rounds)
        rows, others = compared(source.rows, target.rows)
        agreed = agreement(turn(rows, rotation), turn(rows, other), others)
        few = min(_effective_directions(side) for side in reduced) < FEW_DIRECTIONS
        chance = few and not self._above_chance(found.rotations[0], *reduced, rng=rng)
        self.agreement_ = np.asarray(agreed)
        self.confidence_ = np.asarray(0.0 if chance else agreed)

    def _above_chance(
        self,
        rotation: FloatArray,
        source: FloatArray,
        target: FloatArray,
        *,
        rng: np.random.Generator,
    ) -> bool:
        """Say whether more rows are each other's nearest than under maps from random matches."""
        rows, others = compared(source, target)
        by_chance = []
        for _ in range(BY_CHANCE):
            drawn = _draw(source, rng), _draw(target, rng)
            anchors = random_match(*drawn, count=self.n_clusters, rng=rng)
            by_chance.append(mutual_share(turn(rows, self._grow(*drawn, anchors)), others))
        mutual = mutual_share(turn(rows, rotation), others)
        return mutual >= ABOVE_CHANCE * float(np.median(by_chance))

    def _attempt(
        self, source: FloatArray, target: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Return a rotation found from nothing, on few directions and rows."""
        return self._grow(source, target, self._start(source, target, rng))

    @abstractmethod
    def _start(self, source: FloatArray, target: FloatArray, rng: np.random.Generator) -> Anchors:
        """Return a first few anchors."""

    @abstractmethod
    def _grow(self, source: FloatArray, target: FloatArray, anchors: Anchors) -> FloatArray:
        """Return the rotation that grows from anchors."""

    @abstractmethod
    def _refine(
        self, source: FloatArray, target: FloatArray, rotation: FloatArray
    ) -> tuple[FloatArray, int]:
        """Return the rotation in all directions, and the rounds that it took."""

    def _check_params(self) -> None:
        super()._check_params()
        check_whole(self.n_clusters, name="n_clusters", minimum=2, maximum=1_000)
        check_whole(self.rounds, name="rounds", maximum=MOST)
        check_positive(self.tolerance, name="tolerance", maximum=1.0)


@dataclass(frozen=True, eq=False)
class _Found:
    rotations: tuple[FloatArray, FloatArray]
    agreement: float
    attempts: int


def _search(
    source: FloatArray,
    target: FloatArray,
    attempt: Callable[[FloatArray, FloatArray, np.random.Generator], FloatArray],
    *,
    attempts: int,
    rng: np.random.Generator,
) -> _Found:
    """Attempt on rows drawn anew, until two maps agree; rows are in random order already."""
    rows, others = compared(source, target)
    found: list[FloatArray] = []
    best = _Found((source, source), -1.0, 0)
    for number in range(1, attempts + 1):
        rotation = attempt(_draw(source, rng), _draw(target, rng), rng)
        for other in found:
            agreed = agreement(turn(rows, other), turn(rows, rotation), others)
            if agreed > best.agreement:
                best = _Found((rotation, other), agreed, number)
        found.append(rotation)
        if best.agreement >= CLEAR:
            break
    return _Found(best.rotations, best.agreement, number)


def compared(source: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the rows of either side that maps are compared on."""
    return source[:COMPARED_ROWS], np.ascontiguousarray(target[:COMPARED_ROWS])


def _draw(rows: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return four fifths of the rows, at most ``ATTEMPT_ROWS``: no two attempts see the same."""
    return rows[rng.permutation(len(rows))[: min(ATTEMPT_ROWS, max(20, len(rows) * 4 // 5))]]


def agreement(one: FloatArray, other: FloatArray, target: FloatArray) -> float:
    """Return the share of rows that two maps send to the same target row, by CSLS."""
    nearest = [nearest_by_csls(mapped, target) for mapped in (one, other)]
    return float(np.mean(nearest[0] == nearest[1]))


def _effective_directions(rows: FloatArray) -> float:
    """Return the participation ratio of centred rows: as many directions of equal variance."""
    gram = cross_product(rows)
    return float(np.trace(gram) ** 2 / np.sum(gram**2))


def mutual_share(mapped: FloatArray, target: FloatArray) -> float:
    """Return the share of rows, of the smaller side, that are each other's nearest by CSLS."""
    found = mutual_by_csls(mapped, target, neighborhood=NEIGHBORHOOD)
    return len(found.source_rows) / min(len(mapped), len(target))
