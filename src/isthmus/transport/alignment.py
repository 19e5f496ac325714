"""A rotation between two clouds in their principal axes: what the zero-pair baselines find."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from isthmus._linalg import affine, in_row_blocks, normalise, pca
from isthmus._types import FloatArray
from isthmus._validate import as_matrix, check_nonzero, check_spread
from isthmus.transport.cost import SimilarityCost

__all__ = ["Alignment", "Frame"]


@dataclass(frozen=True, eq=False)
class Frame:
    """Where a cloud lies: rows of length one, less their mean, in principal axes, of length one.

    Parameters
    ----------
    mean : FloatArray of shape (dim,), float64
    directions : FloatArray of shape (dim, width), float64
    """

    mean: FloatArray
    directions: FloatArray

    @classmethod
    def of(cls, rows: npt.ArrayLike, width: int, *, name: str) -> Self:
        """Find the mean and the first principal axes; fewer where the rows span fewer.

        Raises
        ------
        DegenerateVectorsError, ZeroVectorError, DimensionError, EmptyInputError,
        InvalidVectorsError
        """
        checked = as_matrix(rows, name=name)
        check_nonzero(checked, name=name)
        unit = normalise(checked)
        check_spread(unit, name=name)
        mean, directions, _ = pca(unit, width)
        return cls(mean, directions)

    def carry(self, rows: npt.ArrayLike) -> FloatArray:
        """Return rows (n, dim) in the frame: (n, width), float32, of length one."""
        checked = as_matrix(rows, name="rows", dim=len(self.mean))
        bias = -self.mean @ self.directions
        return in_row_blocks(
            lambda block: normalise(affine(normalise(block), self.directions, bias)), checked
        )


@dataclass(frozen=True, eq=False)
class Alignment:
    """Two frames of one width and the rotation from the first to the second.

    Parameters
    ----------
    source, target : Frame
    rotation : FloatArray of shape (width, width), float64
        Orthogonal.
    curve : FloatArray of shape (n_steps,)
        What the method watched, step by step.
    converged : bool
        Whether it came to rest.
    """

    source: Frame
    target: Frame
    rotation: FloatArray
    curve: FloatArray
    converged: bool

    @classmethod
    def of(cls, source: npt.ArrayLike, target: npt.ArrayLike) -> Self:
        """Bring both sides to the smaller width and turn nothing.

        Raises
        ------
        DegenerateVectorsError, ZeroVectorError, DimensionError, EmptyInputError,
        InvalidVectorsError
        """
        left, right = as_matrix(source, name="source"), as_matrix(target, name="target")
        width = min(left.shape[1], right.shape[1])
        frames = Frame.of(left, width, name="source"), Frame.of(right, width, name="target")
        width = min(frame.directions.shape[1] for frame in frames)
        ours, theirs = (replace(frame, directions=frame.directions[:, :width]) for frame in frames)
        return cls(ours, theirs, np.eye(width), np.zeros(0), converged=True)

    def transform(self, rows: npt.ArrayLike) -> FloatArray:
        """Carry source rows (n, dim_source) over to the target's frame: (n, width), float32."""
        return affine(self.source.carry(rows), self.rotation)

    def transform_target(self, rows: npt.ArrayLike) -> FloatArray:
        """Carry target rows (m, dim_target) into their frame: (m, width), float32."""
        return self.target.carry(rows)

    def cost(self, source: npt.ArrayLike, target: npt.ArrayLike) -> SimilarityCost:
        """Return one minus the cosine of rows of both sides, in the target's frame."""
        return SimilarityCost(self.transform(source), self.transform_target(target))
