"""Notes of jobs: rows of one table per schema, which commit with the rows of a collection."""

from __future__ import annotations

from collections.abc import Mapping

from psycopg import sql

from isthmus.stores._postgresql_server import Connection
from isthmus.stores._postgresql_table import Table

__all__ = ["read_notes", "write_notes"]

# A `regclass` follows the table through renames and dumps.
CREATE = """
CREATE TABLE IF NOT EXISTS {notes} (
    collection regclass, vector text, key text, value text NOT NULL,
    PRIMARY KEY (collection, vector, key)
)
"""
NAME = "isthmus_notes"
LOCK = 0x69737468 << 32


def read_notes(connection: Connection, table: Table) -> dict[str, str]:
    """Return the notes of the vector of a table."""
    name = _name(table)
    found = connection.execute("SELECT to_regclass($1)", (name.as_string(),)).fetchone()
    if not found or found[0] is None:
        return {}
    query = sql.SQL("SELECT key, value FROM {} WHERE collection = $1::int8::oid AND vector = $2")
    return dict(connection.execute(query.format(name), (table.oid, table.vector.name)).fetchall())


def write_notes(connection: Connection, table: Table, notes: Mapping[str, str]) -> None:
    """Keep notes; the empty text removes one."""
    name = _name(table)
    found = connection.execute("SELECT to_regclass($1)", (name.as_string(),)).fetchone()
    if not found or found[0] is None:
        connection.execute("SELECT pg_advisory_xact_lock($1)", (LOCK,))
        connection.execute(sql.SQL(CREATE).format(notes=name))
    remove = sql.SQL("DELETE FROM {} WHERE collection = $1::int8::oid AND vector = $2 AND key = $3")
    keep = sql.SQL(
        "INSERT INTO {} (collection, vector, key, value) VALUES ($1::int8::oid, $2, $3, $4) "
        "ON CONFLICT (collection, vector, key) DO UPDATE SET value = EXCLUDED.value"
    )
    for key, value in notes.items():
        place = (table.oid, table.vector.name, key)
        if value:
            connection.execute(keep.format(name), (*place, value))
        else:
            connection.execute(remove.format(name), place)


def _name(table: Table) -> sql.Identifier:
    return sql.Identifier(table.schema, NAME)
