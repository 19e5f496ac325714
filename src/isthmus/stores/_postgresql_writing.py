"""Rows on their way into a PostgreSQL table, a batch and its notes in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import psycopg
from psycopg import sql

from isthmus.errors import InputError, InvalidIdError, ReadOnlyStoreError, UnsupportedOperationError
from isthmus.stores._connected import Rows
from isthmus.stores._postgresql_collection import Collection
from isthmus.stores._postgresql_notes import write_notes
from isthmus.stores._postgresql_rows import INCOMING, copy_in, of_ids
from isthmus.stores._postgresql_server import Connection
from isthmus.stores._postgresql_table import METADATA, Table

__all__ = ["remove", "write"]


def write(collection: Collection, rows: Rows | None, notes: Mapping[str, str]) -> None:
    """Replace rows by id, and keep notes, as a whole."""
    table = collection.table
    if rows is not None:
        _check_writable(table)
    with collection.transaction(write=True) as connection:
        _wait_for_others(connection, table)
        if rows is not None:
            copy_in(connection, rows)
            if table.own:
                _replace(connection, table, further=collection.further)
            else:
                _merge(connection, table)
        if notes:
            write_notes(connection, table, notes)


def remove(collection: Collection, ids: list[str]) -> None:
    """Remove rows, or the further vector of rows."""
    table = collection.table
    _check_writable(table)
    found, values = of_ids(table.id, ids)
    query = sql.SQL("DELETE FROM {table} WHERE {found}")
    if collection.further:
        query = sql.SQL("UPDATE {table} SET {vector} = NULL WHERE {found}")
    with collection.transaction(write=True) as connection:
        _wait_for_others(connection, table)
        connection.execute(query.format(found=found, **_names(table)), [values])


def _wait_for_others(connection: Connection, table: Table) -> None:
    """Write alone: later rows have higher numbers, and no two batches wait for each other."""
    connection.execute("SELECT pg_advisory_xact_lock($1)", (0x69737468 << 32 | table.oid,))


def _check_writable(table: Table) -> None:
    name = f"{table.schema}.{table.name}"
    if table.kind not in ("r", "p"):
        raise ReadOnlyStoreError(
            expected="a table", got=f"{name!r}, which is a view", do="open the table behind it"
        )
    if not table.unique:
        raise UnsupportedOperationError(
            expected="a unique index on the id, by which rows are replaced",
            got=f"none on the column {table.id.name!r} of {name!r}",
            do=f"CREATE UNIQUE INDEX ON {table.sql.as_string()} ({table.id.sql.as_string()}), "
            "or choose another column: &id=NAME",
        )


def _names(table: Table) -> dict[str, sql.Composable]:
    return {
        "table": table.sql,
        "id": table.id.sql,
        "vector": table.vector.sql,
        "metadata": sql.Identifier(METADATA),
        "incoming": INCOMING,
        "type": sql.SQL(table.id.written),
    }


def _replace(connection: Connection, table: Table, *, further: bool) -> None:
    """Write to a table of ours. Metadata stay with a further vector that brings none."""
    names = _names(table)
    fields = sql.SQL("EXCLUDED.{metadata}").format(**names)
    if further:
        fields = sql.SQL("coalesce({}, {}.{})").format(fields, names["table"], names["metadata"])
    connection.execute(
        sql.SQL(
            "INSERT INTO {table} ({id}, {vector}, {metadata}) "
            "SELECT id, vector, metadata FROM {incoming} ORDER BY place "
            "ON CONFLICT ({id}) DO UPDATE SET {vector} = EXCLUDED.{vector}, {metadata} = {fields}"
        ).format(fields=fields, **names)
    )


def _merge(connection: Connection, table: Table) -> None:
    """Write to a table of another program: columns that nobody named keep what they hold."""
    _check_ids(connection, table)
    keys = _named_columns(connection, table)
    named = [sql.Identifier(key) for key in keys]
    record = "LATERAL jsonb_populate_record(NULL::{table}, coalesce(i.metadata, '{{}}')) AS r"
    change = "{c} = CASE WHEN i.metadata ? {key} THEN r.{c} ELSE {table}.{c} END"
    names = _names(table) | {
        "record": sql.SQL(record).format(**_names(table)),
        "changes": _listed(
            sql.SQL(change).format(c=sql.Identifier(key), key=sql.Literal(key), table=table.sql)
            for key in keys
        ),
        "columns": _listed(named),
        "values": _listed(sql.SQL("r.{}").format(c) for c in named),
        "excluded": _listed(sql.SQL("{0} = EXCLUDED.{0}").format(c) for c in named),
    }
    connection.execute(
        sql.SQL(
            "UPDATE {table} SET {vector} = i.vector{changes} FROM {incoming} AS i, {record} "
            "WHERE {table}.{id} = i.id::{type}"
        ).format(**names)
    )
    connection.execute(
        sql.SQL(
            "INSERT INTO {table} ({id}, {vector}{columns}) OVERRIDING SYSTEM VALUE "
            "SELECT i.id::{type}, i.vector{values} FROM {incoming} AS i, {record} "
            "WHERE NOT EXISTS (SELECT FROM {table} AS t WHERE t.{id} = i.id::{type}) "
            "ORDER BY i.place ON CONFLICT ({id}) "
            "DO UPDATE SET {vector} = EXCLUDED.{vector}{excluded}"
        ).format(**names)
    )


def _listed(parts: Iterable[sql.Composable]) -> sql.Composable:
    """Write each part behind a comma."""
    return sql.Composed([sql.SQL(", {}").format(part) for part in parts])


def _check_ids(connection: Connection, table: Table) -> None:
    """Refuse ids that the column would write otherwise: "007" in a column of numbers."""
    query = sql.SQL(
        "SELECT id FROM {incoming} WHERE (id::{type})::text IS DISTINCT FROM id LIMIT 1"
    )
    try:
        row = connection.execute(query.format(**_names(table))).fetchone()
    except psycopg.errors.DataError as error:
        raise _no_id(table, error.diag.message_primary or "another") from error
    if row is not None:
        raise _no_id(table, repr(row[0][:40]))


def _no_id(table: Table, got: str) -> InvalidIdError:
    return InvalidIdError(
        expected=f"ids as the column {table.id.name!r} ({table.id.written}) writes them",
        got=got,
        do="use the ids of the table",
    )


def _named_columns(connection: Connection, table: Table) -> list[str]:
    """Return the columns that the metadata of these rows name."""
    query = sql.SQL("SELECT DISTINCT jsonb_object_keys(metadata) FROM {}").format(INCOMING)
    named = sorted(row[0] for row in connection.execute(query).fetchall())
    able = {name for name, column in table.fields.items() if not column.generated}
    if unknown := [name for name in named if name not in able]:
        raise InputError(
            expected=f"metadata for the columns of {table.name!r}: "
            + (", ".join(sorted(able)) or "none"),
            got=", ".join(map(repr, unknown[:5])),
            do="add the column, or leave the key out",
        )
    return named
