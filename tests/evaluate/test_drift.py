"""Drift is found where there is some, rarely where there is none, and too little says so."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import DimensionError, InvalidVectorsError, ParameterError
from isthmus.evaluate.drift import LEVEL, measure_drift


def topics(rows: int, share: float, *, seed: int, dim: int = 16) -> np.ndarray:
    """Two topics, the second with a share of the rows."""
    draw = np.random.default_rng(seed)
    made = draw.standard_normal((rows, dim))
    made[: round(share * rows), 0] += 6.0
    return made


def test_a_share_of_rows_that_moved_is_found_and_measured():
    found = measure_drift(topics(500, 0.4, seed=1), topics(500, 0.6, seed=2))
    assert found.verdict == "drift"
    assert found.p_value == 0.001
    assert found.moved_low < 0.2 < found.moved_high
    assert found.moved == pytest.approx(0.2, abs=0.04)
    assert found.smallest < 0.2


def test_halves_of_one_collection_rarely_alarm():
    alarms = [
        measure_drift(
            topics(100, 0.5, seed=2 * seed), topics(100, 0.5, seed=2 * seed + 1), permutations=99
        ).p_value
        <= LEVEL
        for seed in range(100)
    ]
    assert np.mean(alarms) <= 0.05


def test_no_drift_is_only_said_where_it_would_have_been_seen():
    many = measure_drift(topics(800, 0.5, seed=1), topics(800, 0.5, seed=2))
    assert (many.verdict, many.smallest < 0.1) == ("no drift", True)
    few = measure_drift(topics(25, 0.5, seed=1), topics(25, 0.5, seed=2))
    assert (few.verdict, few.smallest > 0.2) == ("not enough data", True)
    tiny = measure_drift(topics(5, 0.5, seed=1), topics(400, 0.5, seed=2))
    assert (tiny.verdict, tiny.rows, np.isnan(tiny.p_value)) == ("not enough data", 5, True)


def test_the_power_that_is_claimed_is_there():
    claimed = measure_drift(topics(200, 0.4, seed=1), topics(200, 0.4, seed=2)).smallest
    seen = [
        measure_drift(
            topics(200, 0.4, seed=3 * seed),
            topics(200, 0.4 + claimed, seed=3 * seed + 1),
            permutations=199,
        ).verdict
        == "drift"
        for seed in range(1, 31)
    ]
    assert np.mean(seen) >= 0.6


def test_another_encoder_with_the_same_mean_is_drift():
    draw = np.random.default_rng(0)
    flat = draw.standard_normal((600, 16)) * np.geomspace(1, 0.05, 16)
    turn = np.linalg.qr(draw.standard_normal((16, 16)))[0]
    assert measure_drift(flat[:300], flat[300:] @ turn).verdict == "drift"


def test_rows_of_the_same_numbers_do_not_drift():
    rows = topics(200, 0.5, seed=0)
    same = measure_drift(rows, rows)
    assert (same.verdict, same.p_value > 0.5) == ("no drift", True)
    equal = measure_drift(np.ones((50, 3)), np.ones((60, 3)))
    assert (equal.verdict, equal.p_value) == ("no drift", 1.0)
    assert measure_drift(np.ones((50, 3)), np.full((60, 3), 2.0)).verdict == "drift"


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_any_scale_gives_the_same(scale):
    one, other = topics(200, 0.3, seed=1), topics(200, 0.7, seed=2)
    assert measure_drift(one * scale, other * scale).p_value == measure_drift(one, other).p_value


def test_one_dimension_and_few_columns_are_compared():
    draw = np.random.default_rng(0)
    assert measure_drift(draw.random((200, 1)), draw.random((200, 1)) + 1).verdict == "drift"
    assert measure_drift(draw.random((200, 2)), draw.random((200, 2)) + 1).verdict == "drift"


def test_both_orders_find_the_same_difference_and_a_seed_repeats():
    one, other = topics(150, 0.3, seed=1), topics(120, 0.6, seed=2)
    there, back = measure_drift(one, other), measure_drift(other, one)
    assert there.discrepancy == pytest.approx(back.discrepancy)
    assert measure_drift(one, other) == there


def test_bad_input_is_refused():
    rows = topics(50, 0.5, seed=0)
    with pytest.raises(DimensionError):
        measure_drift(rows, rows[:, :3])
    with pytest.raises(InvalidVectorsError):
        measure_drift(rows, np.full((50, 16), np.nan))
    with pytest.raises(ParameterError):
        measure_drift(rows, rows, permutations=10)


def test_rows_of_one_sum_have_a_first_direction():
    rows = np.eye(64)[np.random.default_rng(0).integers(0, 64, 200)]
    assert measure_drift(rows, rows[::-1]).moved == 0


def test_no_share_over_all_rows_is_spoken_of():
    draw = np.random.default_rng(0)
    rows = draw.standard_normal((400, 8)) * 10.0 ** draw.integers(-20, 20, (400, 1))
    found = measure_drift(rows[:200], rows[200:])
    assert found.smallest > 1
    assert "not even if all rows had moved" in found.reason
