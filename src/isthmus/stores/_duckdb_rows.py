"""Rows of DuckDB as Arrow tables: on their way in, and out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from isthmus.errors import InputError
from isthmus.stores._arrow import array_of, matrix_of
from isthmus.stores._connected import Rows
from isthmus.stores._duckdb_table import NESTED, NUMBER, Columns

__all__ = ["given_columns", "rows_of", "table_of"]


def rows_of(table: pa.Table, dim: int) -> Rows:
    """Return what a SELECT of `Columns.selected` gave."""
    ids = table["id"].to_pylist()
    vectors, other = np.empty((len(ids), 0), np.float32), None
    if "vector" in table.column_names:
        vectors, other = matrix_of(table["vector"], dim)
    nothing: list[str | None] = [None] * len(ids)
    fields = table["fields"].to_pylist() if "fields" in table.column_names else nothing
    if "others" not in table.column_names:
        return Rows(ids, vectors, [_object(text) for text in fields], other)
    others = table["others"].to_pylist()
    merged: list[str | None] = [
        _merged(text, more) for text, more in zip(fields, others, strict=True)
    ]
    return Rows(ids, vectors, merged, other)


def table_of(rows: Rows, columns: Columns) -> pa.Table:
    """Return rows as ``id``, ``vector``, ``fields`` and ``others``.

    Raises
    ------
    InputError
        Metadata that have no column, or one of another type.
    """
    fields: list[str | None] = rows.metadata
    others: list[str | None] = [None] * len(rows.ids)
    if columns.others or columns.fields is None:
        fields, others = _split(rows.metadata, columns)
    return pa.table(
        {
            "id": pa.array(rows.ids, pa.string()),
            "vector": array_of(rows.vectors),
            "fields": pa.array(fields, pa.string()),
            "others": pa.array(others, pa.string()),
        }
    )


def given_columns(table: pa.Table, columns: Columns) -> list[str]:
    """Return the columns of one field each that the metadata of some row name."""
    given: set[str] = set()
    for text in table["others"].to_pylist():
        given.update(json.loads(text) if text else ())
    return [name for name in columns.others if name in given]


def _object(text: str | None) -> str | None:
    """Return a field column's text, None where it holds no object."""
    if text is None or text == "{}":
        return None
    if text.startswith("{"):
        return text
    return None if text == "null" else json.dumps({"metadata": json.loads(text)})


def _merged(fields: str | None, others: str) -> str:
    text = _object(fields)
    return others if text is None else json.dumps({**json.loads(text), **json.loads(others)})


def _split(texts: list[str | None], columns: Columns) -> tuple[list[str | None], list[str | None]]:
    """Tell the fields that have a column of their own from those that go into the JSON column."""
    fields: list[str | None] = []
    others: list[str | None] = []
    for text in texts:
        given: dict[str, Any] = {} if text is None else json.loads(text)
        apart = {name: given.pop(name) for name in list(given) if name in columns.others}
        if given and columns.fields is None:
            raise InputError(
                expected=f"metadata with columns in the table: {', '.join(columns.others)[:200]}",
                got=f"the field {next(iter(given))!r}",
                do="add a column for it, or one of JSON called metadata for all such fields",
            )
        _check_kinds(apart, columns.others)
        fields.append(json.dumps(given, ensure_ascii=False) if given else None)
        others.append(json.dumps(apart, ensure_ascii=False) if apart else None)
    return fields, others


def _check_kinds(given: Mapping[str, Any], kinds: Mapping[str, str]) -> None:
    """Refuse values that DuckDB would turn into something else to fit them in."""
    for name, value in given.items():
        if value is not None and not _fits(value, kinds[name]):
            raise InputError(
                expected=f"a value of type {kinds[name]} for the column {name!r}",
                got=repr(value)[:80],
                do="write what the column takes",
            )


def _fits(value: Any, kind: str) -> bool:
    if isinstance(value, bool) or kind == "BOOLEAN":
        return isinstance(value, bool) and (kind == "BOOLEAN" or NESTED.fullmatch(kind) is not None)
    if isinstance(value, int | float) and NUMBER.fullmatch(kind):
        return "INT" not in kind or float(value).is_integer()
    if isinstance(value, str) and NUMBER.fullmatch(kind):  # more digits than a float has
        digits = r"-?[0-9]+" if "INT" in kind else r"-?[0-9]+(\.[0-9]+)?"
        return re.fullmatch(digits, value) is not None
    nested = NESTED.fullmatch(kind) is not None
    return kind == "JSON" or (not NUMBER.fullmatch(kind) and isinstance(value, str) != nested)
