"""The rows of a collection in memory, ready to be searched and fetched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IdArray, IntArray
from isthmus.neighbors import Exact, Hnsw
from isthmus.spaces.ids import IdIndex

__all__ = ["Resident"]

BLOCK_ROWS = 16_384


@dataclass(frozen=True)
class Resident:
    """One state of a collection.

    Parameters
    ----------
    change : int
        The change counter of the state.
    numbers : IntArray of shape (n,)
        Row numbers in the file, rising.
    ids : array of str objects of shape (n,)
    index : Exact or Hnsw
        Over the rows as they were written.
    """

    change: int
    numbers: IntArray
    ids: npt.NDArray[np.object_]
    index: Exact | Hnsw

    @property
    def vectors(self) -> FloatArray:
        """The rows as they were written, shape (n, dim)."""
        return self.index.database

    @cached_property
    def _places(self) -> IdIndex:
        ids: Any = self.ids
        return IdIndex(ids)

    def find(self, ids: IdArray) -> IntArray:
        """Return the place of each id of shape (m,), -1 where there is none."""
        return self._places.find(ids)

    def blocks(self, numbers: IntArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield rows by number, so many at a time."""
        places = np.searchsorted(self.numbers, numbers)
        for start in range(0, len(places), BLOCK_ROWS):
            some = places[start : start + BLOCK_ROWS]
            yield self.numbers[some], self.vectors[some]
