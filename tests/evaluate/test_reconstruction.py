"""Reconstruction: hand-made numbers, invariances, degenerate rows, bad input."""

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
)
from isthmus.evaluate.reconstruction import cos_to_target, mse, r2

quick = settings(derandomize=True, deadline=None, max_examples=40)
ALL = (cos_to_target, mse, r2)


def gaussian(seed, rows=30, dim=6):
    return np.random.default_rng(seed).standard_normal((rows, dim))


def test_numbers_made_by_hand():
    mapped, target = [[3.0, 4.0], [1.0, 0.0]], [[4.0, 3.0], [-1.0, 0.0]]
    np.testing.assert_allclose(cos_to_target(mapped, target), [0.96, -1.0])
    np.testing.assert_allclose(mse(mapped, target), [1.0, 2.0])
    # Around the mean (1.5, 1.5) the target spreads by 2 * (2.5^2 + 1.5^2) = 17; missed: 2 + 4.
    assert r2(mapped, target).mean == pytest.approx(1 - 6 / 17)


@quick
@given(seed=st.integers(0, 10_000), scale=st.floats(0.01, 100))
def test_cosine_ignores_scale_and_is_symmetric(seed, scale):
    a, b = gaussian(seed), gaussian(seed + 1)
    np.testing.assert_allclose(cos_to_target(a * scale, b), cos_to_target(b, a), atol=1e-12)
    np.testing.assert_allclose(mse(a, b), mse(b, a))


@quick
@given(seed=st.integers(0, 10_000))
def test_perfect_and_mean_maps_mark_the_scale(seed):
    target = gaussian(seed)
    perfect = r2(target, target)
    assert (perfect.mean, perfect.low, perfect.high) == (1.0, 1.0, 1.0)
    assert cos_to_target(target, target).min() > 1 - 1e-12
    assert mse(target, target).max() == 0.0
    mean_map = np.broadcast_to(target.mean(axis=0), target.shape)
    assert r2(mean_map, target).mean == pytest.approx(0.0, abs=1e-12)


@quick
@given(seed=st.integers(0, 10_000))
def test_order_of_rows_does_not_matter(seed):
    mapped, target = gaussian(seed), gaussian(seed + 1)
    order = np.random.default_rng(seed).permutation(len(mapped))
    for measure in (cos_to_target, mse):
        np.testing.assert_array_equal(
            measure(mapped[order], target[order]), measure(mapped, target)[order]
        )
    assert r2(mapped[order], target[order]).mean == pytest.approx(r2(mapped, target).mean)


def test_r2_interval_surrounds_the_value():
    target = gaussian(0, rows=200)
    value = r2(target + 0.5 * gaussian(1, rows=200), target)
    assert value.low < value.mean < value.high
    assert value.high - value.low < 0.15
    assert len(value.per_query) == 0


def test_rows_without_direction_and_constant_rows_have_defined_values():
    assert cos_to_target([[0.0, 0.0]], [[1.0, 0.0]]).tolist() == [0.0]
    assert np.isnan(cos_to_target([[1.0, 0.0]], [[0.0, 0.0]])).all()
    constant = r2(gaussian(0), np.ones((30, 6)))
    assert np.isnan([constant.mean, constant.low, constant.high]).all()


def test_one_row_and_one_column():
    assert mse([[2.0]], [[0.0]]).tolist() == [4.0]
    assert cos_to_target([[2.0]], [[0.5]]).tolist() == [1.0]
    assert np.isnan(r2([[2.0]], [[0.5]]).mean)


@pytest.mark.parametrize("measure", ALL)
@pytest.mark.parametrize(
    ("mapped", "target", "error", "text"),
    [
        ([[1.0, 2.0]], [[1.0]], DimensionError, "mapped rows with the target's 1 columns; got 2"),
        ([[1.0], [2.0]], [[1.0]], CountMismatchError, "2 source rows and 1 target rows"),
        ([[np.nan]], [[1.0]], InvalidVectorsError, "finite numbers in mapped"),
        ([[1.0]], [[np.inf]], InvalidVectorsError, "finite numbers in target"),
        (np.empty((0, 3)), np.empty((0, 3)), EmptyInputError, "mapped with at least one row"),
        ([1.0], [[1.0]], DimensionError, "mapped with two axes"),
    ],
)
def test_bad_input_says_expected_got_do(measure, mapped, target, error, text):
    with pytest.raises(error, match="Do: ") as caught:
        measure(mapped, target)
    assert text in str(caught.value)
