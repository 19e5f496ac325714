"""The reference store: rows in a dict, every score computed one query at a time.

Slow, obvious and exact: every other store must agree with it. Nothing of it is shared or global:
each opening makes a collection of its own, empty, which lives as long as the object; pass the
object around to use it in several places.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, Metric
from isthmus._validate import check_positive
from isthmus.errors import MissingCollectionError, UnknownIdError
from isthmus.spaces import Space, VectorSet
from isthmus.spaces.ids import name_few
from isthmus.stores._answers import answers, best, no_rows
from isthmus.stores._checks import (
    as_number,
    as_queries,
    as_texts,
    check_notes,
    check_where,
    matches,
    to_json,
)
from isthmus.stores._url import StoreUrl
from isthmus.stores.base import Batch, Capabilities, Found, Held, Store

__all__ = ["MemoryStore"]


@dataclass(frozen=True)
class _Row:
    number: int
    vector: FloatArray
    metadata: str | None


class MemoryStore(Store):
    """A collection in the memory of this process.

    Parameters
    ----------
    space : Space
    name, collection : str
        For the URL only.

    Examples
    --------
    >>> store = MemoryStore(Space(model="m", dim=2))
    >>> store.upsert(VectorSet(["a", "b"], [[1, 0], [0, 2]], store.space))
    >>> store.search([[0, 1]], k=1).ids.tolist()
    [['b']]
    """

    scheme: ClassVar[str] = "memory"
    capabilities: Capabilities = Capabilities(
        native_scores=MappingProxyType({"cosine": "cosine", "dot": "dot", "l2": "-l2"}),
        stores_raw=True,
        exact_search=True,
        filters=True,
        scan=True,
        notes="with a batch",
        persistent=False,
        concurrency="one process",
        max_batch=None,
    )

    def __init__(self, space: Space, *, name: str = "", collection: str = "default") -> None:
        self._space = space
        self._url = StoreUrl(self.scheme, name, "", collection)
        self._rows: dict[str, _Row] = {}
        self._next = 1
        self._notes: dict[str, str] = {}

    @classmethod
    def open(cls, url: str, *, space: Space | None = None) -> Self:
        """Make an empty collection; see `Store.open`.

        Raises
        ------
        MissingCollectionError
            Without a space: nothing outlives the object that holds it.
        """
        parsed = StoreUrl.parse(url, options=())
        if space is None:
            raise MissingCollectionError(
                expected="a space for the new collection",
                got=f"none for {url!r}, and a memory store is always new",
                do="pass space=, or hand over the MemoryStore object that has the rows",
            )
        return cls(space, name=parsed.place, collection=parsed.collection)

    @property
    def space(self) -> Space:
        """The space of the collection."""
        return self._space

    @property
    def url(self) -> str:
        """The URL that it was opened with; it opens another, empty one."""
        return str(self._url)

    def count(self) -> int:
        """Count the vectors."""
        return len(self._rows)

    def upsert(
        self,
        vectors: VectorSet,
        *,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        """Write rows; see `Store.upsert`."""
        self._space.check(vectors.space)
        texts = to_json(metadata, rows=len(vectors))
        checked = check_notes(notes)
        matrix = np.array(vectors.matrix(), dtype=np.float32)  # a copy: the caller's may change
        for text_id, vector, text in zip(vectors.ids.tolist(), matrix, texts, strict=True):
            old = self._rows.get(text_id)
            number = self._next if old is None else old.number
            self._next += old is None
            self._rows[text_id] = _Row(number, vector, text)
        self._keep(checked)

    def notes(self) -> dict[str, str]:
        """Return the notes; see `Store.notes`."""
        return dict(self._notes)

    def write_notes(self, notes: Mapping[str, str]) -> None:
        """Keep notes without rows; see `Store.write_notes`."""
        self._keep(check_notes(notes))

    def delete(self, ids: Sequence[str]) -> int:
        """Remove rows by id; return how many were there."""
        return sum(self._rows.pop(text, None) is not None for text in as_texts(ids))

    def fetch(self, ids: Sequence[str]) -> VectorSet:
        """Return rows by id; see `Store.fetch`."""
        rows = self._look_up(ids)
        vectors = np.array([row.vector for row in rows], np.float32).reshape(-1, self._space.dim)
        return VectorSet(np.array(as_texts(ids), np.str_), vectors, self._space)

    def fetch_metadata(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        """Return metadata by id; see `Store.fetch_metadata`."""
        return [_fields(row) for row in self._look_up(ids)]

    def held(self, ids: Sequence[str]) -> Held:
        """Return the rows that are there; see `Store.held`."""
        there = [text for text in ids if text in self._rows]
        rows = [self._rows[text] for text in there]
        vectors = np.array([row.vector for row in rows], np.float32).reshape(-1, self._space.dim)
        return Held(there, vectors, [_fields(row) for row in rows])

    def search(
        self, queries: FloatArray | VectorSet, *, k: int, where: Mapping[str, Any] | None = None
    ) -> Found:
        """Score every row for every query; see `Store.search`."""
        matrix = as_queries(queries, self._space, k=k)
        asked = check_where(where)
        chosen = [(text, row) for text, row in self._rows.items() if matches(_fields(row), asked)]
        ids = np.array([text for text, _ in chosen], object)
        rows = np.array([row.vector for _, row in chosen], np.float64)
        numbers = np.arange(len(chosen))[None, :]
        places, scores = no_rows(len(matrix), k)
        for query, vector in enumerate(matrix.astype(np.float64) if chosen else ()):
            found = similarity(vector, rows, self._space.metric)
            near, how_near = best(numbers, found[None, :], k)
            places[query, : near.shape[1]], scores[query, : near.shape[1]] = near[0], how_near[0]
        return answers(places, scores, ids=ids, native=lambda values: values)

    def scan(self, *, batch_size: int = 10_000, cursor: str = "") -> Iterator[Batch]:
        """Yield all rows in order of insertion; see `Store.scan`."""
        check_positive(batch_size, name="batch_size")
        after = as_number(cursor)
        while True:
            batch = [(text, row) for text, row in self._rows.items() if row.number > after]
            batch = batch[:batch_size]
            if not batch:
                return
            after = batch[-1][1].number
            ids = np.array([text for text, _ in batch], np.str_)
            vectors = np.array([row.vector for _, row in batch], np.float32)
            metadata = tuple(_fields(row) for _, row in batch)
            yield Batch(VectorSet(ids, vectors, self._space), str(after), metadata)

    def _keep(self, notes: Mapping[str, str]) -> None:
        kept = {**self._notes, **notes}
        self._notes = {key: value for key, value in kept.items() if value}

    def _look_up(self, ids: Sequence[str]) -> list[_Row]:
        texts = as_texts(ids)
        missing = [text for text in texts if text not in self._rows]
        if missing:
            raise UnknownIdError(
                expected=f"ids of {self.url}",
                got=f"{len(missing):,} of {len(texts):,} that it does not have: "
                + name_few(np.array(missing, np.str_)),
                do="check that both come from the same collection",
            )
        return [self._rows[text] for text in texts]


def similarity(
    query: npt.NDArray[np.float64], rows: npt.NDArray[np.float64], metric: Metric
) -> FloatArray:
    """Return the canonical similarity of one query to rows, shape (n,), rounded to float32.

    Examples
    --------
    >>> similarity(np.array([3.0, 4.0]), np.array([[0.0, 0.0], [3.0, 0.0]]), "l2").tolist()
    [-5.0, -4.0]
    """
    if metric == "l2":
        differences = rows - query
        return np.asarray(-np.sqrt(np.einsum("nd,nd->n", differences, differences)), np.float32)
    products = np.einsum("d,nd->n", query, rows)
    if metric == "dot":
        return np.asarray(products, np.float32)
    lengths = np.sqrt(np.einsum("nd,nd->n", rows, rows)) * np.sqrt(np.einsum("d,d->", query, query))
    return np.asarray(np.clip(products / lengths, -1.0, 1.0), np.float32)


def _fields(row: _Row) -> dict[str, Any]:
    return {} if row.metadata is None else dict(json.loads(row.metadata))
