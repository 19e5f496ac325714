"""What the errors of clients have in common: a chain, an HTTP status, a text that needs care."""

from __future__ import annotations

from collections.abc import Iterator

from isthmus.errors import (
    AccessDeniedError,
    InputError,
    IsthmusError,
    MissingCollectionError,
    ParameterError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreError,
    StoreFullError,
)
from isthmus.stores._asking import PAUSES

__all__ = [
    "BUSY_STATUSES",
    "by_status",
    "by_text",
    "chain",
    "gone",
    "is_lost",
    "not_an_alias",
    "not_understood",
    "refused",
    "shown",
    "status_of",
    "too_large",
]

BUSY_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})
"""HTTP answers after which the same request may succeed a moment later."""
LONGEST = 300

FULL = ("no space left", "disk is full", "disk full", "out of disk", "quota exceeded")
READ_ONLY = ("readonly database", "read-only", "read only")
DENIED = ("permission denied", "unable to open database file", "access is denied")
TOO_LARGE = ("payload too large", "larger than allowed")
LOST = ("Connect", "Network", "OperationalError", "Rpc", "Timeout", "Transport", "Unavailable")
"""Parts of the names of classes of errors in clients."""
LOCKED = ("database is locked", "wouldblock", "already accessed by another")


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that led to it.

    Examples
    --------
    >>> try:
    ...     raise KeyError("a") from OSError("b")
    ... except KeyError as error:
    ...     [type(one).__name__ for one in chain(error)]
    ['KeyError', 'OSError']
    """
    seen: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one not in seen:
        seen.append(one)
        yield one
        one = getattr(one, "source", None) or one.__cause__ or one.__context__


def is_lost(error: BaseException) -> bool:
    """Whether an error, or one behind it, is of a connection: none was made, or it broke.

    Examples
    --------
    >>> is_lost(TimeoutError()), is_lost(OverflowError())
    (True, False)
    """
    return any(
        isinstance(one, OSError) or any(sign in kind.__name__ for sign in LOST)
        for one in chain(error)
        for kind in type(one).__mro__
    )


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that an error or its cause carries, None where there is none."""
    for one in chain(error):
        for holder in (one, getattr(one, "response", None)):
            status = getattr(holder, "status_code", None)
            if isinstance(status, int):
                return status
    return None


def shown(error: BaseException, secret: str | None) -> str:
    """Return what an error says, in one short line, without the secret.

    Examples
    --------
    >>> shown(ValueError("no key s3cret here"), "s3cret")
    'no key *** here'
    """
    text = " ".join(str(error).split()) or type(error).__name__
    if secret:
        text = text.replace(secret, "***")
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def by_text(error: BaseException, *, where: str, secret: str | None) -> IsthmusError | None:
    """Name what the text of an error tells of a disk: full, read-only, closed, locked."""
    text = " ".join(str(one) for one in chain(error)).casefold()
    got = shown(error, secret)
    if any(words in text for words in FULL):
        return StoreFullError(
            expected=f"room to write to {where}",
            got=got,
            do="make room, then run the same command again",
        )
    if any(words in text for words in READ_ONLY):
        return ReadOnlyStoreError(
            expected=f"permission to write to {where}", got=got, do="change the permissions"
        )
    if any(words in text for words in DENIED):
        return AccessDeniedError(
            expected=f"permission to open {where}", got=got, do="change the permissions"
        )
    if any(words in text for words in LOCKED):
        return StoreBusyError(
            expected=f"{where} to be free", got=got, do="end the other process, or wait for it"
        )
    return None


def by_status(error: BaseException, *, where: str, secret: str | None) -> IsthmusError | None:
    """Name what the HTTP status of an error means, None where it means nothing of its own."""
    got, status = shown(error, secret), status_of(error)
    if status in (401, 403):
        return AccessDeniedError(
            expected=f"permission for {where}",
            got=f"{status}: {got}",
            do="set the key in the variable that &secret=NAME names, or ask for the rights",
        )
    if status == 404:
        return MissingCollectionError(
            expected=f"the collection of {where}",
            got=f"404: {got}",
            do="check the address and the name; another program may have removed it",
        )
    if too_large(error):
        return InputError(
            expected=f"a row that {where} takes in one request",
            got=got,
            do="keep long texts elsewhere, under the same id, or raise the limit of the server",
        )
    if status == 507:
        return StoreFullError(
            expected=f"room to write to {where}", got=got, do="make room, then go on"
        )
    if status in BUSY_STATUSES:
        return StoreBusyError(
            expected=f"{where} to take a request in one of {1 + len(PAUSES)} tries",
            got=f"{status}: {got}",
            do="try again later; the log of the server says more",
        )
    return None


def too_large(error: BaseException) -> bool:
    """Whether a server refuses a request for its size."""
    return status_of(error) == 413 or any(words in str(error).casefold() for words in TOO_LARGE)


def gone(name: str) -> MissingCollectionError:
    """Say that a collection that was opened is there no more.

    Examples
    --------
    >>> print(gone("docs"))
    expected the collection 'docs', which was opened; got none of that name any more. Do: find out \
who removed or renamed it.
    """
    return MissingCollectionError(
        expected=f"the collection {name!r}, which was opened",
        got="none of that name any more",
        do="find out who removed or renamed it",
    )


def not_an_alias(name: str) -> ParameterError:
    """Say that a name is that of a collection itself, which cannot move at one instant."""
    return ParameterError(
        expected="a name that is free or an alias",
        got=f"{name!r}, which is a collection",
        do="let applications use an alias; nothing else moves at one instant here",
    )


def refused(error: BaseException, *, where: str, secret: str | None) -> StoreError:
    """Say that a database refuses a request for good, in its own words."""
    return StoreError(
        expected=f"a request that {where} accepts",
        got=f"{type(error).__name__}: {shown(error, secret)}",
        do="see what it says; its version or its settings may not allow this",
    )


def not_understood(error: BaseException, *, where: str, secret: str | None) -> StoreError:
    """Say that an answer could not be read: the fault of a program, and no time mends it."""
    return StoreError(
        expected=f"an answer of {where} that can be read",
        got=f"{type(error).__name__}: {shown(error, secret)}",
        do="if what it says does not help, report it, with the version of the client",
    )
