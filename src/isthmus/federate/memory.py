"""Rows that were carried before, so that a document which is found again is not mapped again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IdArray, IntArray

__all__ = ["REMEMBER", "CarriedRows", "Marked"]

REMEMBER = 16_384
"""Candidates per source and space that a federation keeps: a round number."""

MOST_CHUNKS = 32
"""Arrays that are kept side by side before they are joined in one."""


@dataclass(frozen=True)
class Marked:
    """Ids of rows, and a checksum of every row by which one that has changed is known.

    Parameters
    ----------
    ids : list of str
        All different.
    checks : array of shape (n,), uint64
    """

    ids: list[str]
    checks: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, ids: IdArray, rows: FloatArray) -> Marked:
        """Sum up the bits of every row (n, dim), each 8 bytes times a random number of their own.

        Rows that differ in one place never have the same sum; others do by chance, one in 2^60.
        """
        rows = np.ascontiguousarray(rows, dtype=np.float32)
        bits: npt.NDArray[Any] = rows.view(np.uint32 if rows.shape[1] % 2 else np.uint64)
        return cls(ids.tolist(), (bits * _factors(bits.shape[1])).sum(axis=1, dtype=np.uint64))


@cache
def _factors(width: int) -> npt.NDArray[np.uint64]:
    """Return odd random numbers: a product with one loses no bit."""
    return np.random.default_rng(0).integers(2**64, size=width, dtype=np.uint64) | np.uint64(1)


class CarriedRows:
    """Remembers the candidates of one source in one other space.

    A row is taken from memory only when its id and its checksum are those of the time when it was
    carried: a document that was replaced in the store is carried anew. Carrying one row gives the
    same numbers as carrying many, so that the answer does not depend on what is remembered. What
    was carried is kept as it is, not copied. When there is no room, everything is forgotten.

    Parameters
    ----------
    limit : int
        Rows at most; 0 remembers nothing.

    Examples
    --------
    >>> carried = CarriedRows(limit=10)
    >>> rows = np.array([[1, 0], [0, 1]], dtype=np.float32)
    >>> marked = Marked.of(np.array(["a", "b"]), rows)
    >>> carried.carry(marked, rows, lambda rows: rows * 2).tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    >>> carried.carry(marked, rows, lambda rows: rows * 0).tolist()  # not called again
    [[2.0, 0.0], [0.0, 2.0]]
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._places: dict[str, int] = {}
        self._checks: list[npt.NDArray[np.uint64]] = []
        self._chunks: list[FloatArray] = []
        self._starts: list[int] = []
        self._rows = 0

    def __len__(self) -> int:
        """Count the rows that are remembered."""
        with self._lock:
            return len(self._places)

    def carry(
        self, marked: Marked, rows: FloatArray, through: Callable[[FloatArray], FloatArray]
    ) -> FloatArray:
        """Return ``through(rows)``, calling it only for the rows that are not remembered.

        Parameters
        ----------
        marked : Marked
            Of these rows, or of others that they are made of, row by row.
        rows : FloatArray of shape (n, dim), float32
        through : callable
            Takes (m, dim), gives (m, dim_out), each row by itself.

        Returns
        -------
        FloatArray of shape (n, dim_out)
            To be read only.
        """
        if not self._limit:
            return through(rows)
        with self._lock:
            landed, new = self._recall(marked)
        if landed is None:
            landed = through(rows)
            self._keep(marked.ids, marked.checks, landed)
        elif len(new):
            fresh = through(rows[new])
            landed[new] = fresh
            self._keep([marked.ids[row] for row in new.tolist()], marked.checks[new], fresh)
        return landed

    def _recall(self, marked: Marked) -> tuple[FloatArray | None, IntArray]:
        """Return what is remembered, None for nothing, and the rows that are missing in it."""
        n = len(marked.ids)
        places = np.fromiter(map(self._places.get, marked.ids, repeat(-1)), np.int64, n)
        known = np.flatnonzero(places >= 0)
        if not len(known):
            return None, known
        if len(self._chunks) > MOST_CHUNKS:
            self._chunks, self._checks = (
                [np.concatenate(self._chunks)],
                [np.concatenate(self._checks)],
            )
            self._starts = [0]
        chunks = np.searchsorted(self._starts, places, side="right") - 1
        landed = np.empty((n, self._chunks[0].shape[1]), dtype=np.float32)
        for chunk in np.unique(chunks[known]).tolist():
            mine = known[chunks[known] == chunk]
            at = places[mine] - self._starts[chunk]
            landed[mine] = self._chunks[chunk][at]
            changed = self._checks[chunk][at] != marked.checks[mine]
            places[mine[changed]] = -1
        return landed, np.flatnonzero(places < 0)

    def _keep(self, ids: list[str], checks: npt.NDArray[np.uint64], landed: FloatArray) -> None:
        if len(ids) > self._limit:
            return
        with self._lock:
            if self._rows + len(ids) > self._limit:
                self._forget()
            self._places.update(zip(ids, range(self._rows, self._rows + len(ids)), strict=True))
            self._starts.append(self._rows)
            self._checks.append(checks)
            self._chunks.append(landed)
            self._rows += len(ids)
