"""Rows that were carried before, so that a document which is found again is not mapped again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import repeat

import numpy as np

from isthmus._types import FloatArray, IdArray, IntArray

__all__ = ["CarriedRows"]


FIRST_ROWS = 16_384
"""Room to begin with; its pages are filled as they are used."""


class CarriedRows:
    """Remembers the candidates of one source in one other space.

    A row is taken from memory only when its id and every bit of its vector are those of the time
    when it was carried: a document that was replaced in the store is carried anew. Carrying one row
    gives the same numbers as carrying many, so that the answer does not depend on what is
    remembered. When there is no room, everything is forgotten.

    Parameters
    ----------
    limit : int
        Rows at most; 0 remembers nothing.

    Examples
    --------
    >>> carried = CarriedRows(limit=10)
    >>> ids, rows = np.array(["a", "b"]), np.array([[1, 0], [0, 1]], dtype=np.float32)
    >>> carried.carry(ids, rows, lambda rows: rows * 2).tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    >>> carried.carry(ids, rows, lambda rows: rows * 0).tolist()  # not called again
    [[2.0, 0.0], [0.0, 2.0]]
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._places: dict[str, int] = {}
        self._before: FloatArray = np.empty((0, 0), dtype=np.float32)
        self._after: FloatArray = np.empty((0, 0), dtype=np.float32)
        self._noted: list[tuple[list[str], FloatArray, FloatArray]] = []

    def __len__(self) -> int:
        """Count the rows that are remembered."""
        with self._lock:
            self._write_down()
            return len(self._places)

    def carry(
        self, ids: IdArray, rows: FloatArray, through: Callable[[FloatArray], FloatArray]
    ) -> FloatArray:
        """Return ``through(rows)``, calling it only for the rows that are not remembered.

        Parameters
        ----------
        ids : IdArray of shape (n,)
            All different.
        rows : FloatArray of shape (n, dim), float32
        through : callable
            Takes (m, dim), gives (m, dim_out), each row by itself.

        Returns
        -------
        FloatArray of shape (n, dim_out)
            To be read only, as ``rows`` is from now on.
        """
        if not self._limit:
            return through(rows)
        texts = ids.tolist()
        with self._lock:
            self._write_down()
            places = self._find(texts, rows)
            known = places >= 0
            landed = self._after[np.maximum(places, 0)] if known.any() else None
        if landed is None:
            landed = through(rows)
            self._keep(texts, rows, landed)
        elif not known.all():
            new = np.flatnonzero(~known)
            landed[new] = through(rows[new])
            self._keep([texts[row] for row in new], rows[new], landed[new])
        return landed

    def _find(self, texts: list[str], rows: FloatArray) -> IntArray:
        """Return the place of each row, -1 for one that is unknown or has changed."""
        places = np.fromiter(map(self._places.get, texts, repeat(-1)), np.int64, len(texts))
        known = np.flatnonzero(places >= 0)
        if len(known):
            changed = (_bits(self._before[places[known]]) != _bits(rows[known])).any(axis=1)
            places[known[changed]] = -1
        return places

    def _keep(self, texts: list[str], rows: FloatArray, landed: FloatArray) -> None:
        if len(texts) <= self._limit:
            with self._lock:
                self._noted.append((texts, rows, landed))

    def _write_down(self) -> None:
        """Copy what earlier searches carried: a federation that searches once never pays for it."""
        noted, self._noted = self._noted, []
        for texts, rows, landed in noted:
            if len(self._places) + len(texts) > self._limit:
                self._places.clear()
            places = [self._places.setdefault(text, len(self._places)) for text in texts]
            self._make_room(max(places) + 1, rows.shape[1], landed.shape[1])
            self._before[places] = rows
            self._after[places] = landed

    def _make_room(self, rows: int, dim: int, dim_out: int) -> None:
        """Grow to this many rows, twice as many as there were: a large limit costs nothing."""
        if rows > len(self._after):
            room = min(self._limit, max(rows, 2 * len(self._after), FIRST_ROWS))
            self._before = _grown(self._before, room, dim)
            self._after = _grown(self._after, room, dim_out)


def _grown(kept: FloatArray, rows: int, dim: int) -> FloatArray:
    grown = np.empty((rows, dim), dtype=np.float32)
    if len(kept):
        grown[: len(kept)] = kept
    return grown


def _bits(rows: FloatArray) -> np.ndarray:
    """View float32 rows as whole numbers, two at a time where that goes."""
    rows = np.ascontiguousarray(rows, dtype=np.float32)
    return rows.view(np.uint32 if rows.shape[1] % 2 else np.uint64)
