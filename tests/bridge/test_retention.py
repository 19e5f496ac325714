"""The headline number: the learning curve, and an interval that holds as often as it says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.retention import Curve, estimate_retention
from isthmus.evaluate.bootstrap import interval

quick = settings(derandomize=True, deadline=None, max_examples=50)


@quick
@given(
    limit=st.floats(0.3, 1.0),
    loss=st.floats(1.0, 50.0),
    n=st.integers(200, 5000),
    more=st.floats(1.1, 10.0),
)
def test_a_loss_that_falls_as_one_over_n_is_carried_exactly(limit, loss, n, more):
    curve = Curve((n / 2, float(n)), (limit - 2 * loss / n, limit - loss / n), dim=100)
    assert curve.at(more * n) == pytest.approx(limit - loss / (more * n), abs=1e-9)
    reach = limit - loss / (more * n)
    assert curve.pairs_for(reach) == pytest.approx(more * n, rel=1e-3, abs=2)
    assert curve.pairs_for(limit + 1e-6) is None


def test_fewer_pairs_than_dimensions_grow_as_the_logarithm():
    curve = Curve((50.0, 100.0), (0.2, 0.3), dim=384)
    assert curve.at(200.0) == pytest.approx(0.4)
    assert curve.pairs_for(0.5) == 400
    assert curve.pairs_for(0.25) == 100


def test_a_flat_or_falling_curve_never_gets_there():
    assert Curve((50.0, 100.0), (0.3, 0.3), dim=10).pairs_for(0.5) is None
    assert Curve((50.0, 100.0), (0.35, 0.3), dim=384).pairs_for(0.5) is None


def test_the_estimate_is_carried_to_all_pairs():
    full, half = np.full(40, 0.6), np.full(40, 0.5)
    value = estimate_retention(full, half, gain=0.2, rest=1000, seed=0)
    assert (value.mean, value.low, value.high) == pytest.approx((0.62, 0.62, 0.62))
    np.testing.assert_allclose(value.per_query, np.full(40, 0.62), rtol=1e-6)


def test_the_interval_is_wider_where_the_rest_is_small_and_never_twice_the_bootstrap():
    rows = np.random.default_rng(0).uniform(size=300)
    plain = np.ptp(interval(rows, seed=0))
    wide, narrow = (
        estimate_retention(rows, rows, gain=0.1, rest=rest, seed=0) for rest in (300, 100_000)
    )
    assert plain < narrow.high - narrow.low < wide.high - wide.low < 2 * plain
    tiny = estimate_retention(rows, rows, gain=0.1, rest=3, seed=0)
    assert tiny.high - tiny.low == pytest.approx(wide.high - wide.low)


def test_it_stays_in_its_range():
    value = estimate_retention(np.array([1.0, 1, 1, 0]), np.zeros(4), gain=0.5, rest=0, seed=0)
    assert 0.0 <= value.low <= value.mean <= value.high <= 1.0


def test_the_interval_holds_the_mean_of_the_rest():
    rng = np.random.default_rng(5)
    held = []
    for _ in range(300):
        rows = rng.beta(2, 2, size=400)
        value = estimate_retention(rows[:150], rows[:150], gain=0.1, rest=250, seed=1)
        held.append(value.low <= rows[150:].mean() <= value.high)
    assert np.mean(held) >= 0.95
