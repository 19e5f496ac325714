"""What the common databases export as JSON: recognised by shape, metadata and all."""

import base64
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isthmus.errors import (
    CorruptFileError,
    DuplicateIdError,
    InputError,
    InvalidIdError,
    InvalidVectorsError,
    IsthmusError,
    UnknownNameError,
    UnsupportedOperationError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.spaces.io import open_records, open_writer

SPACE = Space(model="m", dim=2)
A, B = [1.0, 2.0], [3.0, 4.0]
PACKED = base64.b64encode(np.array(A, "<f4").tobytes()).decode()
YEARS = ({"year": 2020}, {"year": 2021})

LINES = {
    "pinecone": [
        {"id": "a", "values": A, "metadata": {"year": 2020}, "sparse_values": {"indices": [1]}},
        {"id": "b", "values": B, "metadata": {"year": 2021}},
    ],
    "qdrant": [
        {"id": "a", "vector": A, "payload": {"year": 2020}, "version": 3, "score": 0.1},
        {"id": "b", "vector": B, "payload": {"year": 2021}, "shard_key": None},
    ],
    "qdrant, one named vector": [
        {"id": "a", "vector": {"text": A}, "payload": {"year": 2020}},
        {"id": "b", "vector": {"text": B}, "payload": {"year": 2021}},
    ],
    "qdrant, scroll result pages": [
        {"result": {"points": [{"id": "a", "vector": A, "payload": {"year": 2020}}]}},
        {"result": {"points": [{"id": "b", "vector": B, "payload": {"year": 2021}}]}, "time": 0.1},
    ],
    "weaviate": [
        {"uuid": "a", "vector": A, "properties": {"year": 2020}},
        {"uuid": "b", "vector": B, "properties": {"year": 2021}},
    ],
    "weaviate, vectors by name": [
        {"id": "a", "vectors": {"default": A}, "properties": {"year": 2020}},
        {"id": "b", "vectors": {"default": B}, "properties": {"year": 2021}},
    ],
    "milvus": [
        {"id": "a", "embedding": A, "year": 2020},
        {"id": "b", "embedding": B, "year": 2021},
    ],
    "milvus, a key of its own": [
        {"pk": "a", "vector": A, "year": 2020},
        {"pk": "b", "vector": B, "year": 2021},
    ],
    "chroma, one a line": [
        {"id": "a", "embedding": A, "metadata": {"year": 2020}, "document": None},
        {"id": "b", "embedding": B, "metadata": {"year": 2021}, "document": None},
    ],
    "chroma, columns": [
        {"ids": ["a", "b"], "embeddings": [A, B], "metadatas": [*YEARS], "included": ["x"]},
    ],
    "elasticsearch, hits": [
        {"_index": "i", "_id": "a", "_score": 1, "_source": {"emb": A, "year": 2020}},
        {"_index": "i", "_id": "b", "_score": 1, "_source": {"emb": B, "year": 2021}},
    ],
    "elasticsearch, bulk": [
        {"index": {"_index": "i", "_id": "a"}},
        {"my_vector": A, "year": 2020},
        {"create": {"_id": "b"}},
        {"my_vector": B, "year": 2021},
    ],
    "typesense": [
        {"id": "a", "embedding": A, "year": 2020},
        {"id": "b", "embedding": B, "year": 2021},
    ],
    "redis, base64": [
        {"id": "a", "vector": PACKED, "year": 2020},
        {"id": "b", "vector": base64.b64encode(np.array(B, "<f4")).decode(), "year": 2021},
    ],
    "redis, documents": [
        {"key": "a", "value": {"vector": A, "year": 2020}},
        {"key": "b", "value": {"vector": B, "year": 2021}},
    ],
    "pgvector": [
        {"id": "a", "embedding": "[1,2]", "year": 2020},
        {"id": "b", "embedding": "[3, 4]", "year": 2021},
    ],
    "mongodb": [
        {"_id": "a", "embedding": A, "year": 2020},
        {"_id": "b", "embedding": B, "year": 2021},
    ],
    "opensearch, a field named id": [
        {"_id": "a", "_source": {"vector": A, "year": 2020}},
        {"_id": "b", "_source": {"vector": B, "year": 2021}},
    ],
}
PAGES = {
    "chroma": LINES["chroma, columns"][0],
    "a list": LINES["typesense"],
    "qdrant, scroll": {"result": {"points": LINES["qdrant"], "next_page_offset": None}},
    "qdrant, retrieve": {"result": LINES["qdrant"], "status": "ok", "time": 0.1},
    "pinecone, fetch": {
        "vectors": {
            "a": {"values": A, "metadata": {"year": 2020}},
            "b": {"id": "b", "values": B, "metadata": {"year": 2021}},
        },
        "namespace": "",
    },
    "pinecone, upsert": {"vectors": LINES["pinecone"]},
    "pinecone, query": {"matches": LINES["pinecone"], "namespace": ""},
    "weaviate, objects": {"objects": LINES["weaviate"], "totalResults": 2},
    "weaviate, graphql": {
        "data": {
            "Get": {
                "Doc": [
                    {"year": 2020, "_additional": {"id": "a", "vector": A, "distance": 0.1}},
                    {"year": 2021, "_additional": {"id": "b", "vector": B, "distance": 0.1}},
                ]
            }
        }
    },
    "milvus, query": {"code": 0, "data": LINES["milvus"]},
    "milvus, bulk": {"rows": LINES["milvus"]},
    "elasticsearch, search": {
        "took": 1,
        "hits": {"total": 2, "hits": LINES["elasticsearch, hits"]},
    },
    "typesense, search": {"found": 2, "hits": [{"document": row} for row in LINES["typesense"]]},
}


def save(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def read(path):
    parts = list(open_records(path, space=SPACE))
    ids = [text for part in parts for text in part.vectors.ids.tolist()]
    rows = [row for part in parts for row in part.vectors.matrix().tolist()]
    return ids, rows, [row for part in parts for row in part.metadata]


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("ending", ["jsonl", "ndjson"])
def test_lines(tmp_path, name, ending):
    path = save(tmp_path / f"v.{ending}", LINES[name])
    assert read(path) == (["a", "b"], [A, B], list(YEARS))
    assert VectorSet.load(path, space=SPACE).matrix().tolist() == [A, B]


@pytest.mark.parametrize("name", PAGES)
def test_pages(tmp_path, name):
    (tmp_path / "v.json").write_text(json.dumps(PAGES[name]))
    ids, rows, metadata = read(tmp_path / "v.json")
    assert (ids, rows) == (["a", "b"], [A, B])
    assert [row.pop("class", "Doc") for row in metadata] == ["Doc", "Doc"]
    assert metadata == list(YEARS)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_in_a_line(tmp_path, name):
    if name == "a list":
        return
    assert read(save(tmp_path / "v.jsonl", [PAGES[name]]))[:2] == (["a", "b"], [A, B])


def test_what_was_taken_is_told(tmp_path):
    lines = [{"_id": 7, "text_vector": A, "embedding": B, "n": 1}]
    path = save(tmp_path / "v.jsonl", lines)
    taken = open_records(f"{path}?vector=embedding", space=SPACE).taken
    assert taken == "ids from the key '_id', vectors from 'embedding'; left out: text_vector"
    assert read(f"{path}?vector=embedding") == (["7"], [B], [{"n": 1}])
    assert read(f"{path}?vector=text_vector&id=n") == (["1"], [A], [{"_id": 7}])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([{"id": 1, "a_vector": A, "b_vector": B}], "got 2: 'a_vector', 'b_vector'. Do: name one"),
        ([{"id": 1, "_id": 2, "vector": B}], r"the id; got 2: 'id', '_id'. Do: .*jsonl\?id=id"),
        ([{"id": 1, "vector": {"a": A, "b": B}}], r"'vector.a', 'vector.b'.*\?vector=vector.a"),
        ([{"id": 1, "scores": A, "prices": B}], "got 2: 'scores', 'prices'"),
    ],
)
def test_what_is_ambiguous_is_refused(tmp_path, lines, message):
    with pytest.raises(InputError, match=message):
        read(save(tmp_path / "v.jsonl", lines))


def test_a_word_that_is_base64_too_is_no_vector_beside_one(tmp_path):
    line = {"id": 1, "vector": A, "embedding_model": base64.b64encode(b"a sixteen bytes!").decode()}
    path = save(tmp_path / "v.jsonl", [line])
    assert read(path) == (["1"], [A], [{"embedding_model": line["embedding_model"]}])


def test_a_field_beside_the_metadata_and_in_them(tmp_path):
    lines = [{"id": 1, "vector": A, "year": 1, "metadata": {"year": 1}}]
    assert read(save(tmp_path / "v.jsonl", lines))[2] == [{"year": 1}]
    lines[0]["year"] = 2
    with pytest.raises(InputError, match="each field of a row once; got 'year' beside"):
        read(save(tmp_path / "v.jsonl", lines))


def test_one_of_several_named_vectors(tmp_path):
    path = save(tmp_path / "v.jsonl", [{"id": 1, "vector": {"a": A, "b": B}}])
    assert read(f"{path}?vector=vector.b")[1] == [B]
    with pytest.raises(CorruptFileError, match=r"the key 'c', once; got keys 'a', 'b'"):
        read(f"{path}?vector=vector.c")


@pytest.mark.parametrize(
    ("lines", "error", "message"),
    [
        ([{"vector": A}], CorruptFileError, "ids under one key"),
        ([{"id": 1}], CorruptFileError, "in line 1; got an object with 'id'"),
        ([{"id": 1, "vector": [A, B]}], CorruptFileError, "in line 1"),
        ([{"id": 1, "vector": []}], CorruptFileError, "in line 1"),
        ([{"id": 1, "vector": "not base64!"}], CorruptFileError, "in line 1"),
        ([{"id": 1, "vector": A}, {"id": 2}], CorruptFileError, "in line 2"),
        (
            [{"id": 1, "vector": A}, {"id": 2, "vector": [1]}],
            CorruptFileError,
            "2 numbers in line 2",
        ),
        (
            [{"id": 1, "vector": A}, {"id": 2, "vector": [1, None]}],
            CorruptFileError,
            "else than num",
        ),
        (
            [{"id": 1, "vector": A}, {"id": 2, "vector": [True, 1]}],
            CorruptFileError,
            "else than num",
        ),
        ([{"id": 1, "vector": [float("nan"), 1]}], InvalidVectorsError, "NaN"),
        ([{"id": 1, "vector": [1e300, 1]}], InvalidVectorsError, "infinity"),
        ([{"id": 1, "vector": [10**400, 1]}], CorruptFileError, "too large"),
        ([{"id": 1.5, "vector": A}], InvalidIdError, "text"),
        ([{"id": None, "vector": A}], InvalidIdError, "text"),
        ([{"id": "a", "vector": A}, {"id": "a", "vector": B}], DuplicateIdError, "'a'"),
        ([[1, 2]], CorruptFileError, "in line 1"),
        ([7], CorruptFileError, "in line 1"),
        ([{"ids": [["a"]], "embeddings": [[A]]}], CorruptFileError, "answer to a query"),
        ([{"ids": ["a", "b"], "embeddings": [A]}], CorruptFileError, "2 under 'id', 1 under 'emb"),
        ([{"data": {"Get": {"X": [], "Y": []}}}], InputError, "one class"),
        ([{"result": {"points": []}}], CorruptFileError, "at least one vector"),
        ([], CorruptFileError, "at least one vector"),
    ],
)
def test_bad_lines(tmp_path, lines, error, message):
    path = save(tmp_path / "v.jsonl", lines)
    with pytest.raises(error, match=message):
        read(path)
    with pytest.raises(error, match=message):
        VectorSet.load(path, space=SPACE)


@pytest.mark.parametrize("ending", ["jsonl", "json"])
@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"{", b"[" * 100_000, b'{"id": "\xff"}', b"null", b"\x00" * 9]
)
def test_garbage_in_json(tmp_path, content, ending):
    path = tmp_path / f"v.{ending}"
    path.write_bytes(content)
    with pytest.raises(CorruptFileError):
        VectorSet.load(path, space=SPACE)


def test_an_id_again_in_a_later_batch(tmp_path, monkeypatch):
    monkeypatch.setattr("isthmus.spaces.io.json_rows.BATCH_ROWS", 1)
    lines = [{"id": name, "vector": A} for name in "aba"]
    batches = iter(open_records(save(tmp_path / "v.jsonl", lines), space=SPACE))
    assert [next(batches).vectors.ids.tolist() for _ in range(2)] == [["a"], ["b"]]
    with pytest.raises(DuplicateIdError, match="1 that stood before: 'a'"):
        next(batches)


def test_a_json_document_is_not_written(tmp_path, make_set):
    with pytest.raises(UnsupportedOperationError, match=r"a file to write: \.npz"):
        make_set().save(tmp_path / "v.json")
    with (
        pytest.raises(UnsupportedOperationError, match=r"with metadata: \.parquet, \.jsonl"),
        open_writer(tmp_path / "v.npz", SPACE, rows=1, metadata=True),
    ):
        pass  # pragma: no cover


@pytest.mark.parametrize("query", ["?", "?vector", "?lossy=maybe&id=a", "?=1"])
def test_choices_that_are_none(tmp_path, query):
    path = save(tmp_path / "v.jsonl", LINES["milvus"])
    with pytest.raises(IsthmusError):
        read(f"{path}{query}")


def test_choices_of_another_format(tmp_path):
    path = save(tmp_path / "v.jsonl", LINES["milvus"])
    with pytest.raises(UnknownNameError, match=r"choice for \.jsonl files among id, vector"):
        read(f"{path}?lossy=yes")
    with pytest.raises(UnknownNameError, match="did you mean 'vector'"):
        read(f"{path}?vectors=embedding")


def test_a_file_whose_name_has_a_question_mark(tmp_path):
    path = save(tmp_path / "what?vector=x.jsonl", LINES["milvus"])
    assert read(path)[0] == ["a", "b"]


KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
).filter(lambda value: value not in (float("inf"), -float("inf")))
ROWS = st.lists(
    st.dictionaries(KEYS, st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | KEYS
                    | st.lists(st.integers(), max_size=3) | st.floats(-1e9, 1e9), max_size=4),
    min_size=1,
    max_size=5,
)  # fmt: skip


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl", ".ndjson", ".vdf"])
@settings(
    derandomize=True,
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(rows=ROWS)
def test_any_metadata_comes_back(tmp_path, suffix, rows):
    space = Space(model="m", dim=2)
    vectors = VectorSet([f"r{row}" for row in range(len(rows))], np.ones((len(rows), 2)), space)
    path = tmp_path / f"v{suffix}"
    with open_writer(path, space, rows=len(rows), metadata=True) as writer:
        writer.write(vectors, rows)
    found = list(open_records(path))
    assert [row for part in found for row in part.metadata] == rows
    assert found[0].vectors.ids.tolist() == vectors.ids.tolist()
    assert found[0].vectors.space == space
    assert VectorSet.load(path).matrix().tolist() == vectors.matrix().tolist()


@settings(derandomize=True, deadline=None, max_examples=300,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(value=VALUES)
def test_any_json_gives_our_own_error_or_a_set(tmp_path, value):
    for name, text in (("v.json", json.dumps(value)), ("v.jsonl", json.dumps(value) + "\n")):
        (tmp_path / name).write_text(text)
        try:
            VectorSet.load(tmp_path / name, space=SPACE)
        except IsthmusError as error:
            assert error.do  # noqa: PT017 - either outcome is right
