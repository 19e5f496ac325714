"""What Isthmus makes and changes of tables: a new one, a further vector, a comment, a name."""

from __future__ import annotations

from collections.abc import Mapping

import psycopg
from psycopg import sql

from isthmus.errors import (
    AccessDeniedError,
    MissingCollectionError,
    ParameterError,
    UnsupportedOperationError,
)
from isthmus.spaces import Space
from isthmus.stores._postgresql_server import Connection, Server
from isthmus.stores._postgresql_table import (
    FURTHER,
    METADATA,
    NUMBER,
    OPERATOR_CLASSES,
    Table,
    Wanted,
    comment_with,
)

__all__ = [
    "add_vector",
    "comment",
    "create_table",
    "find_extension",
    "make_extension",
    "missing",
    "rename",
]

MOST = {"vector": 16_000, "halfvec": 16_000}
MOST_INDEXED = {"vector": 2_000, "halfvec": 4_000}
LOCK = (0x69737468 << 32) + 1


def find_extension(connection: Connection, server: Server) -> bool:
    """Learn where pgvector lies and which version it is; whether it is there at all."""
    row = connection.execute(
        "SELECT e.extversion, n.nspname, n.nspname = ANY(current_schemas(true)) "
        "FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace "
        "WHERE e.extname = 'vector'"
    ).fetchone()
    if row is None:
        return False
    server.version = tuple(int(part) for part in row[0].split(".")[:2])
    server.extension = "" if row[2] else row[1]
    return True


def make_extension(connection: Connection, server: Server) -> None:
    """Create pgvector in the database where it is not yet there.

    Raises
    ------
    AccessDeniedError, UnsupportedOperationError
    """
    if server.version:  # asked only once: where it lies is on the path from then on
        return
    try:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except psycopg.errors.InsufficientPrivilege as error:
        raise AccessDeniedError(
            expected="the extension 'vector' in the database, or the right to create it",
            got="neither",
            do="ask an administrator to run, in this database: CREATE EXTENSION vector",
        ) from error
    except (psycopg.errors.UndefinedFile, psycopg.errors.FeatureNotSupported) as error:
        raise UnsupportedOperationError(
            expected="a PostgreSQL server on which pgvector is installed",
            got="one without it",
            do="install pgvector on the server, then run: CREATE EXTENSION vector",
        ) from error
    find_extension(connection, server)


def create_table(
    connection: Connection,
    wanted: Wanted,
    space: Space,
    *,
    type_: str,
    index: bool,
    record: Mapping[str, str],
) -> None:
    """Make a table; nothing where it is there."""
    connection.execute("SELECT pg_advisory_xact_lock($1)", (LOCK,))
    parts = (wanted.schema, wanted.table) if wanted.schema else (wanted.table,)
    table = sql.Identifier(*parts)
    vector = sql.Identifier(wanted.column or "embedding")
    names = {
        "table": table,
        "id": sql.Identifier(wanted.id or "id"),
        "vector": vector,
        "type": vector_type(type_, space.dim, index=index),
        "metadata": sql.Identifier(METADATA),
        "number": sql.Identifier(NUMBER),
    }
    create = (
        "CREATE TABLE {table} ({id} text PRIMARY KEY, {vector} {type}, {metadata} jsonb, "
        "{number} bigint GENERATED ALWAYS AS IDENTITY UNIQUE)"
    )
    try:
        with connection.transaction():
            connection.execute(sql.SQL(create).format(**names))
    except psycopg.errors.DuplicateTable:
        return
    gin = "CREATE INDEX ON {table} USING gin ({metadata} jsonb_path_ops)"
    connection.execute(sql.SQL(gin).format(**names))
    if index:
        make_index(connection, table, vector, type_, space)
    entries = {key.removeprefix(":"): text for key, text in record.items()}
    _comment(connection, table, vector, comment_with("", entries))


def add_vector(
    connection: Connection, schema: str, wanted: Wanted, space: Space, *, type_: str, index: bool
) -> None:
    """Give the rows of a table one more column of vectors; nothing where it has it."""
    connection.execute("SELECT pg_advisory_xact_lock($1)", (LOCK,))
    table, vector = sql.Identifier(schema, wanted.table), sql.Identifier(wanted.vector)
    column = vector_type(type_, space.dim, index=index)
    try:
        with connection.transaction():
            query = sql.SQL("ALTER TABLE {} ADD COLUMN {} {}").format(table, vector, column)
            connection.execute(query)
    except psycopg.errors.DuplicateColumn:
        return
    if index:
        make_index(connection, table, vector, type_, space)
    _comment(connection, table, vector, comment_with("", {FURTHER: "true"}))


def vector_type(type_: str, dim: int, *, index: bool) -> sql.Composable:
    """Return the type of a column, after checking that pgvector has it."""
    most = (MOST_INDEXED if index else MOST)[type_]
    if dim > most:
        raise ParameterError(
            expected=f"at most {most:,} numbers in a {type_}"
            + (" with an HNSW index" if index else ""),
            got=f"{dim:,}",
            do="leave &index=hnsw out, or use &type=halfvec (up to 4,000, as float16)"
            if index
            else "use another database",
        )
    return sql.SQL(f"{type_}({dim})")


def make_index(
    connection: Connection, table: sql.Identifier, vector: sql.Identifier, type_: str, space: Space
) -> None:
    """Make an HNSW index for the metric of a space."""
    operators = sql.SQL(f"{type_}_{OPERATOR_CLASSES[space.metric]}")
    query = sql.SQL("CREATE INDEX ON {} USING hnsw ({} {})").format(table, vector, operators)
    connection.execute(query)


def comment(connection: Connection, table: Table, entries: Mapping[str, str]) -> None:
    """Write what Isthmus records behind the comment that people wrote on the column."""
    connection.execute("SELECT pg_advisory_xact_lock($1)", (LOCK,))
    own, there = table.vector.record()
    kept = {key: there[key] for key in (FURTHER, "layout") if key in there}
    text = comment_with(own, {**entries, **kept})
    _comment(connection, table.sql, table.vector.sql, text)


def _comment(
    connection: Connection, table: sql.Identifier, vector: sql.Identifier, text: str
) -> None:
    query = sql.SQL("COMMENT ON COLUMN {}.{} IS {}").format(table, vector, sql.Literal(text))
    connection.execute(query)


def rename(connection: Connection, table: Table, name: str, *, former: str) -> str:
    """Give a table a name, and the table that had it another; return that, or the empty text."""
    connection.execute("SELECT pg_advisory_xact_lock($1)", (LOCK,))
    holder = _oid(connection, table.schema, name)
    if holder == table.oid:
        return ""
    if holder is not None:
        if _oid(connection, table.schema, former) is not None:
            raise ParameterError(
                expected="a free name for the table that had the name",
                got=f"{former!r}, which is taken",
                do="choose another",
            )
        _rename(connection, sql.Identifier(table.schema, name), former)
    _rename(connection, table.sql, name)
    return former if holder is not None else ""


def _rename(connection: Connection, table: sql.Identifier, name: str) -> None:
    query = sql.SQL("ALTER TABLE {} RENAME TO {}").format(table, sql.Identifier(name))
    connection.execute(query)


def _oid(connection: Connection, schema: str, name: str) -> int | None:
    # Not by `to_regclass`, which may still remember what was before the lock.
    query = (
        "SELECT c.oid::int8 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = $1 AND c.relname = $2"
    )
    row = connection.execute(query, (schema, name)).fetchone()
    return None if row is None else row[0]


def missing(wanted: Wanted) -> MissingCollectionError:
    """Say that there is no table to which a vector could be added."""
    return MissingCollectionError(
        expected=f"the table {wanted.table!r}, to give its rows a further vector",
        got="none of that name",
        do="make the collection of the first vector first",
    )
