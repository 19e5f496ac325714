from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from isthmus.errors import UnsupportedOperationError
from isthmus.federate import Federation, Source
from isthmus.federate.source import UnusableAnswerError
from isthmus.federate.unopened import UnopenedStore
from isthmus.spaces import Space, VectorSet
from isthmus.stores import registry

SPACE = Space(model="m", dim=2)
URL = "sqlite:///{}/later.db?collection=docs"


@pytest.fixture
def vectors():
    return VectorSet(["a", "b"], [[1, 0], [0, 1]], SPACE)


def test_it_is_opened_by_the_first_search_and_passes_everything_on(tmp_path, vectors):
    url = URL.format(tmp_path)
    store = UnopenedStore(url, SPACE)
    assert (store.url, store.space) == (url, SPACE)
    with pytest.raises(FileNotFoundError):
        store.search(np.eye(1, 2, dtype=np.float32), k=1)
    with registry.open_store(url, space=SPACE) as there:
        there.upsert(vectors)
    assert store.search(np.eye(1, 2, dtype=np.float32), k=1).ids.tolist() == [["a"]]
    assert store.count() == 2
    assert store.gather(np.array([["b"]])).rows.tolist() == [[0]]
    assert store.fetch(["b"]).ids.tolist() == ["b"]
    assert store.fetch_metadata(["b"]) == [{}]
    assert [len(batch.vectors) for batch in store.scan()] == [2]
    store.close()
    UnopenedStore(url, SPACE).close()


def test_another_space_is_refused_when_it_opens(tmp_path, vectors):
    url = URL.format(tmp_path)
    with registry.open_store(url, space=SPACE) as there:
        there.upsert(vectors)
    with pytest.raises(UnusableAnswerError, match="as its bridges say"):
        UnopenedStore(url, Space(model="other", dim=2)).count()


def test_it_does_not_write(tmp_path, vectors):
    store = UnopenedStore(URL.format(tmp_path), SPACE)
    for write in (lambda: store.upsert(vectors), lambda: store.delete(["a"])):
        with pytest.raises(UnsupportedOperationError, match="a store that is open"):
            write()
    with pytest.raises(UnsupportedOperationError):
        UnopenedStore.open("x")


def test_many_threads_open_one_store(tmp_path, vectors, monkeypatch):
    url = URL.format(tmp_path)
    with registry.open_store(url, space=SPACE) as there:
        there.upsert(vectors)
    reach, opened = registry.open_store, []

    def open_store(url):
        opened.append(reach(url))
        time.sleep(0.05)  # while the others come
        return opened[-1]

    monkeypatch.setattr(registry, "open_store", open_store)
    store, counts = UnopenedStore(url, SPACE), []
    threads = [threading.Thread(target=lambda: counts.append(store.count())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.close()
    assert (len(opened), counts) == (1, [2] * 8)


@pytest.mark.parametrize(("scheme", "timeout"), [("sqlite", None), ("other", 30.0)])
def test_it_is_timed_as_the_store_that_it_will_be(tmp_path, scheme, timeout):
    store = UnopenedStore(URL.format(tmp_path).replace("sqlite", scheme), SPACE)
    federation = Federation(SPACE, [Source("a", store)])
    assert federation._pool.patience[0].timeout == timeout


def test_a_store_that_comes_up_with_another_space_is_an_outage(tmp_path, vectors):
    url = URL.format(tmp_path)
    with registry.open_store(url, space=SPACE) as there:
        there.upsert(vectors)
    other = Space(model="other", dim=2)
    held = registry.open_store("memory://unopened?collection=d", space=other)
    held.upsert(VectorSet(["x"], [[1, 0]], other))
    sources = [Source("late", UnopenedStore(url, other)), Source("held", held)]
    ranking = Federation(other, sources).search(VectorSet(["q"], [[1, 0]], other))
    assert [(one.store, one.kind) for one in ranking.outages] == [("late", "garbage")]
    assert ranking.ids[0, 0] == "x"
