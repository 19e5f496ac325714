"""A mixture of two normal distributions in many dimensions, from a first guess."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from isthmus._types import FloatArray

__all__ = ["moments", "two_gaussians"]

ITERATIONS = 8
SETTLED = 1e-4
RIDGE = 1e-3
"""Of the mean variance: directions without any get so much."""


def moments(rows: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the weighted mean, and the weighted covariance as float64.

    Parameters
    ----------
    rows : FloatArray of shape (n, dim), float32
    weights : FloatArray of shape (n,)
    """
    total = weights.sum(dtype=np.float64)
    mean = (weights.astype(np.float64) @ rows) / total
    spread = (rows - mean.astype(np.float32)) * np.sqrt(weights, dtype=np.float32)[:, None]
    return mean.astype(np.float32), (spread.T @ spread).astype(np.float64) / total


def two_gaussians(rows: FloatArray, start: FloatArray) -> FloatArray:
    """Return the posterior of the second component.

    Covariances are shrunk towards a ball by the oracle approximating shrinkage of Chen et al. 2010.

    Parameters
    ----------
    rows : FloatArray of shape (n, dim), float32
    start : FloatArray of shape (n,)
        First guess of the posterior.

    Returns
    -------
    FloatArray of shape (n,)
        Float64, mostly 0 or 1: in many dimensions the two are far apart.
    """
    posterior = start.astype(np.float64)
    for _ in range(ITERATIONS):
        share = posterior.mean()
        if min(share, 1 - share) * len(rows) < 5:
            break
        odds = (
            _log_density(rows, posterior)
            - _log_density(rows, 1 - posterior)
            + np.log(share / (1 - share))
        )
        new = 1 / (1 + np.exp(-np.clip(odds, -500, 500)))
        moved = np.abs(new - posterior).mean()
        posterior = new
        if moved < SETTLED:
            break
    return posterior


def _log_density(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the log density under the normal distribution of these weights, but for a constant."""
    mean, covariance = moments(rows, weights)
    size = weights.sum() ** 2 / (weights**2).sum()
    factor = np.linalg.cholesky(_shrink(covariance, size))
    white = solve_triangular(
        factor.astype(np.float32), (rows - mean).T, lower=True, check_finite=False
    )
    squares = np.einsum("ij,ij->j", white, white, dtype=np.float64)
    density: FloatArray = -0.5 * squares - np.log(np.diag(factor)).sum()
    return density


def _shrink(covariance: FloatArray, size: float) -> FloatArray:
    dim = len(covariance)
    trace, square = np.trace(covariance), (covariance**2).sum()
    above = (size + 1 - 2 / dim) * (square - trace**2 / dim)
    amount = min(1.0, ((1 - 2 / dim) * square + trace**2) / above) if above > 0 else 1.0
    shrunk = (1 - amount) * covariance
    shrunk[np.diag_indices(dim)] += (amount + RIDGE) * trace / dim + 1e-12
    return shrunk
