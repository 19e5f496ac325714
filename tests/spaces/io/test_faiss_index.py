"""FAISS index files: others', ours, and hostile ones."""

import json
import struct
from pathlib import Path

import faiss
import numpy as np
import pytest

from isthmus.errors import (
    CorruptFileError,
    DuplicateIdError,
    InputError,
    InvalidIdError,
    InvalidVectorsError,
    IsthmusError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.spaces.io.faiss_layout import walk

D, N = 8, 40
SPACE = Space(model="m", dim=D, metric="l2")
X = np.random.default_rng(0).standard_normal((N, D)).astype(np.float32)
QUANTIZER = faiss.ScalarQuantizer


def filled(index):
    faiss.omp_set_num_threads(1)
    if not index.is_trained:
        index.train(np.vstack([X] * 8))
    index.add(X)
    return index


def with_ids(kind, inner, ids):
    index = kind(inner)
    index.add_with_ids(X, np.asarray(ids))
    return index


def scalar(kind):
    return lambda: filled(faiss.IndexScalarQuantizer(D, kind))


EXACT = {
    "flat l2": lambda: filled(faiss.IndexFlatL2(D)),
    "flat ip": lambda: filled(faiss.IndexFlatIP(D)),
    "flat l1": lambda: filled(faiss.IndexFlat(D, faiss.METRIC_L1)),
    "hnsw": lambda: filled(faiss.IndexHNSWFlat(D, 4)),
}
NEAR = {
    "fp16": (scalar(QUANTIZER.QT_fp16), 2e-3),
    "bf16": (scalar(QUANTIZER.QT_bf16), 2e-2),
    "hnsw fp16": (lambda: filled(faiss.IndexHNSWSQ(D, QUANTIZER.QT_fp16, 4)), 2e-3),
}
LOSSY = {
    "8 bits": (scalar(QUANTIZER.QT_8bit), "8 bits a number"),
    "8 bits uniform": (scalar(QUANTIZER.QT_8bit_uniform), "8 bits a number"),
    "6 bits": (scalar(QUANTIZER.QT_6bit), "6 bits a number"),
    "4 bits": (scalar(QUANTIZER.QT_4bit), "4 bits a number"),
    "product": (lambda: filled(faiss.IndexPQ(D, 4, 4)), "2 bytes a vector of 8 numbers"),
    "hnsw product": (lambda: filled(faiss.IndexHNSWPQ(D, 4, 4, 4)), "2 bytes a vector"),
    "hnsw 8 bits": (lambda: filled(faiss.IndexHNSWSQ(D, QUANTIZER.QT_8bit, 4)), "8 bits"),
}


def write(path, index):
    faiss.write_index(index, str(path))
    return path


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("suffix", ["faiss", "index"])
def test_exact_kinds_by_row_number(tmp_path, name, suffix):
    found = VectorSet.load(write(tmp_path / f"v.{suffix}", EXACT[name]()), space=SPACE)
    assert found.ids.tolist() == [str(row) for row in range(N)]
    assert found.matrix().tolist() == X.tolist()


@pytest.mark.parametrize("name", NEAR)
def test_half_precision(tmp_path, name):
    make, error = NEAR[name]
    found = VectorSet.load(write(tmp_path / "v.faiss", make()), space=SPACE)
    np.testing.assert_allclose(found.matrix(), X, rtol=error, atol=error)


@pytest.mark.parametrize("name", LOSSY)
def test_what_is_lost_is_declared_and_taken_only_when_asked(tmp_path, name):
    make, loss = LOSSY[name]
    index = make()
    path = write(tmp_path / "v.faiss", index)
    with pytest.raises(InputError, match=rf"codes of {loss}.*v\.faiss\?lossy=yes"):
        VectorSet.load(path, space=SPACE)
    found = VectorSet.load(f"{path}?lossy=yes", space=SPACE)
    assert found.matrix().tolist() == index.reconstruct_n(0, N).tolist()


@pytest.mark.parametrize("kind", [faiss.IndexIDMap, faiss.IndexIDMap2])
@pytest.mark.parametrize(
    "inner", [faiss.IndexFlatL2(D), faiss.IndexHNSWFlat(D, 4)], ids=["flat", "hnsw"]
)
def test_ids_of_the_index(tmp_path, kind, inner):
    numbers = np.arange(N)[::-1] * 10**12
    path = write(tmp_path / "v.faiss", with_ids(kind, faiss.clone_index(inner), numbers))
    found = VectorSet.load(path, space=SPACE)
    assert found.ids.tolist() == [str(number) for number in numbers]
    assert found.matrix().tolist() == X.tolist()


NAMES = [f"näme {row}" for row in range(N)]


def beside(path, ending):
    """Write the names in a file beside the index."""
    if ending.endswith("npy"):
        np.save(path, np.array(NAMES))
    else:
        text = json.dumps(NAMES) if ending.endswith("json") else "\n".join(NAMES) + "\n"
        path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("ending", ["ids.npy", "ids.txt", "ids.json"])
@pytest.mark.parametrize("stem", ["v.faiss", "v"])
def test_ids_beside_the_index(tmp_path, ending, stem):
    write(tmp_path / "v.faiss", EXACT["flat l2"]())
    beside(tmp_path / f"{stem}.{ending}", ending)
    assert VectorSet.load(tmp_path / "v.faiss", space=SPACE).ids.tolist() == NAMES


def test_ids_beside_an_index_that_has_numbers(tmp_path):
    order = np.random.default_rng(1).permutation(N)
    path = write(tmp_path / "v.faiss", with_ids(faiss.IndexIDMap, faiss.IndexFlatL2(D), order))
    beside(tmp_path / "v.ids.json", "json")
    assert VectorSet.load(path, space=SPACE).ids.tolist() == [NAMES[row] for row in order]


def test_ids_that_do_not_fit(tmp_path):
    path = write(tmp_path / "v.faiss", EXACT["flat l2"]())
    beside(tmp_path / "v.ids.txt", "txt")
    (tmp_path / "v.ids.json").write_text("[]")
    with pytest.raises(InputError, match=r"one file of ids .* 'v.ids.txt', 'v.ids.json'"):
        VectorSet.load(path, space=SPACE)
    (tmp_path / "v.ids.txt").unlink()
    for text, error, message in (
        ("[]", CorruptFileError, "40 ids, one a vector; got 0"),
        ("{}", CorruptFileError, "a JSON list of ids; got a dict"),
        ("{", CorruptFileError, "ids in UTF-8"),
        ("[" * 100_000, CorruptFileError, "ids in UTF-8"),
        (json.dumps([0] * N), DuplicateIdError, "'0'"),
        (json.dumps([{}] * N), InvalidIdError, "in row 0"),
    ):
        (tmp_path / "v.ids.json").write_text(text)
        with pytest.raises(error, match=message):
            VectorSet.load(path, space=SPACE)
    write(path, with_ids(faiss.IndexIDMap, faiss.IndexFlatL2(D), np.arange(N) - 1))
    (tmp_path / "v.ids.json").write_text(json.dumps(NAMES))
    with pytest.raises(CorruptFileError, match="from -1 to 38; got 40"):
        VectorSet.load(path, space=SPACE)
    write(path, with_ids(faiss.IndexIDMap, faiss.IndexFlatL2(D), [7] * N))
    (tmp_path / "v.ids.json").unlink()
    with pytest.raises(DuplicateIdError, match="'7'"):
        VectorSet.load(path, space=SPACE)


@pytest.mark.parametrize(
    ("metric", "expected"), [("cosine", faiss.METRIC_INNER_PRODUCT), ("l2", faiss.METRIC_L2)]
)
def test_what_we_write_is_a_flat_index(tmp_path, metric, expected):
    space = Space(model="m", dim=D, metric=metric)
    VectorSet(NAMES, X, space).save(tmp_path / "v.faiss")
    index = faiss.read_index(str(tmp_path / "v.faiss"))
    assert (type(index), index.metric_type) in {
        (faiss.IndexFlatIP, expected),
        (faiss.IndexFlatL2, expected),
        (faiss.IndexFlat, expected),
    }
    assert index.reconstruct_n(0, N).tolist() == X.tolist()
    assert (tmp_path / "v.faiss.ids.txt").read_text("utf-8").splitlines() == NAMES
    found = VectorSet.load(tmp_path / "v.faiss")
    assert (found.space, found.ids.tolist()) == (space, NAMES)


def test_a_numpy_file_of_the_same_name_keeps_its_own_ids(tmp_path):
    VectorSet(NAMES, X, SPACE).save(tmp_path / "v.faiss")
    VectorSet(NAMES[::-1], X, SPACE).save(tmp_path / "v.npy")
    assert VectorSet.load(tmp_path / "v.faiss").ids.tolist() == NAMES
    assert VectorSet.load(tmp_path / "v.npy").ids.tolist() == NAMES[::-1]


@pytest.mark.parametrize("name", ["v.faiss", "v.faiss.ids.txt"])
def test_files_that_were_not_written_together(tmp_path, name):
    VectorSet(NAMES, X, SPACE).save(tmp_path / "v.faiss")
    content = bytearray((tmp_path / name).read_bytes())
    content[-2] ^= 1
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorruptFileError, match="were not written together"):
        VectorSet.load(tmp_path / "v.faiss")


@pytest.mark.parametrize("content", ["[]", "{", '{"format": "x"}', " " * 300_000, "[" * 9_999])
def test_a_broken_space(tmp_path, content):
    path = write(tmp_path / "v.faiss", EXACT["flat l2"]())
    (tmp_path / "v.faiss.space.json").write_text(content)
    with pytest.raises(CorruptFileError):
        VectorSet.load(path)
    (tmp_path / "v.faiss.space.json").write_text('{"model": "m", "dim": 8}')
    assert VectorSet.load(path).space == Space(model="m", dim=8)


def test_ids_that_a_line_cannot_hold(tmp_path):
    with pytest.raises(InvalidIdError, match="without line breaks"):
        VectorSet(["a\nb"], X[:1], SPACE).save(tmp_path / "v.faiss")
    assert not list(tmp_path.iterdir())


def test_numbers_that_are_none(tmp_path):
    index = faiss.IndexFlatL2(D)
    index.add(np.full((1, D), np.nan, np.float32))
    with pytest.raises(InvalidVectorsError, match="NaN"):
        VectorSet.load(write(tmp_path / "v.faiss", index), space=SPACE)


def test_kinds_that_are_not_read(tmp_path):
    inverted = faiss.index_factory(D, "IVF2,SQ8")
    path = write(tmp_path / "v.faiss", filled(inverted))
    with pytest.raises(CorruptFileError, match="flat lists, SQ or PQ; got the mark b'IwSq'"):
        VectorSet.load(path, space=SPACE)


# --- hostile files -----------------------------------------------------------------------------

EVERY = {**EXACT, **{name: made for name, (made, _) in {**NEAR, **LOSSY}.items()}}
FLAT = bytes(faiss.serialize_index(EXACT["flat l2"]()))
ROWS_AT, WIDTH_AT, COUNT_AT = 8, 4, 37


@pytest.mark.parametrize(
    ("at", "layout", "value"),
    [
        (ROWS_AT, "<q", 2**60),
        (ROWS_AT, "<q", -1),
        (ROWS_AT, "<q", 0),
        (WIDTH_AT, "<i", 2**31 - 1),
        (WIDTH_AT, "<i", -8),
        (WIDTH_AT, "<i", 0),
        (COUNT_AT, "<Q", 2**63),
        (COUNT_AT, "<Q", 0),
    ],
)
def test_sizes_that_the_file_does_not_bear_out(tmp_path, at, layout, value):
    content = bytearray(FLAT)
    struct.pack_into(layout, content, at, value)
    (tmp_path / "v.faiss").write_bytes(content)
    with pytest.raises(CorruptFileError):
        VectorSet.load(tmp_path / "v.faiss", space=SPACE)


def test_bytes_after_the_end(tmp_path):
    (tmp_path / "v.faiss").write_bytes(FLAT + b"x")
    with pytest.raises(CorruptFileError, match=r"the end of the file .* got 1 bytes more"):
        VectorSet.load(tmp_path / "v.faiss", space=SPACE)


def test_graphs_in_graphs(tmp_path):
    graph = bytes(faiss.serialize_index(EXACT["hnsw"]()))
    begin = graph[: graph.rindex(b"IxF2")]
    (tmp_path / "v.faiss").write_bytes(begin * 3_000 + FLAT)
    with pytest.raises(CorruptFileError, match="the mark b'IHNf'"):
        VectorSet.load(tmp_path / "v.faiss", space=SPACE)


@pytest.mark.parametrize("name", EVERY)
def test_every_cut_is_refused(name):
    content = bytes(faiss.serialize_index(EVERY[name]()))
    assert walk(memoryview(content), Path("v.faiss")).rows == N
    for stop in range(0, len(content), max(1, len(content) // 60)):
        with pytest.raises(IsthmusError):
            walk(memoryview(content[:stop]), Path("v.faiss"))


@pytest.mark.parametrize("name", EVERY)
def test_any_damaged_byte_gives_our_own_error_or_a_checked_set(tmp_path, name):
    whole = bytes(faiss.serialize_index(EVERY[name]()))
    rng = np.random.default_rng(0)
    path = tmp_path / "v.faiss"
    for turn in range(120):
        damaged = bytearray(whole)
        among = min(len(whole), 200) if turn % 2 else len(whole)
        for place in rng.integers(0, among, rng.integers(1, 4)):
            damaged[place] = rng.integers(256)
        path.write_bytes(damaged)
        try:
            found = VectorSet.load(f"{path}?lossy=yes", space=SPACE)
        except IsthmusError as error:
            assert error.do  # noqa: PT017 - either outcome is right
        else:
            assert np.isfinite(found.matrix()).all()
