from __future__ import annotations

import sys

import numpy as np
import pytest

from isthmus.errors import MissingFileError, ParameterError
from isthmus.federate import Federation, Source
from isthmus.spaces import Space, VectorSet
from isthmus.stores.registry import open_store
from isthmus.workflows.search import search, search_notes

SPACE = Space(model="m", dim=2)


@pytest.fixture
def documents():
    return VectorSet(["a", "b", "c"], [[1, 0], [0, 1], [1, 1]], SPACE)


@pytest.fixture
def query():
    return VectorSet(["q"], [[1, 0]], SPACE)


def test_a_federation_is_searched(documents, query):
    with open_store("memory://m?collection=docs", space=SPACE) as store:
        store.upsert(documents)
        ranking = search(Federation(SPACE, [Source("only", store)]), query, k=2)
    assert ranking.ids.tolist() == [["a", "c"]]
    np.testing.assert_allclose(ranking.scores, [[1, 0.5**0.5]], rtol=1e-6)


def test_notes_say_what_is_merged_and_what_has_no_answer(documents, query):
    stores = [open_store(f"memory://twice{place}?collection=docs", space=SPACE) for place in "ab"]
    for store in stores:
        store.upsert(documents)
    sources = [Source(place, store) for place, store in zip("ab", stores, strict=True)]
    federation = Federation(SPACE, sources, dedup="id")
    notes = list(search_notes(federation, query, search(federation, query, k=3)))
    assert notes == ["3 copies of documents were merged into other hits"]
    for store in stores:
        store.delete(["a", "b", "c"])
    notes = list(search_notes(federation, query, search(federation, query, k=3)))
    assert notes == ["1 of 1 queries have no answer"]


def test_a_file_is_opened_searched_and_closed(documents, query, tmp_path):
    folder = tmp_path / "a b?#"
    folder.mkdir()
    with open_store(f"sqlite:///{folder_url(folder)}/d.db?collection=docs", space=SPACE) as store:
        store.upsert(documents)
    path = folder / "federation.toml"
    path.write_text(
        'hub = "one"\n[[stores]]\nname = "one"\nurl = "sqlite:///d.db?collection=docs"\n'
    )
    for given in (path, str(path)):
        assert search(given, query, k=3).ids.tolist() == [["a", "c", "b"]]
    with pytest.raises(ParameterError, match="k as a whole number"):
        search(path, query, k=0)
    with pytest.raises(MissingFileError, match="a federation's file"):
        search(tmp_path / "none.toml", query)


def folder_url(folder):
    from urllib.parse import quote

    return quote(str(folder))


def test_queries_come_from_a_file_and_in_batches(documents, tmp_path, monkeypatch):
    module = sys.modules["isthmus.workflows.search"]  # the name itself is the function
    monkeypatch.setattr(module, "QUERY_BLOCK", 2)
    asked = VectorSet([f"q{i}" for i in range(5)], np.eye(5, 2) + 0.5, SPACE)
    asked.save(tmp_path / "q.npz", dtype="float32")
    steps = []

    def watch(items, description, total):
        steps.append((description, total))
        yield from items

    with open_store("memory://n?collection=docs", space=SPACE) as store:
        store.upsert(documents)
        federation = Federation(SPACE, [Source("only", store)])
        ranking = search(federation, tmp_path / "q.npz", k=2, track=watch)
        whole = federation.search(asked, k=2)
    assert steps == [("searching", 3)]
    assert ranking.query_ids.tolist() == asked.ids.tolist()
    assert ranking.ids.tolist() == whole.ids.tolist()
    assert ranking.scores.tolist() == whole.scores.tolist()


def test_depth_is_how_many_candidates_each_store_gives(monkeypatch, documents, query):
    asked = []
    whole = Federation.search

    def watch(self, queries, *, k, depth, **more):
        asked.append((k, depth))
        return whole(self, queries, k=k, depth=depth, **more)

    monkeypatch.setattr(Federation, "search", watch)
    with open_store("memory://d?collection=docs", space=SPACE) as store:
        store.upsert(documents)
        federation = Federation(SPACE, [Source("only", store)])
        assert search(federation, query, k=1, depth=3).ids.tolist() == [["a"]]
        with pytest.raises(ParameterError, match="depth as a whole number of at least 1"):
            search(federation, query, depth=0)
    assert asked == [(1, 3), (10, 0)]
