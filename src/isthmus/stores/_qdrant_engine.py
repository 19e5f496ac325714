"""What the two ways to a Qdrant collection have in common, as a protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from isthmus._types import FloatArray
from isthmus.stores._qdrant_points import Filter, NativeId, Point

__all__ = ["Engine", "VectorConfig"]


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

    def upsert(self, points: Sequence[Point], name: str) -> None:
        """Replace points as a whole."""

    def update_vectors(self, points: Sequence[Point], name: str) -> None:
        """Replace one vector of points that are there."""

    def overwrite_payloads(self, points: Sequence[Point]) -> None:
        """Replace the payloads of points that are there."""

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
    ) -> list[list[tuple[NativeId, float, dict[str, Any]]]]:
        """Return ids, scores and the payload's id of the best points for each query."""

    def count(self, conditions: list[Filter]) -> int:
        """Count points."""

    def close(self) -> None:
        """Let go of the collection."""
