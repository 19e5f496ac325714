"""Weaviate: collections of others, named vectors, faults of its two protocols."""

from __future__ import annotations

import sys
import uuid

import grpc
import numpy as np
import pytest
from tests.fakes.weaviate import Class, FakeWeaviate, GrpcFault, Thing

from isthmus.errors import (
    AccessDeniedError,
    EmptyInputError,
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

SPACE = Space(model="m", dim=4, metric="l2")
VECTORS = np.array([[1, 2, 3, row] for row in range(6)], np.float32)
IDS = [str(uuid.UUID(int=row + 1)) for row in range(6)]
Code = grpc.StatusCode


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch):
    monkeypatch.setenv("SECRET", "hush")
    monkeypatch.setattr("isthmus.stores._asking.PAUSES", (0.01, 0.02, 0.03))


@pytest.fixture
def server():
    with FakeWeaviate() as found:
        yield found


@pytest.fixture
def at(server):
    def url(name, more=""):
        place = f"weaviate://{server.url}?collection={name}"
        return f"{place}&grpc={server.grpc_port}&timeout=5{more}"

    return url


@pytest.fixture
def theirs(server):
    """A class as another program makes it, with six objects."""
    properties = [
        {"name": "number", "dataType": ["int"]},
        {"name": "title", "dataType": ["text"], "tokenization": "word"},
        {"name": "code", "dataType": ["text"], "tokenization": "field"},
        {"name": "weight", "dataType": ["number"]},
        {"name": "open", "dataType": ["boolean"]},
        {"name": "tags", "dataType": ["text[]"], "tokenization": "field"},
        {"name": "sizes", "dataType": ["number[]"]},
        {"name": "counts", "dataType": ["int[]"]},
    ]
    found = Class(
        {
            "class": "Theirs",
            "vectorIndexType": "hnsw",
            "vectorIndexConfig": {"distance": "l2-squared", "pq": {"enabled": False}},
            "properties": properties,
        }
    )
    for row, text in enumerate(IDS):
        fields = {
            "number": row,
            "title": ["Blue ship", "ship", "The Ship", "sea", "blue", "ship"][row],
            "code": f"c{row}",
            "weight": row / 2,
            "open": row < 2,
            "tags": ["even" if row % 2 == 0 else "odd", "all"],
            "sizes": [0.5, row],
            "counts": [],
        }
        found.things[text] = Thing(fields, {"default": VECTORS[row]})
    server.classes["Theirs"] = found
    return "Theirs"


def answers(store, **where):
    found = store.search(np.float32([[1, 2, 3, 0]]), k=9, where=where or None)
    return [IDS.index(text) for text in found.ids[0].tolist() if text]


def test_a_collection_of_others_is_read_as_it_is(at, theirs):
    with pytest.raises(SpaceMismatchError, match="dimension 4 and metric l2"):
        open_store(at(theirs), space=Space(model="m", dim=4))
    with open_store(at(theirs)) as store:
        assert (store.recorded, store.space.dim, store.space.metric) == (False, 4, "l2")
        assert not store.capabilities.exact_search
        assert store.count() == 6
        batches = list(store.scan(batch_size=4))
        assert [batch.vectors.ids.tolist() for batch in batches] == [IDS[:4], IDS[4:]]
        assert np.array_equal(batches[0].vectors.vectors, VECTORS[:4])
        assert store.fetch_metadata([IDS[1]]) == [
            {
                "number": 1,
                "title": "ship",
                "code": "c1",
                "weight": 0.5,
                "open": True,
                "tags": ["odd", "all"],
                "sizes": [0.5, 1.0],
                "counts": [],
            }
        ]
        for text in (str(uuid.UUID(int=99)), "no uuid", IDS[1].upper().replace("0", "A")):
            with pytest.raises(UnknownIdError):
                store.fetch([text])


def test_fields_of_others_are_filtered_by_as_the_contract_says(at, theirs):
    with open_store(at(theirs)) as store:
        assert answers(store, number=2) == answers(store, number=2.0) == [2]
        assert answers(store, weight=1) == [2]
        assert answers(store, open=True) == [0, 1]
        assert answers(store, code="c3", number=3) == [3]
        # the index splits a text into words; a filter means the whole of it
        assert answers(store, title="ship") == [1, 5]
        assert answers(store, title="ship", open=True) == [1]
        for nothing in (
            {"number": 2.5},
            {"number": "2"},
            {"number": True},
            {"open": 1},
            {"code": 3},
            {"title": "blue sea"},
            {"absent": 1},
            {"tags": "all"},
        ):
            assert answers(store, **nothing) == []
        with pytest.raises(UnsupportedOperationError, match="Weaviate keeps none"):
            answers(store, code=None)


def test_a_filter_by_a_word_that_too_many_have_is_refused(at, theirs, monkeypatch):
    monkeypatch.setattr("isthmus.stores.weaviate.MAX_ROWS", 4)
    with (
        open_store(at(theirs)) as store,
        pytest.raises(UnsupportedOperationError, match="fewer than 4 rows"),
    ):
        answers(store, title="ship")


def test_a_collection_of_others_is_written_with_its_own_properties(at, theirs, server):
    with open_store(at(theirs), space=SPACE) as store:
        new = str(uuid.UUID(int=50))
        row = VectorSet([new], VECTORS[:1], SPACE)
        fields = {
            "number": 7,
            "title": "seven",
            "open": True,
            "tags": ["x"],
            "sizes": [1, 2],
            "counts": [3],
            "flags": [True, False],
            "code": None,
        }
        store.upsert(row, metadata=[{**fields, "halves": [0.5]}], notes={"cursor": "7"})
        fields["sizes"] = [1.0, 2.0]
        del fields["code"]
        assert store.fetch_metadata([new]) == [{**fields, "halves": [0.5]}]
        with pytest.raises(InvalidIdError, match="uuids in small letters"):
            store.upsert(VectorSet(["seven"], VECTORS[:1], SPACE))
        for wrong in ({"a": {"b": 1}}, {"a": ["x", 1]}, {"a": [1, True]}):
            with pytest.raises(InputError, match="lists of one of these"):
                store.upsert(row, metadata=[wrong])
        with pytest.raises(StoreError, match="invalid int property"):
            store.upsert(row, metadata=[{"number": "seven"}])
        assert store.delete([new, "seven"]) == 1
    assert len(server.classes["Theirs"].things) == 6
    with open_store(at(theirs)) as store:
        assert (store.recorded, store.notes()) == (True, {"cursor": "7"})


def test_vectors_that_have_names_are_told_apart(at, server):
    config = {"vectorIndexType": "flat", "vectorIndexConfig": {"distance": "cosine"}}
    packed = {"vectorIndexType": "flat", "vectorIndexConfig": {"bq": {"enabled": True}}}
    named = Class({"class": "Named", "vectorConfig": {"text": config, "image": packed}})
    named.things[IDS[0]] = Thing({}, {"text": VECTORS[0], "image": np.float32([1, 2])})
    named.things[IDS[1]] = Thing({}, {"image": np.float32([3, 4])})
    named.things[IDS[2]] = Thing({}, {"text": VECTORS[2]})
    server.classes["Named"] = named
    with pytest.raises(UnsupportedOperationError, match="got image, text"):
        open_store(at("Named"))
    with pytest.raises(UnsupportedOperationError, match="one vector, 'no'; got image, text"):
        open_store(at("Named", "&field=no"))
    space = Space(model="m", dim=4)
    with open_store(at("Named", "&field=text"), space=space) as store:
        assert store.capabilities.exact_search
        assert [b.vectors.ids.tolist() for b in store.scan(batch_size=1)] == [[IDS[0]], [IDS[2]]]
        assert store.search(VECTORS[2:3], k=5).ids[0, :2].tolist() == [IDS[2], IDS[0]]
        store.upsert(VectorSet([IDS[3]], VECTORS[3:4], space))
        assert np.array_equal(store.fetch([IDS[3]]).vectors, VECTORS[3:4])
    with open_store(at("Named", "&field=image")) as store:
        assert (store.space.dim, store.capabilities.exact_search) == (2, False)
    del named.schema["vectorConfig"]["image"]
    with open_store(at("Named")) as store:
        assert store.space.dim == 4


@pytest.fixture
def named(server):
    """A class of others with two vectors; not every object has both."""
    config = {"vectorIndexType": "flat", "vectorIndexConfig": {"distance": "cosine"}}
    title = {"name": "title", "dataType": ["text"], "tokenization": "word"}
    day = {"name": "day", "dataType": ["date"]}
    found = Class(
        {
            "class": "Named",
            "vectorConfig": {"text": config, "image": config},
            "properties": [title, day],
        }
    )
    fields = {"title": "Blue ship", "day": "2026-01-01T00:00:00Z"}
    found.things[IDS[0]] = Thing(fields, {"text": VECTORS[0], "image": np.float32([1, 2])})
    found.things[IDS[1]] = Thing({}, {"text": VECTORS[1]})
    found.things[IDS[2]] = Thing({}, {"image": np.float32([3, 4])})
    server.classes["Named"] = found
    return found


def test_a_write_leaves_what_it_does_not_name(at, named):
    space = Space(model="image", dim=2)
    with open_store(at("Named", "&field=image"), space=space) as store:
        rows = VectorSet(IDS[:2] + IDS[3:4], [[5, 6], [7, 8], [9, 9]], space)
        store.upsert(rows, metadata=[{"title": "new"}, {}, {}])
        assert store.fetch(IDS[:1]).matrix().tolist() == [[5, 6]]
    thing = named.things[IDS[0]]
    assert thing.properties == {"title": "new", "day": "2026-01-01T00:00:00Z"}
    assert np.array_equal(thing.vectors["text"], VECTORS[0])
    assert named.things[IDS[1]].vectors.keys() == {"text", "image"}
    assert named.things[IDS[3]].vectors.keys() == {"image"}


def test_an_object_without_the_vector_is_no_row(at, named):
    with open_store(at("Named", "&field=image")) as store:
        assert (store.count(), store.space.dim) == (2, 2)
        assert store.delete([IDS[1]]) == 0
        for ask in (store.fetch, store.fetch_metadata):
            with pytest.raises(UnknownIdError):
                ask([IDS[1]])
        assert store.held([IDS[1]]).ids == []
        assert store.delete([IDS[0], IDS[1]]) == 1
    assert named.things.keys() == {IDS[1], IDS[2]}


def test_what_cannot_be_written_again_is_not_written_over(at, named):
    named.schema["properties"] += [{"name": "by", "dataType": ["Author"]}]
    space = Space(model="image", dim=2)
    with open_store(at("Named", "&field=image"), space=space) as store:
        with pytest.raises(UnsupportedOperationError, match=r"'by' \(Author\)"):
            store.upsert(VectorSet(IDS[:1], [[5, 6]], space))
        store.upsert(VectorSet(IDS[4:5], [[5, 6]], space))
    assert named.things[IDS[0]].vectors["image"].tolist() == [1, 2]
    named.schema["properties"][-1] = {"name": "n", "dataType": ["int"]}
    named.things[IDS[0]].properties["n"] = 2**60
    with (
        open_store(at("Named", "&field=image")) as store,
        pytest.raises(UnsupportedOperationError, match=r"'n' \(int\)"),
    ):
        store.upsert(VectorSet(IDS[:1], [[5, 6]], space))


def test_a_distance_that_no_metric_is_is_refused(at, theirs, server):
    server.classes[theirs].schema["vectorIndexConfig"]["distance"] = "hamming"
    with pytest.raises(UnsupportedOperationError, match="got hamming"):
        open_store(at(theirs))


def test_a_collection_of_others_may_be_empty(at, theirs, server):
    server.classes[theirs].things.clear()
    with pytest.raises(EmptyInputError, match="nobody knows how long"):
        open_store(at(theirs))
    with pytest.raises(SpaceMismatchError, match="any dimension and metric l2, as the database"):
        open_store(at(theirs), space=Space(model="m", dim=384))
    wide = Space(model="m", dim=384, metric="l2")
    with open_store(at(theirs), space=wide) as store:
        assert (store.space, store.count(), list(store.scan())) == (wide, 0, [])


def test_own_objects_can_be_read_by_anyone(at, server, rows):
    with open_store(at("Docs"), space=rows(1).space) as store:
        store.upsert(rows(1), metadata=[{"title": "Ærø", "tags": ["a", None]}])
    (thing,) = server.classes["Docs"].things.values()
    assert thing.properties["text_id"] == "row-0"
    assert thing.properties["metadata"] == '{"title": "Ærø", "tags": ["a", null]}'
    assert server.classes["Docs"].schema["vectorIndexType"] == "flat"
    assert set(server.classes) == {"Docs", "IsthmusRecords"}


def test_a_collection_that_comes_again_has_no_notes_of_the_old_one(at, server, rows):
    with open_store(at("Docs"), space=rows(1).space) as store:
        store.upsert(rows(1), notes={"cursor": "1"})
    del server.classes["Docs"]
    with open_store(at("Docs"), space=Space(model="other", dim=3)) as store:
        assert store.notes() == {}


def test_hnsw_is_declared_as_approximate(at, server, rows):
    with open_store(at("Docs", "&index=hnsw"), space=rows(1).space) as store:
        assert not store.capabilities.exact_search
        store.upsert(rows(3))
        assert store.search(rows(1).vectors, k=1).ids.tolist() == [["row-0"]]
    assert server.classes["Docs"].schema["vectorIndexType"] == "hnsw"


def test_an_object_stays_with_its_collection_when_the_alias_moves(at, rows):
    space = rows(1).space
    with open_store(at("One"), space=space) as one, open_store(at("Two"), space=space) as two:
        one.upsert(rows(3))
        assert one.take_name("Live", former="") == ""
        with open_store(at("Live")) as application:
            assert two.take_name("Live", former="") == "One"
            assert application.count() == 3
        with open_store(at("Live")) as application:
            assert application.count() == 0
        with pytest.raises(ParameterError, match="'Two', which is a collection"):
            one.take_name("Two", former="")


def test_servers_without_aliases_say_so(at, server, rows):
    server.has_aliases = False
    with (
        open_store(at("Docs"), space=rows(1).space) as store,
        pytest.raises(UnsupportedOperationError, match=r"1\.32 or later"),
    ):
        store.take_name("Live", former="")


def test_requests_are_of_a_bearable_size(at, rows, server, monkeypatch):
    monkeypatch.setattr("isthmus.stores.weaviate.MESSAGE_BYTES", 30_000)
    with open_store(at("Docs"), space=rows(1).space) as store:
        metadata = [{"text": "x" * 300 * (row % 40)} for row in range(60)]
        store.upsert(rows(60), metadata=metadata)
        assert store.fetch_metadata([f"row-{row}" for row in range(60)]) == metadata
        assert [len(batch.vectors) for batch in store.scan()] == [14] * 4 + [4]
    sizes = [request.ByteSize() for method, request in server.calls if method == "BatchObjects"]
    assert len(sizes) > 10
    assert max(sizes) < 31_000


def test_more_answers_than_the_server_gives_are_refused_only_where_there_are_more(at, rows):
    with open_store(at("Docs"), space=rows(1).space) as store:
        store.upsert(rows(3))
        assert store.search(rows(1).vectors, k=10_001).ids.shape == (1, 10_001)
        store._count = lambda: 10_001
        with pytest.raises(ParameterError, match="k of at most 10,000"):
            store.search(rows(1).vectors, k=10_001)


@pytest.mark.parametrize("wrong", ["index=ivf", "tls=1"])
def test_options_that_mean_nothing_are_refused(at, wrong):
    with pytest.raises(ParameterError, match="change the URL"):
        open_store(at("Docs", f"&{wrong}"))


def test_an_option_that_nobody_knows_is_refused(at):
    with pytest.raises(UnknownNameError, match="store option"):
        open_store(at("Docs", "&feld=x"))


def test_a_port_that_is_none_is_refused():
    with pytest.raises(ParameterError, match="grpc as a whole number"):
        open_store("weaviate://127.0.0.1?collection=Docs&grpc=x")


@pytest.mark.parametrize("wrong", ["docs", "Do-cs", "1Docs", "D" * 256])
def test_names_that_weaviate_rewrites_or_refuses_are_refused(at, wrong):
    with pytest.raises(ParameterError, match="a collection name"):
        open_store(at(wrong), space=SPACE)


def test_a_missing_collection_is_missing(at, server, rows):
    with pytest.raises(MissingCollectionError):
        open_store(at("Docs"))
    with open_store(at("Docs"), space=rows(1).space) as store:
        server.classes.clear()
        with pytest.raises(MissingCollectionError):
            store.notes()
        with pytest.raises(StoreError, match="could not find class"):
            store.count()


# --- faults ----------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [Code.UNAVAILABLE, Code.RESOURCE_EXHAUSTED, Code.ABORTED])
def test_what_passes_is_tried_again(at, server, rows, code):
    with open_store(at("Docs"), space=rows(1).space) as store:
        for method in ("BatchObjects", "Aggregate", "Search", "BatchDelete"):
            server.grpc_faults.append(GrpcFault(method, code))
        server.fail(status=503, body={}, times=2)
        store.upsert(rows(5), notes={"cursor": "5"})
        assert (store.count(), store.delete(["row-4"]), store.notes()) == (5, 1, {"cursor": "5"})
        server.fail(drop=True)
        assert store.notes() == {"cursor": "5"}


@pytest.mark.parametrize(
    ("code", "details", "kind"),
    [
        (Code.UNAUTHENTICATED, "no, hush", AccessDeniedError),
        (Code.PERMISSION_DENIED, "no, hush", AccessDeniedError),
        (Code.UNKNOWN, "write: no space left on device, hush", StoreFullError),
        (Code.UNKNOWN, "odd, hush", StoreError),
        (Code.UNAVAILABLE, "hush", StoreUnreachableError),
    ],
)
def test_refusals_are_said_in_our_words(at, server, code, details, kind):
    with open_store(at("Docs", "&secret=SECRET"), space=SPACE) as store:
        server.grpc_faults.append(GrpcFault("Aggregate", code, details, times=4))
        with pytest.raises(kind) as caught:
            store.count()
    assert "hush" not in str(caught.value)
    assert "hush" not in store.url


@pytest.mark.parametrize(
    ("status", "kind"), [(401, AccessDeniedError), (403, AccessDeniedError), (422, StoreError)]
)
def test_refusals_by_rest_are_said_in_our_words(at, server, status, kind):
    server.fail(status=status, body={"error": [{"message": "hush"}]})
    with pytest.raises(kind) as caught:
        open_store(at("Docs", "&secret=SECRET"), space=SPACE)
    assert "hush" not in str(caught.value)


def test_a_disk_that_is_nearly_full(at, server, rows):
    with open_store(at("Docs"), space=rows(1).space) as store:
        server.read_only = True
        with pytest.raises(StoreFullError, match="became read-only"):
            store.upsert(rows(1))
        server.read_only = False
        store.upsert(rows(1))


def test_vectors_of_another_length_are_refused_by_the_server_too(at, server, rows):
    with open_store(at("Docs"), space=rows(1).space) as store:
        store.upsert(rows(1))
        server.classes["Docs"].dims["default"] = 3
        with pytest.raises(StoreError, match="new node has a vector with length"):
            store.upsert(rows(1))


def test_the_key_goes_to_both_protocols(at, server, rows):
    server.key = "hush"
    with open_store(at("Docs", "&secret=SECRET"), space=rows(1).space) as store:
        store.upsert(rows(2))
        assert store.count() == 2
    with pytest.raises(AccessDeniedError):
        open_store(at("Docs"))


def test_a_missing_client_is_named_with_its_line(at, monkeypatch):
    monkeypatch.setitem(sys.modules, "weaviate", None)
    monkeypatch.setitem(sys.modules, "weaviate.proto.v1", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'isthmus\[weaviate\]'"):
        open_store(at("Docs"))
