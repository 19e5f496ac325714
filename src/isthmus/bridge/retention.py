"""The headline of a report: how much of the native top 10 the finished bridge will keep.

Held-out rows are mapped by maps that were fitted on fewer pairs than the finished one, and they are
a sample of the rows that it will meet. Both are put right here: the value is carried to the full
number of pairs along the learning curve, and the interval is that of the mean over the rest of the
collection, not of the held-out rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from isthmus._types import FloatArray
from isthmus.evaluate.bootstrap import interval
from isthmus.evaluate.report import Value

__all__ = ["NAME", "Curve", "estimate_retention"]

NAME = "retention@10"
# Variance that the map itself adds, since it is fitted once and not on average: measured on seeds
# that no report uses: at 1, .94 of the intervals hold; at 1.5, .98, and the mean width is 1.4.
MAP_VARIANCE = 1.5
MOST_LOG_PAIRS = 50.0


@dataclass(frozen=True)
class Curve:
    """Retention against the number of pairs, through two measured points.

    With more pairs than dimensions the loss falls as 1/n, as the error of any regular estimator
    does; below that the map is still gaining directions, and retention grows as log n.

    Parameters
    ----------
    pairs : tuple of two floats
        Training pairs at the two points, the smaller first.
    retention : tuple of two floats
    dim : int
        Dimension of the source.

    Examples
    --------
    >>> curve = Curve((500.0, 1000.0), (0.50, 0.55), dim=100)
    >>> round(curve.at(2000.0), 3), curve.pairs_for(0.58)
    (0.575, 2500)
    """

    pairs: tuple[float, float]
    retention: tuple[float, float]
    dim: int

    def gain(self, n: float) -> float:
        """Return what n pairs add to the larger point, in units of the difference of the two."""
        a, b = (self._bend(size) for size in self.pairs)
        return (self._bend(n) - b) / (b - a) if b > a else 0.0

    def at(self, n: float) -> float:
        """Return the retention expected with n pairs."""
        low, high = self.retention
        return high + self.gain(n) * (high - low)

    def pairs_for(self, retention: float) -> int | None:
        """Return how many pairs should do for a retention; None where none would."""
        low, high = self.retention
        if retention <= high:
            return math.ceil(self.pairs[1])
        if high <= low:
            return None
        a, b = (self._bend(size) for size in self.pairs)
        bend = b + (retention - high) / (high - low) * (b - a)
        if self.pairs[1] >= self.dim:
            return _whole(-1.0 / bend) if bend < 0 else None
        return _whole(math.exp(bend)) if bend < MOST_LOG_PAIRS else None

    def _bend(self, n: float) -> float:
        return -1.0 / n if self.pairs[1] >= self.dim else math.log(n)


def _whole(n: float) -> int:
    return math.ceil(round(n, 6))  # rounding noise of the logarithm is no pair


def estimate_retention(
    full: FloatArray, half: FloatArray, *, gain: float, rest: int, seed: int
) -> Value:
    """Estimate the retention of a map fitted on all pairs, over the rest of the collection.

    Parameters
    ----------
    full, half : FloatArray of shape (m,)
        ``nbr_overlap@10`` per held-out row, of maps fitted on most and on about half of the pairs.
    gain : float
        `Curve.gain` at the number of pairs.
    rest : int
        Rows of the collection that are in no pair.
    seed : int

    Returns
    -------
    Value
        Mean, 95 % interval, and the held-out values, carried to the full number of pairs.
    """
    carried = full + gain * (full - half)
    mean = float(carried.mean())
    low, high = interval(carried, seed=seed)
    # Var(mean of held-out rows - mean of the rest) = s^2 (1/m + 1/rest); never wider than for as
    # many rows again, since what is asked is how rows like these fare.
    m = len(full)
    width = math.sqrt(MAP_VARIANCE * (1.0 + (m / max(rest, m) if rest else 0.0)))
    bounds = [float(np.clip(mean + width * (end - mean), 0.0, 1.0)) for end in (low, high)]
    return Value(NAME, float(np.clip(mean, 0.0, 1.0)), bounds[0], bounds[1], carried)
