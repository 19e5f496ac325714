"""Canonical directions of a transport plan and anchor pairs: the map of AnchorCCA, in one call."""

from __future__ import annotations

import numpy as np

from isthmus._linalg import cross_product
from isthmus._types import FloatArray
from isthmus.maps._sides import Sides
from isthmus.transport import Coupling

__all__ = ["PLAN_PAIRS", "RIDGE", "plan_directions"]

RIDGE, PLAN_PAIRS = 0.3, 2_000.0
"""See `AnchorCCA`, whose defaults they are."""
POWER = 0.5
"""Of the correlation, on each side: the inner product of two rows then weighs every direction by
its correlation."""
LEAST_CORRELATION = 1e-4
"""Of the largest: directions under it say nothing, and rounding decides which they are."""


def plan_directions(
    sides: Sides, plan: Coupling, *, ridge: float = RIDGE, plan_pairs: float | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the scaled directions of both sides, and the correlations between them.

    Parameters
    ----------
    sides : Sides
    plan : Coupling
        Of its pools.
    ridge : float
        Added to each covariance, as a share of its mean variance.
    plan_pairs : float, optional
        As how many pairs the plan counts: by default the rows of the smaller pool, at most 2,000.

    Returns
    -------
    source : FloatArray of shape (dim_source, n_components), float64
    correlations : FloatArray of shape (n_components,)
        The largest first.
    target : FloatArray of shape (dim_target, n_components), float64
    """
    if plan_pairs is None:
        plan_pairs = min(PLAN_PAIRS, *(len(pool) for pool in sides.pools))
    whiteners = [_whitener(rows, ridge) for rows in sides.stacked]
    cross = whiteners[0] @ _cross_covariance(sides, plan, plan_pairs) @ whiteners[1]
    left, correlations, right = np.linalg.svd(cross, full_matrices=False)
    kept = correlations > LEAST_CORRELATION * correlations[0]
    scale = correlations[kept] ** POWER
    source = whiteners[0] @ left[:, kept] * scale
    return source, correlations[kept], whiteners[1] @ right[kept].T * scale


def _cross_covariance(sides: Sides, plan: Coupling, plan_pairs: float) -> FloatArray:
    anchors, weight = sides.anchors, sides.weight
    n = len(anchors[0])
    share = n / (n + plan_pairs)
    paired = cross_product(*anchors, weight=weight) / (n if weight is None else weight.sum())
    coupled: FloatArray = share * paired + (1 - share) * _carry(plan, *sides.pools)
    return coupled


def _carry(plan: Coupling, source: FloatArray, target: FloatArray) -> FloatArray:
    """Return X^T P Y over the mass of P, tile by tile, float64."""
    total = np.zeros((source.shape[1], target.shape[1]))
    mass = 0.0
    for rows, tile in plan.tiles():
        mass += float(tile.sum(dtype=np.float64))
        total += source[rows].T.astype(np.float64) @ (tile @ target)
    return total / mass


def _whitener(rows: FloatArray, ridge: float) -> FloatArray:
    """Return the inverse root of the ridged covariance, symmetric: (dim, dim), float64."""
    covariance = cross_product(rows) / len(rows)
    values, vectors = np.linalg.eigh(covariance)
    whitener: FloatArray = (vectors / np.sqrt(values + ridge * values.mean())) @ vectors.T
    return whitener
