"""A table of LanceDB: which of its columns is what, and the filters that find rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from isthmus.stores._columns import Given, pick_id, pick_vector, unclear
from isthmus.stores._tokens import token

__all__ = ["FIELDS", "NO_ROWS", "TOKENS", "Columns", "find_columns", "quoted"]

FIELDS = "metadata"
TOKENS = "metadata_tokens"
NO_ROWS = ""
"""A filter that no row passes; it is not sent."""


def quoted(name: str) -> str:
    """Return the name of a column as a filter has it.

    Examples
    --------
    >>> quoted("two words")
    '`two words`'
    """
    return f"`{name}`"


def text(value: str) -> str:
    """Return text as a filter has it.

    Examples
    --------
    >>> text("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


@dataclass(frozen=True)
class Columns:
    """The columns of one collection.

    Parameters
    ----------
    key, vector : pa.Field
        Of the ids and of the vectors.
    own : bool
        Whether metadata are kept as JSON text and tokens.
    others : mapping of str to pa.DataType
        Columns that are one metadata field each.
    """

    key: pa.Field
    vector: pa.Field
    own: bool
    others: Mapping[str, pa.DataType]

    @property
    def dim(self) -> int | None:
        """Length of the vectors; None where the type says none."""
        fixed = kinds.is_fixed_size_list(self.vector.type)
        return int(self.vector.type.list_size) if fixed else None

    @property
    def metadata(self) -> list[str]:
        """Names of the columns that metadata are read from."""
        return [*([FIELDS] if self.own else []), *self.others]

    def is_id(self, value: str) -> bool:
        """Return whether the column can hold this id, and gives it back as it is."""
        if not kinds.is_integer(self.key.type):
            return True
        digits = value.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()) or str(int(value)) != value:
            return False
        return _in_range(int(value), self.key.type)

    def literal(self, value: str) -> str:
        """Return an id as a filter has it."""
        return value if kinds.is_integer(self.key.type) else text(value)

    def among(self, ids: list[str]) -> str:
        """Return the filter of the rows with these ids."""
        there = ", ".join(self.literal(one) for one in ids if self.is_id(one))
        return f"{quoted(self.key.name)} IN ({there})" if there else NO_ROWS

    def matching(self, where: Mapping[str, Any]) -> str | None:
        """Return the filter of the rows with these metadata, None for all."""
        parts = []
        for name, value in where.items():
            if name in self.others:
                part = _equals(quoted(name), self.others[name], value)
            else:
                found = f"array_has({TOKENS}, '{token(name, value)}')"
                part = found if self.own else NO_ROWS
            if part == NO_ROWS:
                return NO_ROWS
            parts.append(f"({part})")
        return " AND ".join(parts) or None


def find_columns(
    schema: pa.Schema, options: Mapping[str, str], further: set[str], *, own: str
) -> Columns:
    """Find out which column is what.

    Parameters
    ----------
    schema : pa.Schema
    options : mapping of str to str
        Of the URL: ``id``, ``column`` (of the first vector) and ``vector`` name columns.
    further : set of str
        Names of further vectors that are recorded.
    own : str
        Column of the vectors in the tables that Isthmus makes; empty where another program made it.

    Raises
    ------
    ParameterError
        Which column has the ids or the vectors cannot be told.
    """
    given = Given({field.name: str(field.type) for field in schema}, options, own)
    usable = {field.name for field in schema if _can_be_id(field.type)}
    vectors = {field.name for field in schema if _is_vector(field.type)}
    vectors = vectors or {field.name for field in schema if _is_list(field.type)}
    key = pick_id(given, usable)
    vector = pick_vector(given, vectors, further=further)
    for name, able, what, option in (
        (key, usable, "text or whole numbers as ids", "id"),
        (vector, vectors, "vectors", "column"),
    ):
        if name not in able:
            do = f"name it in the URL: &{option}=COLUMN"
            raise unclear(f"{what} in the column {name!r}", given.columns, do)
    natural = {FIELDS, TOKENS} <= set(schema.names)
    apart = {key} | vectors | ({FIELDS, TOKENS} if natural else set())
    others = {field.name: field.type for field in schema if field.name not in apart}
    return Columns(schema.field(key), schema.field(vector), natural, others)


def _can_be_id(kind: pa.DataType) -> bool:
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_integer(kind))


def _is_vector(kind: pa.DataType) -> bool:
    return bool(kinds.is_fixed_size_list(kind) and kinds.is_floating(kind.value_type))


def _is_list(kind: pa.DataType) -> bool:
    lists = kinds.is_list(kind) or kinds.is_large_list(kind)
    return bool(lists and kinds.is_floating(kind.value_type))


def _equals(column: str, kind: pa.DataType, value: Any) -> str:
    """Return the filter that compares a column in its own type."""
    if value is None:
        return f"{column} IS NULL"
    if isinstance(value, bool):
        return f"{column} = {str(value).lower()}" if kinds.is_boolean(kind) else NO_ROWS
    if isinstance(value, int | float):
        return _equals_number(column, kind, value)
    if kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_dictionary(kind):
        return f"{column} = {text(value)}"
    return f"CAST({column} AS STRING) = {text(value)}" if kinds.is_temporal(kind) else NO_ROWS


def _equals_number(column: str, kind: pa.DataType, value: float) -> str:
    if kinds.is_integer(kind):
        whole = float(value).is_integer() and _in_range(int(value), kind)
        return f"{column} = {int(value)}" if whole else NO_ROWS
    if kinds.is_floating(kind):
        return f"{column} = {float(value)!r}"
    return f"{column} = {value!r}" if kinds.is_decimal(kind) else NO_ROWS


def _in_range(value: int, kind: pa.DataType) -> bool:
    limits = np.iinfo(kind.to_pandas_dtype())
    return int(limits.min) <= value <= int(limits.max)
