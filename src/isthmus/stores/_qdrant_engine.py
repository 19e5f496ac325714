"""What the two ways to a Qdrant collection have in common, as a protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from isthmus._types import FloatArray
from isthmus.stores._qdrant_points import Change, Filter, NativeId, Point

__all__ = ["Engine", "Found", "VectorConfig", "plain", "point_of"]

Found: TypeAlias = list[list[tuple[NativeId, float, dict[str, Any]]]]
"""For each query ids, scores, and the id that the payload has."""


@dataclass(frozen=True)
class VectorConfig:
    """One named vector of a collection.

    Parameters
    ----------
    dim : int
    distance : str
        ``Cosine``, ``Dot``, ``Euclid`` or ``Manhattan``.
    datatype : str
        Number type of the stored vectors.
    several : bool
        Whether each row has a matrix of them.
    """

    dim: int
    distance: str
    datatype: str = "float32"
    several: bool = False


class Engine(Protocol):
    """One collection; the empty name is that of its default vector."""

    def vectors(self) -> dict[str, VectorConfig] | None:
        """Return the dense vectors by name, None where there is no collection."""

    def create(self, name: str, config: VectorConfig) -> None:
        """Make the collection with one vector."""

    def add_vector(self, name: str, config: VectorConfig) -> None:
        """Give the rows of the collection a further vector."""

    def read_record(self) -> dict[str, str]:
        """Return the entries of the record."""

    def write_record(self, entries: Mapping[str, str]) -> None:
        """Replace the entries of the record."""

    def write(self, new: Sequence[Point], changes: Sequence[Change], name: str) -> None:
        """Write points as a whole, and change others that are there: what is not named stays."""

    def delete(self, ids: list[NativeId]) -> None:
        """Remove points."""

    def delete_vectors(self, ids: list[NativeId], name: str) -> None:
        """Remove one vector of points."""

    def retrieve(self, ids: list[NativeId], name: str | None) -> list[Point]:
        """Return the points that are there, with one vector or none."""

    def scroll(
        self, after: NativeId | None, limit: int, conditions: list[Filter], name: str | None
    ) -> list[Point]:
        """Return points by id, from ``after`` on, that one included."""

    def query(
        self,
        queries: FloatArray,
        name: str,
        *,
        k: int,
        conditions: list[Filter],
        exact: bool,
    ) -> Found:
        """Return ids, scores and the payload's id of the best points for each query."""

    def count(self, conditions: list[Filter]) -> int:
        """Count points."""

    def close(self) -> None:
        """Let go of the collection."""


def plain(native: Any) -> NativeId:
    """Return an id as a whole number or as text."""
    return native if isinstance(native, int) else str(native)


def point_of(record: Any, name: str | None) -> Point:
    """Return a point with one vector of a record, or none."""
    vector = record.vector if name is not None else None
    if isinstance(vector, dict):
        vector = vector.get(name)
    elif name:
        vector = None
    found = None if vector is None else np.asarray(vector, np.float32)
    return Point(plain(record.id), found, record.payload or {})
