"""Canonical similarity of two rows, and the float32 form in which faiss may look for it.

Two numbers belong to every (query, row): the *score*, computed by one fixed formula in float64 and
rounded to float32, and the *bound*, a float32 inner product of prepared vectors that orders the
rows of one query in the same way up to `Similarity.margin`. Matrix products give the bound quickly
but differ by the size of the batch and the number of threads; scores never do.
"""

from __future__ import annotations

from typing import get_args

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IntArray, Metric
from isthmus._validate import as_matrix, check_finite
from isthmus.errors import (
    DimensionError,
    EmptyInputError,
    InvalidVectorsError,
    UnknownNameError,
    ZeroVectorError,
)

__all__ = ["Similarity", "as_rows", "measure_rows"]

# Small enough for the float64 copy to stay in a core's cache.
CHUNK_ROWS = 256
# Float64 numbers gathered at once when candidates are scored: 16 MB.
CHUNK_NUMBERS = 2**21
# Rows that give the centre which the l2 bound subtracts; any centre is correct.
CENTRE_ROWS = 4096
FLOAT32_MAX = float(np.finfo(np.float32).max)
ROUNDING = 2.0**-24


def as_rows(values: npt.ArrayLike, *, name: str, dim: int | None = None) -> FloatArray:
    """Return ``values`` as a matrix; float16 arrays, possibly memory-mapped, are not copied.

    Raises
    ------
    DimensionError, EmptyInputError, InvalidVectorsError
        Not-finite float16 numbers are found later, by `measure_rows`.
    """
    if not (isinstance(values, np.ndarray) and values.dtype == np.float16 and values.ndim == 2):
        return as_matrix(values, name=name, dim=dim)
    if not values.size:
        raise EmptyInputError(
            expected=f"{name} with at least one row and one column",
            got=f"shape {values.shape}",
            do="pass at least one vector",
        )
    if dim is not None and values.shape[1] != dim:
        raise DimensionError(
            expected=f"{name} with {dim} columns",
            got=f"{values.shape[1]} columns",
            do="check which model made these vectors",
        )
    return values


def measure_rows(matrix: FloatArray, *, name: str, centre: FloatArray | None = None) -> FloatArray:
    """Return the length of every row as float64, the same number in every batch.

    Raises
    ------
    InvalidVectorsError
        NaN, infinity, or a number that float32 cannot hold.
    """
    lengths = np.empty(len(matrix))
    for start in range(0, len(matrix), CHUNK_ROWS):
        chunk = _wide(matrix[start : start + CHUNK_ROWS])
        if centre is not None:
            chunk -= centre
        lengths[start : start + CHUNK_ROWS] = np.sqrt(np.einsum("nd,nd->n", chunk, chunk))
    if not np.isfinite(lengths).all():
        check_finite(matrix, name=name)
        raise InvalidVectorsError(
            expected=f"numbers in {name} that float32 can hold",
            got=f"a larger one in row {int(np.argmin(np.isfinite(lengths)))}",
            do="scale the vectors down",
        )
    return lengths


class Similarity:
    """How near the rows of one database are to queries.

    Parameters
    ----------
    database : FloatArray of shape (n, dim)
    metric : {"cosine", "dot", "l2"}
        Canonical similarity: the cosine, the inner product, or minus the (unsquared) distance.
    penalty : FloatArray of shape (n,), optional
        With it the score of a row is 2 * cosine - penalty (CSLS); the metric must be cosine.

    Raises
    ------
    UnknownNameError, InvalidVectorsError, ZeroVectorError
    """

    def __init__(
        self, database: FloatArray, metric: Metric, *, penalty: FloatArray | None = None
    ) -> None:
        if metric not in get_args(Metric):
            raise UnknownNameError.of("metric", str(metric), get_args(Metric))
        self.database = database
        self.metric = metric
        self.penalty = penalty
        self.lengths = measure_rows(database, name="database")
        self.centre: FloatArray | None = None
        self.scale = 1.0
        if metric == "cosine":
            _check_directions(self.lengths, name="database")
        elif metric == "dot":
            self.scale = float(self.lengths.max()) or 1.0
        else:
            step = -(-len(database) // CENTRE_ROWS)
            self.centre = _wide(database[::step]).mean(axis=0).astype(np.float32)
            around = measure_rows(database, name="database", centre=self.centre)
            self.scale = float(around.max()) or 1.0

    @property
    def width(self) -> int:
        """Columns of the prepared vectors: one more where the score has a part of its row alone."""
        return int(self.database.shape[1]) + (self.metric == "l2" or self.penalty is not None)

    @property
    def margin(self) -> float:
        """Bound on the error of a bound: its inner product, preparation and score's rounding."""
        size = 2.0 if self.width > self.database.shape[1] else 1.0
        return size * (self.width + 16) * ROUNDING

    def measure_queries(self, queries: FloatArray) -> FloatArray:
        """Return the lengths of the queries; refuse those that the metric cannot score."""
        lengths = measure_rows(queries, name="queries")
        if self.metric == "cosine":
            _check_directions(lengths, name="queries")
        largest = float(lengths.max()) * float(self.lengths.max())
        if self.metric == "dot" and largest > FLOAT32_MAX:
            raise InvalidVectorsError(
                expected="inner products that float32 can hold",
                got=f"vectors whose inner product may reach {largest:.2g}",
                do="scale the vectors down",
            )
        return lengths

    def prepare_rows(self, start: int, stop: int) -> FloatArray:
        """Return database rows start to stop as float32 of shape (stop - start, width)."""
        prepared = np.empty((stop - start, self.width), np.float32)
        dim = self.database.shape[1]
        for first in range(start, stop, CHUNK_ROWS):
            last = min(first + CHUNK_ROWS, stop)
            chunk = self._centred(self.database[first:last])
            chunk /= self.lengths[first:last, None] if self.metric == "cosine" else self.scale
            out = prepared[first - start : last - start]
            out[:, :dim] = chunk
            if self.metric == "l2":
                out[:, dim] = -0.5 * np.einsum("nd,nd->n", chunk, chunk)
            elif self.penalty is not None:
                out[:, dim] = -0.5 * self.penalty[first:last]
        return prepared

    def prepare_queries(self, queries: FloatArray, lengths: FloatArray) -> FloatArray:
        """Return queries as float32 of shape (m, width); a scale per query changes no order."""
        prepared = np.empty((len(queries), self.width), np.float32)
        dim = self.database.shape[1]
        for first in range(0, len(queries), CHUNK_ROWS):
            chunk = self._centred(queries[first : first + CHUNK_ROWS])
            divisor = lengths[first : first + CHUNK_ROWS, None]
            tail = np.ones_like(divisor)
            if self.metric == "l2":
                chunk /= self.scale
                divisor = np.sqrt(np.einsum("nd,nd->n", chunk, chunk))[:, None]
                divisor = np.maximum(divisor, 1.0)
                tail = 1.0 / divisor
            out = prepared[first : first + CHUNK_ROWS]
            out[:, :dim] = chunk / np.where(divisor > 0, divisor, 1.0)
            out[:, dim:] = tail
        return prepared

    def score(self, queries: FloatArray, lengths: FloatArray, rows: IntArray) -> FloatArray:
        """Score given rows for each query by the fixed formula.

        Parameters
        ----------
        queries : FloatArray of shape (m, dim)
        lengths : FloatArray of shape (m,)
        rows : IntArray of shape (m, c)
            Rows of the database; -1 gives minus infinity.

        Returns
        -------
        FloatArray of shape (m, c), float32
        """
        scores = np.full(rows.shape, -np.inf, np.float32)
        dim = self.database.shape[1]
        columns = max(1, CHUNK_NUMBERS // dim)
        at_once = max(1, columns // max(1, rows.shape[1]))
        for first in range(0, len(rows), at_once):
            block = slice(first, first + at_once)
            wide = _wide(queries[block])
            for left in range(0, rows.shape[1], columns):
                part = rows[block, left : left + columns]
                found = self._formula(wide, lengths[block], np.maximum(part, 0))
                scores[block, left : left + columns] = np.where(part >= 0, found, -np.inf)
        return scores

    def _formula(self, wide: FloatArray, lengths: FloatArray, rows: IntArray) -> FloatArray:
        # einsum over contiguous float64 rows adds each row in one order, whatever the batch.
        candidates = _wide(self.database[rows])
        if self.metric == "l2":
            candidates -= wide[:, None, :]
            squares: FloatArray = np.einsum("mcd,mcd->mc", candidates, candidates)
            return np.negative(np.sqrt(squares))
        products: FloatArray = np.einsum("md,mcd->mc", wide, candidates)
        if self.metric == "dot":
            return products
        cosines: FloatArray = np.clip(products / (lengths[:, None] * self.lengths[rows]), -1.0, 1.0)
        return cosines if self.penalty is None else 2.0 * cosines - self.penalty[rows]

    def _centred(self, rows: FloatArray) -> FloatArray:
        wide = _wide(rows)
        return wide if self.centre is None else wide - self.centre


def _wide(rows: FloatArray) -> FloatArray:
    """Return a float64 copy of rows at float32's precision, contiguous."""
    if rows.dtype == np.float64:
        with np.errstate(over="ignore"):  # what overflows is reported by `measure_rows`
            rows = rows.astype(np.float32)
    return np.array(rows, dtype=np.float64, order="C")


def _check_directions(lengths: FloatArray, *, name: str) -> None:
    if not lengths.all():
        raise ZeroVectorError(
            expected=f"rows with a direction in {name}",
            got=f"only zeros in row {int(np.argmin(lengths))}",
            do="drop that row; an empty text often gives one",
        )
