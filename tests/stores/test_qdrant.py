"""Qdrant, its engine in this process and a fake of its server: what users have, traps, failures."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import traceback

import numpy as np
import pytest
import qdrant_client
import qdrant_edge
from qdrant_client import models
from tests.fakes import FakeQdrant

from isthmus.errors import (
    AccessDeniedError,
    CorruptStoreError,
    InputError,
    MissingCollectionError,
    MissingExtraError,
    NotAStoreError,
    ParameterError,
    SpaceMismatchError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnreachableError,
    UnsupportedOperationError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.stores import _asking, open_store
from isthmus.stores._qdrant_errors import in_our_words
from isthmus.stores._qdrant_points import native_id

SPACE = Space(model="m", dim=3)
ROWS = VectorSet(["a", "7", "c"], [[1, 0, 0], [0, 2, 0], [3, 3, 0]], SPACE)
THEIR_UUID = "0b66cc44-b7b6-4e58-9d80-fc7c4fd0f8df"


@pytest.fixture
def pauses(monkeypatch):
    """Seconds that were waited for between tries; none is waited."""
    found: list[float] = []
    monkeypatch.setattr(_asking.time, "sleep", found.append)
    return found


@pytest.fixture
def fake():
    with FakeQdrant() as server:
        yield server


@pytest.fixture(params=["qdrant", "qdrant+http"])
def url(request, tmp_path):
    if request.param == "qdrant":
        return f"qdrant:///{tmp_path}?collection=docs"
    return f"qdrant+http://{request.getfixturevalue('fake').url}?collection=docs"


def client_of(url):
    host, port = url.removeprefix("qdrant+http://").partition("?")[0].split(":")
    return qdrant_client.QdrantClient(host=host, port=int(port), check_compatibility=False)


def made_by_another(url, vectors, points):
    """Make a collection as an application would, with the library of its own.

    `vectors`: name -> (size, distance); points: (id, vector or vectors by name, payload).
    """
    if url.startswith("qdrant+http"):
        params = {n: models.VectorParams(size=s, distance=d) for n, (s, d) in vectors.items()}
        client = client_of(url)
        client.create_collection("docs", vectors_config=params.get("", params))
        rows = [models.PointStruct(id=i, vector=v, payload=p) for i, v, p in points]
        client.upsert("docs", rows)
        client.close()
        return
    folder = url.removeprefix("qdrant:///").partition("?")[0] + "/docs"
    os.makedirs(folder)  # noqa: PTH103 - as the example of the library has it
    edge = qdrant_edge
    params = {
        n: edge.EdgeVectorParams(s, getattr(edge.Distance, d)) for n, (s, d) in vectors.items()
    }
    shard = edge.EdgeShard.create(folder, edge.EdgeConfig(vectors=params.get("", params)))
    rows = [edge.Point(i, v, p) for i, v, p in points]
    shard.update(edge.UpdateOperation.upsert_points(rows))
    shard.close()


THEIRS = [
    (7, [1.0, 0.0, 0.0], {"year": 2020}),
    (THEIR_UUID, [0.0, 2.0, 0.0], {"year": 2021.0, "tags": [2020]}),
]


class TestIds:
    def test_what_a_point_can_be_called_it_is_called(self, fake):
        url = f"qdrant+http://{fake.url}?collection=docs"
        texts = ["7", THEIR_UUID, "doc", "07", THEIR_UUID.upper(), str(2**64), str(2**64 - 1)]
        with open_store(url, space=SPACE) as store:
            rows = VectorSet(texts, np.eye(7, 3, dtype="f4") + 1, SPACE)
            store.upsert(rows, metadata=[{"n": n} for n in range(7)])
            assert sorted(store.fetch(texts).ids.tolist()) == sorted(texts)
        points = fake.collections["docs"].points
        assert {7, THEIR_UUID, 2**64 - 1} < set(points)
        assert "isthmus_id" not in points[7]["payload"]
        others = [one["payload"] for key, one in points.items() if isinstance(key, str)]
        assert {one["isthmus_id"] for one in others if "isthmus_id" in one} == {
            "doc",
            "07",
            THEIR_UUID.upper(),
            str(2**64),
        }

    def test_a_payload_that_says_another_id_is_not_believed(self, url):
        made_by_another(
            url, {"": (3, "Dot")}, [(1, [1.0, 0, 0], {"isthmus_id": "2"}), (2, [0, 1.0, 0], None)]
        )
        with open_store(url) as store:
            (batch,) = store.scan()
            assert batch.vectors.ids.tolist() == ["1", "2"]

    def test_our_own_keys_are_not_for_others(self, url):
        with open_store(url, space=SPACE) as store:
            with pytest.raises(InputError, match="isthmus_id"):
                store.upsert(ROWS, metadata=[{}, {}, {"isthmus_id": "x"}])
            assert store.count() == 0
            store.upsert(ROWS, metadata=[{"text": '"isthmus_id"'}, {}, {}])


class TestTheirCollections:
    def test_without_a_space(self, url):
        made_by_another(url, {"": (3, "Cosine")}, THEIRS)
        with open_store(url) as store:
            assert not store.recorded
            assert (store.space.dim, store.space.metric) == (3, "cosine")
            assert not store.capabilities.stores_raw
            (batch,) = store.scan()
            assert batch.vectors.ids.tolist() == ["7", THEIR_UUID]
            assert batch.vectors.matrix().tolist() == [[1, 0, 0], [0, 1, 0]]
            assert store.fetch_metadata([THEIR_UUID]) == [{"year": 2021, "tags": [2020]}]
            assert store.search([[1, 1, 0]], k=2, where={"year": 2021}).ids.tolist() == [
                [THEIR_UUID, ""]
            ]
            assert store.search([[1, 1, 0]], k=1, where={"tags": 2020}).ids.tolist() == [[""]]
            with pytest.raises(SpaceMismatchError, match="not recorded"):
                store.upsert(ROWS)

    def test_with_a_space_rows_are_added_as_they_are_there(self, url):
        made_by_another(url, {"": (3, "Cosine")}, THEIRS)
        with open_store(url, space=SPACE) as store:
            assert store.recorded
            store.upsert(ROWS, metadata=[{"new": True}, {"new": True}, {}])
            assert store.count() == 4
            assert store.fetch_metadata(["7", THEIR_UUID]) == [
                {"new": True},
                {"year": 2021, "tags": [2020]},
            ]
            assert store.fetch(["7"]).matrix().tolist() == [[0, 1, 0]]  # as Cosine keeps it
            assert store.delete(["7", "nobody"]) == 1
        with open_store(url) as store:
            assert store.space == SPACE

    def test_another_dimension_or_metric(self, url):
        made_by_another(url, {"": (3, "Euclid")}, THEIRS)
        for space in (SPACE, Space(model="m", dim=4, metric="l2")):
            with pytest.raises(SpaceMismatchError, match="dimension 3 and metric l2"):
                open_store(url, space=space)

    def test_the_only_vector_needs_no_name(self, url):
        made_by_another(url, {"text": (3, "Dot")}, [(1, {"text": [1.0, 2, 3]}, {})])
        with open_store(url) as store:
            assert store.fetch(["1"]).matrix().tolist() == [[1, 2, 3]]
            assert store.search([[1, 0, 0]], k=1).ids == [["1"]]

    def test_of_several_vectors_one_is_named(self, url):
        vectors = {"text": (3, "Dot"), "image": (2, "Euclid"), "both": (2, "Manhattan")}
        points = [
            (1, {"text": [1.0, 2, 3], "image": [1.0, 1]}, {"a": 1}),
            (2, {"image": [2.0, 2]}, {}),
        ]
        made_by_another(url, vectors, points)
        with pytest.raises(ParameterError, match="both, image, text"):
            open_store(url)
        with pytest.raises(UnsupportedOperationError, match="Manhattan"):
            open_store(f"{url}&vector=both")
        with open_store(f"{url}&vector=text") as store:
            assert store.count() == 1
            assert [batch.vectors.ids.tolist() for batch in store.scan()] == [["1"]]
        space = Space(model="i", dim=2, metric="l2")
        with open_store(f"{url}&vector=image", space=space) as store:
            store.upsert(VectorSet(["1", "3"], [[5, 5], [6, 6]], space))
            assert store.count() == 3
            assert store.fetch_metadata(["1"]) == [{"a": 1}]
            assert store.delete(["1"]) == 1
        with open_store(f"{url}&vector=text") as store:
            assert store.fetch(["1"]).matrix().tolist() == [[1, 2, 3]]  # the others stay

    def test_a_first_vector_leaves_the_others(self, url):
        made_by_another(url, {"": (3, "Dot")}, [(1, [1.0, 2, 3], {"a": 1})])
        first, second = Space(model="a", dim=3, metric="dot"), Space(model="b", dim=2)
        with open_store(url, space=first) as one, open_store(f"{url}&vector=b", space=second) as b:
            b.upsert(VectorSet(["1"], [[3, 4]], second))
            one.upsert(VectorSet(["1"], [[9, 9, 9]], first), metadata=[{"new": 1}])
            assert b.fetch(["1"]).matrix() == pytest.approx(np.array([[0.6, 0.8]]))
            assert one.fetch_metadata(["1"]) == [{"new": 1}]


class TestSeveralVectors:
    FIRST, SECOND = Space(model="a", dim=2), Space(model="b", dim=2)

    def both(self, url):
        one = open_store(url, space=self.FIRST)
        two = open_store(f"{url}&vector=b", space=self.SECOND)
        one.upsert(VectorSet(["x"], [[3, 4]], self.FIRST), metadata=[{"v": 1, "a.b": 2, '"': 3}])
        two.upsert(VectorSet(["x"], [[0, 7]], self.SECOND))
        return one, two

    def test_metadata_and_lengths_are_those_of_the_last_write(self, url):
        one, two = self.both(url)
        with one, two:
            assert two.fetch_metadata(["x"]) == [{"v": 1, "a.b": 2, '"': 3}]
            one.upsert(VectorSet(["x"], [[0, 10]], self.FIRST), metadata=[{"v": 2}])
            assert one.fetch(["x"]).matrix().tolist() == [[0, 10]]
            assert two.fetch(["x"]).matrix().tolist() == [[0, 7]]
            assert one.fetch_metadata(["x"]) == [{"v": 2}]
            two.upsert(VectorSet(["x"], [[1, 0]], self.SECOND), metadata=[{"w": 3}])
            assert one.fetch(["x"]).matrix().tolist() == [[0, 10]]
            assert two.fetch(["x"]).matrix().tolist() == [[1, 0]]
            assert one.fetch_metadata(["x"]) == [{"w": 3}]

    def test_two_writers_of_one_row_lose_nothing_of_each_other(self, url):
        one, two = self.both(url)
        with one, two:
            for store, rows in ((one, [[5, 0]]), (two, [[6, 0]])):

                def between(*given, write=store._engine.write, store=store, rows=rows):
                    other = two if store is one else one
                    beside = VectorSet(["x"], np.array(rows) + 1, other.space)
                    other.upsert(beside, metadata=[{"by": 1}] if other is one else None)
                    write(*given)

                store._engine.write = between
                store.upsert(VectorSet(["x"], rows, store.space))
                del store._engine.write
            assert one.fetch(["x"]).matrix() == pytest.approx(np.array([[7, 1]]))
            assert two.fetch(["x"]).matrix().tolist() == [[6, 0]]
            assert one.fetch_metadata(["x"]) == [{"by": 1}]

    def test_other_kinds_of_vectors_stay(self, tmp_path):
        url = f"qdrant:///{tmp_path}?collection=docs"
        one, two = self.both(url)
        with one, two:
            update, shard = qdrant_edge.UpdateOperation, one._engine._open
            shard.update(update.create_sparse_vector("words"))
            (record,) = shard.retrieve([native_id("x")], with_payload=True, with_vector=True)
            words = qdrant_edge.SparseVector([1, 5], [0.5, 0.25])
            point = qdrant_edge.Point(record.id, {**record.vector, "words": words}, record.payload)
            shard.update(update.upsert_points([point]))
            one.upsert(VectorSet(["x"], [[0, 10]], self.FIRST))
            (record,) = shard.retrieve([native_id("x")], with_payload=True, with_vector=True)
            assert (record.vector["words"].indices, record.vector["b"]) == ([1, 5], [0, 1])

    def test_a_folder_is_written_to_by_one_request(self, tmp_path, monkeypatch):
        one, two = self.both(f"qdrant:///{tmp_path}?collection=docs")
        with one, two:
            requests = []

            class Shard:
                def __init__(self, shard):
                    self.shard = shard

                def __getattr__(self, name):
                    return getattr(self.shard, name)

                def update(self, operation):
                    requests.append(operation)
                    self.shard.update(operation)

            monkeypatch.setattr(one._engine, "_shard", Shard(one._engine._open))
            one.upsert(
                VectorSet(["x", "y"], [[0, 10], [1, 0]], self.FIRST), metadata=[{"v": 2}] * 2
            )
            assert len(requests) == 1
            assert one.fetch(["x", "y"]).matrix().tolist() == [[0, 10], [1, 0]]


class TestLengths:
    def test_vectors_of_our_cosine_collections_keep_theirs(self, url):
        space = Space(model="m", dim=4)
        vectors = np.array([[3, 4, 0, 0], [1e-6, 0, 0, 1e-6], [0.6, 0.8, 0, 0], [1e8, 1, 0, 0]])
        with open_store(url, space=space) as store:
            store.upsert(VectorSet(["a", "b", "c", "d"], vectors, space))
            assert store.fetch(["a", "b", "c", "d"]).matrix() == pytest.approx(vectors, rel=1e-6)
            found = store.search(vectors[1:2], k=4)
            assert found.ids[0, 0] == "b"
            assert found.scores[0, 0] == pytest.approx(1.0)
            assert store.fetch_metadata(["a"]) == [{}]

    def test_each_vector_has_its_own(self, url):
        first, second = Space(model="a", dim=3), Space(model="b", dim=2)
        with open_store(url, space=first) as one:
            one.upsert(ROWS.__class__(ROWS.ids, ROWS.vectors, first), metadata=[{"n": 1}] * 3)
            with open_store(f"{url}&vector=b", space=second) as b:
                b.upsert(VectorSet(["a", "7", "new"], [[3, 4], [0, 2], [5, 0]], second))
                assert b.fetch(["a", "7", "new"]).matrix() == pytest.approx(
                    np.array([[3, 4], [0, 2], [5, 0]])
                )
                assert b.fetch_metadata(["a", "new"]) == [{"n": 1}, {}]
        with open_store(url) as one, open_store(f"{url}&vector=b") as b:
            assert one.count() == 3
            assert one.fetch(["a", "7", "c"]).matrix() == pytest.approx(ROWS.matrix())
            one.upsert(VectorSet(["a"], [[0, 0, 4]], first))
            assert b.fetch(["a"]).matrix() == pytest.approx(np.array([[3, 4]]))
            assert one.fetch_metadata(["a"]) == [{}]


class TestNumbers:
    VALUES = (90.33333333333333, 1e300, -1.7976931348623157e308, 5e-324, 0.1, 1 / 3, 1e22, 2.0)

    def test_they_come_back_to_the_last_digit(self, url):
        numbers = [*np.random.default_rng(0).normal(size=500).tolist(), *self.VALUES]
        fields = [{"f": one, "in": {"a": [one, "x"]}} for one in numbers]
        ids = [f"r{row}" for row in range(len(numbers))]
        with open_store(url, space=SPACE) as store:
            store.upsert(VectorSet(ids, np.ones((len(ids), 3)), SPACE), metadata=fields)
        with open_store(url) as store:
            assert store.fetch_metadata(ids) == fields
            for text, one in zip(ids[-50:], numbers[-50:], strict=True):
                assert store.search([[1, 1, 1]], k=2, where={"f": one}).ids.tolist() == [[text, ""]]

    def test_what_another_program_writes_there_is_what_counts(self, fake):
        odd = {"f": 90.33333333333333, "g": {"a": [1 / 3]}}
        with open_store(f"qdrant+http://{fake.url}?collection=docs", space=SPACE) as store:
            store.upsert(ROWS, metadata=[odd] * 3)
            store.upsert(ROWS.select([1]), metadata=[{"f": 1.5}])
            assert store.fetch_metadata(["a", "7"]) == [odd, {"f": 1.5}]
            payload = fake.collections["docs"].points[native_id("a")]["payload"]
            payload |= {"f": 90.5}
            assert store.fetch_metadata(["a"]) == [odd | {"f": 90.5}]
            payload |= {"isthmus_exact": 7}
            assert store.fetch_metadata(["a"]) == [odd | {"f": 90.5}]


class TestFilters:
    VALUES = (
        1, 1.0, True, False, None, "1", "", [1], [True], [None], [], {"a": 1}, 2.5, 0, -0.0,
        2**60, 2**60 + 1, float(2**60), -(2**60), "x", [[1]], "é",
    )  # fmt: skip

    def filled(self, url):
        rows = VectorSet(
            [str(row) for row in range(len(self.VALUES))],
            np.random.default_rng(0).normal(size=(len(self.VALUES), 3)),
            SPACE,
        )
        keys = ("plain", "a.b", "a[]", " ", '"', "\\", "🚢", "")
        fields = [dict.fromkeys(keys, value) for value in self.VALUES]
        store = open_store(url, space=SPACE)
        store.upsert(rows, metadata=fields)
        return store, keys

    def test_each_value_is_told_from_every_other(self, url):
        from isthmus.stores import MemoryStore

        store, keys = self.filled(url)
        reference = MemoryStore(SPACE)
        (batch,) = store.scan()
        reference.upsert(batch.vectors, metadata=batch.metadata)
        query = np.ones((1, 3), np.float32)
        with store:
            for key in keys:
                for value in self.VALUES:
                    if isinstance(value, list | dict):
                        continue
                    expected = reference.search(query, k=9, where={key: value})
                    found = store.search(query, k=9, where={key: value})
                    assert set(found.ids[0]) == set(expected.ids[0]), (key, value)

    def test_several_at_once(self, url):
        store, _ = self.filled(url)
        with store:
            found = store.search(np.ones((1, 3)), k=2, where={'"': "é", "plain": "é", "🚢": "é"})
            assert found.ids.tolist() == [["21", ""]]
            found = store.search(np.ones((1, 3)), k=2, where={'"': "é", "plain": "x"})
            assert found.ids.tolist() == [["", ""]]


class TestEngine:
    @pytest.fixture
    def url(self, tmp_path):
        return f"qdrant:///{tmp_path}/store?collection=docs"

    def test_one_folder_is_shared_within_a_process(self, url):
        with open_store(url, space=SPACE) as one, open_store(url) as other:
            one.upsert(ROWS)
            one.close()
            assert other.count() == 3
        with open_store(url) as again:
            assert again.count() == 3

    def test_threads_share_an_object(self, url):
        with open_store(url, space=SPACE) as store:
            parts = [
                VectorSet([f"{t}-{n}" for n in range(50)], np.ones((50, 3)), SPACE)
                for t in range(4)
            ]
            threads = [threading.Thread(target=store.upsert, args=(part,)) for part in parts]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert store.count() == 200

    def test_another_process_is_told_to_wait(self, url, tmp_path):
        open_store(url, space=SPACE).close()
        hold = (
            "import qdrant_edge, sys\n"
            f"shard = qdrant_edge.EdgeShard.load({str(tmp_path / 'store' / 'docs')!r})\n"
            "print('open', flush=True)\n"
            "sys.stdin.read()\n"
        )
        command = [sys.executable, "-c", hold]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other:
            assert other.stdout.readline() == "open\n"
            with pytest.raises(StoreBusyError, match="end the other process"):
                open_store(url)
            other.stdin.close()
        with open_store(url) as store:
            assert store.count() == 0

    def test_approximate_search_where_it_is_asked_for(self, url):
        with open_store(f"{url}&index=hnsw", space=SPACE) as store:
            assert not store.capabilities.exact_search
            store.upsert(ROWS)
            assert store.search([[0, 1, 0]], k=1).ids == [["7"]]
        with pytest.raises(ParameterError, match="index as exact or hnsw"):
            open_store(f"{url}&index=ivf")

    def test_folders_that_are_something_else(self, url, tmp_path):
        (tmp_path / "store" / "docs").mkdir(parents=True)
        (tmp_path / "store" / "docs" / "letter.txt").write_text("dear")
        with pytest.raises(MissingCollectionError):
            open_store(url)
        with pytest.raises(NotAStoreError, match="holds other things"):
            open_store(url, space=SPACE)
        local = qdrant_client.QdrantClient(path=str(tmp_path / "local"))
        local.create_collection(
            "docs", vectors_config=models.VectorParams(size=3, distance="Cosine")
        )
        local.close()
        with pytest.raises(NotAStoreError, match="local mode"):
            open_store(f"qdrant:///{tmp_path}/local?collection=docs")

    def test_nothing_is_made_by_looking(self, url, tmp_path):
        with pytest.raises(MissingCollectionError):
            open_store(url)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("name", ["..", ".", "a%2Fb", "a%5Cb", "a%0Ab"])
    def test_a_name_is_never_a_path(self, url, name):
        with pytest.raises(ParameterError, match="collection name"):
            open_store(url.replace("docs", name), space=SPACE)

    @pytest.mark.parametrize(("file", "text"), [("isthmus.json", "{"), ("isthmus.json", "[]")])
    def test_a_record_that_was_damaged(self, url, tmp_path, file, text):
        open_store(url, space=SPACE).close()
        (tmp_path / "store" / "docs" / file).write_text(text)
        with pytest.raises(CorruptStoreError, match="record of a collection"):
            open_store(url)

    def test_no_client(self, url, monkeypatch):
        monkeypatch.setitem(sys.modules, "qdrant_edge", None)
        with pytest.raises(MissingExtraError, match=r"pip install 'isthmus\[qdrant\]'"):
            open_store(url, space=SPACE)

    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("Service runtime error: No space left on device (os error 28)", StoreFullError),
            ("Permission denied (os error 13)", AccessDeniedError),
            ("Can't init WAL: Kind(WouldBlock)", StoreBusyError),
            ("something else", StoreError),
        ],
    )
    def test_what_its_errors_mean(self, text, kind):
        assert type(in_our_words(Exception(text), url="qdrant:///x", secret=None)) is kind


class TestServer:
    @pytest.fixture
    def at(self, fake):
        return f"qdrant+http://{fake.url}?collection=docs"

    def test_busy_or_cut_off_for_a_moment(self, at, fake, pauses):
        with open_store(at, space=SPACE) as store:
            for fault in (
                {"status": 503, "body": {"status": {"error": "busy"}}},
                {"status": 429, "body": {}, "times": 2},
                {"drop": True},
                {"drop": True, "after": True},  # carried out, but nobody was told
            ):
                fake.fail(**fault, only="/points")
                store.upsert(ROWS, metadata=[{"n": 1}] * 3)
                assert (store.count(), fake.faults) == (3, [])
        assert pauses == [0.1, 0.1, 0.4, 0.1, 0.1]

    def test_busy_for_longer(self, at, fake, pauses):
        with open_store(at, space=SPACE) as store:
            fake.fail(status=503, body={"status": {"error": "loading"}}, times=4)
            with pytest.raises(StoreBusyError, match=r"503: .*loading"):
                store.count()
        assert pauses == [*_asking.PAUSES]

    def test_an_answer_that_takes_too_long_is_asked_for_again(self, at, fake, pauses):
        with open_store(f"{at}&timeout=0.5", space=SPACE) as store:  # in whole seconds: 1
            fake.fail(wait=1.2, only="count")
            assert store.count() == 0
        assert pauses == [0.1]

    def test_gone_and_back_again(self, at, fake, pauses):
        with open_store(at, space=SPACE) as store:
            store.upsert(ROWS, notes={"cursor": "1"})
            fake.kill()
            for ask in (store.count, store.notes, lambda: store.upsert(ROWS)):
                with pytest.raises(StoreUnreachableError, match="in one of 4 tries"):
                    ask()
            with pytest.raises(StoreUnreachableError):
                open_store(at)
            fake.restart()
            assert (store.count(), store.notes()) == (3, {"cursor": "1"})
        assert len(pauses) == 12

    def test_a_wrong_key_is_never_shown(self, at, fake, monkeypatch):
        fake.api_key = "right"
        with pytest.raises(AccessDeniedError, match="401"):
            open_store(at)
        monkeypatch.setenv("KEY", "s3cret")
        fake.fail(status=403, body={"status": {"error": "s3cret is not enough"}}, times=9)
        with pytest.raises(AccessDeniedError, match=r"\*\*\* is not enough") as caught:
            open_store(f"{at}&secret=KEY")
        assert "s3cret" not in "".join(traceback.format_exception(caught.value))
        fake.faults.clear()
        monkeypatch.setenv("KEY", "right")
        with open_store(f"{at}&secret=KEY", space=SPACE) as store:
            store.upsert(ROWS)
            assert store.count() == 3
            assert "right" not in f"{store.url} {store!r} {store.info()}"

    def test_a_key_that_may_only_read(self, at, fake, monkeypatch):
        open_store(at, space=SPACE).close()
        fake.api_key, fake.read_only_key = "all", "reads"
        monkeypatch.setenv("ISTHMUS_QDRANT_HTTP_SECRET", "reads")
        with open_store(at) as store:
            assert store.count() == 0
            with pytest.raises(AccessDeniedError, match="403"):
                store.upsert(ROWS)

    def test_a_key_that_may_not_see_aliases(self, at, fake):
        fake.fail(status=403, body={}, only="/aliases")
        open_store(at, space=SPACE).close()
        assert fake.faults == []

    def test_a_server_that_keeps_no_metadata(self, at, fake):
        fake.version = (1, 15)
        with open_store(at, space=SPACE) as store:
            store.upsert(ROWS, notes={"cursor": "1", "other": "x"})
            store.upsert(ROWS, notes={"cursor": "2", "other": ""})
            other = at.replace("docs", "more")
            open_store(other, space=Space(model="n", dim=2)).close()
            with pytest.raises(MissingCollectionError, match="404"):
                open_store(f"{at}&vector=b", space=Space(model="n", dim=2))
        assert fake.collections["docs"].metadata == {}
        assert len(fake.collections["isthmus_records"].points) == 2
        with open_store(at) as store:
            assert (store.space, store.notes()) == (SPACE, {"cursor": "2"})

    def test_metadata_of_others_stay(self, at, fake):
        made_by_another(at, {"": (3, "Cosine")}, THEIRS)
        fake.collections["docs"].metadata["owner"] = "them"
        open_store(at, space=SPACE).close()
        assert fake.collections["docs"].metadata["owner"] == "them"

    def test_an_alias_moves_and_an_open_object_stays(self, at, fake):
        old = open_store(at.replace("docs", "old"), space=SPACE)
        new = open_store(at.replace("docs", "new"), space=Space(model="n", dim=2))
        assert old.take_name("live", former="") == ""
        live = open_store(at.replace("docs", "live"))
        assert new.take_name("live", former="") == "old"
        live.upsert(ROWS)  # opened before the switch: it has the old space
        assert (old.count(), new.count()) == (3, 0)
        assert open_store(at.replace("docs", "live")).space == new.space
        assert fake.aliases == {"live": "new"}
        with pytest.raises(ParameterError, match="'old', which is a collection"):
            new.take_name("old", former="")
        for store in (old, new, live):
            store.close()

    def test_requests_stay_under_the_servers_limit(self, at, fake):
        fake.max_bytes = 32_000_000
        space = Space(model="wide", dim=3072)
        rows = VectorSet(
            [str(n) for n in range(600)],
            np.random.default_rng(0).normal(size=(600, 3072)) * 1e-7,
            space,
        )
        with open_store(at, space=space) as store:
            assert store.capabilities.max_batch < 600
            store.upsert(rows)
            assert store.count() == 600

    def test_long_metadata_make_requests_smaller(self, at, fake):
        fake.max_bytes = 20_000
        rows = VectorSet([f"r{n}" for n in range(40)], np.ones((40, 3)), SPACE)
        with open_store(at, space=SPACE) as store:
            store.upsert(rows, metadata=[{"text": "x" * 2_000}] * 40)
            assert store.count() == 40
            with pytest.raises(InputError, match="larger than allowed"):
                store.upsert(rows.select([0]), metadata=[{"text": "x" * 30_000}])

    def test_a_proxy_puts_it_under_a_path(self, at, fake):
        with pytest.raises(MissingCollectionError):
            open_store(at.replace("?", "/vectors?"))
        assert fake.requests[-1].path[0] == "vectors"

    def test_a_collection_that_is_removed_meanwhile(self, at, fake):
        with open_store(at, space=SPACE) as store:
            del fake.collections["docs"]
            with pytest.raises(MissingCollectionError, match="another program may have removed"):
                store.count()

    def test_made_by_two_at_once(self, at):
        with open_store(at, space=SPACE) as first:
            first.upsert(ROWS)
        with open_store(at, space=SPACE) as store:
            store._engine.create("", next(iter(store._configs.values())))
            assert store.count() == 3


def conditions():
    path = '"m"'
    for value in (1, 0, 2.5, 2**60):
        yield {"key": path, "range": {"gte": value, "lte": value}}
    for value in ("1", "", True, False):
        yield {"key": path, "match": {"value": value}}
    for where in (path, f"{path}[]", '"absent"', '"d"."a"', "d.a"):
        yield {"is_empty": {"key": where}}
        yield {"is_null": {"key": where}}
    yield {"key": path, "values_count": {"lt": 1}}
    yield {"has_id": [1, 2, 3]}
    yield {"has_vector": ""}


def test_the_fake_filters_as_the_engine_does(tmp_path):
    from tests.fakes.qdrant_filter import fulfils

    from isthmus.stores._qdrant_edge import EdgeEngine

    values = TestFilters.VALUES
    payloads = {row: {"m": value, "d": {"a": value}} for row, value in enumerate(values)}
    payloads[99] = {}
    folder = tmp_path / "docs"
    folder.mkdir()
    edge = qdrant_edge
    config = edge.EdgeConfig(vectors=edge.EdgeVectorParams(1, edge.Distance.Dot))
    shard = edge.EdgeShard.create(str(folder), config)
    rows = [edge.Point(key, [1.0], payload) for key, payload in payloads.items()]
    shard.update(edge.UpdateOperation.upsert_points(rows))
    shard.close()
    engine = EdgeEngine(edge, tmp_path, "docs")
    for condition in conditions():
        expected = {point.id for point in engine.scroll(None, 999, [condition], None)}
        found = {
            key
            for key, payload in payloads.items()
            if fulfils({"must": [condition]}, {"id": key, "payload": payload, "vectors": {"": 1}})
        }
        assert found == expected, condition
    engine.close()


def test_ids_follow_from_texts_alone():
    from isthmus.stores._qdrant_points import native_id

    assert native_id("doc") == "57ae5012-0b83-5e3f-970a-106d9d48034d"
