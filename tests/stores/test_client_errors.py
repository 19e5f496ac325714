"""What the errors of clients have in common."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import (
    AccessDeniedError,
    InputError,
    MissingCollectionError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreError,
    StoreFullError,
)
from isthmus.stores._batches import write_in_parts
from isthmus.stores._client_errors import (
    by_status,
    by_text,
    chain,
    refused,
    shown,
    status_of,
)
from isthmus.stores._connected import Rows


class Answer(Exception):  # noqa: N818 - an answer
    def __init__(self, text, status):
        super().__init__(text)
        self.status_code = status


class Wrapped(Exception):  # noqa: N818 - as clients wrap what happened
    def __init__(self, source):
        super().__init__("wrapped")
        self.source = source


def raised_from(error, cause):
    try:
        raise error from cause
    except type(error) as caught:
        return caught


def test_a_status_is_found_wherever_it_hides():
    answer = Answer("no", 404)
    assert status_of(answer) == 404
    assert status_of(Wrapped(answer)) == 404
    assert status_of(raised_from(ValueError("x"), answer)) == 404
    error = ValueError("x")
    error.response = answer
    assert status_of(error) == 404
    assert status_of(ValueError("x")) is None


def test_a_chain_that_bites_its_tail_ends():
    one, two = ValueError("1"), ValueError("2")
    one.__cause__, two.__cause__ = two, one
    assert list(chain(one)) == [one, two]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, AccessDeniedError),
        (403, AccessDeniedError),
        (404, MissingCollectionError),
        (507, StoreFullError),
        (503, StoreBusyError),
        (429, StoreBusyError),
        (400, type(None)),
    ],
)
def test_statuses(status, kind):
    found = by_status(Answer("the key s3cret", status), where="here", secret="s3cret")  # noqa: S106
    assert type(found) is kind
    assert "s3cret" not in str(found)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("No space left on device", StoreFullError),
        ("attempt to write a readonly database", ReadOnlyStoreError),
        ("Read-only file system", ReadOnlyStoreError),
        ("Permission denied (os error 13)", AccessDeniedError),
        ("database is locked", StoreBusyError),
        ("anything", type(None)),
    ],
)
def test_texts(text, kind):
    assert type(by_text(Wrapped(OSError(text)), where="here", secret=None)) is kind


@pytest.mark.parametrize(
    "error", [Answer("no", 413), Exception("Payload too large (trace ID: 0)")], ids=str
)
def test_rows_are_written_in_halves_where_a_request_is_too_large(error):
    written: list[list[str]] = []

    def write(rows):
        if sum(map(len, rows.metadata)) > 100:
            raise error
        written.append(rows.ids)

    ids = list("abcdefg")
    vectors = np.zeros((7, 2), np.float32)
    write_in_parts(write, Rows(ids, vectors, ["x" * 30] * 7))
    assert written == [["a", "b", "c"], ["d", "e"], ["f", "g"]]
    with pytest.raises(type(error)):
        write_in_parts(write, Rows(ids, vectors, ["x" * 101] * 7))
    assert type(by_status(error, where="here", secret=None)) is InputError


def test_what_is_shown_is_short_and_has_no_secret():
    error = refused(ValueError("key s3cret\n" + "x" * 999), where="here", secret="s3cret")  # noqa: S106
    assert type(error) is StoreError
    assert error.got.startswith("ValueError: key *** xxx")
    assert len(error.got) < 330
    assert shown(ValueError(), None) == "ValueError"
