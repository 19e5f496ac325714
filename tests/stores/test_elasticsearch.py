"""Elasticsearch and OpenSearch: indices of others, faults, what they answer to wrong requests."""

from __future__ import annotations

import json
import sys
import uuid

import numpy as np
import pytest
from tests.fakes.elasticsearch import FakeElasticsearch, FakeOpensearch, Index

from isthmus.errors import (
    AccessDeniedError,
    EmptyInputError,
    InputError,
    InvalidIdError,
    MissingCollectionError,
    MissingExtraError,
    ParameterError,
    ReadOnlyStoreError,
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
from isthmus.stores._elastic_fields import Fields
from isthmus.testing import store_suite
from isthmus.testing.store_suite import searching, writing

SPACE = Space(model="m", dim=4, metric="l2")
VECTORS = np.array([[1, 2, 3, row] for row in range(6)], np.float32)


@pytest.fixture(params=["elasticsearch", "opensearch"])
def scheme(request):
    return request.param


@pytest.fixture
def server(scheme):
    with {"elasticsearch": FakeElasticsearch, "opensearch": FakeOpensearch}[scheme]() as found:
        yield found


@pytest.fixture
def at(scheme, server):
    def url(name, more="", user=""):
        return f"{scheme}://{user}{server.url}?collection={name}{more}&timeout=5"

    return url


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch):
    monkeypatch.setenv("SECRET", "hush")
    monkeypatch.setattr("isthmus.stores._asking.PAUSES", (0.01, 0.02, 0.03))


def vector_field(scheme, **more):
    if scheme == "elasticsearch":
        return {"type": "dense_vector", "dims": 4, "similarity": "l2_norm", **more}
    return {"type": "knn_vector", "dimension": 4, "space_type": "l2", **more}


@pytest.fixture
def theirs(scheme, server):
    """An index as another program makes it, with six documents."""
    properties = {
        "embedding": vector_field(scheme),
        "number": {"type": "long"},
        "title": {"type": "text", "fields": {"keyword": {"type": "keyword"}}},
        "tag": {"type": "keyword"},
        "weight": {"type": "float"},
        "open": {"type": "boolean"},
        "nested": {"type": "object"},
    }
    index = Index(properties=properties, meta={"owner": "them"})
    for row, vector in enumerate(VECTORS.tolist()):
        index.written[f"doc {row}"] = {
            "embedding": vector,
            "number": row,
            "title": f"Title {row}",
            "tag": "even" if row % 2 == 0 else "odd",
            "weight": row / 2,
            "open": row < 2,
            "nested": {"deep": [row]},
        }
    index.seen = dict(index.written)
    server.indices["theirs"] = index
    return "theirs"


@pytest.mark.parametrize("scheme", ["elasticsearch"])  # OpenSearch always declares it
def test_an_index_of_others_without_a_declared_dimension(at, theirs, server):
    field = {"type": "dense_vector", "similarity": "cosine"}
    server.indices[theirs].properties["embedding"] = field
    server.indices[theirs].seen = server.indices[theirs].written = {}
    with pytest.raises(EmptyInputError, match="nobody knows how long"):
        open_store(at(theirs))
    wide = Space(model="m", dim=384)
    with open_store(at(theirs, "&sort=number"), space=wide) as store:
        assert (store.space, store.count(), list(store.scan())) == (wide, 0, [])


def answers(store, **where):
    found = store.search(np.float32([[1, 2, 3, 0]]), k=9, where=where or None)
    return [text for text in found.ids[0].tolist() if text]


def test_an_index_of_others_is_read_as_it_is(at, theirs, server):
    url = at(theirs, "&sort=number")
    with pytest.raises(SpaceMismatchError, match="dimension 4 and metric l2"):
        open_store(url, space=Space(model="m", dim=4))
    with open_store(url) as store:
        assert (store.recorded, store.space.dim, store.space.metric) == (False, 4, "l2")
        assert store.count() == 6
        batches = list(store.scan(batch_size=4))
        assert [batch.vectors.ids.tolist() for batch in batches] == [
            ["doc 0", "doc 1", "doc 2", "doc 3"],
            ["doc 4", "doc 5"],
        ]
        assert np.array_equal(batches[1].vectors.vectors, VECTORS[4:])
        assert [len(one.vectors) for one in store.scan(cursor=batches[0].cursor)] == [2]
        (fields,) = store.fetch_metadata(["doc 1"])
        assert fields == {
            "number": 1,
            "title": "Title 1",
            "tag": "odd",
            "weight": 0.5,
            "open": True,
            "nested": {"deep": [1]},
        }
        with pytest.raises(UnknownIdError):
            store.fetch(["doc 9"])
        with pytest.raises(ParameterError, match="the cursor of a batch"):
            next(store.scan(cursor="after:?"))
    assert server.indices["theirs"].meta == {"owner": "them"}


def test_fields_of_others_are_filtered_by_as_the_contract_says(at, theirs):
    with open_store(at(theirs)) as store:
        assert answers(store, number=2) == answers(store, number=2.0) == ["doc 2"]
        assert answers(store, weight=1) == ["doc 2"]
        assert answers(store, open=True) == ["doc 0", "doc 1"]
        assert answers(store, title="Title 4") == ["doc 4"]
        assert answers(store, tag="even", weight=2.0) == ["doc 4"]
        for nothing in (
            {"number": 2.5},
            {"number": "2"},
            {"number": True},
            {"open": 1},
            {"open": "true"},
            {"tag": 1},
            {"title": 4},
            {"absent": "x"},
            {"nested": "x"},
        ):
            assert answers(store, **nothing) == []
        with pytest.raises(UnsupportedOperationError, match="does not index it"):
            answers(store, tag=None)


def test_text_without_whole_words_cannot_be_filtered_by():
    fields = Fields({"t": {"type": "text"}, "v": {}}, "v", "_id", own=False)
    assert fields.where({"t": "x"})[1] == {"match_none": {}}


def test_an_index_of_others_is_written_beside_what_is_theirs(at, theirs, server):
    with open_store(at(theirs), space=SPACE) as store:
        row = VectorSet(["new"], VECTORS[:1], SPACE)
        store.upsert(row, metadata=[{"number": 7, "more": {"a": 1}}], notes={"cursor": "7"})
        assert store.fetch_metadata(["new"]) == [{"number": 7, "more": {"a": 1}}]
        with pytest.raises(InputError, match="failed to parse"):
            store.upsert(row, metadata=[{"number": "seven"}])
        with pytest.raises(InputError, match="which is the vector"):
            store.upsert(row, metadata=[{"embedding": 1}])
        assert (store.delete(["new", "never"]), store.count()) == (1, 6)
    meta = server.indices["theirs"].meta
    assert meta["owner"] == "them"
    assert meta["isthmus"][":note:cursor"] == "7"
    assert ":layout" not in meta["isthmus"]
    with open_store(at(theirs)) as store:
        assert (store.recorded, store.notes()) == (True, {"cursor": "7"})


def test_a_scan_by_the_id_itself_is_for_servers_that_allow_it(at, theirs, scheme):
    with open_store(at(theirs)) as store:
        if scheme == "opensearch":
            assert len(next(store.scan()).vectors) == 6
            return
        with pytest.raises(UnsupportedOperationError, match="&sort=NAME"):
            next(store.scan())


def test_vectors_of_others_are_named_where_there_are_several(at, theirs, server, scheme):
    server.indices["theirs"].properties["image"] = vector_field(scheme)
    with pytest.raises(UnsupportedOperationError, match=r"embedding \(float\), image \(float\)"):
        open_store(at(theirs))
    with pytest.raises(UnsupportedOperationError, match="'tag'; got"):
        open_store(at(theirs, "&field=tag"))
    with open_store(at(theirs, "&field=embedding")) as store:
        assert "image" not in store.fetch_metadata(["doc 0"])[0]
        assert answers(store)[0] == "doc 0"
    with open_store(at(theirs, "&field=image")) as store:
        assert store.count() == 0


def test_vectors_of_bytes_are_refused(at, theirs, server, scheme):
    kind = {"element_type": "byte"} if scheme == "elasticsearch" else {"data_type": "byte"}
    server.indices["theirs"].properties["embedding"] |= kind
    with pytest.raises(UnsupportedOperationError, match=r"got embedding \(byte\)"):
        open_store(at(theirs))


def test_their_graph_is_searched_when_asked_for(at, theirs, scheme, server):
    if scheme == "opensearch":
        server.indices["theirs"].knn = True
        server.indices["theirs"].properties["embedding"] = {
            "type": "knn_vector",
            "dimension": 4,
            "method": {"name": "hnsw", "engine": "lucene", "space_type": "l2"},
        }
    with open_store(at(theirs, "&index=hnsw")) as store:
        assert not store.capabilities.exact_search
        assert answers(store, tag="odd") == ["doc 1", "doc 3", "doc 5"]
        found = store.search(VECTORS[:1], k=2)
        assert found.native_scores.tolist() == [[1.0, 0.5]]
        assert found.scores.tolist() == [[0.0, -1.0]]


@pytest.mark.parametrize(
    "check", [*searching.CHECKS, writing.reads_back_as_declared], ids=store_suite.name
)
def test_the_graph_conforms_as_an_approximate_store(check, at):
    check(lambda space: open_store(at(uuid.uuid4().hex, "&index=hnsw"), space=space))


def test_a_process_that_was_faster_made_the_index(at, rows, monkeypatch):
    with open_store(at("docs"), space=rows(1).space) as store:
        store.upsert(rows(2))
        monkeypatch.setattr(type(store), "_exists", lambda _: False)
        with open_store(at("docs"), space=rows(1).space) as other:
            assert other.count() == 2


def test_an_alias_of_several_indices_is_refused(at, server):
    server.indices = {"one": Index(), "two": Index()}
    server.aliases = {"both": {"one", "two"}}
    with pytest.raises(UnsupportedOperationError, match="got one, two"):
        open_store(at("both"))
    with pytest.raises(UnsupportedOperationError, match="one vector field of float32; got none"):
        open_store(at("one"))


def test_a_name_that_is_an_index_is_not_taken(at, rows):
    with (
        open_store(at("one"), space=rows(1).space) as one,
        open_store(at("two"), space=rows(1).space),
        pytest.raises(ParameterError, match="'two', which is a collection"),
    ):
        one.take_name("two", former="")


def test_an_alias_of_several_indices_is_not_moved(at, server, rows):
    with (
        open_store(at("one"), space=rows(1).space) as one,
        open_store(at("two"), space=rows(1).space) as two,
    ):
        assert one.take_name("live", former="") == ""
        for name in ("one", "two"):
            server.aliases.setdefault("live", set()).add(name)
        with pytest.raises(ParameterError, match="'live', which leads to one, two"):
            two.take_name("live", former="")
        assert server.aliases["live"] == {"one", "two"}


def test_an_object_stays_with_its_index_when_the_alias_moves(at, rows):
    space = rows(1).space
    with open_store(at("one"), space=space) as one, open_store(at("two"), space=space) as two:
        one.upsert(rows(3))
        assert one.take_name("live", former="") == ""
        with open_store(at("live")) as application:
            assert two.take_name("live", former="") == "one"
            assert application.count() == 3
        with open_store(at("live")) as application:
            assert application.count() == 0


def test_own_documents_look_as_anyone_would_write_them(at, server, rows):
    with open_store(at("docs"), space=rows(1).space) as store:
        store.upsert(rows(1), metadata=[{"title": "Ærø", "tags": ["a", None]}])
    (document,) = server.indices["docs"].seen.values()
    assert document["id"] == "row-0"
    assert document["metadata"] == {"title": "Ærø", "tags": ["a", None]}
    assert len(document["tokens"]) == 1
    assert len(document["vector"]) == 16


def test_a_second_vector_leaves_the_row_as_it_is_and_can_be_removed(at, rows):
    other = Space(model="other", dim=3)
    with open_store(at("docs"), space=rows(1).space) as store:
        store.upsert(rows(3), metadata=[{"n": row} for row in range(3)])
        with open_store(at("docs", "&vector=second"), space=other) as second:
            vectors = VectorSet(["row-0", "row-1", "new"], np.eye(3), other)
            second.upsert(vectors)
            assert second.fetch_metadata(["row-1", "new"]) == [{"n": 1}, {}]
            second.upsert(vectors.select([0]), metadata=[{"m": {"x": 1}}])
            assert second.fetch_metadata(["row-0"]) == [{"m": {"x": 1}}]
            assert (second.delete(["row-0"]), second.count()) == (1, 2)
        assert (store.count(), store.fetch_metadata(["row-0"])) == (3, [{"m": {"x": 1}}])
        with pytest.raises(ParameterError, match="is free"):
            open_store(at("docs", "&vector=tokens"), space=other)


def test_requests_are_of_a_bearable_size(at, rows, server, monkeypatch):
    monkeypatch.setattr("isthmus.stores._elastic.MESSAGE_BYTES", 30_000)
    with open_store(at("docs"), space=rows(1).space) as store:
        assert store.capabilities.max_batch == 34
        metadata = [{"text": "x" * 300 * (row % 40)} for row in range(60)]
        store.upsert(rows(60), metadata=metadata)
        assert store.fetch_metadata([f"row-{row}" for row in range(60)]) == metadata
        assert [len(batch.vectors) for batch in store.scan()] == [21, 21, 18]
    sizes = [len(json.dumps(r.body)) for r in server.requests if r.path[-1] == "_bulk"]
    assert len(sizes) > 4
    assert max(sizes) < 45_000


def test_more_answers_than_the_window_are_refused_only_where_there_are_more(at, rows):
    with open_store(at("docs"), space=rows(1).space) as store:
        store.upsert(rows(3))
        assert store.search(rows(1).vectors, k=10_001).ids.shape == (1, 10_001)
        store._count = lambda: 10_001
        with pytest.raises(ParameterError, match="k of at most 10,000"):
            store.search(rows(1).vectors, k=10_001)


@pytest.mark.parametrize("wrong", ["index=ivf", "tls=1"])
def test_options_that_mean_nothing_are_refused(at, wrong):
    with pytest.raises(ParameterError, match="change the URL"):
        open_store(at("docs", f"&{wrong}"))


def test_an_option_that_nobody_knows_is_refused(at):
    with pytest.raises(UnknownNameError, match="store option"):
        open_store(at("docs", "&vektor=x"))


@pytest.mark.parametrize("wrong", ["Docs", "_docs", "a b", "a%23", "..", "x" * 256])
def test_names_that_the_databases_refuse_are_refused(at, wrong):
    with pytest.raises(ParameterError):
        open_store(at(wrong), space=SPACE)


def test_a_name_that_only_the_server_refuses(at):
    with pytest.raises(StoreError, match="Invalid index name"):
        open_store(at("Ærø"), space=SPACE)


def test_a_missing_index_is_missing(at, server, rows):
    with pytest.raises(MissingCollectionError):
        open_store(at("docs"))
    with open_store(at("docs"), space=rows(1).space) as store:
        server.indices.clear()
        for request in (store.count, store.notes, lambda: store.upsert(rows(1))):
            with pytest.raises(MissingCollectionError):
                request()


# --- faults ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [{"status": 503}, {"status": 429}, {"drop": True}, {"drop": True, "after": True}],
    ids=["503", "429", "dropped before", "dropped after"],
)
def test_what_passes_is_tried_again(at, server, rows, fault):
    with open_store(at("docs"), space=rows(1).space) as store:
        for part in ("_bulk", "_mapping", "_count", "_search", "_msearch"):
            server.fail(times=2, only=part, body={"error": "busy", "status": 503}, **fault)
        store.upsert(rows(5), notes={"cursor": "5"})
        assert store.count() == 5
        assert store.fetch(["row-1"]).ids.tolist() == ["row-1"]
        assert store.search(rows(1).vectors, k=1).ids.tolist() == [["row-0"]]
        assert store.notes() == {"cursor": "5"}


def test_an_item_that_was_rejected_is_written_again(at, server, rows):
    with open_store(at("docs"), space=rows(1).space) as store:
        rejected = {"type": "es_rejected_execution_exception", "reason": "queue is full"}
        item = {"index": {"_id": "row-0", "status": 429, "error": rejected}}
        server.fail(only="_bulk", status=200, body={"errors": True, "items": [item]})
        store.upsert(rows(2))
        assert store.count() == 2
        assert sum(request.path[-1] == "_bulk" for request in server.requests) == 1


def test_a_slow_answer_is_not_waited_for(scheme, server, rows):
    url = f"{scheme}://{server.url}?collection=docs&timeout=0.3"
    with open_store(url, space=rows(1).space) as store:
        server.fail(wait=1.0, only="_count")
        assert store.count() == 0


def error(kind, reason):
    return {"error": {"type": kind, "reason": reason}, "status": 0}


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((401, error("security_exception", "no, hush")), AccessDeniedError),
        ((403, error("security_exception", "no, hush")), AccessDeniedError),
        ((507, error("insufficient_storage", "hush")), StoreFullError),
        ((400, error("parsing_exception", "odd, hush")), StoreError),
        ((400, "odd, hush"), StoreError),
        ((503, error("unavailable", "hush")), StoreUnreachableError),
    ],
)
def test_refusals_are_said_in_our_words(at, server, rows, answer, kind):
    status, body = answer
    with open_store(at("docs", "&secret=SECRET", "me@"), space=rows(1).space) as store:
        server.fail(status=status, body=body, times=4)
        with pytest.raises(kind) as caught:
            store.count()
    assert "hush" not in str(caught.value)
    assert "hush" not in store.url


def test_a_disk_that_is_full_and_an_index_that_is_blocked(at, server, rows):
    with open_store(at("docs"), space=rows(1).space) as store:
        server.blocked = "disk usage exceeded flood-stage watermark, index has a block"
        with pytest.raises(StoreFullError, match="flood-stage"):
            store.upsert(rows(1))
        server.blocked = "index [docs] blocked by: [FORBIDDEN/8/index write (api)]"
        with pytest.raises(ReadOnlyStoreError, match="blocked for writing"):
            store.upsert(rows(1))
        server.blocked = None
        store.upsert(rows(1))


def test_an_id_of_513_bytes_is_refused_before_it_is_sent(at, rows):
    with open_store(at("docs"), space=rows(1).space) as store:
        with pytest.raises(InvalidIdError, match="at most 512 bytes"):
            store.upsert(VectorSet(["é" * 257], rows(1).vectors, rows(1).space))
        store.upsert(VectorSet(["é" * 256], rows(1).vectors, rows(1).space))


@pytest.mark.parametrize(
    ("user", "header"),
    [("me@", "Basic bWU6aHVzaA=="), ("", {"elasticsearch": "ApiKey", "opensearch": "Bearer"})],
)
def test_who_asks_is_told_to_the_server(at, server, scheme, user, header):
    server.authorization = header if isinstance(header, str) else f"{header[scheme]} hush"
    with open_store(at("docs", "&secret=SECRET", user), space=SPACE) as store:
        assert store.count() == 0
    with pytest.raises(AccessDeniedError):
        open_store(at("docs"))


def test_a_missing_client_is_named_with_its_line(at, scheme, monkeypatch):
    module = {"elasticsearch": "elasticsearch", "opensearch": "opensearchpy"}[scheme]
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'isthmus\[{scheme}\]'"):
        open_store(at("docs"))


# --- several vectors of a row ----------------------------------------------------------------


def test_a_write_through_one_field_leaves_the_vectors_of_the_others(at, theirs, server, scheme):
    server.indices["theirs"].properties["image"] = vector_field(scheme)
    written = server.indices["theirs"].written
    written["doc 0"]["image"] = [1.0, 0, 0, 0]
    server.indices["theirs"].seen = dict(written)
    with open_store(at(theirs, "&field=image")) as store:
        space = Space(model="image", dim=4, metric=store.space.metric)
    before = written["doc 0"]
    with open_store(at(theirs, "&field=image"), space=space) as store:
        assert store.delete(["doc 1"]) == 0  # which has no image
        store.upsert(VectorSet(["doc 0", "doc 2"], [[0, 2, 0, 0], [0, 0, 3, 0]], space))
        assert store.count() == 2
    assert written["doc 0"] == {**before, "image": [0, 2, 0, 0]}
    assert {"embedding", "image"} <= written["doc 2"].keys()
    assert "doc 1" in written


def test_a_second_vector_that_came_while_the_store_was_open_stays(at, rows):
    first, second = rows(3), Space(model="second", dim=2)
    with open_store(at("docs"), space=first.space) as store:
        store.upsert(first)
        with open_store(at("docs", "&vector=second"), space=second) as beside:
            beside.upsert(VectorSet(first.ids, [[1, 2]] * 3, second))
            store.upsert(first, metadata=[{"a": {"b": 1}}] * 3)
            store.upsert(first, metadata=[{"a": {"c": 1}}] * 3)
            assert beside.count() == 3
            assert beside.fetch_metadata(["row-0"]) == [{"a": {"c": 1}}]
