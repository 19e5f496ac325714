"""Weaviate: its schema by REST, its objects by gRPC, in Python.

The messages are those of the official client's package; what this fake does with them is its own.
Fields of a message that it does not know are an error.
"""

from __future__ import annotations

import copy
import re
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import grpc
import numpy as np
from tests.fakes.http_server import FakeServer, Refusal
from weaviate.proto.v1 import (
    aggregate_pb2,
    base_pb2,
    batch_delete_pb2,
    batch_pb2,
    search_get_pb2,
    weaviate_pb2_grpc,
)

if TYPE_CHECKING:
    from typing import Self

    from tests.fakes.http_server import Request

MOST = 10_000
NAME = re.compile(r"[A-Z][_0-9A-Za-z]{0,254}")
SCHEMA = {
    "class",
    "vectorizer",
    "vectorIndexType",
    "vectorIndexConfig",
    "vectorConfig",
    "properties",
    "description",
}
PROPERTY = {
    "name",
    "dataType",
    "tokenization",
    "indexFilterable",
    "indexSearchable",
    "description",
}
EMPTY = "default"
"""Name of the vector that has none."""


class Broken(Exception):  # noqa: N818 - an answer of gRPC that is not a success
    """An answer of gRPC with a code."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self.code, self.details = code, details


@dataclass
class Thing:
    """An object of a class."""

    properties: dict[str, Any]
    vectors: dict[str, np.ndarray]


@dataclass
class Class:
    """One class: its schema, and its objects by uuid."""

    schema: dict[str, Any]
    things: dict[str, Thing] = field(default_factory=dict)
    dims: dict[str, int] = field(default_factory=dict)

    def types(self) -> dict[str, dict[str, Any]]:
        return {one["name"]: one for one in self.schema.get("properties", [])}

    def declared(self, name: str) -> dict[str, Any]:
        return self.schema if name == EMPTY else self.schema["vectorConfig"][name]


@dataclass
class GrpcFault:
    """What goes wrong with the next calls of a method."""

    method: str
    code: grpc.StatusCode
    details: str = "broken on purpose"
    times: int = 1


@dataclass
class FakeWeaviate(FakeServer):
    """A server of both protocols; `grpc_port` is the second one's."""

    grpc_port: int = 0
    classes: dict[str, Class] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    has_aliases: bool = True  # as since 1.32
    key: str | None = None
    read_only: bool = False
    grpc_faults: list[GrpcFault] = field(default_factory=list)
    calls: list[tuple[str, Any]] = field(default_factory=list)

    # --- both servers -------------------------------------------------------------------------

    def start(self) -> Self:
        super().start()
        self._grpc = grpc.server(
            ThreadPoolExecutor(4), options=(("grpc.max_receive_message_length", 10 * 2**20),)
        )
        weaviate_pb2_grpc.add_WeaviateServicer_to_server(_Servicer(self), self._grpc)
        self.grpc_port = self._grpc.add_insecure_port(f"127.0.0.1:{self.grpc_port}")
        self._grpc.start()
        return self

    def stop(self) -> None:
        self._grpc.stop(0).wait()
        super().stop()

    kill = stop

    def refusal(self, refusal: Refusal) -> Any:
        return {"error": [{"message": refusal.message}]}

    # --- REST ---------------------------------------------------------------------------------

    def answer(self, request: Request) -> Any:
        if self.key is not None and request.headers.get("authorization") != f"Bearer {self.key}":
            raise Refusal(401, "anonymous access not enabled")
        assert not request.query
        match (request.method, request.path):
            case ("GET", ("v1", "schema", name)):
                return self.schema(name)
            case ("POST", ("v1", "schema")):
                return self.create(request.body)
            case (_, ("v1", "aliases", *_)) if not self.has_aliases:
                raise Refusal(404, "path /v1/aliases was not found")
            case ("GET", ("v1", "aliases", name)):
                if name not in self.aliases:
                    raise Refusal(404, "")
                return {"alias": name, "class": self.aliases[name]}
            case ("POST", ("v1", "aliases")):
                return self.alias(request.body["alias"], request.body)
            case ("PUT", ("v1", "aliases", name)):
                if name not in self.aliases:
                    raise Refusal(404, "")
                return self.alias(name, request.body)
        raise Refusal(405, f"method {request.method} is not allowed on {request.path}")

    def schema(self, name: str) -> Any:
        if name not in self.classes:
            raise Refusal(404, "")
        return self.classes[name].schema

    def create(self, schema: dict[str, Any]) -> Any:
        name = schema["class"]
        if not NAME.fullmatch(name):
            raise Refusal(422, f"'{name}' is not a valid class name")
        if name in self.classes or name in self.aliases:
            raise Refusal(422, f"class name {name} already exists")
        assert not schema.keys() - SCHEMA, schema.keys() - SCHEMA
        for one in schema.get("properties", []):
            assert not one.keys() - PROPERTY, one.keys() - PROPERTY
            if one["name"] in {"id", "_id", "_additional"}:
                raise Refusal(422, f"'{one['name']}' is a reserved property name")
        kept = copy.deepcopy(schema)
        if "vectorConfig" not in kept:
            kept.setdefault("vectorIndexType", "hnsw")
            kept.setdefault("vectorIndexConfig", {}).setdefault("distance", "cosine")
        self.classes[name] = Class(kept)
        return kept

    def alias(self, name: str, body: dict[str, Any]) -> Any:
        assert not body.keys() - {"alias", "class"}
        if not NAME.fullmatch(name):
            raise Refusal(422, f"'{name}' is not a valid alias name")
        if name in self.classes:
            raise Refusal(422, f"create alias: class {name} already exists")
        if body["class"] not in self.classes:
            raise Refusal(422, f"create alias: class {body['class']} does not exist")
        self.aliases[name] = body["class"]
        return {"alias": name, "class": body["class"]}

    # --- gRPC ---------------------------------------------------------------------------------

    def called(self, method: str, request: Any, metadata: dict[str, str]) -> Any:
        with self._guard:
            self.calls.append((method, request))
            for fault in self.grpc_faults:
                if fault.method == method:
                    fault.times -= 1
                    if not fault.times:
                        self.grpc_faults.remove(fault)
                    raise Broken(fault.code, fault.details)
            if self.key is not None and metadata.get("authorization") != f"Bearer {self.key}":
                raise Broken(grpc.StatusCode.UNAUTHENTICATED, "unauthorized: anonymous access")
            return getattr(self, method)(request)

    def found(self, name: str) -> Class:
        name = self.aliases.get(name, name)
        if name not in self.classes:
            details = f"could not find class {name} in schema"
            raise Broken(grpc.StatusCode.UNKNOWN, details)
        return self.classes[name]

    def BatchObjects(self, request: Any) -> Any:  # noqa: N802 - as the protocol has it
        known(request, "objects")
        errors = []
        for place, one in enumerate(request.objects):
            try:
                self.put(one)
            except ValueError as error:
                errors.append(batch_pb2.BatchObjectsReply.BatchError(index=place, error=str(error)))
        return batch_pb2.BatchObjectsReply(took=0.001, errors=errors)

    def put(self, one: Any) -> None:
        known(one, "uuid", "properties", "collection", "vector_bytes", "vectors")
        if self.read_only:
            raise ValueError("put object: store is read-only")
        where = self.found(one.collection)
        uuid.UUID(one.uuid)
        vectors = {vector.name: floats(vector.vector_bytes) for vector in one.vectors}
        if one.vector_bytes:
            vectors[EMPTY] = floats(one.vector_bytes)
        if (vectors.keys() - {EMPTY}) != set(vectors) & set(where.schema.get("vectorConfig", {})):
            raise ValueError(f"vectors {sorted(vectors)} are not declared")
        for name, vector in vectors.items():
            if where.dims.setdefault(name, len(vector)) != len(vector):
                raise ValueError(
                    f"new node has a vector with length {len(vector)}. Existing nodes have "
                    f"vectors with length {where.dims[name]}"
                )
        where.things[one.uuid] = Thing(properties_of(one.properties, where), vectors)

    def BatchDelete(self, request: Any) -> Any:  # noqa: N802
        known(request, "collection", "filters")
        where = self.found(request.collection)
        there = matching(where, request.filters)
        for one in there:
            del where.things[one]
        return batch_delete_pb2.BatchDeleteReply(matches=len(there), successful=len(there))

    def Aggregate(self, request: Any) -> Any:  # noqa: N802
        known(request, "collection", "objects_count")
        count = len(self.found(request.collection).things)
        single = aggregate_pb2.AggregateReply.Single(objects_count=count)
        return aggregate_pb2.AggregateReply(single_result=single)

    def Search(self, request: Any) -> Any:  # noqa: N802
        known(
            request,
            *("collection", "limit", "after", "filters", "properties", "metadata", "near_vector"),
            *("uses_123_api", "uses_125_api", "uses_127_api"),
        )
        assert request.uses_123_api
        assert request.uses_125_api
        assert request.uses_127_api
        if request.limit > MOST:
            details = "query maximum results exceeded"
            raise Broken(grpc.StatusCode.UNKNOWN, details)
        where = self.found(request.collection)
        if request.after and (request.HasField("filters") or request.HasField("near_vector")):
            raise Broken(grpc.StatusCode.UNKNOWN, "cursor api: invalid combination")
        there = matching(where, request.filters if request.HasField("filters") else None)
        if request.HasField("near_vector"):
            scored = near(where, there, request.near_vector)
        else:
            scored = [(one, None) for one in sorted(there) if one > request.after]
        results = [
            result(where, one, distance, request) for one, distance in scored[: request.limit or 25]
        ]
        return search_get_pb2.SearchReply(took=0.001, results=results)


class _Servicer(weaviate_pb2_grpc.WeaviateServicer):
    def __init__(self, fake: FakeWeaviate) -> None:
        for method in ("Search", "BatchObjects", "BatchDelete", "Aggregate"):
            setattr(self, method, self._answering(fake, method))

    @staticmethod
    def _answering(fake: FakeWeaviate, method: str) -> Any:
        def answer(request: Any, context: Any) -> Any:
            try:
                return fake.called(method, request, dict(context.invocation_metadata()))
            except Broken as broken:
                context.abort(broken.code, broken.details)

        return answer


def known(message: Any, *names: str) -> None:
    """Refuse a message with fields that this fake would pass over."""
    given = {one.name for one, _ in message.ListFields()}
    if given - set(names):
        details = f"fields that the fake does not know: {sorted(given - set(names))}"
        raise Broken(grpc.StatusCode.INVALID_ARGUMENT, details)


def floats(given: bytes) -> np.ndarray:
    return np.frombuffer(given, "<f4")


# --- properties --------------------------------------------------------------------------------


def properties_of(message: Any, where: Class) -> dict[str, Any]:
    known(
        message,
        *("non_ref_properties", "text_array_properties", "int_array_properties"),
        *("number_array_properties", "boolean_array_properties", "empty_list_props"),
    )
    found: dict[str, Any] = dict(message.non_ref_properties.items())
    for kind in ("text", "int", "boolean"):
        for one in getattr(message, f"{kind}_array_properties"):
            found[one.prop_name] = list(one.values)
    for one in message.number_array_properties:
        found[one.prop_name] = np.frombuffer(one.values_bytes, "<f8").tolist()
    found |= dict.fromkeys(message.empty_list_props, ())
    types = where.types()
    for name, value in found.items():
        if name not in types:  # as the auto schema does
            guess = {"name": name, "dataType": [type_of(value)], "tokenization": "word"}
            where.schema.setdefault("properties", []).append(guess)
            continue
        if not fits(types[name]["dataType"][0], value):
            raise ValueError(f"invalid {types[name]['dataType'][0]} property '{name}'")
    return found


def type_of(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"{type_of(value[0]) if value else 'text'}[]"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "text"
    return "int" if isinstance(value, int) else "number"


def fits(kind: str, value: Any) -> bool:
    if kind.endswith("[]"):
        return isinstance(value, list | tuple) and all(fits(kind[:-2], one) for one in value)
    if kind == "date":
        kind = "text"
    if kind == "int":
        return not isinstance(value, bool | str | list | tuple) and float(value).is_integer()
    return type_of(value) == kind or (kind == "number" and type_of(value) == "int")


def fill(into: Any, kind: str, value: Any) -> None:
    """Write a property as an answer has it."""
    if isinstance(value, list | tuple):
        into.list_value.SetInParent()
        if not value:
            return
        kind = kind.removesuffix("[]")
        packed = {"number": "<f8", "int": "<i8"}.get(kind)
        name = {"boolean": "bool"}.get(kind, kind)
        values = getattr(into.list_value, f"{name}_values")
        if packed:
            values.values = np.asarray(value, packed).tobytes()
        else:
            values.values.extend(value)
    elif kind == "boolean":
        into.bool_value = value
    elif kind in ("text", "date"):
        setattr(into, f"{kind}_value", value)
    elif kind == "int":
        into.int_value = int(value)
    else:
        into.number_value = value


def result(where: Class, one: str, distance: float | None, request: Any) -> Any:
    known(request.properties, "non_ref_properties", "return_all_nonref_properties")
    known(request.metadata, "uuid", "vector", "vectors", "distance")
    thing, answer, types = where.things[one], search_get_pb2.SearchResult(), where.types()
    names = list(request.properties.non_ref_properties)
    if request.properties.return_all_nonref_properties:
        names = list(types)
    for name in names:
        if name in thing.properties:
            fields = answer.properties.non_ref_props.fields
            fill(fields[name], types[name]["dataType"][0], thing.properties[name])
    if request.metadata.uuid:
        answer.metadata.id = one
    if request.metadata.distance and distance is not None:
        answer.metadata.distance, answer.metadata.distance_present = distance, True
    if request.metadata.vector and EMPTY in thing.vectors:
        answer.metadata.vector_bytes = thing.vectors[EMPTY].tobytes()
    for name in request.metadata.vectors:
        if name in thing.vectors:
            answer.metadata.vectors.append(
                base_pb2.Vectors(name=name, vector_bytes=thing.vectors[name].tobytes())
            )
    return answer


# --- filters and distances ---------------------------------------------------------------------


def matching(where: Class, filters: Any) -> list[str]:
    if filters is None:
        return list(where.things)
    kind = base_pb2.Filters
    if filters.operator == kind.OPERATOR_AND:
        known(filters, "operator", "filters")
        some = [set(matching(where, one)) for one in filters.filters]
        return [one for one in where.things if all(one in those for those in some)]
    name = filters.target.property
    known(filters, "operator", "target", filters.WhichOneof("test_value"))
    value = getattr(filters, filters.WhichOneof("test_value"))
    if name == "_id":
        assert filters.operator == kind.OPERATOR_CONTAINS_ANY
        return [one for one in dict.fromkeys(value.values) if one in where.things]
    if name not in where.types():
        raise Broken(grpc.StatusCode.UNKNOWN, f"no such prop with name '{name}'")
    declared = where.types()[name]
    if declared.get("indexFilterable") is False:
        raise Broken(grpc.StatusCode.UNKNOWN, f"property {name} is not filterable")
    kind_of_value = {"text": "value_text", "int": "value_int", "number": "value_number"}
    if filters.operator == kind.OPERATOR_CONTAINS_ALL:
        wanted = [words(declared, one) for one in value.values]
        return [
            one
            for one, thing in where.things.items()
            if all(
                any(w <= words(declared, text) for text in thing.properties.get(name, ()))
                for w in wanted
            )
        ]
    assert filters.operator == kind.OPERATOR_EQUAL
    base = declared["dataType"][0].removesuffix("[]")
    if filters.WhichOneof("test_value") != kind_of_value.get(base, "value_boolean"):
        raise Broken(grpc.StatusCode.UNKNOWN, f"data type filter cannot use {name}")
    return [
        one
        for one, thing in where.things.items()
        if name in thing.properties and equal(declared, thing.properties[name], value)
    ]


def equal(declared: dict[str, Any], given: Any, asked: Any) -> bool:
    if isinstance(given, list | tuple):
        return any(equal(declared, one, asked) for one in given)
    if isinstance(asked, str):
        return words(declared, asked) <= words(declared, given)
    return given == asked


def words(declared: dict[str, Any], text: str) -> set[str]:
    """Split a text as its property says; a search finds texts that have all words."""
    if declared.get("tokenization", "word") == "field":
        return {text.strip()}
    return set(re.findall(r"[^\W_]+", text.lower()))


def near(where: Class, there: list[str], how: Any) -> list[tuple[str, float]]:
    known(how, "vectors", "targets")
    known(how.targets, "target_vectors")
    (given,) = how.vectors
    assert given.type == base_pb2.Vectors.VECTOR_TYPE_SINGLE_FP32
    name = how.targets.target_vectors[0] if how.targets.target_vectors else EMPTY
    if name == EMPTY and where.schema.get("vectorConfig"):
        raise Broken(grpc.StatusCode.UNKNOWN, "class has named vectors, but no target is given")
    rows = [one for one in there if name in where.things[one].vectors]
    if not rows:
        return []
    matrix = np.stack([where.things[one].vectors[name] for one in rows]).astype(np.float64)
    query = floats(given.vector_bytes).astype(np.float64)
    if matrix.shape[1] != len(query):
        details = f"vector lengths don't match: {matrix.shape[1]} vs {len(query)}"
        raise Broken(grpc.StatusCode.UNKNOWN, details)
    distance = where.declared(name)["vectorIndexConfig"].get("distance", "cosine")
    if distance == "cosine":
        lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(query)
        found = 1 - (matrix @ query) / lengths
    elif distance == "dot":
        found = -(matrix @ query)
    else:
        assert distance == "l2-squared"
        found = ((matrix - query) ** 2).sum(axis=1)
    order = np.argsort(found, kind="stable")
    return [(rows[place], float(np.float32(found[place]))) for place in order]
