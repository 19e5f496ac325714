"""What errors of Redis mean for the caller."""

from __future__ import annotations

from isthmus.errors import (
    AccessDeniedError,
    InputError,
    IsthmusError,
    MissingCollectionError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreFullError,
    UnsupportedOperationError,
)

__all__ = ["WORDS"]

WORDS: tuple[tuple[tuple[str, ...], type[IsthmusError], str, str], ...] = (
    (
        ("AuthenticationError", "NOAUTH", "WRONGPASS", "invalid username-password"),
        AccessDeniedError,
        "a server that lets us in",
        (
            "check the user in the URL and the secret: &secret= names the environment variable "
            "that has it, ISTHMUS_REDIS_SECRET where it names none"
        ),
    ),
    (
        ("NoPermissionError", "NOPERM", "no permissions"),
        AccessDeniedError,
        "the right to use the collection",
        "ask for the right: ACL SETUSER",
    ),
    (
        ("ReadOnlyError", "READONLY"),
        ReadOnlyStoreError,
        "a server that can be written to",
        "open the primary server",
    ),
    (
        ("OutOfMemoryError", "OOM command", "MISCONF", "No space left"),
        StoreFullError,
        "room in the server's memory and on its disk",
        "make room, then run it again",
    ),
    (
        ("BusyLoadingError", "LOADING"),
        StoreBusyError,
        "a server that has read its data",
        "wait until it has",
    ),
    (
        ("no such index", "Unknown index name", "Unknown Index name", "No such index"),
        MissingCollectionError,
        "the index that was opened",
        "find out who dropped it",
    ),
    (
        ("unknown command",),
        UnsupportedOperationError,
        "a server with the search module",
        "use Redis 8, Redis Stack, or Valkey with a search module",
    ),
    (
        ("WRONGTYPE",),
        InputError,
        "a hash, or nothing, under the key of every id",
        "choose another prefix or other ids",
    ),
)
"""Words of a message or the name of its class; the error; what was expected; what to do."""
