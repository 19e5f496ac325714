from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import UnknownIdError, UnknownNameError, UnsupportedOperationError
from isthmus.spaces import Space, VectorSet
from isthmus.stores import MemoryStore
from isthmus.testing import Fault, FaultyStore

SPACE = Space(model="m", dim=2)
QUERY = np.array([[1, 0]], dtype=np.float32)


@pytest.fixture
def inner():
    store = MemoryStore(SPACE)
    store.upsert(VectorSet(["a", "b", "c"], [[1, 0], [1, 1], [0, 1]], SPACE))
    return store


def test_without_faults_it_is_the_inner_store(inner):
    store = FaultyStore(inner)
    found, expected = store.search(QUERY, k=2), inner.search(QUERY, k=2)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.scores, expected.scores)
    assert (store.space, store.url, store.count(), store.notes()) == (SPACE, inner.url, 3, {})
    assert store.capabilities is inner.capabilities
    assert store.fetch(["b"]).ids.tolist() == ["b"]
    assert store.fetch_metadata(["b"]) == [{}]
    assert [len(batch.vectors) for batch in store.scan()] == [3]
    store.upsert(VectorSet(["d"], [[2, 0]], SPACE))
    assert store.delete(["d"]) == 1
    assert store.gather(np.array([["a", "", "a"]])).rows.tolist() == [[0, -1, 0]]
    assert store.calls == {"search": 1, "gather": 1, "scan": 2, "upsert": 1}
    store.close()


def test_faults_of_writes_and_of_single_batches(inner):
    lost = Fault(kind="error", calls=[2], operation="scan")
    store = FaultyStore(inner, [lost, Fault(kind="error", operation="upsert")])
    batches = store.scan(batch_size=2)
    assert len(next(batches).vectors) == 2
    with pytest.raises(ConnectionError):
        next(batches)
    with pytest.raises(ConnectionError):
        store.upsert(VectorSet(["d"], [[2, 0]], SPACE))
    store.write_notes({"a": "1"})
    assert (store.count(), store.notes()) == (3, {"a": "1"})
    assert store.held(["b", "no"]).ids == ["b"]


def test_faults_happen_on_the_chosen_calls(inner):
    store = FaultyStore(inner, [Fault(kind="error", calls=[2])])
    store.search(QUERY, k=1)
    with pytest.raises(ConnectionError, match="the connection was lost"):
        store.search(QUERY, k=1)
    store.search(QUERY, k=1)


def test_delays_and_errors_happen_in_their_order(inner):
    slept = []
    plan = [
        Fault(kind="delay", seconds=5, operation="gather"),
        Fault(kind="error", error=TimeoutError("late"), operation="gather"),
        Fault(kind="delay", seconds=7, operation="gather"),
    ]
    store = FaultyStore(inner, plan, sleep=slept.append)
    store.search(QUERY, k=1)
    with pytest.raises(TimeoutError, match="late"):
        store.gather(np.array(["a"]))
    assert slept == [5]


def test_answers_are_altered_and_the_inner_store_is_not(inner):
    def ids(kind):
        return FaultyStore(inner, [Fault(kind=kind)]).search(QUERY, k=3)

    assert np.isnan(ids("nan").scores).tolist() == [[True, False, False]]
    assert ids("shape").ids.tolist() == [["b", "c"]]
    assert ids("short").ids.tolist() == [["a", "", ""]]
    assert np.isnan(ids("short").scores).tolist() == [[False, True, True]]
    assert ids("duplicate").ids.tolist() == [["a", "a", "c"]]
    assert inner.search(QUERY, k=3).ids.tolist() == [["a", "b", "c"]]


def test_a_hit_is_gone_until_the_next_search(inner):
    store = FaultyStore(inner, [Fault(kind="gone", calls=[1])])
    found = store.search(QUERY, k=3)
    for fetch in (store.gather, store.fetch):
        with pytest.raises(UnknownIdError, match="got a"):
            fetch(found.ids[0])
    assert store.fetch(["b"]).ids.tolist() == ["b"]
    store.search(QUERY, k=3)
    assert store.gather(found.ids).rows.shape == (1, 3)


def test_what_is_refused():
    with pytest.raises(UnknownNameError, match=r"a fault among .*; got 'slow'"):
        Fault(kind="slow")
    with pytest.raises(UnsupportedOperationError, match="a store to go wrong"):
        FaultyStore.open("faulty:///x?collection=docs")
