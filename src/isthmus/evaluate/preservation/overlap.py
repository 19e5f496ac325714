"""Do neighbours remain neighbours: overlaps of what mapped and native rows find."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IntArray, Metric
from isthmus.errors import ParameterError
from isthmus.evaluate.view import View, view_of
from isthmus.neighbors import check_k

__all__ = ["hit", "nbr_overlap", "overlap_counts", "retrieval_agreement"]


def nbr_overlap(
    mapped: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    k: int = 10,
    collection: npt.ArrayLike | None = None,
    own_rows: npt.ArrayLike | None = None,
    metric: Metric = "cosine",
) -> FloatArray:
    """Return the share of the k native neighbours that the mapped row finds too (top-k retention).

    |N_k(mapped_i) and N_k(target_i)| / k over one collection of target vectors, the row itself
    left out on both sides. Not NNO@k, which compares two collections each within itself
    (`isthmus.evaluate.consistency.nno`), and not Jaccard, which divides by the union.

    Parameters
    ----------
    mapped : array-like of shape (m, dim)
        Mapped source rows.
    target : array-like of shape (m, dim)
        Native target rows of the same objects.
    k : int, default 10
        Fewer where the collection has fewer other rows.
    collection : array-like of shape (n, dim), optional
        What both search; the target rows by default.
    own_rows : array-like of int of shape (m,), optional
        Row of the collection that is the object itself, -1 for none; see `Native`.
    metric : {"cosine", "dot", "l2"}, default "cosine"

    Returns
    -------
    FloatArray of shape (m,), float64
        In [0, 1]; k / n by chance. NaN where there is no other row.

    Raises
    ------
    CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError, ParameterError
    UnknownNameError, ZeroVectorError

    Examples
    --------
    >>> rows = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
    >>> nbr_overlap(rows, rows, k=1).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    check_k(k)
    view = view_of(mapped, target, collection, own_rows, metric, depth=k, native_depth=k)
    return neighbors_kept(view, k)


def retrieval_agreement(
    mapped: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    k: int = 10,
    collection: npt.ArrayLike | None = None,
    own_rows: npt.ArrayLike | None = None,
    metric: Metric = "cosine",
) -> FloatArray:
    """Return the share of the first k native answers that the mapped row gets when it searches.

    As `nbr_overlap`, but nothing is left out: each row searches the collection as a user's query
    does, and finds its own document there if it has one. The two agree for queries that are not in
    the collection. Not a ratio of relevance measures: no judgements are used.

    Parameters
    ----------
    mapped, target, k, collection, own_rows, metric
        As in `nbr_overlap`.

    Returns
    -------
    FloatArray of shape (m,), float64
        In [0, 1]; k / n by chance.

    Raises
    ------
    CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError, ParameterError
    UnknownNameError, ZeroVectorError

    Examples
    --------
    >>> rows = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]
    >>> retrieval_agreement(rows[::-1], rows, k=1).tolist()
    [0.0, 1.0, 0.0]
    """
    check_k(k)
    view = view_of(mapped, target, collection, own_rows, metric, depth=k, native_depth=k)
    return answers_kept(view, k)


def hit(
    mapped: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    k: int = 1,
    collection: npt.ArrayLike | None = None,
    own_rows: npt.ArrayLike | None = None,
    metric: Metric = "cosine",
) -> FloatArray:
    """Return 1 where the mapped row finds its own target row among the first k, else 0.

    Hit@k of the hub papers, top-1 of the null-map baseline. Not retrieval quality: a map can hit
    every time and still scramble the neighbours.

    Parameters
    ----------
    mapped, target, collection, own_rows, metric
        As in `nbr_overlap`.
    k : int, default 1

    Returns
    -------
    FloatArray of shape (m,), float64
        0 or 1; k / n by chance. NaN where the row is not in the collection.

    Raises
    ------
    CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError, ParameterError
    UnknownNameError, ZeroVectorError

    Examples
    --------
    >>> hit([[1.0, 0.1], [1.0, 0.2]], [[1.0, 0.0], [0.0, 1.0]]).tolist()
    [1.0, 0.0]
    """
    check_k(k)
    view = view_of(mapped, target, collection, own_rows, metric, depth=k, native_depth=k)
    return own_found(view, k)


def overlap_counts(a: IntArray, b: IntArray) -> IntArray:
    """Count the rows that two lists of each query share.

    Parameters
    ----------
    a : IntArray of shape (m, k_a)
    b : IntArray of shape (m, k_b)
        No row twice in one list; -1 for none.

    Returns
    -------
    IntArray of shape (m,)

    Examples
    --------
    >>> overlap_counts(np.array([[1, 2, -1]]), np.array([[2, 3, -1]])).tolist()
    [1]
    """
    together = np.sort(np.concatenate([a, b], axis=1), axis=1)
    same = (together[:, 1:] == together[:, :-1]) & (together[:, 1:] >= 0)
    counts: IntArray = np.count_nonzero(same, axis=1)
    return counts


def neighbors_kept(view: View, k: int) -> FloatArray:
    """Return `nbr_overlap` of a view that is at least k deep."""
    _check_depth(view, k)
    return _shares(view.neighbors.rows[:, :k], view.native.neighbors.rows[:, :k])


def answers_kept(view: View, k: int) -> FloatArray:
    """Return `retrieval_agreement` of a view that is at least k deep."""
    _check_depth(view, k)
    return _shares(view.found.rows[:, :k], view.native.found.rows[:, :k])


def own_found(view: View, k: int) -> FloatArray:
    """Return `hit` of a view that is at least k deep."""
    _check_depth(view, k)
    own = view.native.own_rows
    hits = (view.found.rows[:, :k] == own[:, None]).any(axis=1)
    return np.where(own >= 0, hits.astype(np.float64), np.nan)


def _shares(found: IntArray, native: IntArray) -> FloatArray:
    possible = np.count_nonzero(native >= 0, axis=1)
    shares: FloatArray = np.full(len(native), np.nan)
    np.divide(overlap_counts(found, native), possible, out=shares, where=possible > 0)
    return shares


def _check_depth(view: View, k: int) -> None:
    deepest = min(view.depth, view.native.neighbors.rows.shape[1])
    if k > deepest and deepest < len(view.index) - 1:
        raise ParameterError(
            expected=f"k of at most {deepest}, the depth of this view",
            got=f"{k}",
            do="make the view deeper",
        )
