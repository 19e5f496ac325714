"""Two clouds of vectors whose row order says nothing: checks, and coordinates to match them in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isthmus._linalg import affine, mean_rows, normalise, pca
from isthmus._types import FloatArray
from isthmus._validate import as_matrix
from isthmus.errors import DegenerateVectorsError, DimensionError, ParameterError, TooFewPairsError
from isthmus.maps._fitting import check_scale

__all__ = ["LEAST_ROWS", "Cloud", "check_clouds", "matching_coordinates"]

LEAST_ROWS = 50
"""Fewer rows have no shape that could be told from chance; real clouds need a thousand and more."""

DIFFERENT_AMONG = 1_000
"""Rows, spread over the cloud, that are looked at for repetitions."""

MATCHING_WIDTH = 128
"""Directions of most variance that clouds are matched in; all are used once they match."""


@dataclass(frozen=True, eq=False)
class Cloud:
    """A sample of a cloud, centred.

    Parameters
    ----------
    mean : FloatArray of shape (dim,), float64
        Of the whole cloud.
    scale : float
        Root of the mean squared distance of the sample's rows to it.
    rows : FloatArray of shape (n, dim), float32
        Of length one after centring, in an order that is drawn anew.
    """

    mean: FloatArray
    scale: float
    rows: FloatArray

    @classmethod
    def of(cls, rows: FloatArray, *, sample: int, rng: np.random.Generator) -> Cloud:
        """Centre all rows and draw at most ``sample`` of them."""
        mean = mean_rows(rows)
        drawn = rng.permutation(len(rows))[:sample]
        centred = rows[drawn].astype(np.float64) - mean
        scale = float(np.sqrt(np.mean(np.sum(centred**2, axis=1))))
        return cls(mean, scale, normalise((centred / scale).astype(np.float32)))


def check_clouds(
    X: npt.ArrayLike,
    Y: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None,
    unpaired_source: npt.ArrayLike | None,
    unpaired_target: npt.ArrayLike | None,
) -> tuple[FloatArray, FloatArray]:
    """Return all source rows and all target rows.

    Raises
    ------
    DimensionError, EmptyInputError, InvalidVectorsError, DegenerateVectorsError
        Not a matrix; one column; NaN or infinity; rows that are all equal, or nearly all.
    TooFewPairsError
        Fewer than 50 rows on a side.
    ParameterError
        Weights: they belong to pairs.
    """
    if sample_weight is not None:
        raise ParameterError(
            expected="no sample_weight: rows of a cloud stand in no pair that could be weighed",
            got="weights",
            do="leave them out, or fit a map that learns from pairs",
        )
    sides = []
    for rows, more, name, more_name in (
        (X, unpaired_source, "X", "unpaired_source"),
        (Y, unpaired_target, "Y", "unpaired_target"),
    ):
        cloud = as_matrix(rows, name=name)
        if cloud.shape[1] < 2:
            raise DimensionError(
                expected=f"{name} with at least two columns",
                got="1 column",
                do="use vectors of more dimensions: a line has no shape to match",
            )
        if more is not None:
            cloud = np.concatenate([cloud, as_matrix(more, name=more_name, dim=cloud.shape[1])])
        if len(cloud) < LEAST_ROWS:
            raise TooFewPairsError(
                expected=f"at least {LEAST_ROWS} rows in {name}",
                got=f"{len(cloud)}",
                do="add rows (a thousand and more is usual), or fit on pairs",
            )
        check_scale(cloud.astype(np.float32, copy=False), name=name)
        _check_different(cloud, name=name)
        sides.append(cloud)
    return sides[0], sides[1]


def _check_different(cloud: FloatArray, *, name: str) -> None:
    """Refuse few different rows: any few points can be turned onto any others."""
    looked_at = cloud[:: max(1, len(cloud) // DIFFERENT_AMONG)]
    different = len(np.unique(looked_at, axis=0))
    if different < LEAST_ROWS // 2:
        raise DegenerateVectorsError(
            expected=f"at least {LEAST_ROWS // 2} different rows in {name}",
            got=f"{different} among {len(looked_at)}",
            do="drop repeated rows and add others",
        )


def matching_coordinates(
    source: FloatArray, target: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return both sides on as many principal axes, and those axes.

    The larger side loses what the smaller has no room for, and both lose what lies beyond
    ``MATCHING_WIDTH``.

    Parameters
    ----------
    source : FloatArray of shape (n_source, dim_source)
    target : FloatArray of shape (n_target, dim_target)

    Returns
    -------
    source, target : FloatArray of shape (n_source, width) and (n_target, width), float32
        Rows of length one.
    axes_source, axes_target : FloatArray of shape (dim_source, width) and (dim_target, width)
    """
    axes = [pca(side, MATCHING_WIDTH)[1] for side in (source, target)]
    width = min(each.shape[1] for each in axes)
    axes = [each[:, :width] for each in axes]
    reduced = [
        normalise(affine(side, each)) for side, each in zip((source, target), axes, strict=True)
    ]
    return reduced[0], reduced[1], axes[0], axes[1]
