"""numpy's own format: three files that belong together, and vectors that stay on disk."""

import json
import shutil

import numpy as np
import pytest

from isthmus.errors import (
    CorruptFileError,
    CountMismatchError,
    DimensionError,
    InvalidIdError,
    InvalidVectorsError,
    MissingFileError,
    WriteFailedError,
    ZeroVectorError,
)
from isthmus.spaces import Space, VectorSet

FILES = ("v.npy", "v.ids.txt", "v.space.json")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_three_files(tmp_path, make_set):
    make_set().save(tmp_path / "v.npy")
    assert names(tmp_path) == sorted(FILES)
    assert np.load(tmp_path / "v.npy", allow_pickle=False).dtype == np.float16
    assert (tmp_path / "v.ids.txt").read_text(encoding="utf-8").splitlines()[1] == "id 1 ü"
    recorded = json.loads((tmp_path / "v.space.json").read_text(encoding="utf-8"))
    assert recorded["format"] == "isthmus-npy-1"
    assert recorded["rows"] == 5
    assert recorded["space"]["prompt"] == "Frage: ä"


@pytest.mark.parametrize("older", FILES)
@pytest.mark.parametrize("change", ["other vectors", "other ids", "more rows"])
def test_a_crash_between_the_moves_is_noticed(tmp_path, space, older, change):
    """One file of the old set among two of the new one, in every combination that differs."""
    values = np.arange(1, 21).reshape(5, 4)
    old = VectorSet(list("abcde"), values, space)
    new = {
        "other vectors": VectorSet(list("abcde"), values[::-1], space),
        "other ids": VectorSet(list("abcdf"), values, space),
        "more rows": VectorSet(list("abcdef"), np.r_[values, [[1, 1, 1, 1]]], space),
    }[change]
    (tmp_path / "old").mkdir()
    old.save(tmp_path / "old" / "v.npy")
    new.save(tmp_path / "v.npy")
    same = (tmp_path / older).read_bytes() == (tmp_path / "old" / older).read_bytes()
    shutil.copy(tmp_path / "old" / older, tmp_path / older)
    if same:
        VectorSet.load(tmp_path / "v.npy")
        return
    for memory_map in (False, True):
        with pytest.raises((CorruptFileError, CountMismatchError), match="not written together"):
            VectorSet.load(tmp_path / "v.npy", memory_map=memory_map)


def test_a_move_that_fails_leaves_the_old_set(tmp_path, make_set, monkeypatch):
    make_set().save(tmp_path / "v.npy")
    before = {name: (tmp_path / name).read_bytes() for name in FILES}
    rename = type(tmp_path).rename

    def fail_for_the_space(self, target):
        if self.name.endswith(".tmp") and target.name == "v.space.json":
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(type(tmp_path), "rename", fail_for_the_space)
    with pytest.raises(WriteFailedError, match="Input/output error"):
        make_set(9, seed=1).save(tmp_path / "v.npy")
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == before


def test_a_missing_file_of_ids(tmp_path, make_set):
    make_set().save(tmp_path / "v.npy")
    (tmp_path / "v.ids.txt").unlink()
    with pytest.raises(MissingFileError, match=r"ids in 'v.ids.txt', one a line"):
        VectorSet.load(tmp_path / "v.npy")


def test_files_written_by_other_means(tmp_path):
    np.save(tmp_path / "v.npy", np.array([[1, 2], [3, 4]], dtype=np.float64))
    (tmp_path / "v.ids.txt").write_bytes(b"a\r\nb")
    given = Space(model="m", dim=2)
    assert VectorSet.load(tmp_path / "v.npy", space=given).ids.tolist() == ["a", "b"]
    (tmp_path / "v.space.json").write_text('{"model": "n", "dim": 2}')
    assert VectorSet.load(tmp_path / "v.npy").space.model == "n"
    mapped = VectorSet.load(tmp_path / "v.npy", memory_map=True)
    assert mapped.matrix().tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "'v.space.json' with a space as JSON"),
        ("[" * 100_000, "a space as JSON"),
        ("[]", "a JSON object; got list"),
        ('{"model": "m"}', r"missing fields \['dim'\]"),
        ('{"format": "isthmus-npy-9"}', "format 'isthmus-npy-1'; got 'isthmus-npy-9'"),
        ('{"format": "isthmus-npy-1"}', "the rows and ids_sha256 and sample_sha256 that"),
        (" " * 300_000, "at most 262,144 bytes; got 300,000 bytes"),
    ],
)
def test_a_broken_file_of_the_space(tmp_path, make_set, content, message):
    make_set().save(tmp_path / "v.npy")
    (tmp_path / "v.space.json").write_text(content)
    with pytest.raises(CorruptFileError, match=message):
        VectorSet.load(tmp_path / "v.npy")


def test_ids_that_are_not_text(tmp_path, make_set):
    make_set().save(tmp_path / "v.npy")
    (tmp_path / "v.ids.txt").write_bytes(b"a\n\xff\n")
    with pytest.raises(CorruptFileError, match=r"'v.ids.txt' with ids in UTF-8"):
        VectorSet.load(tmp_path / "v.npy")


@pytest.mark.parametrize("bad", ["b\nc", "b\rc"])
def test_ids_with_line_breaks_are_refused(tmp_path, space, bad):
    vectors = VectorSet(["a", bad], np.ones((2, 4)), space)
    with pytest.raises(InvalidIdError, match=r"without line breaks.*save as .npz"):
        vectors.save(tmp_path / "v.npy")
    assert names(tmp_path) == []


@pytest.mark.parametrize("mark", ["\u2028", "\x85", "\x0b", "\x1c", "\ufeff", " "])
def test_other_marks_stay_in_their_id(tmp_path, space, mark):
    ids = [f"{mark}a", f"a{mark}", f"a{mark}b"]
    VectorSet(ids, np.ones((3, 4)), space).save(tmp_path / "v.npy")
    assert VectorSet.load(tmp_path / "v.npy").ids.tolist() == ids


def test_a_byte_order_mark_is_no_part_of_the_first_id(tmp_path):
    np.save(tmp_path / "v.npy", np.ones((2, 2)))
    (tmp_path / "v.ids.txt").write_bytes(b"\xef\xbb\xbfa\r\n\xef\xbb\xbfb\r\n")
    read = VectorSet.load(tmp_path / "v.npy", space=Space(model="m", dim=2))
    assert read.ids.tolist() == ["a", "\ufeffb"]


def test_ids_are_read_in_blocks(tmp_path, make_set, monkeypatch):
    make_set(50).save(tmp_path / "v.npy")
    monkeypatch.setattr("isthmus.spaces.io.npy.BLOCK_BYTES", 16)
    assert VectorSet.load(tmp_path / "v.npy").ids.tolist() == make_set(50).ids.tolist()


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_mapped_set_stays_on_disk_and_comes_in_float32(tmp_path, make_set, dtype):
    wanted = make_set(9)
    wanted.save(tmp_path / "v.npy", dtype=dtype)
    mapped = VectorSet.load(tmp_path / "v.npy", memory_map=True)
    assert isinstance(mapped.vectors, np.memmap)
    assert mapped.vectors.dtype == dtype
    assert not mapped.vectors.flags.writeable
    for batch in mapped.iter_batches(4):
        assert batch.vectors.dtype == np.float32
    assert mapped.matrix().tolist() == wanted.matrix().tolist()
    assert not mapped.matrix().flags.writeable
    picked = mapped.select([7, 2])
    assert picked.vectors.dtype == np.float32
    assert picked.matrix().tolist() == wanted.matrix()[[7, 2]].tolist()
    mapped.save(tmp_path / "w.npy")
    assert (tmp_path / "w.ids.txt").read_bytes() == (tmp_path / "v.ids.txt").read_bytes()


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (np.nan, InvalidVectorsError, "finite numbers in vectors; got NaN or infinity in row 5"),
        (0.0, ZeroVectorError, "in vectors; got only zeros in row 5"),
    ],
)
def test_a_bad_row_of_a_mapped_set_is_found_when_it_is_read(tmp_path, value, error, message):
    values = np.ones((8, 4), dtype=np.float32)
    values[5] = value
    np.save(tmp_path / "v.npy", values)
    (tmp_path / "v.ids.txt").write_text("".join(f"{row}\n" for row in range(8)))
    mapped = VectorSet.load(tmp_path / "v.npy", space=Space(model="m", dim=4), memory_map=True)
    batches = mapped.iter_batches(4)
    assert len(next(batches)) == 4
    with pytest.raises(error, match=message):
        next(batches)
    with pytest.raises(error):
        mapped.matrix()
    with pytest.raises(error):
        mapped.select([5])


def test_a_mapped_set_of_another_width(tmp_path):
    np.save(tmp_path / "v.npy", np.ones((2, 4), dtype=np.float32))
    (tmp_path / "v.ids.txt").write_text("a\nb\n")
    with pytest.raises(DimensionError, match=r"shape \(n, 3\); got shape \(2, 4\)"):
        VectorSet.load(tmp_path / "v.npy", space=Space(model="m", dim=3), memory_map=True)


def test_columns_first(tmp_path):
    values = np.asfortranarray(np.arange(1, 9, dtype=np.float32).reshape(2, 4))
    np.save(tmp_path / "v.npy", values)
    (tmp_path / "v.ids.txt").write_text("a\nb\n")
    for memory_map in (False, True):
        found = VectorSet.load(
            tmp_path / "v.npy", space=Space(model="m", dim=4), memory_map=memory_map
        )
        assert found.matrix().tolist() == values.tolist()


def test_pages_that_only_this_process_knows_are_not_given_back(tmp_path):
    np.save(tmp_path / "v.npy", np.ones((2, 4), dtype=np.float32))
    mapped = np.load(tmp_path / "v.npy", mmap_mode="c")
    mapped[1] = 2
    vectors = VectorSet(["a", "b"], mapped, Space(model="m", dim=4))
    assert [batch.vectors[0, 0] for batch in vectors.iter_batches(1)] == [1, 2]
    assert [batch.vectors[0, 0] for batch in vectors.iter_batches(1)] == [1, 2]
