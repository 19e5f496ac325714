"""The record of one collection in a store file: its space, its change counter, its notes."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import apsw
import numpy as np

from isthmus._types import FloatArray
from isthmus.errors import (
    CorruptStoreError,
    InputError,
    MissingCollectionError,
    ParameterError,
)
from isthmus.spaces import Space
from isthmus.stores._checks import check_collection
from isthmus.stores._sqlite_errors import corrupt
from isthmus.stores._sqlite_file import SqliteFile
from isthmus.stores._sqlite_rows import RowTable

__all__ = ["Collection"]


@dataclass(frozen=True)
class Collection:
    """A collection that the file has.

    Parameters
    ----------
    number : int
    name : str
    token : str
        Random, 16 hexadecimal digits: tells it from a collection of the same number and name in
        another file.
    space : Space
    path : Path
        Of the file.
    """

    number: int
    name: str
    token: str
    space: Space
    path: Path

    @classmethod
    def find(cls, file: SqliteFile, name: str, space: Space | None) -> Collection:
        """Read the record; make it, and the table of the rows, when a space is given.

        Raises
        ------
        MissingCollectionError, SpaceMismatchError, CorruptStoreError
        """
        with file.reading() as connection:
            found = _look_up(connection, name)
            names = [str(row[0]) for row in connection.execute(NAMES)]
        if found is None and space is not None:
            with file.writing() as connection:
                found = _look_up(connection, name) or _create(connection, name, space, file.path)
        if found is None:
            raise _missing(file.path, name, names)
        number, token, text, fingerprint = found
        if not isinstance(token, str) or not re.fullmatch(MARK, token):
            raise corrupt(file.path, f"the token {token!r} of the collection {name!r}")
        recorded = _as_space(text, fingerprint, name, file.path)
        if space is not None:
            recorded.check(space, what=f"the collection {name!r} opened")
        return cls(number, name, token, recorded, file.path)

    @property
    def rows(self) -> RowTable:
        """The table of its rows."""
        return RowTable(self.number, self.space.dim, str(self.path))

    def change(self, connection: apsw.Connection) -> int:
        """Return the change counter, which every write moves.

        Raises
        ------
        MissingCollectionError
            When the collection is gone.
        """
        change = connection.execute(
            "SELECT change FROM isthmus_collections WHERE number = ? AND token = ?",
            (self.number, self.token),
        ).get
        if change is None:
            raise _missing(self.path, self.name, [])
        if not isinstance(change, int) or not 0 <= change < MAX_CHANGE:
            raise corrupt(self.path, f"the change counter {change!r}")
        return change

    def count_change(self, connection: apsw.Connection) -> None:
        """Move the change counter."""
        connection.execute(
            "UPDATE isthmus_collections SET change = ? WHERE number = ?",
            (self.change(connection) + 1, self.number),
        )

    def lengths(self, connection: apsw.Connection) -> tuple[float, float]:
        """Return the smallest and the largest length that a row ever had; (0, 0) before any."""
        found = connection.execute(
            "SELECT coalesce(shortest, 0), coalesce(longest, 0) FROM isthmus_collections"
            " WHERE number = ?",
            (self.number,),
        ).fetchone()
        if found is None or not all(isinstance(length, int | float) for length in found):
            raise corrupt(self.path, f"the lengths {found!r}")
        return cast("tuple[float, float]", found)

    def widen(self, connection: apsw.Connection, vectors: FloatArray) -> None:
        """Take rows that are written into the range of lengths."""
        lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64))
        connection.execute(
            """UPDATE isthmus_collections SET
              shortest = min(coalesce(shortest, ?1), ?1), longest = max(coalesce(longest, ?2), ?2)
            WHERE number = ?3""",
            (float(lengths.min()), float(lengths.max()), self.number),
        )

    def renamed(
        self, connection: apsw.Connection, name: str, former: str
    ) -> tuple[str, Collection]:
        """Take a name; return what had it is called now ("" where nothing had), and the record.

        Raises
        ------
        MissingCollectionError, ParameterError
        """
        check_collection(name)
        self.change(connection)  # refuses a collection that is gone
        holder = connection.execute(
            "SELECT number FROM isthmus_collections WHERE name = ?", (name,)
        ).get
        if holder == self.number:
            return "", replace(self, name=name)
        if holder is not None:
            self._move(connection, int(holder), check_collection(former))
        self._move(connection, self.number, name)
        return former if holder is not None else "", replace(self, name=name)

    def _move(self, connection: apsw.Connection, number: int, name: str) -> None:
        if _look_up(connection, name) is not None:
            raise ParameterError(
                expected=f"a free name in {str(self.path)!r}",
                got=f"{name!r}, which is a collection",
                do="choose another name",
            )
        connection.execute(
            "UPDATE isthmus_collections SET name = ? WHERE number = ?", (name, number)
        )

    def notes(self, connection: apsw.Connection) -> dict[str, str]:
        """Return the notes."""
        found = connection.execute(
            "SELECT key, value FROM isthmus_notes WHERE collection = ?", (self.number,)
        )
        return {str(key): str(value) for key, value in found}

    def write_notes(self, connection: apsw.Connection, notes: Mapping[str, str]) -> None:
        """Keep notes; the empty text removes one."""
        connection.executemany(
            "INSERT OR REPLACE INTO isthmus_notes (collection, key, value) VALUES (?, ?, ?)",
            ((self.number, key, value) for key, value in notes.items()),
        )
        connection.execute("DELETE FROM isthmus_notes WHERE value = ''")


MARK = "[0-9a-f]{16}"  # it becomes part of a file's name
MAX_CHANGE = 2**63 - 1  # the largest whole number of SQLite: there is none after it
NAMES = "SELECT name FROM isthmus_collections ORDER BY number LIMIT 10"


def _look_up(connection: apsw.Connection, name: str) -> tuple[int, str, str, str] | None:
    found = connection.execute(
        "SELECT number, token, space, fingerprint FROM isthmus_collections WHERE name = ?", (name,)
    ).fetchone()
    return cast("tuple[int, str, str, str] | None", found)


def _create(
    connection: apsw.Connection, name: str, space: Space, path: Path
) -> tuple[int, str, str, str]:
    token = secrets.token_hex(8)
    text = json.dumps(space.to_dict(), ensure_ascii=False, sort_keys=True)
    connection.execute(
        "INSERT INTO isthmus_collections (name, token, space, fingerprint) VALUES (?, ?, ?, ?)",
        (name, token, text, space.fingerprint),
    )
    number = connection.last_insert_rowid()
    RowTable(number, space.dim, str(path)).create(connection)
    return number, token, text, space.fingerprint


def _as_space(text: str, fingerprint: str, name: str, path: Path) -> Space:
    try:
        space = Space.from_json(text)
        if space.fingerprint == fingerprint:
            return space
    except (InputError, TypeError) as error:
        raise _changed_space(name, path) from error
    raise _changed_space(name, path)


def _changed_space(name: str, path: Path) -> CorruptStoreError:
    return CorruptStoreError(
        expected=f"the recorded space of the collection {name!r} to have the recorded fingerprint",
        got=f"a record in {str(path)!r} that was changed",
        do="restore the file from a copy",
    )


def _missing(path: Path, name: str, names: Sequence[str]) -> MissingCollectionError:
    known = f" among {', '.join(map(repr, names))}" if names else ""
    return MissingCollectionError(
        expected=f"a collection of {str(path)!r}{known}",
        got=repr(name),
        do="check ?collection=NAME, or pass a space to create it",
    )
