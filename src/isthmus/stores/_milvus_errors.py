"""What errors of Milvus, its client and Milvus Lite mean."""

from __future__ import annotations

import contextlib

from isthmus.errors import AccessDeniedError, InputError, IsthmusError, StoreFullError
from isthmus.stores._client_errors import shown

__all__ = ["NOT_LOADED", "in_our_words", "is_away"]

NOT_LOADED = (101, 102, 103, 106, 500, 501, 502, 503)
"""Codes of a collection, or of parts of it, that are not in memory yet."""
NOT_READY = (1, 2, 4, 8)
"""Codes of a server that starts, ends, or has too much to do."""
STARTING = (
    "rpc error",
    "attempt #",
    "unrecoverable error",
    "node not",
    "not ready",
    "no available",
)
NOT_ALLOWED = ("auth check", "permission deny", "unauthenticated")


def is_away(error: Exception, *, lite: bool) -> bool:
    """Whether the server is away, starts, ends, or has too much to do."""
    code = _code(error)
    if code in ("UNAVAILABLE", "DEADLINE_EXCEEDED", "ABORTED"):
        return True
    if any(words in str(error) for words in STARTING):
        return True
    return not lite and code in (*NOT_READY, *NOT_LOADED)


def in_our_words(
    error: Exception, *, url: str, name: str, secret: str | None
) -> IsthmusError | None:
    """Say what an error means, None where it is none that is known here."""
    code, text = _code(error), str(error).lower()
    if code in ("UNAUTHENTICATED", "PERMISSION_DENIED", 1400, 1401) or any(
        words in text for words in NOT_ALLOWED
    ):
        return AccessDeniedError(
            expected=f"access to {url}",
            got="a server that refuses it",
            do="give the user in the URL and the password in the environment: &secret=NAME",
        )
    if code == 9 or "no space left" in text or "quota" in text:
        return StoreFullError(
            expected="room for more rows", got="a full disk or quota", do="make room"
        )
    if code in (1100, 1101) or type(error).__name__ in ("DataNotMatchException", "ParamError"):
        return InputError(
            expected=f"what the fields of {name!r} can hold",
            got=shown(error, secret),
            do="change the rows, or write into a collection of your own",
        )
    return None


def _code(error: Exception) -> str | int | None:
    """Return the code of an error: a name of gRPC, or a number of Milvus."""
    code = getattr(error, "code", None)
    with contextlib.suppress(TypeError):
        code = code() if callable(code) else code
    name = getattr(code, "name", None)
    return name if isinstance(name, str) and name.isupper() and not isinstance(code, int) else code
