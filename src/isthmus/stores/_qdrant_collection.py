"""A Qdrant collection, whichever way leads to it.

Qdrant normalises the vectors of its ``Cosine`` collections. In collections that Isthmus makes, the
length of a vector that was not 1 stays in the payload, so that it reads back as it was given.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from isthmus._types import FloatArray, Metric
from isthmus.errors import InputError, ParameterError, UnsupportedOperationError
from isthmus.spaces import Space
from isthmus.stores._connected import ConnectedStore, Hits, Page, Rows, stacked
from isthmus.stores._qdrant_engine import Engine, VectorConfig
from isthmus.stores._qdrant_points import (
    ID,
    LENGTHS,
    NAMES,
    RESERVED,
    Change,
    Filter,
    NativeId,
    Point,
    conditions,
    fits,
    lengths_of,
    metadata_of,
    native_id,
    payload_of,
    text_id,
)
from isthmus.stores._url import StoreUrl
from isthmus.stores.base import Capabilities, NameRule

__all__ = ["CAPABILITIES", "QdrantCollection"]

DISTANCES: dict[str, Metric] = {"Cosine": "cosine", "Dot": "dot", "Euclid": "l2"}
ALMOST_ONE = 1e-6
READ_BACK = 1e-6
INDEXES = ("exact", "hnsw")
PAGE = 10_000
CAPABILITIES = Capabilities(
    native_scores=MappingProxyType({"cosine": "cosine", "dot": "dot", "l2": "l2"}),
    stores_raw=True,
    read_back_error=READ_BACK,
    exact_search=True,
    ties_by_insertion=False,
    scan_order="key",
    filters=True,
    scan=True,
    notes="after a batch",
    max_batch=10_000,
    names=NameRule(NAMES, '1 to 255 characters, none of < > : " / \\ | ? * and no control'),
    several_vectors=True,
    persistent=True,
    concurrency="one process",
)


class QdrantCollection(ConnectedStore):
    """What both schemes share."""

    options: ClassVar[tuple[str, ...]] = ("index",)
    capabilities = CAPABILITIES

    def __init__(self, url: StoreUrl) -> None:
        super().__init__(url)
        self._engine: Engine
        self._configs: dict[str, VectorConfig] = {}
        self._name = url.options.get("vector", "")
        self._exact = url.choice("index", INDEXES) == INDEXES[0]

    @abstractmethod
    def _open_engine(self) -> Engine:
        """Return the way to the collection."""

    def _connect(self) -> None:
        self._engine = self._open_engine()

    def _disconnect(self) -> None:
        if hasattr(self, "_engine"):
            self._engine.close()

    @property
    def _further(self) -> bool:
        """Whether the URL names a vector, beside the first."""
        return "vector" in self._url.options

    # --- the collection and its vectors -------------------------------------------------------

    def _exists(self) -> bool:
        configs = self._engine.vectors()
        if configs is None:
            return False
        self._configs = configs
        if self._further:
            return self._name in configs
        self._name = self._first(configs)
        return True

    def _first(self, configs: Mapping[str, VectorConfig]) -> str:
        """Return the default vector, or the only one."""
        if "" in configs or len(configs) == 1:
            return "" if "" in configs else next(iter(configs))
        raise ParameterError(
            expected=f"the name of one of the vectors of {self.url}: "
            + (", ".join(sorted(configs)) or "it has no dense ones"),
            got="no name",
            do="add &vector=NAME",
        )

    def _create(self, space: Space) -> None:
        (distance,) = (key for key, metric in DISTANCES.items() if metric == space.metric)
        config = VectorConfig(space.dim, distance)
        if self._engine.vectors() is None:
            self._engine.create(self._name, config)
        else:
            self._engine.add_vector(self._name, config)
        self._configs = self._engine.vectors() or {}

    def _describe(self) -> tuple[int, Metric | None]:
        config = self._configs[self._name]
        if config.several or config.distance not in DISTANCES:
            raise UnsupportedOperationError(
                expected="one vector for each row, compared by " + ", ".join(DISTANCES),
                got="a matrix for each row" if config.several else config.distance,
                do="give the name of another vector: &vector=NAME",
            )
        return config.dim, DISTANCES[config.distance]

    def _settle(self, space: Space | None) -> None:
        super()._settle(space)
        cosine = self._space.metric == "cosine"
        storage = self._configs[self._name].datatype
        exact_copy = storage == "float32" and not cosine
        self.capabilities = replace(
            self.capabilities,
            stores_raw=self._own or not cosine,
            storage=storage,
            read_back_error=0.0 if exact_copy else READ_BACK if storage == "float32" else 1e-2,
            exact_search=self._exact,
        )

    def _read_record(self) -> dict[str, str]:
        return self._engine.read_record()

    def _write_record(self, entries: dict[str, str]) -> None:
        self._engine.write_record(entries)

    # --- rows ---------------------------------------------------------------------------------

    @property
    def _having(self) -> list[Filter]:
        """Only points that have the vector."""
        return [{"has_vector": self._name}]

    def _count(self) -> int:
        return self._engine.count(self._having)

    def _check_sizes(self, ids: list[str], texts: list[str | None]) -> None:
        super()._check_sizes(ids, texts)
        for key in RESERVED:
            if any(text and f'"{key}"' in text and key in json.loads(text) for text in texts):
                raise InputError(
                    expected=f"metadata without {', '.join(RESERVED)}, which Isthmus writes itself",
                    got=repr(key),
                    do="name it otherwise",
                )

    def _write(self, rows: Rows) -> None:
        vectors, lengths = self._prepared(rows.vectors)
        natives = [native_id(text) for text in rows.ids]
        former: dict[NativeId, dict[str, Any]] = {}
        if len(self._engine.vectors() or ()) > 1:  # another program may have added one
            former = {point.id: point.payload for point in self._engine.retrieve(natives, None)}
        new: list[Point] = []
        changes: list[Change] = []
        for text, native, vector, length, metadata in zip(
            rows.ids, natives, vectors, lengths, rows.metadata, strict=True
        ):
            was = former.get(native)
            if was is None:
                kept = {} if length is None else {self._name: length}
                new.append(Point(native, vector, payload_of(text, metadata, kept)))
                continue
            fields = payload_of(text, metadata, {})
            gone = tuple(key for key in was if key not in (*fields, ID, LENGTHS))
            if metadata is None and self._further:
                gone = ()
            known = lengths_of(was).get(self._name)
            changed = None if known == length else 1.0 if length is None else length
            fields = {key: one for key, one in fields.items() if was.get(key, was) != one}
            changes.append(Change(native, vector, fields, gone, changed))
        self._engine.write(new, changes, self._name)

    def _prepared(self, vectors: FloatArray) -> tuple[FloatArray, list[float | None]]:
        """Return vectors as Qdrant keeps them, and the lengths that have to be kept beside.

        Normalised here, since Qdrant leaves very short vectors as they are.
        """
        if self._space.metric != "cosine":
            return vectors, [None] * len(vectors)
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
        unit = np.asarray(vectors / lengths[:, None], np.float32)
        if not self._own:
            return unit, [None] * len(vectors)
        return unit, [None if abs(one - 1.0) <= ALMOST_ONE else one for one in lengths.tolist()]

    def _remove(self, ids: list[str]) -> None:
        natives = [native_id(text) for text in ids]
        if self._further:
            self._engine.delete_vectors(natives, self._name)
        else:
            self._engine.delete(natives)

    def _read(self, ids: list[str], *, vectors: bool) -> Rows:
        natives = [native_id(text) for text in ids]
        several = len(self._configs) > 1  # then a point may be there without the vector
        points = self._engine.retrieve(natives, self._name if vectors or several else None)
        if several:
            points = [point for point in points if point.vector is not None]
        return self._rows(points, vectors=vectors)

    def _rows(self, points: list[Point], *, vectors: bool) -> Rows:
        ids = [text_id(point.id, point.payload) for point in points]
        texts = [metadata_of(point.payload) for point in points]
        if not vectors:
            return Rows(ids, np.empty((len(points), 0), np.float32), texts)
        found = [point.vector for point in points if point.vector is not None]
        matrix = stacked(found, self._space.dim)
        if self._own and self._space.metric == "cosine":
            lengths = [lengths_of(point.payload).get(self._name, 1.0) for point in points]
            matrix = np.asarray(matrix * np.array(lengths).reshape(-1, 1), np.float32)
        return Rows(ids, matrix, texts)

    def _find(self, queries: FloatArray, *, k: int, where: Mapping[str, Any]) -> Hits:
        if self._space.metric == "cosine":
            lengths = np.linalg.norm(queries.astype(np.float64), axis=1, keepdims=True)
            queries = np.asarray(queries / lengths, np.float32)
        asked, rest = conditions(where)
        if rest:
            matching = self._matching(asked, rest)
            if not matching:
                return [[] for _ in queries]
            asked = [{"has_id": matching}]
        found = self._engine.query(queries, self._name, k=k, conditions=asked, exact=self._exact)
        return [[(text_id(native, some), score) for native, score, some in hits] for hits in found]

    def _matching(self, asked: list[Filter], rest: Mapping[str, Any]) -> list[NativeId]:
        """Return the points that have what no condition of Qdrant can ask for."""
        found: list[NativeId] = []
        after: NativeId | None = None
        while True:
            points = self._behind(after, PAGE, asked, None)
            if not points:
                return found
            found += [point.id for point in points if fits(point.payload, rest)]
            after = points[-1].id

    def _page(self, after: str, limit: int) -> Page:
        points = self._behind(native_id(after) if after else None, limit, self._having, self._name)
        return Page(self._rows(points, vectors=True), str(points[-1].id) if points else after)

    def _behind(
        self, after: NativeId | None, limit: int, asked: list[Filter], name: str | None
    ) -> list[Point]:
        """Return points behind an id, whether or not that one is still there."""
        if after is None:
            return self._engine.scroll(None, limit, asked, name)
        points = self._engine.scroll(after, limit + 1, asked, name)
        return [point for point in points if point.id != after][:limit]
