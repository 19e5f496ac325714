"""Canaries tell other weights from what was merely done to the vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus import Space, VectorSet
from isthmus.errors import InputError, ParameterError, SpaceMismatchError, VerdictError
from isthmus.stores import MemoryStore
from isthmus.workflows.canary import add_canaries, check_canaries, compare_canaries

SPACE = Space(model="m", dim=24)
IDS = [f"c{i}" for i in range(30)]


@pytest.fixture
def rows() -> np.ndarray:
    draw = np.random.default_rng(0)
    return draw.standard_normal((30, 24)) + draw.standard_normal(24)


def test_the_same_again_is_unchanged(rows, tmp_path: Path):
    store, vectors = MemoryStore(SPACE), VectorSet(IDS, rows, SPACE)
    assert add_canaries(store, vectors, tmp_path / "c.npz") == 30
    found = check_canaries(store, vectors, tmp_path / "c.npz")
    assert (found.verdict, found.kind, found.rows, found.missing) == ("unchanged", "equal", 30, 0)
    assert store.count() == 0
    found.require()
    some = check_canaries(store, vectors.select(np.arange(10)), tmp_path / "c.npz")
    assert (some.rows, some.missing) == (10, 20)


CHANGES = {
    "rounding of float16": lambda rows: rows.astype(np.float16),
    "rounding of bfloat16": lambda rows: rows * (1 + 4e-3 * np.sign(np.sin(rows * 1e6))),
    "numeric noise": lambda rows: (
        rows + 0.02 * np.random.default_rng(1).standard_normal(rows.shape)
    ),
    "other lengths": lambda rows: rows / np.linalg.norm(rows, axis=1, keepdims=True),
    "cut to 16 dimensions": lambda rows: rows[:, :16],
    "signs of dimensions": lambda rows: rows * np.where(np.arange(24) % 3, 1, -1),
    "order of dimensions": lambda rows: rows[:, np.random.default_rng(1).permutation(24)],
    "rotation": lambda rows: rows @ turned(24),
    "other weights": lambda rows: np.tanh(
        rows @ np.random.default_rng(1).standard_normal((24, 24))
    ),
}
UNCHANGED = ("rounding of float16", "rounding of bfloat16", "numeric noise")


def turned(dim: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(3).standard_normal((dim, dim)))[0]


@pytest.mark.parametrize("kind", CHANGES)
def test_each_change_is_named(rows, kind):
    found = compare_canaries(rows, CHANGES[kind](rows))
    assert found.kind == kind
    expected = "unchanged" if kind in UNCHANGED else "transformed"
    assert found.verdict == ("changed weights" if kind == "other weights" else expected)
    if found.verdict != "unchanged":
        with pytest.raises(VerdictError, match=kind):
            found.require()


def test_zeros_at_the_end_are_a_cut_too(rows):
    padded = rows.copy()
    padded[:, 16:] = 0
    assert compare_canaries(rows, padded).kind == "cut to 16 dimensions"


def test_a_little_training_is_other_weights_and_said_by_how_much(rows):
    pushed = rows + 0.3 * np.random.default_rng(2).standard_normal(rows.shape)
    found = compare_canaries(rows, pushed)
    assert found.verdict == "changed weights"
    assert 0.1 < found.error < 0.4
    assert 0.9 < found.lowest_cosine < found.cosine < 1
    assert found.similarity_error > 0.01


def test_few_rows_are_not_called_a_rotation():
    one = compare_canaries([[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]])
    assert one.verdict == "changed weights"


@given(st.integers(5, 20), st.integers(2, 20), st.integers(0, 99))
def test_any_rotation_keeps_the_cosines(count, dim, seed):
    rows = np.random.default_rng(seed).standard_normal((count, dim))
    found = compare_canaries(rows, rows @ turned(dim))
    assert found.verdict in ("transformed", "unchanged")
    assert found.similarity_error < 1e-6


def test_what_does_not_belong_together_is_refused(rows, tmp_path: Path):
    store, vectors = MemoryStore(SPACE), VectorSet(IDS, rows, SPACE)
    other = Space(model="other", dim=24)
    with pytest.raises(SpaceMismatchError):
        add_canaries(store, VectorSet(IDS, rows, other), tmp_path / "c.npz")
    assert not (tmp_path / "c.npz").exists()
    add_canaries(store, vectors, tmp_path / "c.npz")
    with pytest.raises(ParameterError, match="there already"):
        add_canaries(store, vectors, tmp_path / "c.npz")
    with pytest.raises(SpaceMismatchError):
        check_canaries(MemoryStore(other), vectors, tmp_path / "c.npz")
    with pytest.raises(SpaceMismatchError):
        check_canaries(store, VectorSet(IDS, rows, other), tmp_path / "c.npz")
    strangers = VectorSet([f"x{i}" for i in range(30)], rows, SPACE)
    with pytest.raises(InputError, match="none of them"):
        check_canaries(store, strangers, tmp_path / "c.npz")
    np.savez(tmp_path / "bare.npz", ids=IDS, vectors=rows)
    with pytest.raises(InputError):
        check_canaries(tmp_path / "bare.npz", vectors, tmp_path / "c.npz")


def test_canaries_of_length_zero_may_stay_so(rows):
    rows[0] = 0
    assert compare_canaries(rows, rows).kind == "equal"
    changed = rows.copy()
    changed[0] = 1
    assert compare_canaries(rows, changed).verdict != "unchanged"
    assert compare_canaries(np.zeros((3, 4)), np.zeros((3, 4))).verdict == "unchanged"


def test_one_text_many_times_tells_no_rotation(rows):
    one, other = np.tile(rows[:1], (9, 1)), np.tile(rows[1:2], (9, 1))
    assert compare_canaries(one, other).verdict == "changed weights"


def test_many_canaries_are_compared_in_little_memory():
    many = np.random.default_rng(0).standard_normal((50_000, 2))
    assert compare_canaries(many, many @ turned(2)).kind == "rotation"


def test_a_gate_wants_every_canary_and_enough_of_them():
    rows = np.random.default_rng(0).standard_normal((20, 8))
    compare_canaries(rows, rows).require()
    for found in (compare_canaries(rows, rows, missing=1), compare_canaries(rows[:4], rows[:4])):
        assert found.verdict == "unchanged"
        with pytest.raises(VerdictError, match="every canary embedded again, 5 at least"):
            found.require()
