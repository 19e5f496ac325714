"""Rows between a database and the contract, also those that no matrix can be made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray
from isthmus.errors import CorruptStoreError

__all__ = ["OtherLengths", "Rows", "lengths_differ", "spread", "stacked"]


@dataclass(frozen=True, eq=False)
class OtherLengths:
    """That some vectors have more or fewer numbers than the collection.

    Parameters
    ----------
    lengths : FloatArray of shape (n,)
        Numbers of each row; not whole where a database keeps bytes, and some are missing.
    error : CorruptStoreError
        What is said to all who need every row.
    """

    lengths: FloatArray
    error: CorruptStoreError


@dataclass(frozen=True)
class Rows:
    """Rows on their way to a database or from it.

    Parameters
    ----------
    ids : list of str
    vectors : FloatArray of shape (n, dim), float32
        Of zero columns where they were not asked for; NaN in rows of another length.
    metadata : list of str or None
        Each row's as JSON text; None where it has none.
    other : OtherLengths or None
        None: all vectors are as long as those of the collection.
    """

    ids: list[str]
    vectors: FloatArray
    metadata: list[str | None]
    other: OtherLengths | None = None

    def checked(self) -> Rows:
        """Return the rows, once all have the length of the collection.

        Raises
        ------
        CorruptStoreError
        """
        if self.other is not None:
            raise self.other.error
        return self


def lengths_differ(lengths: Sequence[float], dim: int) -> CorruptStoreError:
    """Say that rows of these lengths are not those of one collection."""
    return CorruptStoreError(
        expected=f"vectors of {dim} numbers in every row",
        got=f"rows of {', '.join(f'{one:g}' for one in sorted(set(lengths)))} numbers",
        do="find out which rows came from another model, and move them to a collection of "
        "their own",
    )


def spread(
    lengths: npt.ArrayLike,
    dim: int,
    read: Callable[[npt.NDArray[np.bool_]], FloatArray],
    *,
    error: Callable[[list[float], int], CorruptStoreError] = lengths_differ,
) -> tuple[FloatArray, OtherLengths | None]:
    """Return a matrix in which rows of another length are NaN, and which they are.

    Parameters
    ----------
    lengths : array-like of shape (n,)
        Numbers of each row.
    dim : int
    read : callable
        Gives the rows that a mask chooses, as float32 of shape (chosen, dim).
    error : callable, default `lengths_differ`
        Makes the error from the lengths that there are, and ``dim``.

    Examples
    --------
    >>> rows = [np.float32([1, 2]), np.float32([3])]
    >>> matrix, other = spread([2, 1], 2, lambda fits: np.float32([rows[0]]))
    >>> matrix.tolist(), other.lengths.tolist()
    ([[1.0, 2.0], [nan, nan]], [2.0, 1.0])
    """
    numbers = np.asarray(lengths, np.float64)
    fits = numbers == dim
    if fits.all():
        return read(fits), None
    matrix = np.full((len(numbers), dim), np.nan, np.float32)
    if fits.any():
        matrix[fits] = read(fits)
    return matrix, OtherLengths(numbers, error(np.unique(numbers).tolist(), dim))


def stacked(vectors: Sequence[npt.ArrayLike], dim: int) -> FloatArray:
    """Return vectors as float32 of shape (n, dim), from a database where all have one length.

    Raises
    ------
    CorruptStoreError
        Vectors of another length nevertheless.

    Examples
    --------
    >>> stacked([[1, 2], [3, 4]], 2).shape
    (2, 2)
    """
    lengths = {len(np.atleast_1d(np.asarray(one))) for one in vectors}
    if lengths - {dim}:
        raise lengths_differ(list(lengths), dim)
    if not len(vectors):
        return np.empty((0, dim), np.float32)
    return np.asarray(np.stack([np.asarray(one, np.float32) for one in vectors]))
