"""One PostgreSQL database: its connections, its transactions, and what its errors mean."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import psycopg

from isthmus.errors import (
    AccessDeniedError,
    InputError,
    IsthmusError,
    MissingCollectionError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreError,
    StoreFullError,
)
from isthmus.stores._asking import unreachable
from isthmus.stores._url import StoreUrl

__all__ = ["Connection", "Server", "read_only"]

Connection = psycopg.Connection[Any]

REFUSED = (
    "authentication failed",
    "no password supplied",
    "pg_hba.conf",
    "is not permitted to log",
)
BUSY = ("40001", "40P01", "53300", "55P03")
GONE = ("57P01", "57P02", "57P03")


class Server:
    """The database that a URL leads to.

    Connections are made when a thread needs one, and kept for the next. A pool of the client's own
    would try to connect in the background and hide why it cannot: a wrong password would look like
    a server that does not answer.

    Parameters
    ----------
    url : StoreUrl
    timeout : float
        Seconds that one statement may take.
    """

    def __init__(self, url: StoreUrl, timeout: float) -> None:
        self.where = f"postgresql at {url.place!r}"
        self.milliseconds = max(1, int(timeout * 1000))
        self.extension = ""
        """The schema of pgvector; empty before it is known."""
        self.version: tuple[int, ...] = ()
        """Of pgvector."""
        self._idle: list[Connection] = []
        self._secret = url.secret()
        host, port = url.address(5432)
        seconds = max(1, math.ceil(timeout))
        self._arguments: dict[str, Any] = {
            "host": host,
            "port": port,
            "user": url.user or None,
            "password": self._secret,
            "dbname": url.path or None,
            "sslmode": url.options.get("sslmode"),
            "connect_timeout": max(2, seconds),
            "application_name": "isthmus",
            "keepalives_idle": seconds,
            "keepalives_interval": seconds,
            "keepalives_count": 3,
            "tcp_user_timeout": self.milliseconds,
        }

    @contextlib.contextmanager
    def transaction(
        self, *statements: psycopg.sql.Composable, oid: int | None = None
    ) -> Iterator[Connection]:
        """Give a connection in a transaction that begins with statements; it commits at the end.

        Parameters
        ----------
        *statements : Composable
            Sent together with the begin, in one round trip.
        oid : int, optional
            What the last statement must give: the number of the table that was opened.

        Raises
        ------
        MissingCollectionError
            The name leads to another table now.
        """
        connection = self._take()
        try:
            start = psycopg.sql.SQL("; ").join([*self._start(), *statements])
            cursor = connection.execute(start)
            while cursor.nextset():
                pass
            if oid is not None and cursor.fetchone() != (oid,):
                raise _moved()  # noqa: TRY301 - rolled back here like any other
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(psycopg.Error):
                connection.rollback()
            raise
        finally:
            self._give(connection)

    def _start(self) -> list[psycopg.sql.Composable]:
        """Begin, with settings that end with the transaction: a pooler may share the session."""
        settings = ("BEGIN", "SET LOCAL timezone = 'UTC'", "SET LOCAL jit = off")
        timeout = f"SET LOCAL statement_timeout = {self.milliseconds}"
        statements: list[psycopg.sql.Composable] = [
            psycopg.sql.SQL(text) for text in (*settings, timeout)
        ]
        if self.extension:
            # Where pgvector lies elsewhere, its names are found behind those of the user.
            path = "SELECT set_config('search_path', concat_ws(', ', nullif(current_setting("
            path += "'search_path'), ''), {}), true)"
            name = psycopg.sql.Identifier(self.extension).as_string()
            statements.append(psycopg.sql.SQL(path).format(psycopg.sql.Literal(name)))
        return statements

    def close(self) -> None:
        """Close the connections that nobody uses."""
        while self._idle:
            self._idle.pop().close()

    def is_transient(self, error: Exception) -> bool:
        """Whether the same statement may succeed a moment later."""
        if not isinstance(error, psycopg.OperationalError):
            return False
        if error.sqlstate is None:  # lost, or never there
            return not _refused(error) and "does not exist" not in str(error)
        return error.sqlstate in (*BUSY, *GONE) or error.sqlstate.startswith("08")

    def in_our_words(self, error: Exception) -> IsthmusError:
        """Say what an error of the client means for the caller, without its secrets."""
        if not isinstance(error, psycopg.Error):
            return unreachable(error, where=self.where)
        if error.sqlstate is None:
            return self._not_connected(error)
        said = self._said(error)
        for states, answer in WORDS.items():
            if any(error.sqlstate.startswith(state) for state in states):
                kind, expected, do = answer
                return kind(expected=expected, got=said, do=do)
        if error.sqlstate in GONE or error.sqlstate.startswith("08"):
            return unreachable(error, where=self.where)
        return StoreError(
            expected=f"an answer of {self.where}", got=said, do="see what the server's log says"
        )

    def _not_connected(self, error: psycopg.Error) -> IsthmusError:
        if _refused(error):
            return AccessDeniedError(
                expected=f"{self.where} to let us in",
                got="it refuses the user or the password",
                do="check the user in the URL and the secret: &secret= names the environment "
                "variable that has it, ISTHMUS_POSTGRESQL_SECRET where it names none",
            )
        if "does not exist" in str(error):
            return MissingCollectionError(
                expected=f"the database {self._arguments['dbname']!r} at {self.where}",
                got="none of that name",
                do="check the name between the address and the question mark",
            )
        if isinstance(error, psycopg.DataError):
            return InputError(
                expected="text that PostgreSQL can hold", got="a NUL character", do="take it out"
            )
        return unreachable(error, where=self.where)

    def _said(self, error: psycopg.Error) -> str:
        said = error.diag.message_primary or type(error).__name__
        return said.replace(self._secret, "***") if self._secret else said

    def _take(self) -> Connection:
        try:
            return self._idle.pop()
        except IndexError:
            # Without prepared statements it works behind a pooler that shares sessions, too. The
            # raw cursor counts its parameters ($1), so that names may hold a percent sign.
            return psycopg.connect(
                **self._arguments,
                autocommit=True,
                prepare_threshold=None,
                cursor_factory=psycopg.RawCursor,
            )

    def _give(self, connection: Connection) -> None:
        if connection.closed:
            self.close()  # the others of its time are gone, too
        elif connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            connection.close()
        else:
            self._idle.append(connection)


def read_only(error: psycopg.Error, what: str) -> ReadOnlyStoreError:
    """Say that the role may not do something."""
    return ReadOnlyStoreError(
        expected=f"the right to {what}",
        got=error.diag.message_primary or type(error).__name__,
        do="ask the owner of the table for the right, or open it as a role that has it",
    )


def _moved() -> MissingCollectionError:
    return MissingCollectionError(
        expected="the table that was opened",
        got="another one that has its name now",
        do="open it again",
    )


def _refused(error: psycopg.Error) -> bool:
    return any(words in str(error) for words in REFUSED)


WORDS: dict[tuple[str, ...], tuple[type[IsthmusError], str, str]] = {
    ("53100", "53200"): (StoreFullError, "room on the server", "make room, then run it again"),
    ("42501",): (
        AccessDeniedError,
        "the right to read the collection",
        "ask the owner of the table: GRANT SELECT",
    ),
    ("25006",): (
        ReadOnlyStoreError,
        "a server that can be written to",
        "open the primary server, or a role that may write",
    ),
    ("42P01", "3F000"): (
        MissingCollectionError,
        "the table that was opened",
        "find out who removed or renamed it",
    ),
    ("57014",): (
        StoreBusyError,
        "an answer within the time that one statement may take",
        "raise &timeout=SECONDS, make an index, or ask for less",
    ),
    ("40001", "40P01", "53300", "55P03"): (
        StoreBusyError,
        "a server with room for one more request",
        "run it again when fewer write",
    ),
    ("22", "23", "42804"): (
        InputError,
        "values that the columns of the table can hold",
        "change the values, or the columns",
    ),
}
"""What an SQLSTATE, or a class of them, means."""
