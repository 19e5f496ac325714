"""The SQLite store in one process: collections, notes, transactions, ways of searching."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import (
    MissingCollectionError,
    MissingFileError,
    ParameterError,
    SpaceMismatchError,
    StoreError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.stores import MemoryStore, open_store
from isthmus.stores.sqlite import SqliteStore

SPACE = Space(model="m", dim=16)
QUERIES = np.random.default_rng(9).standard_normal((50, 16)).astype(np.float32)


def same(found, expected):
    assert found.ids.tolist() == expected.ids.tolist()
    assert np.array_equal(found.scores, expected.scores, equal_nan=True)


# --- collections ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["docs", "DOCS", "'; DROP TABLE isthmus_collections; --", "a b&c=d?e#f%", "日本", '"', " "],
)
def test_a_collection_may_have_any_name(tmp_path, rows, name):
    from isthmus.stores._url import StoreUrl

    address = str(StoreUrl("sqlite", "", f"{tmp_path}/one.db", name))
    with open_store(address.replace(address.split("=")[1], "other"), space=SPACE) as other:
        other.upsert(rows(3))
        with open_store(address, space=SPACE) as store:
            store.upsert(rows(2))
            assert (store.count(), other.count()) == (2, 3)
            assert store.url == address
    with open_store(address) as again:
        assert again.count() == 2


def test_collections_of_one_file_do_not_mix(tmp_path, rows):
    base = f"sqlite:///{tmp_path}/one.db?collection="
    wide = Space(model="m", dim=16, metric="l2")
    with open_store(base + "a", space=SPACE) as a, open_store(base + "b", space=wide) as b:
        a.upsert(rows(10), notes={"k": "a"})
        b.upsert(rows(20, seed=1, space=wide), notes={"k": "b"})
        assert (a.notes(), b.notes()) == ({"k": "a"}, {"k": "b"})
        assert (a.delete(["row-1"]), a.count(), b.count()) == (1, 9, 20)
        assert (a.space.metric, b.space.metric) == ("cosine", "l2")
    with pytest.raises(MissingCollectionError, match=r"one.db' among 'a', 'b'; got 'c'\. Do"):
        open_store(base + "c")
    with pytest.raises(SpaceMismatchError, match="the collection 'a' opened with metric 'cosine'"):
        open_store(base + "a", space=wide)


def test_everything_about_the_space_is_recorded(url):
    space = Space(
        model="é/m", dim=3, revision="r1", normalized=True, preprocessing="lower", prompt="p: "
    )
    open_store(url, space=space).close()
    with open_store(url) as store:
        assert store.space.to_dict() == space.to_dict()


def test_a_relative_path_is_remembered_as_an_absolute_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open_store("sqlite:///sub dir.db?collection=c", space=SPACE) as store:
        assert store.url == f"sqlite:///{tmp_path}/sub%20dir.db?collection=c"
    assert Path("sub dir.db").exists()


def test_opening_without_a_space_makes_nothing(tmp_path):
    with pytest.raises(MissingFileError, match="expected a store file; got nothing at"):
        open_store(f"sqlite:///{tmp_path}/none.db?collection=c")
    with pytest.raises(MissingFileError, match="expected a folder for the new file"):
        open_store(f"sqlite:///{tmp_path}/none/none.db?collection=c", space=SPACE)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_space_makes_no_collection(url, rows):
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(1))
        with pytest.raises(SpaceMismatchError):
            open_store(url, space=Space(model="n", dim=16))
        assert store.count() == 1


@pytest.mark.parametrize("seconds", ["-1", "x", "nan", "1e9"])
def test_a_timeout_is_in_seconds(url, seconds):
    with pytest.raises(ParameterError, match=f"seconds from 0 to 86400; got '{seconds}'"):
        open_store(f"{url}&timeout={seconds}", space=SPACE)


def test_an_unknown_index_names_the_nearest(url):
    with pytest.raises(ParameterError, match="index as exact or hnsw; got 'hnws'"):
        open_store(f"{url}&index=hnws", space=SPACE)


def test_a_closed_store_says_so(url, rows):
    store = open_store(url, space=SPACE)
    store.close()
    for call in (store.count, lambda: store.upsert(rows(1)), lambda: store.search(QUERIES, k=1)):
        with pytest.raises(StoreError, match=r"that was closed\. Do: open it again"):
            call()


def test_the_info_is_plain(url, rows):
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(3))
        info = store.info()
        assert (info["count"], info["fingerprint"]) == (3, SPACE.fingerprint)
        assert info["index"] == {
            "kind": "flat", "in_memory": False, "file": None, "not_kept": None
        }  # fmt: skip


# --- ways of searching ----------------------------------------------------------------------------


@pytest.fixture(params=["cosine", "dot", "l2"])
def both(request, tmp_path, rows):
    """A store and the reference with 3,000 rows, among them 100 equal ones."""
    space = Space(model="m", dim=16, metric=request.param)
    plain = rows(3_000, space=space)
    values = plain.vectors * np.random.default_rng(1).uniform(0.5, 2, (3_000, 1)).astype("f4")
    values[500:600] = values[3]
    vectors = VectorSet(plain.ids, values, space)
    metadata = [{"year": row % 10} for row in range(3_000)]
    reference = MemoryStore(space)
    reference.upsert(vectors, metadata=metadata)
    with open_store(f"sqlite:///{tmp_path}/one.db?collection=docs", space=space) as store:
        store.upsert(vectors, metadata=metadata)
        yield store, reference


@pytest.mark.parametrize("where", [None, {"year": 3}])
def test_every_way_gives_the_same_bits(both, where):
    store, reference = both
    asked = np.concatenate([reference.fetch(["row-3"]).vectors, QUERIES[:3]])
    for k in (1, 10, 150):
        expected = reference.search(asked, k=k, where=where)
        store._searcher.forget()
        store._searcher._scanned = (0, 0)
        same(store.search(asked, k=k, where=where), expected)  # scanned, where there is a function
        store._searcher._scanned = (0, 0)
        many = store.search(np.concatenate([asked, QUERIES]), k=k, where=where)  # in memory, blocks
        assert many.ids[:4].tolist() == expected.ids.tolist()
        assert np.array_equal(many.scores[:4], expected.scores, equal_nan=True)
        store.search(QUERIES, k=1)
        same(store.search(asked, k=k, where=where), expected)  # now certainly in memory


def test_a_few_queries_keep_nothing_in_memory_and_many_do(url, rows):
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(200))
        for _ in range(8):
            store.search(QUERIES[:1], k=2)
        assert not store.info()["index"]["in_memory"]
        store.search(QUERIES[:1], k=2)
        assert store.info()["index"]["in_memory"]
        store.upsert(rows(1, "new"))
        store.search(QUERIES[:1], k=2)  # a change: what is in memory is stale, so the file is read
        assert store._searcher._scanned[1] == 1


@pytest.mark.parametrize("scale", [1e-25, 3e-23, 3e-22, 1e-12, 1e12, 1e18])
@pytest.mark.parametrize("metric", ["cosine", "l2"])
def test_lengths_that_float32_squares_cannot_hold(url, metric, scale):
    space = Space(model="m", dim=16, metric=metric)
    values = np.random.default_rng(0).standard_normal((300, 16)).astype(np.float32)
    values[:100] *= np.float32(scale)
    vectors = VectorSet([str(row) for row in range(300)], values, space)
    reference = MemoryStore(space)
    reference.upsert(vectors)
    with open_store(url, space=space) as store:
        store.upsert(vectors)
        for asked in (QUERIES[:1], QUERIES[:1] * np.float32(scale), QUERIES):
            for k in (5, 120):
                same(store.search(asked, k=k), reference.search(asked, k=k))


@pytest.mark.parametrize("metric", ["cosine", "l2"])
def test_rows_closer_together_than_float32_distances_can_tell(url, metric):
    """Scores differ by less than the error of what finds the candidates."""
    space = Space(model="m", dim=384, metric=metric)
    generator = np.random.default_rng(3)
    query = generator.standard_normal((1, 384)).astype(np.float32)
    steps = generator.standard_normal((400, 384))
    steps /= np.linalg.norm(steps, axis=1, keepdims=True)
    values = (query + (1e-3 if metric == "cosine" else 5.0) * steps).astype(np.float32)
    vectors = VectorSet([str(row) for row in generator.permutation(400)], values, space)
    reference = MemoryStore(space)
    reference.upsert(vectors)
    with open_store(url, space=space) as store:
        store.upsert(vectors)
        for k in (1, 10):
            same(store.search(query, k=k), reference.search(query, k=k))
        assert not store.info()["index"]["in_memory"]


@settings(derandomize=True, deadline=None, max_examples=25)
@given(
    metric=st.sampled_from(["cosine", "l2", "dot"]),
    size=st.tuples(st.integers(1, 3), st.integers(1, 60)),
    k=st.integers(1, 70),
    seed=st.integers(0, 1000),
)
def test_ties_and_near_ties_are_ranked_alike(tmp_path_factory, metric, size, k, seed):
    """Rows on a coarse grid: many equal scores, and many that differ in the last bit."""
    space = Space(model="m", dim=3, metric=metric)
    generator = np.random.default_rng(seed)
    grid, n = size
    values = generator.integers(1, grid + 2, (n, 3)).astype(np.float32) / 3
    vectors = VectorSet([str(row) for row in generator.permutation(n)], values, space)
    reference = MemoryStore(space)
    reference.upsert(vectors)
    address = f"sqlite:///{tmp_path_factory.mktemp('ties')}/one.db?collection=docs"
    with open_store(address, space=space) as store:
        store.upsert(vectors)
        for asked in (values[:1], values[: min(n, 3)], np.resize(values, (30, 3))):
            same(store.search(asked, k=k), reference.search(asked, k=k))


def test_hnsw_is_asked_for_by_argument_too(url, rows):
    with SqliteStore.open(url, space=SPACE, index="hnsw") as store:
        store.upsert(rows(500))
        assert store.url.endswith("&index=hnsw")
        with SqliteStore.open(store.url, index="flat") as flat:
            assert (flat.url, flat.capabilities.exact_search) == (url, True)
        found = store.search(rows(500).vectors[:100], k=1)
        assert (found.ids[:, 0] == rows(500).ids[:100]).mean() > 0.95
        # A filter is answered exactly: a graph cannot promise enough of what it may return.
        assert store.search(QUERIES, k=1, where={"a": 1}).ids.tolist() == [[""]] * 50


# --- transactions ---------------------------------------------------------------------------------


def test_notes_survive_with_their_batch(url, rows):
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(5), notes={"cursor": "5"})
        store.upsert(rows(5, "more"), notes={"cursor": "10"})
    with open_store(url) as store:
        assert (store.count(), store.notes()) == (10, {"cursor": "10"})


def test_two_handles_of_one_process_see_each_other(url, rows):
    with open_store(url, space=SPACE) as one, open_store(url, space=SPACE) as other:
        one.upsert(rows(100))
        assert other.search(QUERIES, k=3).ids[0, 0].startswith("row-")
        one.upsert(VectorSet(["best"], QUERIES[:1], SPACE))
        assert other.search(QUERIES, k=3).ids[0, 0] == "best"
        assert other.gather(np.array(["best", "best"])).rows.tolist() == [0, 0]
        assert other.fetch(["best"]).vectors.tolist() == QUERIES[:1].tolist()
        other.delete(["best"])
        assert one.search(QUERIES, k=3).ids[0, 0] != "best"


def test_a_scan_and_writes_may_be_mixed(url, rows):
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(25))
        seen = []
        for batch in store.scan(batch_size=10):
            seen += batch.vectors.ids.tolist()
            store.delete([f"row-{len(seen) // 10}"])
            if len(seen) == 10:
                store.upsert(rows(3, "late"))
        assert seen == [f"row-{row}" for row in range(25)] + [f"late-{row}" for row in range(3)]


def test_a_number_is_never_used_twice(url, rows):
    """A cursor behind the last row sees a row that is written after the last one was removed."""
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(5))
        (batch,) = store.scan()
        store.delete(["row-4", "row-3"])
        store.upsert(rows(1, "late"))
        later = [late.vectors.ids.tolist() for late in store.scan(cursor=batch.cursor)]
        assert later == [["late-0"]]


def test_threads_may_share_a_handle(url, rows):
    with open_store(url, space=SPACE) as store, ThreadPoolExecutor(8) as pool:
        store.upsert(rows(400))

        def work(turn):
            store.upsert(rows(5, f"t{turn}", seed=turn))
            found = store.search(QUERIES[: 1 + turn % 30], k=2)
            return store.fetch(found.ids[0].tolist()).ids.tolist() == found.ids[0].tolist()

        assert all(pool.map(work, range(40)))
        assert store.count() == 600


def test_a_thread_waits_for_the_transaction_of_another(url, rows):
    with open_store(url, space=SPACE) as store, ThreadPoolExecutor(1) as pool:
        store.upsert(rows(3))
        with store._file.reading():
            counted = pool.submit(store.count)
            with pytest.raises(TimeoutError):
                counted.result(timeout=0.1)
        assert counted.result(timeout=30) == 3


def test_rows_are_kept_bit_for_bit(url):
    bits = np.random.default_rng(0).integers(0, 2**32, 64_000, dtype=np.uint32)
    values = bits.view(np.float32).reshape(-1, 16)
    values = values[np.isfinite(values).all(axis=1)]
    space = Space(model="m", dim=16, metric="dot")
    vectors = VectorSet([str(row) for row in range(len(values))], values, space)
    with open_store(url, space=space) as store:
        store.upsert(vectors)
        ids = vectors.ids[::-1].tolist()
        back = store.fetch(ids).matrix()
        assert back.view(np.uint32).tolist() == values[::-1].view(np.uint32).tolist()


def test_a_name_moves_in_one_transaction(url, rows):
    with open_store(url, space=SPACE) as old, open_store(url) as reader:
        old.upsert(rows(3), notes={"job": "1"})
        with open_store(url.replace("docs", "new"), space=SPACE) as new:
            new.upsert(rows(4))
            assert new.take_name("docs", former="before") == "before"
            assert (new.url, new.count()) == (url, 4)
            assert (reader.count(), reader.notes()) == (3, {"job": "1"})  # a handle keeps its rows
            assert new.take_name("docs", former="before") == ""  # it has the name already
    with open_store(url) as new, open_store(url.replace("docs", "before")) as former:
        assert (new.count(), former.count()) == (4, 3)
        assert former.take_name("docs", former="new") == "new"
        assert (former.url, former.count()) == (url, 3)
        assert new.count() == 4


def test_a_name_is_never_taken_from_two(url, rows):
    names = ("docs", "new", "before")
    for count, name in enumerate(names, start=1):
        with open_store(url.replace("docs", name), space=SPACE) as store:
            store.upsert(rows(count))
    with open_store(url.replace("docs", "new")) as store:
        with pytest.raises(ParameterError, match="'before', which is a collection"):
            store.take_name("docs", former="before")
        with pytest.raises(ParameterError, match="1 to 255"):
            store.take_name("", former="x")
    for count, name in enumerate(names, start=1):
        with open_store(url.replace("docs", name)) as store:
            assert store.count() == count
