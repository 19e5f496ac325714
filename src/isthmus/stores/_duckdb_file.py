"""A DuckDB file: opened when it is needed, asked in SQL, read through Arrow."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isthmus._optional import require
from isthmus.errors import NotAStoreError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DuckdbFile"]


class DuckdbFile:
    """One connection to a file.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: Any = None

    def is_there(self) -> bool:
        """Return whether there is a file, or a connection that is about to make one."""
        return self._connection is not None or self.path.exists()

    def connection(self) -> Any:
        """Return the connection; it makes the file where there is none."""
        if self._connection is None:
            client = require("duckdb", extra="duckdb")
            self._check_format()
            try:
                self._connection = client.connect(str(self.path))
            except client.IOException as error:
                if "Permission denied" not in str(error) or not self.path.exists():
                    raise
                self._connection = client.connect(str(self.path), read_only=True)
        return self._connection

    def _check_format(self) -> None:
        """Refuse other formats: DuckDB would try to download a reader for those that it knows."""
        if self.path.is_file() and (size := self.path.stat().st_size):
            with self.path.open("rb") as file:
                start = file.read(12)
            if start[8:] != b"DUCK":
                raise NotAStoreError(
                    expected=f"a database of DuckDB at {str(self.path)!r}",
                    got=f"{size:,} bytes of something else",
                    do="check the path; nothing was written",
                )

    def close(self) -> None:
        """Let go of the file."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def run(self, statement: str) -> None:
        """Run a statement that gives no rows."""
        self.connection().execute(statement)

    def rows(self, query: str, *parameters: str) -> list[Any]:
        """Return all rows: a result that is not read to its end blocks the connection."""
        return list(self.connection().execute(query, list(parameters)).fetchall())

    def table(self, query: str, parameters: Mapping[str, Any] | None = None) -> pa.Table:
        """Return the rows of a query as an Arrow table."""
        return self.connection().sql(query, params=dict(parameters or {})).to_arrow_table()

    def batches(
        self, query: str, parameters: Mapping[str, Any], *, rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a query, so many at a time."""
        yield from self.connection().sql(query, params=dict(parameters)).to_arrow_reader(rows)

    @contextlib.contextmanager
    def registered(self, name: str, table: pa.Table) -> Iterator[None]:
        """Lend an Arrow table to the SQL of the block, under a name."""
        connection = self.connection()
        connection.register(name, table)
        try:
            yield
        finally:
            connection.unregister(name)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what the block does, or nothing of it."""
        connection = self.connection()
        connection.begin()
        try:
            yield
            connection.commit()
        except BaseException:
            with contextlib.suppress(Exception):  # the first error is the one that tells
                connection.rollback()
            raise

    def columns(self, table: str) -> dict[str, str]:
        """Return the type of each column; none where there is no such table."""
        found = self.rows(
            "SELECT column_name, data_type FROM duckdb_columns() "
            "WHERE database_name = current_database() AND schema_name = 'main' "
            "AND lower(table_name) = lower(?) ORDER BY column_index",
            table,
        )
        return dict(found)

    def unique_columns(self, table: str) -> dict[str, bool]:
        """Return the columns that alone are unique, and whether each is the primary key."""
        found = self.rows(
            "SELECT constraint_column_names[1], constraint_type = 'PRIMARY KEY' "
            "FROM duckdb_constraints() WHERE database_name = current_database() "
            "AND schema_name = 'main' AND lower(table_name) = lower(?) "
            "AND len(constraint_column_names) = 1 AND constraint_type IN ('PRIMARY KEY', 'UNIQUE')",
            table,
        )
        return dict(sorted(found))

    def is_view(self, table: str) -> bool:
        """Return whether a name leads to a view."""
        found = self.rows(
            "SELECT 1 FROM duckdb_views() WHERE database_name = current_database() "
            "AND schema_name = 'main' AND lower(view_name) = lower(?)",
            table,
        )
        return bool(found)

    def comment(self, table: str) -> str:
        """Return the comment on a table."""
        found = self.rows(
            "SELECT comment FROM duckdb_tables() WHERE database_name = current_database() "
            "AND schema_name = 'main' AND lower(table_name) = lower(?)",
            table,
        )
        return found[0][0] or "" if found else ""
