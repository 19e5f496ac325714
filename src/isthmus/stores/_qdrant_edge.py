"""Qdrant's engine in this process: a folder for each collection, opened by one process at a time.

The record of a collection lies beside its segments, in ``isthmus.json``.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from isthmus._files import atomic_path
from isthmus._types import FloatArray
from isthmus.errors import CorruptStoreError, NotAStoreError
from isthmus.stores._qdrant_engine import Found, VectorConfig, plain, point_of
from isthmus.stores._qdrant_points import ID, Change, Filter, NativeId, Point

__all__ = ["EdgeEngine"]

CONFIG = "edge_config.json"
SEGMENTS = "segments"
RECORD = "isthmus.json"
LOCAL_MODE = "meta.json"
MANY_QUERIES = 8
FEW_POINTS = 20_000


@dataclass
class _Shared:
    """A shard that several stores of this process use."""

    shard: Any
    users: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)


@dataclass
class _Shards:
    """The open shards of this process: the engine lets a folder be opened once only."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    by_path: dict[str, _Shared] = field(default_factory=dict)

    def take(self, path: str, make: Any) -> Any:
        """Return the open shard of a folder, or the one that ``make`` opens."""
        with self.lock:
            if path not in self.by_path:
                self.by_path[path] = _Shared(make())
            self.by_path[path].users += 1
            return self.by_path[path].shard

    def lock_of(self, path: str) -> threading.RLock:
        """Return the lock of those who write to an open shard."""
        with self.lock:
            return self.by_path[path].lock

    def give_back(self, path: str) -> None:
        """Close the shard when nobody uses it any more."""
        with self.lock:
            shared = self.by_path[path]
            shared.users -= 1
            if shared.users == 0:
                del self.by_path[path]
                shared.shard.close()


_SHARDS = _Shards()


class EdgeEngine:
    """A collection in a folder; see `Engine`.

    Parameters
    ----------
    edge : module
        ``qdrant_edge``.
    folder : Path
        That holds the folders of collections.
    name : str
    """

    def __init__(self, edge: Any, folder: Path, name: str) -> None:
        if (folder / LOCAL_MODE).is_file() and (folder / "collection").is_dir():
            raise NotAStoreError(
                expected="a folder of collections of qdrant-edge",
                got=f"{str(folder)!r}, which holds those of qdrant-client's local mode",
                do="copy it with qdrant-client's migrate to a server, and open it there",
            )
        self._edge = edge
        self._path = folder.absolute() / name
        self._key = str(self._path.resolve())
        self._shard: Any = None
        self._stale = True

    @property
    def _open(self) -> Any:
        if self._shard is None:
            path = str(self._path)
            self._shard = _SHARDS.take(self._key, lambda: self._edge.EdgeShard.load(path))
        return self._shard

    def vectors(self) -> dict[str, VectorConfig] | None:
        """Return the dense vectors by name."""
        if not (self._path / CONFIG).is_file() and not (self._path / SEGMENTS).is_dir():
            return None
        self._open.info()  # a shard of a server has its configuration written by now
        try:
            found = json.loads((self._path / CONFIG).read_text(encoding="utf-8"))["vectors"]
        except (ValueError, KeyError) as error:
            raise CorruptStoreError(
                expected=f"a configuration in {str(self._path / CONFIG)!r}",
                got=type(error).__name__,
                do="restore the file",
            ) from error
        return {
            name: VectorConfig(
                one["size"],
                one["distance"],
                str(one.get("datatype") or "float32").lower(),
                one.get("multivector_config") is not None,
            )
            for name, one in found.items()
        }

    def create(self, name: str, config: VectorConfig) -> None:
        """Make the folder of the collection."""
        if self._path.exists() and any(self._path.iterdir()):
            raise NotAStoreError(
                expected=f"an empty folder, or none, for the collection {str(self._path)!r}",
                got="one that holds other things",
                do="choose another name",
            )
        self._path.mkdir(parents=True, exist_ok=True)
        edge = self._edge
        params = edge.EdgeVectorParams(config.dim, getattr(edge.Distance, config.distance))
        settings = edge.EdgeConfig(vectors={name: params} if name else params)
        path = str(self._path)
        self._shard = _SHARDS.take(self._key, lambda: edge.EdgeShard.create(path, settings))

    def add_vector(self, name: str, config: VectorConfig) -> None:
        """Give the rows a further vector."""
        distance = getattr(self._edge.Distance, config.distance)
        self._update("create_dense_vector", name, config.dim, distance)

    def read_record(self) -> dict[str, str]:
        """Return the entries of the record."""
        path = self._path / RECORD
        if not path.is_file():
            return {}
        try:
            return {str(key): str(one) for key, one in json.loads(path.read_bytes()).items()}
        except (ValueError, AttributeError) as error:
            raise CorruptStoreError(
                expected=f"the record of a collection in {str(path)!r}",
                got=type(error).__name__,
                do="remove the file and record the space again",
            ) from error

    def write_record(self, entries: Mapping[str, str]) -> None:
        """Write the record after the rows are on the disk, so that no note runs ahead of them."""
        self._open.flush()
        with atomic_path(self._path / RECORD) as temporary:
            temporary.write_text(json.dumps(dict(entries), ensure_ascii=False), encoding="utf-8")

    @property
    def _lock(self) -> threading.RLock:
        """Of the shard: what is read to be changed must not change meanwhile."""
        return _SHARDS.lock_of(self._key)

    def _update(self, operation: str, *given: Any) -> None:
        shard = self._open
        with self._lock:
            self._stale = True
            shard.update(getattr(self._edge.UpdateOperation, operation)(*given))

    def write(self, new: Sequence[Point], changes: Sequence[Change], name: str) -> None:
        """Write all of them by one request, as wholes, so that none is ever half new."""
        make, shard = self._edge.Point, self._open
        points = [
            make(point.id, {name: point.vector} if name else point.vector, point.payload)
            for point in new
        ]
        with self._lock:
            there = self._whole([one.id for one in changes])
            for one in changes:
                vectors, payload = there.get(one.id, ({}, {}))
                payload = one.applied(payload, name)
                points.append(make(one.id, {**vectors, name: one.vector}, payload))
            self._stale = True
            shard.update(self._edge.UpdateOperation.upsert_points(points))

    def _whole(self, ids: list[NativeId]) -> dict[NativeId, tuple[dict[str, Any], dict[str, Any]]]:
        """Return all vectors and the payloads of points."""
        if not ids:
            return {}
        found = {}
        for record in self._open.retrieve(ids, with_payload=True, with_vector=True):
            vectors = {} if record.vector is None else record.vector
            named = vectors if isinstance(vectors, dict) else {"": vectors}
            found[plain(record.id)] = (named, record.payload or {})
        return found

    def delete(self, ids: list[NativeId]) -> None:
        """Remove points."""
        self._update("delete_points", ids)

    def delete_vectors(self, ids: list[NativeId], name: str) -> None:
        """Remove one vector of points."""
        self._update("delete_vectors", ids, [name])

    def retrieve(self, ids: list[NativeId], name: str | None) -> list[Point]:
        """Return the points that are there."""
        found = self._open.retrieve(ids, with_payload=True, with_vector=name is not None)
        return [point_of(record, name) for record in found]

    def scroll(
        self, after: NativeId | None, limit: int, conditions: list[Filter], name: str | None
    ) -> list[Point]:
        """Return points by id."""
        request = self._edge.ScrollRequest(
            offset=after,
            limit=limit,
            filter=self._filter(conditions),
            with_payload=True,
            with_vector=name is not None,
        )
        return [point_of(record, name) for record in self._open.scroll(request)[0]]

    def query(
        self,
        queries: FloatArray,
        name: str,
        *,
        k: int,
        conditions: list[Filter],
        exact: bool,
    ) -> Found:
        """Search by one query after the other, which is faster here than a batch."""
        edge = self._edge
        if not exact and self._stale:
            self._open.optimize()
            self._stale = False
        if conditions and len(queries) >= MANY_QUERIES:
            conditions = self._resolved(conditions)
        asked = self._filter(conditions)
        params = edge.SearchParams(exact=exact)
        hits = (
            self._open.search(
                edge.SearchRequest(
                    edge.Query.Nearest(query, name or None),
                    k,
                    filter=asked,
                    params=params,
                    with_payload=[ID],
                )
            )
            for query in queries
        )
        return [[(plain(hit.id), hit.score, hit.payload or {}) for hit in found] for found in hits]

    def _resolved(self, conditions: list[Filter]) -> list[Filter]:
        """Look for the points once, where they are few, so that each query need not."""
        request = self._edge.ScrollRequest(
            limit=FEW_POINTS,
            filter=self._filter(conditions),
            with_payload=False,
            with_vector=False,
        )
        found, more = self._open.scroll(request)
        return conditions if more else [{"has_id": [plain(record.id) for record in found]}]

    def count(self, conditions: list[Filter]) -> int:
        """Count points."""
        request = self._edge.CountRequest(exact=True, filter=self._filter(conditions))
        return int(self._open.count(request))

    def close(self) -> None:
        """Let go of the shard."""
        shard, self._shard = self._shard, None
        if shard is not None:
            _SHARDS.give_back(self._key)

    def _filter(self, conditions: list[Filter]) -> Any:
        return self._edge.Filter(must=[self._condition(one) for one in conditions])

    def _condition(self, one: Filter) -> Any:
        edge = self._edge
        for key, kind in (
            ("is_null", edge.IsNullCondition),
            ("is_empty", edge.IsEmptyCondition),
        ):
            if key in one:
                return kind(one[key]["key"])
        if "has_vector" in one:
            return edge.HasVectorCondition(one["has_vector"])
        if "has_id" in one:
            return edge.HasIdCondition(set(one["has_id"]))
        if "match" in one:
            value = one["match"]["value"]
            # The binding takes True for 1; the truth values of numpy it takes for what they are.
            value = np.bool_(value) if isinstance(value, bool) else value
            return edge.FieldCondition(key=one["key"], match=edge.MatchValue(value))
        if "range" in one:
            between = edge.RangeFloat(**one["range"])
            return edge.FieldCondition(key=one["key"], range=between)
        values = edge.ValuesCount(**one["values_count"])
        return edge.FieldCondition(key=one["key"], values_count=values)
