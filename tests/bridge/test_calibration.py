"""Calibration: rising curves that carry scores over without making ties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.isotonic import IsotonicRegression

from isthmus.bridge.calibration import Calibration
from isthmus.errors import (
    CountMismatchError,
    InvalidVectorsError,
    MalformedArtifactError,
    TooFewPairsError,
)

FAST = settings(derandomize=True, deadline=None, max_examples=100)
NUMBERS = st.floats(-100, 100, width=32)


def scores(n=2000, seed=0, noise=0.05):
    rng = np.random.default_rng(seed)
    bridged = rng.uniform(-0.2, 0.8, size=n)
    native = np.tanh(2 * bridged) + noise * rng.normal(size=n)
    return bridged, native, np.arange(n) // 20


def test_a_line_is_recovered_exactly_within_and_beyond_the_knots():
    x = np.linspace(0, 1, 200)
    curve = Calibration.fit(x, x + 0.25, groups=np.arange(200))
    np.testing.assert_allclose(curve.to_native([-3, 0.1, 0.5, 4]), [-2.75, 0.35, 0.75, 4.25])


def test_a_curve_is_followed():
    curve = Calibration.fit(*scores()[:2], groups=scores()[2])
    inner = np.linspace(-0.15, 0.75, 50)
    np.testing.assert_allclose(curve.to_native(inner), np.tanh(2 * inner), atol=0.03)
    assert len(curve.bridged) <= 64


def test_errors_are_those_of_queries_left_out():
    bridged, native, groups = scores()
    curve = Calibration.fit(bridged, native, groups=groups)
    assert curve.error_before == pytest.approx(np.abs(bridged - native).mean())
    assert 0.038 < curve.error_after < 0.043  # mean absolute value of the noise, .05 x .798
    rng = np.random.default_rng(1)
    nothing = Calibration.fit(bridged, rng.normal(size=len(bridged)), groups=groups)
    assert nothing.error_after > 0.79


def test_is_close_to_the_isotonic_regression_of_the_library():
    bridged, native, groups = scores()
    ours = Calibration.fit(bridged, native, groups=groups).to_native(bridged)
    theirs = IsotonicRegression().fit(bridged, native).predict(bridged)
    assert np.abs(ours - theirs).mean() < 0.02


@FAST
@given(
    data=hnp.arrays(np.float64, st.tuples(st.integers(2, 80), st.just(2)), elements=NUMBERS),
    asked=hnp.arrays(np.float64, st.integers(2, 20), elements=NUMBERS),
)
def test_order_is_kept_for_any_scores(data, asked):
    curve = Calibration.fit(data[:, 0], data[:, 1], groups=np.arange(len(data)))
    asked = np.sort(asked)
    assert (np.diff(curve.to_native(asked)) >= 0).all()
    assert (np.diff(curve.bridged) > 0).all()
    assert (np.diff(curve.native) > 0).all()
    again = Calibration.from_dict(curve.to_dict(), curve.tensors())
    np.testing.assert_array_equal(again.to_native(asked), curve.to_native(asked))


def test_scores_that_differ_do_not_become_ties():
    rng = np.random.default_rng(0)
    bridged, native = rng.uniform(size=2000), rng.uniform(size=2000)  # unrelated: long flat steps
    curve = Calibration.fit(bridged, native, groups=np.arange(2000))
    asked = np.linspace(-0.5, 1.5, 1000)
    assert (np.diff(curve.to_native(asked).astype(float)) > 0).all()


def test_there_and_back():
    bridged, native, groups = scores()
    curve = Calibration.fit(bridged, native, groups=groups)
    asked = np.linspace(-0.5, 1.2, 30).reshape(5, 6)
    np.testing.assert_allclose(curve.to_bridged(curve.to_native(asked)), asked, atol=1e-5)


def test_nan_stays_nan():
    curve = Calibration.fit([0.0, 1.0], [0.0, 1.0], groups=[0, 1])
    assert np.isnan(curve.to_native([[np.nan, 0.5]])).tolist() == [[True, False]]


def test_one_score_repeated_gives_a_shift():
    curve = Calibration.fit([0.5] * 10, np.linspace(0.6, 0.8, 10), groups=np.arange(10))
    np.testing.assert_allclose(curve.to_native([0.5, 0.6]), [0.7, 0.8], atol=1e-6)


def test_one_query_alone_is_measured_on_itself():
    assert Calibration.fit([0.0, 1.0], [0.5, 1.5], groups=[3, 3]).error_after == 0


def test_bad_input_is_refused():
    with pytest.raises(CountMismatchError, match=r"shapes \(2,\), \(1,\) and \(2,\)"):
        Calibration.fit([0, 1], [0], groups=[0, 1])
    with pytest.raises(InvalidVectorsError, match="native scores"):
        Calibration.fit([0, 1], [0, np.nan], groups=[0, 1])
    with pytest.raises(TooFewPairsError, match="at least 2 scores; got 1"):
        Calibration.fit([0], [0], groups=[0])


@pytest.mark.parametrize(
    ("bridged", "native"),
    [
        ([0.0, 0.0], [0.0, 1.0]),
        ([0.0, 1.0], [1.0, 0.0]),
        ([0.0, 1.0], [0.0]),
        ([[0.0, 1.0]], [[0.0, 1.0]]),
        ([], []),
        (list(range(65)), list(range(65))),
    ],
)
def test_knots_that_do_not_rise_are_malformed(bridged, native):
    fields = {"error_before": 0.0, "error_after": 0.0, "n_scores": 2}
    tensors = {"bridged": np.array(bridged, float), "native": np.array(native, float)}
    with pytest.raises(MalformedArtifactError, match="from 1 to 64 knots"):
        Calibration.from_dict(fields, tensors)
