"""The closed-form maps that the training of a learned map may start from, as x W + b."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from isthmus._types import FloatArray
from isthmus.maps.base import Map
from isthmus.maps.procrustes import Procrustes
from isthmus.maps.procrustes_ridge import ProcrustesRidge
from isthmus.maps.ridge import Ridge

__all__ = ["CLOSED_FORMS", "fit_closed_form"]

CLOSED_FORMS: Mapping[str, type[Map]] = {
    made.name: made for made in (Procrustes, ProcrustesRidge, Ridge)
}
"""Affine maps by name, the more constrained first."""


def fit_closed_form(
    name: str, source: FloatArray, target: FloatArray, weight: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Return W (dim_source, dim_target) and b (dim_target,) of the map of that name, float32.

    Read off from what it does to the origin and to the axes, so that no map's arrays need to be
    known here.

    Examples
    --------
    >>> rows = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], dtype=np.float32)
    >>> weight, bias = fit_closed_form("procrustes", rows, rows + 2, None)
    >>> weight.round(3).tolist(), bias.round(3).tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [2.0, 2.0])
    """
    fitted = CLOSED_FORMS[name]().fit(source, target, sample_weight=weight)
    dim = source.shape[1]
    # As far out as the rows lie: nearer, a large bias would drown the difference in float32.
    reach = np.exp2(np.ceil(np.log2(np.abs(source).max()))).astype(np.float32)
    bias = fitted.transform(np.zeros((1, dim), np.float32))[0]
    return (fitted.transform(reach * np.eye(dim, dtype=np.float32)) - bias) / reach, bias
