"""Fleiss' kappa against its own paper and against pairs counted one by one; bad input."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isthmus.errors import CountMismatchError, DimensionError, EmptyInputError, ParameterError
from isthmus.evaluate import fleiss_kappa, pairwise_agreement

quick = settings(derandomize=True, deadline=None, max_examples=60)

# Fleiss (1971), Measuring nominal scale agreement among many raters, Psychological Bulletin 76 (5),
# 378-382, Table 1: 30 patients, each judged by 6 psychiatrists; depression, personality disorder,
# schizophrenia, neurosis, other.
FLEISS_1971 = """
00060 03003 01401 00006 03030 20400 00402 20310 20040 00006
10050 11040 03300 10050 02031 00501 30012 51000 02040 10203
00006 01050 02013 20040 10041 05010 40002 02040 10500 00006
"""


@st.composite
def judgements(draw):
    """Categories of shape (n, annotators)."""
    shape = (draw(st.integers(1, 12)), draw(st.integers(2, 5)))
    return draw(arrays(np.int64, shape, elements=st.integers(0, 3)))


def count(judged):
    return np.array([np.bincount(row, minlength=4) for row in judged])


def test_the_example_of_the_paper():
    table = np.array([[int(digit) for digit in row] for row in FLEISS_1971.split()])
    assert table.shape == (30, 5)
    shares = table.sum(axis=0) / table.sum()
    assert shares.round(3).tolist() == [0.144, 0.144, 0.167, 0.306, 0.239]
    assert pairwise_agreement(table) == pytest.approx(0.556, abs=5e-4)
    assert fleiss_kappa(table) == pytest.approx(0.430, abs=5e-4)


@quick
@given(judgements())
def test_agreement_is_the_mean_over_pairs_of_annotators(judged):
    pairs = combinations(range(judged.shape[1]), 2)
    expected = np.mean([(judged[:, a] == judged[:, b]).mean() for a, b in pairs])
    assert pairwise_agreement(count(judged)) == pytest.approx(expected)


@quick
@given(judgements(), st.randoms(use_true_random=False))
def test_order_and_empty_categories_do_not_matter(judged, random):
    table = count(judged)
    rows, columns = list(range(len(table))), list(range(4))
    random.shuffle(rows)
    random.shuffle(columns)
    other = np.c_[table[rows][:, columns], np.zeros(len(table), dtype=int)]
    assert fleiss_kappa(other) == pytest.approx(fleiss_kappa(table), nan_ok=True)
    assert pairwise_agreement(other) == pairwise_agreement(table)


@quick
@given(judgements())
def test_kappa_stays_in_its_range(judged):
    table = count(judged)
    assume(np.count_nonzero(table.sum(axis=0)) > 1)
    lowest = -1 / (judged.shape[1] - 1)
    assert lowest - 1e-12 <= fleiss_kappa(table) <= 1
    assert (fleiss_kappa(table) == 1) == (pairwise_agreement(table) == 1)


@quick
@given(st.lists(st.booleans(), min_size=2, max_size=30), st.integers(2, 6))
def test_full_agreement_is_one_unless_all_is_the_same(relevant, annotators):
    table = np.array([[annotators, 0] if one else [0, annotators] for one in relevant])
    assert pairwise_agreement(table) == 1
    if len(set(relevant)) == 1:
        assert np.isnan(fleiss_kappa(table))
    else:
        assert fleiss_kappa(table) == 1


def test_answers_by_chance_are_near_zero():
    judged = np.random.default_rng(100).integers(0, 3, (5_000, 4))
    assert abs(fleiss_kappa(count(judged))) < 0.02


def test_small_types_do_not_overflow():
    table = np.array([[200, 0], [0, 200]], dtype=np.uint8)
    assert fleiss_kappa(table) == 1.0


@pytest.mark.parametrize(
    ("counts", "error", "text"),
    [
        ([3, 0], DimensionError, r"shape \(n, categories\); got shape \(2,\)"),
        ([[[3]]], DimensionError, "Do: give one row for each subject"),
        (np.empty((0, 2), int), EmptyInputError, "at least one subject"),
        ([[0.5, 1.5]], ParameterError, "whole numbers from 0; got an array of type float64"),
        ([["a", "b"]], ParameterError, "got an array of type <U1"),
        ([[3, -1]], ParameterError, "from -1"),
        ([[1, 0], [1, 0]], ParameterError, "at least 2 annotators; got 1"),
        ([[2, 1], [3, 0], [2, 0]], CountMismatchError, "3 judgements .*; got 2 in row 2"),
    ],
)
@pytest.mark.parametrize("measure", [fleiss_kappa, pairwise_agreement])
def test_bad_input_says_expected_got_do(measure, counts, error, text):
    with pytest.raises(error, match=text):
        measure(counts)
