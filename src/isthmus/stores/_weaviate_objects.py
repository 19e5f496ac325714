"""Objects of Weaviate as its protocol carries them: properties, vectors, filters."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isthmus._optional import require
from isthmus._types import FloatArray
from isthmus.errors import InputError, InvalidIdError, UnsupportedOperationError
from isthmus.stores._tokens import token, tokens

__all__ = ["OWN_PROPERTIES", "Properties", "protocol", "uuid_of"]

NAMESPACE = uuid.UUID("5a4cd9d6-0a6f-5f0b-9c53-2b7a51b1c0de")
"""Of the uuids that stand for ids: any constant, but always the same."""

OWN_PROPERTIES: Sequence[Mapping[str, Any]] = (
    {"name": "text_id", "dataType": ["text"], "tokenization": "field"},
    {
        "name": "metadata",
        "dataType": ["text"],
        "tokenization": "field",
        "indexFilterable": False,
        "indexSearchable": False,
    },
    {"name": "tokens", "dataType": ["text[]"], "tokenization": "field", "indexSearchable": False},
)
PLAIN = ("text", "string", "int", "number", "boolean", "date", "uuid")
CARRIED = frozenset((*PLAIN, *(f"{name}[]" for name in PLAIN)))
"""Types of properties that are written as they are read."""
EXACT = 2**53
"""Whole numbers travel as doubles."""
LISTS: Mapping[str, str] = {
    "text_values": "",
    "date_values": "",
    "uuid_values": "",
    "bool_values": "",
    "number_values": "<f8",
    "int_values": "<i8",
}
"""Kinds of list in an answer; those of numbers are packed."""


def protocol(name: str) -> Any:
    """Return a module of the client's protocol buffers."""
    return getattr(require("weaviate.proto.v1", extra="weaviate"), name)


def uuid_of(text: str) -> str:
    """Return the uuid that stands for an id of ours.

    Examples
    --------
    >>> uuid_of("a") == uuid_of("a") != uuid_of("b")
    True
    """
    return str(uuid.uuid5(NAMESPACE, text))


@dataclass(frozen=True)
class Properties:
    """What the objects of a collection hold beside their vectors.

    Parameters
    ----------
    types : mapping of str to str
        Of its properties, as Weaviate names them: ``text``, ``int``, ``text[]``...
    exact : frozenset of str
        Text properties that are compared as a whole (``tokenization`` is ``field``).
    own : bool
        Whether Isthmus made the collection.
    """

    types: Mapping[str, str]
    exact: frozenset[str]
    own: bool

    @classmethod
    def of(cls, schema: Mapping[str, Any], *, own: bool) -> Properties:
        """Read the schema of a collection."""
        found = schema.get("properties") or []
        return cls(
            types={one["name"]: one["dataType"][0] for one in found},
            exact=frozenset(one["name"] for one in found if one.get("tokenization") == "field"),
            own=own,
        )

    # --- ids ----------------------------------------------------------------------------------

    def uuids(self, ids: Sequence[str]) -> list[str]:
        """Return the uuids of ids, without those that can be of no object."""
        if self.own:
            return [uuid_of(text) for text in ids]
        return [text for text in ids if _is_uuid(text)]

    def uuid(self, text: str) -> str:
        """Return the uuid of an id that is written."""
        if self.own:
            return uuid_of(text)
        if not _is_uuid(text):
            raise InvalidIdError(
                expected="ids that are uuids in small letters, as the collection has",
                got=repr(text[:40]),
                do="write into a collection of your own, whose ids may be any text",
            )
        return text

    # --- writing ------------------------------------------------------------------------------

    def to_message(self, text: str, metadata: str | None, former: Any = None) -> Any:
        """Return the properties of a row as a message; what a former result has is kept."""
        if self.own:
            fields: dict[str, Any] = {
                "text_id": text,
                "metadata": metadata or "",
                "tokens": tokens(metadata),
            }
        else:
            fields = {} if former is None else self._kept(former)
            fields |= {} if metadata is None else json.loads(metadata)
        base = protocol("base_pb2")
        message = protocol("batch_pb2").BatchObject.Properties()
        for name, value in fields.items():
            if isinstance(value, list):
                if not value:
                    message.empty_list_props.append(name)
                    continue
                kind = self._kind_of_list(name, value)
                of_kind = getattr(base, f"{kind.capitalize()}ArrayProperties")
                filled = of_kind(prop_name=name)
                if kind == "number":
                    filled.values_bytes = np.asarray(value, "<f8").tobytes()
                else:
                    filled.values.extend(value)
                getattr(message, f"{kind}_array_properties").append(filled)
            elif isinstance(value, dict):
                raise self._not_kept(name, "a mapping")
            elif value is not None:  # null is the same as nothing
                message.non_ref_properties.update({name: value})
        return message

    def _kept(self, former: Any) -> dict[str, Any]:
        """Return the properties of an object that is there, to be written again.

        Raises
        ------
        UnsupportedOperationError
            Some cannot be written as they are.
        """
        lost = [name for name, kind in self.types.items() if kind not in CARRIED]
        fields: dict[str, Any] = json.loads(self.metadata(former) or "{}")
        lost += [
            name
            for name, value in fields.items()
            if isinstance(value, int) and abs(value) > EXACT and name not in lost
        ]
        if lost:
            raise UnsupportedOperationError(
                expected="objects of others whose properties can all be written again",
                got=", ".join(f"{name!r} ({self.types.get(name)})" for name in lost[:5]),
                do="write rows with new ids, or into a collection of your own",
            )
        return fields

    def _kind_of_list(self, name: str, values: list[Any]) -> str:
        if all(isinstance(value, str) for value in values):
            return "text"
        if all(isinstance(value, bool) for value in values):
            return "boolean"
        if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
            raise self._not_kept(name, "a list of values of several kinds")
        whole = all(isinstance(value, int) for value in values)
        return "int" if whole and self.types.get(name) != "number[]" else "number"

    def _not_kept(self, name: str, got: str) -> InputError:
        return InputError(
            expected="metadata of text, numbers, true, false, and lists of one of these",
            got=f"{got} for {name!r}",
            do="write it as JSON text, or write into a collection of your own",
        )

    # --- reading ------------------------------------------------------------------------------

    def id_of(self, result: Any) -> str:
        """Return the id of a result."""
        if not self.own:
            return str(result.metadata.id)
        return str(result.properties.non_ref_props.fields["text_id"].text_value)

    def metadata(self, result: Any) -> str | None:
        """Return the metadata of a result as JSON text."""
        found = result.properties.non_ref_props.fields
        if self.own:
            return str(found["metadata"].text_value) or None
        fields = {name: _value(found[name]) for name in found}
        kept = {name: value for name, value in fields.items() if value is not None}
        return json.dumps(kept, ensure_ascii=False) if kept else None

    # --- filters ------------------------------------------------------------------------------

    def where(self, asked: Mapping[str, Any]) -> tuple[Any, bool]:
        """Return a filter, and whether it may give more rows than are asked for.

        No filter: nothing is asked for. False in its place: no row can have the values.
        """
        base = protocol("base_pb2")
        if not asked:
            return None, False
        if self.own:
            wanted = [token(name, value) for name, value in asked.items()]
            return _filter("tokens", base.Filters.OPERATOR_CONTAINS_ALL, texts=wanted), False
        parts, unsure = [], False
        for name, value in asked.items():
            how = self._compared(name, value)
            if how is None:
                return False, False
            parts.append(_filter(name, base.Filters.OPERATOR_EQUAL, **how))
            unsure |= isinstance(value, str) and name not in self.exact
            unsure |= self.types[name].endswith("[]")
        if len(parts) == 1:
            return parts[0], unsure
        return base.Filters(operator=base.Filters.OPERATOR_AND, filters=parts), unsure

    def _compared(self, name: str, value: Any) -> dict[str, Any] | None:
        """Return the value of a filter by the type of its property; None where none is equal."""
        kind = self.types.get(name)
        if value is None:
            raise UnsupportedOperationError(
                expected="a filter by values that are kept",
                got=f"null for {name!r}: Weaviate keeps none",
                do="filter by another value",
            )
        if isinstance(value, bool):
            return {"value_boolean": value} if kind == "boolean" else None
        if isinstance(value, str):
            return {"value_text": value} if kind == "text" else None
        if kind == "int":
            return {"value_int": int(value)} if float(value).is_integer() else None
        return {"value_number": float(value)} if kind == "number" else None


def by_uuids(uuids: Sequence[str]) -> Any:
    """Return the filter for objects with these uuids."""
    contains = protocol("base_pb2").Filters.OPERATOR_CONTAINS_ANY
    return _filter("_id", contains, texts=uuids)


def _filter(name: str, operator: Any, *, texts: Sequence[str] = (), **value: Any) -> Any:
    base = protocol("base_pb2")
    if texts:
        value["value_text_array"] = base.TextArray(values=texts)
    return base.Filters(operator=operator, target=base.FilterTarget(property=name), **value)


def vector_message(vector: FloatArray, name: str) -> Any:
    """Return a vector of float32 as a message."""
    base = protocol("base_pb2")
    return base.Vectors(
        name=name,
        vector_bytes=np.asarray(vector, "<f4").tobytes(),
        type=base.Vectors.VECTOR_TYPE_SINGLE_FP32,
    )


def vector_of(result: Any, name: str) -> FloatArray | None:
    """Return the vector of a result, None where the object has none."""
    given = result.metadata.vector_bytes
    for one in result.metadata.vectors:
        if one.name == (name or "default"):
            given = one.vector_bytes
    return np.frombuffer(given, "<f4") if given else None


def _value(value: Any) -> Any:
    kind = value.WhichOneof("kind")
    if kind in (None, "null_value"):
        return None
    if kind == "object_value":
        return {name: _value(one) for name, one in value.object_value.fields.items()}
    if kind == "list_value":
        return _list(value.list_value)
    if kind in ("geo_value", "phone_value"):
        given = getattr(value, kind)
        return {field.name: one for field, one in given.ListFields()}
    found = getattr(value, kind)
    return int(found) if kind == "int_value" else found


def _list(values: Any) -> list[Any]:
    kind = values.WhichOneof("kind")
    if kind is None:
        return []
    if kind == "object_values":
        return [
            {name: _value(value) for name, value in one.fields.items()}
            for one in values.object_values.values
        ]
    given = getattr(values, kind).values
    packed = LISTS.get(kind, "")
    return np.frombuffer(given, packed).tolist() if packed else list(given)


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False
