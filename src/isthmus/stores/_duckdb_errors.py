"""What the errors of DuckDB mean for the caller."""

from __future__ import annotations

import json
from collections.abc import Callable

from isthmus.errors import (
    CorruptStoreError,
    InputError,
    IsthmusError,
    MissingFileError,
    NotAStoreError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreVersionError,
)

__all__ = ["in_our_words"]


def in_our_words(error: Exception, path: str) -> IsthmusError:
    """Say what an error of DuckDB means for the caller."""
    text = " ".join(str(error).split())
    if isinstance(error, json.JSONDecodeError):
        return _corrupt(
            path, f"a record of Isthmus in the comment of the table that is none: {text}"
        )
    for signs, make in MEANINGS:
        if any(sign in text for sign in signs):
            return make(path, text[:200])
    return StoreError(
        expected=f"DuckDB to work on {path!r}",
        got=f"{type(error).__name__}: {text[:300]}",
        do="read what DuckDB says; the rows of the call were not written",
    )


def _busy(path: str, got: str) -> IsthmusError:
    other = "another process" if "lock" in got else "another writer of this process"
    return StoreBusyError(
        expected=f"access to {path!r}",
        got=f"{other} that holds it",
        do="close it there: one process at a time may have a DuckDB file open",
    )


def _other(path: str, got: str) -> IsthmusError:
    return StoreBusyError(
        expected=f"to open {path!r} as this process has it open already",
        got=got,
        do="close the other connection of this process first",
    )


def _not_a_store(path: str, got: str) -> IsthmusError:
    return NotAStoreError(
        expected=f"a database of DuckDB at {path!r}", got=got, do="check the path"
    )


def _missing(path: str, got: str) -> IsthmusError:
    return MissingFileError(
        expected=f"a file that can be opened at {path!r}", got=got, do="check the path"
    )


def _read_only(path: str, got: str) -> IsthmusError:
    return ReadOnlyStoreError(
        expected=f"a database that may be written at {path!r}",
        got=f"one that may not ({got})",
        do="change the permissions of the file and its folder, or copy it",
    )


def _full(path: str, got: str) -> IsthmusError:
    return StoreFullError(
        expected=f"room to write to {path!r}",
        got=f"a disk that is full or refuses ({got})",
        do="free space and repeat the call; nothing of it was kept",
    )


def _version(path: str, got: str) -> IsthmusError:
    return StoreVersionError(
        expected=f"a database that this DuckDB reads at {path!r}",
        got=got,
        do="pip install -U duckdb, or install the extension that the file needs",
    )


def _corrupt(path: str, got: str) -> IsthmusError:
    return CorruptStoreError(
        expected=f"a whole database of DuckDB at {path!r}",
        got=got,
        do="restore it from a copy",
    )


def _values(path: str, got: str) -> IsthmusError:
    return InputError(
        expected=f"ids and metadata as the table in {path!r} takes them",
        got=got,
        do="write values of the types of its columns",
    )


MEANINGS: tuple[tuple[tuple[str, ...], Callable[[str, str], IsthmusError]], ...] = (
    (("Could not set lock", "Conflicting lock", "write-write conflict", "Conflict on"), _busy),
    (("different configuration",), _other),
    (("not a valid DuckDB database", "Is a directory"), _not_a_store),
    (("newer version", "storage version", "version number", "Missing Extension"), _version),
    (("read-only mode", "Permission denied", "Read-only file system"), _read_only),
    (("Corrupt", "checksum", "Serialization Error", "Could not read"), _corrupt),
    (("No space left", "File too large", "Could not write", "quota", "Could not truncate"), _full),
    (("Cannot open file", "No such file", "Not a directory"), _missing),
    (("Conversion Error", "Constraint Error"), _values),
)
