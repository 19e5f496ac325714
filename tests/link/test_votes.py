"""The vote table against counting by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.link.votes import VoteTable, posterior_mean

some_pairs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), max_size=30)


def as_array(pairs: list[tuple[int, int]]) -> np.ndarray:
    return np.array(pairs, np.int64).reshape(-1, 2)


@given(st.lists(st.tuples(some_pairs, st.integers(1, 5)), max_size=5))
def test_it_counts(steps):
    table, expected = VoteTable.empty(), Counter[tuple[int, int]]()
    for pairs, each in steps:
        table = table.plus(as_array(pairs), each=each)
        for pair in pairs:
            expected[pair] += each
    assert [(*pair,) for pair in table.pairs.tolist()] == sorted(expected)
    assert table.votes.tolist() == [expected[pair] for pair in sorted(expected)]


@given(some_pairs, some_pairs)
def test_votes_of_pairs(counted, asked):
    table = VoteTable.empty().plus(as_array(counted))
    assert table.of(as_array(asked)).tolist() == [counted.count(pair) for pair in asked]


def test_rows_of_a_large_cloud_do_not_run_over():
    pairs = np.array([[3_000_000, 2_999_999], [2_999_999, 3_000_000]])
    table = VoteTable.empty().plus(np.array([[0, 1]])).plus(pairs)
    assert table.pairs.tolist() == [[0, 1], [2_999_999, 3_000_000], [3_000_000, 2_999_999]]


def test_nothing_new_changes_nothing():
    table = VoteTable.empty().plus(np.array([[1, 1]]))
    assert table.plus(as_array([])) is table
    assert table.of(as_array([])).tolist() == []


@given(st.integers(0, 500), st.integers(0, 500))
def test_posterior_mean_is_that_of_a_beta(votes, more):
    """The mean of Beta(a, b) is a / (a + b), with a = 1 + votes and b = 1 + views - votes."""
    a, b = 1 + votes, 1 + more
    assert posterior_mean(np.array([votes]), votes + more)[0] == pytest.approx(a / (a + b))
