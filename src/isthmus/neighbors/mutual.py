"""Neighbours that look both ways: CSLS and mutual nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IntArray, Metric
from isthmus.neighbors.exact import Exact, Neighbors, check_k, top_k
from isthmus.neighbors.similarity import as_rows

__all__ = ["MutualPairs", "csls", "mutual_nearest_neighbors"]

# Lample et al. 2018, section 2.3: "K = 10"; the paper found 5, 10 and 50 alike.
CSLS_NEIGHBORHOOD = 10


@dataclass(frozen=True)
class MutualPairs:
    """Pairs of rows that are among each other's nearest, sorted by source row, then target row.

    Parameters
    ----------
    source_rows, target_rows : IntArray of shape (n_pairs,)
    scores : FloatArray of shape (n_pairs,), float32
    """

    source_rows: IntArray
    target_rows: IntArray
    scores: FloatArray

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.source_rows)


def csls(
    queries: npt.ArrayLike,
    database: npt.ArrayLike,
    *,
    k: int,
    neighborhood: int = CSLS_NEIGHBORHOOD,
    reference: npt.ArrayLike | None = None,
    exclude: npt.ArrayLike | None = None,
) -> Neighbors:
    """Find the k best rows by cross-domain similarity local scaling, exactly.

    CSLS(x, y) = 2 cos(x, y) - r_D(x) - r_R(y), where r_D(x) is the mean cosine of query x to its
    nearest rows of the database and r_R(y) that of database row y to its nearest reference rows
    (Lample et al. 2018, equation 3): rows that are near to everything (hubs) are marked down.

    Parameters
    ----------
    queries : array-like of shape (m, dim)
    database : array-like of shape (n, dim)
    k : int
        As in `top_k`.
    neighborhood : int, default 10
        Neighbours in both means (the paper's K, section 2.3); fewer where fewer rows exist.
    reference : array-like of shape (r, dim), optional
        Rows of the queries' side that r_R is measured on; the queries themselves by default. Give
        it to get the same numbers for one query and for many.
    exclude : array-like of int of shape (m,), optional
        As in `top_k`; such a row does not count in the means either.

    Returns
    -------
    Neighbors
        Scores in [-4, 4]. Equal scores are ordered by row; scores are compared as float32 before
        r_D, which is one number per query, is subtracted.

    Raises
    ------
    DimensionError, EmptyInputError, InvalidVectorsError, ZeroVectorError, ParameterError
    CountMismatchError

    Examples
    --------
    >>> found = csls([[1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]], k=1, neighborhood=1)
    >>> found.rows.tolist(), found.scores.tolist()
    ([[1]], [[0.0]])
    """
    check_k(neighborhood)
    plain = Exact(database)
    reference = queries if reference is None else reference
    penalty = _mean_similarity(Exact(reference, keep=False), plain.database, neighborhood, None)
    own = _mean_similarity(plain, queries, neighborhood, exclude)
    found = Exact(plain.database, keep=False, penalty=penalty).search(queries, k=k, exclude=exclude)
    return Neighbors(rows=found.rows, scores=found.scores - own[:, None].astype(np.float32))


def mutual_nearest_neighbors(
    source: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    k: int = 1,
    metric: Metric = "cosine",
    csls_neighborhood: int | None = None,
) -> MutualPairs:
    """Find the pairs of rows that are among each other's k nearest.

    Parameters
    ----------
    source : array-like of shape (n_source, dim)
    target : array-like of shape (n_target, dim)
        In the same space as the source.
    k : int, default 1
        With 1, a row is in at most one pair.
    metric : {"cosine", "dot", "l2"}, default "cosine"
    csls_neighborhood : int, optional
        With it, nearness is CSLS with that neighborhood (`csls`) instead of the metric.

    Returns
    -------
    MutualPairs
        Scores are those of the search from the source.

    Raises
    ------
    DimensionError, EmptyInputError, InvalidVectorsError, ZeroVectorError, ParameterError
    UnknownNameError

    Examples
    --------
    >>> pairs = mutual_nearest_neighbors([[1.0, 0.0], [0.9, 0.1]], [[1.0, 0.0], [0.0, 1.0]])
    >>> pairs.source_rows.tolist(), pairs.target_rows.tolist()
    ([0], [0])
    """
    first = as_rows(source, name="source")
    second = as_rows(target, name="target", dim=first.shape[1])
    if csls_neighborhood is None:
        forward = top_k(first, second, k=k, metric=metric)
        back = top_k(second, first, k=k, metric=metric)
    else:
        forward = csls(first, second, k=k, neighborhood=csls_neighborhood)
        back = csls(second, first, k=k, neighborhood=csls_neighborhood)
    there, forward_place = _codes(forward.rows, len(second), transpose=False)
    and_back, _ = _codes(back.rows, len(second), transpose=True)
    codes, places, _ = np.intersect1d(there, and_back, assume_unique=True, return_indices=True)
    return MutualPairs(
        source_rows=codes // len(second),
        target_rows=codes % len(second),
        scores=forward.scores.ravel()[forward_place[places]],
    )


def _mean_similarity(
    index: Exact, rows: npt.ArrayLike, neighborhood: int, exclude: npt.ArrayLike | None
) -> FloatArray:
    """Return the mean cosine of each row to its nearest rows in an index, as float64."""
    found = index.search(rows, k=min(neighborhood, len(index)), exclude=exclude)
    there = found.rows >= 0
    sums = np.where(there, found.scores, 0.0).sum(axis=1, dtype=np.float64)
    means: FloatArray = sums / np.maximum(there.sum(axis=1), 1)
    return means


def _codes(rows: IntArray, columns: int, *, transpose: bool) -> tuple[IntArray, IntArray]:
    """Return one number per (source, target) pair and its place in ``rows``; -1 is left out."""
    asking = np.broadcast_to(np.arange(len(rows))[:, None], rows.shape)
    places = np.flatnonzero(rows >= 0)
    source, target = (rows, asking) if transpose else (asking, rows)
    return (source * columns + target).ravel()[places], places
