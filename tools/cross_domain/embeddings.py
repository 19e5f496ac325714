"""What an endpoint gives as vectors, checked number by number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["fault"]

LARGEST = float(np.finfo(np.float32).max)
"""Vectors are kept as float32, in which a larger number is infinite."""


def fault(indices: Sequence[Any], rows: Sequence[Any], count: int) -> str | None:
    """Say what is wrong with the vectors of an answer, or None.

    Parameters
    ----------
    indices, rows : sequences
        As JSON gave them: index ``indices[i]`` has the vector ``rows[i]``.
    count : int
        Of the texts; each index from 0 to below it is there once.

    Examples
    --------
    >>> fault([1, 0], [[0.5], [1]], 2)
    >>> fault([0], [[]], 1)
    'an empty vector at index 0'
    """
    seen: set[int] = set()
    for index, row in zip(indices, rows, strict=True):
        if type(index) is not int or not 0 <= index < count:
            return f"the index {index!r:.40} for {count} texts"
        if index in seen:
            return f"the index {index} twice"
        seen.add(index)
        wrong = _row_fault(row)
        if wrong:
            return f"{wrong} at index {index}"
    if len(seen) < count:
        return f"{len(seen)} vectors for {count} texts"
    lengths = sorted({len(row) for row in rows})
    if len(lengths) > 1:
        return f"vectors of {', '.join(map(str, lengths))} numbers"
    return None


def _row_fault(row: Any) -> str | None:
    if not isinstance(row, list):
        names = {str: "a text", dict: "an object", type(None): "null"}
        return f"{names.get(type(row), 'a value')} in place of a vector"
    if not row:
        return "an empty vector"
    for value in row:
        if type(value) not in (int, float):
            return f"{value!r:.40} in place of a number"
        if not abs(value) <= LARGEST:  # NaN is not either
            return f"{value!r:.40} in a vector"
    return None
