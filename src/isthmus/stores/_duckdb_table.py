"""A table of DuckDB: which of its columns is what, and the SQL that reads and filters it."""

# ruff: noqa: S608 - names are quoted, and values are parameters

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from isthmus.stores._columns import Given, only, pick_id, pick_vector, unclear

__all__ = ["ASKED", "INCOMING", "Columns", "find_columns", "literal", "pointer", "quoted"]

INCOMING = "isthmus_incoming"
ASKED = "isthmus_asked"

FIELDS = "metadata"

ARRAY = re.compile(r"(?:FLOAT|DOUBLE)\[(\d+)\]")
LIST = re.compile(r"(?:FLOAT|DOUBLE)\[\]")
NUMBER = re.compile(r"U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)|FLOAT|DOUBLE|DECIMAL\(.*\)")
NESTED = re.compile(r".*\]|(STRUCT|MAP|UNION)\(.*\)|JSON|VARIANT", re.DOTALL)


def quoted(name: str) -> str:
    """Return a name as SQL has it.

    Examples
    --------
    >>> quoted("a b")
    '"a b"'
    """
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Columns:
    """The columns of one collection.

    Parameters
    ----------
    key, key_type : str
        Of the ids.
    vector, vector_type : str
        Of the vectors.
    fields : str or None
        A column of JSON objects, whose fields are metadata.
    others : mapping of str to str
        Columns that are one metadata field each, and their types.
    """

    key: str
    key_type: str
    vector: str
    vector_type: str
    fields: str | None
    others: Mapping[str, str]

    @property
    def dim(self) -> int | None:
        """Length of the vectors; None where the type says none."""
        found = ARRAY.fullmatch(self.vector_type)
        return int(found[1]) if found else None

    @property
    def id_text(self) -> str:
        """The SQL of an id as text."""
        return f"CAST({quoted(self.key)} AS VARCHAR)"

    @property
    def has_vector(self) -> str:
        """The SQL of the rows that have a vector."""
        return f"{quoted(self.vector)} IS NOT NULL"

    def selected(self, *, vectors: bool, metadata: bool) -> str:
        """Return what a SELECT lists: ``id``, ``vector``, ``fields`` and ``others``."""
        parts = [f"{self.id_text} AS id"]
        if vectors:
            parts.append(f"{quoted(self.vector)} AS vector")
        if metadata and self.fields is not None:
            parts.append(f"CAST({quoted(self.fields)} AS VARCHAR) AS fields")
        if metadata and self.others:
            pairs = ", ".join(
                f"{literal(name)}, {_finite(name, kind)}" for name, kind in self.others.items()
            )
            parts.append(f"CAST(json_object({pairs}) AS VARCHAR) AS others")
        return ", ".join(parts)

    def among(self, table: str) -> str:
        """Return the SQL of the rows whose ids a table lists as text."""
        typed = f"{quoted(self.key)} IN (SELECT TRY_CAST(id AS {self.key_type}) FROM {table})"
        if self.key_type == "VARCHAR":
            return typed
        return f"{typed} AND {self.id_text} IN (SELECT id FROM {table})"

    def matching(self, where: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the SQL of a filter, and its parameters."""
        parts = [self.has_vector]
        values: dict[str, Any] = {}
        for number, (name, asked) in enumerate(where.items()):
            value = _whole(asked)
            slots = {f"p{number}": pointer(name), f"v{number}": value}
            if name in self.others:
                part = _column_equals(quoted(name), self.others[name], value, f"$v{number}")
                slots.pop(f"p{number}")
            elif self.fields is not None:
                part = _field_equals(quoted(self.fields), value, f"$p{number}", f"$v{number}")
            else:
                part, slots = "false", {}
            if value is None or part == "false":
                slots.pop(f"v{number}", None)
            parts.append(part)
            values |= slots
        return " AND ".join(f"({part})" for part in parts), values


def find_columns(given: Given, keys: Mapping[str, bool], *, further: Iterable[str]) -> Columns:
    """Find out which column is what.

    Parameters
    ----------
    given : Given
        With ``metadata`` among the options, too.
    keys : mapping of str to bool
        Columns that alone are unique, and whether each is the primary key.
    further : iterable of str
        Names of further vectors that are recorded.

    Raises
    ------
    ParameterError
        Which column has the ids or the vectors cannot be told.
    """
    types, options = given.columns, given.options
    vectors = {name for name, kind in types.items() if ARRAY.fullmatch(kind)}
    vectors = vectors or {name for name, kind in types.items() if LIST.fullmatch(kind)}
    primary = [name for name in keys if keys[name]] or list(keys)
    key = options.get("id", "")
    key = key or (only(primary, what="the ids", option="id") if primary else pick_id(given, types))
    vector = pick_vector(given, vectors, further=further)
    fields = options.get("metadata", FIELDS)
    for name, wanted in ((key, None), (vector, "vector"), (fields, "metadata")):
        if name not in types and (wanted != "metadata" or "metadata" in options):
            raise unclear(f"a column {name!r}", types, "correct the URL")
    if not (ARRAY.fullmatch(types[vector]) or LIST.fullmatch(types[vector])):
        raise unclear(
            f"vectors in the column {vector!r}", {vector: types[vector]}, "name another column"
        )
    others = {name: kind for name, kind in types.items() if name not in {key, vector} | vectors}
    in_json = others.pop(fields) if others.get(fields) == "JSON" else None
    return Columns(key, types[key], vector, types[vector], in_json and fields, others)


def literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _finite(name: str, kind: str) -> str:
    column = quoted(name)
    return (
        f"CASE WHEN isfinite({column}) THEN {column} END" if kind in {"FLOAT", "DOUBLE"} else column
    )


def _whole(value: Any) -> Any:
    """Return 2.0 as 2, so that no comparison goes through a float."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def pointer(name: str) -> str:
    """Return the JSON pointer to a field (RFC 6901)."""
    return "/" + name.replace("~", "~0").replace("/", "~1")


def _column_equals(column: str, kind: str, value: Any, slot: str) -> str:
    number = NUMBER.fullmatch(kind) is not None
    if value is None:
        return f"{column} IS NULL"
    if isinstance(value, bool):
        return f"{column} = {slot}" if kind == "BOOLEAN" else "false"
    if isinstance(value, int | float):
        exact = "HUGEINT" if isinstance(value, int) else "DOUBLE"
        wanted = kind if kind in {"FLOAT", "DOUBLE"} else exact
        return f"{column} = CAST({slot} AS {wanted})" if number else "false"
    if kind == "BOOLEAN" or number or NESTED.fullmatch(kind):
        return "false"
    return f"CAST({column} AS VARCHAR) = {slot}"


def _field_equals(column: str, value: Any, path: str, slot: str) -> str:
    kind = f"json_type({column}, {path})"
    written = f"CAST(json_extract({column}, {path}) AS VARCHAR)"
    if value is None:
        return f"{kind} = 'NULL'"
    if isinstance(value, bool):
        return f"{kind} = 'BOOLEAN' AND {written} = CAST({slot} AS VARCHAR)"
    if isinstance(value, str):
        return f"{kind} = 'VARCHAR' AND json_extract_string({column}, {path}) = {slot}"
    wide = f"{kind} = 'DOUBLE' AND TRY_CAST({written} AS DOUBLE) = CAST({slot} AS DOUBLE)"
    if isinstance(value, float):
        return wide
    whole = (
        f"{kind} IN ('BIGINT', 'UBIGINT', 'HUGEINT') "
        f"AND TRY_CAST({written} AS HUGEINT) = CAST({slot} AS HUGEINT)"
    )
    return f"({wide}) OR ({whole})" if float(value) == value else whole
