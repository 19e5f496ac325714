"""Files into stores and back, with the metadata of the rows."""

import json

import numpy as np
import pytest

from isthmus import Space, VectorSet
from isthmus.errors import (
    CorruptFileError,
    CountMismatchError,
    DuplicateIdError,
    EmptyInputError,
    SpaceMismatchError,
    UnknownFormatError,
    UnsupportedOperationError,
    WriteFailedError,
)
from isthmus.spaces.io import FORMATS, open_records
from isthmus.stores import open_store
from isthmus.workflows import export_store, import_file

SPACE = Space(model="m", dim=3)
ROWS = 25
METADATA = [{"year": 2000 + row, "tags": ["a", None]} if row % 2 else {} for row in range(ROWS)]
WRITTEN = [name for name, form in FORMATS.items() if form.open_sink is not None]
KEEPING = [name for name in WRITTEN if FORMATS[name].keeps_metadata]


def vectors(rows=ROWS):
    values = np.random.default_rng(0).standard_normal((rows, 3))
    return VectorSet([f"né {row}" for row in range(rows)], values, SPACE)


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/one.db?collection=docs"


@pytest.fixture
def filled(url):
    with open_store(url, space=SPACE) as store:
        store.upsert(vectors(), metadata=METADATA)
    return url


@pytest.mark.parametrize("suffix", KEEPING)
def test_out_and_in_again(filled, tmp_path, suffix):
    path, other = tmp_path / f"v{suffix}", f"sqlite:///{tmp_path}/two.db?collection=docs"
    done = export_store(filled, path, batch_rows=10)
    assert (done.rows, done.with_metadata, done.space) == (ROWS, ROWS // 2, SPACE)
    assert json.dumps(done.to_dict())
    back = import_file(other, path, batch_rows=7)
    assert (back.rows, back.new, back.count, back.without_metadata) == (ROWS, ROWS, ROWS, 0)
    with open_store(filled) as one, open_store(other) as two:
        ids = vectors().ids.tolist()
        assert two.fetch(ids).matrix().tolist() == one.fetch(ids).matrix().tolist()
        assert two.fetch_metadata(ids) == METADATA
        found = two.search(vectors().matrix()[:1], k=5, where={"year": 2003})
        assert found.ids[0].tolist() == ["né 3", "", "", "", ""]
    again = import_file(other, path)
    assert (again.new, again.count) == (0, ROWS)


@pytest.mark.parametrize("suffix", WRITTEN)
def test_vectors_alone(filled, tmp_path, suffix):
    done = export_store(filled, tmp_path / f"v{suffix}", metadata=False, batch_rows=10)
    assert done.with_metadata == 0
    found = VectorSet.load(tmp_path / f"v{suffix}")
    assert (found.ids.tolist(), found.space) == (vectors().ids.tolist(), SPACE)
    assert found.matrix().tolist() == vectors().matrix().tolist()


@pytest.mark.parametrize("suffix", [name for name in WRITTEN if name not in KEEPING])
def test_metadata_are_not_dropped_unasked(filled, tmp_path, suffix):
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(UnsupportedOperationError, match=r"\.parquet, .* \(--no-metadata\)"):
        export_store(filled, tmp_path / f"v{suffix}")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_store_without_rows_and_bad_places(filled, tmp_path):
    with (
        open_store("memory://empty?collection=docs", space=SPACE) as store,
        pytest.raises(EmptyInputError, match="a collection with rows"),
    ):
        export_store(store, tmp_path / "v.npz")
    with pytest.raises(UnknownFormatError):
        export_store(filled, tmp_path / "v.csv")
    with pytest.raises(WriteFailedError):
        export_store(filled, tmp_path / "missing" / "v.parquet")
    with pytest.raises(UnsupportedOperationError, match="a file to write"):
        export_store(filled, tmp_path / "v.json")


def test_rows_that_come_while_it_is_read(filled, tmp_path):
    def meanwhile(batches, _what, _steps):
        for number, batch in enumerate(batches):
            yield batch
            if number == 0:
                with open_store(filled) as other:
                    other.upsert(VectorSet(["new"], [[1, 2, 3]], SPACE))

    with pytest.raises(CountMismatchError, match="25 rows in all; got 26"):
        export_store(filled, tmp_path / "v.parquet", batch_rows=10, track=meanwhile)
    assert not (tmp_path / "v.parquet").exists()


def test_a_file_of_others(url, tmp_path):
    lines = [{"_id": row, "embedding": [row, 1, 2], "year": 2000 + row} for row in range(3)]
    path = tmp_path / "theirs.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    done = import_file(url, path, space=SPACE, batch_rows=2)
    assert done.taken == "ids from the key '_id', vectors from 'embedding'"
    with open_store(url) as store:
        assert store.fetch_metadata(["2"]) == [{"year": 2002}]
    with pytest.raises(SpaceMismatchError):
        import_file(url, path, space=Space(model="other", dim=3))


def test_a_file_that_is_wrong_in_the_middle_leaves_what_came_before(url, tmp_path, monkeypatch):
    monkeypatch.setattr("isthmus.spaces.io.json_rows.BATCH_ROWS", 2)
    lines = [{"id": name, "vector": [1, 2, 3]} for name in ("a", "b", "c", "a")]
    path = tmp_path / "v.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(DuplicateIdError):
        import_file(url, path, space=SPACE)
    with open_store(url) as store:
        assert store.count() == 2
    path.write_text("\n".join(map(json.dumps, [*lines[:3], {"id": "d", "vector": [1]}])))
    with pytest.raises(CorruptFileError, match="3 numbers in line 4"):
        import_file(url, path, space=SPACE)


def test_memory_is_one_batch(tmp_path):
    """The rows of a file of many batches are never all there: each is gone when the next comes."""
    import gc
    import weakref

    export = tmp_path / "v.parquet"
    vectors(1_000).save(export)
    alive: list[weakref.ref[VectorSet]] = []
    for part in open_records(export, batch_rows=100):
        alive = [each for each in alive if each() is not None]
        assert len(alive) <= 1
        alive.append(weakref.ref(part.vectors))
        del part
        gc.collect()
