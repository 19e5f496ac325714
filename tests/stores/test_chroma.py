"""Chroma, in a folder and on a real server: what its users have, its traps, its failures."""

from __future__ import annotations

import socket
import sys
import time
import traceback

import chromadb
import numpy as np
import pytest
from chromadb.config import Settings
from tests.fakes.http_server import FakeServer, Refusal

from isthmus.errors import (
    AccessDeniedError,
    EmptyInputError,
    MissingCollectionError,
    MissingExtraError,
    NotAStoreError,
    ParameterError,
    ReadOnlyStoreError,
    SpaceMismatchError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnreachableError,
    UnknownNameError,
    UnsupportedOperationError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.stores import _asking, open_store
from isthmus.stores._chroma_errors import in_our_words, is_transient

SPACE = Space(model="m", dim=3)
ROWS = VectorSet(["a", "b", "c"], [[1, 0, 0], [0, 2, 0], [1, 1, 0]], SPACE)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "chroma"


@pytest.fixture
def url(folder):
    return f"chroma:///{folder}?collection=docs"


@pytest.fixture
def client(folder):
    settings = Settings(anonymized_telemetry=False)
    with chromadb.PersistentClient(path=str(folder), settings=settings) as client:
        yield client


@pytest.fixture
def pauses(monkeypatch):
    """Seconds that were waited for between tries; none is waited."""
    found: list[float] = []
    monkeypatch.setattr(time, "sleep", found.append)
    return found


def made_by_another(client, **given):
    collection = client.create_collection("docs", embedding_function=None, **given)
    collection.add(
        ids=["x", "y"],
        embeddings=[[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]],
        metadatas=[{"year": 2020, "odd": True}, None],
        documents=["the text of x", "y"],
    )
    return collection


class TestOurCollections:
    def test_they_look_natural_to_chroma(self, url, client):
        fields = [{"year": 2020, "ratio": 0.5, "odd": True, "document": "a text"}, {}, {"a": "b"}]
        with open_store(url, space=SPACE) as store:
            store.upsert(ROWS, metadata=fields)
        collection = client.get_collection("docs", embedding_function=None)
        got = collection.get(ids=["a"], include=["metadatas", "documents", "embeddings"])
        assert got["metadatas"] == [{"year": 2020, "ratio": 0.5, "odd": True}]
        assert got["documents"] == ["a text"]
        assert collection.configuration_json["hnsw"]["space"] == "cosine"
        assert collection.get(where={"year": 2020})["ids"] == ["a"]

    def test_what_chroma_cannot_keep_lies_beside(self, url, client):
        fields = {
            "tags": ["a", 1, None],
            "none": None,
            "deep": {"a": {"b": []}},
            "$odd": 1,
            "": "empty",
            "chroma:x": True,
            "isthmus_json": "mine",
            "document": "",
        }
        with open_store(url, space=SPACE) as store:
            store.upsert(ROWS, metadata=[fields, {}, {}])
            assert store.fetch_metadata(["a"]) == [fields]
            for where in ({"none": None}, {"$odd": 1.0}, {"": "empty"}, {"document": ""}):
                assert store.search(ROWS.matrix()[:1], k=3, where=where).ids.tolist() == [
                    ["a", "", ""]
                ]
        kept = client.get_collection("docs", embedding_function=None).get(["a"])["metadatas"][0]
        assert set(kept) - {"isthmus_json"} == {k for k in kept if k.startswith("isthmus_token_")}

    def test_a_row_that_is_replaced_keeps_neither_fields_nor_document(self, url):
        with open_store(url, space=SPACE) as store:
            store.upsert(ROWS, metadata=[{"old": 1, "document": "text", "n": None}] * 3)
            store.upsert(ROWS, metadata=[{}, {"new": 2}, {"document": "other"}])
            assert store.fetch_metadata(["a", "b", "c"]) == [{}, {"new": 2}, {"document": "other"}]
            assert store.search(ROWS.matrix(), k=1, where={"n": None}).ids.tolist() == [[""]] * 3

    def test_a_document_is_found_by_all_of_its_text(self, url):
        texts = ["a", "a b", "é\n%_", '"', "A"]
        rows = VectorSet(texts, np.eye(5, 3, dtype="f4") + 1, SPACE)
        with open_store(url, space=SPACE) as store:
            store.upsert(rows, metadata=[{"document": one, "n": 1} for one in texts])
            for one in texts:
                for where in ({"document": one}, {"document": one, "n": 1}):
                    found = store.search(rows.matrix()[:1], k=2, where=where)
                    assert found.ids.tolist() == [[one, ""]]
            assert store.search(rows.matrix()[:1], k=1, where={"document": "b"}).ids == [[""]]
            nothing = store.search(rows.matrix()[:1], k=1, where={"document": "a", "n": 2})
            assert nothing.ids == [[""]]

    def test_large_numbers_are_told_apart(self, url):
        values = (2**60, 2**60 + 1, float(2**60), -(2**60), 2**53, 2**53 + 1)
        rows = VectorSet([f"r{n}" for n in range(6)], np.eye(6, 3, dtype="f4") + 1, SPACE)
        with open_store(url, space=SPACE) as store:
            store.upsert(rows, metadata=[{"n": one, "document": "d"} for one in values])
            for value in values:
                expected = {f"r{n}" for n, one in enumerate(values) if one == value}
                for where in ({"n": value}, {"n": value, "document": "d"}):
                    found = store.search(rows.matrix()[:1], k=6, where=where)
                    assert set(found.ids[0]) - {""} == expected
            nothing = store.search(rows.matrix()[:1], k=1, where={"n": 2**61})
            assert nothing.ids == [[""]]

    def test_another_key_for_documents(self, url):
        with open_store(f"{url}&document=text", space=SPACE) as store:
            store.upsert(ROWS, metadata=[{"text": "one", "document": "plain"}, {}, {}])
            assert store.fetch_metadata(["a"]) == [{"document": "plain", "text": "one"}]
        with open_store(url) as store:
            assert store.fetch_metadata(["a"]) == [{"document": "plain"}]  # the field wins

    @pytest.mark.parametrize("name", ["ab", "-abc", "a b c", "abc.", "x" * 256, "ünicode"])
    def test_names_that_chroma_refuses(self, folder, name):
        with pytest.raises(ParameterError, match="collection name"):
            open_store(f"chroma:///{folder}?collection={name}", space=SPACE)
        assert not folder.exists()

    def test_no_second_vector(self, url):
        with pytest.raises(UnsupportedOperationError, match="several vectors"):
            open_store(f"{url}&vector=second", space=SPACE)

    def test_nothing_is_sent_about_the_user(self, url):
        with open_store(url, space=SPACE) as store:
            assert store._client.get_settings().anonymized_telemetry is False


class TestTheirCollections:
    def test_without_a_space(self, url, client):
        made_by_another(client, configuration={"hnsw": {"space": "cosine"}})
        with open_store(url) as store:
            assert not store.recorded
            assert store.space.dim == 3
            assert store.count() == 2
            (batch,) = store.scan()
            assert batch.vectors.ids.tolist() == ["x", "y"]
            assert batch.metadata[0] == {"document": "the text of x", "year": 2020, "odd": True}
            assert store.search([[1, 0, 0]], k=1, where={"year": 2020.0}).ids == [["x"]]
            with pytest.raises(SpaceMismatchError, match="not recorded"):
                store.upsert(ROWS)
        assert client.get_collection("docs", embedding_function=None).metadata is None

    @pytest.mark.parametrize("text", ["{bad", "[1]", "7"])
    def test_a_field_of_theirs_that_is_called_as_ours(self, url, client, text):
        collection = client.create_collection("docs", embedding_function=None)
        fields = {"isthmus_json": text, "isthmus_exact": text, "year": 2020}
        collection.add(ids=["x"], embeddings=[[1, 0, 0]], metadatas=[fields])
        with open_store(url) as store:
            assert store.fetch_metadata(["x"]) == [{"isthmus_json": text, "year": 2020}]

    def test_a_space_is_recorded_beside_what_is_there(self, url, client):
        made_by_another(client, metadata={"hnsw:space": "l2", "owner": "them"})
        space = Space(model="m", dim=3, metric="l2")
        before = client.get_collection("docs", embedding_function=None).configuration_json
        with open_store(url, space=space) as store:
            assert store.recorded
            rows = VectorSet(["z"], [[1, 1, 1]], space)
            store.upsert(rows, notes={"cursor": "1"})
            store.upsert(rows, notes={"cursor": ""})
        collection = client.get_collection("docs", embedding_function=None)
        assert collection.metadata["hnsw:space"] == "l2"
        assert collection.metadata["owner"] == "them"
        assert set(collection.metadata) == {
            "hnsw:space",
            "owner",
            "isthmus:space",
            "isthmus:fingerprint",
        }
        assert collection.configuration_json == before
        assert collection.count() == 3

    @pytest.mark.parametrize(
        "space", [Space(model="m", dim=4, metric="l2"), Space(model="m", dim=3, metric="cosine")]
    )
    def test_a_space_that_cannot_be_it(self, url, client, space):
        made_by_another(client)  # Chroma's own default is l2
        with pytest.raises(SpaceMismatchError, match="dimension 3 and metric l2"):
            open_store(url, space=space)

    def test_an_embedding_function_stays(self, url, client):
        client.create_collection("docs")  # with the default one, which is never loaded
        with open_store(url, space=Space(model="m", dim=3, metric="l2")):
            pass
        configuration = client.get_collection("docs", embedding_function=None).configuration_json
        assert configuration["embedding_function"]["name"] == "default"

    def test_an_empty_one_has_no_dimension(self, url, client):
        client.create_collection("docs", embedding_function=None)
        with pytest.raises(EmptyInputError, match="nobody knows how long"):
            open_store(url)
        with open_store(url, space=Space(model="m", dim=7, metric="l2")) as store:
            assert store.count() == 0

    def test_lists_of_theirs_are_read(self, url, client):
        collection = made_by_another(client)
        collection.update(ids=["y"], metadatas=[{"tags": ["a", "b"]}])
        with open_store(url) as store:
            assert store.fetch_metadata(["y"]) == [{"document": "y", "tags": ["a", "b"]}]
            found = store.search([[1, 0, 0]], k=2, where={"tags": "a"})
            assert found.ids.tolist() == [["", ""]]


class TestScanning:
    def filled(self, url, n=20):
        store = open_store(url, space=SPACE)
        ids = [f"r{row}" for row in range(n)]
        store.upsert(VectorSet(ids, np.random.default_rng(0).normal(size=(n, 3)), SPACE))
        return store

    @pytest.mark.parametrize("gone", [["r3"], ["r0", "r5", "r9"], ["r4", "r8"]])
    def test_rows_removed_meanwhile_hide_no_others(self, url, gone):
        with self.filled(url) as store:
            batches = store.scan(batch_size=10)
            seen = next(batches).vectors.ids.tolist()
            store.delete(gone)
            rest = [text for batch in batches for text in batch.vectors.ids.tolist()]
            assert {f"r{row}" for row in range(20)} - set(gone) <= set(seen + rest)
            if "r9" not in gone:
                assert rest == [f"r{row}" for row in range(10, 20)]

    def test_rows_may_be_moved_away_as_they_are_read(self, url):
        with self.filled(url) as store:
            moved = []
            for batch in store.scan(batch_size=6):
                moved += batch.vectors.ids.tolist()
                store.delete(batch.vectors.ids.tolist())
            assert moved == [f"r{row}" for row in range(20)]


class TestNames:
    def test_a_name_that_was_moved_half_way_is_moved_to_the_end(self, url):
        old = open_store(url.replace("docs", "live"), space=SPACE)
        new = open_store(url.replace("docs", "next"), space=SPACE)
        old.upsert(ROWS)
        old._collection.modify(name="before")  # the first of two renames, then a crash
        assert new.take_name("live", former="before") == "before"
        assert new.url == url.replace("docs", "live")
        assert new.take_name("live", former="before") == "before"
        assert open_store(url.replace("docs", "before")).count() == 3
        old.close()
        new.close()

    def test_nothing_is_overwritten(self, url):
        stores = [
            open_store(url.replace("docs", one), space=SPACE) for one in ("one", "two", "three")
        ]
        with pytest.raises(ParameterError, match="'three', which is a collection"):
            stores[0].take_name("two", former="three")
        assert stores[0].take_name("free", former="unused") == ""
        for store in stores:
            assert store.count() == 0
            store.close()


class TestOpening:
    def test_a_folder_that_is_not_there_is_not_made(self, folder, url):
        with pytest.raises(MissingCollectionError, match="none of that name"):
            open_store(url)
        assert not folder.exists()

    def test_a_file(self, folder, url):
        folder.write_text("not a database")
        with pytest.raises(NotAStoreError, match=r"give the folder that holds chroma\.sqlite3"):
            open_store(url, space=SPACE)

    def test_a_folder_that_the_application_has_open_its_own_way(self, folder, url):
        with chromadb.PersistentClient(path=str(folder)) as client:
            made_by_another(client)
            with open_store(url) as store:
                assert store.count() == 2
            assert client.get_collection("docs", embedding_function=None).count() == 2

    def test_no_client(self, url, monkeypatch):
        monkeypatch.setitem(sys.modules, "chromadb", None)
        with pytest.raises(MissingExtraError, match=r"pip install 'isthmus\[chroma\]'"):
            open_store(url, space=SPACE)

    def test_an_unknown_option(self, url):
        with pytest.raises(UnknownNameError, match="'tenant'"):
            open_store(f"{url}&tenent=x")

    def test_a_database_that_is_not_there(self, url):
        open_store(url, space=SPACE).close()
        with pytest.raises(MissingCollectionError, match="tenant and database"):
            open_store(f"{url}&database=nowhere")


class TestServer:
    @pytest.fixture
    def at(self, chroma_server, request):
        name = f"t{abs(hash(request.node.nodeid))}"
        yield f"chroma+http://{chroma_server.url}?collection={name}"
        if not chroma_server.running:
            chroma_server.restart()

    def test_gone_and_back_again_within_a_request(self, at, chroma_server, monkeypatch):
        with open_store(at, space=SPACE) as store:
            store.upsert(ROWS)
            chroma_server.kill()
            pause = time.sleep

            def come_back(_):
                monkeypatch.setattr(time, "sleep", pause)
                chroma_server.restart()

            monkeypatch.setattr(time, "sleep", come_back)
            assert store.count() == 3

    def test_gone_for_good(self, at, chroma_server, pauses):
        with open_store(at, space=SPACE) as store:
            store.upsert(ROWS)
            chroma_server.kill()
            for ask in (store.count, lambda: store.search([[1, 0, 0]], k=1)):
                with pytest.raises(StoreUnreachableError, match="one of 4 tries; got ConnectError"):
                    ask()
            with pytest.raises(StoreUnreachableError):
                open_store(at)
            assert pauses == [*_asking.PAUSES] * 3
            chroma_server.restart()
            assert store.search([[1, 0, 0]], k=1).ids == [["a"]]

    def test_a_collection_that_another_program_removed(self, at, chroma_server):
        with open_store(at, space=SPACE) as store:
            host, port = chroma_server.url.split(":")
            settings = Settings(anonymized_telemetry=False)
            client = chromadb.HttpClient(host, int(port), settings=settings)
            client.delete_collection(store._collection.name)
            client._server._session.close()
            client._admin_client._server._session.close()
            client.close()
            with pytest.raises(MissingCollectionError, match="another program may have removed it"):
                store.count()

    def test_requests_stay_under_the_servers_limit(self, at):
        with open_store(at, space=Space(model="wide", dim=4096)) as store:
            assert store.capabilities.max_batch == 162  # 500 for narrow ones

    def test_a_database_of_another_tenant(self, at):
        with pytest.raises(MissingCollectionError, match="collection, tenant and database"):
            open_store(f"{at}&database=nowhere", space=SPACE)
        with pytest.raises(MissingCollectionError, match="collection, tenant and database"):
            open_store(f"{at}&tenant=nobody", space=SPACE)


class Gate(FakeServer):
    """What stands before a server and asks for a token; it says what it was given."""

    def answer(self, request):
        raise Refusal(self.status, f"bad token {request.headers.get('x-chroma-token')}")


class TestPermission:
    @pytest.mark.parametrize("status", [401, 403])
    def test_a_wrong_token_is_never_shown(self, status, monkeypatch):
        monkeypatch.setenv("TOKEN", "s3cret")
        with Gate() as gate:
            gate.status = status
            with pytest.raises(AccessDeniedError, match=r"bad token \*\*\*") as caught:
                open_store(f"chroma+http://{gate.url}?collection=docs&secret=TOKEN")
            assert gate.requests[0].headers["authorization"] == "Bearer s3cret"
        assert "s3cret" not in "".join(traceback.format_exception(caught.value))

    def test_a_server_that_never_answers(self, pauses):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            with pytest.raises(StoreUnreachableError, match="4 tries"):
                open_store(f"chroma+http://127.0.0.1:{port}?collection=docs&timeout=0.05")
        assert pauses == [*_asking.PAUSES]

    def test_a_busy_gateway_is_asked_again(self, pauses):
        with Gate() as gate:
            gate.status = 503
            with pytest.raises(StoreBusyError, match=r"503: .*bad token None"):
                open_store(f"chroma+http://{gate.url}?collection=docs")
            assert len(gate.requests) == 4
        assert len(pauses) == 3


class TestWords:
    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("error returned from database: (code: 13) database or disk is full", StoreFullError),
            ("(code: 8) attempt to write a readonly database", ReadOnlyStoreError),
            ("(code: 14) unable to open database file", AccessDeniedError),
            ("(code: 5) database is locked", StoreBusyError),
            ("something else", StoreError),
        ],
    )
    def test_of_the_disk(self, text, kind):
        found = in_our_words(RuntimeError(text), url="chroma:///x?collection=c", secret=None)
        assert type(found) is kind
        assert is_transient(RuntimeError(text)) == (kind is StoreBusyError)
