"""What a bridge does to a row: the one place, for held-out rows and for finished bridges alike."""

from __future__ import annotations

import numpy.typing as npt

from isthmus._linalg import normalise
from isthmus._types import FloatArray
from isthmus.maps import Compose
from isthmus.spaces import Space

__all__ = ["carry"]


def carry(fitted: Compose, rows: npt.ArrayLike, target: Space) -> FloatArray:
    """Map source rows (n, dim_source), of unit length where they land among unit vectors.

    Parameters
    ----------
    fitted : Compose
    rows : array-like of shape (n, dim_source)
    target : Space

    Returns
    -------
    FloatArray of shape (n, dim), float32
    """
    mapped = fitted.transform(rows)
    unit = target.normalized and fitted.lands_in == "target"
    return normalise(mapped) if unit else mapped
