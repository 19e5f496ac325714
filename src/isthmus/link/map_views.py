"""Views of two clouds through maps fitted on anchors: each brings both into one space.

They differ in what they can get wrong:

- ``in_sample``: a rotation fitted on all anchors, the link in question among them;
- ``held_out``: the same, each source row through a map that its own anchor pair had no part in;
- ``ridge``, ``ridge_back``: linear regression in both directions, each row left out of its own fit.

Hashes of distances to anchors (vector linking, section 4) and how densely rows lie were tried as
further evidence: on 13 problems they moved the mean F1 by less than .003.

All take `Clouds` and `Anchors` and return (n_source, dim) and (n_target, dim), rows of length one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from isthmus._linalg import affine, cross_product, mean_rows, normalise, singular_directions
from isthmus._threads import one_blas_thread
from isthmus._types import FloatArray
from isthmus.link.clouds import Clouds
from isthmus.link.growth import Anchors, principal_pairs

__all__ = ["VIEWS", "View", "in_sample"]

View = tuple[FloatArray, FloatArray]

POWER = 0.5
"""Of the singular values, on each side: shared directions count by how much they share."""

FOLDS = 5
RIDGE = 0.1
"""Penalty, as a share of the mean eigenvalue of the anchors' covariance."""

TINY = 1e-30
"""Instead of the trace where all anchors are one point."""


def in_sample(clouds: Clouds, anchors: Anchors, rng: np.random.Generator) -> View:
    """Rotate by all anchors."""
    del rng
    left, right = clouds.source.white, clouds.target.white
    return principal_pairs(
        left,
        right,
        left[anchors.source_rows],
        right[anchors.target_rows],
        anchors.weight,
        power=POWER,
    )


def held_out(clouds: Clouds, anchors: Anchors, rng: np.random.Generator) -> View:
    """Rotate each source row by the anchors of the other folds."""
    if len(anchors) < 2:  # nothing is left of one
        return in_sample(clouds, anchors, rng)
    left, right = clouds.source.white, clouds.target.white
    folds = min(FOLDS, len(anchors))
    label = rng.permutation(len(anchors)) % folds
    fold = rng.integers(0, folds, len(left))
    fold[anchors.source_rows] = label
    out = np.empty((len(left), right.shape[1]), np.float32)
    for one in range(folds):
        kept, rows = anchors.select(label != one), fold == one
        with one_blas_thread():
            x, y = left[kept.source_rows], right[kept.target_rows]
            mean_x = mean_rows(x, weight=kept.weight)
            mean_y = mean_rows(y, weight=kept.weight)
            cross = cross_product(x, y, mean_x=mean_x, mean_y=mean_y, weight=kept.weight)
            u, strength, v = singular_directions(cross)
            weight = (u * (strength / strength[:1]) ** (2 * POWER)) @ v.T
            bias = -mean_x @ weight
        out[rows] = affine(left[rows], weight, bias)
    mean = mean_rows(right[anchors.target_rows], weight=anchors.weight)
    return normalise(out), normalise(right - mean.astype(np.float32))


def ridge(clouds: Clouds, anchors: Anchors, rng: np.random.Generator) -> View:
    """Predict target rows from source rows."""
    del rng
    return _regressed(clouds.source.rows, clouds.target.rows, anchors)


def ridge_back(clouds: Clouds, anchors: Anchors, rng: np.random.Generator) -> View:
    """Predict source rows from target rows."""
    del rng
    turned = Anchors(anchors.target_rows, anchors.source_rows, anchors.weight)
    predicted, source = _regressed(clouds.target.rows, clouds.source.rows, turned)
    return source, predicted


VIEWS: tuple[Callable[[Clouds, Anchors, np.random.Generator], View], ...] = (
    in_sample,
    held_out,
    ridge,
    ridge_back,
)
"""Every view; the first two also propose candidates."""


def _regressed(source: FloatArray, target: FloatArray, anchors: Anchors) -> View:
    """Return leave-one-out predictions of the target for every source row, and the target."""
    from scipy.linalg import cho_factor, cho_solve

    with one_blas_thread():
        x, y = source[anchors.source_rows], target[anchors.target_rows]
        mean_x = mean_rows(x, weight=anchors.weight)
        mean_y = mean_rows(y, weight=anchors.weight)
        gram = cross_product(x, mean_x=mean_x, weight=anchors.weight)
        gram[np.diag_indices_from(gram)] += RIDGE * max(np.trace(gram), TINY) / len(gram)
        factor = cho_factor(gram, check_finite=False)
        cross = cross_product(x, y, mean_x=mean_x, mean_y=mean_y, weight=anchors.weight)
        weight = cho_solve(factor, cross, check_finite=False)
        centred = x - mean_x
        solved = cho_solve(factor, centred.T, check_finite=False).T
        leverage = anchors.weight * np.einsum("nd,nd->n", centred, solved)
        bias = -mean_x @ weight
    predicted = affine(source, weight, bias)
    own = predicted[anchors.source_rows] - leverage[:, None] * (y - mean_y)
    predicted[anchors.source_rows] = own / np.maximum(1.0 - leverage, 1e-6)[:, None]
    return normalise(predicted), normalise(target - mean_y.astype(np.float32))
