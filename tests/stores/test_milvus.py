"""Milvus, the server and the file: collections of others, traps, a server that is gone."""

from __future__ import annotations

import subprocess
import sys
import uuid

import numpy as np
import pytest
from pymilvus import DataType, MilvusClient

from isthmus.errors import (
    AccessDeniedError,
    InputError,
    InvalidIdError,
    MissingCollectionError,
    MissingExtraError,
    ParameterError,
    SpaceMismatchError,
    StoreError,
    StoreFullError,
    StoreUnreachableError,
    UnknownIdError,
    UnknownNameError,
    UnsupportedOperationError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.stores import open_store
from isthmus.testing import store_suite
from isthmus.testing.store_suite import searching

SPACE = Space(model="m", dim=4, metric="dot")
VECTORS = np.array([[1, 2, 3, row] for row in range(-3, 5)], np.float32)


class Place:
    """A database, with a client as other programs have it."""

    def __init__(self, scheme, where, address):
        self.scheme, self.where, self.client = scheme, where, MilvusClient(address)

    def url(self, name, more=""):
        return f"{self.scheme}://{self.where}?collection={name}{more}"


@pytest.fixture(params=["milvus", "milvus-lite"])
def place(request, tmp_path):
    if request.param == "milvus":
        url = request.getfixturevalue("milvus_server").url
        found = Place("milvus", url, f"http://{url}")
    else:
        found = Place("milvus-lite", f"/{tmp_path}/their.db", f"{tmp_path}/their.db")
    yield found
    found.client.close()


@pytest.fixture
def lite(tmp_path):
    return f"milvus-lite:///{tmp_path}/own.db?collection=docs"


def name():
    return f"c{uuid.uuid4().hex}"


def theirs(place, *, key=DataType.INT64, auto=False, dynamic=True):
    """Make a collection as another program would, with eight rows."""
    client, found = place.client, name()
    schema = client.create_schema(auto_id=auto, enable_dynamic_field=dynamic)
    more = {"max_length": 20} if key == DataType.VARCHAR else {}
    schema.add_field("pk", key, is_primary=True, **more)
    schema.add_field("embedding", DataType.FLOAT_VECTOR, dim=4)
    schema.add_field("year", DataType.INT64)
    schema.add_field("title", DataType.VARCHAR, max_length=100)
    schema.add_field("open", DataType.BOOL)
    schema.add_field("weight", DataType.FLOAT)
    client.create_collection(found, schema=schema)
    index = client.prepare_index_params()
    index.add_index("embedding", index_type="FLAT", metric_type="IP")
    client.create_index(found, index, sync=False)
    client.load_collection(found, _async=True)
    rows = [
        {
            "pk": f"k{row}" if key == DataType.VARCHAR else row,
            "embedding": VECTORS[row + 3],
            "year": 2000 + row,
            "title": f"t{row}",
            "open": row % 2 == 0,
            "weight": row / 2,
        }
        for row in range(-3, 5)
    ]
    for row in rows:
        if auto:
            del row["pk"]
        if dynamic:
            row["extra"] = [1, True, None, "x"][row["year"] % 4]
    client.insert(found, rows)
    return found


def answers(store, **where):
    found = store.search(np.float32([[0, 0, 0, 1]]), k=9, where=where or None)
    return sorted(text for text in found.ids[0].tolist() if text)


def test_a_collection_of_others_is_read_as_it_is(place):
    found = theirs(place)
    with pytest.raises(SpaceMismatchError, match="dimension 4 and metric dot"):
        open_store(place.url(found), space=Space(model="m", dim=4))
    with open_store(place.url(found)) as store:
        assert (store.recorded, store.space.dim, store.space.metric) == (False, 4, "dot")
        assert store.count() == 8
        rows = {
            text: vector
            for batch in store.scan(batch_size=3)
            for text, vector in zip(batch.vectors.ids.tolist(), batch.vectors.vectors, strict=True)
        }
        assert rows.keys() == {str(row) for row in range(-3, 5)}
        assert np.array_equal(np.stack([rows[str(row)] for row in range(-3, 5)]), VECTORS)
        (fields,) = store.fetch_metadata(["-1"])
        assert fields == {"year": 1999, "title": "t-1", "open": False, "weight": -0.5, "extra": "x"}
        for text in ("9", "01", "1.0", "x", "99999999999999999999"):
            with pytest.raises(UnknownIdError):
                store.fetch([text])


def test_fields_of_others_are_filtered_by_as_the_contract_says(place):
    with open_store(place.url(theirs(place))) as store:
        assert answers(store, year=2002) == answers(store, year=2002.0) == ["2"]
        assert answers(store, weight=1) == answers(store, weight=1.0) == ["2"]
        assert answers(store, open=True) == ["-2", "0", "2", "4"]
        assert answers(store, title="t-3") == ["-3"]
        for nothing in (
            {"year": 2002.5},
            {"year": "2002"},
            {"open": 1},
            {"title": None},
            {"year": True},
        ):
            assert answers(store, **nothing) == []
        # fields without a type: null, and true that is not 1
        assert answers(store, extra=1) == answers(store, extra=1.0) == ["0", "4"]
        assert answers(store, extra=True) == ["-3", "1"]
        assert answers(store, extra=None) == ["-2", "2"]
        assert answers(store, extra="x") == ["-1", "3"]
        assert answers(store, extra=None, year=2002) == ["2"]
        assert answers(store, extra="x", open=True) == answers(store, absent=None) == []


def test_a_collection_of_others_is_written_with_its_own_fields(place):
    found = theirs(place)
    with open_store(place.url(found), space=SPACE) as store:
        row = VectorSet(["7"], VECTORS[:1], SPACE)
        fields = {"year": 1, "title": "seven", "open": True, "weight": 0.5, "more": [1, {"a": 2}]}
        store.upsert(row, metadata=[fields], notes={"cursor": "7"})
        assert store.fetch_metadata(["7"]) == [fields]
        with pytest.raises(InvalidIdError, match="whole numbers of 64 bits"):
            store.upsert(VectorSet(["seven"], VECTORS[:1], SPACE), metadata=[fields])
        with pytest.raises(InputError, match="year"):
            store.upsert(row)
        assert store.delete(["7", "seven"]) == 1
    with open_store(place.url(found)) as store:
        assert (store.recorded, store.notes()) == (True, {"cursor": "7"})
    (row,) = place.client.query(found, filter="pk == 1", output_fields=["title"])
    assert row["title"] == "t1"


def test_keys_of_text_have_the_length_of_their_field(place):
    found = theirs(place, key=DataType.VARCHAR, dynamic=False)
    fields = {"year": 1, "title": "t", "open": True, "weight": 0.5}
    with open_store(place.url(found), space=SPACE) as store:
        assert store.fetch(["k-1"]).ids.tolist() == ["k-1"]
        with pytest.raises(InvalidIdError, match="at most 20 bytes"):
            store.upsert(VectorSet(["x" * 21], VECTORS[:1], SPACE), metadata=[fields])
        with pytest.raises(InputError, match="for the fields of the collection"):
            store.upsert(VectorSet(["a"], VECTORS[:1], SPACE), metadata=[{**fields, "no": 1}])
        assert answers(store, no=1) == answers(store, pk="k-1") == []
        assert store.count() == 8


def test_keys_that_milvus_makes_can_be_read(place):
    found = theirs(place, auto=True)
    with open_store(place.url(found), space=SPACE) as store:
        assert store.count() == len(next(store.scan()).vectors) == 8
        with pytest.raises(UnsupportedOperationError, match="auto_id"):
            store.upsert(VectorSet(["1"], VECTORS[:1], SPACE))


def test_a_collection_without_vectors_of_ours_is_refused(milvus_server):
    place = Place("milvus", milvus_server.url, f"http://{milvus_server.url}")
    found = name()
    schema = place.client.create_schema()
    schema.add_field("id", DataType.INT64, is_primary=True)
    schema.add_field("bits", DataType.BINARY_VECTOR, dim=16)
    place.client.create_collection(found, schema=schema)
    with pytest.raises(UnsupportedOperationError, match="got bits"):
        open_store(place.url(found))
    with pytest.raises(UnsupportedOperationError, match="float32, 'no'; got bits"):
        open_store(place.url(found, "&field=no"))
    place.client.close()


def test_a_collection_that_was_released_is_loaded(place):
    found = theirs(place)
    with open_store(place.url(found)) as store:
        place.client.release_collection(found)
        assert store.count() == 8
        place.client.release_collection(found)
        assert answers(store, year=2001) == ["1"]


def test_an_object_stays_with_its_collection_when_the_alias_moves(place, rows):
    live, space = name(), rows(1).space
    one, two = (
        open_store(place.url(name()), space=space),
        open_store(place.url(name()), space=space),
    )
    one.upsert(rows(3))
    assert one.take_name(live, former="") == ""
    with open_store(place.url(live)) as application:
        assert two.take_name(live, former="").startswith("c")
        assert application.count() == 3
    with open_store(place.url(live)) as application:
        assert application.count() == 0
    with pytest.raises(ParameterError, match="a collection"):
        one.take_name(two.url.rpartition("=")[2], former="")
    one.close()
    two.close()


def test_many_rows_leave_and_come_in_messages_of_a_bearable_size(lite, monkeypatch):
    monkeypatch.setattr("isthmus.stores.milvus.MESSAGE_BYTES", 20_000)
    space = Space(model="m", dim=16)
    vectors = np.random.default_rng(0).standard_normal((50, 16))
    metadata = [{"text": "x" * 1_000 * (row % 7)} for row in range(50)]
    with open_store(lite, space=space) as store:
        ids = [f"row-{row}" for row in range(50)]
        assert store.capabilities.max_batch == 62
        store.upsert(VectorSet(ids, vectors, space), metadata=metadata)
        assert store.fetch_metadata(ids) == metadata
        assert [len(batch.vectors) for batch in store.scan()] == [18, 18, 14]


def test_more_values_than_a_field_of_tokens_holds_are_refused(lite):
    space = Space(model="m", dim=2)
    many = {str(value): value for value in range(5_000)}
    with open_store(lite, space=space) as store:
        row = VectorSet(["a"], [[1, 2]], space)
        with pytest.raises(InputError, match="at most 4,096 values"):
            store.upsert(row, metadata=[many])


@pytest.mark.parametrize("wrong", ["index=ivf", "consistency=none", "tls=1"])
def test_options_that_mean_nothing_are_refused(wrong):
    with pytest.raises(ParameterError, match="change the URL"):
        open_store(f"milvus://127.0.0.1:1?collection=c&{wrong}")


def test_an_option_that_nobody_knows_is_refused():
    with pytest.raises(UnknownNameError, match="store option"):
        open_store("milvus://127.0.0.1:1?collection=c&indx=flat")


@pytest.mark.parametrize("wrong", ["1a", "a-b", "é", "a" * 256])
def test_names_that_milvus_refuses_are_refused(wrong):
    with pytest.raises(ParameterError):
        open_store(f"milvus://127.0.0.1:1?collection={wrong}")


@pytest.mark.parametrize("check", searching.CHECKS, ids=store_suite.name)
def test_hnsw_conforms_as_an_approximate_store(check, tmp_path):
    check(
        lambda space: open_store(
            f"milvus-lite:///{tmp_path}/own.db?collection={name()}&index=hnsw", space=space
        )
    )


def test_a_process_that_was_faster_made_the_collection(place, rows, monkeypatch):
    url = place.url(name())
    with open_store(url, space=rows(1).space) as store:
        store.upsert(rows(2))
        monkeypatch.setattr(type(store), "_exists", lambda _: False)
        with open_store(url, space=rows(1).space) as other:
            assert other.count() == 2


def test_hnsw_is_declared_as_approximate(place, rows):
    with open_store(place.url(name(), "&index=hnsw"), space=rows(1).space) as store:
        assert not store.capabilities.exact_search
        store.upsert(rows(50))
        found = store.search(rows(50).vectors[:5], k=1)
        assert found.ids[:, 0].tolist() == [f"row-{row}" for row in range(5)]


def test_weaker_consistency_can_be_asked_for(milvus_server, rows):
    url = f"milvus://{milvus_server.url}?collection={name()}&consistency=session"
    with open_store(url, space=rows(1).space) as store:
        store.upsert(rows(5))
        assert store.count() == 5


# --- Milvus Lite -----------------------------------------------------------------------------


def test_lite_makes_no_file_for_a_collection_that_is_missing(lite, tmp_path):
    with pytest.raises(MissingCollectionError):
        open_store(lite)
    assert not (tmp_path / "own.db").exists()
    with pytest.raises(InputError, match=r"ends in \.db"):
        open_store(f"milvus-lite:///{tmp_path}/own?collection=docs")


def test_lite_is_for_one_process(lite, rows):
    code = "import sys\nfrom isthmus.stores import open_store\nopen_store(sys.argv[1])"
    with open_store(lite, space=rows(1).space):
        other = subprocess.run(
            [sys.executable, "-c", code, lite], capture_output=True, text=True, check=False
        )
    assert "StoreBusyError" in other.stderr
    assert "use a server" in other.stderr


# --- failures --------------------------------------------------------------------------------


def test_a_server_that_is_not_there_is_unreachable(monkeypatch):
    monkeypatch.setenv("ISTHMUS_MILVUS_SECRET", "hush")
    with pytest.raises(StoreUnreachableError) as caught:
        open_store("milvus://me@127.0.0.1:9?collection=c&timeout=0.2")
    assert "hush" not in repr(caught.value)


class Refusal(Exception):  # noqa: N818 - stands for an error of the client
    def __init__(self, code, message):
        super().__init__(message)
        self.code, self.message = code, message


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        (Refusal(65535, "auth check failure, check the password hush"), AccessDeniedError),
        (Refusal(65535, "permission deny: hush"), AccessDeniedError),
        (Refusal(9, "quota exceeded: hush"), StoreFullError),
        (Refusal(65535, "write: no space left on device: hush"), StoreFullError),
        (Refusal(65535, "something else: hush"), StoreError),
        (Refusal(1100, "invalid parameter: hush"), InputError),
    ],
)
def test_errors_of_the_server_are_said_in_our_words(monkeypatch, lite, rows, refusal, kind):
    def fail(*_, **__):
        raise refusal

    monkeypatch.setenv("ISTHMUS_MILVUS_LITE_SECRET", "hush")
    with open_store(lite, space=rows(1).space) as store:
        monkeypatch.setattr(store._client, "upsert", fail)
        with pytest.raises(kind) as caught:
            store.upsert(rows(2))
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "module", "extra"),
    [
        ("milvus://127.0.0.1:9", "pymilvus", "milvus"),
        ("milvus-lite:///x.db", "milvus_lite", "milvus-lite"),
    ],
)
def test_a_missing_client_is_named_with_its_line(monkeypatch, url, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'isthmus\[{extra}\]'"):
        open_store(f"{url}?collection=docs")
