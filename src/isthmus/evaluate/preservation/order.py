"""Do rankings remain rankings: rank correlations of similarities."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, Metric
from isthmus._validate import as_matrix, check_pairs
from isthmus.evaluate.k_means import ready_rows
from isthmus.evaluate.view import View, view_of
from isthmus.neighbors import check_k

__all__ = ["average_ranks", "rank_corr", "relation_order_corr", "spearman"]

# Held-out rows that every row is compared with: enough for a correlation to be within .03.
PARTNERS = 1000
BLOCK_ROWS = 512


def rank_corr(
    mapped: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    collection: npt.ArrayLike | None = None,
    own_rows: npt.ArrayLike | None = None,
    metric: Metric = "cosine",
    depth: int = 100,
) -> FloatArray:
    """Return how well the order of the native neighbours is kept, per row.

    Spearman's correlation between the similarities of the native row and those of the mapped row to
    the ``depth`` nearest native neighbours: the same rows on both sides. Not the correlation over
    the whole collection, which far rows dominate, nor Kendall's tau.

    Parameters
    ----------
    mapped, target, collection, own_rows, metric
        As in `nbr_overlap`.
    depth : int, default 100
        Native neighbours to compare; fewer where the collection is smaller.

    Returns
    -------
    FloatArray of shape (m,), float64
        In [-1, 1]; 0 by chance, and where all mapped similarities are equal. NaN where the native
        similarities have no order: fewer than two neighbours, or all alike.

    Raises
    ------
    CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError, ParameterError
    UnknownNameError, ZeroVectorError

    Examples
    --------
    >>> rows = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.2, 0.9]]
    >>> rank_corr(rows, rows).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    check_k(depth, name="depth")
    view = view_of(mapped, target, collection, own_rows, metric, native_depth=depth)
    return neighbor_order(view)


def neighbor_order(view: View) -> FloatArray:
    """Return `rank_corr` of a view, over all its native neighbours."""
    return spearman(view.mapped_scores, view.native.neighbors.scores)


def relation_order_corr(
    mapped: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    metric: Metric = "cosine",
    seed: int = 0,
    partners: int = PARTNERS,
) -> FloatArray:
    """Return how well the relations among the held-out rows keep their order, per row.

    For each row, Spearman's correlation between its similarities to the other rows, mapped to
    mapped, and the same similarities, native to native. Only relations count: a map that rotates
    everything loses nothing. Not one correlation over all pairs at once, which mixes rows whose
    similarities have different levels.

    Parameters
    ----------
    mapped : array-like of shape (m, dim)
    target : array-like of shape (m, dim_target)
        The dimensions may differ: the sides never meet.
    metric : {"cosine", "dot", "l2"}, default "cosine"
    seed : int, default 0
        Of the choice of partners.
    partners : int, default 1000
        Rows that each row is compared with, drawn once when there are more.

    Returns
    -------
    FloatArray of shape (m,), float64
        In [-1, 1]; 0 where all mapped similarities are equal. NaN where the native ones have no
        order: fewer than two other rows, or all alike.

    Raises
    ------
    CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError, ParameterError

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> relation_order_corr(rows[:, ::-1], rows).tolist()
    [1.0, 1.0, 1.0]
    """
    check_k(partners, name="partners")
    first = as_matrix(mapped, name="mapped")
    second = as_matrix(target, name="target")
    check_pairs(first, second, minimum=1)
    others = np.arange(len(first))
    if len(others) > partners:
        others = np.sort(np.random.default_rng(seed).choice(len(first), partners, replace=False))
    sides = [
        (ready_rows(side, metric), ready_rows(side[others], metric)) for side in (first, second)
    ]
    out = np.empty(len(first))
    for start in range(0, len(first), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        scores = [_similarities(rows[block], columns, metric) for rows, columns in sides]
        itself = np.arange(len(first))[block, None] == others
        for side in scores:
            side[itself] = np.nan
        out[block] = spearman(*scores)
    return out


def spearman(mapped: FloatArray, native: FloatArray) -> FloatArray:
    """Return Spearman's correlation of each row of two tables, ties by their average rank.

    Parameters
    ----------
    mapped, native : FloatArray of shape (m, c)
        NaN at the same places on both sides: left out.

    Returns
    -------
    FloatArray of shape (m,), float64
        0 where only ``mapped`` is constant; NaN where ``native`` is.
    """
    one, other = _centred_ranks(mapped), _centred_ranks(native)
    sizes = (one**2).sum(axis=1), (other**2).sum(axis=1)
    products = (one * other).sum(axis=1)
    length = np.sqrt(sizes[0] * sizes[1])
    correlation = np.divide(products, length, out=np.zeros(len(one)), where=length > 0)
    return np.where(sizes[1] > 0, np.clip(correlation, -1.0, 1.0), np.nan)


def average_ranks(values: FloatArray) -> FloatArray:
    """Rank the values of each row from 0, equal values at their average rank.

    Parameters
    ----------
    values : FloatArray of shape (m, c)
        NaN is ranked after everything else.

    Returns
    -------
    FloatArray of shape (m, c), float64

    Examples
    --------
    >>> average_ranks(np.array([[0.3, 0.1, 0.3]])).tolist()
    [[1.5, 0.0, 1.5]]
    """
    order = np.argsort(values, axis=1)
    ordered = np.take_along_axis(values, order, axis=1)
    places = np.broadcast_to(np.arange(values.shape[1], dtype=np.float64), values.shape)
    changes = ordered[:, 1:] != ordered[:, :-1]
    if not changes.all():
        edge = np.ones((len(values), 1), bool)
        first = np.where(np.concatenate([edge, changes], axis=1), places, 0.0)
        last = np.where(np.concatenate([changes, edge], axis=1), places, values.shape[1])
        start = np.maximum.accumulate(first, axis=1)
        stop = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
        places = (start + stop) / 2.0
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, places, axis=1)
    return ranks


def _centred_ranks(values: FloatArray) -> FloatArray:
    there = ~np.isnan(values)
    ranks = np.where(there, average_ranks(values), 0.0)
    counts = np.maximum(there.sum(axis=1, keepdims=True), 1)
    return np.where(there, ranks - ranks.sum(axis=1, keepdims=True) / counts, 0.0)


def _similarities(rows: FloatArray, columns: FloatArray, metric: Metric) -> FloatArray:
    """Return all similarities of a block, rounded to float32 so that duplicates tie."""
    products = rows @ columns.T
    if metric == "l2":
        products = 2.0 * products - (rows**2).sum(axis=1)[:, None] - (columns**2).sum(axis=1)
    return products.astype(np.float32)
