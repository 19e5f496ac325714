"""Iterative closest point: match mutual nearest neighbours, rotate, and match again.

From principal axes, each pointing where its third moment is positive, or from another alignment:

    pairs (i, j) with x_i R and y_j each other's nearest;  R = Procrustes of the pairs

until the pairs stay as they are. When to use it: as a baseline without pairs, or to polish what
`wasserstein_procrustes` found. It stays at the nearest rest point: without a good start, and on
clouds whose axes have much the same variance, that is no answer. Sides of unequal widths are
brought to the smaller one by PCA.
Shapes: (n_source, dim_source) and (n_target, dim_target) to a rotation of the smaller width.
References: Besl and McKay (1992); Hoshen and Wolf (2018) for vectors of words.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from isthmus._linalg import affine, orthogonal_procrustes
from isthmus._types import FloatArray
from isthmus._validate import check_whole
from isthmus.neighbors import mutual_nearest_neighbors
from isthmus.transport.alignment import Alignment

__all__ = ["icp"]


def icp(
    source: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    start: Alignment | None = None,
    max_iterations: int = 50,
    max_rows: int = 5_000,
    seed: int = 0,
) -> Alignment:
    """Rotate one cloud onto another, from where it is nearly right.

    Parameters
    ----------
    source : array-like of shape (n_source, dim_source)
    target : array-like of shape (n_target, dim_target)
    start : Alignment, optional
        Of the same spaces. Default: principal axes, signs by the third moment.
    max_iterations : int, default 50
    max_rows : int, default 5000
        Rows of each side that are matched: a random sample where there are more.
    seed : int, default 0
        Of that sample.

    Returns
    -------
    Alignment
        Its curve holds the share of rows that are in a mutual pair; converged where the pairs came
        to rest.

    Raises
    ------
    DegenerateVectorsError, ParameterError, ZeroVectorError, DimensionError, EmptyInputError,
    InvalidVectorsError

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(1.0, size=(200, 3)) * [3, 2, 1]
    >>> turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    >>> cost = icp(X, X @ turn).cost(X, X @ turn).tile(slice(None), slice(None))
    >>> float((cost.argmin(axis=1) == np.arange(200)).mean())
    1.0
    """
    check_whole(max_iterations, name="max_iterations")
    check_whole(max_rows, name="max_rows")
    found = start if start is not None else Alignment.of(source, target)
    rng = np.random.default_rng(seed)
    X, Y = (
        _some(frame.carry(rows), max_rows, rng)
        for frame, rows in ((found.source, source), (found.target, target))
    )
    rotation = found.rotation if start is not None else np.diag(_signs(X) * _signs(Y))
    curve: list[float] = []
    last = np.empty((0, 2), dtype=np.int64)
    settled = False
    for _ in range(max_iterations):
        pairs = mutual_nearest_neighbors(affine(X, rotation), Y, k=1)
        rows = np.column_stack((pairs.source_rows, pairs.target_rows))
        curve.append(len(rows) / min(len(X), len(Y)))
        settled = np.array_equal(rows, last)
        if settled:
            break
        rotation = orthogonal_procrustes(X[rows[:, 0]], Y[rows[:, 1]])
        last = rows
    return replace(found, rotation=rotation, curve=np.asarray(curve), converged=settled)


def _signs(rows: FloatArray) -> FloatArray:
    """Return the sign of the third moment of each column."""
    moments = (rows.astype(np.float64) ** 3).mean(axis=0)
    return np.where(moments < 0, -1.0, 1.0)


def _some(rows: FloatArray, most: int, rng: np.random.Generator) -> FloatArray:
    """Return rows without those of length zero, which have no neighbour; a sample of them."""
    kept = rows[np.any(rows != 0, axis=1)]
    if len(kept) <= most:
        return kept
    return kept[np.sort(rng.choice(len(kept), most, replace=False))]
