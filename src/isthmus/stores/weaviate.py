"""Weaviate 1.29 and later: ``weaviate://host:8080?collection=Class``."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from isthmus._types import FloatArray, Metric
from isthmus.errors import (
    IsthmusError,
    MissingCollectionError,
    ParameterError,
    UnsupportedOperationError,
)
from isthmus.spaces import Space
from isthmus.stores._checks import from_json, matches
from isthmus.stores._client_errors import not_an_alias
from isthmus.stores._connected import ConnectedStore, Hits, Page, Rows, stacked
from isthmus.stores._weaviate_errors import RejectedObjects, in_our_words, is_transient
from isthmus.stores._weaviate_objects import (
    OWN_PROPERTIES,
    Properties,
    by_uuids,
    protocol,
    uuid_of,
    vector_message,
    vector_of,
)
from isthmus.stores._weaviate_server import Server
from isthmus.stores.base import Capabilities, NameRule

__all__ = ["WeaviateStore"]

MAX_ROWS = 10_000
"""Most rows of one answer (``QUERY_MAXIMUM_RESULTS``)."""
MAX_BATCH = 1_000
FEW = 20
"""Objects that are looked at together while nobody knows how long their vectors are."""
MESSAGE_BYTES = 8 * 2**20
"""Bytes of one request or answer, under the 10 MB that older servers take."""
RECORDS = "IsthmusRecords"
"""Class that keeps the records of all collections of a server."""
INDEXES: Mapping[str, str] = MappingProxyType({"exact": "flat", "hnsw": "hnsw"})
DISTANCES: Mapping[Metric, str] = MappingProxyType(
    {"cosine": "cosine", "dot": "dot", "l2": "l2-squared"}
)


class WeaviateStore(ConnectedStore):
    """A class of Weaviate whose objects are the rows.

    An object of a collection that Isthmus makes has a uuid made from the id, and the id as text.
    Searches are exact (``flat`` index) unless the URL says ``&index=hnsw``.
    """

    scheme: ClassVar[str] = "weaviate"
    options: ClassVar[tuple[str, ...]] = ("field", "grpc", "index", "tls")
    serial: ClassVar[bool] = False
    capabilities = Capabilities(
        native_scores={"cosine": "1 - cosine", "dot": "-dot", "l2": "squared l2"},
        stores_raw=True,
        exact_search=True,
        ties_by_insertion=False,
        scan_order="key",
        filters=True,
        scan=True,
        notes="after a batch",
        atomic=False,
        max_batch=MAX_BATCH,
        names=NameRule(
            "[A-Z][_0-9A-Za-z]{0,254}",
            "1 to 255 letters, digits and underscores, a capital letter first",
        ),
        switch="alias",
        persistent=True,
        concurrency="many writers",
        proof="protocol fake",
    )

    _server: Server
    _name = ""
    _properties: Properties
    _vector: str
    _vectors: list[str]
    _metric: Metric

    # --- connection ---------------------------------------------------------------------------

    def _connect(self) -> None:
        self._index = INDEXES[self._url.choice("index", tuple(INDEXES))]
        address = self._url.address(8_080)
        self._server = Server(
            address,
            grpc=(address[0], self._url.whole("grpc", 1, 65_535, 50_051)),
            tls=self._url.flag("tls"),
            key=self._secret,
            timeout=self.timeout,
        )

    def _disconnect(self) -> None:
        if hasattr(self, "_server"):
            self._server.close()

    def _rest(self, method: str, *path: str, body: Any = None) -> Any:
        return self._server.rest(method, *path, body=body)

    def _call(self, method: str, request: Any) -> Any:
        return self._server.call(method, request)

    # --- the collection -----------------------------------------------------------------------

    def _exists(self) -> bool:
        self._name = self._leads(self._url.collection) or self._url.collection
        return self._rest("GET", "schema", self._name) is not None

    def _leads(self, alias: str) -> str:
        """Return the class behind an alias; empty where there is none, as before Weaviate 1.32."""
        found = self._rest("GET", "aliases", alias)
        return str(found["class"]) if found else ""

    def _create(self, space: Space) -> None:
        name = self._url.collection
        settings = {"distance": DISTANCES[space.metric], "skipDefaultQuantization": True}
        schema = {
            "class": name,
            "vectorizer": "none",
            "vectorIndexType": self._index,
            "vectorIndexConfig": settings,
            "properties": list(OWN_PROPERTIES),
        }
        self._make(schema)
        self._name = name
        if self._rest("GET", "schema", RECORDS) is not None:  # of a collection that is gone
            self._delete(RECORDS, [uuid_of(f"record of {name}")])

    def _make(self, schema: dict[str, Any]) -> None:
        try:
            self._rest("POST", "schema", body=schema)
        except Exception as error:
            if "already exists" not in str(error):
                raise

    def _read_record(self) -> dict[str, str]:
        record = self._kept_record()
        self._look_at_schema(own=":layout" in record)
        return record

    def _kept_record(self) -> dict[str, str]:
        if self._rest("GET", "schema", RECORDS) is None:
            return {}
        wanted = protocol("search_get_pb2").PropertiesRequest(non_ref_properties=["record"])
        filters = by_uuids([uuid_of(f"record of {self._name}")])
        for result in self._results(RECORDS, limit=1, filters=filters, properties=wanted):
            fields = result.properties.non_ref_props.fields
            return dict(json.loads(fields["record"].text_value))
        return {}

    def _write_record(self, entries: dict[str, str]) -> None:
        if self._rest("GET", "schema", RECORDS) is None:
            properties = [
                {**one, "name": name}
                for one, name in zip(OWN_PROPERTIES, ("collection", "record"), strict=False)
            ]
            settings = {"vectorizer": "none", "vectorIndexConfig": {"skip": True}}
            self._make({"class": RECORDS, "properties": properties, **settings})
        batch = protocol("batch_pb2")
        message = batch.BatchObject.Properties()
        message.non_ref_properties.update(
            {"collection": self._name, "record": json.dumps(entries, ensure_ascii=False)}
        )
        record = uuid_of(f"record of {self._name}")
        self._put([batch.BatchObject(uuid=record, collection=RECORDS, properties=message)])

    def _look_at_schema(self, *, own: bool) -> None:
        schema = self._rest("GET", "schema", self._name)
        if schema is None:
            raise MissingCollectionError(
                expected=f"the collection of {self.url}",
                got="none of that name any more",
                do="check who removed it",
            )
        self._properties = Properties.of(schema, own=own)
        self._vector, vector = self._named_vector(schema)
        self._vectors = sorted(schema.get("vectorConfig") or {})
        config = vector.get("vectorIndexConfig") or {}
        metrics: dict[str, Metric] = {theirs: ours for ours, theirs in DISTANCES.items()}
        distance = config.get("distance", "cosine")
        if distance not in metrics:
            raise UnsupportedOperationError(
                expected="a vector that is searched by " + ", ".join(metrics),
                got=distance,
                do="name another: &field=NAME",
            )
        self._metric = metrics[distance]
        packed = any(
            isinstance(one, dict) and one.get("enabled")
            for one in (config.get(kind) for kind in ("bq", "pq", "sq", "rq"))
        )
        self.capabilities = replace(
            type(self).capabilities,
            exact_search=vector.get("vectorIndexType") == "flat" and not packed,
        )

    def _named_vector(self, schema: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Return the name of the vector, empty for the one without, and how it is declared."""
        named: Mapping[str, Any] = schema.get("vectorConfig") or {}
        asked = self._url.options.get("field")
        if not named and asked is None:
            return "", schema
        if asked is None and len(named) == 1:
            (asked,) = named
        if asked is None or asked not in named:
            raise UnsupportedOperationError(
                expected="a collection with one vector" + (f", {asked!r}" if asked else ""),
                got=", ".join(sorted(named)) or "one without a name",
                do="name one: &field=NAME",
            )
        return asked, named[asked]

    def _describe(self) -> tuple[int | None, Metric | None]:
        for found in self._objects("", FEW):
            for result in found:
                vector = vector_of(result, self._vector)
                if vector is not None:
                    return len(vector), self._metric
        return None, self._metric

    def _take_name(self, name: str, former: str) -> str:
        del former
        leads = self._leads(name)
        if leads:
            self._rest("PUT", "aliases", name, body={"class": self._name})
            return leads
        if self._rest("GET", "schema", name) is not None:
            raise not_an_alias(name)
        if self._rest("POST", "aliases", body={"alias": name, "class": self._name}) is None:
            raise UnsupportedOperationError(
                expected="Weaviate 1.32 or later, which has aliases",
                got="an older server",
                do="point the application at the new collection, in two steps: see docs/convert.md",
            )
        return ""

    # --- rows ---------------------------------------------------------------------------------

    def _results(self, name: str, **wanted: Any) -> Any:
        request = protocol("search_get_pb2").SearchRequest(
            collection=name, uses_123_api=True, uses_125_api=True, uses_127_api=True, **wanted
        )
        return self._call("Search", request).results

    def _wanted(self, *, vectors: bool) -> Any:
        """Ask for the vector also to know of objects of others that have none: no filter can."""
        request = protocol("search_get_pb2").MetadataRequest
        vectors = vectors or not self._properties.own
        names = [self._vector] if vectors and self._vector else []
        return request(uuid=True, vector=vectors and not self._vector, vectors=names)

    def _objects(self, after: str, limit: int, **wanted: Any) -> Iterator[list[Any]]:
        """Yield all objects behind a uuid, with their vectors, as many as one request gives."""
        wanted["metadata"] = self._wanted(vectors=True)
        after = after or str(uuid.UUID(int=0))
        while found := list(self._results(self._name, limit=limit, after=after, **wanted)):
            yield found
            after = str(found[-1].metadata.id)

    def _asked(self) -> Any:
        request = protocol("search_get_pb2").PropertiesRequest
        if self._properties.own:
            return request(non_ref_properties=["text_id", "metadata"])
        return request(return_all_nonref_properties=True)

    def _count(self) -> int:
        if not self._properties.own:
            pages = self._objects("", self._rows_of_a_message())
            return sum(len(self._having(found)) for found in pages)
        aggregate = protocol("aggregate_pb2")
        request = aggregate.AggregateRequest(collection=self._name, objects_count=True)
        return int(self._call("Aggregate", request).single_result.objects_count)

    def _write(self, rows: Rows) -> None:
        batch = protocol("batch_pb2")
        objects: list[Any] = []
        size = 0
        former = {} if self._properties.own else self._former(rows.ids)
        for text, vector, metadata in zip(rows.ids, rows.vectors, rows.metadata, strict=True):
            was = former.get(text)
            one = batch.BatchObject(
                uuid=self._properties.uuid(text),
                collection=self._name,
                properties=self._properties.to_message(text, metadata, was),
                **self._written(vector, was),
            )
            size += one.ByteSize()
            if size > MESSAGE_BYTES and objects:
                self._put(objects)
                objects, size = [], one.ByteSize()
            objects.append(one)
        self._put(objects)

    def _former(self, ids: list[str]) -> dict[str, Any]:
        """Return objects of others as they are there: a write must not take what it does not name.

        Weaviate replaces objects as wholes.
        """
        vectors = self._vectors
        wanted = protocol("search_get_pb2").MetadataRequest(
            uuid=True, vector=not self._vector, vectors=vectors
        )
        found = self._by_ids(ids, wanted, width=max(1, len(vectors)))
        return {str(result.metadata.id): result for result in found}

    def _written(self, vector: FloatArray, former: Any) -> dict[str, Any]:
        if self._vector:
            others = [] if former is None else former.metadata.vectors
            kept = [one for one in others if one.name != self._vector]
            return {"vectors": [*kept, vector_message(vector, self._vector)]}
        return {"vector_bytes": np.asarray(vector, "<f4").tobytes()}

    def _put(self, objects: list[Any]) -> None:
        request = protocol("batch_pb2").BatchObjectsRequest
        answer = self._call("BatchObjects", request(objects=objects))
        if answer.errors:
            raise RejectedObjects(answer.errors[0].error)

    def _remove(self, ids: list[str]) -> None:
        if uuids := self._properties.uuids(ids):
            self._delete(self._name, uuids)

    def _delete(self, name: str, uuids: list[str]) -> None:
        request = protocol("batch_delete_pb2").BatchDeleteRequest
        answer = self._call("BatchDelete", request(collection=name, filters=by_uuids(uuids)))
        if answer.failed:
            raise RejectedObjects(f"{answer.failed} objects could not be deleted")

    def _read(self, ids: list[str], *, vectors: bool) -> Rows:
        return self._rows(self._by_ids(ids, self._wanted(vectors=vectors)), vectors=vectors)

    def _by_ids(self, ids: list[str], wanted: Any, *, width: int = 1) -> list[Any]:
        """Return the objects of these ids that are there, with ``width`` vectors each."""
        uuids = self._properties.uuids(ids)
        step = self._rows_of_a_message(width)
        found: list[Any] = []
        for start in range(0, len(uuids), step):
            some = uuids[start : start + step]
            found += self._results(
                self._name,
                limit=len(some),
                filters=by_uuids(some),
                properties=self._asked(),
                metadata=wanted,
            )
        return found

    def _rows_of_a_message(self, width: int = 1) -> int:
        return max(1, min(MAX_ROWS, MESSAGE_BYTES // (4 * self.space.dim * width + 2_048)))

    def _having(self, found: Iterable[Any]) -> list[Any]:
        """Return the objects that have the vector."""
        if self._properties.own:
            return list(found)
        return [result for result in found if vector_of(result, self._vector) is not None]

    def _page(self, after: str, limit: int) -> Page:
        step = min(limit, self._rows_of_a_message())
        for found in self._objects(after, step, properties=self._asked()):
            rows, after = self._rows(found, vectors=True), str(found[-1].metadata.id)
            if rows.ids:  # objects without the vector are passed over
                return Page(rows, after)
        return Page(self._rows([], vectors=True), after)

    def _rows(self, found: Iterable[Any], *, vectors: bool) -> Rows:
        results = self._having(found)
        matrix = np.empty((len(results), 0), np.float32)
        if vectors:
            given = [vector_of(result, self._vector) for result in results]
            matrix = stacked([one for one in given if one is not None], self.space.dim)
        ids = [self._properties.id_of(result) for result in results]
        return Rows(ids, matrix, [self._properties.metadata(result) for result in results])

    # --- search -------------------------------------------------------------------------------

    def _find(self, queries: FloatArray, *, k: int, where: Mapping[str, Any]) -> Hits:
        filters, unsure = self._properties.where(where)
        if filters is False:
            return [[] for _ in queries]
        if unsure:
            filters = self._that_have(filters, where)
        if k > MAX_ROWS:
            if self._count() > MAX_ROWS:
                raise ParameterError(
                    expected=f"k of at most {MAX_ROWS:,}, as Weaviate allows",
                    got=f"{k:,}",
                    do="ask for fewer",
                )
            k = MAX_ROWS
        search = protocol("search_get_pb2")
        wanted = {
            "limit": k,
            "filters": filters or None,
            "metadata": search.MetadataRequest(uuid=True, distance=True),
            "properties": search.PropertiesRequest(
                non_ref_properties=["text_id"] if self._properties.own else []
            ),
        }
        return [
            [
                (self._properties.id_of(result), float(result.metadata.distance))
                for result in self._results(self._name, near_vector=self._near(query), **wanted)
            ]
            for query in queries
        ]

    def _near(self, query: FloatArray) -> Any:
        search = protocol("base_search_pb2")
        near = search.NearVector(vectors=[vector_message(query, "")])
        if self._vector:
            near.targets.target_vectors.append(self._vector)
        return near

    def _that_have(self, filters: Any, where: Mapping[str, Any]) -> Any:
        """Return the filter for the rows that have the values exactly.

        Texts are split into words before they are compared, and lists are found by one value.
        """
        search = protocol("search_get_pb2")
        found = self._results(
            self._name,
            limit=MAX_ROWS,
            filters=filters,
            properties=self._asked(),
            metadata=search.MetadataRequest(uuid=True),
        )
        if len(found) == MAX_ROWS:
            raise UnsupportedOperationError(
                expected=f"a filter by words that fewer than {MAX_ROWS:,} rows have",
                got=", ".join(where),
                do="give the property the tokenization 'field', or filter by another one",
            )
        kept = [
            result.metadata.id
            for result in found
            if matches(from_json(self._properties.metadata(result), "of an object"), where)
        ]
        return by_uuids(kept or [uuid_of("no object")])

    # --- errors -------------------------------------------------------------------------------

    def _is_transient(self, error: Exception) -> bool:
        return is_transient(error)

    def _in_our_words(self, error: Exception) -> IsthmusError:
        where = f"{self.scheme} at {self._url.place!r}"
        found = in_our_words(error, where=where, secret=self._secret)
        return found or super()._in_our_words(error)
