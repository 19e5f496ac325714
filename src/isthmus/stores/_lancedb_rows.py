"""Rows of LanceDB as Arrow tables: on their way in, and out."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from isthmus.errors import InputError
from isthmus.stores._arrow import array_of, matrix_of
from isthmus.stores._connected import Rows
from isthmus.stores._lancedb_columns import FIELDS, TOKENS, Columns
from isthmus.stores._tokens import tokens

__all__ = ["rows_of", "table_of"]


def rows_of(table: pa.Table, columns: Columns, dim: int, *, vectors: bool = True) -> Rows:
    """Return the rows of a table that have a vector."""
    table = table.filter(pc.is_valid(table[columns.vector.name]))
    ids = pc.cast(table[columns.key.name], pa.string()).to_pylist()
    matrix, other = np.empty((len(ids), 0), np.float32), None
    if vectors:
        matrix, other = matrix_of(table[columns.vector.name], dim)
    metadata: list[str | None] = [None] * len(ids)
    if columns.own and FIELDS in table.column_names:
        metadata = table[FIELDS].to_pylist()
    others = [name for name in columns.others if name in table.column_names]
    if others:
        read = table.select(others).to_pylist()
        metadata = [_merged(one, more) for one, more in zip(metadata, read, strict=True)]
    return Rows(ids, matrix, metadata, other)


def _merged(own: str | None, others: Mapping[str, Any]) -> str:
    fields = {} if own is None else json.loads(own)
    return json.dumps({**fields, **{name: _plain(value) for name, value in others.items()}})


def _plain(value: Any) -> Any:
    """Return what JSON can hold: times as ISO 8601, bytes as hexadecimal digits, no NaN."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, str | int) else str(value)


def table_of(
    rows: Rows, columns: Columns, kept: Mapping[str, Mapping[str, Any]], *, first: bool
) -> pa.Table:
    """Return rows as the columns that are written; the others stay as they are.

    Parameters
    ----------
    rows : Rows
    columns : Columns
    kept : mapping of str to mapping
        For each id that is there, its values in the metadata columns.
    first : bool
        Whether it is the first vector of the collection: metadata that are not given go.

    Raises
    ------
    InputError
        Metadata that have no column, or one of another type.
    """
    flat = array_of(rows.vectors)
    arrays = {
        columns.key.name: pc.cast(pa.array(rows.ids, pa.string()), columns.key.type),
        columns.vector.name: pc.cast(flat, columns.vector.type),
    }
    given = [{} if one is None else json.loads(one) for one in rows.metadata]
    apart = [{name: one.pop(name) for name in list(one) if name in columns.others} for one in given]
    if columns.own:
        arrays |= _own_columns(rows, given, kept, first=first)
    elif unknown := [name for one in given for name in one]:
        raise InputError(
            expected=f"metadata with columns in the table: {', '.join(columns.others)[:200]}",
            got=f"the field {unknown[0]!r}",
            do="add a column for it",
        )
    for name in sorted({name for one in apart for name in one}):
        values = [
            one[name] if name in one else kept.get(row, {}).get(name)
            for row, one in zip(rows.ids, apart, strict=True)
        ]
        arrays[name] = _column(values, columns.others[name], name)
    return pa.table(arrays)


def _own_columns(
    rows: Rows,
    given: list[dict[str, Any]],
    kept: Mapping[str, Mapping[str, Any]],
    *,
    first: bool,
) -> dict[str, pa.Array]:
    texts = [
        json.dumps(fields, ensure_ascii=False)
        if fields
        else (None if first else kept.get(row, {}).get(FIELDS))
        for row, fields in zip(rows.ids, given, strict=True)
    ]
    words = pa.array([tokens(one) for one in texts], pa.list_(pa.string()))
    return {FIELDS: pa.array(texts, pa.string()), TOKENS: words}


def _column(values: list[Any], kind: pa.DataType, name: str) -> pa.Array:
    """Return values as a column has them, and refuse what would become something else."""
    wrong = [one for one in values if one is not None and not _fits(one, kind)]
    if wrong:
        raise _refused(name, kind, repr(wrong[0])[:80])
    try:
        texts = kinds.is_temporal(kind) and all(isinstance(one, str | None) for one in values)
        return pa.array(values, pa.string()).cast(kind) if texts else pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError) as error:
        raise _refused(name, kind, str(error)[:200]) from error


def _fits(value: Any, kind: pa.DataType) -> bool:
    """Return whether Arrow keeps a value as it is, or refuses it by itself."""
    if isinstance(value, bool):
        return bool(kinds.is_boolean(kind))
    if isinstance(value, str):
        return not kinds.is_nested(kind)
    return not isinstance(value, float) or not kinds.is_integer(kind) or value.is_integer()


def _refused(name: str, kind: pa.DataType, got: str) -> InputError:
    return InputError(
        expected=f"values of type {kind} for the column {name!r}",
        got=got,
        do="write what the column takes",
    )
