"""What Chroma's errors mean."""

from __future__ import annotations

from isthmus.errors import AccessDeniedError, IsthmusError, MissingCollectionError
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

MISSING = ("NotFoundError",)
DENIED = ("AuthorizationError", "ChromaAuthError")
BUSY = ("RateLimitError",)
LOST = ("TransportError", "TimeoutException", "ConnectError")  # of httpx, and what inherits them


def is_transient(error: Exception) -> bool:
    """Whether the same request may succeed a moment later."""
    names = {kind.__name__ for one in chain(error) for kind in type(one).__mro__}
    if names.intersection(LOST) or names.intersection(BUSY):
        return True
    text = str(error)
    if "Could not connect to a Chroma server" in text or "database is locked" in text:
        return True
    return status_of(error) in BUSY_STATUSES and not _named(error)


def in_our_words(error: Exception, *, url: str, secret: str | None) -> IsthmusError | None:
    """Return what an error means for the caller; None: the server did not answer."""
    names = {type(one).__name__ for one in chain(error)}
    got = shown(error, secret)
    if names.intersection(DENIED):
        return AccessDeniedError(
            expected=f"permission for {url}",
            got=got,
            do="set the token in the variable that &secret=NAME names",
        )
    if names.intersection(MISSING) or "Are you sure it exists" in got:
        return MissingCollectionError(
            expected=f"the collection, tenant and database of {url}",
            got=got,
            do="check the names; another program may have removed it",
        )
    known = by_text(error, where=url, secret=secret) or by_status(error, where=url, secret=secret)
    if known is not None:
        return known
    return None if is_transient(error) else refused(error, where=url, secret=secret)


def _named(error: Exception) -> bool:
    """Whether Chroma said what is wrong with the request, so that trying again is no use."""
    return type(error).__name__ in ("InvalidArgumentError", "InvalidDimensionException")
