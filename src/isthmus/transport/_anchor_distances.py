"""Distances of rows to anchors of their own side: what the rival costs begin with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from isthmus._linalg import affine, in_row_blocks, normalise
from isthmus._types import FloatArray
from isthmus._validate import as_matrix, check_nonzero, check_pairs
from isthmus.transport.cost import check_stored

__all__ = ["AnchorDistances"]


@dataclass(frozen=True, eq=False)
class AnchorDistances:
    """Cosine distances of the rows of both sides to their anchors.

    Parameters
    ----------
    source : FloatArray of shape (n_source, n_anchors), float32
        From 0 to 2.
    target : FloatArray of shape (n_target, n_anchors), float32
    """

    source: FloatArray
    target: FloatArray

    @classmethod
    def of(
        cls,
        source: npt.ArrayLike,
        target: npt.ArrayLike,
        anchors_source: npt.ArrayLike,
        anchors_target: npt.ArrayLike,
    ) -> Self:
        """Measure both sides; row k of both sets of anchors is one pair.

        Raises
        ------
        ParameterError
            A cost between the rows would be too large to keep.
        ZeroVectorError, CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError
        """
        left, right = as_matrix(source, name="source"), as_matrix(target, name="target")
        ours = as_matrix(anchors_source, name="anchors_source", dim=left.shape[1])
        theirs = as_matrix(anchors_target, name="anchors_target", dim=right.shape[1])
        check_pairs(ours, theirs, minimum=1)
        check_stored((len(left), len(right)))
        for rows, name in (
            (left, "source"),
            (right, "target"),
            (ours, "anchors_source"),
            (theirs, "anchors_target"),
        ):
            check_nonzero(rows, name=name)
        return cls(_distances(left, ours), _distances(right, theirs))


def _distances(rows: FloatArray, anchors: FloatArray) -> FloatArray:
    weight = normalise(anchors).T

    def measure(block: FloatArray) -> FloatArray:
        similar = affine(normalise(block), weight)
        distances: FloatArray = np.maximum(np.float32(1) - similar, np.float32(0))
        return distances

    return in_row_blocks(measure, rows)
