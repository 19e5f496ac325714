"""What all linear maps share that learn from two clouds without pairs.

Each attempt starts from rows drawn anew and other random numbers. Two attempts that send rows to
the same places hardly do so by chance, so attempts go on until two agree, and the agreement is the
confidence. Its limit: clouds of a few well-separated groups in few dimensions match in one best way
whatever they are, and agree with themselves; real text clouds that do not belong together do not.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from isthmus._linalg import affine
from isthmus._types import FloatArray
from isthmus._validate import check_positive, check_whole
from isthmus.maps._clouds import LEAST_ROWS, Cloud, check_clouds, matching_coordinates
from isthmus.maps._refinement import nearest_by_csls, turn
from isthmus.maps.base import Map

__all__ = ["RELIABLE", "Unpaired", "agreement"]

RELIABLE = 0.3
"""Confidence under which a map is worthless; see `Unpaired.reliable`."""

CLEAR = 0.5
"""Agreement from which no further attempt is made."""

COMPARED_ROWS = 1_000
"""Rows on each side that agreement is measured on."""

ATTEMPT_ROWS = 2_000
"""Rows of a side in one attempt."""

MOST = 10**6


class Unpaired(Map):
    """A rotation between two clouds.

    A subclass has the parameters ``attempts``, ``rounds``, ``tolerance``, ``sample`` and ``seed``.
    """

    freedom: ClassVar[int] = 10
    paired: ClassVar[bool] = False
    sees_collection: ClassVar[bool] = True
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "rotation": ("source", "target"),
        "scale": (),
        "mean_source": ("source",),
        "mean_target": ("target",),
        "confidence": (),
        "attempts_made": (),
        "rounds_made": (),
    }

    attempts: int
    rounds: int
    tolerance: float
    sample: int
    seed: int

    rotation_: FloatArray
    scale_: FloatArray
    mean_source_: FloatArray
    mean_target_: FloatArray
    confidence_: FloatArray
    attempts_made_: npt.NDArray[np.int64]
    rounds_made_: npt.NDArray[np.int64]

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
        ParameterError
            A parameter out of its range; weights.
        TooFewPairsError, InputError
            As :func:`isthmus.maps._clouds.check_clouds` says.
        """
        self._check_params()
        sides = check_clouds(X, Y, sample_weight, unpaired_source, unpaired_target)
        rng = np.random.default_rng(self.seed)
        source, target = (Cloud.of(side, sample=self.sample, rng=rng) for side in sides)
        *reduced, axes_source, axes_target = matching_coordinates(source.rows, target.rows)
        found = _search(reduced[0], reduced[1], self._attempt, attempts=self.attempts, rng=rng)
        rotation, rounds = self._refine(
            source.rows, target.rows, axes_source @ found.rotation @ axes_target.T
        )
        self.rotation_ = rotation.astype(np.float32)
        self.scale_ = np.asarray(target.scale / source.scale)
        self.mean_source_, self.mean_target_ = source.mean, target.mean
        self.confidence_ = np.asarray(found.agreement)
        self.attempts_made_, self.rounds_made_ = np.asarray(found.attempts), np.asarray(rounds)
        self.n_features_in_, self.n_features_target_ = rotation.shape
        return self

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Carry source rows into the target space: (n, dim_target), float32."""
        source = self._check_source(X)
        scale = float(self.scale_)
        turned_mean = self.mean_source_ @ self.rotation_.astype(np.float64)
        return affine(source, self.rotation_, self.mean_target_ - scale * turned_mean, scale=scale)

    @abstractmethod
    def _attempt(
        self, source: FloatArray, target: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Return a rotation found from nothing, on few directions and rows."""

    @abstractmethod
    def _refine(
        self, source: FloatArray, target: FloatArray, rotation: FloatArray
    ) -> tuple[FloatArray, int]:
        """Return the rotation in all directions, and the rounds that it took."""

    def _check_params(self) -> None:
        check_whole(self.attempts, name="attempts", minimum=2, maximum=1_000)
        check_whole(self.rounds, name="rounds", maximum=MOST)
        check_positive(self.tolerance, name="tolerance", maximum=1.0)
        check_whole(self.sample, name="sample", minimum=LEAST_ROWS, maximum=MOST)
        check_whole(self.seed, name="seed", minimum=0)


@dataclass(frozen=True, eq=False)
class _Found:
    rotation: FloatArray
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
    compared = source[:COMPARED_ROWS], np.ascontiguousarray(target[:COMPARED_ROWS])
    found: list[FloatArray] = []
    best = _Found(np.zeros((0, 0)), -1.0, 0)
    for number in range(1, attempts + 1):
        rotation = attempt(_draw(source, rng), _draw(target, rng), rng)
        for other in found:
            agreed = agreement(other, rotation, *compared)
            if agreed > best.agreement:
                best = _Found(rotation, agreed, number)
        found.append(rotation)
        if best.agreement >= CLEAR:
            break
    return _Found(best.rotation, best.agreement, number)


def _draw(rows: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return four fifths of the rows, at most ``ATTEMPT_ROWS``: no two attempts see the same."""
    return rows[rng.permutation(len(rows))[: min(ATTEMPT_ROWS, max(20, len(rows) * 4 // 5))]]


def agreement(one: FloatArray, other: FloatArray, source: FloatArray, target: FloatArray) -> float:
    """Return the share of source rows that two rotations send to the same target row, by CSLS."""
    nearest = [nearest_by_csls(turn(source, each), target) for each in (one, other)]
    return float(np.mean(nearest[0] == nearest[1]))
