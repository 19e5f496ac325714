"""``where`` as SQL: a containment of JSON in our tables, comparisons of columns in others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from psycopg import sql

from isthmus.stores._postgresql_table import METADATA, Column, Table

__all__ = ["condition", "metadata"]

Condition = tuple[sql.Composable, list[Any]]

NOTHING: Condition = (sql.SQL("false"), [])
TEXTS = ("text", "varchar")
INTEGERS = ("int2", "int4", "int8")
NUMBERS = (*INTEGERS, "float4", "float8", "numeric")
JSON = ("json", "jsonb")
INT_MAX = 2**63


def metadata(table: Table) -> sql.Composable:
    """Return the expression of the metadata of a row, as JSON text.

    In a table of another program these are its other columns, each as PostgreSQL writes it in JSON.
    """
    if table.own:
        return sql.SQL("{}::text").format(sql.Identifier(METADATA))
    if not table.fields:
        return sql.SQL("NULL::text")
    columns = sql.SQL(", ").join(
        sql.SQL("{}.{}").format(table.sql, column.sql) for column in table.fields.values()
    )
    return sql.SQL("(SELECT to_jsonb(fields) FROM (SELECT {}) AS fields)::text").format(columns)


def condition(table: Table, where: Mapping[str, Any], *, first: int) -> Condition:
    """Return the condition of a filter, and its parameters, numbered from ``first``."""
    if any("\0" in f"{key}{value}" for key, value in where.items()):
        return NOTHING  # no text of PostgreSQL holds it
    if not where:
        return sql.SQL("true"), []
    if table.own:
        text = json.dumps(dict(where), ensure_ascii=False)
        place = sql.SQL(f"${first}")
        return sql.SQL("{} @> {}::jsonb").format(sql.Identifier(METADATA), place), [text]
    parts: list[sql.Composable] = []
    values: list[Any] = []
    for name, value in where.items():
        if name not in table.fields:
            return NOTHING
        part, some = _equal(table.fields[name], value, sql.SQL(f"${first + len(values)}"))
        parts.append(part)
        values += some
    return sql.SQL(" AND ").join(parts), values


def _equal(column: Column, value: str | float | None, place: sql.SQL) -> Condition:
    """Compare a column natively where an index can help, as JSON otherwise."""
    if value is None:
        empty = sql.SQL("{} IS NULL").format(column.sql)
        if column.type not in JSON:
            return empty, []
        return sql.SQL("({} OR to_jsonb({}) = 'null')").format(empty, column.sql), []
    native = _native(column, value)
    if native == "":
        return NOTHING
    if native is not None:
        return sql.SQL("{} = {}::{}").format(column.sql, place, sql.SQL(native)), [value]
    text = json.dumps(value, ensure_ascii=False)
    return sql.SQL("to_jsonb({}) = {}::jsonb").format(column.sql, place), [text]


def _native(column: Column, value: str | float) -> str | None:
    """Return the type to compare as; None: as JSON, empty: the column can never hold the value."""
    if column.type in JSON:
        return None
    if isinstance(value, bool):
        return "bool" if column.type == "bool" else ""
    if isinstance(value, str):
        if column.type in (*NUMBERS, "bool"):
            return ""
        return "text" if column.type in TEXTS else None
    if column.type in INTEGERS:
        return "int8" if value == int(value) and -INT_MAX <= value < INT_MAX else ""
    return None if column.type in NUMBERS else ""
