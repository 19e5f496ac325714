"""Coordinate reconstruction: how close mapped vectors lie to the target's own.

A diagnostic, not the goal: a map can lie close and still scramble the ranking of near ties, or lie
off and keep every neighbour (see `isthmus.evaluate.preservation`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray
from isthmus._validate import as_matrix, check_pairs
from isthmus.errors import DimensionError
from isthmus.evaluate import bootstrap
from isthmus.evaluate.report import Value

__all__ = ["as_both", "cos_to_target", "mse", "r2"]


def cos_to_target(mapped: npt.ArrayLike, target: npt.ArrayLike) -> FloatArray:
    """Return the cosine of each mapped row to its target row.

    Parameters
    ----------
    mapped, target : array-like of shape (m, dim)
        Row i of both is the same object.

    Returns
    -------
    FloatArray of shape (m,)
        In [-1, 1]; 0 where the mapped row has no direction; NaN where the target row has none.

    Raises
    ------
    CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError

    Examples
    --------
    >>> cos_to_target([[2.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]).tolist()
    [1.0, 0.0]
    """
    first, second = as_both(mapped, target)
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    products = np.einsum("md,md->m", first, second)
    cosines: FloatArray = np.zeros_like(lengths)
    np.divide(products, lengths, out=cosines, where=lengths > 0)
    cosines[~second.any(axis=1)] = np.nan
    return cosines.clip(-1.0, 1.0)


def mse(mapped: npt.ArrayLike, target: npt.ArrayLike) -> FloatArray:
    """Return the mean squared difference per coordinate of each mapped row to its target row.

    Parameters
    ----------
    mapped, target : array-like of shape (m, dim)

    Returns
    -------
    FloatArray of shape (m,)
        From 0, in squared units of the target's coordinates. The mean over coordinates, not the
        sum: multiply by ``dim`` for the squared distance.

    Raises
    ------
    CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError

    Examples
    --------
    >>> mse([[1.0, 0.0]], [[0.0, 0.0]]).tolist()
    [0.5]
    """
    first, second = as_both(mapped, target)
    means: FloatArray = ((first - second) ** 2).mean(axis=1)
    return means


def r2(mapped: npt.ArrayLike, target: npt.ArrayLike, *, seed: int = 0) -> Value:
    """Return the share of the target's variance that the map reconstructs, for the whole set.

    1 - sum |mapped - target|^2 / sum |target - mean target|^2, pooled over coordinates. Not the
    mean of per-coordinate R2 values, in which a coordinate without variance counts as much as the
    first principal component.

    Parameters
    ----------
    mapped, target : array-like of shape (m, dim)
    seed : int, default 0
        Of the draws for the interval.

    Returns
    -------
    Value
        At most 1; 0 for the map that always says the mean; NaN where all target rows are alike.

    Raises
    ------
    CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError

    Examples
    --------
    >>> r2([[0.0], [2.0]], [[0.0], [2.0]]).mean
    1.0
    """
    first, second = as_both(mapped, target)
    missed = ((first - second) ** 2).sum(axis=1)
    spread = ((second - second.mean(axis=0)) ** 2).sum(axis=1)
    lost, low, high = bootstrap.ratio(missed, spread, seed=seed)
    return Value(name="r2", mean=1.0 - lost, low=1.0 - high, high=1.0 - low)


def as_both(mapped: npt.ArrayLike, target: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return both sides as float64 of one shape (m, dim), checked.

    Raises
    ------
    CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError
    """
    first = as_matrix(mapped, name="mapped")
    second = as_matrix(target, name="target")
    check_pairs(first, second, minimum=1)
    if first.shape[1] != second.shape[1]:
        raise DimensionError(
            expected=f"mapped rows with the target's {second.shape[1]} columns",
            got=f"{first.shape[1]} columns",
            do="map the source rows into the target space first",
        )
    return first.astype(np.float64), second.astype(np.float64)
