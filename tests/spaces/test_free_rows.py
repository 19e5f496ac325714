"""Rows that stand in no pair: copies of paired rows, large sets."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.spaces import Space, VectorSet
from isthmus.spaces.free_rows import MOST_ROWS, free_rows


def rows_of(n, seed=0, dim=16):
    return np.random.default_rng(seed).standard_normal((n, dim)).astype(np.float32)


def widest(rows):
    return np.abs(rows).max(axis=1, keepdims=True)


def set_of(rows, metric):
    return VectorSet(
        [f"r{row}" for row in range(len(rows))], rows, Space(model="m", dim=16, metric=metric)
    )


@pytest.mark.parametrize("metric", ["cosine", "l2", "dot"])
@pytest.mark.parametrize(
    "copied",
    [
        lambda rows: rows,
        lambda rows: rows.astype(np.float16).astype(np.float32),
        lambda rows: np.round(rows / widest(rows) * 127) * widest(rows) / 127,
        lambda rows: rows * np.float32(1 + 1e-6),
    ],
    ids=["exact", "float16", "int8", "rounded"],
)
def test_a_near_copy_of_a_paired_row_under_another_id_stands_in_a_pair(metric, copied):
    paired, free = rows_of(40), rows_of(30, seed=1)
    vectors = set_of(np.concatenate([free, copied(paired)]), metric)
    found = free_rows(vectors, np.array(["a pair's id"]), paired, seed=0)
    assert found.tolist() == list(range(30))


def test_length_is_of_no_account_where_the_metric_is_the_cosine():
    paired = rows_of(40)
    for metric, left in (("cosine", 0), ("l2", 40), ("dot", 40)):
        vectors = set_of(2 * paired, metric)
        assert len(free_rows(vectors, np.array(["none"]), paired, seed=0)) == left


def test_rows_are_left_out_by_their_ids_and_rows_close_by_stay():
    rows = rows_of(20)
    shift = 0.05 * np.linalg.norm(rows, axis=1, keepdims=True) / 4  # of each of 16 numbers
    vectors = set_of(np.concatenate([rows, rows + shift]), "l2")
    found = free_rows(vectors, vectors.ids[:20], rows, seed=0)
    assert found.tolist() == list(range(20, 40))
    everything = free_rows(vectors, vectors.ids, vectors.vectors, seed=0)
    assert not len(everything)


def test_of_many_rows_some_are_drawn_by_the_seed():
    n = MOST_ROWS + 50
    draw = np.random.default_rng(0)
    space = Space(model="m", dim=8, metric="l2")
    vectors = VectorSet([str(row) for row in range(n)], draw.normal(size=(n, 8)), space)
    first, again, other = (
        free_rows(vectors, vectors.ids[:10], vectors.vectors[:10], seed=seed) for seed in (0, 0, 1)
    )
    assert len(first) == MOST_ROWS
    assert first.min() >= 10
    assert (np.diff(first) > 0).all()
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
