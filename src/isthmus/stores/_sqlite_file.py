"""One SQLite file: opening it, transactions, and what its errors mean.

The tables are described in docs/stores.md. Values reach SQL only as bound parameters; the name of a
collection is never part of a statement, its rows live in a table that is named by a number.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw

from isthmus.errors import MissingFileError, StoreError, StoreVersionError
from isthmus.stores._sqlite_errors import corrupt, in_our_words, not_a_store, not_opened

__all__ = ["SqliteFile"]

APPLICATION_ID = 0x4953544D  # "ISTM"
FORMAT = 1
MAGIC = b"SQLite format 3\0"
PAGE_BYTES = 16_384  # several vectors to a page: faster scans and a smaller file than with 4,096
LOG_BYTES = 2**26  # a write-ahead log that grew larger is cut back to this

SCHEMA = """
CREATE TABLE IF NOT EXISTS isthmus_collections (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  token TEXT NOT NULL,
  space TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  change INTEGER NOT NULL DEFAULT 0,
  shortest REAL,
  longest REAL
) STRICT;
CREATE TABLE IF NOT EXISTS isthmus_notes (
  collection INTEGER NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (collection, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS isthmus_indexes (
  collection INTEGER NOT NULL,
  kind TEXT NOT NULL,
  change INTEGER NOT NULL,
  count INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  PRIMARY KEY (collection, kind)
) STRICT, WITHOUT ROWID;
"""


class SqliteFile:
    """A connection to a store file, for one thread at a time.

    Parameters
    ----------
    path : Path
    create : bool
        Whether to make the file, or the tables in an empty one, where there is none.
    timeout : float
        Seconds to wait for another writer.

    Raises
    ------
    MissingFileError, NotAStoreError, StoreVersionError, CorruptStoreError
    """

    def __init__(self, path: Path, *, create: bool, timeout: float) -> None:
        self.path = path.absolute()
        self.timeout = timeout
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._connection: apsw.Connection | None = None
        self._look(create=create)
        with self._translated():
            self._connection = self._connect(create=create)
        try:
            with self._translated():
                self._check(create=create)
        except BaseException:
            self.close()
            raise

    def _look(self, *, create: bool) -> None:
        """Refuse what is no database before SQLite touches it: it would write into a short file."""
        if not self.path.exists() and not (create and self.path.parent.is_dir()):
            raise MissingFileError(
                expected="a folder for the new file" if create else "a store file",
                got=f"nothing at {str(self.path.parent if create else self.path)!r}",
                do="check the path: sqlite:/// is followed by a relative one, sqlite://// by an "
                "absolute one",
            )
        if self.path.is_dir():
            raise not_a_store(str(self.path), "a folder")
        try:
            start = _first_bytes(self.path)
        except OSError as error:
            raise not_opened(str(self.path), error.strerror or str(error)) from error
        if start not in {MAGIC, b""}:
            raise not_a_store(str(self.path), "a file that is not a database")

    @contextlib.contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """Give the connection inside a transaction that sees one state of the file."""
        with self._transaction("BEGIN", seconds=self.timeout) as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self, *, wait: bool = True) -> Iterator[apsw.Connection]:
        """Give the connection inside a transaction that writes everything or nothing.

        Parameters
        ----------
        wait : bool, default True
            Wait for another writer, up to the timeout.

        Raises
        ------
        StoreBusyError, ReadOnlyStoreError, StoreFullError
        """
        with self._transaction("BEGIN IMMEDIATE", seconds=self.timeout * wait) as connection:
            yield connection

    def close(self) -> None:
        """Let go of the file; closing twice does nothing."""
        with self._lock, self._translated():
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    @contextlib.contextmanager
    def _transaction(self, begin: str, *, seconds: float) -> Iterator[apsw.Connection]:
        with self._lock, self._translated():
            if self._connection is None or self._process != os.getpid():
                # A connection that a fork copied would damage the file.
                other = "in another process" if self._connection else "that was closed"
                raise StoreError(
                    expected="an open store of this process",
                    got=f"one of {str(self.path)!r} {other}",
                    do="open it again",
                )
            connection = self._connection
            connection.set_busy_timeout(int(seconds * 1000))
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except apsw.Error as error:
            raise in_our_words(error, self.path, self.timeout) from error
        except UnicodeDecodeError as error:
            raise corrupt(self.path, "text that is not UTF-8") from error

    def _connect(self, *, create: bool) -> apsw.Connection:
        flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
        connection = apsw.Connection(str(self.path), flags=flags)
        try:
            self._prepare(connection)
        except (apsw.CantOpenError, apsw.ReadOnlyError):
            # A write-ahead file in a folder where nothing may be written: read it as it stands.
            connection.close()
            if self._log().exists() and self._log().stat().st_size:
                raise
            connection = apsw.Connection(
                f"file:{quote(str(self.path))}?immutable=1",
                flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
            )
            self._prepare(connection)
        return connection

    def _prepare(self, connection: apsw.Connection) -> None:
        import sqlite_vec

        connection.set_busy_timeout(int(self.timeout * 1000))
        connection.enable_load_extension(True)  # noqa: FBT003 - apsw takes it by position only
        connection.load_extension(sqlite_vec.loadable_path())
        connection.enable_load_extension(False)  # noqa: FBT003 - the same
        connection.pragma("trusted_schema", False)  # noqa: FBT003 - the same
        connection.pragma("cell_size_check", True)  # noqa: FBT003 - the same
        connection.pragma("journal_size_limit", LOG_BYTES)
        connection.pragma("schema_version")  # the first read: fails here if it must fail

    def _check(self, *, create: bool) -> None:
        connection: Any = self._connection
        names = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
        if not names and create:
            self._make_tables(connection)
        elif "isthmus_collections" not in names:
            what = "a SQLite file of another program" if names else "an empty file"
            raise not_a_store(str(self.path), what)
        version = connection.pragma("user_version")
        if version > FORMAT:
            raise StoreVersionError(
                expected=f"a store in format {FORMAT} or earlier",
                got=f"format {version} at {str(self.path)!r}",
                do="update Isthmus",
            )
        self._check_size(connection)

    def _make_tables(self, connection: apsw.Connection) -> None:
        connection.pragma("page_size", PAGE_BYTES)
        connection.pragma("journal_mode", "wal")
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute(SCHEMA)
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", FORMAT)
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _check_size(self, connection: apsw.Connection) -> None:
        """Notice a file that was cut short before a page that is missing is read."""
        if self._log().exists() and self._log().stat().st_size:
            return  # what is missing may stand in the log
        expected = connection.pragma("page_count") * connection.pragma("page_size")
        if self.path.stat().st_size < expected:
            raise corrupt(self.path, f"{self.path.stat().st_size:,} bytes of {expected:,}")

    def _log(self) -> Path:
        return self.path.with_name(self.path.name + "-wal")


def _first_bytes(path: Path) -> bytes:
    if not path.exists():
        return b""
    with path.open("rb") as file:
        return file.read(len(MAGIC))
