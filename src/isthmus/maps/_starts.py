"""Where matching two clouds without pairs may start: three ways to a first few anchors.

`clusters`: k-means on both sides, centroids matched so that their similarities agree, as the
quadratic assignment that swaps improve from many random starts (Dar 2025). `spectral`: the same
assignment from the eigenvectors of both similarity matrices (Umeyama 1988) before the swaps.
`gaussian`: principal axes in the order of their variance, with signs by the third moment: what
takes one Gaussian to another is known but for a rotation among equal variances and for signs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from isthmus._linalg import cross_product, eigen_directions, normalise
from isthmus._types import FloatArray, IntArray
from isthmus.evaluate.k_means import cluster_from

__all__ = ["Anchors", "clusters", "gaussian", "improve_by_swaps", "random_match", "spectral"]

SAME = 1e-10
"""A swap that gains less is rounding."""

KMEANS_ROWS = 10
"""Rows per cluster at least."""

SPECTRAL_WIDTH = 8
"""Eigenvectors whose signs are drawn; their eigenvalues fall fast."""


@dataclass(frozen=True, eq=False)
class Anchors:
    """Pairs of vectors that are believed to belong together.

    Parameters
    ----------
    source : FloatArray of shape (n_anchors, dim_source)
    target : FloatArray of shape (n_anchors, dim_target)
    weight : FloatArray of shape (n_anchors,)
    objective : float, default 0
        How well the similarities within both sides agree, at most 1: a correlation.
    """

    source: FloatArray
    target: FloatArray
    weight: FloatArray
    objective: float = 0.0

    def cross(self) -> FloatArray:
        """Return the weighted cross-product (dim_source, dim_target), float64."""
        return cross_product(self.source, self.target, weight=self.weight)


@dataclass(frozen=True, eq=False)
class _Centroids:
    """Centroids (k, dim) of both sides, and how many rows each has (k,)."""

    source: FloatArray
    target: FloatArray
    sizes: tuple[FloatArray, FloatArray]

    @classmethod
    def of(
        cls, source: FloatArray, target: FloatArray, *, count: int, rng: np.random.Generator
    ) -> Self:
        count = max(2, min(count, min(len(source), len(target)) // KMEANS_ROWS))
        (left, left_sizes), (right, right_sizes) = (
            _centroids(side, count, rng) for side in (source, target)
        )
        return cls(left, right, (left_sizes, right_sizes))

    def matched(self, order: IntArray, objective: float = 0.0) -> Anchors:
        """Return anchors, each target centroid where ``order`` has it."""
        weight = np.sqrt(self.sizes[0] * self.sizes[1][order])
        return Anchors(self.source, self.target[order], weight, objective)

    def best(self, orders: Iterable[IntArray], grams: Sequence[FloatArray]) -> Anchors:
        """Improve orders by swaps, and return the anchors of the best."""
        tries = [improve_by_swaps(grams[0], grams[1], order) for order in orders]
        return self.matched(*max(tries, key=lambda found: found[1]))

    def grams(self) -> list[FloatArray]:
        """Return the similarities within both sides."""
        return [_centred_gram(side) for side in (self.source, self.target)]


def clusters(
    source: FloatArray,
    target: FloatArray,
    *,
    count: int,
    restarts: int,
    rng: np.random.Generator,
) -> Anchors:
    """Match centroids by swaps from random assignments, and keep the best of ``restarts``."""
    found = _Centroids.of(source, target, count=count, rng=rng)
    orders = (rng.permutation(len(found.source)) for _ in range(restarts))
    return found.best(orders, found.grams())


def random_match(
    source: FloatArray, target: FloatArray, *, count: int, rng: np.random.Generator
) -> Anchors:
    """Match centroids in an order of chance: what a good match is to be better than."""
    found = _Centroids.of(source, target, count=count, rng=rng)
    return found.matched(rng.permutation(len(found.source)))


def spectral(
    source: FloatArray,
    target: FloatArray,
    *,
    count: int,
    restarts: int,
    rng: np.random.Generator,
) -> Anchors:
    """Match centroids by eigenvectors of their similarities with drawn signs, then by swaps.

    An eigenvector's sign is free, and Umeyama takes absolute values, which tell little; so signs of
    the strongest are drawn, ``restarts`` times, and the best match stays.
    """
    from scipy.optimize import linear_sum_assignment

    found = _Centroids.of(source, target, count=count, rng=rng)
    grams = found.grams()
    first, second = (_scaled_eigenvectors(gram) for gram in grams)
    signs = (rng.choice([-1.0, 1.0], first.shape[1]) for _ in range(restarts))
    orders = (linear_sum_assignment(-(first * each) @ second.T)[1] for each in signs)
    return found.best(orders, grams)


def _scaled_eigenvectors(gram: FloatArray) -> FloatArray:
    """Return the strongest eigenvectors in columns, times the roots of their eigenvalues."""
    values, vectors = np.linalg.eigh(gram)
    kept = slice(-1, -min(SPECTRAL_WIDTH, len(values)) - 1, -1)
    scaled: FloatArray = vectors[:, kept] * np.sqrt(np.maximum(values[kept], 0.0))
    return scaled


def gaussian(source: FloatArray, target: FloatArray) -> Anchors:
    """Match principal axes by the order of their variance, and signs by the third moment."""
    axes = []
    for side in (source, target):
        values, directions = eigen_directions(cross_product(side) / len(side))
        along = side.astype(np.float64) @ directions
        signs = np.where((along**3).mean(axis=0) < 0, -1.0, 1.0)
        axes.append((values, directions * signs))
    width = min(len(axes[0][0]), len(axes[1][0]))
    (left_values, left), (right_values, right) = axes
    weight = np.sqrt(left_values[:width] * right_values[:width])
    return Anchors(left[:, :width].T.copy(), right[:, :width].T.copy(), weight)


def improve_by_swaps(
    first: FloatArray, second: FloatArray, order: IntArray
) -> tuple[IntArray, float]:
    """Swap two places at a time, the best swap first, until none gains.

    Parameters
    ----------
    first, second : FloatArray of shape (k, k)
        Symmetric.
    order : IntArray of shape (k,)
        Row ``order[i]`` of the second stands for row i of the first.

    Returns
    -------
    order : IntArray of shape (k,)
    objective : float
        Sum of ``first * second[order][:, order]``.

    Examples
    --------
    >>> first = np.array([[0.0, 3, 1], [3, 0, 2], [1, 2, 0]])
    >>> second = first[[2, 0, 1]][:, [2, 0, 1]]
    >>> improve_by_swaps(first, second, np.arange(3))
    (array([1, 2, 0]), 28.0)
    """
    order = np.array(order)
    moved = second[order][:, order]
    own = np.diag(first)
    for _ in range(20 * len(order)):
        product = first @ moved
        straight, other = np.diag(product), np.diag(moved)
        gain = product + product.T - straight[:, None] - straight
        gain -= (own[:, None] - first) * (moved - other[:, None])
        gain -= (first - own) * (other - moved)
        gain = 2 * gain + (own[:, None] - own) * (other - other[:, None])
        i, j = divmod(int(gain.argmax()), len(order))
        if gain[i, j] <= SAME:
            break
        order[[i, j]] = order[[j, i]]
        moved[[i, j]] = moved[[j, i]]
        moved[:, [i, j]] = moved[:, [j, i]]
    return order, float(np.sum(first * moved))


def _centroids(
    rows: FloatArray, count: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return k-means centroids from one k-means++ start, and how many rows each has."""
    from sklearn.cluster import kmeans_plusplus

    wide = rows.astype(np.float64)
    _, start = kmeans_plusplus(wide, count, random_state=int(rng.integers(2**31)))
    labels, _ = cluster_from(wide, start)
    member = np.zeros((count, len(rows)))
    member[labels, np.arange(len(rows))] = 1.0
    sizes = member.sum(axis=1)
    return member @ wide / np.maximum(sizes, 1.0)[:, None], sizes


def _centred_gram(centroids: FloatArray) -> FloatArray:
    """Return similarities of centroids, centred both ways, of Frobenius norm one."""
    unit = normalise(centroids).astype(np.float64)
    gram = unit @ unit.T
    gram = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, None] + gram.mean()
    norm = float(np.linalg.norm(gram))
    return np.asarray(gram / norm) if norm > 0 else gram
