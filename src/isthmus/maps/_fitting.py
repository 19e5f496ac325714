"""What every fit does first: check the pairs, the weights and that there is something to learn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray
from isthmus._validate import as_matrix, check_pairs, check_spread, check_weight
from isthmus.errors import TooFewPairsError

__all__ = ["PairedRows", "check_fit"]


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
        Not a matrix, no rows, NaN or infinity.
    CountMismatchError, TooFewPairsError
        Different counts; fewer than ``minimum`` pairs of a weight over zero.
    DegenerateVectorsError
        A side whose rows are all equal.
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
        check_spread(side.astype(np.float32, copy=False), name=name)
    return PairedRows(source, target, weight)
