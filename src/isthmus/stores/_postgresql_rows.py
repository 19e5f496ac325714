"""Rows on their way into PostgreSQL and out of it, in its binary formats."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from psycopg import sql

from isthmus._types import FloatArray
from isthmus.errors import CorruptStoreError
from isthmus.stores._connected import Rows
from isthmus.stores._postgresql_server import Connection
from isthmus.stores._postgresql_table import Column, Table
from isthmus.stores._rows import spread

__all__ = ["INCOMING", "as_literal", "copy_in", "of_ids", "to_rows"]

Sent = tuple[str, str | None, bytes | None]
"""Id, metadata as JSON text, and the vector as PostgreSQL sends it; None: not asked for."""

INCOMING = sql.SQL("pg_temp.isthmus_incoming")
NUMBERS = {"vector": ">f4", "halfvec": ">f2"}
HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
END = struct.pack(">h", -1)
NULL = struct.pack(">i", -1)
INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
INTEGERS = ("int2", "int4", "int8")
INT_MAX = 2**63


def as_literal(vector: FloatArray) -> str:
    """Write a vector as PostgreSQL reads it, without loss.

    Examples
    --------
    >>> as_literal(np.float32([1, 0.1]))
    '[1.0,0.10000000149011612]'
    """
    return "[" + ",".join(map(repr, vector.tolist())) + "]"


def copy_in(connection: Connection, rows: Rows) -> None:
    """Put rows into a temporary table, numbered, that goes with the transaction."""
    connection.execute(
        "CREATE TEMPORARY TABLE isthmus_incoming (place int4, id text, vector vector, "
        "metadata jsonb) ON COMMIT DROP"
    )
    order = sql.SQL("COPY {} FROM STDIN (FORMAT BINARY)").format(INCOMING)
    with connection.cursor().copy(order) as copy:
        copy.write(HEADER + b"".join(_copied(rows)) + END)


def _copied(rows: Rows) -> Iterator[bytes]:
    """Yield rows as the binary COPY has them: each field behind its length."""
    dim = rows.vectors.shape[1]
    data = rows.vectors.astype(">f4").tobytes()
    size = 4 * dim
    before = struct.pack(">ihh", size + 4, dim, 0)
    for place, (text, fields) in enumerate(zip(rows.ids, rows.metadata, strict=True)):
        name = text.encode()
        yield struct.pack(">hiii", 4, 4, place, len(name)) + name + before
        yield data[place * size : (place + 1) * size]
        if fields is None:
            yield NULL
        else:
            document = b"\x01" + fields.encode()  # the version of the format of jsonb
            yield struct.pack(">i", len(document)) + document


def to_rows(found: Sequence[Sent], table: Table, *, dim: int) -> Rows:
    """Turn what a query gave into rows; without vectors where ``dim`` is 0."""
    numbers = np.dtype(NUMBERS[table.vector.type])
    vectors = [b"" if row[2] is None else row[2][4:] for row in found]

    def read(fits: npt.NDArray[np.bool_]) -> FloatArray:
        chosen = b"".join(one for one, fit in zip(vectors, fits, strict=True) if fit)
        return np.frombuffer(chosen, numbers).astype(np.float32).reshape(-1, dim)

    if not dim:
        matrix, other = np.empty((len(found), 0), np.float32), None
    else:
        lengths = [len(vector) // numbers.itemsize for vector in vectors]
        matrix, other = spread(
            lengths, dim, read, error=lambda there, dim: lengths_differ(table, dim, there)
        )
    return Rows([row[0] for row in found], matrix, [row[1] for row in found], other)


def lengths_differ(table: Table, dim: int, lengths: Sequence[float]) -> CorruptStoreError:
    """Say that a column holds vectors of several lengths."""
    query = sql.SQL("SELECT vector_dims({}), count(*) FROM {} GROUP BY 1")
    counts = query.format(table.vector.sql, table.sql).as_string()
    return CorruptStoreError(
        expected=f"vectors of {dim} numbers in every row",
        got=f"rows of {', '.join(f'{one:g}' for one in lengths)} numbers"
        if lengths
        else "rows of others",
        do=f"find out which rows came from another model, and move them to a table of their own: "
        f"{counts}",
    )


def of_ids(column: Column, ids: list[str]) -> tuple[sql.Composable, list[str]]:
    """Return the condition on the id, and the ids that the column can hold.

    Comparisons are in the column's own type where it writes each value in one way only, so that its
    index helps.
    """
    ids = [text for text in ids if "\0" not in text]
    name = column.sql
    if column.type in INTEGERS:
        whole = [t for t in ids if INTEGER.fullmatch(t) and -INT_MAX <= int(t) < INT_MAX]
        return sql.SQL("{} = ANY($1::int8[])").format(name), whole
    if column.type == "uuid":
        good = [text for text in ids if UUID.fullmatch(text)]
        return sql.SQL("{} = ANY($1::uuid[])").format(name), good
    if column.type in ("text", "varchar"):
        return sql.SQL("{} = ANY($1::text[])").format(name), ids
    return sql.SQL("{}::text = ANY($1::text[])").format(name), ids
