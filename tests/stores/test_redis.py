"""Redis: indexes of other programs, types of numbers, rights, failures of a real server."""

from __future__ import annotations

import sys
import threading
import uuid
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import redis

from isthmus.errors import (
    AccessDeniedError,
    CorruptStoreError,
    InputError,
    InvalidIdError,
    MissingCollectionError,
    MissingExtraError,
    ParameterError,
    ReadOnlyStoreError,
    SpaceMismatchError,
    StoreFullError,
    StoreUnreachableError,
    UnsupportedOperationError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.stores import open_store
from isthmus.testing import store_suite

SPACE = Space(model="m", dim=3)


@pytest.fixture
def client(valkey_server) -> Iterator[redis.Redis]:
    with redis.Redis(port=valkey_server.port, protocol=2) as made:
        yield made


@pytest.fixture(autouse=True)
def _empty(client):
    """Leave nothing of the last test: after a restart, the server reads it all again."""
    client.flushall()


@pytest.fixture
def name() -> str:
    return f"t{uuid.uuid4().hex[:12]}"


@pytest.fixture
def url(valkey_server, name) -> str:
    return f"redis://{valkey_server.url}?collection={name}"


def create(client: redis.Redis, name: str, *fields: Any, prefixes: tuple[str, ...] = ()) -> None:
    prefixes = prefixes or (f"doc:{name}:",)
    client.execute_command(
        *("FT.CREATE", name, "ON", "HASH", "PREFIX", len(prefixes), *prefixes, "SCHEMA", *fields)
    )


def vector(
    field: str = "v", *, type_: str = "FLOAT32", dim: int = 3, metric: str = "COSINE"
) -> Any:
    return (field, "VECTOR", "FLAT", 6, "TYPE", type_, "DIM", dim, "DISTANCE_METRIC", metric)


def packed(*numbers: float) -> bytes:
    return np.float32(numbers).tobytes()


def ones(*ids: str, space: Space = SPACE) -> VectorSet:
    return VectorSet(list(ids), np.ones((len(ids), space.dim)), space)


@pytest.fixture
def docs(client, name) -> str:
    """The name of an index that another program made."""
    create(client, name, *vector(), "lang", "TAG", "year", "NUMERIC", "SORTABLE", "title", "TEXT")
    rows: list[tuple[str, bytes, dict[str, Any]]] = [
        ("7", packed(1, 0, 0), {"lang": "en", "year": 2020, "title": "seven", "raw": b"\xff\x00"}),
        ("30", packed(0, 2, 0), {"lang": "de-at", "year": "2021.5"}),
        ("4", packed(1, 1, 0), {"lang": "en", "year": "2021"}),
    ]
    for key, numbers, fields in rows:
        client.hset(f"doc:{name}:{key}", mapping={"v": numbers, **fields})
    client.hset(f"doc:{name}:none", mapping={"lang": "en"})
    return name


class TestIndexesOfOthers:
    @pytest.mark.usefixtures("docs")
    def test_without_a_space_it_is_read_and_nothing_is_written(self, client, url):
        before = set(client.keys("*"))
        with open_store(url) as store:
            assert (store.recorded, store.count(), store.space.dim) == (False, 3, 3)
            assert store.space.metric == "cosine"
            batches = list(store.scan(batch_size=1))
            assert [b.vectors.ids[0] for b in batches] == ["30", "4", "7"]
            assert batches[0].vectors.vectors.tolist() == [[0, 2, 0]]
            rest = store.scan(cursor=batches[0].cursor)
            assert [text for b in rest for text in b.vectors.ids] == ["4", "7"]
            assert store.capabilities.scan_order == "key"
            with pytest.raises(SpaceMismatchError):
                store.upsert(ones("1"))
        assert set(client.keys("*")) == before

    def test_a_space_is_recorded(self, docs, url, client):
        for wrong in (Space(model="m", dim=4), Space(model="m", dim=3, metric="l2")):
            with pytest.raises(SpaceMismatchError, match="dimension 3 and metric cosine"):
                open_store(url, space=wrong)
        open_store(url, space=SPACE).close()
        with open_store(url) as store:
            assert store.recorded
            assert store.space == SPACE
        with pytest.raises(SpaceMismatchError, match="model"):
            open_store(url, space=Space(model="other", dim=3))
        assert client.exists(f"isthmus:record:{docs}:v")

    @pytest.mark.usefixtures("docs")
    def test_other_fields_are_the_metadata(self, url):
        with open_store(url) as store:
            assert store.fetch_metadata(["7", "30"]) == [
                {"lang": "en", "year": 2020, "title": "seven"},
                {"lang": "de-at", "year": 2021.5},
            ]

    @pytest.mark.usefixtures("docs")
    @pytest.mark.parametrize(
        ("where", "ids"),
        [
            ({"lang": "en"}, {"7", "4"}),
            ({"lang": "de-at"}, {"30"}),
            ({"lang": "de"}, set()),
            ({"lang": 3}, set()),
            ({"lang": ""}, set()),
            ({"lang": None}, set()),
            ({"year": 2020}, {"7"}),
            ({"year": 2021.5}, {"30"}),
            ({"year": 2021, "lang": "en"}, {"4"}),
            ({"year": "2020"}, set()),
            ({"year": True}, set()),
            ({"lang": "} | @year:{x"}, set()),
        ],
    )
    def test_filters_by_what_the_index_compares(self, url, where, ids):
        with open_store(url) as store:
            found = store.search(np.ones((1, 3)), k=4, where=where).ids[0].tolist()
        assert set(found) - {""} == ids

    @pytest.mark.usefixtures("docs")
    def test_filters_by_other_fields_are_refused(self, url):
        with open_store(url) as store:
            for field in ("title", "raw", "nothing"):
                with pytest.raises(UnsupportedOperationError, match="NUMERIC: lang, year"):
                    store.search(np.ones((1, 3)), k=1, where={field: "x"})

    def test_rows_are_replaced_and_added_and_the_rest_stays(self, docs, url, client):
        with open_store(url, space=SPACE) as store:
            store.upsert(ones("7", "é\0x"), metadata=[{"year": 1, "new": "x"}, {}])
            assert store.fetch_metadata(["7"])[0] == {
                "lang": "en",
                "year": 1,
                "title": "seven",
                "new": "x",
            }
            assert store.fetch(["é\0x"]).vectors.tolist() == [[1, 1, 1]]
            assert client.hget(f"doc:{docs}:7", "raw") == b"\xff\x00"
            assert store.delete(["é\0x", "none", "no"]) == 1
            for bad in ({"v": "x"}, {"a": [1]}, {"a": True}, {"a": None}):
                with pytest.raises(InputError, match="text and numbers"):
                    store.upsert(ones("7"), metadata=[bad])
            assert store.count() == 3

    def test_hashes_of_another_length_are_found_and_said(self, docs, url, client):
        client.hset(f"doc:{docs}:bad", mapping={"v": packed(1, 2)})
        with open_store(url) as store:
            assert store.info()["not_indexed"] == 1
            with pytest.raises(CorruptStoreError, match=r"hashes with 2, 3; .*take in 1"):
                list(store.scan())
            (shown,) = store.scan_unchecked()
            assert (len(shown.ids), shown.others) == (len(shown.vectors), (("bad", 2),))
            with pytest.raises(CorruptStoreError, match="hashes with 2"):
                store.fetch(["bad"])

    def test_several_prefixes_make_the_whole_key_the_id(self, client, name, url):
        create(client, name, *vector(metric="L2"), prefixes=(f"{name}a:", f"{name}b:"))
        client.hset(f"{name}a:1", mapping={"v": packed(1, 0, 0)})
        client.hset(f"{name}b:1", mapping={"v": packed(0, 1, 0)})
        with open_store(url) as store:
            assert store.space.metric == "l2"
            (batch,) = store.scan()
            assert batch.vectors.ids.tolist() == [f"{name}a:1", f"{name}b:1"]
            found = store.search([[1, 0, 0]], k=2)
            assert found.native_scores.tolist() == [[0, 2]]
            assert found.scores.tolist() == [[0, -np.float32(np.sqrt(2))]]

    def test_keys_that_are_not_text(self, client, docs, url):
        client.hset(f"doc:{docs}:".encode() + b"\xff", mapping={"v": packed(1, 0, 0)})
        with open_store(url) as store, pytest.raises(InvalidIdError, match="keys that are text"):
            list(store.scan())

    def test_two_fields_of_vectors_must_be_told_apart(self, client, name, url):
        create(client, name, *vector("v"), *vector("w x", dim=2))
        client.hset(f"doc:{name}:1", mapping={"v": packed(1, 0, 0), "w x": packed(0, 1)})
        with pytest.raises(ParameterError, match="&field=NAME; the index has 'v', 'w x'"):
            open_store(url)
        with pytest.raises(ParameterError, match="called 'z'"):
            open_store(f"{url}&field=z")
        two = Space(model="two", dim=2)
        with open_store(f"{url}&field=w%20x", space=two) as store:
            assert store.search([[0, 1]], k=1).ids.tolist() == [["1"]]
        with open_store(f"{url}&field=v", space=SPACE) as store:
            assert store.count() == 1

    @pytest.mark.parametrize(
        ("type_", "storage"),
        [("FLOAT64", "float64"), ("FLOAT16", "float16"), ("BFLOAT16", "bfloat16")],
    )
    def test_types_of_numbers(self, client, name, url, type_, storage):
        create(client, name, *vector(type_=type_, dim=24))
        space = Space(model="m", dim=24)
        values = np.random.default_rng(0).standard_normal((50, 24)).astype(np.float32)
        with open_store(url, space=space) as store:
            store.upsert(VectorSet([str(n) for n in range(50)], values, space))
            able = store.capabilities
            assert able.storage == storage
            kept = store.fetch([str(n) for n in range(50)]).matrix()
            error = np.abs(kept - values) / np.abs(values).max(axis=1, keepdims=True)
            assert error.max() <= able.read_back_error
            assert (error.max() > 0) == (able.read_back_error > 0)
            assert store.search(values[:9], k=1).ids[:, 0].tolist() == list("012345678")


class TestOwn:
    # Which of a hundred equal rows a small-world graph loses is not the same each time.
    @pytest.mark.parametrize(
        "check",
        [one for one in store_suite.CHECKS if "duplicates" not in store_suite.name(one)],
        ids=store_suite.name,
    )
    def test_with_hnsw_it_conforms_as_an_approximate_store(self, valkey_server, check):
        def make(space):
            address = f"redis://{valkey_server.url}?collection={uuid.uuid4().hex}&index=hnsw"
            store = open_store(address, space=space)
            assert not store.capabilities.exact_search
            return store

        check(make)

    def test_no_collection_has_keys_of_another(self, valkey_server, name):
        base = f"redis://{valkey_server.url}?collection="
        with (
            open_store(f"{base}{name}", space=SPACE) as one,
            open_store(f"{base}{name}%3Ab", space=SPACE) as other,
        ):
            other.upsert(ones("x"))
            assert (one.count(), other.count()) == (0, 1)
            assert one.search(np.ones((1, 3)), k=1).ids.tolist() == [[""]]

    def test_rows_whose_index_was_dropped_are_not_taken_over(self, client, name, url):
        with open_store(url, space=SPACE) as store:
            store.upsert(ones("a"))
            client.execute_command("FT.DROPINDEX", name)
            with pytest.raises(MissingCollectionError, match="who removed or renamed it"):
                store.search(np.ones((1, 3)), k=1)
        with pytest.raises(ParameterError, match="rows of an index that somebody dropped"):
            open_store(url, space=SPACE)

    def test_an_alias_opens_what_it_leads_to_and_stays_with_it(self, url, name):
        with (
            open_store(url, space=SPACE) as old,
            open_store(f"{url}2", space=Space(model="new", dim=3)) as new,
        ):
            assert old.take_name(f"{name}_live", former="") == ""
            with open_store(f"{url}_live") as live:
                live.upsert(ones("a"), notes={"x": "1"})
                assert new.take_name(f"{name}_live", former="") == name
                live.upsert(ones("b"))
                assert (old.count(), new.count()) == (2, 0)
                assert old.notes() == {"x": "1"}
            with pytest.raises(ParameterError, match="which is a collection"):
                new.take_name(name, former="")

    def test_two_that_make_it_at_once(self, url):
        stores = []
        together = threading.Barrier(4)

        def make():
            together.wait()
            stores.append(open_store(url, space=SPACE))

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(stores) == 4
        for store in stores:
            store.upsert(ones("a"))
            store.close()

    @pytest.mark.parametrize("options", ["&index=x", "&ef_search=0", "&ef_search=x", "&tls=maybe"])
    def test_bad_options(self, url, options):
        with pytest.raises(ParameterError, match="change the URL"):
            open_store(url + options, space=SPACE)

    def test_another_database(self, valkey_server):
        with pytest.raises(ParameterError, match="the only one that is searched"):
            open_store(f"redis://{valkey_server.url}/3?collection=x")

    def test_many_threads_share_one_store(self, url):
        with open_store(url, space=SPACE) as store:

            def work(thread: int) -> None:
                for row in range(10):
                    store.upsert(ones(f"{thread}-{row}", "shared"))
                    store.search(np.ones((1, 3)), k=3)

            threads = [threading.Thread(target=partial(work, n)) for n in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert store.count() == 61
            assert sum(len(b.vectors) for b in store.scan(batch_size=7)) == 61


class TestRights:
    @pytest.fixture
    def user(self, client, name, monkeypatch) -> Iterator[str]:
        client.execute_command("ACL", "SETUSER", name, "on", ">pass word", "~*", "&*", "+@all")
        monkeypatch.setenv("OTHER_SECRET", "pass word")
        yield f"{name}@"
        client.execute_command("ACL", "DELUSER", name)

    def test_a_wrong_password_is_refused_and_shown_nowhere(
        self, valkey_server, name, user, monkeypatch
    ):
        address = f"redis://{user}{valkey_server.url}?collection={name}&secret=OTHER_SECRET"
        with open_store(address, space=SPACE) as store:
            assert "pass word" not in f"{store.url} {store!r} {store.info()}"
        monkeypatch.setenv("OTHER_SECRET", "hunter2-wrong")
        with pytest.raises(AccessDeniedError, match="ISTHMUS_REDIS_SECRET") as caught:
            open_store(address)
        assert "hunter2-wrong" not in f"{caught.value} {caught.value!r} {caught.value.__cause__}"

    def test_a_server_that_repeats_the_secret(self, url, monkeypatch):
        monkeypatch.setenv("ISTHMUS_REDIS_SECRET", "hunter2")
        with pytest.raises(AccessDeniedError) as caught:  # the user default has no password
            open_store(url)
        assert "hunter2" not in str(caught.value)
        monkeypatch.delenv("ISTHMUS_REDIS_SECRET")
        with open_store(url, space=SPACE) as store:
            monkeypatch.setattr(store, "_secret", "hunter2")
            error = store._in_our_words(redis.ResponseError("ERR what is hunter2"))
            assert "hunter2" not in str(error)
            assert "***" in str(error)

    def test_a_user_who_may_only_read(self, valkey_server, client, name, user, url):
        address = f"redis://{user}{valkey_server.url}?collection={name}&secret=OTHER_SECRET"
        with open_store(url, space=SPACE) as store:
            store.upsert(ones("a"))
        client.execute_command("ACL", "SETUSER", name, "-@write", "-FT.CREATE", "-FT.ALIASUPDATE")
        with open_store(address) as store:
            assert store.search(np.ones((1, 3)), k=1).ids.tolist() == [["a"]]
            for change in (
                lambda: store.upsert(ones("b")),
                lambda: store.upsert(ones("b"), notes={"x": "1"}),
                lambda: store.delete(["a"]),
                lambda: store.take_name("x", former=""),
            ):
                with pytest.raises(ReadOnlyStoreError, match="the right to write"):
                    change()
            assert store.count() == 1
        client.execute_command("ACL", "SETUSER", name, "-FT.SEARCH")
        with open_store(address) as store, pytest.raises(AccessDeniedError, match=r"FT\.SEARCH"):
            store.search(np.ones((1, 3)), k=1)

    def test_a_server_without_the_module(self, url):
        with open_store(url, space=SPACE) as store:
            error = store._in_our_words(redis.ResponseError("unknown command 'FT.INFO'"))
        assert isinstance(error, UnsupportedOperationError)


class TestFailures:
    def test_a_scan_of_others_goes_on_after_a_restart(self, client, name, url, valkey_server):
        create(client, name, *vector())
        for n in range(100):
            client.hset(f"doc:{name}:{n}", mapping={"v": packed(1, n, 0)})
        with open_store(url) as store:
            scan = store.scan(batch_size=30)
            ids = next(scan).vectors.ids.tolist()
            valkey_server.kill()
            valkey_server.restart()
            ids += [text for batch in scan for text in batch.vectors.ids]
            assert sorted(ids) == sorted(map(str, range(100)))

    def test_after_a_restart_a_search_misses_nothing(self, url, valkey_server):
        space = Space(model="m", dim=64)
        values = np.random.default_rng(0).standard_normal((5_000, 64))
        rows = VectorSet([str(n) for n in range(5_000)], values, space)
        with open_store(url, space=space) as store:
            store.upsert(rows)
            valkey_server.kill()
            valkey_server.restart()
            found = store.search(values[::100], k=1)
            assert found.ids[:, 0].tolist() == [str(n) for n in range(0, 5_000, 100)]

    def test_no_room_in_memory(self, url, client):
        with open_store(url, space=SPACE) as store:
            client.config_set("maxmemory", "1")
            try:
                with pytest.raises(StoreFullError, match="make room"):
                    store.upsert(ones("a"), notes={"cursor": "1"})
            finally:
                client.config_set("maxmemory", "0")
            assert store.count() == 0
            assert store.notes() == {}

    def test_nobody_listens(self, monkeypatch):
        monkeypatch.setattr("isthmus.stores._asking.PAUSES", (0.0,))
        with pytest.raises(StoreUnreachableError, match=r"127\.0\.0\.1:1"):
            open_store("redis://127.0.0.1:1?collection=x")

    def test_a_server_that_hangs(self, url, client, monkeypatch):
        monkeypatch.setattr("isthmus.stores._asking.PAUSES", (0.0,))
        with open_store(f"{url}&timeout=0.2", space=SPACE) as store:
            client.client_pause(700, all=True)
            with pytest.raises(StoreUnreachableError, match="TimeoutError"):
                store.count()

    def test_a_bad_cursor(self, url):
        with open_store(url, space=SPACE) as store, pytest.raises(ParameterError, match="cursor"):
            list(store.scan(cursor="after:x"))


def test_without_the_client(url, monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(MissingExtraError, match=r"isthmus\[redis"):
        open_store(url)
