"""Greedy one-to-one matching."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from isthmus.link.one_to_one import one_to_one

scored = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(0, 4)), max_size=40)


def split(rows: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray]:
    table = np.array(rows, np.int64).reshape(-1, 3)
    return table[:, :2], table[:, 2].astype(float)


@given(scored)
def test_no_row_is_kept_twice(rows):
    pairs, score = split(rows)
    kept = pairs[one_to_one(pairs, score)]
    assert len(set(kept[:, 0])) == len(set(kept[:, 1])) == len(kept)


@given(scored)
def test_what_is_left_out_conflicts_with_something_at_least_as_sure(rows):
    pairs, score = split(rows)
    kept = one_to_one(pairs, score)
    for place in set(range(len(pairs))) - set(kept.tolist()):
        rivals = kept[(pairs[kept] == pairs[place]).any(axis=1)]
        assert len(rivals)
        assert score[rivals].max() >= score[place]


@given(scored, st.randoms(use_true_random=False))
def test_the_order_of_the_pairs_does_not_matter(rows, random):
    pairs, score = split(rows)
    mixed = np.array(random.sample(range(len(pairs)), len(pairs)), np.int64)
    again = one_to_one(pairs[mixed], score[mixed])
    assert pairs[one_to_one(pairs, score)].tolist() == pairs[mixed][again].tolist()


def test_equal_scores_go_by_source_row_then_target_row():
    pairs = np.array([[1, 0], [0, 1], [0, 0], [1, 1]])
    assert pairs[one_to_one(pairs, np.ones(4))].tolist() == [[0, 0], [1, 1]]


def test_nothing_of_nothing():
    assert len(one_to_one(np.empty((0, 2), np.int64), np.empty(0))) == 0
