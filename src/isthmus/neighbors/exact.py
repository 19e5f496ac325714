"""Exact nearest neighbours in blocks: the same answer for one query and a million.

Faiss looks for a few more rows than asked by float32 bounds; those that can still be among the k
best are scored by one fixed formula and sorted by (-score, row). A query whose cut falls into a run
of rows too close to tell apart (duplicates) is read again in full, so that ties always go to the
lowest row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IntArray, Metric
from isthmus.errors import CountMismatchError, ParameterError
from isthmus.neighbors.similarity import Similarity, as_rows

__all__ = ["Exact", "Neighbors", "as_excluded", "best", "check_k", "top_k"]

# Numbers of one prepared block of queries or rows: 64 MB.
BLOCK_NUMBERS = 2**24
# Queries that are read again together.
AGAIN_AT_ONCE = 64


@dataclass(frozen=True)
class Neighbors:
    """The rows found for each query, best first.

    Parameters
    ----------
    rows : IntArray of shape (m, k)
        Rows of the database; -1 where there is none.
    scores : FloatArray of shape (m, k), float32
        Canonical similarity, higher is nearer; NaN where there is no row.
    """

    rows: IntArray
    scores: FloatArray


def top_k(
    queries: npt.ArrayLike,
    database: npt.ArrayLike,
    *,
    k: int,
    metric: Metric = "cosine",
    exclude: npt.ArrayLike | None = None,
) -> Neighbors:
    """Find the k most similar rows of a database for each query, exactly.

    Scores are those of the vectors as float32, computed in float64 and rounded to float32; equal
    scores are ordered by row. The result does not depend on the other queries or on the threads.
    Memory holds one block of each side, never a matrix of (m, n).

    Parameters
    ----------
    queries : array-like of shape (m, dim)
    database : array-like of shape (n, dim)
        May be a memory-mapped float16 or float32 array.
    k : int
        Over 0; when fewer rows exist, the result ends in row -1 with score NaN.
    metric : {"cosine", "dot", "l2"}, default "cosine"
        The cosine, the inner product, or minus the (unsquared) Euclidean distance.
    exclude : array-like of int of shape (m,), optional
        A row of the database that each query must not return (its own); -1 for none.

    Returns
    -------
    Neighbors

    Raises
    ------
    DimensionError, EmptyInputError, InvalidVectorsError, ZeroVectorError
        Zero rows only for the cosine.
    ParameterError, UnknownNameError, CountMismatchError

    Examples
    --------
    >>> found = top_k([[1.0, 0.0]], [[0.0, 1.0], [2.0, 0.0], [1.0, 0.0]], k=2)
    >>> found.rows.tolist(), found.scores.tolist()
    ([[1, 2]], [[1.0, 1.0]])
    """
    return Exact(database, metric=metric, keep=False).search(queries, k=k, exclude=exclude)


class Exact:
    """A database prepared once for many exact searches; see `top_k`.

    Parameters
    ----------
    database : array-like of shape (n, dim)
        Kept as it is; it must not change while this object is used.
    metric : {"cosine", "dot", "l2"}, default "cosine"
    keep : bool, default True
        Keep the prepared float32 copy of the database between searches.
    penalty : array-like of shape (n,), optional
        See `isthmus.neighbors.csls`.

    Examples
    --------
    >>> index = Exact([[0.0, 1.0], [2.0, 0.0]], metric="l2")
    >>> index.search([[0.0, 0.0]], k=1).scores.tolist()
    [[-1.0]]
    """

    def __init__(
        self,
        database: npt.ArrayLike,
        *,
        metric: Metric = "cosine",
        keep: bool = True,
        penalty: FloatArray | None = None,
    ) -> None:
        self.database = as_rows(database, name="database")
        self._similarity = Similarity(self.database, metric, penalty=penalty)
        self._kept: list[tuple[int, FloatArray]] | None = None
        if keep:
            self._kept = list(self._blocks())

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.database)

    def search(
        self, queries: npt.ArrayLike, *, k: int, exclude: npt.ArrayLike | None = None
    ) -> Neighbors:
        """Find the k most similar rows for each query; parameters and errors as in `top_k`."""
        check_k(k)
        matrix = as_rows(queries, name="queries", dim=self.database.shape[1])
        own = as_excluded(exclude, queries=len(matrix), rows=len(self))
        rows = np.empty((len(matrix), k), np.int64)
        scores = np.empty((len(matrix), k), np.float32)
        at_once = max(1, BLOCK_NUMBERS // self._similarity.width)
        for start in range(0, len(matrix), at_once):
            block = slice(start, start + at_once)
            lengths = self._similarity.measure_queries(matrix[block])
            asked = _Asked(
                vectors=matrix[block],
                lengths=lengths,
                prepared=self._similarity.prepare_queries(matrix[block], lengths),
                own=None if own is None else own[block],
            )
            rows[block], scores[block] = self._search_block(asked, k)
        return Neighbors(rows=rows, scores=scores)

    def score(self, queries: npt.ArrayLike, rows: IntArray) -> FloatArray:
        """Score given rows for each query, with the numbers that `search` gives them.

        Parameters
        ----------
        queries : array-like of shape (m, dim)
        rows : IntArray of shape (m, c)
            Rows of the database; -1 for none.

        Returns
        -------
        FloatArray of shape (m, c), float32
            NaN where there is no row.

        Raises
        ------
        DimensionError, EmptyInputError, InvalidVectorsError, ZeroVectorError
        """
        matrix = as_rows(queries, name="queries", dim=self.database.shape[1])
        lengths = self._similarity.measure_queries(matrix)
        return np.where(rows >= 0, self._similarity.score(matrix, lengths, rows), np.nan)

    def _search_block(self, asked: _Asked, k: int) -> tuple[IntArray, FloatArray]:
        wanted = min(len(self), k + (asked.own is not None) + max(16, k // 4))
        bounds, rows = self._first_look(asked.prepared, wanted)
        beyond = bounds[:, -1]  # no row that was left out has a higher bound
        if asked.own is not None:
            bounds, rows = _without(bounds, rows, asked.own)
        # Every row that can be among the k best has a bound of at least this.
        least = bounds[:, min(k, wanted) - 1] - 2.0 * self._similarity.margin
        complete = wanted == len(self)
        again = np.empty(0, np.int64) if complete else np.flatnonzero(beyond >= least)
        possible = np.count_nonzero(bounds >= least[:, None], axis=1)
        possible[again] = 0
        width = wanted if complete else max(int(possible.max()), 1)
        candidates = np.full((len(bounds), max(width, k)), -1, np.int64)
        candidates[:, :width] = rows[:, :width]
        found = self._similarity.score(asked.vectors, asked.lengths, candidates)
        candidates, found = best(candidates, found, k)
        for start in range(0, len(again), AGAIN_AT_ONCE):
            group = again[start : start + AGAIN_AT_ONCE]
            candidates[group], found[group] = self._look_again(asked.take(group), least[group], k)
        found[candidates < 0] = np.nan
        return candidates, found

    def _first_look(self, prepared: FloatArray, wanted: int) -> tuple[FloatArray, IntArray]:
        """Find the ``wanted`` rows with the highest bounds, highest first."""
        import faiss

        bounds = np.empty((len(prepared), 0), np.float32)
        rows = np.empty((len(prepared), 0), np.int64)
        for start, block in self._kept or self._blocks():
            some, local = faiss.knn(
                prepared, block, min(wanted, len(block)), metric=faiss.METRIC_INNER_PRODUCT
            )
            bounds = np.concatenate([bounds, some], axis=1)
            rows = np.concatenate([rows, local + start], axis=1)
            order = np.argsort(-bounds, axis=1, kind="stable")[:, :wanted]
            bounds = np.take_along_axis(bounds, order, axis=1)
            rows = np.take_along_axis(rows, order, axis=1)
        return bounds, rows

    def _look_again(self, asked: _Asked, least: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
        """Score every row whose bound reaches ``least``, keeping the k best of each query."""
        rows = np.full((len(least), k), -1, np.int64)
        scores = np.full((len(least), k), -np.inf, np.float32)
        for start, block in self._kept or self._blocks():
            bounds = asked.prepared @ block.T
            for query in range(len(least)):
                close = np.flatnonzero(bounds[query] >= least[query]) + start
                if asked.own is not None:
                    close = close[close != asked.own[query]]
                one = slice(query, query + 1)
                found = self._similarity.score(
                    asked.vectors[one], asked.lengths[one], close[None, :]
                )
                rows[one], scores[one] = best(
                    np.concatenate([rows[one], close[None, :]], axis=1),
                    np.concatenate([scores[one], found], axis=1),
                    k,
                )
        return rows, scores

    def _blocks(self) -> Iterator[tuple[int, FloatArray]]:
        at_once = max(1, BLOCK_NUMBERS // self._similarity.width)
        for start in range(0, len(self), at_once):
            stop = min(start + at_once, len(self))
            yield start, self._similarity.prepare_rows(start, stop)


@dataclass(frozen=True)
class _Asked:
    """A block of queries in every form that a search needs."""

    vectors: FloatArray
    lengths: FloatArray
    prepared: FloatArray
    own: IntArray | None

    def take(self, queries: IntArray) -> _Asked:
        return _Asked(
            vectors=self.vectors[queries],
            lengths=self.lengths[queries],
            prepared=self.prepared[queries],
            own=None if self.own is None else self.own[queries],
        )


def check_k(k: int, *, name: str = "k") -> None:
    """Refuse a count that is not a whole number over 0."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ParameterError(
            expected=f"{name} as a whole number over 0", got=repr(k), do="change it"
        )


def as_excluded(exclude: npt.ArrayLike | None, *, queries: int, rows: int) -> IntArray | None:
    """Return the excluded rows as int64 of shape (queries,), checked."""
    if exclude is None:
        return None
    own = np.asarray(exclude)
    if own.shape != (queries,):
        raise CountMismatchError(
            expected=f"{queries} excluded rows, one per query",
            got=f"shape {own.shape}",
            do="give -1 where no row is excluded",
        )
    if own.dtype.kind not in "iu" or own.min() < -1 or own.max() >= rows:
        raise ParameterError(
            expected=f"excluded rows as whole numbers from -1 to {rows - 1}",
            got=f"type {own.dtype}, from {own.min()} to {own.max()}",
            do="give rows of the database",
        )
    return own.astype(np.int64)


def _without(bounds: FloatArray, rows: IntArray, own: IntArray) -> tuple[FloatArray, IntArray]:
    """Move each query's own row to the end, as no row."""
    mine = rows == own[:, None]
    order = np.argsort(mine, axis=1, kind="stable")
    bounds = np.take_along_axis(np.where(mine, -np.inf, bounds), order, axis=1)
    return bounds, np.take_along_axis(np.where(mine, -1, rows), order, axis=1)


def best(rows: IntArray, scores: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
    """Sort by score, highest first, then by row, and keep k."""
    order = np.lexsort((rows, -scores), axis=1)[:, :k]
    return np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)
