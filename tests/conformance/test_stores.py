"""Every registered store passes the public conformance suite: one row per store."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.places import PLACES

from isthmus.errors import UnsupportedOperationError
from isthmus.spaces import Space
from isthmus.stores import MemoryStore, Store, open_store, schemes, store_class
from isthmus.testing import store_suite


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


@pytest.mark.parametrize("check", store_suite.CHECKS, ids=store_suite.name)
@pytest.mark.parametrize("scheme", PLACES)
def test_store_conforms(scheme, check, new_url):
    del scheme
    check(lambda space: open_store(new_url(), space=space))


def test_every_registered_store_has_a_row():
    assert tuple(PLACES) == schemes()


@pytest.mark.parametrize("scheme", PLACES)
def test_the_class_knows_its_scheme(scheme):
    assert store_class(scheme).scheme == scheme


LOST = pytest.mark.xfail(
    raises=AssertionError, reason="a small-world graph loses rows behind a hundred equal ones"
)
HNSW_CHECKS = [
    pytest.param(check, marks=LOST) if "duplicates" in store_suite.name(check) else check
    for check in store_suite.CHECKS
]


@pytest.mark.parametrize("check", HNSW_CHECKS, ids=store_suite.name)
def test_sqlite_with_hnsw_conforms_as_an_approximate_store(check, folder):
    def make(space: Space) -> Store:
        store = open_store(PLACES["sqlite"].url(folder) + "&index=hnsw", space=space)
        assert not store.capabilities.exact_search
        return store

    check(make)


# --- the suite itself must be able to fail ---------------------------------------------------


class Poor(MemoryStore):
    """A store that declares that it can do less, and refuses the rest."""

    capabilities = MemoryStore.capabilities.__class__(
        **{
            **vars(MemoryStore.capabilities),
            "native_scores": {"cosine": "cosine"},
            "filters": False,
            "scan": True,
            "notes": None,
        }
    )

    def __init__(self, space: Space) -> None:
        if space.metric != "cosine":
            raise refused(f"the metric {space.metric}")
        super().__init__(space)

    def upsert(self, vectors, *, metadata=None, notes=None):
        if metadata is not None or notes is not None:
            raise refused("metadata and notes")
        super().upsert(vectors)

    def search(self, queries, *, k, where=None):
        if where is not None:
            raise refused("where")
        return super().search(queries, k=k)

    def fetch_metadata(self, ids):
        del ids
        raise refused("metadata")

    def notes(self):
        raise refused("notes")

    def write_notes(self, notes):
        del notes
        raise refused("notes")


def refused(what: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(expected=f"no {what}", got="it", do="use another store")


def test_a_store_that_declares_less_conforms_by_refusing():
    store_suite.run(Poor)


class Loses(MemoryStore):
    def search(self, queries, *, k, where=None):
        found = super().search(queries, k=k, where=where)
        found.ids[:, -1:] = ""
        return found


class Scores(MemoryStore):
    def search(self, queries, *, k, where=None):
        found = super().search(queries, k=k, where=where)
        found.scores[:] = found.scores**3
        return found


class Reverses(MemoryStore):
    def fetch(self, ids):
        return super().fetch(list(ids)[::-1])


class Rounds(MemoryStore):
    def fetch(self, ids):
        found = super().fetch(ids)
        return type(found)(found.ids, found.vectors.astype(np.float16).astype("f4"), found.space)


class Accepts(MemoryStore):
    def upsert(self, vectors, *, metadata=None, notes=None):
        same = type(vectors)(
            vectors.ids, np.resize(vectors.vectors, (len(vectors), 12)), self.space
        )
        super().upsert(same, metadata=metadata, notes=notes)


class Cuts(MemoryStore):
    def upsert(self, vectors, *, metadata=None, notes=None):
        ids = [text[-1_000:] for text in vectors.ids.tolist()]
        same = type(vectors)(ids, vectors.vectors, vectors.space)
        super().upsert(same, metadata=metadata, notes=notes)


class Pretends(Poor):
    capabilities = MemoryStore.capabilities


@pytest.mark.parametrize(
    ("kind", "failing", "message"),
    [
        (Loses, "holds_10001_rows", "NaN scores exactly where there is no row"),
        (Scores, "searches_by_dot_with_lengths_that_differ", "canonical scores: cosine, inner"),
        (Reverses, "fetches_in_the_order_asked_for", "rows in the order asked for"),
        (Rounds, "holds_10001_rows", "bit for bit, as declared"),
        (Accepts, "refuses_bad_rows", "SpaceMismatchError, not success"),
        (Cuts, "takes_ids_up_to_the_longest", "a scan of the 3 rows"),
        (Pretends, "filters_by_metadata", "metadata and notes"),
    ],
)
def test_the_suite_catches(kind, failing, message):
    (check,) = [check for check in store_suite.CHECKS if store_suite.name(check) == failing]
    with pytest.raises((AssertionError, UnsupportedOperationError), match=message):
        check(kind)


def test_a_run_reports_every_failure(monkeypatch):
    names = ("resumes_a_scan", "starts_empty", "fetches_in_the_order_asked_for")
    some = tuple(check for check in store_suite.CHECKS if store_suite.name(check) in names)
    monkeypatch.setattr(store_suite, "CHECKS", some)
    with pytest.raises(ExceptionGroup, match="1 of 3 checks failed") as caught:
        store_suite.run(Reverses)
    (error,) = caught.value.exceptions
    assert error.__notes__ == [
        (
            "in the check 'fetches_in_the_order_asked_for': "
            "Rows come in the order of the ids, and `gather` takes ids that repeat."
        )
    ]
