"""USearch index files of other programs: number types, metrics, keys, damage."""

from __future__ import annotations

import json
import random
import sys

import numpy as np
import pytest
from usearch.index import Index

from isthmus.errors import (
    CorruptStoreError,
    MissingExtraError,
    NotAStoreError,
    ReadOnlyStoreError,
    SpaceMismatchError,
    UnsupportedOperationError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.stores import open_store

DIM = 16
VALUES = np.random.default_rng(0).standard_normal((300, DIM)).astype(np.float32)
KEYS = np.arange(300, dtype=np.uint64)[::-1] * 3 + 2**40
SPACE = Space(model="m", dim=DIM)


@pytest.fixture
def url(tmp_path):
    return f"usearch:///{tmp_path}/one.usearch?collection=docs"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr("isthmus.stores._asking.PAUSES", (0.0, 0.0, 0.0))


def saved(tmp_path, *, keys=KEYS, gone=(), **options) -> bytes:
    """Write an index as another program does."""
    index = Index(ndim=DIM, **{"metric": "cos", "dtype": "f32", **options})
    index.add(keys, VALUES)
    for key in gone:
        index.remove(key)
    index.save(tmp_path / "one.usearch")
    return (tmp_path / "one.usearch").read_bytes()


@pytest.mark.parametrize(
    ("dtype", "storage", "error"),
    [
        ("f32", "float32", 0.0),
        ("f16", "float16", 2**-11),
        ("bf16", "bfloat16", 2**-8),
        ("f64", "float64", 0.0),
    ],
)
def test_number_types_declare_what_they_lose(url, tmp_path, dtype, storage, error):
    before = saved(tmp_path, dtype=dtype, connectivity=5, gone=[int(KEYS[5])])
    with open_store(url) as store:
        assert not store.recorded
        able = store.capabilities
        assert (able.storage, able.read_back_error) == (storage, error)
        (batch,) = store.scan()
        kept = np.argsort(KEYS)[np.argsort(KEYS) != 5]
        assert batch.vectors.ids.tolist() == [str(key) for key in KEYS[kept]]
        scale = np.abs(VALUES[kept]).max(axis=1, keepdims=True)
        worst = (np.abs(batch.vectors.matrix() - VALUES[kept]) / scale).max()
        assert worst <= error
        assert (worst > 0) == (error > 0)
        assert store.search(VALUES[:4], k=1).ids[:, 0].tolist() == [str(key) for key in KEYS[:4]]
    assert (tmp_path / "one.usearch").read_bytes() == before


def test_numbers_over_float32_are_infinite_and_no_warning(url, tmp_path):
    index = Index(ndim=3, metric="l2sq", dtype="f64")
    index.add(1, np.array([1e300, 0, 0]))
    index.save(tmp_path / "one.usearch")
    with open_store(url) as store:
        (batch,) = store.scan_unchecked()
        assert batch.vectors.tolist() == [[np.inf, 0, 0]]


@pytest.mark.parametrize("options", [{"dtype": "i8"}, {"metric": "divergence"}])
def test_codes_and_other_metrics_are_refused(url, tmp_path, options):
    saved(tmp_path, **options)
    with pytest.raises(UnsupportedOperationError, match="dtype='f32'"):
        open_store(url)


def test_several_vectors_of_one_key_are_refused(url, tmp_path):
    saved(tmp_path, multi=True)
    with pytest.raises(UnsupportedOperationError, match="one vector per key"):
        open_store(url)


@pytest.mark.parametrize(("said", "metric"), [("cos", "cosine"), ("ip", "dot"), ("l2sq", "l2")])
def test_the_metric_is_that_of_the_index(url, tmp_path, said, metric):
    saved(tmp_path, metric=said)
    with open_store(url) as store:
        assert store.space.metric == metric
    for other in {"cosine", "dot", "l2"} - {metric}:
        with pytest.raises(SpaceMismatchError, match=f"metric {metric}"):
            open_store(url, space=Space(model="m", dim=DIM, metric=other))


def test_the_space_is_recorded_beside_it(url, tmp_path):
    before = saved(tmp_path)
    refused = pytest.raises(ReadOnlyStoreError, match="one of another program")
    with open_store(url, space=SPACE) as store, refused:
        store.upsert(VectorSet(["1"], VALUES[:1], SPACE))
    with open_store(url) as store:
        assert store.space == SPACE
        assert store.count() == 300
    assert (tmp_path / "one.usearch").read_bytes() == before
    saved(tmp_path, keys=KEYS[::-1])
    with pytest.raises(CorruptStoreError, match="if the index is new"):
        open_store(url)


def test_ids_beside_the_index_are_found_by_key(url, tmp_path):
    saved(tmp_path, keys=KEYS * 0 + np.arange(300, dtype=np.uint64)[::-1])
    names = [f"é{row}" for row in range(300)]
    (tmp_path / "one.usearch.ids.json").write_text(json.dumps(names))
    with open_store(url) as store:
        assert store.fetch(["é299"]).vectors.tolist() == VALUES[:1].tolist()
    (tmp_path / "one.usearch.ids.json").write_text(json.dumps(names[1:]))
    with pytest.raises(CorruptStoreError, match="an id for every number"):
        open_store(url)


def test_a_collection_is_a_file_that_usearch_reads(url, tmp_path, rows):
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(30))
        store.upsert(rows(30).select(np.array([3])))
    with open_store(url) as store:
        store.delete(["row-29", "row-7"])
        store.upsert(rows(2, "new", seed=1))
    index = Index.restore(tmp_path / "one.usearch")
    assert (str(index.dtype), len(index)) == ("ScalarKind.F32", 30)
    (key,) = index.search(rows(30).vectors[5], 1).keys
    assert json.loads((tmp_path / "one.usearch.ids.json").read_text())[key] == "row-5"
    assert np.array_equal(index.get(3), rows(30).vectors[3])


@pytest.mark.parametrize("content", [b"", b"x" * 5_000, b"\0" * 50, b"\xff" * 50])
def test_another_programs_file(url, tmp_path, content):
    (tmp_path / "one.usearch").write_bytes(content)
    with pytest.raises((NotAStoreError, CorruptStoreError)):
        open_store(url, space=SPACE)
    assert (tmp_path / "one.usearch").read_bytes() == content


def test_damage_of_an_index_of_others_is_noticed_or_harmless(url, tmp_path):
    whole = saved(tmp_path)
    generator = random.Random(0)  # noqa: S311 - places, not secrets
    seen = set()
    start = 8 + 300 * DIM * 4
    for place in [
        *range(8),
        *range(start, start + 120),
        *generator.sample(range(len(whole)), 60),
    ]:
        damaged = bytearray(whole)
        damaged[place] ^= 0x81
        (tmp_path / "one.usearch").write_bytes(damaged)
        try:
            with open_store(url) as store:
                for batch in store.scan_unchecked():
                    assert batch.vectors.shape[1] == DIM
        except (CorruptStoreError, NotAStoreError, UnsupportedOperationError) as error:
            seen.add(type(error))
    for cut in (1, 2_000, len(whole) - 5):
        (tmp_path / "one.usearch").write_bytes(whole[:-cut])
        with pytest.raises((CorruptStoreError, NotAStoreError)):
            open_store(url)
    assert {CorruptStoreError, NotAStoreError} <= seen


def test_the_client_is_not_installed(url, monkeypatch):
    monkeypatch.setitem(sys.modules, "usearch", None)
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'isthmus\[usearch\]'"):
        open_store(url, space=SPACE)
