"""Vectors as Arrow columns, without a copy where Arrow allows it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isthmus._types import FloatArray
from isthmus.stores._rows import OtherLengths, spread

__all__ = ["array_of", "matrix_of"]


def array_of(vectors: FloatArray) -> pa.FixedSizeListArray:
    """Return vectors of shape (n, dim) as a column of lists of a fixed length.

    Examples
    --------
    >>> array_of(np.float32([[1, 2], [3, 4]])).type
    FixedSizeListType(fixed_size_list<item: float>[2])
    """
    flat = np.ascontiguousarray(vectors, np.float32).reshape(-1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat), vectors.shape[1])


def matrix_of(
    column: pa.ChunkedArray | pa.Array, dim: int
) -> tuple[FloatArray, OtherLengths | None]:
    """Return a column of lists of numbers as float32 of shape (n, dim); a null number is NaN.

    Rows of another length are NaN, and told beside.

    Examples
    --------
    >>> matrix_of(pa.array([[1, 2], [3, None]], pa.list_(pa.float64())), 2)[0].tolist()
    [[1.0, 2.0], [3.0, nan]]
    """
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    return spread(
        lengths,
        dim,
        lambda fits: _flat(column if fits.all() else column.filter(pa.array(fits)), dim),
    )


def _flat(column: pa.ChunkedArray | pa.Array, dim: int) -> FloatArray:
    flat = pc.list_flatten(column)
    chunks = flat.chunks if isinstance(flat, pa.ChunkedArray) else [flat]
    parts = [np.asarray(one.to_numpy(zero_copy_only=False), np.float32) for one in chunks]
    return np.concatenate([np.empty(0, np.float32), *parts]).reshape(-1, dim)
