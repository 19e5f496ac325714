"""Thresholds, calibration and margins: hand-made numbers, scale, chance, undefined rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import CountMismatchError, DimensionError, ParameterError, ZeroVectorError
from isthmus.evaluate.preservation import (
    calibration_transfer,
    hard_negative_margin,
    threshold_transfer,
)

quick = settings(derandomize=True, deadline=None, max_examples=25)
ALL = (threshold_transfer, calibration_transfer, hard_negative_margin)


def gaussian(seed, rows=60, dim=6):
    return np.random.default_rng(seed).standard_normal((rows, dim))


def at(*degrees):
    angles = np.deg2rad(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def test_decisions_by_hand():
    collection = at(10, 20, 40, 60)
    # Native decisions at cos 30 degrees: yes yes no no. Mapped at 50 degrees: the distances are
    # 40, 30, 10, 10, so no (yes) yes yes: with a threshold at cos 25, no no yes yes.
    options = {"collection": collection, "threshold": float(np.cos(np.deg2rad(25)))}
    assert threshold_transfer(at(50), at(0), **options).tolist() == [0.0]
    assert threshold_transfer(at(5), at(0), **options).tolist() == [1.0]
    assert threshold_transfer(at(-10), at(0), **options).tolist() == [0.75]


def test_default_threshold_accepts_half_of_the_native_candidates():
    collection = gaussian(0, rows=200)
    target = collection[:50]
    says_no = -target
    options = {"collection": collection, "own_rows": np.arange(50)}
    assert threshold_transfer(says_no, target, **options).mean() == pytest.approx(0.5, abs=0.01)


@quick
@given(seed=st.integers(0, 10_000), metric=st.sampled_from(["cosine", "dot", "l2"]))
def test_the_identity_keeps_every_decision(seed, metric):
    target = gaussian(seed)
    assert (threshold_transfer(target, target, metric=metric) == 1.0).all()
    assert calibration_transfer(target, target, metric=metric).mean() > 0.97


def test_calibration_forgives_scale_but_not_order():
    collection = gaussian(1, rows=300, dim=10)
    target, own = collection[:100], np.arange(100)
    options = {"collection": collection, "own_rows": own, "metric": "dot"}
    shrunk = 0.5 * target
    assert threshold_transfer(shrunk, target, **options).mean() < 0.6
    assert calibration_transfer(shrunk, target, **options).mean() > 0.98
    scrambled = gaussian(2, rows=100, dim=10)
    assert calibration_transfer(scrambled, target, **options).mean() == pytest.approx(0.5, abs=0.1)


def test_calibration_is_learned_on_other_rows_and_seeded():
    target = gaussian(3)
    mapped = target + 0.5 * gaussian(4)
    one = calibration_transfer(mapped, target, seed=1)
    np.testing.assert_array_equal(calibration_transfer(mapped, target, seed=1), one)
    assert (calibration_transfer(mapped, target, seed=2) != one).any()
    assert np.isnan(calibration_transfer(target[:1], target[:1], collection=target)).all()


def test_margin_by_hand():
    collection = at(0, 30, 90)
    found = hard_negative_margin(at(10), at(0), collection=collection, own_rows=[0])
    expected = np.cos(np.deg2rad(10)) - np.cos(np.deg2rad(20))
    np.testing.assert_allclose(found, [expected], atol=1e-6)
    # With one hard negative only the native nearest one counts, whatever lies closer now.
    one = hard_negative_margin(at(80), at(0), collection=collection, own_rows=[0], negatives=1)
    expected = np.cos(np.deg2rad(80)) - np.cos(np.deg2rad(50))
    np.testing.assert_allclose(one, [expected], atol=1e-6)


@quick
@given(seed=st.integers(0, 10_000))
def test_native_rows_have_a_margin_over_zero_and_twins_have_none(seed):
    target = gaussian(seed)
    assert hard_negative_margin(target, target).min() > 0
    twins = target.repeat(2, axis=0)
    np.testing.assert_allclose(hard_negative_margin(twins, twins), 0.0, atol=1e-6)


@quick
@given(seed=st.integers(0, 10_000))
def test_order_of_rows_and_collection_does_not_matter(seed):
    target, mapped, collection = gaussian(seed), gaussian(seed + 1), gaussian(seed + 2, rows=90)
    rows = np.random.default_rng(seed).permutation(60)
    columns = np.random.default_rng(seed).permutation(90)
    for measure in (threshold_transfer, hard_negative_margin):
        straight = measure(mapped, target, collection=collection)
        shuffled = measure(mapped[rows], target[rows], collection=collection[columns])
        np.testing.assert_allclose(shuffled, straight[rows], atol=1e-7)


def test_a_random_map_prefers_nothing():
    collection = gaussian(0, rows=400, dim=20)
    options = {"collection": collection, "own_rows": np.arange(200)}
    mapped, target = gaussian(1, rows=200, dim=20), collection[:200]
    margins = hard_negative_margin(mapped, target, **options)
    assert margins.mean() < 0  # one own row against the best of ten
    assert (margins > 0).mean() == pytest.approx(1 / 11, abs=0.08)
    assert threshold_transfer(mapped, target, **options).mean() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("measure", ALL)
def test_one_row_without_neighbours_is_undefined(measure):
    assert np.isnan(measure([[1.0, 2.0]], [[1.0, 2.0]])).all()


def test_constant_sides_have_defined_values():
    target, constant = gaussian(0), np.ones((60, 6))
    assert 0.0 <= threshold_transfer(constant, target).mean() <= 1.0
    assert 0.0 <= calibration_transfer(constant, target).mean() <= 1.0
    assert threshold_transfer(constant, constant).tolist() == [1.0] * 60
    np.testing.assert_array_equal(hard_negative_margin(constant, constant), np.zeros(60))


@pytest.mark.parametrize("measure", ALL)
def test_bad_input_says_expected_got_do(measure):
    rows = gaussian(0)
    with pytest.raises(CountMismatchError, match="9 source rows and 60 target rows"):
        measure(rows[:9], rows)
    with pytest.raises(DimensionError, match="mapped with 6 columns; got 3"):
        measure(rows[:, :3], rows)
    with pytest.raises(ZeroVectorError, match="rows with a direction"):
        measure(rows * 0, rows)


def test_bad_parameters_say_expected_got_do():
    rows = gaussian(0)
    for measure in (threshold_transfer, calibration_transfer):
        with pytest.raises(ParameterError, match="a finite threshold; got nan"):
            measure(rows, rows, threshold=np.nan)
        with pytest.raises(ParameterError, match="candidates as a whole number over 0"):
            measure(rows, rows, candidates=0)
    with pytest.raises(ParameterError, match="negatives as a whole number over 0"):
        hard_negative_margin(rows, rows, negatives=0)
