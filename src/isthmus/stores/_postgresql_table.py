"""What a PostgreSQL table says of itself: its columns, its key, its indexes, its comments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from psycopg import sql

from isthmus._types import Metric
from isthmus.errors import CorruptStoreError, ParameterError
from isthmus.stores._postgresql_server import Connection

__all__ = [
    "FURTHER",
    "METADATA",
    "NUMBER",
    "Column",
    "Table",
    "Wanted",
    "comment_with",
    "find_table",
]

METADATA, NUMBER = "metadata", "number"
VECTORS = ("vector", "halfvec")
NO_METADATA = (*VECTORS, "sparsevec", "bytea", "tsvector")
EXACT_INDEXES = ("btree", "hash", "gin", "gist", "brin", "spgist")
MARK = "[isthmus] "
FURTHER = "further"
"""Marks the column that `&vector=` made, so that it is not taken for the first."""
OPERATORS: dict[Metric, str] = {"cosine": "<=>", "dot": "<#>", "l2": "<->"}
OPERATOR_CLASSES: dict[Metric, str] = {"cosine": "cosine_ops", "dot": "ip_ops", "l2": "l2_ops"}


@dataclass(frozen=True)
class Wanted:
    """What a URL asks for, empty where it leaves the choice.

    Parameters
    ----------
    schema, table, id, column, vector : str
    """

    schema: str
    table: str
    id: str
    column: str
    vector: str


@dataclass(frozen=True)
class Column:
    """A column, as the catalogue has it.

    Parameters
    ----------
    number : int
    name : str
    type : str
        Name of its type, without a length; of a domain, the type behind it.
    written : str
        The type as SQL writes it.
    dim : int or None
        Declared length of a vector; None: rows may differ.
    required, generated : bool
    comment : str
    """

    number: int
    name: str
    type: str
    written: str
    dim: int | None
    required: bool
    generated: bool
    comment: str

    @property
    def sql(self) -> sql.Identifier:
        """The name, quoted."""
        return sql.Identifier(self.name)

    def record(self) -> tuple[str, dict[str, str]]:
        """Split the comment into what people wrote and what Isthmus did."""
        own, mark, text = self.comment.rpartition(MARK)
        if not mark:
            return self.comment, {}
        try:
            entries = json.loads(text)
        except ValueError as error:
            raise CorruptStoreError(
                expected=f"what Isthmus wrote into the comment on the column {self.name!r}",
                got="something else behind its mark",
                do=f"take the text from {MARK.strip()!r} on out of the comment",
            ) from error
        return own.rstrip("\n"), dict(entries)


def comment_with(own: str, entries: Mapping[str, str]) -> str:
    r"""Return a comment: what people wrote, then what Isthmus records.

    Examples
    --------
    >>> comment_with("Of the titles.", {"space": "..."})
    'Of the titles.\n[isthmus] {"space": "..."}'
    """
    return (f"{own}\n" if own else "") + MARK + json.dumps(dict(entries))


@dataclass(frozen=True)
class Index:
    """An index: its method, its columns (0: an expression), the class of its first operator."""

    method: str
    columns: tuple[int, ...]
    operators: str
    primary: bool
    unique: bool

    def metric(self) -> Metric | None:
        """Return what a search by this index minimises."""
        for metric, name in OPERATOR_CLASSES.items():
            if self.operators.endswith(name):
                return metric
        return None


@dataclass(frozen=True)
class Table:
    """A table with a column of vectors.

    Parameters
    ----------
    oid : int
    schema, name : str
    kind : str
        ``r`` table, ``p`` partitioned, ``v`` view, ``m`` materialised view, ``f`` foreign.
    columns : tuple of Column
    id, vector : Column
    unique : bool
        Whether a unique index is on the id, so that rows can be replaced by it.
    indexes : tuple of Index
    """

    oid: int
    schema: str
    name: str
    kind: str
    columns: tuple[Column, ...]
    id: Column
    vector: Column
    unique: bool
    indexes: tuple[Index, ...]

    @property
    def sql(self) -> sql.Identifier:
        """The name, quoted, with its schema."""
        return sql.Identifier(self.schema, self.name)

    @cached_property
    def own(self) -> bool:
        """Whether Isthmus made it, and its columns are as they were."""
        marked = any("layout" in column.record()[1] for column in self.columns)
        return marked and {METADATA, NUMBER} <= {column.name for column in self.columns}

    @cached_property
    def fields(self) -> dict[str, Column]:
        """The columns that are metadata, where the table was made by another program."""
        return {
            column.name: column
            for column in self.columns
            if column.name != self.id.name and column.type not in NO_METADATA
        }

    @property
    def key(self) -> Column:
        """What a scan goes by."""
        if not self.own:
            return self.id
        return next(column for column in self.columns if column.name == NUMBER)

    def metrics(self) -> set[Metric]:
        """Return the metrics of its approximate indexes."""
        return {
            metric
            for index in self.indexes
            if index.method not in EXACT_INDEXES
            and index.columns[0] == self.vector.number
            and (metric := index.metric())
        }


def find_table(connection: Connection, wanted: Wanted) -> Table | str | None:
    """Read the catalogue.

    Returns
    -------
    Table, str or None
        None where there is no such table; the name of its schema where it lacks the column of
        ``&vector=``.

    Raises
    ------
    ParameterError
        The URL leaves open which column is the id or the vector.
    """
    parts = (wanted.schema, wanted.table) if wanted.schema else (wanted.table,)
    name = sql.Identifier(*parts).as_string(connection)
    found = connection.execute(
        "SELECT c.oid::int8, n.nspname, c.relname, c.relkind::text FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)",
        (name,),
    ).fetchone()
    if found is None:
        return None
    columns = _columns(connection, found[0])
    indexes = _indexes(connection, found[0])
    if wanted.vector and wanted.vector not in {column.name for column in columns}:
        return str(found[1])
    key, unique = _id_of(columns, indexes, wanted)
    vector = _vector_of(columns, wanted)
    oid, schema, table, kind = found
    return Table(oid, schema, table, kind, columns, key, vector, unique, indexes)


def _columns(connection: Connection, oid: int) -> tuple[Column, ...]:
    rows = connection.execute(
        "SELECT a.attnum, a.attname, coalesce(b.typname, t.typname), "
        "format_type(a.atttypid, a.atttypmod), a.atttypmod, "
        "a.attnotnull, a.attgenerated <> '' OR a.attidentity = 'a', "
        "coalesce(col_description(a.attrelid, a.attnum), '') "
        "FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
        "LEFT JOIN pg_type b ON b.oid = t.typbasetype "
        "WHERE a.attrelid = $1::int8::oid AND a.attnum > 0 AND NOT a.attisdropped "
        "ORDER BY a.attnum",
        (oid,),
    ).fetchall()
    return tuple(
        Column(number, name, kind, written, size if kind in VECTORS and size > 0 else None, *rest)
        for number, name, kind, written, size, *rest in rows
    )


def _indexes(connection: Connection, oid: int) -> tuple[Index, ...]:
    rows = connection.execute(
        "SELECT m.amname, i.indkey::int2[], i.indnkeyatts, coalesce(o.opcname, ''), "
        "i.indisprimary, i.indisunique AND i.indpred IS NULL AND i.indimmediate "
        "FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam "
        "LEFT JOIN pg_opclass o ON o.oid = i.indclass[0] "
        "WHERE i.indrelid = $1::int8::oid AND i.indisvalid",
        (oid,),
    ).fetchall()
    return tuple(
        Index(method, tuple(columns[:keys]), operators, primary, unique)
        for method, columns, keys, operators, primary, unique in rows
    )


def _id_of(
    columns: tuple[Column, ...], indexes: tuple[Index, ...], wanted: Wanted
) -> tuple[Column, bool]:
    """Find the column of the ids: the one asked for, the key, the only unique one, or ``id``."""
    numbers = {column.number: column for column in columns}
    unique = [i.columns[0] for i in indexes if i.unique and len(i.columns) == 1 and i.columns[0]]
    if wanted.id:
        column = _named(columns, wanted.id, "id")
        return column, column.number in unique
    for index in indexes:
        if index.primary and len(index.columns) == 1:
            return numbers[index.columns[0]], True
    if any(index.primary for index in indexes):
        raise _choose("one column that tells rows apart", "a key of several columns", "id", columns)
    single = {number for number in unique if numbers[number].required}
    if len(single) == 1:
        return numbers[single.pop()], True
    for column in columns:
        if column.name == "id":
            return column, column.number in unique
    raise _choose("a key, or a column 'id'", "neither", "id", columns)


def _vector_of(columns: tuple[Column, ...], wanted: Wanted) -> Column:
    """Find the column of the vectors: the one asked for, the one of the record, or the only one."""
    vectors = [column for column in columns if column.type in VECTORS]
    if wanted.vector or wanted.column:
        option = "vector" if wanted.vector else "column"
        found = _named(columns, wanted.vector or wanted.column, option)
        if found.type not in VECTORS:
            raise _choose(
                f"a column of type {' or '.join(VECTORS)}", found.written, option, vectors
            )
        return found
    first = [column for column in vectors if FURTHER not in column.record()[1]]
    first = [column for column in first if "layout" in column.record()[1]] or first
    if len(first) != 1:
        got = f"{len(first)} of them"
        raise _choose("one column of type vector or halfvec", got, "column", vectors)
    return first[0]


def _named(columns: tuple[Column, ...], name: str, option: str) -> Column:
    for column in columns:
        if column.name == name:
            return column
    raise _choose(f"the column of &{option}=", f"{name!r}, which is none", option, columns)


def _choose(expected: str, got: str, option: str, columns: Sequence[Column]) -> ParameterError:
    names = ", ".join(repr(column.name) for column in columns[:20])
    return ParameterError(
        expected=f"{expected} in the table",
        got=got,
        do=f"choose one: &{option}=NAME; the table has {names or 'none that would do'}",
    )
