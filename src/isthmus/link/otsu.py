"""Otsu's threshold: where to cut values that form two heaps."""

from __future__ import annotations

import numpy as np

from isthmus._types import FloatArray
from isthmus.errors import EmptyInputError

__all__ = ["otsu_threshold"]


def otsu_threshold(values: FloatArray, *, bins: int | None = None) -> float:
    """Return the least value of the upper of the two classes that lie furthest apart.

    Maximises the between-class variance w0 w1 (mean0 - mean1)^2 over all cuts between two
    different values; of equally good cuts the lowest.

    Parameters
    ----------
    values : FloatArray of shape (n,)
    bins : int, optional
        Bins of equal width that values are counted in first, as for grey levels (Otsu used 256);
        every different value is a bin of its own by default.

    Returns
    -------
    float
        Values at least this large are the upper class. The one value there is where all are equal:
        then everything is in the upper class.

    Raises
    ------
    EmptyInputError
        No values.

    References
    ----------
    N. Otsu (1979). A threshold selection method from gray-level histograms.

    Examples
    --------
    >>> otsu_threshold(np.array([0.1, 0.2, 0.1, 0.8, 0.9]))
    0.8
    """
    if not len(values):
        raise EmptyInputError(expected="values to cut", got="none", do="check for none first")
    levels, least, counts = _histogram(np.asarray(values, np.float64), bins)
    if len(levels) == 1:
        return float(least[0])
    below = np.cumsum(counts)[:-1]
    above = len(values) - below
    sums = np.cumsum(counts * (levels - levels[0]))  # from the lowest level: less is lost
    gap = (sums[-1] - sums[:-1]) / above - sums[:-1] / below
    spread = below.astype(np.float64) * above * gap**2
    return float(least[1 + int(np.argmax(spread))])


def _histogram(values: FloatArray, bins: int | None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the level of each bin that is not empty, its least value, and its count."""
    exact, counts = np.unique(values, return_counts=True)
    if bins is None or len(exact) == 1:
        return exact, exact, counts.astype(np.float64)
    width = (exact[-1] - exact[0]) / bins
    place = np.minimum(((exact - exact[0]) / width).astype(np.int64), bins - 1)
    kept, first = np.unique(place, return_index=True)
    total = np.add.reduceat(counts, first)
    return exact[0] + (kept + 0.5) * width, exact[first], total.astype(np.float64)
