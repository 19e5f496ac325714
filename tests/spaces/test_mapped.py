"""Rows of a mapped file are the rows of the array, and its pages are given back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isthmus.spaces import _mapped
from isthmus.spaces._mapped import gather


def resident() -> int:
    """Return the bytes of mapped files that lie in this process's memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("RssFile"))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_same_rows_from_memory_and_from_a_file(tmp_path: Path, monkeypatch, dtype):
    monkeypatch.setattr(_mapped, "GATHERED_ROWS", 3)
    array = np.random.default_rng(0).normal(size=(50, 4)).astype(dtype)
    np.save(tmp_path / "a.npy", array)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    rows = np.array([49, 0, 7, 7, 3, 20, 11])
    for source in (array, mapped):
        found = gather(source, rows)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, array[rows].astype(np.float32))
    assert gather(mapped, rows[:0]).shape == (0, 4)


def test_pages_do_not_pile_up(tmp_path: Path):
    np.save(tmp_path / "a.npy", np.zeros((40_000, 1_024), np.float16))  # 80 MB
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    rows = np.arange(0, 40_000, 2)  # every page of 4 KB
    before = resident()
    gather(mapped, rows)
    kept = resident() - before
    assert kept < 16_000_000
    _ = [mapped[row].sum() for row in rows.tolist()]  # this is what it is for
    assert resident() - before > kept + 60_000_000
