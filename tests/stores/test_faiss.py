"""FAISS index files of other programs: every kind that is read, and what is refused."""

from __future__ import annotations

import json

import faiss
import numpy as np
import pytest

from isthmus.errors import (
    CorruptStoreError,
    DuplicateIdError,
    InputError,
    NotAStoreError,
    ReadOnlyStoreError,
    SpaceMismatchError,
    UnknownNameError,
    UnsupportedOperationError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.spaces.io.faiss_index import FAISS
from isthmus.stores import open_store

DIM = 16
VALUES = np.random.default_rng(0).standard_normal((300, DIM)).astype(np.float32)
SPACE = Space(model="m", dim=DIM)


@pytest.fixture
def url(tmp_path):
    return f"faiss:///{tmp_path}/one.index?collection=docs"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr("isthmus.stores._asking.PAUSES", (0.0, 0.0, 0.0))


def saved(tmp_path, factory: str, metric: int = faiss.METRIC_INNER_PRODUCT, *, ids=None) -> bytes:
    """Write an index as another program does."""
    index = faiss.index_factory(DIM, factory, metric)
    with_one_thread = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    index.train(VALUES)
    index.add(VALUES) if ids is None else index.add_with_ids(VALUES, np.array(ids))
    faiss.omp_set_num_threads(with_one_thread)
    path = tmp_path / "one.index"
    faiss.write_index(index, str(path))
    return path.read_bytes()


@pytest.mark.parametrize(
    "factory",
    [
        "Flat",
        "HNSW8",
        "IDMap,Flat",
        "IDMap2,HNSW8",
        "IVF8,Flat",
        "IVF5_HNSW8,Flat",
        "IDMap,IVF8,Flat",
    ],
)
def test_flat_vectors_of_others_come_back_bit_for_bit(url, tmp_path, factory):
    ids = [7_000 - 3 * row for row in range(300)] if "IDMap" in factory else None
    before = saved(tmp_path, factory, ids=ids)
    names = [str(one) for one in (ids or range(300))]
    with open_store(url) as store:
        assert not store.recorded
        assert store.capabilities.read_back_error == 0.0
        (batch,) = store.scan()
        assert batch.vectors.ids.tolist() == names
        assert np.array_equal(batch.vectors.matrix(), VALUES)
        assert store.search(VALUES[:9], k=1).ids[:, 0].tolist() == names[:9]
        assert store.search(VALUES[:1], k=1, where={"a": 1}).ids.tolist() == [[""]]
        assert store.fetch_metadata([names[3]]) == [{}]
    assert (tmp_path / "one.index").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("factory", "storage", "least"),
    [
        ("SQfp16", "16 bits a number", 0.0),
        ("SQbf16", "16 bits a number", 2**-12),
        ("SQ8", "8 bits a number", 1e-4),
        ("SQ6", "6 bits a number", 1e-3),
        ("SQ4", "4 bits a number", 1e-2),
        ("PQ4x4", "2 bytes a vector of 16 numbers", 0.1),
    ],
)
def test_codes_declare_what_they_lose(url, tmp_path, factory, storage, least):
    saved(tmp_path, factory)
    if "16" not in storage.split(maxsplit=1)[0]:
        with pytest.raises(InputError, match=r"codes of .*&lossy=yes"):
            open_store(url)
    with open_store(f"{url}&lossy=yes") as store:
        assert store.capabilities.storage == storage
        (batch,) = store.scan()
        worst = np.abs(batch.vectors.matrix() - VALUES) / np.abs(VALUES).max(axis=1, keepdims=True)
        assert least < worst.max() <= store.capabilities.read_back_error


def test_an_inverted_file_with_numbers_of_its_own_and_empty_lists(url, tmp_path):
    numbers = [2**40 - 7 * row for row in range(300)]
    quantizer = faiss.IndexFlatIP(DIM)
    quantizer.add(VALUES[:50] * 1e6)
    index = faiss.IndexIVFFlat(quantizer, DIM, 50, faiss.METRIC_INNER_PRODUCT)
    index.is_trained = True
    index.add_with_ids(VALUES[:3], np.array(numbers[:3]))
    faiss.write_index(index, str(tmp_path / "one.index"))
    for changed in (False, True):
        if changed:
            index.set_direct_map_type(faiss.DirectMap.Hashtable)
            faiss.write_index(index, str(tmp_path / "one.index"))
        with open_store(url) as store:
            assert (
                store.fetch([str(one) for one in numbers[:3]]).vectors.tolist()
                == VALUES[:3].tolist()
            )


@pytest.mark.parametrize("factory", ["IVF8,SQ8", "IVF8,PQ4x4", "NSG8"])
def test_kinds_that_are_not_read(url, tmp_path, factory):
    saved(tmp_path, factory)
    with pytest.raises(NotAStoreError, match="of the kinds Flat, IDMap, HNSW, IVF with flat"):
        open_store(url)


def test_damaged_lists_are_noticed(url, tmp_path):
    whole = saved(tmp_path, "IVF8,Flat")
    generator = np.random.default_rng(0)
    places = [*range(4, 120), *(len(whole) - generator.integers(0, 20_000, 100))]
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= 0x81
        (tmp_path / "one.index").write_bytes(damaged)
        try:
            with open_store(url) as store:
                assert store.count() == 300
        except (CorruptStoreError, NotAStoreError, DuplicateIdError, InputError):
            pass


def test_ids_beside_the_index(url, tmp_path):
    saved(tmp_path, "Flat")
    names = [f"é{row}" for row in range(300)]
    (tmp_path / "one.index.ids.txt").write_text("\n".join(names), encoding="utf-8")
    with open_store(url) as store:
        assert store.fetch(["é7"]).vectors.tolist() == VALUES[7:8].tolist()
    (tmp_path / "one.index.ids.txt").unlink()
    np.save(tmp_path / "one.index.ids.npy", np.array(names))
    with open_store(url) as store:
        assert store.fetch(["é7"]).vectors.tolist() == VALUES[7:8].tolist()
    np.save(tmp_path / "one.index.ids.npy", np.array(["a"] * 300))
    with pytest.raises(DuplicateIdError):
        open_store(url)
    np.save(tmp_path / "one.index.ids.npy", np.array(names[1:]))
    with pytest.raises(CorruptStoreError, match="300 ids, one a vector; got 299"):
        open_store(url)


@pytest.mark.parametrize(
    ("metric", "fits", "does_not"),
    [
        (faiss.METRIC_INNER_PRODUCT, ("cosine", "dot"), ("l2",)),
        (faiss.METRIC_L2, ("l2",), ("cosine", "dot")),
    ],
)
def test_a_space_has_to_fit(url, tmp_path, metric, fits, does_not):
    saved(tmp_path, "Flat", metric)
    for one in does_not:
        with pytest.raises(SpaceMismatchError):
            open_store(url, space=Space(model="m", dim=DIM, metric=one))
    with pytest.raises(SpaceMismatchError, match="dimension 16"):
        open_store(url, space=Space(model="m", dim=DIM + 1, metric=fits[0]))
    assert len(list(tmp_path.iterdir())) == 1
    with open_store(url, space=Space(model="m", dim=DIM, metric=fits[-1])) as store:
        assert store.search(VALUES[:3], k=2).ids.shape == (3, 2)


def test_the_space_of_an_index_of_others_is_recorded_beside_it(url, tmp_path):
    before = saved(tmp_path, "HNSW8")
    with open_store(url, space=SPACE) as store:
        assert store.recorded
        store.write_notes({"canary": "1"})
        for change in (
            lambda: store.upsert(VectorSet(["1"], VALUES[:1], SPACE)),
            lambda: store.delete(["1"]),
        ):
            with pytest.raises(ReadOnlyStoreError, match="one of another program"):
                change()
        assert store.count() == 300
    assert (tmp_path / "one.index").read_bytes() == before
    with open_store(url) as store:
        assert store.space == SPACE
        assert store.notes() == {"canary": "1"}
    with pytest.raises(SpaceMismatchError):
        open_store(url, space=Space(model="other", dim=DIM))
    VALUES_AGAIN = VALUES * 2
    index = faiss.IndexFlatIP(DIM)
    index.add(VALUES_AGAIN)
    faiss.write_index(index, str(tmp_path / "one.index"))
    with pytest.raises(CorruptStoreError, match="if the index is new, remove what stands beside"):
        open_store(url)


def test_a_collection_is_a_file_that_faiss_and_the_commands_read(url, tmp_path, rows):
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(9))
        store.delete(["row-3"])
    index = faiss.read_index(str(tmp_path / "one.index"))
    ids = json.loads((tmp_path / "one.index.ids.json").read_text())
    _, found = index.search(rows(9).vectors[5:6], 1)
    assert ids[found[0, 0]] == "row-5"
    assert (type(index).__name__, index.ntotal) == ("IndexFlatIP", 8)


def test_files_that_the_commands_write_are_collections(url, tmp_path):
    index = faiss.IndexFlatIP(DIM)
    index.add(VALUES)
    path = tmp_path / "one.index"
    faiss.write_index(index, str(path))
    (tmp_path / "one.index.space.json").write_text(json.dumps(SPACE.to_dict()))
    assert FAISS.suffix == ".faiss"
    with open_store(url) as store:
        assert store.recorded
        assert store.space == SPACE


@pytest.mark.parametrize("content", [b"", b"x" * 5_000, b"IxFI", b"SQLite format 3\0" * 99])
def test_another_programs_file(url, tmp_path, content):
    (tmp_path / "one.index").write_bytes(content)
    with pytest.raises((NotAStoreError, CorruptStoreError)):
        open_store(url, space=SPACE)
    assert (tmp_path / "one.index").read_bytes() == content


def test_damaged_sizes_are_noticed_before_faiss_reads_them(url, tmp_path):
    whole = saved(tmp_path, "HNSW8")
    for place in range(4, 60, 4):
        damaged = bytearray(whole)
        damaged[place : place + 4] = b"\xff\xff\xff\x7f"
        (tmp_path / "one.index").write_bytes(damaged)
        try:
            with open_store(url) as store:
                assert store.count() == 300  # a field that is not used
        except (CorruptStoreError, NotAStoreError):
            pass
    (tmp_path / "one.index").write_bytes(whole[:-1])
    with pytest.raises(CorruptStoreError):
        open_store(url)


@pytest.mark.parametrize("option", ["&vector=second", "&id=x"])
def test_options_that_it_does_not_have(url, option):
    with pytest.raises((UnsupportedOperationError, UnknownNameError)):
        open_store(url + option, space=SPACE)
