"""Spectral coordinates of a cloud of rows, and of rows that come later.

The leading eigenvectors of the random walk on the graph of nearest neighbours, with edges
``exp(-|x - x'|^2 / (2 s^2))``. A row that comes later takes the mean of its neighbours' coordinates
over the eigenvalue (the Nystroem formula), which for a row of the cloud is what an eigenvector is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isthmus._types import FloatArray, IntArray
from isthmus.neighbors import Exact

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["extend", "spectral_coordinates"]

MOST_DENSE = 1_000
"""Rows up to which the matrix is written out: quicker, and exact where eigenvalues are equal."""

LEAST_EIGENVALUE = 1e-2
"""Dividing by less would make more of rounding and chance than of the cloud."""

BLOCK_ROWS = 4_096


def spectral_coordinates(
    rows: FloatArray, count: int, *, neighbors: int, seed: int
) -> tuple[FloatArray, float]:
    """Return what each row gives to its neighbours, and the width of the kernel.

    Parameters
    ----------
    rows : FloatArray of shape (n, dim)
        At least two different ones.
    count : int
        Eigenvectors, without the one that is the same everywhere; fewer come out where an
        eigenvalue is under 0.01.
    neighbors : int
        Edges of each row, without itself; at most n - 1 are taken.
    seed : int
        Of the first vector of the iteration.

    Returns
    -------
    values : FloatArray of shape (n, count), float64
        Eigenvectors over their eigenvalues; their rows have variance one before the division.
    width : float
        s: the median distance to the neighbour in the middle of the list.
    """
    graph, width = _graph(rows, min(neighbors, len(rows) - 1))
    degree = np.asarray(graph.sum(axis=1)).ravel()
    values, vectors = _leading(graph, degree, min(count, len(rows) - 1), seed=seed)
    kept = values > LEAST_EIGENVALUE
    values, vectors = values[kept], vectors[:, kept]
    walk = vectors * np.sqrt(degree.sum() / degree)[:, None]
    return walk / values, width


def extend(
    new: FloatArray, rows: FloatArray, values: FloatArray, *, width: float, neighbors: int
) -> FloatArray:
    """Return the coordinates of new rows: the mean of their neighbours' values, by the kernel.

    Parameters
    ----------
    new : FloatArray of shape (m, dim)
    rows : FloatArray of shape (n, dim)
    values : FloatArray of shape (n, count)
    width : float
    neighbors : int

    Returns
    -------
    FloatArray of shape (m, count), float32
    """
    found = Exact(rows, metric="l2").search(new, k=min(neighbors + 1, len(rows)))
    out = np.empty((len(new), values.shape[1]), np.float32)
    for start in range(0, len(new), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        squared = found.scores[part].astype(np.float64) ** 2
        # From the nearest on: a row far from all others still has neighbours.
        weight = np.exp((squared[:, :1] - squared) / (2 * width**2))
        weight /= weight.sum(axis=1, keepdims=True)
        total = np.zeros((len(weight), values.shape[1]))
        for place in range(weight.shape[1]):
            total += weight[:, place, None] * values[found.rows[part, place]]
        out[part] = total
    return out


def _graph(rows: FloatArray, k: int) -> tuple[csr_array, float]:
    from scipy.sparse import csr_array

    n = len(rows)
    found = Exact(rows, metric="l2").search(rows, k=k, exclude=np.arange(n))
    distance = -found.scores.astype(np.float64)
    width = float(np.median(distance[:, (k - 1) // 2])) or float(distance.max()) or 1.0
    weight = np.exp(-(distance**2) / (2 * width**2))
    ends = np.repeat(np.arange(n), k), _flat(found.rows)
    one_way = csr_array((weight.ravel(), ends), shape=(n, n))
    loops = csr_array((np.ones(n), (np.arange(n), np.arange(n))), shape=(n, n))
    return csr_array((one_way + one_way.T) / 2 + loops), width


def _flat(found: IntArray) -> IntArray:
    return np.asarray(found.ravel(), dtype=np.int64)


def _leading(
    graph: csr_array, degree: FloatArray, count: int, *, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return the largest eigenvalues of the symmetric walk and their vectors, but the first.

    The first is known, ``sqrt(degree)``; taking it out keeps the others apart from it even where
    the graph falls into parts, each of which has the eigenvalue one.
    """
    from scipy.linalg import eigh
    from scipy.sparse import dia_array
    from scipy.sparse.linalg import LinearOperator, eigsh

    n = len(degree)
    root = dia_array((1 / np.sqrt(degree)[None], [0]), shape=(n, n))
    walk = root @ graph @ root
    first = np.sqrt(degree / degree.sum())
    if n <= MOST_DENSE:
        values, vectors = eigh(walk.toarray() - np.outer(first, first))
    else:
        operator = LinearOperator(
            (n, n), matvec=lambda x: walk @ x - first * (first @ x), dtype=np.float64
        )
        start = np.random.default_rng(seed).standard_normal(n)
        values, vectors = eigsh(operator, count, which="LA", v0=start)
    order = np.argsort(-values, kind="stable")[:count]
    values, vectors = values[order], vectors[:, order]
    largest = np.abs(vectors).argmax(axis=0)
    signs = np.where(vectors[largest, np.arange(len(order))] < 0, -1.0, 1.0)
    return values, vectors * signs
