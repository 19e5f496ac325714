"""Parquet, ours and others'."""

import datetime as dt
import decimal
import json
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from isthmus.errors import (
    CorruptFileError,
    DuplicateIdError,
    InputError,
    InvalidIdError,
    InvalidVectorsError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.spaces.io import open_records

SPACE = Space(model="m", dim=2)
IDS = pa.array(["a", "b"])
ROWS = [[1.0, 2.0], [3.0, 4.0]]


def write(path, ids, vectors, **others):
    pq.write_table(pa.table({"id": ids, "vector": vectors, **others}), path)


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.float32()),
        pa.list_(pa.float64()),
        pa.list_(pa.float16()),
        pa.large_list(pa.float32()),
        pa.list_(pa.float32(), 2),
        pa.list_(pa.int64()),
    ],
)
@pytest.mark.parametrize("ids", [IDS, IDS.cast(pa.large_string()), IDS.dictionary_encode()])
def test_what_others_wrote(tmp_path, kind, ids):
    values = pa.array(np.array(ROWS, np.float16).tolist()).cast(pa.list_(pa.float64()))
    write(tmp_path / "v.parquet", ids, values.cast(kind), text=pa.array(["x", "y"]))
    found = VectorSet.load(tmp_path / "v.parquet", space=SPACE)
    assert (found.ids.tolist(), found.matrix().tolist()) == (["a", "b"], ROWS)


def test_whole_numbers_as_ids(tmp_path):
    write(tmp_path / "v.parquet", pa.array([7, 8]), pa.array(ROWS))
    assert VectorSet.load(tmp_path / "v.parquet", space=SPACE).ids.tolist() == ["7", "8"]


@pytest.mark.parametrize(("dtype", "kind"), [("float16", pa.float16()), ("float32", pa.float32())])
def test_what_we_wrote_is_read_by_arrow(tmp_path, dtype, kind):
    VectorSet(["a", "b"], ROWS, SPACE).save(tmp_path / "v.parquet", dtype=dtype)
    table = pq.read_table(tmp_path / "v.parquet")
    assert table.schema.field("vector").type.value_type == kind
    assert table.schema.field("vector").type.list_size == 2
    assert table["vector"].to_pylist() == ROWS
    assert json.loads(table.schema.metadata[b"space"])["model"] == "m"


def test_many_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr("isthmus.spaces.io.parquet.BATCH_ROWS", 3)
    values = np.arange(1, 21, dtype=np.float32).reshape(10, 2)
    table = pa.table({"id": [str(row) for row in range(10)], "vector": values.tolist()})
    pq.write_table(table, tmp_path / "v.parquet", row_group_size=4)
    found = VectorSet.load(tmp_path / "v.parquet", space=SPACE)
    assert found.matrix().tolist() == values.tolist()


@pytest.mark.parametrize(
    ("ids", "vectors", "error", "message"),
    [
        (IDS, pa.array([[1.0], [1.0, 2.0]]), CorruptFileError, "lists of one length"),
        (IDS, pa.array([[], []], pa.list_(pa.float32())), CorruptFileError, "0 numbers in 2 rows"),
        (IDS, pa.array([[1.0, None], [1.0, 2.0]]), CorruptFileError, "number in every place"),
        (IDS, pa.array([[1.0, 2.0], None]), CorruptFileError, "empty cells after row 0"),
        (IDS, pa.array([1.0, 2.0]), CorruptFileError, r"lists of numbers .* 'vector' \(double\)"),
        (IDS, pa.array([["x"], ["y"]]), CorruptFileError, r"'vector' \(list<element: string>\)"),
        (
            pa.array([1.0, 2.0]),
            pa.array(ROWS),
            CorruptFileError,
            "'id' as text, whole numbers or uuids; got type double",
        ),
        (pa.array(["a", None]), pa.array(ROWS), InvalidIdError, "None in row 1"),
        (IDS, pa.array([[1.0, 2.0], [float("nan"), 1.0]]), InvalidVectorsError, "in row 1"),
        (IDS, pa.array([[1e300, 2.0], [1.0, 1.0]]), InvalidVectorsError, "infinity in row 0"),
    ],
)
def test_the_wrong_columns(tmp_path, ids, vectors, error, message):
    write(tmp_path / "v.parquet", ids, vectors)
    with pytest.raises(error, match=message):
        VectorSet.load(tmp_path / "v.parquet", space=SPACE)


def test_missing_columns_are_named(tmp_path):
    pq.write_table(pa.table({"name": IDS, "embedding": pa.array(ROWS)}), tmp_path / "v.parquet")
    with pytest.raises(CorruptFileError, match=r"columns 'name', 'embedding'.*parquet\?id=NAME"):
        VectorSet.load(tmp_path / "v.parquet", space=SPACE)


def test_widths_that_differ_between_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("isthmus.spaces.io.parquet.BATCH_ROWS", 1)
    write(tmp_path / "v.parquet", IDS, pa.array([[1.0, 2.0], [1.0, 2.0, 3.0]]))
    with pytest.raises(CorruptFileError, match="got 2 numbers in 1 rows, 3 numbers in 1 rows"):
        VectorSet.load(tmp_path / "v.parquet", space=SPACE)


def test_no_rows(tmp_path):
    write(tmp_path / "v.parquet", IDS[:0], pa.array(ROWS)[:0])
    with pytest.raises(CorruptFileError, match="with 1 rows; got 0"):
        VectorSet.load(tmp_path / "v.parquet", space=SPACE)


def test_ids_that_are_not_text(tmp_path):
    raw = pa.array([b"a", b"\xff"]).view(pa.string())
    write(tmp_path / "v.parquet", raw, pa.array(ROWS))
    with pytest.raises(CorruptFileError, match=r"a whole parquet file; got .*utf-8"):
        VectorSet.load(tmp_path / "v.parquet", space=SPACE)


def test_a_broken_space(tmp_path):
    table = pa.table({"id": IDS, "vector": pa.array(ROWS)}).replace_schema_metadata({"space": "{"})
    pq.write_table(table, tmp_path / "v.parquet")
    with pytest.raises(CorruptFileError, match="a space as JSON"):
        VectorSet.load(tmp_path / "v.parquet")


@pytest.mark.parametrize("name", ["_id", "ids", "doc_id", "ID", "pk", "uuid"])
@pytest.mark.parametrize("vector", ["embedding", "values", "emb", "title_vec", "X"])
def test_columns_by_other_names(tmp_path, name, vector):
    table = pa.table({"n": [1, 2], name: IDS, vector: pa.array(ROWS), "__index_level_0__": [0, 1]})
    pq.write_table(table, tmp_path / "v.parquet")
    records = open_records(tmp_path / "v.parquet", space=SPACE)
    assert records.taken == f"ids from the column {name!r}, vectors from {vector!r}"
    ((vectors, metadata),) = records
    assert (vectors.ids.tolist(), vectors.matrix().tolist()) == (["a", "b"], ROWS)
    assert metadata == ({"n": 1}, {"n": 2})


def test_uuids_become_text(tmp_path):
    names = [uuid.UUID(int=7), uuid.UUID(int=8)]
    write(tmp_path / "v.parquet", pa.array([each.bytes for each in names], pa.uuid()), ROWS)
    found = VectorSet.load(tmp_path / "v.parquet", space=SPACE)
    assert found.ids.tolist() == [str(each) for each in names]


def test_several_columns_of_vectors(tmp_path):
    path = tmp_path / "v.parquet"
    write(path, IDS, pa.array(ROWS), title_embedding=pa.array(ROWS[::-1]), year=pa.array([1, 2]))
    with pytest.raises(InputError, match=r"got 2: 'vector', 'title_embedding'.*parquet\?vector="):
        VectorSet.load(path, space=SPACE)
    ((vectors, metadata),) = open_records(f"{path}?vector=title_embedding", space=SPACE)
    assert vectors.matrix().tolist() == ROWS[::-1]
    assert metadata == ({"year": 1}, {"year": 2})
    with pytest.raises(CorruptFileError, match=r"the column 'no', once; got columns 'id', 'vec"):
        VectorSet.load(f"{path}?vector=no", space=SPACE)
    with pytest.raises(CorruptFileError, match="'year' as lists of numbers; got type int64"):
        VectorSet.load(f"{path}?vector=year", space=SPACE)


def test_metadata_of_every_type(tmp_path):
    day = dt.datetime(2020, 1, 2, tzinfo=dt.UTC)
    others = {
        "text": pa.array(["x", None]),
        "flag": pa.array([True, None]),
        "number": pa.array([1.5, float("nan")]),
        "time": pa.array([day, None]),
        "tags": pa.array([["a", "b"], None]),
        "scores": pa.array([[1, 2], None]),
        "blob": pa.array([b"\x00\xff", None]),
        "inside": pa.array([{"a": 1}, None]),
        "word": pa.array(["w", None]).dictionary_encode(),
        "price": pa.array([decimal.Decimal("1.50"), None]),
        "payload": pa.array([{"opened": 1}, {"opened": 2}]),
        "metadata": pa.array(['{"deep": {"er": null}}', "no object"]),
    }
    write(tmp_path / "v.parquet", IDS, pa.array(ROWS), **others)
    ((_, metadata),) = open_records(tmp_path / "v.parquet", space=SPACE)
    assert metadata == (
        {
            "text": "x",
            "flag": True,
            "number": 1.5,
            "time": "2020-01-02T00:00:00+00:00",
            "tags": ["a", "b"],
            "scores": [1, 2],
            "blob": "AP8=",
            "inside": {"a": 1},
            "word": "w",
            "price": "1.50",
            "opened": 1,
            "deep": {"er": None},
        },
        {"opened": 2, "metadata": "no object"},
    )


def test_lengths_are_counted_over_the_whole_column(tmp_path, monkeypatch):
    monkeypatch.setattr("isthmus.spaces.io.parquet.BATCH_ROWS", 2)
    rows = [[1.0, 2.0]] * 5 + [[1.0, 2.0, 3.0]] * 3 + [[]]
    write(tmp_path / "v.parquet", pa.array(range(9)), pa.array(rows))
    message = "got 2 numbers in 5 rows, 3 numbers in 3 rows, 0 numbers in 1 rows"
    with pytest.raises(CorruptFileError, match=message):
        VectorSet.load(tmp_path / "v.parquet", space=SPACE)


def test_a_column_that_unpacks_to_far_more_than_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("isthmus.spaces.io.base.SMALL_BYTES", 1 << 16)
    rows = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(2_000_000)), 2_000)
    write(tmp_path / "v.parquet", pa.array(range(1_000)), rows)
    with pytest.raises(CorruptFileError, match=r"claim to hold 4,000,000 bytes of vectors"):
        VectorSet.load(tmp_path / "v.parquet", space=Space(model="m", dim=2_000))


def test_the_same_id_in_two_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("isthmus.spaces.io.parquet.BATCH_ROWS", 1)
    write(tmp_path / "v.parquet", pa.array(["a", "a"]), pa.array(ROWS))
    with pytest.raises(DuplicateIdError, match="'a'"):
        list(open_records(tmp_path / "v.parquet", space=SPACE))


@pytest.mark.parametrize(("rows", "message"), [(10**13, "claim to hold"), (1, "1 rows; got more")])
def test_a_footer_that_says_another_number_of_rows(tmp_path, monkeypatch, rows, message):
    write(tmp_path / "v.parquet", IDS, pa.array(ROWS))

    class Lying:
        num_rows = rows

        def __init__(self, told):
            self.told = told

        def __getattr__(self, name):
            return getattr(self.told, name)

    told = pq.ParquetFile.metadata
    monkeypatch.setattr(pq.ParquetFile, "metadata", property(lambda file: Lying(told.fget(file))))
    with pytest.raises(CorruptFileError, match=message):
        VectorSet.load(tmp_path / "v.parquet", space=SPACE)
