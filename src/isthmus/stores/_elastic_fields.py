"""What an index of Elasticsearch or OpenSearch is made of: its fields, and filters by them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from isthmus.errors import InputError, UnsupportedOperationError
from isthmus.stores._tokens import token, tokens

__all__ = ["OWN_FIELDS", "VECTORS", "Fields"]

OWN_FIELDS: Mapping[str, Mapping[str, Any]] = {
    "id": {"type": "keyword"},
    "metadata": {"type": "object", "enabled": False},
    "tokens": {"type": "keyword"},
}
"""Fields of an index that Isthmus makes, beside its vectors."""
VECTORS = ("dense_vector", "knn_vector")
WHOLE = ("long", "integer", "short", "byte", "unsigned_long")
BROKEN = ("double", "float", "half_float", "scaled_float")
TEXT = ("keyword", "constant_keyword", "wildcard")


@dataclass(frozen=True)
class Fields:
    """The fields of one index.

    Parameters
    ----------
    properties : mapping
        As the mapping of the index has them.
    vector : str
        Name of the vector that is searched.
    sort : str
        Field that orders a scan: unique, and kept by column.
    own : bool
        Whether Isthmus made the index.
    """

    properties: Mapping[str, Any]
    vector: str
    sort: str
    own: bool

    @classmethod
    def of(
        cls, properties: Mapping[str, Any], *, vector: str | None, sort: str | None, own: bool
    ) -> Fields:
        """Find the vector of an index.

        Raises
        ------
        UnsupportedOperationError
            It has no vector of float32, or several and none is named.
        """
        kept = [name for name, field in properties.items() if field.get("type") in VECTORS]
        if own:
            vector = vector or "vector"
        if vector is None and len(kept) == 1:
            (vector,) = kept
        if vector not in kept or _kind(properties[vector]) != "float":
            raise UnsupportedOperationError(
                expected="an index with one vector field of float32"
                + (f", {vector!r}" if vector else ""),
                got=", ".join(f"{name} ({_kind(properties[name])})" for name in kept) or "none",
                do="name one: &field=NAME",
            )
        return cls(properties, vector, sort or ("id" if own else "_id"), own)

    @property
    def dim(self) -> int:
        """Numbers of a vector; 0 where the database learns it from the first row."""
        field = self.properties[self.vector]
        return int(field.get("dims") or field.get("dimension") or 0)

    # --- rows ---------------------------------------------------------------------------------

    def to_source(self, text: str, vector: list[float], metadata: str | None) -> dict[str, Any]:
        """Return a row as a document."""
        fields: dict[str, Any] = {} if metadata is None else json.loads(metadata)
        if self.own:
            return {
                "id": text,
                self.vector: vector,
                "metadata": fields,
                "tokens": tokens(metadata),
            }
        if self.vector in fields:
            raise InputError(
                expected="metadata beside the vector",
                got=f"a value for {self.vector!r}, which is the vector",
                do="leave it out",
            )
        return {**fields, self.vector: vector}

    def metadata(self, source: Mapping[str, Any]) -> str | None:
        """Return the metadata of a document as JSON text."""
        fields = (
            source.get("metadata", {})
            if self.own
            else {
                name: value
                for name, value in source.items()
                if self.properties.get(name, {}).get("type") not in VECTORS
            }
        )
        return json.dumps(fields, ensure_ascii=False) if fields else None

    @property
    def left_out(self) -> list[str]:
        """Fields of a document that are no metadata and need not travel."""
        vectors = [name for name, field in self.properties.items() if field.get("type") in VECTORS]
        return [name for name in vectors if name != self.vector] + (["tokens"] if self.own else [])

    # --- filters ------------------------------------------------------------------------------

    def where(self, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the clauses of a filter: only rows that have the vector, and the values.

        Raises
        ------
        UnsupportedOperationError
            Null in an index of others: what is null is not indexed.
        """
        clauses: list[dict[str, Any]] = [{"exists": {"field": self.vector}}]
        for name, value in asked.items():
            if self.own:
                clauses.append({"term": {"tokens": token(name, value)}})
            elif value is None:
                raise UnsupportedOperationError(
                    expected="a filter by values that are indexed",
                    got=f"null for {name!r}: the database does not index it",
                    do="filter by another value",
                )
            else:
                clauses.append(self._term(name, value))
        return clauses

    def _term(self, name: str, value: str | float) -> dict[str, Any]:
        """Compare with a field of one type: what is of another type is never equal."""
        field = self.properties.get(name, {})
        kind = field.get("type", "")
        if isinstance(value, bool):
            equal = kind == "boolean"
        elif isinstance(value, str):
            if kind == "text":  # analysed: only a field of whole words can be equal
                inner = field.get("fields", {})
                whole = next((key for key, one in inner.items() if one["type"] in TEXT), None)
                name, equal = f"{name}.{whole}", whole is not None
            else:
                equal = kind in TEXT
        elif kind in WHOLE:
            equal, value = float(value).is_integer(), int(value)
        else:
            equal = kind in BROKEN
        return {"term": {name: value}} if equal else {"match_none": {}}


def _kind(field: Mapping[str, Any]) -> str:
    return str(field.get("element_type") or field.get("data_type") or "float")
