"""What every fit does first: check the pairs, the weights and that there is something to learn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray
from isthmus._validate import as_matrix, check_pairs, check_spread, check_weight
from isthmus.errors import DegenerateVectorsError, InvalidVectorsError, TooFewPairsError

__all__ = ["PairedRows", "check_fit", "check_scale"]

LARGEST, LEAST_SPREAD = 1e15, 1e-15
"""So that sums of squares, and a quotient of both sides, stay within float32."""
WEIGHTS_AS_THEY_ARE = 1e-30, 1e30
"""Largest weights that are taken as they are: a weight of k is the row k times. Beyond, squares of
weighted sums would leave float64, so the largest becomes one."""


@dataclass(frozen=True)
class PairedRows:
    """Checked pairs: source (n, dim_source), target (n, dim_target), weight (n,) or None.

    Pairs of weight zero are gone: they must not count as pairs.
    """

    source: FloatArray
    target: FloatArray
    weight: FloatArray | None

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.source)


def check_fit(
    X: npt.ArrayLike, Y: npt.ArrayLike, sample_weight: npt.ArrayLike | None, *, minimum: int = 2
) -> PairedRows:
    """Check what ``fit`` was given.

    Raises
    ------
    DimensionError, EmptyInputError, InvalidVectorsError
        Not a matrix, no rows, NaN or infinity, numbers over 1e15.
    CountMismatchError, TooFewPairsError
        Different counts; fewer than ``minimum`` pairs of a weight over zero.
    DegenerateVectorsError
        A side whose rows are all equal, or differ by less than 1e-15.
    """
    source, target = as_matrix(X, name="X"), as_matrix(Y, name="Y")
    check_pairs(source, target, minimum=minimum)
    weight = check_weight(sample_weight, rows=len(source))
    if weight is not None and not (weight > 0).all():
        kept = weight > 0
        if np.count_nonzero(kept) < minimum:
            raise TooFewPairsError(
                expected=f"at least {minimum} pairs of a weight over 0",
                got=f"{np.count_nonzero(kept)}",
                do="add pairs, or raise their weights",
            )
        source, target, weight = source[kept], target[kept], weight[kept]
    for side, name in ((source, "X"), (target, "Y")):
        # what differs only beyond float32 does not differ for `transform`
        check_scale(side.astype(np.float32, copy=False), name=name)
    if weight is not None:
        least, most = WEIGHTS_AS_THEY_ARE
        weight = weight if least <= weight.max() <= most else weight / weight.max()
    return PairedRows(source, target, weight)


def check_scale(rows: FloatArray, *, name: str) -> None:
    """Refuse rows that are all equal, and numbers of which a fit would leave float32."""
    largest = max(float(rows.max()), -float(rows.min()))
    if largest > LARGEST:
        raise InvalidVectorsError(
            expected=f"numbers up to {LARGEST:g} in {name}",
            got=f"{largest:.1e}",
            do="scale the vectors down",
        )
    check_spread(rows, name=name)
    spread = float(np.ptp(rows, axis=0).max())
    if spread < LEAST_SPREAD:
        raise DegenerateVectorsError(
            expected=f"rows of {name} that differ by at least {LEAST_SPREAD:g}",
            got=f"{spread:.1e}",
            do="scale the vectors up",
        )
