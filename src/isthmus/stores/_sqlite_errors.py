"""What SQLite's errors mean for the caller."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from isthmus.errors import (
    CorruptStoreError,
    IsthmusError,
    MissingFileError,
    NotAStoreError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreError,
    StoreFullError,
)

__all__ = ["corrupt", "in_our_words", "not_a_store", "not_opened"]


def corrupt(path: Path, found: str) -> CorruptStoreError:
    return CorruptStoreError(
        expected="a whole store file",
        got=f"a damaged one at {str(path)!r} ({found})",
        do="restore it from a copy; with the sqlite3 command, .recover saves what can be read",
    )


def in_our_words(error: apsw.Error, path: Path, timeout: float) -> IsthmusError:
    """Say what an error of SQLite means for the caller."""
    where = str(path)
    missing = isinstance(error, apsw.SQLError) and str(error).startswith("no such")
    if missing or isinstance(error, apsw.CorruptError | apsw.FormatError):
        return corrupt(path, str(error))
    if isinstance(error, apsw.IOError) and not _while_writing(error):
        return corrupt(path, str(error))
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return StoreBusyError(
            expected=f"access to {where!r} within {timeout:g} s",
            got="another writer that holds it",
            do="wait for it to end, or open the store with a longer &timeout=SECONDS",
        )
    for kinds, make in _MEANINGS:
        if isinstance(error, kinds):
            return make(where, str(error))
    return StoreError(
        expected=f"SQLite to work on {where!r}",
        got=f"{type(error).__name__}: {error}",
        do="report it as a bug of Isthmus, with the call that led to it",
    )


def not_a_store(where: str, got: str) -> IsthmusError:
    return NotAStoreError(
        expected=f"a store of Isthmus at {where!r}",
        got=got,
        do="check the path, or restore the file from a copy; nothing was written",
    )


def _full(where: str, got: str) -> IsthmusError:
    return StoreFullError(
        expected=f"room to write to {where!r}",
        got=f"a disk that is full or refuses ({got})",
        do="free space and repeat the call; nothing of it was kept",
    )


def _read_only(where: str, got: str) -> IsthmusError:
    return ReadOnlyStoreError(
        expected=f"a store that may be written at {where!r}",
        got=f"a read-only file or folder ({got})",
        do="change its permissions, or copy it",
    )


def not_opened(where: str, got: str) -> IsthmusError:
    return MissingFileError(
        expected=f"a store file that can be opened at {where!r}",
        got=f"a refusal by the file system ({got})",
        do="check the path, and that this user may read the file and its folder",
    )


_MEANINGS: tuple[tuple[Any, Callable[[str, str], IsthmusError]], ...] = (
    (apsw.NotADBError, not_a_store),
    ((apsw.FullError, apsw.IOError), _full),
    (apsw.ReadOnlyError, _read_only),
    (apsw.CantOpenError, not_opened),
)


def _while_writing(error: apsw.Error) -> bool:
    return getattr(error, "extendedresult", 0) in {
        apsw.SQLITE_IOERR_WRITE,
        apsw.SQLITE_IOERR_FSYNC,
        apsw.SQLITE_IOERR_DIR_FSYNC,
        apsw.SQLITE_IOERR_TRUNCATE,
        apsw.SQLITE_IOERR_SHMSIZE,
        apsw.SQLITE_IOERR_SHMOPEN,
        apsw.SQLITE_IOERR_SHMMAP,
    }
