"""Inspect: what is counted, and what two sets have in common."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from isthmus import Space, VectorSet, inspect
from isthmus.errors import CorruptFileError, InputError, MissingFileError
from isthmus.workflows._look import look_at_rows

A = Space(model="a", dim=8)
B = Space(model="b", dim=8)
IDS = [f"i{row}" for row in range(200)]


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(200, 8)).astype(np.float32)


def test_counts_and_lengths(rows):
    scaled = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    scaled[:100] *= 2
    looked = inspect(VectorSet(IDS, scaled, A)).a
    assert (looked.rows, looked.dim, looked.dtype) == (200, 8, "float32")
    assert looked.norm_low == pytest.approx(1, abs=1e-6)
    assert looked.norm_median == pytest.approx(1.5, abs=1e-6)
    assert looked.norm_high == pytest.approx(2, abs=1e-6)
    assert (looked.invalid_rows, looked.zero_rows) == (0, 0)
    assert (looked.duplicate_rows, looked.duplicate_ids) == (0, 0)
    assert (looked.asked_rows, looked.searched_rows) == (200, 200)
    assert looked.sound
    assert looked.notes == ()


def test_bad_rows_are_counted_not_refused():
    vectors = np.arange(24, dtype=np.float64).reshape(6, 4)
    vectors[0, 0] = np.inf
    vectors[1] = 0
    vectors[2] = -0.0
    vectors[4] = vectors[3]
    ids = np.array(["a", "b", "c", "d", "e", "a"])
    looked = look_at_rows(ids, vectors, Space(model="m", dim=4), seed=0)
    assert (looked.invalid_rows, looked.zero_rows) == (1, 2)
    assert looked.duplicate_rows == 2  # the second zero row, and row 4
    assert looked.duplicate_ids == 1
    assert np.isnan(looked.hubness)
    assert not looked.sound
    assert [note.split(":")[0] for note in looked.notes] == [
        "1 rows hold NaN or infinity",
        "2 rows are all zero",
        "1 ids stand there more than once",
        "2 rows repeat an earlier one",
    ]


def test_zero_rows_are_sound_where_direction_says_nothing():
    vectors = np.zeros((3, 2), np.float32)
    vectors[0] = 1
    ids = np.array(["a", "b", "c"])
    assert look_at_rows(ids, vectors, Space(model="m", dim=2, metric="l2"), seed=0).sound
    assert not look_at_rows(ids, vectors, Space(model="m", dim=2), seed=0).sound


def test_a_space_that_says_unit_length_and_is_not(tmp_path, rows):
    space = Space(model="a", dim=8, normalized=True)
    path = tmp_path / "v.npy"
    VectorSet(IDS, rows, A).save(path)
    path.with_suffix(".space.json").write_text(json.dumps(space.to_dict()))
    found = inspect(path, path)
    (note,) = found.a.notes
    assert note.startswith("the space says unit length, yet lengths go from ")
    assert (found.a.sound, found.both) == (False, None)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert inspect(VectorSet(IDS, unit.astype(np.float16), space)).a.notes == ()


def test_hubs_are_seen(rows):
    plain = inspect(VectorSet(IDS, rows, A)).a.hubness
    crowded = rows + 4 * (np.arange(200) >= 10)[:, None]  # ten rows are off, the rest is a cone
    hub = np.vstack([np.full((1, 8), 4.0), crowded[1:]])
    assert inspect(VectorSet(IDS, hub, A)).a.hubness > plain


def test_the_same_space_needs_no_bridge(rows):
    both = inspect(VectorSet(IDS, rows, A), VectorSet(IDS, rows, A)).both
    assert both is not None
    assert both.same_space
    assert both.differences == {}
    assert both.overlap is not None
    assert both.null_retention is not None
    assert both.overlap.mean == both.null_retention.mean == 1.0
    assert both.jaccard == {1: 1.0, 5: 1.0, 10: 1.0, 20: 1.0, 50: 1.0}


def test_a_rotation_agrees_within_and_not_across(rows):
    turn = np.linalg.qr(np.random.default_rng(4).normal(size=(8, 8)))[0]
    both = inspect(VectorSet(IDS, rows, A), VectorSet(IDS, rows @ turn, B)).both
    assert both is not None
    assert both.differences == {"model": ("a", "b")}
    assert both.overlap is not None
    assert both.null_retention is not None
    assert both.distances is not None
    assert both.overlap.mean > 0.99
    assert both.null_retention.mean < 0.3
    assert np.nanmin(both.distances.correlation) > 0.99
    assert both.chance == pytest.approx(10 / 199)


def test_only_shared_ids_are_compared(rows):
    other = VectorSet([*IDS[:50], *(f"x{row}" for row in range(150))], rows, B)
    both = inspect(VectorSet(IDS, rows, A), other).both
    assert both is not None
    assert (both.shared_ids, both.searched_rows) == (50, 50)
    assert both.overlap is not None
    assert both.overlap.mean == 1.0


def test_too_few_shared_ids_are_not_compared(rows):
    other = VectorSet([*IDS[:11], *(f"x{row}" for row in range(189))], rows, B)
    both = inspect(VectorSet(IDS, rows, A), other).both
    assert both is not None
    assert (both.shared_ids, both.overlap, both.null_retention) == (11, None, None)
    assert both.to_dict()["overlap"] is None


def test_unequal_dims_and_metrics(rows):
    wide = VectorSet(IDS, np.hstack([rows, rows]), Space(model="b", dim=16, metric="dot"))
    both = inspect(VectorSet(IDS, rows, A), wide).both
    assert both is not None
    assert both.metric == "cosine"
    assert both.null_retention is not None
    assert both.null_retention.mean > 0.5  # padding keeps what repeats the same numbers


def test_files_and_sets_give_the_same(rows, tmp_path: Path):
    vectors = VectorSet(IDS, rows, A)
    vectors.save(tmp_path / "a.npy", dtype="float32")
    there, here = inspect(tmp_path / "a.npy").a.to_dict(), inspect(vectors).a.to_dict()
    assert there == here


def test_a_mapped_file_with_bad_rows_is_looked_at(rows, tmp_path: Path):
    bad = rows.copy()
    bad[5] = np.nan
    np.save(tmp_path / "a.npy", bad)
    (tmp_path / "a.ids.txt").write_text("".join(f"{one}\n" for one in IDS))
    (tmp_path / "a.space.json").write_text('{"model": "a", "dim": 8}')
    result = inspect(tmp_path / "a.npy", tmp_path / "a.npy")
    assert result.a.invalid_rows == 1
    assert result.both is None


def test_what_is_no_file_of_vectors_is_refused(tmp_path: Path):
    with pytest.raises(MissingFileError):
        inspect(tmp_path / "none.npz")
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04")
    with pytest.raises(CorruptFileError):
        inspect(tmp_path / "cut.npz")
    np.savez(tmp_path / "ids.npz", ids=np.array(["a"]), vectors=np.ones((2, 2)), space="{}")
    with pytest.raises((InputError, CorruptFileError)):
        inspect(tmp_path / "ids.npz")


def test_a_file_without_a_space_is_looked_at(tmp_path: Path):
    np.savez(tmp_path / "bare.npz", ids=np.array(["a", "b"]), vectors=np.eye(2))
    looked = inspect(tmp_path / "bare.npz").a
    assert (looked.space, looked.sound, looked.rows) == (None, False, 2)
    (note,) = looked.notes
    assert note == (
        "the file names no space: only you know which model made these vectors; write it into "
        "NAME.space.json beside it"
    )


def test_a_mapped_file_does_not_fill_the_memory(tmp_path: Path):
    """One block of 16,384 rows lies in memory, not the 80 MB of the file."""

    def resident() -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("RssFile"))

    np.save(tmp_path / "a.npy", np.zeros((40_000, 1_024), np.float16))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    sizes = []

    def watch(items, description, total):
        del description, total
        before = resident()
        for item in items:
            sizes.append(resident() - before)
            yield item

    looked = look_at_rows(np.arange(40_000).astype(np.str_), mapped, None, track=watch)
    assert (looked.rows, looked.zero_rows, looked.duplicate_rows) == (40_000, 40_000, 39_999)
    assert len(sizes) == 3
    assert max(sizes) < 50_000_000


def test_arrays_are_no_sets(rows):
    with pytest.raises(
        InputError, match=r"got a ndarray of shape \(200, 8\). Do: make one: VectorS"
    ):
        inspect(rows)


def test_a_matrix_without_ids(tmp_path, rows):
    np.save(tmp_path / "v.npy", rows)
    found = inspect(tmp_path / "v.npy").a
    assert (found.rows, found.dim, found.dtype, found.sound) == (200, 8, str(rows.dtype), False)
    assert found.notes[0] == "no ids: other commands need 'v.ids.txt' beside it, one id a line"


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("suffix", [".npz", ".npy", ".safetensors"])
def test_the_number_type_is_that_of_the_file(tmp_path, rows, suffix, dtype):
    path = tmp_path / f"v{suffix}"
    VectorSet(IDS, rows, A).save(path, dtype=dtype)
    assert inspect(path).a.dtype == dtype
