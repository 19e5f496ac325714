"""Typesense: collections of other programs, keys, failures of a real server."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from isthmus.errors import (
    AccessDeniedError,
    CorruptStoreError,
    InputError,
    MissingCollectionError,
    MissingExtraError,
    ParameterError,
    ReadOnlyStoreError,
    SpaceMismatchError,
    StoreBusyError,
    StoreFullError,
    StoreUnreachableError,
    UnsupportedOperationError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.stores import _asking, open_store
from isthmus.stores._typesense_documents import read_schema
from isthmus.stores._typesense_server import Server
from isthmus.stores._url import StoreUrl

VARIABLE = "ISTHMUS_TYPESENSE_HTTP_SECRET"
SPACE = Space(model="m", dim=3)
ODD = ("a`b", " x ", "%_\\", "a\nb", "a/b?c#d", "a,b", "é 🚢", "[x]", "a&&b", "%41")


@pytest.fixture(autouse=True)
def _secret(typesense_server, monkeypatch):
    monkeypatch.setenv(VARIABLE, typesense_server.api_key)


@pytest.fixture
def name() -> str:
    return f"t{uuid.uuid4().hex[:12]}"


@pytest.fixture
def url(typesense_server, name) -> str:
    return f"typesense+http://{typesense_server.url}?collection={name}"


@pytest.fixture
def server(url) -> Iterator[Server]:
    made = Server(StoreUrl.parse(url), 10.0)
    yield made
    made.close()


def vector(field: str = "v", *, dim: int = 3, **facts: Any) -> dict[str, Any]:
    return {"name": field, "type": "float[]", "num_dim": dim, **facts}


def put(server: Server, name: str, *documents: dict[str, Any]) -> None:
    lines = [json.dumps(one) for one in documents]
    answers = server.send_lines(lines, "collections", name, "documents", "import", action="upsert")
    assert all(json.loads(answer)["success"] for answer in answers)


def ones(*ids: str, space: Space = SPACE) -> VectorSet:
    return VectorSet(list(ids), np.ones((len(ids), space.dim)), space)


@pytest.fixture
def docs(server, name) -> str:
    """The name of a collection that another program made."""
    fields = [
        vector(),
        {"name": "title", "type": "string", "optional": True},
        {"name": "year", "type": "int32", "optional": True},
        {"name": "rate", "type": "float", "optional": True},
        {"name": "good", "type": "bool", "optional": True},
        {"name": "tags", "type": "string[]", "optional": True},
    ]
    server.send({"name": name, "fields": fields}, "collections")
    put(
        server,
        name,
        {"id": "7", "v": [1, 0, 0], "title": "The End", "year": 2020, "rate": 0.1, "good": True},
        {"id": "30", "v": [0, 2, 0], "title": "the end!", "year": 2021, "tags": ["a"]},
        {"id": "4", "v": [1, 1, 0], "year": 2021, "more": {"a": [1]}},
    )
    return name


class TestCollectionsOfOthers:
    def test_without_a_space_it_is_read_and_nothing_is_written(self, docs, url, server):
        before = server.get("collections", docs)
        with open_store(url) as store:
            assert (store.recorded, store.count(), store.space.dim) == (False, 3, 3)
            batches = list(store.scan(batch_size=1))
            assert [b.vectors.ids[0] for b in batches] == ["30", "4", "7"]
            assert batches[0].vectors.vectors.tolist() == [[0, 2, 0]]
            rest = store.scan(cursor=batches[0].cursor)
            assert [text for b in rest for text in b.vectors.ids] == ["4", "7"]
            assert not store.capabilities.exact_search
            with pytest.raises(SpaceMismatchError):
                store.upsert(ones("1"))
        assert server.get("collections", docs) == before

    @pytest.mark.usefixtures("docs")
    def test_a_space_is_recorded(self, url):
        with pytest.raises(SpaceMismatchError, match="dimension 3 and metric cosine"):
            open_store(url, space=Space(model="m", dim=4))
        open_store(url, space=SPACE).close()
        with open_store(url) as store:
            assert store.recorded
            assert store.space == SPACE
        with pytest.raises(SpaceMismatchError, match="model"):
            open_store(url, space=Space(model="other", dim=3))

    @pytest.mark.usefixtures("docs")
    def test_other_fields_are_the_metadata(self, url):
        with open_store(url) as store:
            assert store.fetch_metadata(["4", "7"]) == [
                {"year": 2021, "more": {"a": [1]}},
                {"title": "The End", "year": 2020, "rate": 0.1, "good": True},
            ]

    @pytest.mark.usefixtures("docs")
    @pytest.mark.parametrize(
        ("where", "ids"),
        [
            ({"title": "The End"}, {"7"}),  # and not those with the same words
            ({"title": "the end!"}, {"30"}),
            ({"title": "End"}, set()),
            ({"title": 3}, set()),
            ({"title": None}, set()),
            ({"year": 2021}, {"30", "4"}),
            ({"year": 2021.0}, {"30", "4"}),
            ({"year": 2020.5}, set()),
            ({"year": 2**40}, set()),
            ({"year": "2020"}, set()),
            ({"year": True}, set()),
            ({"rate": 0.1}, {"7"}),
            ({"good": True}, {"7"}),
            ({"good": 1}, set()),
            ({"year": 2020, "good": False}, set()),
        ],
    )
    def test_filters_by_indexed_fields(self, url, where, ids):
        with open_store(url) as store:
            for k in (1, 4):
                found = set(store.search(np.ones((1, 3)), k=k, where=where).ids[0].tolist())
                assert found - {""} <= ids
                assert len(found - {""}) == min(k, len(ids))

    @pytest.mark.usefixtures("docs")
    def test_filters_by_other_fields_are_refused(self, url):
        with open_store(url) as store:
            for where in ({"tags": "a"}, {"more": "x"}, {"no": 1}):
                with pytest.raises(UnsupportedOperationError, match="good, rate, title, year"):
                    store.search(np.ones((1, 3)), k=1, where=where)
            for text in ("a`b", " "):
                with pytest.raises(UnsupportedOperationError, match="a text with words"):
                    store.search(np.ones((1, 3)), k=1, where={"title": text})

    def test_rows_are_replaced_and_added_and_the_rest_stays(self, docs, url, server):
        with open_store(url, space=SPACE) as store:
            store.upsert(ones("7", *ODD), metadata=[{"year": 1}, *[{}] * len(ODD)])
            assert store.fetch_metadata(["7"])[0]["title"] == "The End"
            assert store.fetch_metadata(["7"])[0]["year"] == 1
            assert store.fetch(ODD).ids.tolist() == list(ODD)
            assert server.get("collections", docs, "documents", ODD[2])["id"] == ODD[2]
            assert {text for b in store.scan() for text in b.vectors.ids} == {*ODD, "4", "7", "30"}
            assert store.delete([*ODD, "no"]) == len(ODD)
            for bad in ({"v": [1]}, {"id": "x"}):
                with pytest.raises(InputError, match="beside the id and the vectors"):
                    store.upsert(ones("7"), metadata=[bad])
            with pytest.raises(InputError, match=r"`year` must be an int32"):
                store.upsert(ones("7"), metadata=[{"year": "x"}])
            assert store.count() == 3

    def test_documents_without_a_vector_are_no_rows(self, server, name, url):
        server.send({"name": name, "fields": [vector(optional=True)]}, "collections")
        put(server, name, {"id": "a"}, {"id": "b", "v": [1, 0, 0]}, {"id": "c"})
        with open_store(url) as store:
            assert store.count() == 1
            assert [b.vectors.ids.tolist() for b in store.scan(batch_size=1)] == [["b"]]
            assert store.search(np.ones((1, 3)), k=3).ids.tolist() == [["b", "", ""]]

    def test_two_fields_of_vectors_must_be_told_apart(self, server, name, url):
        server.send({"name": name, "fields": [vector("v"), vector("w", dim=2)]}, "collections")
        put(server, name, {"id": "a", "v": [1, 0, 0], "w": [0, 1]})
        with pytest.raises(ParameterError, match="&field=NAME; the collection has 'v', 'w'"):
            open_store(url)
        with pytest.raises(ParameterError, match="called 'z'"):
            open_store(f"{url}&field=z")
        two = Space(model="two", dim=2)
        with open_store(f"{url}&field=w", space=two) as store:
            assert store.search([[0, 1]], k=1).ids.tolist() == [["a"]]
        with open_store(f"{url}&field=v", space=SPACE) as store:
            assert store.fetch_metadata(["a"]) == [{}]

    def test_a_collection_without_vectors(self, server, name, url):
        fields = [{"name": "title", "type": "string"}]
        server.send({"name": name, "fields": fields}, "collections")
        with pytest.raises(ParameterError, match="the collection has none"):
            open_store(url)

    def test_other_metrics_are_refused(self):
        answer = {"name": "docs", "fields": [vector(vec_dist="ip")]}
        with pytest.raises(UnsupportedOperationError, match="by 'ip'"):
            read_schema(answer, "")

    def test_documents_of_another_length(self):
        schema = read_schema({"name": "docs", "fields": [vector()]}, "")
        with pytest.raises(CorruptStoreError, match="documents with 2, 3"):
            schema.to_rows([{"id": "a", "v": [1, 2]}, {"id": "b", "v": [1, 2, 3]}], vectors=True)


class TestOwn:
    def test_an_approximate_search_says_so(self, url):
        space = Space(model="m", dim=24)
        values = np.random.default_rng(0).standard_normal((300, 24))
        with open_store(f"{url}&index=hnsw", space=space) as store:
            store.upsert(VectorSet([str(n) for n in range(300)], values, space))
            assert not store.capabilities.exact_search
            assert store.search(values[:5], k=3).ids[:, 0].tolist() == list("01234")

    def test_ids_look_natural_where_they_can(self, url, name, server):
        with open_store(url, space=SPACE) as store:
            store.upsert(ones(*ODD), metadata=[{"text": text} for text in ODD])
            assert store.fetch(ODD).ids.tolist() == list(ODD)
            assert store.fetch_metadata(ODD) == [{"text": text} for text in ODD]
            for text in ("a/b?c#d", "é 🚢", "[x]"):
                assert server.get("collections", name, "documents", text) is not None
            assert server.get("collections", name, "documents", "a%60b")["metadata"]

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
            with pytest.raises(ParameterError, match="a collection name as typesense"):
                new.take_name("a/b", former="")

    @pytest.mark.parametrize("options", ["&index=ivf", "&tls=maybe"])
    def test_bad_options(self, url, options):
        with pytest.raises(ParameterError, match="change the URL"):
            open_store(url + options, space=SPACE)

    def test_names_that_an_address_would_not_carry(self, typesense_server):
        with pytest.raises(ParameterError, match="a collection name as"):
            open_store(f"typesense+http://{typesense_server.url}?collection=a%2Fb", space=SPACE)


class TestRights:
    def key(self, server: Server, *actions: str) -> str:
        body = {"description": "test", "actions": list(actions), "collections": [".*"]}
        answer = server._call.post("/keys", entity_type=dict, body=body)
        return str(answer["value"])

    def test_a_wrong_key_is_refused_and_shown_nowhere(self, url, monkeypatch, typesense_server):
        with open_store(url, space=SPACE) as store:
            assert typesense_server.api_key not in f"{store.url} {store!r} {store.info()}"
        monkeypatch.setenv(VARIABLE, "hunter2-wrong")
        with pytest.raises(AccessDeniedError, match=VARIABLE) as caught:
            open_store(url)
        assert "hunter2-wrong" not in f"{caught.value} {caught.value!r} {caught.value.__cause__}"
        monkeypatch.delenv(VARIABLE)
        with pytest.raises(AccessDeniedError, match=VARIABLE):
            open_store(url)

    def test_a_server_that_repeats_the_secret(self, server, typesense_server):
        error = server.refusal(f"what is {typesense_server.api_key}")
        assert typesense_server.api_key not in str(error)
        assert "***" in str(error)

    @pytest.mark.usefixtures("docs")
    def test_a_key_that_may_only_read(self, url, server, monkeypatch):
        reads = ("documents:search", "documents:get", "documents:export", "collections:get")
        monkeypatch.setenv(VARIABLE, self.key(server, *reads))
        with pytest.raises(ReadOnlyStoreError, match="a key that may write"):
            open_store(url, space=SPACE)
        with pytest.raises(ReadOnlyStoreError, match="a key that may write"):
            open_store(f"{url}_new", space=SPACE)
        monkeypatch.setenv(VARIABLE, server._secret)
        open_store(url, space=SPACE).close()
        monkeypatch.setenv(VARIABLE, self.key(server, *reads))
        with open_store(url) as store:
            assert store.count() == 3
            assert store.search(np.ones((1, 3)), k=1).ids.tolist() == [["4"]]
            for change in (
                lambda: store.upsert(ones("b")),
                lambda: store.delete(["7"]),
                lambda: store.write_notes({"x": "1"}),
            ):
                with pytest.raises(ReadOnlyStoreError, match="a key that may write"):
                    change()


class TestFailures:
    def test_a_collection_that_was_removed(self, url, name, server):
        with open_store(url, space=SPACE) as store:
            store.upsert(ones("a"))
            server.delete("collections", name)
            for call in (
                store.count,
                lambda: store.search(np.ones((1, 3)), k=1),
                lambda: store.fetch(["a"]),
                lambda: store.upsert(ones("a")),
            ):
                with pytest.raises(MissingCollectionError, match="who removed or renamed it"):
                    call()

    def test_a_full_disk(self, server):
        error = server.refusal("Rejecting write: running out of resource type: OUT_OF_DISK")
        assert isinstance(error, StoreFullError)

    def test_nobody_listens(self, monkeypatch):
        monkeypatch.setattr("isthmus.stores._asking.PAUSES", (0.0,))
        with pytest.raises(StoreUnreachableError, match=r"127\.0\.0\.1:1"):
            open_store("typesense+http://127.0.0.1:1?collection=x")


def test_without_the_client(url, monkeypatch):
    monkeypatch.setitem(sys.modules, "typesense.exceptions", None)
    with pytest.raises(MissingExtraError, match=r"isthmus\[typesense"):
        open_store(url)


def test_a_record_that_was_there_is_waited_for(url, monkeypatch):
    """A server that has just started may answer for rows before it does for their record."""
    with open_store(url, space=SPACE) as store:
        store.upsert(ones("a"), notes={"cursor": "1"})
        monkeypatch.setattr(_asking, "PAUSES", (0.0,) * 3)
        asked, get = [], store._server.get

        def late(*path):
            asked.append(path)
            return None if len(asked) < 3 else get(*path)

        monkeypatch.setattr(store._server, "get", late)
        assert store.notes() == {"cursor": "1"}
        assert len(asked) == 3
        monkeypatch.setattr(store._server, "get", lambda *_: None)
        with pytest.raises(StoreBusyError, match="which was there"):
            store.notes()
