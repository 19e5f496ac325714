"""Three levels of energy: the usual rows, those that stick out, and those of another space."""

from __future__ import annotations

import numpy as np

from isthmus._types import FloatArray

__all__ = ["high_level"]

ITERATIONS = 100
NARROWEST = 0.15
"""Least standard deviation of a level: scores are logarithms, and two models differ by far more."""
FLOOR = 0.35
"""Least energy that the middle of the highest level has. Topics of one model stay under it, and are
the second level; a ball has 1."""
FEWEST = 3


def high_level(scores: FloatArray, start: FloatArray) -> FloatArray:
    """Return the posterior of the highest level, rising with the score.

    The usual rows alone are no normal distribution: one with a tail fits them as two levels.

    Parameters
    ----------
    scores : FloatArray of shape (n,), float64
        Logarithms of energies.
    start : FloatArray of shape (n,)
        First guess of the posterior.
    """
    rows, floor = len(scores), float(np.log(FLOOR))
    low = scores < np.median(scores[start < 0.5]) if (start < 0.5).any() else scores < floor
    weights = np.stack([(1 - start) * low, (1 - start) * ~low, start]) + 1e-6
    weights /= weights.sum(axis=0)
    for _ in range(ITERATIONS):
        counts = weights.sum(axis=1)
        if counts[2] < FEWEST:
            return np.zeros(rows)
        means = weights @ scores / counts
        means[2] = max(means[2], floor)
        spread = (scores - means[:, None]) ** 2
        variances = np.maximum((weights * spread).sum(axis=1) / counts, NARROWEST**2)
        density = -0.5 * (spread / variances[:, None] + np.log(variances)[:, None])
        density += np.log(counts / rows)[:, None]
        new = np.exp(density - density.max(axis=0))
        new /= new.sum(axis=0)
        moved = np.abs(new - weights).max()
        weights = new
        if moved < 1e-4:
            break
    posterior: FloatArray = weights[2]
    # the widest level wins at both ends: what lies below the usual rows is not foreign
    posterior[scores <= max(means[0], means[1])] = 0.0
    order = np.argsort(scores, kind="stable")
    posterior[order] = np.maximum.accumulate(posterior[order])
    return posterior
