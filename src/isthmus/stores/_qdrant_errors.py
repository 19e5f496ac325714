"""What the errors of Qdrant's engine and of its client mean."""

from __future__ import annotations

from isthmus.errors import IsthmusError, UnsupportedOperationError
from isthmus.stores._client_errors import (
    BUSY_STATUSES,
    by_status,
    by_text,
    chain,
    refused,
    shown,
    status_of,
)

__all__ = ["in_our_words", "is_transient"]

LOST = frozenset({"TransportError", "ResourceExhaustedResponse"})
LOCKED = "WouldBlock"  # another process has the folder, or has just let go of it


def is_transient(error: Exception) -> bool:
    """Whether the same request may succeed a moment later."""
    names = {kind.__name__ for one in chain(error) for kind in type(one).__mro__}
    return not names.isdisjoint(LOST) or status_of(error) in BUSY_STATUSES or LOCKED in str(error)


def in_our_words(error: Exception, *, url: str, secret: str | None) -> IsthmusError | None:
    """Return what an error means for the caller; None: the server did not answer."""
    known = by_text(error, where=url, secret=secret) or by_status(error, where=url, secret=secret)
    if known is not None:
        return known
    if is_transient(error):
        return None
    if status_of(error) == 405:
        return UnsupportedOperationError(
            expected=f"a server that can do this for {url}",
            got=shown(error, secret),
            do="use a newer Qdrant server",
        )
    return refused(error, where=url, secret=secret)
