"""A collection of a Qdrant server, through qdrant-client and REST.

The record of a collection lies in its metadata, which servers keep from 1.16 on. Where one does
not, it lies in the collection ``isthmus_records``, as a point without a vector.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from isthmus._types import FloatArray
from isthmus.stores._client_errors import not_an_alias, status_of
from isthmus.stores._qdrant_engine import Found, VectorConfig, plain, point_of
from isthmus.stores._qdrant_points import (
    ID,
    LENGTHS,
    Change,
    Filter,
    NativeId,
    Point,
    native_id,
    quoted,
)

__all__ = ["HttpEngine"]

RECORD = "isthmus:"
RECORDS = "isthmus_records"
UNQUOTABLE = frozenset('"\\')
"""Signs of keys that have no path."""


class HttpEngine:
    """A collection of a server; see `Engine`.

    An alias is followed once, when the collection is opened: an object stays with its collection
    when the name moves on.

    Parameters
    ----------
    client : qdrant_client.QdrantClient
    models : module
        ``qdrant_client.models``.
    name : str
        Of the collection, or an alias of it.
    """

    def __init__(self, client: Any, models: Any, name: str) -> None:
        self._client = client
        self._models = models
        self.name = self._aliases().get(name, name)

    def _aliases(self) -> dict[str, str]:
        try:
            found = self._client.get_aliases().aliases
        except Exception as error:
            if status_of(error) == 403:  # a key for one collection may not see them
                return {}
            raise
        return {one.alias_name: one.collection_name for one in found}

    def _info(self, name: str) -> Any:
        """Return what the server says of a collection, None where it has none."""
        try:
            return self._client.get_collection(name)
        except Exception as error:
            if status_of(error) == 404:
                return None
            raise

    def vectors(self) -> dict[str, VectorConfig] | None:
        """Return the dense vectors by name."""
        info = self._info(self.name)
        if info is None:
            return None
        found = info.config.params.vectors or {}
        named = found if isinstance(found, dict) else {"": found}
        return {
            name: VectorConfig(
                one.size,
                one.distance.value,
                one.datatype.value if one.datatype else "float32",
                one.multivector_config is not None,
            )
            for name, one in named.items()
        }

    def create(self, name: str, config: VectorConfig) -> None:
        """Make the collection, unless another process was faster."""
        params = self._models.VectorParams(size=config.dim, distance=config.distance)
        try:
            self._client.create_collection(
                self.name, vectors_config={name: params} if name else params
            )
        except Exception as error:
            if status_of(error) not in (400, 409) or self._info(self.name) is None:
                raise

    def add_vector(self, name: str, config: VectorConfig) -> None:
        """Give the points a further vector; servers can from 1.18 on."""
        models = self._models
        dense = models.DenseVectorConfig(size=config.dim, distance=config.distance)
        self._client.create_vector_name(
            self.name, name, vector_name_config=models.DenseVectorNameConfig(dense=dense)
        )

    # --- the record ---------------------------------------------------------------------------

    def read_record(self) -> dict[str, str]:
        """Return the entries of the record, from wherever the server keeps them."""
        return self._in_metadata() or self._in_records()

    def _in_metadata(self) -> dict[str, str]:
        info = self._info(self.name)
        metadata = getattr(info.config, "metadata", None) if info is not None else None
        return {
            key.removeprefix(RECORD): text
            for key, text in (metadata or {}).items()
            if key.startswith(RECORD) and isinstance(text, str) and text
        }

    def _in_records(self) -> dict[str, str]:
        try:
            found = self._client.retrieve(RECORDS, [native_id(self.name)], with_payload=True)
        except Exception as error:
            if status_of(error) in (403, 404):
                return {}
            raise
        entries = (found[0].payload or {}).get("entries") if found else None
        return dict(entries) if isinstance(entries, dict) else {}

    def write_record(self, entries: Mapping[str, str]) -> None:
        """Send what changed; the server merges metadata, so that a removed entry becomes empty."""
        known = self._in_metadata()
        changed = {key: text for key, text in entries.items() if known.get(key) != text}
        changed |= {key: "" for key in known if key not in entries}
        metadata = {RECORD + key: text for key, text in changed.items()}
        self._client.update_collection(self.name, metadata=metadata)
        if changed and self._in_metadata() == known:  # a server that does not know metadata
            self._write_records(entries)

    def _write_records(self, entries: Mapping[str, str]) -> None:
        with contextlib.suppress(Exception):  # it is there already; the next request tells
            self._client.create_collection(RECORDS, vectors_config={})
        payload = {"collection": self.name, "entries": dict(entries)}
        point = self._models.PointStruct(id=native_id(self.name), vector={}, payload=payload)
        self._client.upsert(RECORDS, [point], wait=True)

    # --- points -------------------------------------------------------------------------------

    def write(self, new: Sequence[Point], changes: Sequence[Change], name: str) -> None:
        """Write points as a whole, then the parts of others that change."""
        if new:
            self._upsert(new, name)
        if changes:
            self._change(changes, name)

    def _upsert(self, points: Sequence[Point], name: str) -> None:
        vectors: Any = [_numbers(point) for point in points]
        batch = self._models.Batch(
            ids=[point.id for point in points],
            vectors={name: vectors} if name else vectors,
            payloads=[point.payload for point in points],
        )
        self._client.upsert(self.name, batch, wait=True)

    def _change(self, changes: Sequence[Change], name: str) -> None:
        """Change points that are there, by one request.

        Nothing is sent back that was read: another writer may have replaced it meanwhile.
        """
        models = self._models
        vectors = [models.PointVectors(id=one.id, vector={name: _numbers(one)}) for one in changes]
        steps: list[Any] = [
            models.UpdateVectorsOperation(update_vectors=models.UpdateVectors(points=vectors))
        ]
        for one in changes:
            at = {"points": [one.id]}
            if any(set(key) & UNQUOTABLE for key in one.removed):
                for point in self.retrieve([one.id], None):
                    whole = models.SetPayload(payload=one.applied(point.payload, name), **at)
                    steps.append(models.OverwritePayloadOperation(overwrite_payload=whole))
                continue
            if one.removed:
                gone = models.DeletePayload(keys=[quoted(key) for key in one.removed], **at)
                steps.append(models.DeletePayloadOperation(delete_payload=gone))
            if one.payload:
                new = models.SetPayload(payload=one.payload, **at)
                steps.append(models.SetPayloadOperation(set_payload=new))
            if one.length is not None:
                new = models.SetPayload(payload={name: one.length}, key=LENGTHS, **at)
                steps.append(models.SetPayloadOperation(set_payload=new))
        self._client.batch_update_points(self.name, steps, wait=True)

    def delete(self, ids: list[NativeId]) -> None:
        """Remove points."""
        self._client.delete(self.name, self._models.PointIdsList(points=ids), wait=True)

    def delete_vectors(self, ids: list[NativeId], name: str) -> None:
        """Remove one vector of points."""
        self._client.delete_vectors(self.name, [name], ids, wait=True)

    def retrieve(self, ids: list[NativeId], name: str | None) -> list[Point]:
        """Return the points that are there."""
        found = self._client.retrieve(self.name, ids, with_payload=True, with_vectors=_wanted(name))
        return [point_of(record, name) for record in found]

    def scroll(
        self, after: NativeId | None, limit: int, conditions: list[Filter], name: str | None
    ) -> list[Point]:
        """Return points by id."""
        found, _ = self._client.scroll(
            self.name,
            scroll_filter=self._filter(conditions),
            limit=limit,
            offset=after,
            with_payload=True,
            with_vectors=_wanted(name),
        )
        return [point_of(record, name) for record in found]

    def query(
        self,
        queries: FloatArray,
        name: str,
        *,
        k: int,
        conditions: list[Filter],
        exact: bool,
    ) -> Found:
        """Search by all queries in one request."""
        models = self._models
        asked = self._filter(conditions)
        params = models.SearchParams(exact=exact)
        requests = [
            models.QueryRequest(
                query=query,
                using=name or None,
                filter=asked,
                params=params,
                limit=k,
                with_payload=[ID],
            )
            for query in queries.tolist()
        ]
        answers = self._client.query_batch_points(self.name, requests)
        return [
            [(plain(hit.id), float(hit.score), hit.payload or {}) for hit in answer.points]
            for answer in answers
        ]

    def count(self, conditions: list[Filter]) -> int:
        """Count points."""
        found = self._client.count(self.name, count_filter=self._filter(conditions), exact=True)
        return int(found.count)

    def take_name(self, name: str) -> str:
        """Let an alias lead here at one instant, and return where it led."""
        former = self._aliases().get(name, "")
        if not former and self._info(name) is not None:
            raise not_an_alias(name)
        models = self._models
        steps: list[Any] = []
        if former:
            gone = models.DeleteAlias(alias_name=name)
            steps.append(models.DeleteAliasOperation(delete_alias=gone))
        new = models.CreateAlias(collection_name=self.name, alias_name=name)
        steps.append(models.CreateAliasOperation(create_alias=new))
        self._client.update_collection_aliases(steps)
        return former

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _filter(self, conditions: list[Filter]) -> Any:
        return self._models.Filter.model_validate({"must": conditions})


def _wanted(name: str | None) -> bool | list[str]:
    """Return which vectors to ask for: the default one has no name to ask by."""
    return False if name is None else [name] if name else True


def _numbers(point: Point | Change) -> list[float]:
    return [] if point.vector is None else point.vector.tolist()
