"""Intervals: known answers, coverage, pairing, undefined queries, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import (
    CountMismatchError,
    DimensionError,
    EmptyInputError,
    InvalidVectorsError,
    ParameterError,
)
from isthmus.evaluate import bootstrap

quick = settings(derandomize=True, deadline=None, max_examples=40)


def test_interval_has_the_width_of_the_normal_one_for_many_queries():
    values = np.random.default_rng(0).standard_normal(2000) + 5.0
    low, high = bootstrap.interval(values, seed=1, resamples=4000)
    half = 1.96 * values.std(ddof=1) / np.sqrt(2000)
    assert (low + high) / 2 == pytest.approx(values.mean(), abs=0.1 * half)
    assert (high - low) / 2 == pytest.approx(half, rel=0.06)


def test_the_plain_loop_gives_the_same_means():
    values = np.random.default_rng(0).random(30)
    means = bootstrap.resampled_means(values[:, None], seed=3, resamples=50)[:, 0]
    places = np.random.default_rng(3).integers(0, 30, (50, 30))
    np.testing.assert_allclose(means, [values[row].mean() for row in places], rtol=1e-12)


@pytest.mark.parametrize(("queries", "least"), [(6, 0.90), (40, 0.91)])
def test_intervals_contain_the_truth_as_often_as_they_say(queries, least):
    draw = np.random.default_rng(queries)
    inside = 0
    for trial in range(300):
        low, high = bootstrap.interval(draw.random(queries), seed=trial, resamples=300)
        inside += low <= 0.5 <= high
    assert least < inside / 300 < 0.985


@quick
@given(
    st.lists(st.floats(-1, 1), min_size=2, max_size=40),
    st.integers(0, 1000),
    st.floats(0.5, 0.99),
)
def test_intervals_lie_within_the_values_and_grow_with_the_level(values, seed, level):
    low, high = bootstrap.interval(values, seed=seed, level=level, resamples=200)
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9
    narrow = bootstrap.interval(values, seed=seed, level=0.4, resamples=200)
    assert low <= narrow[0] <= narrow[1] <= high


def test_constant_values_have_no_width():
    assert bootstrap.interval([0.25] * 9) == (0.25, 0.25)


def test_one_query_has_no_interval():
    for values in ([0.5], [0.5, np.nan], [np.nan, np.nan]):
        assert np.isnan(bootstrap.interval(values)).all()


def test_the_same_seed_gives_the_same_interval_and_another_seed_another():
    values = np.random.default_rng(0).random(50)
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - that it is untouched is the point
    assert bootstrap.interval(values, seed=4) == bootstrap.interval(values, seed=4)
    assert bootstrap.interval(values, seed=4) != bootstrap.interval(values, seed=5)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002 - the same


def test_undefined_queries_are_left_out():
    values = np.random.default_rng(0).random((60, 2))
    values[::3, 1] = np.nan
    means = bootstrap.resampled_means(values, seed=2, resamples=40)
    places = np.random.default_rng(2).integers(0, 60, (40, 60))
    expected = [np.nanmean(values[row], axis=0) for row in places]
    np.testing.assert_allclose(means, expected, rtol=1e-12)


def test_blocks_do_not_change_the_draws(monkeypatch):
    values = np.random.default_rng(0).random(50)
    whole = bootstrap.interval(values, seed=4)
    monkeypatch.setattr(bootstrap, "BLOCK_NUMBERS", 170)
    assert bootstrap.interval(values, seed=4) == pytest.approx(whole, rel=1e-12)


def test_intervals_of_many_measures_are_those_of_each_alone():
    values = np.random.default_rng(0).random((40, 3))
    together = bootstrap.intervals(values, seed=6)
    for place in range(3):
        alone = bootstrap.interval(values[:, place], seed=6)
        np.testing.assert_allclose(together[place], alone, rtol=1e-12)


def test_pairing_sees_a_difference_that_separate_intervals_hide():
    hard = np.random.default_rng(0).random(200)
    a, b = hard + 0.02, hard
    mean, low, high = bootstrap.paired_difference(a, b)
    assert mean == pytest.approx(0.02)
    assert low == pytest.approx(0.02)
    assert high == pytest.approx(0.02)
    first, second = bootstrap.interval(a), bootstrap.interval(b)
    assert first[0] < second[1]


@quick
@given(seed=st.integers(0, 1000))
def test_difference_changes_sign_when_the_sides_change_place(seed):
    a, b = np.random.default_rng(seed).random((2, 20))
    mean, low, high = bootstrap.paired_difference(a, b, seed=seed, resamples=99)
    back = bootstrap.paired_difference(b, a, seed=seed, resamples=99)
    np.testing.assert_allclose((mean, low, high), (-back[0], -back[2], -back[1]), atol=1e-12)


def test_ratio_is_of_means_and_paired():
    b = np.random.default_rng(0).random(100)
    assert bootstrap.ratio(0.8 * b, b) == pytest.approx((0.8, 0.8, 0.8))
    value, low, high = bootstrap.ratio([0.0, 1.0] * 20, [1.0] * 40)
    assert value == 0.5
    assert 0.3 < low < 0.4
    assert 0.6 < high < 0.7


def test_ratio_leaves_out_a_query_that_either_side_does_not_define():
    value, _, _ = bootstrap.ratio([0.5, np.nan, 0.5], [1.0, 0.0, np.nan])
    assert value == 0.5


def test_ratio_to_nothing_is_undefined():
    assert np.isnan(bootstrap.ratio([0.5, 0.1], [0.0, 0.0])).all()
    assert np.isnan(bootstrap.ratio([np.nan, 0.1], [0.5, np.nan])).all()


@pytest.mark.parametrize(
    ("values", "error", "text"),
    [
        ([], EmptyInputError, "per_query of at least one query; got none"),
        ([[0.1]], DimensionError, "one number per query; got shape (1, 1)"),
        ([np.inf, 1.0], InvalidVectorsError, "per_query as numbers, NaN where undefined"),
        (["a"], InvalidVectorsError, "per_query as numbers"),
    ],
)
def test_bad_values_say_expected_got_do(values, error, text):
    with pytest.raises(error, match="Do: ") as caught:
        bootstrap.interval(values)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"level": 0.0}, "expected level over 0"),
        ({"level": 1.5}, "expected level over 0 and at most 1"),
        ({"resamples": 0}, "resamples as a whole number over 0; got 0"),
        ({"resamples": 10.5}, "resamples as a whole number over 0; got 10.5"),
    ],
)
def test_bad_parameters_say_expected_got_do(options, text):
    with pytest.raises(ParameterError) as caught:
        bootstrap.interval([0.1, 0.2], **options)
    assert text in str(caught.value)


def test_both_sides_need_the_same_queries():
    for function in (bootstrap.paired_difference, bootstrap.ratio):
        with pytest.raises(CountMismatchError, match="the same queries on both sides; got 2 and 3"):
            function([0.1, 0.2], [0.1, 0.2, 0.3])
