"""The folder layout of the Vector Dataset Format: others' folders, and ours as others read them."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from isthmus.errors import (
    CorruptFileError,
    DuplicateIdError,
    InputError,
    IsthmusError,
    MissingFileError,
    SpaceMismatchError,
    UnsafePathError,
    WriteFailedError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.spaces.io import open_records, open_writer

META = "VDF_META.json"


def namespace(**changes):
    fields = {
        "namespace": "",
        "index_name": "docs",
        "total_vector_count": 3,
        "exported_vector_count": 3,
        "dimensions": 2,
        "model_name": "some/model",
        "vector_columns": ["vector"],
        "data_path": "docs",
        "metric": "Cosine",
    }
    return {name: value for name, value in {**fields, **changes}.items() if value is not None}


def theirs(folder, *parts, indexes=None, **changes):
    """Write a folder as the export tool does: pandas frames, one a part, and the description."""
    (folder / "docs").mkdir(parents=True)
    rows = parts or (
        {"id": ["a", "b"], "vector": [[1.0, 2.0], [3.0, 4.0]], "year": [2020, 2021]},
        {"id": ["c"], "vector": [[5.0, 6.0]], "title": ["x"]},
    )
    for number, columns in enumerate(rows, start=1):
        pq.write_table(pa.table(columns), folder / "docs" / f"{number}.parquet")
    meta = {
        "version": "0.1.248",
        "file_structure": ["docs/1.parquet", META],
        "author": "someone",
        "exported_from": "pinecone",
        "indexes": indexes or {"docs": [namespace(**changes)]},
        "exported_at": "2024-05-01T00:00:00",
    }
    (folder / META).write_text(json.dumps(meta))
    return folder


@pytest.mark.parametrize("name", ["vdf_20240501_120000_ab12c", "docs.vdf"])
def test_what_others_wrote(tmp_path, name):
    folder = theirs(tmp_path / name)
    records = open_records(folder)
    assert (records.rows, records.space) == (3, Space(model="some/model", dim=2))
    assert records.taken == "index 'docs', namespace '', vectors from 'vector'"
    metadata = [row for part in records for row in part.metadata]
    assert metadata == [{"year": 2020}, {"year": 2021}, {"title": "x"}]
    for path in (folder, folder / META):
        found = VectorSet.load(path)
        assert found.ids.tolist() == ["a", "b", "c"]
        assert found.matrix().tolist() == [[1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize(
    ("metric", "ours"),
    [("Cosine", "cosine"), ("Dot", "dot"), ("Euclid", "l2"), ("dotproduct", "dot"), ("L2", "l2")],
)
def test_metrics(tmp_path, metric, ours):
    assert open_records(theirs(tmp_path / "v", metric=metric)).space.metric == ours


def test_a_space_that_says_more_than_the_folder(tmp_path):
    folder = theirs(tmp_path / "v")
    space = Space(model="some/model", revision="3", dim=2)
    assert VectorSet.load(folder, space=space).space == space
    for other in (
        Space(model="another", dim=2),
        Space(model="some/model", dim=2, metric="dot"),
        Space(model="some/model", dim=3),
    ):
        with pytest.raises(SpaceMismatchError, match="in 'v'"):
            VectorSet.load(folder, space=other)


@pytest.mark.parametrize("model", [None, "", "NA", "unknown"])
def test_a_folder_that_names_no_model(tmp_path, model):
    folder = theirs(tmp_path / "v", model_name=model)
    with pytest.raises(InputError, match="got neither"):
        VectorSet.load(folder)
    assert len(VectorSet.load(folder, space=Space(model="m", dim=2))) == 3


def test_several_namespaces_and_indexes(tmp_path):
    folder = theirs(
        tmp_path / "v",
        indexes={"docs": [namespace(namespace="en"), namespace(namespace="de")], "more": []},
    )
    with pytest.raises(InputError, match=r"one index of 'v' .* 'docs', 'more'.*v\?index=docs"):
        VectorSet.load(folder)
    with pytest.raises(InputError, match=r"one namespace of 'v'.*'en', 'de'.*\?namespace=en"):
        VectorSet.load(f"{folder}?index=docs")
    assert len(VectorSet.load(f"{folder}?index=docs&namespace=de")) == 3
    for query in ("index=no", "index=docs&namespace=no", "index=more"):
        with pytest.raises(IsthmusError):
            VectorSet.load(f"{folder}?{query}")


def test_several_vector_columns(tmp_path):
    columns = {"id": ["a"], "one": [[1.0, 2.0]], "two": [[3.0, 4.0]]}
    folder = theirs(tmp_path / "v", columns, vector_columns=["one", "two"],
                    exported_vector_count=1)  # fmt: skip
    with pytest.raises(InputError, match=r"got 2: 'one', 'two'.*v\?vector=one"):
        VectorSet.load(folder)
    assert VectorSet.load(f"{folder}?vector=two").matrix().tolist() == [[3, 4]]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"data_path": "../elsewhere"}, UnsafePathError, "inside 'v'"),
        ({"data_path": "/etc"}, UnsafePathError, "inside 'v'"),
        ({"data_path": "gs://bucket/x"}, CorruptFileError, "parts in parquet"),
        ({"data_path": None}, CorruptFileError, "a data_path"),
        ({"data_path": "nothing"}, CorruptFileError, "parts in parquet"),
        ({"exported_vector_count": 10**12}, CorruptFileError, "1,000,000,000,000 vectors, as"),
        ({"metric": "Manhattan"}, CorruptFileError, "a metric of cosine"),
        ({"dimensions": None}, CorruptFileError, "number of dimensions"),
        ({"dimensions": "2"}, CorruptFileError, "number of dimensions"),
        ({"vector_columns": ["no"]}, CorruptFileError, "the column 'no', once"),
        ({"dimensions": 3}, IsthmusError, "3"),
        ({"index_config": {"isthmus_space": {}}}, CorruptFileError, "missing fields"),
    ],
)
def test_bad_descriptions(tmp_path, changes, error, message):
    with pytest.raises(error, match=message):
        VectorSet.load(theirs(tmp_path / "v", **changes))


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"indexes": []}', b"\xff", b"[" * 99_999, b'{"indexes": {}}',
                b'{"indexes": {"a": [7]}}', b'{"indexes": {"a": 7}}']
)  # fmt: skip
def test_garbage_in_the_description(tmp_path, content):
    folder = theirs(tmp_path / "v")
    (folder / META).write_bytes(content)
    with pytest.raises(IsthmusError):
        VectorSet.load(folder)


def test_bad_parts(tmp_path):
    folder = theirs(tmp_path / "v")
    part = folder / "docs" / "2.parquet"
    whole = part.read_bytes()
    for content in (b"", whole[: len(whole) // 2]):
        part.write_bytes(content)
        with pytest.raises(CorruptFileError, match=r"'2\.parquet' with a whole parquet file"):
            VectorSet.load(folder)
    for columns, error, message in (
        ({"id": ["c"], "vector": [[5.0]]}, CorruptFileError, "2 numbers, as in the parts before"),
        ({"id": ["a"], "vector": [[5.0, 1.0]]}, DuplicateIdError, "'a'"),
        ({"name": ["c"], "vector": [[5.0, 1.0]]}, CorruptFileError, "ids under one column"),
    ):
        pq.write_table(pa.table(columns), part)
        with pytest.raises(error, match=message):
            list(open_records(folder))
    part.unlink()
    part.symlink_to("/etc/passwd")
    with pytest.raises(CorruptFileError, match=r"3 vectors, as VDF_META.json says; got 2"):
        VectorSet.load(folder)


def test_parts_in_the_order_of_their_numbers(tmp_path):
    parts = [{"id": [str(row)], "vector": [[row, 1.0]]} for row in range(12)]
    folder = theirs(tmp_path / "v", *parts, exported_vector_count=12)
    assert VectorSet.load(folder).ids.tolist() == [str(row) for row in range(12)]


def test_what_we_write_is_as_others_read_it(tmp_path):
    space = Space(model="some/model", revision="2", dim=2, metric="l2", prompt="say: ")
    vectors = VectorSet(["a", "b"], [[1, 2], [3, 4]], space)
    with open_writer(tmp_path / "docs.vdf", space, rows=2, metadata=True) as writer:
        writer.write(vectors, [{"year": 2020, "title": "x"}, {"title": "y"}])
    meta = json.loads((tmp_path / "docs.vdf" / META).read_text())
    ((name, (part,)),) = meta["indexes"].items()
    assert (name, part["namespace"], part["model_name"]) == ("docs", "", "some/model")
    assert (part["dimensions"], part["metric"], part["vector_columns"]) == (2, "Euclid", ["vector"])
    assert part["exported_vector_count"] == part["total_vector_count"] == 2
    table = pq.read_table(tmp_path / "docs.vdf" / part["data_path"])
    assert table.column_names == ["id", "vector", "year", "title"]
    assert table["vector"].to_pylist() == [[1, 2], [3, 4]]
    assert VectorSet.load(tmp_path / "docs.vdf").space == space


def test_a_folder_of_this_layout_is_replaced_and_no_other(tmp_path, make_set):
    make_set().save(tmp_path / "v.vdf")
    make_set(3).save(tmp_path / "v.vdf")
    assert len(VectorSet.load(tmp_path / "v.vdf")) == 3
    (tmp_path / "w.vdf").mkdir()
    with pytest.raises(WriteFailedError, match="something else there"):
        make_set().save(tmp_path / "w.vdf")
    with pytest.raises(MissingFileError, match="got a folder"):
        VectorSet.load(tmp_path / "w.vdf")


def test_half_precision_in_many_parts(tmp_path, make_set):
    whole = make_set(40)
    with open_writer(tmp_path / "v.vdf", whole.space, rows=40) as writer:
        for batch in whole.iter_batches(7):
            writer.write(batch)
    assert VectorSet.load(tmp_path / "v.vdf").matrix().tolist() == (
        whole.matrix().astype(np.float16).tolist()
    )
