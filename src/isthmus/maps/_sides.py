"""Rows of both sides as alignment from few pairs takes them: centred, of length one, checked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from isthmus._linalg import in_row_blocks, mean_rows, normalise
from isthmus._types import FloatArray, IntArray
from isthmus._validate import as_matrix
from isthmus.errors import EmptyInputError, TooFewPairsError, UnknownNameError
from isthmus.maps._fitting import PairedRows, check_scale

__all__ = ["FEWEST_ANCHORS", "Centring", "Sides", "centre", "centre_sides", "check_pools"]

Centring = Literal["all", "none"]
"""Rows less the mean of all rows of their side, paired or not; or as they are."""
FEWEST_ANCHORS = 20
"""With fewer, nothing says which row of a pool belongs to which. A round number."""
HELD_OUT_SHARE = 0.1
"""Of the anchor pairs, where training asks for some (AnchorDOT, appendix D, holds out as many)."""
FEWEST_IN_POOL = 20
"""Rows without a pair on each side: a coupling of fewer says nothing. A round number."""


@dataclass(frozen=True, eq=False)
class Sides:
    """Rows of both sides, centred and of length one.

    Parameters
    ----------
    anchors : pair of FloatArray of shape (n_anchors, dim_source) and (n_anchors, dim_target)
    pools : pair of FloatArray of shape (n, dim_source) and (m, dim_target)
        Rows without a pair; none where the fit has none.
    means : pair of FloatArray of shape (dim_source,) and (dim_target,), float64
        Of all these rows, before they were centred.
    weight : FloatArray of shape (n_anchors,), optional
    """

    anchors: tuple[FloatArray, FloatArray]
    pools: tuple[FloatArray, FloatArray]
    means: tuple[FloatArray, FloatArray]
    weight: FloatArray | None

    @property
    def stacked(self) -> tuple[FloatArray, FloatArray]:
        """Return the rows of each side in one matrix, anchors first."""
        left, right = (np.concatenate(both) for both in zip(self.anchors, self.pools, strict=True))
        return left, right

    def hold_out(self, *, seed: int) -> tuple[Sides, tuple[FloatArray, FloatArray]]:
        """Return the sides without a tenth of the anchor pairs, drawn at random, and those."""
        n = len(self.anchors[0])
        order = np.random.default_rng([seed, 4]).permutation(n)
        return self.split(order[: max(1, round(HELD_OUT_SHARE * n))])

    def split(self, held: IntArray) -> tuple[Sides, tuple[FloatArray, FloatArray]]:
        """Return the sides without some anchor pairs, and those."""
        kept = np.setdiff1d(np.arange(len(self.anchors[0])), held)
        rest = replace(
            self,
            anchors=(self.anchors[0][kept], self.anchors[1][kept]),
            weight=None if self.weight is None else self.weight[kept],
        )
        return rest, (self.anchors[0][held], self.anchors[1][held])


def centre_sides(
    pairs: PairedRows,
    unpaired_source: npt.ArrayLike | None,
    unpaired_target: npt.ArrayLike | None,
    *,
    centring: Centring = "all",
) -> Sides:
    """Check, centre and scale the rows of both sides.

    The mean is that of all rows of a side: of a few hundred pairs alone it is further off. The
    paper does not centre; on its molecules (seeds over 99) nearest neighbours on the profiles then
    find 42 instead of 60 of 100 partners among ten, the coupling 71 instead of 73.

    Raises
    ------
    UnknownNameError
        Another centring than ``all`` and ``none``.
    TooFewPairsError
        Fewer than 20 pairs that differ on both sides.
    DimensionError, EmptyInputError, InvalidVectorsError, DegenerateVectorsError
    """
    if centring not in get_args(Centring):
        raise UnknownNameError.of("centring", str(centring), get_args(Centring))
    check_anchors(pairs)
    anchors, pools, means = [], [], []
    for rows, unpaired, name in (
        (pairs.source, unpaired_source, "unpaired_source"),
        (pairs.target, unpaired_target, "unpaired_target"),
    ):
        pool = rows[:0]
        if unpaired is not None:
            pool = as_matrix(unpaired, name=name, dim=rows.shape[1])
            if len(pool) >= FEWEST_IN_POOL:  # fewer are refused for that
                check_scale(pool.astype(np.float32, copy=False), name=name)
        total = len(rows) + len(pool)
        mean = mean_rows(rows) * (len(rows) / total)
        if len(pool):
            mean = mean + mean_rows(pool) * (len(pool) / total)
        if centring == "none":
            mean = np.zeros_like(mean)
        anchors.append(centre(rows, mean))
        pools.append(centre(pool, mean) if len(pool) else pool.astype(np.float32))
        means.append(mean)
    return Sides((anchors[0], anchors[1]), (pools[0], pools[1]), (means[0], means[1]), pairs.weight)


def check_anchors(pairs: PairedRows) -> None:
    """Refuse pairs that are too few, counting those that repeat on one side once.

    Raises
    ------
    TooFewPairsError
    """
    different = min(len(np.unique(side, axis=0)) for side in (pairs.source, pairs.target))
    if different < FEWEST_ANCHORS:
        raise TooFewPairsError(
            expected=f"at least {FEWEST_ANCHORS} pairs that differ on both sides, as anchors",
            got=f"{len(pairs):,} pairs, {different:,} of them different",
            do="add pairs, or fit procrustes",
        )


def check_pools(sides: Sides) -> None:
    """Refuse pools of rows without a pair that are too few to be coupled.

    Raises
    ------
    EmptyInputError
    """
    for pool, name in zip(sides.pools, ("unpaired_source", "unpaired_target"), strict=True):
        if len(pool) < FEWEST_IN_POOL:
            raise EmptyInputError(
                expected=f"at least {FEWEST_IN_POOL} rows in {name}, to couple with the other side",
                got=f"{len(pool)}",
                do="give rows of both sides without a pair (--unpaired-source, --unpaired-target), "
                "or fit cca, which needs none",
            )


def centre(rows: FloatArray, mean: FloatArray) -> FloatArray:
    """Return rows less the mean, of length one; float32, each by itself."""
    offset = mean.astype(np.float32)
    return in_row_blocks(lambda block: normalise(block.astype(np.float32) - offset), rows)
