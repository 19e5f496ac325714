"""What Elasticsearch and OpenSearch answer when they refuse, and what it means."""

from __future__ import annotations

from typing import Any

from isthmus.errors import (
    InputError,
    IsthmusError,
    ReadOnlyStoreError,
    StoreFullError,
    UnsupportedOperationError,
)
from isthmus.stores._client_errors import BUSY_STATUSES, by_status, refused, shown

__all__ = ["Refused", "in_our_words", "is_busy"]

BLOCKED = "cluster_block_exception"


class Refused(Exception):  # noqa: N818 - what a database answered, before it is said in our words
    """An answer that is not a success.

    Parameters
    ----------
    status : int
        Of HTTP.
    kind : str
        What the database calls the error.
    reason : str
    """

    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(f"{kind}: {reason}")
        self.status_code, self.kind, self.reason = status, kind, reason

    @classmethod
    def of(cls, status: int, body: Any) -> Refused:
        """Read the JSON of an answer."""
        error = body.get("error", {}) if isinstance(body, dict) else {}
        if not isinstance(error, dict):
            return cls(status, "", str(error))
        return cls(status, str(error.get("type", "")), str(error.get("reason", "")))


def is_busy(error: Exception) -> bool:
    """Whether it is an answer that may be another one in a moment."""
    return (
        isinstance(error, Refused) and error.status_code in BUSY_STATUSES and error.kind != BLOCKED
    )


def in_our_words(error: Refused, *, name: str, where: str, secret: str | None) -> IsthmusError:
    """Say what an answer about the index of a name means."""
    if error.kind == BLOCKED:
        return _blocked(error, where)
    if "Fielddata access on the _id" in error.reason or "_id field" in error.reason:
        return UnsupportedOperationError(
            expected="an index whose rows have an order",
            got="a server that does not sort by _id",
            do="name a field of the index that is unique and a keyword or a number: &sort=NAME",
        )
    if error.kind in ("mapper_parsing_exception", "document_parsing_exception"):
        return InputError(
            expected=f"what the fields of {name!r} can hold",
            got=shown(error, secret),
            do="change the rows, or write into a collection of your own",
        )
    known = by_status(error, where=where, secret=secret)
    return known or refused(error, where=where, secret=secret)


def _blocked(error: Refused, where: str) -> IsthmusError:
    """Say why nothing can be written into the index."""
    if "flood" in error.reason or "disk" in error.reason:
        return StoreFullError(
            expected=f"room to write to {where}",
            got="a disk over its flood-stage watermark",
            do="make room on the disk of the server, then go on",
        )
    return ReadOnlyStoreError(
        expected=f"an index of {where} that may be written",
        got="one that is blocked for writing",
        do="remove the block of the index (index.blocks)",
    )
