"""Tables of LanceDB: those of other programs, second vectors, an index, bad files."""

from __future__ import annotations

import datetime as dt
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path

import lancedb
import lancedb.index
import numpy as np
import pyarrow as pa
import pytest

from isthmus.errors import (
    CorruptStoreError,
    DuplicateIdError,
    EmptyInputError,
    InputError,
    InvalidIdError,
    InvalidVectorsError,
    MissingCollectionError,
    MissingExtraError,
    NotAStoreError,
    ParameterError,
    SpaceMismatchError,
    StoreBusyError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.stores import open_store
from isthmus.stores._lock import locked

SPACE = Space(model="m", dim=16)
SMALL = Space(model="m", dim=2)
TWO = pa.list_(pa.float32(), 2)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"lancedb:///{tmp_path}/lance?collection=docs"


@pytest.fixture
def made(tmp_path: Path):
    """Make a table as another program does."""

    def make(**columns: object) -> lancedb.table.Table:
        return lancedb.connect(str(tmp_path / "lance")).create_table("docs", data=pa.table(columns))

    return make


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr("isthmus.stores._asking.PAUSES", (0.0, 0.0, 0.0))


# --- tables of other programs --------------------------------------------------------------------


@pytest.fixture
def places(made) -> lancedb.table.Table:
    return made(
        id=pa.array([7, 9, 11], pa.int32()),
        vec=pa.array([[1, 0], [0, 2], None], TWO),
        name=["Aa", "Bé", "no vector"],
        height=pa.array([0.1, np.nan, None], pa.float32()),
        floors=pa.array([3, None, None], pa.int8()),
        price=pa.array([Decimal("1.50"), None, None]),
        seen=pa.array([dt.date(2020, 1, 2), None, None]),
        open=pa.array([True, None, None]),
        tags=pa.array([["x", "y"], None, None]),
        part=pa.array([{"a": [1], "b": b"\xff"}, None, None]),
        **{"two words": pa.array(["x", None, None])},
    )


@pytest.mark.usefixtures("places")
def test_a_table_of_another_program_is_read_without_a_space(url):
    with open_store(url) as store:
        assert not store.recorded
        assert store.count() == 2
        (batch,) = store.scan()
        assert batch.vectors.ids.tolist() == ["7", "9"]
        assert batch.metadata[0] == {
            "name": "Aa",
            "height": pytest.approx(0.1),
            "floors": 3,
            "price": "1.50",
            "seen": "2020-01-02",
            "open": True,
            "tags": ["x", "y"],
            "part": {"a": [1], "b": "ff"},
            "two words": "x",
        }
        assert set(batch.metadata[1].values()) == {"Bé", None}
        assert store.fetch_metadata(["9"]) == [batch.metadata[1]]
        assert store.held(["9", "11", "x"]).ids == ["9"]
        assert not store._table().schema.field("vec").metadata


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"name": "Bé"}, ["9"]),
        ({"name": 1}, []),
        ({"height": 0.1}, ["7"]),
        ({"height": 1}, []),
        ({"height": "0.1"}, []),
        ({"floors": 3}, ["7"]),
        ({"floors": 3.0, "open": True}, ["7"]),
        ({"floors": 3.5}, []),
        ({"floors": 1_000}, []),
        ({"floors": None}, ["9"]),
        ({"floors": True}, []),
        ({"seen": "2020-01-02"}, ["7"]),
        ({"open": True}, ["7"]),
        ({"open": 1}, []),
        ({"tags": "x"}, []),
        ({"two words": "x"}, ["7"]),
        ({"two words": "it's"}, []),
        ({"vec": "x"}, []),
        ({"no such": None}, []),
    ],
)
@pytest.mark.usefixtures("places")
def test_their_columns_are_filters(url, where, expected):
    for option in ("", "&index=yes"):
        with open_store(url + option) as store:
            found = store.search(np.float32([[1, 0]]), k=2, where=where)
            assert [text for text in found.ids[0].tolist() if text] == expected


def test_a_table_is_recorded_when_it_is_opened_with_its_space(url, places):
    with open_store(url, space=SMALL) as store:
        assert store.recorded
        store.upsert(
            VectorSet(["9", "12"], [[5, 5], [6, 6]], SMALL),
            metadata=[{"height": 3, "tags": ["z"]}, {"name": "new", "seen": "2021-01-01"}],
            notes={"cursor": "1"},
        )
        store.upsert(VectorSet(["7"], [[1, 1]], SMALL))
    with open_store(url) as store:
        assert store.recorded
        assert store.notes() == {"cursor": "1"}
        assert store.fetch(["12", "9", "7"]).vectors.tolist() == [[6, 6], [5, 5], [1, 1]]
    with pytest.raises(SpaceMismatchError):
        open_store(url, space=Space(model="other", dim=2))
    places.checkout_latest()
    rows = {row["id"]: row for row in places.to_arrow().to_pylist()}
    assert set(rows) == {7, 9, 11, 12}
    assert rows[9]["name"] == "Bé"  # what no metadata name stays
    assert (rows[9]["height"], rows[9]["tags"]) == (3.0, ["z"])
    assert (rows[12]["name"], rows[12]["seen"]) == ("new", dt.date(2021, 1, 1))
    assert rows[7]["part"] == {"a": [1], "b": b"\xff"}


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"colour": "red"}, "got the field 'colour'"),
        ({"height": "tall"}, "type float for the column 'height'"),
        ({"floors": 1.5}, "type int8"),
        ({"floors": 1_000}, "type int8"),
        ({"floors": True}, "type int8 .* got True"),
        ({"name": 5}, "type string"),
        ({"open": 1}, "type bool"),
        ({"tags": "z"}, "type list<"),
        ({"seen": "yesterday"}, "type date32"),
    ],
)
@pytest.mark.usefixtures("places")
def test_metadata_that_the_columns_do_not_take(url, metadata, message):
    with open_store(url, space=SMALL) as store:
        vectors = VectorSet(["9", "20"], [[5, 5], [6, 6]], SMALL)
        with pytest.raises(InputError, match=message):
            store.upsert(vectors, metadata=[{}, metadata])
        assert store.count() == 2
        assert store.fetch(["9"]).vectors.tolist() == [[0, 2]]


@pytest.mark.parametrize("text", ["x", "07", "1.0", "99999999999", "-", "٣"])
@pytest.mark.usefixtures("places")
def test_an_id_that_their_type_would_rewrite(url, text):
    with open_store(url, space=SMALL) as store:
        with pytest.raises(InvalidIdError, match="the column 'id' of type int32"):
            store.upsert(VectorSet([text], [[1, 1]], SMALL))
        assert store.delete([text, "9"]) == 1
        assert store.count() == 1
        with pytest.raises(ParameterError, match="the cursor of a batch"):
            list(store.scan(cursor=f"after:={text}"))


def test_an_index_tells_its_metric(url, made):
    values = np.random.default_rng(0).standard_normal((400, 16)).astype(np.float32)
    table = made(
        id=[f"r{row}" for row in range(400)],
        vector=pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 16),
    )
    kind = lancedb.index.IvfFlat(distance_type="cosine", num_partitions=2)
    table.create_index("vector", config=kind)
    with pytest.raises(SpaceMismatchError, match="metric cosine"):
        open_store(url, space=Space(model="m", dim=16, metric="l2"))
    with open_store(url, space=SPACE) as exact, open_store(f"{url}&index=yes") as store:
        assert not store.capabilities.exact_search
        one, other = (one.search(values[:50], k=10) for one in (exact, store))
        assert exact.capabilities.exact_search
        same = [set(a) & set(b) for a, b in zip(one.ids.tolist(), other.ids.tolist(), strict=True)]
        assert sum(map(len, same)) >= 400
        first = np.isclose(one.scores[:, 0], other.scores[:, 0])
        assert first.all()  # scores are those of the vectors, not of codes
    with pytest.raises(ParameterError, match="index as yes or no"):
        open_store(f"{url}&index=hnsw")


def test_a_column_of_lists_has_the_length_of_its_rows(url, tmp_path):
    schema = pa.schema({"id": pa.string(), "embedding": pa.list_(pa.float32())})
    table = lancedb.connect(str(tmp_path / "lance")).create_table("docs", schema=schema)
    with pytest.raises(EmptyInputError, match="nobody knows how long"):
        open_store(url)
    with open_store(url, space=SMALL) as store:
        assert (store.count(), store.recorded) == (0, True)
    table.add(pa.table({"id": ["a", "b"], "embedding": [[1.0, 2.0], [3.0, 4.0]]}))
    with open_store(url, space=SMALL) as store:
        store.upsert(VectorSet(["b"], [[5, 6]], SMALL))
        assert store.search([[5, 6]], k=1).ids.tolist() == [["b"]]
    table.checkout_latest()
    table.add(pa.table({"id": ["c"], "embedding": [[1.0, 2.0, 3.0]]}))
    with open_store(url) as store:
        for read in (
            lambda: list(store.scan()),
            lambda: store.fetch(["c"]),
            lambda: store.search([[5, 6]], k=1),
        ):
            with pytest.raises(CorruptStoreError, match=r"rows of .*3 numbers"):
                read()
        (shown,) = store.scan_unchecked()
        assert (shown.ids, shown.others) == (["a", "b"], (("c", 3),))


def test_half_precision_is_declared(url, made):
    values = pa.array(np.float16([0.1, 2.0]))
    made(id=["a"], vector=pa.FixedSizeListArray.from_arrays(values, 2))
    with open_store(url, space=SMALL) as store:
        assert (store.capabilities.storage, store.capabilities.read_back_error) == (
            "float16",
            2**-11,
        )
        store.upsert(VectorSet(["b"], [[0.3, 7]], SMALL))
        assert np.abs(store.fetch(["b"]).vectors - [[0.3, 7]]).max() <= 7 * 2**-11


def test_rows_that_nothing_is_similar_to_are_shown_and_never_found(url, made):
    made(
        id=["zero", "nan", "a", "inf", "null", "none", ""],
        vec=pa.array([[0, 0], [np.nan, 1], [1, 0], [np.inf, 1], [None, 1], None, [1, 1]], TWO),
    )
    with open_store(url) as store:
        assert store.search(np.ones((9, 2)), k=4).ids[0].tolist() == ["", "a", "", ""]
        shown = {text for b in store.scan_unchecked(batch_size=1) for text in b.ids}
        assert shown == {"zero", "nan", "a", "inf", "null", ""}
        with pytest.raises(InvalidVectorsError):
            list(store.scan(batch_size=2, cursor="after:=b"))


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([1, 1], DuplicateIdError, "1 that repeat in the column 'id'"),
        ([1, None], InvalidIdError, "1 rows without one"),
    ],
)
def test_ids_that_are_none(url, made, ids, error, message):
    made(id=ids, vector=pa.array([[1, 2], [3, 4]], TWO))
    with pytest.raises(error, match=message):
        open_store(url)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (("a", "v"), "", "only be the ids; got the columns a int64.*&id=COLUMN"),
        (("id", "a"), "", "only be the vectors.*&column=COLUMN"),
        (("id", "v", "w"), "", "only be the vectors"),
        (("id", "embedding", "vector"), "", "2 of them: 'embedding', 'vector'.*&column=embedding"),
        (("id", "uuid", "v"), "", "2 of them: 'id', 'uuid'"),
        (("id", "v"), "&id=no", "ids in the column 'no'"),
        (("id", "v"), "&column=no", "vectors in the column 'no'"),
        (("id", "v"), "&vector=id", "vectors in the column 'id'"),
    ],
)
def test_columns_that_cannot_be_told(url, made, columns, options, message):
    numbers, vectors = pa.array([1]), pa.array([[1, 2]], TWO)
    made(**{name: vectors if name in "v w embedding vector" else numbers for name in columns})
    with pytest.raises(ParameterError, match=message):
        open_store(url + options)


def test_columns_named_in_the_url(url, made):
    vectors = pa.array([[1, 2]], TWO)
    made(a=["x"], v=vectors, w=vectors, metadata=["plain"])
    with open_store(f"{url}&id=a&column=v", space=SMALL) as store:
        assert store.fetch_metadata(["x"]) == [{"metadata": "plain"}]
        with open_store(f"{url}&id=a&column=v&vector=w", space=Space(model="w", dim=2)) as other:
            assert other.count() == 1


# --- own tables ----------------------------------------------------------------------------------


def test_what_a_table_looks_like(url, tmp_path, rows):
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(2), metadata=[{"year": 2020}, {}])
    table = lancedb.connect(str(tmp_path / "lance")).open_table("docs")
    assert table.schema.names == ["id", "vector", "metadata", "metadata_tokens"]
    assert table.schema.field("vector").type == pa.list_(pa.float32(), 16)
    assert sorted(table.to_arrow()["metadata"].to_pylist(), key=str) == [None, '{"year": 2020}']


def test_a_column_that_somebody_added_is_metadata(url, tmp_path, rows):
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(2), metadata=[{"year": 2020}, {}])
    lancedb.connect(str(tmp_path / "lance")).open_table("docs").add_columns({"lang": "'de'"})
    with open_store(url) as store:
        assert store.fetch_metadata(["row-0", "row-1"]) == [
            {"year": 2020, "lang": "de"},
            {"lang": "de"},
        ]
        store.upsert(rows(1), metadata=[{"lang": "fr", "month": 5}])
        assert store.fetch_metadata(["row-0"]) == [{"month": 5, "lang": "fr"}]
        where = {"lang": "fr", "month": 5}
        assert store.search(rows(1).vectors, k=2, where=where).ids.tolist() == [["row-0", ""]]


def test_a_second_vector_leaves_the_first_alone(url, rows):
    other = Space(model="other", dim=2)
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(3), metadata=[{"n": n} for n in range(3)])
    with open_store(f"{url}&vector=v2", space=other) as second:
        second.upsert(VectorSet(["row-1", "new"], [[1, 2], [3, 4]], other), notes={"a": "b"})
        second.upsert(
            VectorSet(["row-1", "row-2"], [[5, 6], [7, 8]], other), metadata=[{"n": 9}, {}]
        )
        assert second.fetch_metadata(["row-1", "new", "row-2"]) == [{"n": 9}, {}, {"n": 2}]
        assert second.delete(["new", "row-0"]) == 1
        assert second.count() == 2
    with open_store(url) as store:
        assert store.count() == 3
        assert store.notes() == {}
        assert store.search(rows(1).vectors, k=3, where={"n": 9}).ids[0, 0] == "row-1"
        assert store.fetch(["row-1"]).vectors.tolist() == rows(3).vectors[1:2].tolist()
    with pytest.raises(ParameterError, match=r"'vector', the first one .* leave &vector= out"):
        open_store(f"{url}&vector=vector")
    with pytest.raises(ParameterError, match="letters, digits and underscores"):
        open_store(f"{url}&vector=a-b", space=other)
    with pytest.raises(MissingCollectionError, match="by the URL without &vector="):
        open_store(f"{url.replace('docs', 'none')}&vector=v2", space=other)


def test_many_ids_that_are_not_in_order(url):
    ids = [f"é{row * 7919 % 3_001}" for row in range(3_001)]
    values = np.random.default_rng(0).standard_normal((3_001, 2)).astype(np.float32)
    with open_store(url, space=SMALL) as store:
        store.upsert(VectorSet(ids, values, SMALL))
        store.upsert(VectorSet(ids[::2], values[::2] * 2, SMALL))
        read = [text for b in store.scan(batch_size=97) for text in b.vectors.ids.tolist()]
        assert read == sorted(ids, key=str.encode)


# --- bad places ----------------------------------------------------------------------------------


def test_a_folder_that_is_not_there_is_not_made(url, tmp_path):
    with pytest.raises(MissingCollectionError):
        open_store(url)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "lance").write_text("x")
    with pytest.raises(NotAStoreError, match="got a file"):
        open_store(url, space=SPACE)


def test_a_name_that_lancedb_refuses(url):
    for name in ("a%20b", "%C3%A9", ".a", "x" * 201, "..%2Fa"):
        with pytest.raises(ParameterError, match="a collection name as lancedb allows"):
            open_store(url.replace("docs", name), space=SPACE)


@pytest.mark.parametrize("how", ["remove", "cut", "manifest", "record"])
def test_damage_is_noticed(url, tmp_path, rows, how):
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(500))
    folder = tmp_path / "lance" / "docs.lance"
    (data,) = (folder / "data").iterdir()
    newest = min((folder / "_versions").glob("*.manifest"))
    if how == "remove":
        data.unlink()
    elif how == "cut":
        data.write_bytes(data.read_bytes()[: data.stat().st_size // 2])
    elif how == "manifest":
        newest.write_bytes(newest.read_bytes()[:-30])
    else:
        newest.write_bytes(
            newest.read_bytes().replace(b'{":space"', b"\x01\x01\x01\x01\x01\x01\x01\x01\x01")
        )
    with pytest.raises(CorruptStoreError, match="whole files of LanceDB"), open_store(url) as store:
        list(store.scan())


def test_a_writer_waits_for_another(url, tmp_path, rows):
    with open_store(f"{url}&timeout=0.1", space=SPACE) as store:
        lock = tmp_path / "lance" / ".docs.isthmus-lock"
        with locked(lock, seconds=0), pytest.raises(StoreBusyError, match=r"within 0.1 s"):
            store.upsert(rows(3))
        assert store.count() == 0
        store.upsert(rows(3))
        assert store.count() == 3


WRITES_MANY = """
store = open_store(url + "&timeout=60", space=space)
for batch in range(10):
    store.upsert(rows(20, f"{sys.argv[2]}-{batch}"))
    store.upsert(rows(20, "same"))
"""


def test_writers_in_two_processes_take_turns(url, start):
    writers = [start(WRITES_MANY, url, name) for name in "ab"]  # both make the table, too
    for writer in writers:
        out, errors = writer.communicate(timeout=60)
        assert (out, errors, writer.returncode) == ("", "", 0)
    with open_store(url) as store:
        ids = [text for batch in store.scan() for text in batch.vectors.ids.tolist()]
        assert len(ids) == len(set(ids)) == store.count() == 2 * 10 * 20 + 20


WRITES_FOR_EVER = """
store = open_store(url, space=space)
batch = int(sys.argv[2])
while True:
    store.upsert(rows(300, f"b{batch}", seed=batch), notes={"cursor": str(batch)})
    print(batch, flush=True)
    batch += 1
"""


def test_a_writer_that_is_killed_leaves_whole_batches(url, start):
    writer = start(WRITES_FOR_EVER, url, "0")
    for _ in range(3):
        said = int(writer.stdout.readline())
    time.sleep(random.Random(0).random() * 0.02)  # noqa: S311 - somewhere inside a batch
    writer.send_signal(signal.SIGKILL)
    out, errors = writer.communicate(timeout=60)
    assert errors == ""
    said = max([said, *map(int, out.split())])
    with open_store(url) as store:
        cursor = int(store.notes()["cursor"])
        assert cursor in {said, said + 1}  # nothing that was reported is lost
        assert store.count() in {300 * (cursor + 1), 300 * (cursor + 2)}  # batch before cursor


FULL = """
import resource
store = open_store(url)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    store.upsert(rows(9_000, "new"), notes={"cursor": "1"})
except Exception as error:
    print(type(error).__name__)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(store.count(), store.notes())
store.upsert(rows(1, "more"))
print(store.count())
"""


def test_a_disk_that_refuses_to_grow_keeps_nothing_of_the_batch(url, rows, start):
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(30))
    out, errors = start(FULL, url).communicate(timeout=60)
    assert (out.splitlines(), errors) == (["StoreFullError", "30 {}", "31"], "")


AS_NOBODY = """
import os
import lancedb, lancedb.query, pyarrow, faiss, isthmus.stores.lancedb, isthmus.neighbors
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
with open_store(url) as store:
    print(store.count(), store.search(rows(1, "q").vectors, k=2).ids.shape)
    for change in (lambda: store.upsert(rows(1, "new")), lambda: store.delete(["row-1"])):
        try:
            change()
        except Exception as error:
            print(type(error).__name__)
try:
    open_store(url.replace("docs", "new"), space=space)
except Exception as error:
    print(type(error).__name__)
"""


def test_a_folder_that_may_only_be_read(url, tmp_path, rows, start):
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(30))
    folder = Path(tempfile.mkdtemp())  # pytest's own folders may not be entered by another user
    try:
        shutil.copytree(tmp_path / "lance", folder / "lance")
        (folder / "lance" / ".docs.isthmus-lock").unlink()
        for path, _, files in os.walk(folder):
            for name in files:
                (Path(path) / name).chmod(0o444)
            Path(path).chmod(0o555)
        process = start(AS_NOBODY, f"lancedb:///{folder}/lance?collection=docs")
        out, errors = process.communicate(timeout=60)
    finally:
        for path, _, _ in os.walk(folder):
            Path(path).chmod(0o700)
        shutil.rmtree(folder)
    assert (out.splitlines(), errors) == (["30 (1, 2)"] + ["ReadOnlyStoreError"] * 3, "")


def test_the_client_is_not_installed(url, monkeypatch):
    monkeypatch.setitem(sys.modules, "lancedb", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'isthmus\[lancedb\]'"):
        open_store(url, space=SPACE)
