"""What errors of Weaviate, by REST and by gRPC, mean."""

from __future__ import annotations

import contextlib

from isthmus.errors import AccessDeniedError, IsthmusError, StoreFullError
from isthmus.stores._client_errors import BUSY_STATUSES, by_status, by_text, refused, status_of

__all__ = ["RejectedObjects", "in_our_words", "is_transient"]

BUSY = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "ABORTED")
LOST = ("ReadError", "WriteError")


class RejectedObjects(Exception):  # noqa: N818 - what a server answered, before it is said
    """Objects of a batch that the server did not take."""


def is_transient(error: Exception) -> bool:
    """Whether the same request may succeed a moment later."""
    if isinstance(error, RejectedObjects):
        return "deadline" in str(error) or "unavailable" in str(error)
    name = type(error).__name__
    return (
        _code(error) in BUSY
        or (status_of(error) in BUSY_STATUSES and "disk" not in str(error))
        or any(words in name for words in ("Connect", "Timeout", "RemoteProtocol"))
        or name in LOST
    )


def in_our_words(error: Exception, *, where: str, secret: str | None) -> IsthmusError | None:
    """Say what an error means, None where the server is only away."""
    code = _code(error)
    if code in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
        return AccessDeniedError(
            expected=f"permission for {where}",
            got=f"a server that refuses it ({code})",
            do="set the key in the variable that &secret=NAME names, or ask for the rights",
        )
    if is_transient(error):
        return None
    if "read-only" in str(error):
        return StoreFullError(
            expected=f"room to write to {where}",
            got="a server that became read-only, as it does when its disk is nearly full",
            do="make room; before Weaviate 1.36, set the shards to READY again",
        )
    known = by_status(error, where=where, secret=secret)
    known = known or by_text(error, where=where, secret=secret)
    return known or refused(error, where=where, secret=secret)


def _code(error: Exception) -> str | None:
    """Return the name of an error's gRPC code."""
    with contextlib.suppress(Exception):
        return str(error.code().name)  # type: ignore[attr-defined]
    return None
