"""Rows as a collection holds them, bad ones too."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray
from isthmus._validate import as_matrix

__all__ = ["as_any_rows"]


def as_any_rows(values: npt.ArrayLike, *, name: str, dim: int | None = None) -> FloatArray:
    """Return float32 or float64 rows; those with NaN or infinity become NaN throughout.

    Parameters
    ----------
    values : array-like of shape (n, dim)
    name : str
    dim : int, optional

    Raises
    ------
    DimensionError, EmptyInputError, InvalidVectorsError

    Examples
    --------
    >>> as_any_rows([[1.0, np.nan], [1.0, 2.0]], name="vectors").tolist()
    [[nan, nan], [1.0, 2.0]]
    """
    try:
        array = np.asarray(values)
    except ValueError:
        return as_matrix(values, name=name, dim=dim)  # rows of several lengths: raises
    if array.dtype.kind != "f" or array.ndim != 2:
        return as_matrix(array, name=name, dim=dim)
    bad = ~np.isfinite(array).all(axis=1)
    if not bad.any():
        return as_matrix(array, name=name, dim=dim)
    made = np.array(as_matrix(np.where(bad[:, None], 0, array), name=name, dim=dim))
    made[bad] = np.nan
    return made
