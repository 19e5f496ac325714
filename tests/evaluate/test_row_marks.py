"""Marks of what was done to vectors after the encoder."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.evaluate.row_marks import GRIDS, mark_rows, summarise_marks

ROWS, DIM = 400, 64


@pytest.fixture
def rows() -> np.ndarray:
    made = np.random.default_rng(0).standard_normal((ROWS, DIM)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def bfloat16(rows: np.ndarray) -> np.ndarray:
    return ((rows.view(np.uint32) >> 16) << 16).view(np.float32)


def int8(rows: np.ndarray) -> np.ndarray:
    scale = np.abs(rows).max(axis=1, keepdims=True) / 127
    return (np.round(rows / scale) * scale).astype(np.float32)


ROUNDED = {
    "float32": lambda rows: rows,
    "float16": lambda rows: rows.astype(np.float16).astype(np.float32),
    "bfloat16": bfloat16,
    "int8": int8,
    "binary": np.sign,
}


@pytest.mark.parametrize("grid", GRIDS)
def test_the_coarsest_type_that_holds_a_row_is_named(rows, grid):
    assert {GRIDS[code] for code in mark_rows(ROUNDED[grid](rows)).grid} == {grid}


@pytest.mark.parametrize("later", ["normalised", "float16", "shifted"])
def test_levels_are_seen_through_what_came_later(later):
    rounded = int8(np.random.default_rng(0).standard_normal((100, 384)).astype(np.float32) / 20)
    after = {
        "normalised": rounded / np.linalg.norm(rounded, axis=1, keepdims=True),
        "float16": rounded.astype(np.float16),
        "shifted": rounded + np.float32(0.5),
    }[later]
    assert (mark_rows(after).grid == GRIDS.index("int8")).mean() > 0.95


def test_a_few_rounded_rows_make_a_part(rows):
    rows[:20] = int8(rows[:20])
    summary = summarise_marks(mark_rows(rows))
    assert [(part.name, part.rows) for part in summary.grids] == [("float32", 380), ("int8", 20)]
    assert summary.mixed == ("number type",)


def test_cut_rows_are_told_by_their_width_and_sparse_ones_are_not(rows):
    rows[:20, 32:] = 0
    assert summarise_marks(mark_rows(rows)).mixed == ("width", "length")
    rows[:20, :32] /= np.linalg.norm(rows[:20, :32], axis=1, keepdims=True)
    summary = summarise_marks(mark_rows(rows))
    assert summary.mixed == ("width",)
    assert [part.name for part in summary.widths] == ["width 64", "width 32"]
    sparse = np.where(np.random.default_rng(1).random((ROWS, DIM)) < 0.9, 0, rows)
    assert summarise_marks(mark_rows(sparse)).widths[0].share == 1.0


def test_rows_that_were_not_normalised_are_told_from_those_that_were(rows):
    lengths = np.random.default_rng(1).lognormal(0, 0.1, ROWS)[:, None]
    assert summarise_marks(mark_rows(rows)).normalized == "all"
    assert summarise_marks(mark_rows(rows * lengths)).normalized == "none"
    lengths[:300] = 1
    summary = summarise_marks(mark_rows(rows * lengths))
    assert (summary.normalized, summary.mixed) == ("some", ("length",))
    assert summary.lengths[0].rows == pytest.approx(300, abs=5)


def test_lengths_a_little_off_are_one_part(rows):
    lengths = 1 + 1e-3 * np.random.default_rng(1).standard_normal(ROWS)
    summary = summarise_marks(mark_rows(rows * lengths[:, None]))
    assert (summary.mixed, summary.normalized) == ((), "all")


def test_bad_and_zero_rows_have_no_number_type():
    marks = mark_rows([[np.nan, 1.0], [0.0, 0.0], [np.inf, 0.0], [3.0, 4.0]])
    assert marks.grid.tolist()[:3] == [-1, -1, -1]
    assert np.isnan(marks.length[[0, 2]]).all()
    assert marks.length[[1, 3]].tolist() == [0.0, 5.0]
    assert summarise_marks(mark_rows(np.zeros((3, 2)))).grids == ()


@given(st.integers(1, 40), st.integers(1, 70), st.floats(-38, 38), st.integers(0, 99))
def test_any_rows_have_marks(rows, dim, scale, seed):
    made = np.random.default_rng(seed).standard_normal((rows, dim)) * 10.0**scale
    made = np.clip(made, -3e38, 3e38)
    marks = mark_rows(made)
    assert len(marks.grid) == len(marks.width) == len(marks.length) == rows
    assert (marks.width <= dim).all()
    assert sum(part.share for part in summarise_marks(marks).widths) <= 1 + 1e-9
