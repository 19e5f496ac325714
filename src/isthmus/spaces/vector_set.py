"""A set of vectors: ids, matrix, space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IdArray, IntArray
from isthmus._validate import as_matrix, check_finite, check_nonzero, check_positive
from isthmus.errors import (
    CountMismatchError,
    DimensionError,
    EmptyInputError,
    InvalidIdError,
    InvalidVectorsError,
    ParameterError,
)
from isthmus.spaces._mapped import release
from isthmus.spaces.ids import IdIndex, as_ids, check_unique
from isthmus.spaces.space import Space

__all__ = ["VectorSet", "as_rows"]

BATCH_ROWS = 16_384
UNIT = 1e-2
"""How far from 1 the length of a normalised row may be: several times what float16 costs."""


@dataclass(frozen=True, eq=False, repr=False, init=False)
class VectorSet:
    """Vectors of one space with their ids, checked once when the set is made.

    Parameters
    ----------
    ids : sequence of str, or IdArray of shape (n,)
        All different; whole numbers become text.
    vectors : array-like of shape (n, dim)
        Float32 arrays are kept without a copy, as a read-only view; other numbers become float32.
        A `numpy.memmap` of float16 or float32 stays on disk and is checked batch by batch
        (`iter_batches`) instead of at once.
    space : Space
        Its ``dim`` is the width.

    Raises
    ------
    CountMismatchError, DimensionError, DuplicateIdError, EmptyInputError, InvalidIdError,
    InvalidVectorsError, ZeroVectorError
        Zero rows are refused where the metric is the cosine: they have no direction. Where the
        space is normalised, so are rows whose length is not 1, within 0.01.

    Examples
    --------
    >>> space = Space(model="m", dim=2)
    >>> vectors = VectorSet(["a", "b"], [[1, 0], [0, 2]], space)
    >>> vectors.select(vectors.rows_of(["b"])).matrix().tolist()
    [[0.0, 2.0]]
    """

    ids: IdArray
    vectors: FloatArray
    space: Space

    def __init__(self, ids: Sequence[str] | IdArray, vectors: npt.ArrayLike, space: Space) -> None:
        _check_order(ids, space)
        checked_ids, checked = as_ids(ids), _as_vectors(vectors, space)
        if len(checked_ids) != len(checked):
            raise CountMismatchError(
                expected=f"one id for each of {len(checked):,} vectors",
                got=f"{len(checked_ids):,} ids",
                do="check that both were read from the same source",
            )
        check_unique(checked_ids)
        _fill(self, checked_ids, checked, space)

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.ids)

    def __repr__(self) -> str:
        return f"VectorSet({len(self):,} rows of {self.space})"

    @property
    def dim(self) -> int:
        """Width of the vectors."""
        return self.space.dim

    @cached_property
    def _index(self) -> IdIndex:
        return IdIndex(self.ids)

    def rows_of(self, ids: Sequence[str] | IdArray) -> IntArray:
        """Return the row of each id, as int64 of shape (len(ids),).

        Raises
        ------
        UnknownIdError
            Names the first few ids that are not there.
        """
        return self._index.rows(as_ids(ids), name="this set")

    def find(self, ids: Sequence[str] | IdArray) -> IntArray:
        """Return the row of each id, -1 where the set has none."""
        return self._index.find(as_ids(ids))

    def select(self, rows: npt.ArrayLike) -> VectorSet:
        """Return the set of these rows, in this order, in memory.

        Parameters
        ----------
        rows : integers of shape (m,), or booleans of shape (n,)

        Raises
        ------
        ParameterError
            A row that the set does not have.
        DuplicateIdError
            A row that is named twice.
        """
        picked = as_rows(rows, count=len(self))
        return VectorSet(self.ids[picked], np.asarray(self.vectors[picked]), self.space)

    def iter_batches(self, batch_size: int = BATCH_ROWS) -> Iterator[VectorSet]:
        """Yield the rows in order as float32 sets of at most ``batch_size`` rows, each checked.

        Memory holds one batch: the pages of a mapped file are given back after it.
        """
        check_positive(batch_size, name="batch_size")
        for start in range(0, len(self), batch_size):
            stop = start + batch_size
            block = np.asarray(self.vectors[start:stop], dtype=np.float32)
            if isinstance(self.vectors, np.memmap):
                _check_values(block, self.space, first_row=start)
            yield _trusted(self.ids[start:stop], block, self.space)
            release(self.vectors)

    def matrix(self) -> FloatArray:
        """Return the vectors as float32 of shape (n, dim), in memory and checked."""
        if not isinstance(self.vectors, np.memmap):
            return self.vectors
        matrix = np.empty(self.vectors.shape, dtype=np.float32)
        start = 0
        for batch in self.iter_batches():
            matrix[start : start + len(batch)] = batch.vectors
            start += len(batch)
        return _read_only(matrix)

    @classmethod
    def load(
        cls, path: Path | str, *, space: Space | None = None, memory_map: bool = False
    ) -> VectorSet:
        """Read a set; the format is known by the ending.

        Parameters
        ----------
        path : path
            ``.npz``, ``.npy`` (with ``.ids.txt`` and ``.space.json`` beside it), ``.parquet``,
            ``.jsonl``, ``.ndjson``, ``.json``, ``.safetensors``, ``.faiss``, ``.index`` or a
            folder ``.vdf``; see docs/spaces.md, and docs/files.md for the files of others, where
            a choice may follow the path: ``theirs.parquet?vector=emb``.
        space : Space, optional
            Needed where the file names none; where it does, both must agree.
        memory_map : bool, default False
            Leave the vectors on disk (``.npy`` only).

        Raises
        ------
        MissingFileError, UnknownFormatError, CorruptFileError, SpaceMismatchError, InputError
        """
        from isthmus.spaces.io import load

        return load(Path(path), space=space, memory_map=memory_map)

    def save(self, path: Path | str, *, dtype: Literal["float16", "float32"] = "float16") -> None:
        """Write the set, whole or not at all; the format is known by the ending.

        Parameters
        ----------
        path : path
            See `load`.
        dtype : {"float16", "float32"}, default "float16"
            Half precision keeps three digits, more than the neighbours of an embedding need.

        Raises
        ------
        InvalidVectorsError
            A value that float16 cannot hold.
        InvalidIdError
            An id that the format cannot hold.
        UnknownFormatError, WriteFailedError
        """
        from isthmus.spaces.io import open_writer

        with open_writer(Path(path), self.space, rows=len(self), dtype=dtype) as writer:
            for batch in self.iter_batches():
                writer.write(batch)


def as_rows(rows: npt.ArrayLike, *, count: int) -> IntArray:
    """Return row numbers as int64 of shape (m,), each from 0 to ``count - 1``.

    Raises
    ------
    ParameterError, EmptyInputError

    Examples
    --------
    >>> as_rows([False, True, True], count=3).tolist()
    [1, 2]
    """
    array = np.asarray(rows)
    if array.dtype == np.bool_ and array.shape == (count,):
        array = np.flatnonzero(array)
    if array.size == 0:
        raise EmptyInputError(expected="at least one row", got="none", do="select a row")
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ParameterError(
            expected=f"row numbers of shape (m,), or {count:,} booleans",
            got=f"shape {array.shape} of {array.dtype}",
            do="pass row numbers",
        )
    if int(array.min()) < 0 or int(array.max()) >= count:
        raise ParameterError(
            expected=f"rows from 0 to {count - 1:,}",
            got=f"rows from {array.min()} to {array.max()}",
            do="drop the rows that do not exist; -1 stands for no row",
        )
    return array.astype(np.int64, copy=False)


def _trusted(ids: IdArray, vectors: FloatArray, space: Space) -> VectorSet:
    """Make a set of rows that were checked already."""
    made = object.__new__(VectorSet)
    _fill(made, ids, _read_only(vectors), space)
    return made


def _fill(made: VectorSet, ids: IdArray, vectors: FloatArray, space: Space) -> None:
    """Set the fields of a frozen set that is being made."""
    for name, value in (("ids", ids), ("vectors", vectors), ("space", space)):
        object.__setattr__(made, name, value)


def _check_order(ids: Any, space: Any) -> None:
    """Refuse vectors where the ids belong, and what is no space where the space belongs."""
    first = ids[0] if isinstance(ids, list | tuple) and ids else None
    if getattr(ids, "ndim", 1) > 1 or isinstance(first, list | tuple | np.ndarray):
        raise InvalidIdError(
            expected="ids first, one text a row",
            got=f"rows of numbers, of shape {np.shape(ids)}",
            do="call VectorSet(ids, vectors, space)",
        )
    if not isinstance(space, Space):
        raise ParameterError(
            expected="a Space as the third argument",
            got=f"a {type(space).__name__}",
            do="call VectorSet(ids, vectors, Space(model=..., dim=...))",
        )


def _as_vectors(values: Any, space: Space) -> FloatArray:
    """Check the shape of a mapped file, or everything of an array in memory."""
    if isinstance(values, np.memmap) and values.dtype in (np.float16, np.float32):
        if values.ndim != 2 or values.shape[1] != space.dim:
            raise DimensionError(
                expected=f"vectors of shape (n, {space.dim})",
                got=f"shape {values.shape}",
                do="check which model made these vectors",
            )
        if len(values) == 0:
            raise EmptyInputError(expected="at least one vector", got="none", do="pass a vector")
        return values
    matrix = as_matrix(values, name="vectors", dim=space.dim)
    if matrix.dtype != np.float32:
        with np.errstate(over="ignore"):  # what overflows is refused below, as infinity
            matrix = matrix.astype(np.float32)
        check_finite(matrix, name="vectors as float32")
    if space.metric == "cosine":
        check_nonzero(matrix, name="vectors")
    _check_unit(matrix, space)
    return _read_only(matrix)


def _check_values(block: FloatArray, space: Space, *, first_row: int) -> None:
    """Check a batch of a mapped file; messages name the row of the file."""
    check_finite(block, name="vectors", first_row=first_row)
    if space.metric == "cosine":
        check_nonzero(block, name="vectors", first_row=first_row)
    _check_unit(block, space, first_row=first_row)


def _check_unit(matrix: FloatArray, space: Space, *, first_row: int = 0) -> None:
    """Refuse rows of other lengths than 1 where the space promises it; zero rows have no length."""
    if not space.normalized:
        return
    for start in range(0, len(matrix), BATCH_ROWS):
        block = matrix[start : start + BATCH_ROWS]
        with np.errstate(over="ignore"):
            squares = np.einsum("ij,ij->i", block, block)
        bad = (np.abs(np.sqrt(squares) - 1) > UNIT) & (squares > 0)
        if bad.any():
            row = int(np.argmax(bad))
            raise InvalidVectorsError(
                expected="vectors of length 1, as the space says with normalized=True",
                got=f"length {float(np.sqrt(squares[row])):.4g} in row {first_row + start + row}",
                do="divide each row by its length, or say normalized=False",
            )


def _read_only(array: FloatArray) -> FloatArray:
    """View an array so that the set cannot be changed through it; the caller's stays as it is."""
    view = array.view()
    view.flags.writeable = False
    return view
