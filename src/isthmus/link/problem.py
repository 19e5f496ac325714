"""What linking starts from: two clouds of vectors and a few seed pairs, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from isthmus._linalg import normalise
from isthmus._types import FloatArray, IntArray
from isthmus._validate import as_matrix, check_nonzero, check_pairs, check_spread
from isthmus.errors import (
    ConflictingSeedsError,
    DegenerateVectorsError,
    ParameterError,
    TooFewPairsError,
)

__all__ = ["MIN_SEEDS", "LinkProblem"]

MIN_SEEDS = 3
"""Fewer seed pairs give no view in which a point has a place; the paper starts from 15."""

SAME_DIRECTION = 1e-6
"""Unit vectors whose coordinates differ by less are equal but for rounding."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LinkProblem:
    """Two clouds of unit vectors and the seed pairs; make it with `of_rows` or `of_vectors`.

    Parameters
    ----------
    source : FloatArray of shape (n_source, dim_source), float32
        Rows of length one.
    target : FloatArray of shape (n_target, dim_target), float32
    seed_source : FloatArray of shape (n_seeds, dim_source), float32
        Row i of both is the same object.
    seed_target : FloatArray of shape (n_seeds, dim_target), float32
    seed_rows : IntArray of shape (n_seeds, 2), optional
        Source row and target row of each seed pair; None when the seeds come from elsewhere
        (another domain), and are no links themselves.

    Examples
    --------
    >>> cloud = np.random.default_rng(0).standard_normal((9, 4))
    >>> LinkProblem.of_rows(cloud, cloud[::-1], [(0, 8), (1, 7), (2, 6)])
    LinkProblem(9 x 4 to 9 x 4, 3 seeds)
    """

    source: FloatArray
    target: FloatArray
    seed_source: FloatArray
    seed_target: FloatArray
    seed_rows: IntArray | None

    def __repr__(self) -> str:
        sides = " to ".join(
            f"{len(side):,} x {side.shape[1]}" for side in (self.source, self.target)
        )
        return f"LinkProblem({sides}, {self.n_seeds:,} seeds)"

    @property
    def n_seeds(self) -> int:
        """Count the seed pairs."""
        return len(self.seed_source)

    def codes(self, source_rows: IntArray, target_rows: IntArray) -> IntArray:
        """Return one number per pair of rows, rising as sorted pairs do."""
        codes: IntArray = source_rows * len(self.target) + target_rows
        return codes

    @classmethod
    def of_rows(cls, source: npt.ArrayLike, target: npt.ArrayLike, seeds: npt.ArrayLike) -> Self:
        """Check two clouds and seed pairs that are rows of them.

        Parameters
        ----------
        source : array-like of shape (n_source, dim_source)
        target : array-like of shape (n_target, dim_target)
            Any lengths; linking compares directions.
        seeds : array-like of int of shape (n_seeds, 2)
            Source row and target row of each seed pair.

        Raises
        ------
        DimensionError, EmptyInputError, InvalidVectorsError, ZeroVectorError
            A cloud that cannot be used.
        DegenerateVectorsError
            A cloud of one point, or of equal directions.
        TooFewPairsError
            Fewer than 3 seeds.
        ParameterError, ConflictingSeedsError
            Rows out of range; a row in two seeds.
        """
        left, right = _cloud(source, "source"), _cloud(target, "target")
        rows = _seed_rows(seeds, len(left), len(right))
        return cls(
            source=left,
            target=right,
            seed_source=left[rows[:, 0]],
            seed_target=right[rows[:, 1]],
            seed_rows=rows,
        )

    @classmethod
    def of_vectors(
        cls,
        source: npt.ArrayLike,
        target: npt.ArrayLike,
        seed_source: npt.ArrayLike,
        seed_target: npt.ArrayLike,
    ) -> Self:
        """Check two clouds and seed pairs of other objects in the same two spaces.

        Parameters
        ----------
        source : array-like of shape (n_source, dim_source)
        target : array-like of shape (n_target, dim_target)
        seed_source : array-like of shape (n_seeds, dim_source)
        seed_target : array-like of shape (n_seeds, dim_target)
            Row i of both is the same object.

        Raises
        ------
        CountMismatchError
            Not as many rows in both sides of the seeds.
        DimensionError, EmptyInputError, InvalidVectorsError, ZeroVectorError,
        DegenerateVectorsError, TooFewPairsError
            As in `of_rows`; fewer than 3 different seeds.
        """
        left, right = _cloud(source, "source"), _cloud(target, "target")
        first = as_matrix(seed_source, name="seed_source", dim=left.shape[1])
        second = as_matrix(seed_target, name="seed_target", dim=right.shape[1])
        check_pairs(first, second, minimum=MIN_SEEDS)
        check_nonzero(first, name="seed_source")
        check_nonzero(second, name="seed_target")
        _check_different(np.hstack([first, second]))
        return cls(
            source=left,
            target=right,
            seed_source=_directions(first),
            seed_target=_directions(second),
            seed_rows=None,
        )


def _cloud(values: npt.ArrayLike, name: str) -> FloatArray:
    cloud = as_matrix(values, name=name)
    check_nonzero(cloud, name=name)
    check_spread(cloud, name=name)
    unit = _directions(cloud)
    if np.ptp(unit, axis=0).max() < SAME_DIRECTION:
        raise DegenerateVectorsError(
            expected=f"at least two different directions in {name}",
            got=f"{len(unit)} rows that differ in length alone",
            do="check that the vectors were read in the right way",
        )
    return unit


def _check_different(seeds: FloatArray) -> None:
    """Refuse seed pairs that are fewer than three once repetitions are taken out."""
    different = len(np.unique(seeds, axis=0))
    if different < MIN_SEEDS:
        raise TooFewPairsError(
            expected=f"at least {MIN_SEEDS} different seed pairs",
            got=f"{different} in {len(seeds)}",
            do="add seeds of other objects",
        )


def _directions(rows: FloatArray) -> FloatArray:
    """Return rows of length one; lengths beyond float32 are brought into it first."""
    largest = np.abs(rows).max(axis=1, keepdims=True)
    far = (largest > 1e15) | (largest < 1e-15)
    return normalise(np.where(far, rows / largest, rows)) if far.any() else normalise(rows)


def _seed_rows(seeds: npt.ArrayLike, n_source: int, n_target: int) -> IntArray:
    try:
        rows = np.asarray(seeds)
    except ValueError as error:
        raise ParameterError(
            expected="seeds as pairs of whole numbers: source row, target row",
            got=str(error),
            do="give two row numbers per seed",
        ) from error
    if rows.size == 0:
        rows = np.empty((0, 2), np.int64)
    if rows.ndim != 2 or rows.shape[1] != 2 or rows.dtype.kind not in "iu":
        raise ParameterError(
            expected="seeds as whole numbers of shape (n_seeds, 2): source row, target row",
            got=f"shape {rows.shape}, type {rows.dtype}",
            do="give one pair of row numbers per seed",
        )
    if len(rows) < MIN_SEEDS:
        raise TooFewPairsError(
            expected=f"at least {MIN_SEEDS} seed pairs",
            got=f"{len(rows)}",
            do="add seeds; 15 to 30 is what linking is made for",
        )
    for column, (side, count) in enumerate((("source", n_source), ("target", n_target))):
        one = rows[:, column]
        if one.min() < 0 or one.max() >= count:
            raise ParameterError(
                expected=f"{side} rows of seeds from 0 to {count - 1}",
                got=f"{one.min()} to {one.max()}",
                do="check which cloud the rows belong to",
            )
        values, counts = np.unique(one, return_counts=True)
        if len(values) < len(one):
            twice = int(values[counts > 1][0])
            partners = rows[one == twice, 1 - column]
            raise ConflictingSeedsError(
                expected=f"each {side} row in one seed pair",
                got=f"{side} row {twice} with {', '.join(map(str, partners[:3]))}",
                do="keep the right pair of each row, once",
            )
    return rows.astype(np.int64)
