"""The rows of one PostgreSQL table, read and searched."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from isthmus._types import FloatArray, Metric
from isthmus.errors import InvalidIdError
from isthmus.stores._connected import Hits, Page, Rows
from isthmus.stores._postgresql_filter import condition, metadata
from isthmus.stores._postgresql_rows import as_literal, lengths_differ, of_ids, to_rows
from isthmus.stores._postgresql_server import Connection, Server, read_only
from isthmus.stores._postgresql_table import OPERATORS, Table

__all__ = ["Collection"]

LOCKED = ("r", "p", "v")
"""Kinds that can be locked, so that nobody renames them meanwhile."""


@dataclass(frozen=True)
class Collection:
    """Requests to one table.

    Parameters
    ----------
    server : Server
    table : Table
    further : bool
        Whether the vector is not the first of the rows: what goes is the vector, not the row.
    """

    server: Server
    table: Table
    further: bool

    @contextlib.contextmanager
    def transaction(self, *settings: str, write: bool = False) -> Iterator[Connection]:
        """Give a connection in a transaction, in which the table keeps its name."""
        name = self.table.sql
        mode = sql.SQL("ROW EXCLUSIVE" if write else "ACCESS SHARE")
        statements: list[sql.Composable] = [sql.SQL(text) for text in settings]
        if self.table.kind in LOCKED:
            statements.append(sql.SQL("LOCK TABLE {} IN {} MODE").format(name, mode))
        oid = sql.SQL("SELECT to_regclass({})::oid::int8")
        statements.append(oid.format(sql.Literal(name.as_string())))
        try:
            with self.server.transaction(*statements, oid=self.table.oid) as connection:
                yield connection
        except psycopg.errors.InsufficientPrivilege as error:
            if write:
                raise read_only(error, f"write to the table {self.table.name!r}") from error
            raise

    # --- reading ------------------------------------------------------------------------------

    def count(self) -> int:
        """Count the rows that have the vector."""
        query = sql.SQL("SELECT count(*) FROM {} WHERE {} IS NOT NULL")
        with self.transaction() as connection:
            row = connection.execute(query.format(self.table.sql, self.table.vector.sql)).fetchone()
        return int(row[0]) if row else 0

    def dim(self) -> int | None:
        """Return the length of the vectors, declared or of a row; None where neither is there."""
        if self.table.vector.dim is not None:
            return self.table.vector.dim
        query = sql.SQL("SELECT vector_dims({0}) FROM {1} WHERE {0} IS NOT NULL LIMIT 1")
        names = (self.table.vector.sql, self.table.sql)
        with self.transaction() as connection:
            row = connection.execute(query.format(*names)).fetchone()
        return int(row[0]) if row else None

    def read(self, ids: list[str], *, dim: int) -> Rows:
        """Return the rows of these ids; without their vectors where ``dim`` is 0."""
        chosen, values = of_ids(self.table.id, ids)
        query = self._select(chosen, sent=dim > 0)
        with self.transaction() as connection:
            found = connection.cursor(binary=True).execute(query, [values]).fetchall()
        return to_rows([row[:3] for row in found], self.table, dim=dim)

    def page(self, after: str, limit: int, *, dim: int) -> Page:
        """Return the rows behind a key. Rows that share one come together, so that none is lost."""
        key = self.table.key
        behind = sql.SQL("{} > $2::{}").format(key.sql, sql.SQL(key.written))
        alone = self.table.unique or self.table.own
        query = self._select(
            # With its table, since by itself the name would mean the column of text that comes out.
            sql.SQL("{} ORDER BY {}.{} FETCH FIRST $1 ROWS {}").format(
                behind if after else sql.SQL("true"),
                self.table.sql,
                key.sql,
                sql.SQL("ONLY" if alone else "WITH TIES"),
            )
        )
        with self.transaction() as connection:
            if not after and not key.required:
                self._check_keys(connection)
            values = [limit, after] if after else [limit]
            found = connection.cursor(binary=True).execute(query, values).fetchall()
        last = found[-1][3] if found else after
        return Page(to_rows([row[:3] for row in found], self.table, dim=dim), last)

    def find(
        self, queries: FloatArray, *, k: int, where: Mapping[str, Any], metric: Metric, ef: int
    ) -> Hits:
        """Search: exactly, or by an approximate index where ``ef`` is not 0."""
        chosen, values = condition(self.table, where, first=3)
        query = self._search(chosen, metric, approximate=ef > 0)
        literals = [as_literal(vector) for vector in queries]
        try:
            with self.transaction(*self._settings(k, ef)) as connection, connection.pipeline():
                cursors = [connection.execute(query, [text, k, *values]) for text in literals]
                found = [cursor.fetchall() for cursor in cursors]
        except psycopg.errors.DataException as error:
            if error.sqlstate == "22000":
                raise lengths_differ(self.table, queries.shape[1], []) from error
            raise
        # The cosine of a row of zeros is not a number.
        return [[hit for hit in hits if not math.isnan(hit[1])] for hits in found]

    def _settings(self, k: int, ef: int) -> tuple[str, ...]:
        if not ef:
            return ("SET LOCAL enable_indexscan = off",)
        settings = [f"SET LOCAL hnsw.ef_search = {min(1000, max(ef, k))}"]
        if self.server.version >= (0, 8):
            settings += [
                "SET LOCAL hnsw.iterative_scan = strict_order",
                "SET LOCAL ivfflat.iterative_scan = relaxed_order",
            ]
        return tuple(settings)

    def _search(self, chosen: sql.Composable, metric: Metric, *, approximate: bool) -> sql.Composed:
        """Write the query of one vector; its parameters: vector, k, and those of the filter."""
        vector = self.table.vector.sql
        half = self.table.vector.type == "halfvec"
        distance = sql.SQL("{}::vector {} $1::vector" if half else "{} {} $1::vector")
        by = sql.SQL(OPERATORS[metric])
        score = distance.format(vector, by)
        order = score
        if half and approximate:
            # The index is searched by the rounded query; the score is of the query as it is.
            order = sql.SQL("{} {} $1::halfvec").format(vector, by)
        elif self.table.own and not approximate:
            order = sql.SQL("{}, {}").format(score, self.table.key.sql)
        query = sql.SQL(
            "SELECT {id}::text AS id, ({score})::float8 AS score FROM {table} "
            "WHERE {vector} IS NOT NULL AND {chosen} ORDER BY {order} LIMIT $2"
        ).format(
            id=self.table.id.sql,
            score=score,
            table=self.table.sql,
            vector=vector,
            chosen=chosen,
            order=order,
        )
        if not approximate:
            return query
        return sql.SQL("SELECT id, score FROM ({}) AS nearest ORDER BY score").format(query)

    def _select(self, rest: sql.Composable, *, sent: bool = True) -> sql.Composed:
        """Write a query for id, metadata, vector and key of the rows that have the vector."""
        vector = self.table.vector
        send = sql.SQL("{}_send({})").format(sql.SQL(vector.type), vector.sql)
        return sql.SQL(
            "SELECT {id}::text, {metadata}, {send}, {key}::text FROM {table} "
            "WHERE {vector} IS NOT NULL AND {rest}"
        ).format(
            id=self.table.id.sql,
            metadata=metadata(self.table),
            send=send if sent else sql.SQL("NULL::bytea"),
            key=self.table.key.sql,
            table=self.table.sql,
            vector=vector.sql,
            rest=rest,
        )

    def _check_keys(self, connection: Connection) -> None:
        """Refuse rows without an id: a scan would not see them."""
        query = sql.SQL("SELECT EXISTS (SELECT FROM {} WHERE {} IS NULL AND {} IS NOT NULL)")
        names = (self.table.sql, self.table.id.sql, self.table.vector.sql)
        row = connection.execute(query.format(*names)).fetchone()
        if row and row[0]:
            raise InvalidIdError(
                expected=f"an id in every row of the column {self.table.id.name!r}",
                got="rows without one",
                do="choose another column: &id=NAME",
            )
