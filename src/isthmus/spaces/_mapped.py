"""Rows of matrices that may lie in a mapped file, without filling the memory with its pages."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IntArray

__all__ = ["gather", "release"]

GATHERED_ROWS = 1_024
"""Rows between two releases: each may bring 64 KB of a file with it, on Linux."""


def gather(vectors: npt.NDArray[Any], rows: IntArray) -> FloatArray:
    """Return rows as float32 of shape (len(rows), dim); of a mapped file only these are read.

    Examples
    --------
    >>> gather(np.array([[1, 2], [3, 4]]), np.array([1])).tolist()
    [[3.0, 4.0]]
    """
    if not isinstance(vectors, np.memmap):
        return np.asarray(vectors[rows], dtype=np.float32)
    gathered = np.empty((len(rows), vectors.shape[1]), dtype=np.float32)
    for start in range(0, len(rows), GATHERED_ROWS):
        gathered[start : start + GATHERED_ROWS] = vectors[rows[start : start + GATHERED_ROWS]]
        release(vectors)
    return gathered


def release(vectors: npt.NDArray[Any]) -> None:
    """Give the pages of a mapped file back, so that a pass over it does not fill the memory."""
    if not isinstance(vectors, np.memmap) or vectors.mode == "c":
        return  # copy-on-write pages hold what only this process knows
    base: Any = vectors
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)
