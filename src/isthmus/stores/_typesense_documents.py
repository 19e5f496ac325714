"""Documents of Typesense as rows, rows as documents, and ``where`` as its filters."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

import numpy as np

from isthmus.errors import CorruptStoreError, InputError, ParameterError, UnsupportedOperationError
from isthmus.stores._checks import matches
from isthmus.stores._connected import Rows
from isthmus.stores._tokens import token, tokens

__all__ = ["ODD", "Schema", "read_schema"]

METADATA, TOKENS, WRITTEN = "metadata", "tokens", "written"
ODD = re.compile(r"[`\\\x00-\x1f\x7f]|^\s|\s$")
"""What the quotes of a filter, or its parser, would not leave as it is."""
CODED = re.compile(f"%|{ODD.pattern}")
INTEGERS = {"int32": 2**31, "int64": 2**63}
FILTERED = (*INTEGERS, "float", "bool", "string")


@dataclass(frozen=True)
class Schema:
    """A collection, as the server describes it, seen from one of its vectors.

    Parameters
    ----------
    name : str
        Its own, also where it was found by an alias.
    vector : str
        Field of the vectors.
    dim : int
    optional : bool
        Whether documents may lack the vector.
    types : mapping of str to str
        Of the fields that are indexed.
    vectors : tuple of str
        All fields of vectors.
    """

    name: str
    vector: str
    dim: int
    optional: bool
    types: Mapping[str, str]
    vectors: tuple[str, ...]

    @property
    def own(self) -> bool:
        """Whether its fields are those that Isthmus makes."""
        made = {TOKENS: "string[]", WRITTEN: "int64"}
        return all(self.types.get(name) == kind for name, kind in made.items())

    def document_id(self, text: str) -> str:
        """Return the id of a document: odd characters as ``%XX`` in collections of ours."""
        return CODED.sub(lambda odd: quote(odd[0], safe=""), text) if self.own else text

    def row_id(self, text: str) -> str:
        """Return the id of a row."""
        return unquote(text) if self.own else text

    def to_document(self, text: str, vector: list[float], metadata: str | None) -> dict[str, Any]:
        """Return a row as a document.

        Raises
        ------
        InputError
        """
        document: dict[str, Any] = {"id": self.document_id(text), self.vector: vector}
        if self.own:
            # The time also is what an exact search filters by: every document has one.
            document |= {WRITTEN: int(time.time()), TOKENS: tokens(metadata)}
            return document | ({METADATA: metadata} if metadata is not None else {})
        fields = json.loads(metadata) if metadata is not None else {}
        if taken := sorted({"id", *self.vectors} & set(fields)):
            raise InputError(
                expected="metadata beside the id and the vectors",
                got=repr(taken[0]),
                do="leave that key out",
            )
        return document | fields

    def to_rows(self, documents: Sequence[Mapping[str, Any]], *, vectors: bool) -> Rows:
        """Return documents as rows; those without the vector are none.

        Raises
        ------
        CorruptStoreError
        """
        there = [one for one in documents if one.get(self.vector) is not None]
        lengths = {len(one[self.vector]) for one in there}
        if lengths - {self.dim}:
            raise CorruptStoreError(
                expected=f"vectors of {self.dim} numbers in every document of {self.name!r}",
                got=f"documents with {', '.join(map(str, sorted(lengths)))}",
                do="find out which documents came from another model",
            )
        matrix = np.array([one[self.vector] for one in there], np.float32)
        shape = (len(there), self.dim if vectors else 0)
        return Rows(
            [self.row_id(one["id"]) for one in there],
            matrix.reshape(len(there), self.dim) if vectors else np.empty(shape, np.float32),
            [self._metadata(one) for one in there],
        )

    def _metadata(self, document: Mapping[str, Any]) -> str | None:
        if self.own:
            text = document.get(METADATA)
            return None if text is None else str(text)
        left_out = {"id", *self.vectors}
        fields = {key: value for key, value in document.items() if key not in left_out}
        return json.dumps(fields, ensure_ascii=False) if fields else None

    def filter_of(self, where: Mapping[str, Any]) -> str | None:
        """Return a filter; None where no document can have the values.

        Raises
        ------
        UnsupportedOperationError
            A field that is not indexed.
        """
        if self.own:
            chosen = [f"{TOKENS}:={token(key, value)}" for key, value in where.items()]
            return " && ".join([f"{WRITTEN}:>=0", *chosen])
        parts = [self._equal(name, value) for name, value in where.items()]
        return None if None in parts else " && ".join(map(str, parts))

    def _equal(self, name: str, value: str | float | None) -> str | None:
        kind = self.types.get(name, "")
        if kind not in FILTERED or not re.fullmatch(r"[\w.-]+", name):
            able = sorted(one for one, type_ in self.types.items() if type_ in FILTERED)
            raise UnsupportedOperationError(
                expected="a filter by indexed fields of one value: " + (", ".join(able) or "none"),
                got=repr(name),
                do="index the field",
            )
        if isinstance(value, bool) or kind == "bool":
            return (
                f"{name}:={json.dumps(value)}"
                if kind == "bool" and isinstance(value, bool)
                else None
            )
        if isinstance(value, str):
            if kind == "string" and ("`" in value or not value.strip()):
                raise UnsupportedOperationError(
                    expected="a text with words, without the mark `",
                    got=repr(value[:40]),
                    do="filter by another field",
                )
            return f"{name}:=`{value}`" if kind == "string" else None
        if value is None or kind == "string":
            return None
        if kind in INTEGERS:
            most = INTEGERS[kind]
            whole = value == int(value) and -most <= value < most
            return f"{name}:={int(value)}" if whole else None
        return f"{name}:={value!r}"

    def has(self, document: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
        """Whether a document has the values: Typesense compares texts by their words only."""
        return self.own or matches(document, where)


def read_schema(answer: Mapping[str, Any], wanted: str) -> Schema:
    """Read the description of a collection; ``wanted`` names the vector where it has several.

    Raises
    ------
    ParameterError, UnsupportedOperationError
    """
    fields = {one["name"]: one for one in answer["fields"]}
    vectors = tuple(name for name, one in fields.items() if one.get("num_dim"))
    chosen = [name for name in vectors if wanted in ("", name)]
    if len(chosen) != 1:
        raise ParameterError(
            expected=f"one field of vectors in the collection {answer['name']!r}",
            got=f"{len(chosen)} of them" + (f" called {wanted!r}" if wanted else ""),
            do="choose one: &field=NAME; the collection has "
            + (", ".join(map(repr, vectors)) or "none"),
        )
    field = fields[chosen[0]]
    if field.get("vec_dist", "cosine") != "cosine":
        raise UnsupportedOperationError(
            expected="a field that is compared by the cosine",
            got=f"one by {field['vec_dist']!r}",
            do="use another store for other metrics",
        )
    return Schema(
        name=answer["name"],
        vector=chosen[0],
        dim=int(field["num_dim"]),
        optional=bool(field.get("optional")),
        types={name: one["type"] for name, one in fields.items() if one.get("index", True)},
        vectors=vectors,
    )
