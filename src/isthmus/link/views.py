"""Views: the small sets of anchor pairs that hashes are made from (vector linking, section 4)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from isthmus._threads import one_blas_thread
from isthmus._types import FloatArray, IntArray

__all__ = ["Schedule", "furthest_points", "random_points", "schedule"]

ROUNDING = 1e-9
"""Taken off before rounding up: 0.55 * 100 is 55.00000000000001."""


@dataclass(frozen=True)
class Schedule:
    """How many views an iteration has, and how many anchor pairs are in each.

    Parameters
    ----------
    views : int
    size : int
    """

    views: int
    size: int


def schedule(
    anchors: int, seeds: int, *, base_views: int, fraction: float, growth: float
) -> Schedule:
    """Return more and relatively smaller views as the anchors grow.

    With g = anchors / seeds and sf = 1 + growth log(g): ceil(base_views sf) views of
    ceil(fraction anchors / sf) anchor pairs (section 4, "View scheduling"; appendix B.2), so that
    an anchor is in about ``base_views * fraction`` views of any iteration.

    Parameters
    ----------
    anchors : int
        Anchor pairs to draw from, the seeds among them.
    seeds : int
    base_views : int
    fraction : float
    growth : float
        Zero freezes the schedule.

    Examples
    --------
    >>> schedule(15, 15, base_views=5, fraction=0.4, growth=0.3)
    Schedule(views=5, size=6)
    >>> schedule(1500, 15, base_views=5, fraction=0.4, growth=0.3)
    Schedule(views=12, size=252)
    """
    factor = 1.0 + growth * math.log(max(anchors / seeds, 1.0))
    return Schedule(
        views=math.ceil(base_views * factor - ROUNDING),
        size=math.ceil(fraction * anchors / factor - ROUNDING),
    )


def furthest_points(
    vectors: FloatArray,
    *,
    views: int,
    size: int,
    rng: np.random.Generator,
    given: FloatArray | None = None,
) -> IntArray:
    """Draw views by furthest-point sampling, each from a random start of its own.

    Each next point is the one whose nearest point of the view so far is furthest (Gonzalez 1985);
    of equals the lowest row. All views grow together: one product per step with the points added
    last, and never the distances among all points.

    Parameters
    ----------
    vectors : FloatArray of shape (n, dim), float32
        Rows of length one.
    views : int
    size : int
        At most n.
    rng : numpy.random.Generator
        Starts differ between the views while there are enough points.
    given : FloatArray of shape (n_given, dim), optional
        Points that are in every view from the beginning, but for the choice of the start.

    Returns
    -------
    IntArray of shape (views, size)
        Sorted rows of each view.

    Examples
    --------
    >>> line = np.array([[1, 0], [0.8, 0.6], [0.6, 0.8], [0, 1]], np.float32)
    >>> furthest_points(line, views=1, size=2, rng=np.random.default_rng(1))  # starts at row 1
    array([[1, 3]])
    """
    n = len(vectors)
    every = np.arange(views)
    chosen = np.empty((views, size), np.int64)
    chosen[:, 0] = rng.choice(n, size=views, replace=views > n)
    with one_blas_thread():
        # The similarity of every point to the nearest of each view: the lowest is furthest.
        nearest = vectors[chosen[:, 0]] @ vectors.T
        if given is not None:
            np.maximum(nearest, (given @ vectors.T).max(axis=0), out=nearest)
        for step in range(1, size):
            nearest[every, chosen[:, step - 1]] = np.inf
            chosen[:, step] = nearest.argmin(axis=1)
            np.maximum(nearest, vectors[chosen[:, step]] @ vectors.T, out=nearest)
    return np.sort(chosen, axis=1)


def random_points(n: int, *, views: int, size: int, rng: np.random.Generator) -> IntArray:
    """Draw views uniformly, without repetition inside a view (ablation "- FPS" of Table 4).

    Returns
    -------
    IntArray of shape (views, size)
        Sorted rows of each view, from 0 to n - 1.

    Examples
    --------
    >>> random_points(3, views=2, size=3, rng=np.random.default_rng(0)).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    drawn = [rng.choice(n, size=size, replace=False) for _ in range(views)]
    return np.sort(np.array(drawn, np.int64).reshape(views, size), axis=1)
