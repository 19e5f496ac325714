"""What a collection of Milvus is made of, and how its boolean expressions are written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from isthmus.errors import InputError, InvalidIdError, UnsupportedOperationError
from isthmus.stores._connected import Rows
from isthmus.stores._tokens import token, tokens

__all__ = ["MAX_TOKENS", "Fields", "quoted"]

INTEGERS, FLOATS = (2, 3, 4, 5), (10, 11)
BOOL, INT64, VARCHAR, FLOAT_VECTOR = 1, 5, 21, 101
"""Numbers of field types, as Milvus has them in its protocol."""
MAX_TOKENS = 4_096


@dataclass(frozen=True)
class Fields:
    """The fields of one collection.

    Parameters
    ----------
    key : str
        Name of the primary key.
    whole : bool
        Whether the keys are whole numbers; otherwise text.
    made : bool
        Whether Milvus makes the keys, so that rows cannot be written under ids of ours.
    key_bytes : int
        Longest key, where it is text.
    vector : str
        Name of the vector that is searched.
    dim : int
    others : mapping of str to int
        Further fields that are no vectors, and their types.
    nullable : frozenset of str
        Those of the others that may be null.
    dynamic : bool
        Whether rows may have fields that the schema does not name.
    own : bool
        Whether Isthmus made the collection: metadata in one field, and tokens to filter by.
    """

    key: str
    whole: bool
    made: bool
    key_bytes: int
    vector: str
    dim: int
    others: Mapping[str, int]
    nullable: frozenset[str]
    dynamic: bool
    own: bool = False

    @classmethod
    def of(cls, description: Mapping[str, Any], *, vector: str = "", own: bool = False) -> Fields:
        """Read the description of a collection.

        Raises
        ------
        UnsupportedOperationError
            It has no vector of float32, or several and none is named.
        """
        fields = description["fields"]
        key = next(field for field in fields if field.get("is_primary"))
        vectors = [
            field
            for field in fields
            if int(field["type"]) == FLOAT_VECTOR and vector in ("", field["name"])
        ]
        if len(vectors) != 1:
            names = [field["name"] for field in fields if int(field["type"]) >= 100]
            raise UnsupportedOperationError(
                expected="a collection with one vector field of float32"
                + (f", {vector!r}" if vector else ""),
                got=", ".join(names) or "none",
                do="name one: &field=NAME",
            )
        return cls(
            key=key["name"],
            whole=int(key["type"]) == INT64,
            made=bool(key.get("auto_id")),
            key_bytes=int(key.get("params", {}).get("max_length", 65_535)),
            vector=vectors[0]["name"],
            dim=int(vectors[0]["params"]["dim"]),
            others={
                field["name"]: int(field["type"])
                for field in fields
                if field["name"] != key["name"] and int(field["type"]) < 100
            },
            nullable=frozenset(field["name"] for field in fields if field.get("nullable")),
            dynamic=bool(description.get("enable_dynamic_field")),
            own=own,
        )

    # --- ids ----------------------------------------------------------------------------------

    def literal(self, text: str) -> str | None:
        """Return an id as an expression has it; None where no key can be like that."""
        if not self.whole:
            return quoted(text)
        return text if _whole(text) else None

    def among(self, ids: Sequence[str]) -> str:
        """Return the expression for rows with these ids; empty where there can be none."""
        literals = [found for text in ids if (found := self.literal(text)) is not None]
        return f"{self.key} in [{','.join(literals)}]" if literals else ""

    # --- rows ---------------------------------------------------------------------------------

    @property
    def read(self) -> list[str]:
        """Names of the fields that hold metadata, as a request lists them."""
        if self.own:
            return ["metadata"]
        return ["*"] if self.dynamic else list(self.others)

    def to_rows(self, rows: Rows) -> list[dict[str, Any]]:
        """Return rows as Milvus takes them."""
        return [
            {
                self.key: self._key(text),
                self.vector: vector,
                **(self._own_fields(known) if self.own else self._their_fields(known)),
            }
            for text, vector, known in zip(rows.ids, rows.vectors, rows.metadata, strict=True)
        ]

    def metadata(self, row: Mapping[str, Any]) -> str | None:
        """Return the metadata of a row as JSON text."""
        if self.own:
            fields = row["metadata"]
        else:
            fields = {
                name: value
                for name, value in row.items()
                if name in self.others or (self.dynamic and name not in (self.key, self.vector))
            }
        if not fields:
            return None
        return json.dumps(fields, ensure_ascii=False, default=_plain)

    def _key(self, text: str) -> str | int:
        if not self.whole:
            return text
        if not _whole(text):
            raise InvalidIdError(
                expected="ids that are whole numbers of 64 bits, as the collection has",
                got=repr(text[:40]),
                do="write into a collection whose ids are text",
            )
        return int(text)

    def _own_fields(self, metadata: str | None) -> dict[str, Any]:
        found = tokens(metadata)
        if len(found) > MAX_TOKENS:
            raise InputError(
                expected=f"at most {MAX_TOKENS:,} values to filter by in one row",
                got=f"{len(found):,}",
                do="put some of them into a list or a mapping",
            )
        return {"metadata": {} if metadata is None else json.loads(metadata), "tokens": found}

    def _their_fields(self, metadata: str | None) -> dict[str, Any]:
        fields: dict[str, Any] = {} if metadata is None else json.loads(metadata)
        unknown = fields.keys() - self.others.keys()
        if unknown and (not self.dynamic or unknown & {self.key, self.vector}):
            raise InputError(
                expected="metadata for the fields of the collection: " + ", ".join(self.others),
                got=", ".join(sorted(unknown)),
                do="leave them out, or write into a collection of your own",
            )
        return fields

    # --- filters ------------------------------------------------------------------------------

    def where(self, asked: Mapping[str, Any]) -> str:
        """Return a filter as an expression; it may give more rows: see `unsure`."""
        parts = []
        for name, value in asked.items():
            if self.own:
                parts.append(f'array_contains(tokens, "{token(name, value)}")')
            elif self._is_dynamic(name):
                if value is not None:
                    parts.append(f"$meta[{quoted(name)}] == {_written(value)}")
            else:
                parts.append(self._typed(name, value) or f"{self.key} in []")
        return " and ".join(parts)

    def unsure(self, asked: Mapping[str, Any], *, lite: bool) -> dict[str, Any]:
        """Return what of a filter the expression cannot tell.

        In fields without a type, no expression asks for null, and those of Milvus Lite take true
        for 1.
        """
        if self.own:
            return {}
        return {
            name: value
            for name, value in asked.items()
            if self._is_dynamic(name) and (value is None or (lite and not isinstance(value, str)))
        }

    def _is_dynamic(self, name: str) -> bool:
        return self.dynamic and name not in (self.key, self.vector, *self.others)

    def _typed(self, name: str, value: Any) -> str:
        """Compare a field of one type; nothing where no value of it can be equal."""
        kind = self.others.get(name)
        if value is None:
            return f"{name} is null" if name in self.nullable else ""
        if isinstance(value, bool):
            return f"{name} == {_written(value)}" if kind == BOOL else ""
        if isinstance(value, str):
            return f"{name} == {_written(value)}" if kind == VARCHAR else ""
        if kind in INTEGERS and float(value).is_integer():
            return f"{name} == {int(value)}"
        return f"{name} == {_written(value)}" if kind in FLOATS else ""


def _written(value: Any) -> str:
    if isinstance(value, str):
        return quoted(value)
    return str(value).lower() if isinstance(value, bool) else repr(value)


def quoted(text: str) -> str:
    r"""Return text as a literal of an expression.

    Examples
    --------
    >>> quoted('a"b')
    '"a\\"b"'
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r") + '"'


def _whole(text: str) -> bool:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 19:
        return False
    return str(int(text)) == text and -(2**63) <= int(text) < 2**63


def _plain(value: Any) -> Any:
    """Return what a client gives as a value that JSON has."""
    return value.tolist() if hasattr(value, "tolist") else list(value)
