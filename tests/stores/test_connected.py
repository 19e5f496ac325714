"""The template of connectors, with a database that is a dict and fails when it is told to."""

from __future__ import annotations

import json
import traceback
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import pytest

from isthmus.errors import (
    ConfigError,
    CorruptStoreError,
    InputError,
    MissingCollectionError,
    ParameterError,
    SpaceMismatchError,
    StoreError,
    StoreUnreachableError,
    UnknownNameError,
    UnsupportedOperationError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.stores import MemoryStore, _asking
from isthmus.stores._connected import ConnectedStore, Page, Rows, stacked
from isthmus.stores.base import NameRule
from isthmus.testing import store_suite

SPACE = Space(model="m", dim=3)
URL = "dict://host?collection=docs"


class Table:
    """What the database holds of one collection: vectors by name, metadata, a record."""

    def __init__(self) -> None:
        self.spaces: dict[str, Space] = {}
        self.vectors: dict[str, dict[str, np.ndarray]] = {}
        self.metadata: dict[str, str | None] = {}
        self.record: dict[str, str] = {}


class DictStore(ConnectedStore):
    scheme: ClassVar[str] = "dict"
    tables: ClassVar[dict[str, Table]] = {}
    failures: ClassVar[list[Exception]] = []
    capabilities = replace(
        MemoryStore.capabilities,
        native_scores=MappingProxyType({"cosine": "1 - cosine", "dot": "-dot", "l2": "l2"}),
        notes="after a batch",
        persistent=True,
        max_batch=64,
        max_id_bytes=300,
        max_metadata_bytes=1_000,
        names=NameRule(r"[a-z0-9_-]{1,40}", "1 to 40 of a-z, 0-9, _ and -"),
        several_vectors=True,
        switch="rename",
        concurrency="many writers",
    )

    def _connect(self) -> None:
        self.connected = True

    def _disconnect(self) -> None:
        self.connected = False

    @property
    def _vector(self) -> str:
        return self._url.options.get("vector", "")

    @property
    def _table(self) -> Table:
        if self.failures:
            raise self.failures.pop(0)
        return self.tables[self._url.collection]

    def _exists(self):
        table = self.tables.get(self._url.collection)
        return table is not None and self._vector in table.spaces

    def _create(self, space):
        table = self.tables.setdefault(self._url.collection, Table())
        table.spaces.setdefault(self._vector, space)
        table.vectors.setdefault(self._vector, {})

    def _describe(self):
        space = self._table.spaces[self._vector]
        return space.dim, space.metric

    def _read_record(self):
        return dict(self._table.record)

    def _write_record(self, entries):
        self._table.record = dict(entries)

    def _count(self):
        return len(self._table.vectors[self._vector])

    def _write(self, rows):
        table = self._table
        assert len(rows.ids) <= self.capabilities.max_batch
        for text, vector, fields in zip(rows.ids, rows.vectors, rows.metadata, strict=True):
            table.vectors[self._vector][text] = np.array(vector)
            if fields is not None or not self._vector:
                table.metadata[text] = fields

    def _remove(self, ids):
        for text in ids:
            self._table.vectors[self._vector].pop(text)

    def _rows(self, ids):
        table = self._table
        vectors = [table.vectors[self._vector][text] for text in ids]
        dim = table.spaces[self._vector].dim
        return Rows(ids, stacked(vectors, dim), [table.metadata.get(text) for text in ids])

    def _read(self, ids, *, vectors):
        del vectors
        return self._rows([text for text in ids if text in self._table.vectors[self._vector]])

    def _find(self, queries, *, k, where):
        reference = MemoryStore(self.space)
        rows = self._rows(list(self._table.vectors[self._vector]))
        if not rows.ids:
            return [[] for _ in queries]
        fields = [json.loads(text) if text else {} for text in rows.metadata]
        reference.upsert(VectorSet(rows.ids, rows.vectors, self.space), metadata=fields)
        found = reference.search(queries, k=k, where=where)
        native = 1 - found.scores if self.space.metric == "cosine" else -found.scores
        return [
            [(text, float(score)) for text, score in zip(*row, strict=True) if text]
            for row in zip(found.ids.tolist(), native, strict=True)
        ]

    def _page(self, after, limit):
        ids = list(self._table.vectors[self._vector])
        start = ids.index(after) + 1 if after else 0
        some = ids[start : start + limit]
        return Page(self._rows(some), some[-1] if some else after)

    def _take_name(self, name, former):
        mine = self._url.collection
        moved = {mine: name, name: former}
        tables = {moved.get(key, key): table for key, table in self.tables.items()}
        self.tables.clear()
        self.tables.update(tables)
        return former

    def _is_transient(self, error):
        return isinstance(error, ConnectionError)


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    DictStore.tables.clear()
    DictStore.failures.clear()
    pauses: list[float] = []
    monkeypatch.setattr(_asking.time, "sleep", pauses.append)
    return pauses


def opened(space=SPACE, url=URL):
    return DictStore.open(url, space=space)


def three(space=SPACE):
    return VectorSet(["a", "b", "c"], [[1, 0, 0], [0, 2, 0], [1, 1, 0]], space)


class TestTheSuite:
    @pytest.mark.parametrize("check", store_suite.CHECKS, ids=store_suite.name)
    def test_the_template_conforms(self, check):
        names = iter(range(1_000))
        check(lambda space: opened(space, f"dict://host?collection=suite-{next(names)}"))


class TestOpening:
    def test_a_collection_of_another_program_is_read_without_a_space(self):
        opened().upsert(three())
        DictStore.tables["docs"].record.clear()
        with DictStore.open(URL) as store:
            assert not store.recorded
            assert store.info()["recorded"] is False
            assert store.space == Space(model=f"not recorded: {URL}", dim=3)
            assert store.fetch(["b"]).matrix().tolist() == [[0, 2, 0]]
            with pytest.raises(SpaceMismatchError, match="not recorded"):
                store.upsert(three())
        assert DictStore.tables["docs"].record == {}

    def test_a_space_is_recorded_and_kept(self):
        opened().upsert(three())
        DictStore.tables["docs"].record.clear()
        other = Space(model="other", dim=3)
        assert opened(other).recorded
        assert DictStore.open(URL).space == other
        with pytest.raises(SpaceMismatchError, match="model 'other'"):
            opened(SPACE)

    @pytest.mark.parametrize("space", [Space(model="m", dim=4), replace(SPACE, metric="l2")])
    def test_a_space_that_the_database_contradicts_is_not_recorded(self, space):
        opened()
        DictStore.tables["docs"].record.clear()
        with pytest.raises(SpaceMismatchError, match="dimension 3 and metric cosine"):
            opened(space)
        assert DictStore.tables["docs"].record == {}

    def test_a_collection_that_is_not_there(self):
        with pytest.raises(MissingCollectionError, match="none of that name"):
            DictStore.open(URL)

    def test_a_name_that_the_database_does_not_allow(self):
        with pytest.raises(ParameterError, match="1 to 40 of a-z"):
            opened(url="dict://host?collection=No Such")

    def test_an_option_that_it_does_not_know(self):
        with pytest.raises(UnknownNameError, match="did you mean 'timeout'"):
            opened(url=URL + "&timeuot=3")

    def test_a_metric_that_it_does_not_have(self, monkeypatch):
        able = replace(DictStore.capabilities, native_scores={"l2": "l2"})
        monkeypatch.setattr(DictStore, "capabilities", able)
        with pytest.raises(UnsupportedOperationError, match="searches by: l2"):
            opened()
        assert DictStore.tables == {}

    @pytest.mark.parametrize(
        ("entry", "message"),
        [
            ({":space": "{", ":fingerprint": ""}, "not JSON"),
            ({":space": '{"model": "m", "dim": 3}', ":fingerprint": "0"}, "do not belong"),
            ({":space": '{"model": "m", "dim": 3}'}, "do not belong"),
        ],
    )
    def test_a_record_that_is_damaged(self, entry, message):
        opened()
        DictStore.tables["docs"].record.update(entry)
        if ":fingerprint" not in entry:
            del DictStore.tables["docs"].record[":fingerprint"]
        with pytest.raises(CorruptStoreError, match=message):
            DictStore.open(URL)

    def test_a_connection_that_fails_is_let_go(self, monkeypatch):
        let_go = []
        monkeypatch.setattr(DictStore, "_disconnect", lambda self: let_go.append(self._url))
        with pytest.raises(MissingCollectionError):
            DictStore.open(URL)
        assert len(let_go) == 1


class TestTries:
    def test_three_more_after_the_first(self, fresh):
        store = opened()
        DictStore.failures[:] = [ConnectionError("gone")] * 3
        assert store.count() == 0
        assert fresh == [0.1, 0.4, 1.6]

    def test_then_it_is_unreachable_and_later_there_again(self):
        store = opened()
        DictStore.failures[:] = [ConnectionError("hunter2")] * 4
        with pytest.raises(StoreUnreachableError, match="in one of 4 tries") as caught:
            store.count()
        assert "hunter2" not in str(caught.value)
        assert isinstance(caught.value, ConnectionError)
        assert store.count() == 0

    def test_what_will_not_pass_is_not_tried_again(self, fresh):
        store = opened()
        DictStore.failures[:] = [ValueError("wrong")]
        with pytest.raises(StoreError):
            store.count()
        assert fresh == []

    def test_a_batch_that_fails_leaves_those_before_it(self):
        store = opened()
        rows = VectorSet([f"{row}" for row in range(150)], np.ones((150, 3)), SPACE)
        before = len(DictStore.tables["docs"].vectors[""])
        calls = []

        def write(some):
            calls.append(len(some.ids))
            if len(calls) == 2:
                raise ValueError
            DictStore._write(store, some)

        store._write = write
        with pytest.raises(StoreError):
            store.upsert(rows, notes={"cursor": "150"})
        assert (before, store.count(), calls) == (0, 64, [64, 64])
        assert store.notes() == {}


class TestNames:
    def test_the_rule_holds_for_the_new_name_and_the_former(self):
        store = opened()
        for name, former in (("Docs", "before"), ("live", "x" * 41), ("", "before")):
            with pytest.raises(ParameterError, match="a collection name"):
                store.take_name(name, former=former)
        assert list(DictStore.tables) == ["docs"]
        assert store.take_name("live", former="before") == "before"
        assert store.url == "dict://host?collection=live"

    def test_an_alias_has_no_former_name(self, monkeypatch):
        able = replace(DictStore.capabilities, switch="alias")
        monkeypatch.setattr(DictStore, "capabilities", able)
        store = opened()
        with pytest.raises(ParameterError, match="a collection name as dict allows"):
            store.take_name("Docs")
        monkeypatch.setattr(DictStore, "_take_name", lambda _, name, former: name + former)
        assert store.take_name("live") == "live"
        assert store.url == URL

    def test_a_store_without_a_switch(self, monkeypatch):
        monkeypatch.setattr(DictStore, "capabilities", replace(DictStore.capabilities, switch=None))
        with pytest.raises(UnsupportedOperationError, match="move a name at one instant"):
            opened().take_name("live", former="before")


class TestSecrets:
    def test_from_the_environment(self, monkeypatch):
        monkeypatch.setenv("ISTHMUS_DICT_SECRET", "hunter2")
        store = opened()
        monkeypatch.delenv("ISTHMUS_DICT_SECRET")
        monkeypatch.setenv("MINE", "hunter3")
        named = opened(url=URL + "&secret=MINE")
        assert (store._secret, named._secret) == ("hunter2", "hunter3")
        assert "hunter" not in repr(named.info())

    @pytest.mark.parametrize("said", ["no key hunter2", "no key"])
    def test_a_client_that_says_it_is_not_quoted(self, monkeypatch, said):
        monkeypatch.setenv("ISTHMUS_DICT_SECRET", "hunter2")
        store = opened()
        error = ValueError("refused")
        error.__cause__ = OSError(said)
        DictStore.failures.append(error)
        with pytest.raises(StoreUnreachableError) as caught:
            store.count()
        shown = "".join(traceback.format_exception(caught.value))
        assert "hunter2" not in shown
        assert ("refused" in shown) == (said == "no key")

    @pytest.mark.parametrize(
        "error", [OverflowError("hunter2"), ValueError(), RecursionError(), TypeError(), KeyError()]
    )
    def test_what_cannot_be_read_is_no_server_that_is_away(self, monkeypatch, error):
        monkeypatch.setenv("ISTHMUS_DICT_SECRET", "hunter2")
        store = opened()
        DictStore.failures.append(error)
        with pytest.raises(StoreError, match=f"that can be read; got {type(error).__name__}") as it:
            store.count()
        assert type(it.value) is StoreError
        assert "hunter2" not in str(it.value)
        assert not DictStore.failures
        assert store.count() == 0

    def test_a_variable_that_is_not_set(self, monkeypatch):
        monkeypatch.delenv("MINE", raising=False)
        with pytest.raises(ConfigError, match="'MINE'"):
            opened(url=URL + "&secret=MINE")

    def test_not_in_the_url(self):
        with pytest.raises(InputError, match="a password in it") as caught:
            opened(url="dict://user:hunter2@host?collection=docs")
        assert "hunter2" not in str(caught.value)


def test_a_scan_of_rows_that_no_set_may_hold():
    store = opened()
    store.upsert(three())
    DictStore.tables["docs"].vectors[""]["b"][:] = np.nan
    (batch,) = store.scan_unchecked()
    assert np.isnan(batch.vectors[1]).all()
    with pytest.raises(InputError, match="NaN"):
        list(store.scan())


def test_rows_of_two_lengths():
    store = opened()
    store.upsert(three())
    DictStore.tables["docs"].vectors[""]["b"] = np.ones(5, np.float32)
    with pytest.raises(CorruptStoreError, match="rows of 3, 5 numbers"):
        list(store.scan())


def test_many_threads_take_turns():
    from concurrent.futures import ThreadPoolExecutor

    store = opened()
    store.upsert(three())
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: store.search([[0, 1, 0]], k=1).ids[0, 0], range(40)))
    assert set(found) == {"b"}
