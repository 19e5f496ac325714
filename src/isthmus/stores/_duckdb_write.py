"""The SQL that replaces rows by id in one transaction."""

# ruff: noqa: S608 - names are quoted, and values are parameters

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from isthmus.stores._duckdb_rows import given_columns
from isthmus.stores._duckdb_table import INCOMING, NESTED, Columns, literal, pointer, quoted

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["write_statements"]


def write_statements(
    table: str, columns: Columns, incoming: pa.Table, *, first: bool
) -> Iterator[str]:
    """Yield the statements that write the rows of ``isthmus_incoming``.

    Rows that are there are updated in place, so that the columns which no metadata name stay as
    they are, whatever they hold.

    Parameters
    ----------
    table : str
    columns : Columns
    incoming : pa.Table
        As `table_of` made it.
    first : bool
        Whether it is the first vector of the collection: metadata that are not given go.
    """
    key, new_key = quoted(columns.key), f"CAST(i.id AS {columns.key_type})"
    values = {quoted(columns.vector): "i.vector"}
    kept: dict[str, str] = {}
    if columns.fields is not None:
        values[quoted(columns.fields)] = "i.fields"
        if not first:
            kept[quoted(columns.fields)] = f"coalesce(i.fields, t.{quoted(columns.fields)})"
    for name in given_columns(incoming, columns):
        at = literal(pointer(name))
        values[quoted(name)] = _value(at, columns.others[name])
        kept[quoted(name)] = (
            f"CASE WHEN json_type(i.others, {at}) IS NULL THEN t.{quoted(name)} "
            f"ELSE {values[quoted(name)]} END"
        )
    changes = ", ".join(f"{name} = {value}" for name, value in {**values, **kept}.items())
    yield f"UPDATE {table} AS t SET {changes} FROM {INCOMING} AS i WHERE t.{key} = {new_key}"
    yield (
        f"INSERT INTO {table} ({key}, {', '.join(values)}) "
        f"SELECT {new_key}, {', '.join(values.values())} FROM {INCOMING} AS i "
        f"WHERE {new_key} NOT IN (SELECT {key} FROM {table} WHERE {key} IS NOT NULL)"
    )


def _value(at: str, kind: str) -> str:
    """Return the SQL of a field as its column has it."""
    if kind == "JSON":
        return f"json_extract(i.others, {at})"
    if NESTED.fullmatch(kind):
        return f"CAST(json_extract(i.others, {at}) AS {kind})"
    return f"CAST(json_extract_string(i.others, {at}) AS {kind})"
