"""What the errors of LanceDB mean for the caller."""

from __future__ import annotations

import json

from isthmus.errors import (
    CorruptStoreError,
    InputError,
    IsthmusError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreError,
    StoreFullError,
)

__all__ = ["CONFLICT", "in_our_words"]

CONFLICT = ("Commit conflict", "conflict", "TooMuchWriteContention")
FULL = ("No space left", "File too large", "Disk quota")
FORBIDDEN = ("Permission denied", "Read-only file system", "Operation not permitted")
REFUSED = ("cannot cast field", "Append with different schema", "non-nullable")


def in_our_words(error: BaseException, where: str) -> IsthmusError:
    """Say what an error of LanceDB means for the caller."""
    text = " ".join(str(error).split())
    got = f"{type(error).__name__}: {text[:300]}"
    if any(sign in text for sign in FULL):
        return StoreFullError(
            expected=f"room to write to {where}",
            got=f"a disk that is full or refuses ({text[:160]})",
            do="free space and repeat the call; nothing of it was kept",
        )
    if any(sign in text for sign in FORBIDDEN):
        return ReadOnlyStoreError(
            expected=f"a folder that may be written at {where}",
            got=f"one that may not ({text[:160]})",
            do="change the permissions of the folder and of all in it, or copy it",
        )
    if any(sign in text for sign in CONFLICT):
        return StoreBusyError(
            expected=f"to write to {where} between the writes of others",
            got=got,
            do="repeat the call when they are done",
        )
    if any(sign in text for sign in REFUSED):
        return InputError(
            expected=f"rows as the table in {where} takes them",
            got=got,
            do="give values for the columns that have to have one",
        )
    broken = isinstance(error, UnicodeError | json.JSONDecodeError)  # a record of ours
    if broken or any(sign in text for sign in ("lance error", "LanceError", "Not found", "Arrow")):
        return CorruptStoreError(
            expected=f"whole files of LanceDB in {where}",
            got=got,
            do="restore the folder from a copy, or check out an earlier version of the table",
        )
    return StoreError(
        expected=f"LanceDB to work on {where}",
        got=got,
        do="read what LanceDB says; the rows of the call were not written",
    )
