"""The directions that an encoder leaves empty, whatever the text, and what lies in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from isthmus._types import FloatArray
from isthmus.evaluate._two_gaussians import moments

__all__ = ["EmptyDirections", "emptiest"]

SCORED, TESTED = 0.10, 0.05
"""Shares of the directions that a row is scored by, and that the two parts are told apart by."""
LEAST = 1e-3
"""Energy below which rows do not differ: the rounding of float16."""
FEWEST = (4, 2)
"""Directions scored and tested at least, half of the dimensions at most."""
BLOCK_ROWS = 16_384


@dataclass(frozen=True, eq=False)
class EmptyDirections:
    """Where a part of the rows has least variance.

    Parameters
    ----------
    mean : FloatArray of shape (dim,)
    directions : FloatArray of shape (dim, k)
        Orthonormal, the emptiest first.
    """

    mean: FloatArray
    directions: FloatArray

    def half(self, number: int) -> EmptyDirections:
        """Return every other direction, from the first or from the second."""
        return EmptyDirections(self.mean, np.ascontiguousarray(self.directions[:, number::2]))

    def energies(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return each row's energy in the scored and in the tested directions.

        1 is what a row without any regard for these directions has: its share of the squared length
        about the mean, over the share of the dimensions.

        Parameters
        ----------
        rows : FloatArray of shape (n, dim), float32
        """
        dim, scored = self.directions.shape
        tested = _count(dim, TESTED, FEWEST[1])
        found = np.empty((2, len(rows)))
        for start in range(0, len(rows), BLOCK_ROWS):
            block = rows[start : start + BLOCK_ROWS] - self.mean
            lengths = np.einsum("ij,ij->i", block, block, dtype=np.float64) + 1e-30
            squares = (block @ self.directions).astype(np.float64) ** 2
            here = slice(start, start + len(block))
            found[0, here] = squares.sum(axis=1) / lengths * dim / scored
            found[1, here] = squares[:, :tested].sum(axis=1) / lengths * dim / tested
        return found[0], found[1]


def emptiest(rows: FloatArray, weights: FloatArray) -> EmptyDirections:
    """Return the emptiest directions of rows with weights.

    Parameters
    ----------
    rows : FloatArray of shape (n, dim), float32
    weights : FloatArray of shape (n,)
    """
    mean, covariance = moments(rows, weights)
    count = _count(len(covariance), SCORED, FEWEST[0])
    _, directions = eigh(covariance, subset_by_index=(0, count - 1), check_finite=False)
    return EmptyDirections(mean, directions.astype(np.float32))


def _count(dim: int, share: float, fewest: int) -> int:
    return max(1, round(dim * share), min(fewest, dim // 2))


def logarithm(energy: FloatArray) -> FloatArray:
    """Return the score of an energy."""
    score: FloatArray = np.log(energy + LEAST)
    return score
