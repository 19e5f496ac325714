"""ASIF: its formula, what is kept of each row, what it does not depend on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isthmus.maps.asif as asif_module
from isthmus.errors import ParameterError, ZeroVectorError
from isthmus.maps import ASIF


def drawn(n=30, dim=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, dim)), rng.standard_normal((n, dim + 1))


def by_hand(rows, anchors, k, power):
    unit, known = (m / np.linalg.norm(m, axis=1, keepdims=True) for m in (rows, anchors))
    cosine = unit @ known.T
    out = np.zeros_like(cosine)
    for row, values in enumerate(cosine):
        for place in np.argsort(-values)[:k]:
            out[row, place] = max(values[place], 0) ** power
    return out / np.linalg.norm(out, axis=1, keepdims=True)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(k=st.integers(1, 40), power=st.floats(0.5, 12), seed=st.integers(0, 999))
def test_the_formula_by_hand(k, power, seed):
    X, Y = drawn(seed=seed)
    new = np.random.default_rng(seed + 1).standard_normal((9, 6))

    fitted = ASIF(k=k, power=power).fit(X, Y)

    np.testing.assert_allclose(fitted.transform(new), by_hand(new, X, k, power), atol=2e-5)
    np.testing.assert_allclose(fitted.transform_target(Y), by_hand(Y, Y, k, power), atol=2e-5)


@settings(derandomize=True, deadline=None, max_examples=20)
@given(scale=st.floats(0.01, 100), seed=st.integers(0, 999))
def test_a_rotation_and_a_scale_between_the_sides_do_not_show(scale, seed):
    X, _ = drawn(seed=seed)
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((6, 6)))[0]

    fitted = ASIF(k=5).fit(X, scale * X @ turn)

    np.testing.assert_allclose(
        fitted.transform(X), fitted.transform_target(scale * X @ turn), atol=1e-4
    )


def test_a_high_power_leaves_the_nearest_pair_and_nothing_is_lost_in_float32():
    X, Y = drawn()
    far = np.array([[1e-3, 1, 1, 1, 1, 1]])

    out = ASIF(power=1_000).fit(X, Y).transform(far)

    cosine = (X @ far[0]) / np.linalg.norm(X, axis=1)
    assert out.argmax() == cosine.argmax()
    np.testing.assert_allclose(np.linalg.norm(out), 1, rtol=1e-5)


def test_a_row_near_no_anchor_is_zero():
    X = np.array([[1.0, 0.0], [0.0, 1.0]])

    np.testing.assert_array_equal(
        ASIF().fit(X, X).transform([[-1.0, -2.0], [0, 0]]), np.zeros((2, 2))
    )


def test_anchors_that_repeat_count_like_a_weight():
    X, Y = drawn(10)
    counts = [1, 3, 2, 1, 1, 1, 1, 1, 1, 1]
    weighted = ASIF().fit(X, Y, sample_weight=counts).transform(X)
    repeated = ASIF().fit(np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0)).transform(X)

    np.testing.assert_allclose(weighted @ weighted.T, repeated @ repeated.T, atol=1e-5)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"k": 0}, "k as a whole number of at least 1"),
        ({"k": 2.5}, "k as a whole number"),
        ({"power": 0}, "power over 0 and at most 1000"),
        ({"power": 1e4}, "power over 0 and at most 1000"),
    ],
)
def test_parameters_out_of_range(params, text):
    with pytest.raises(ParameterError, match=text):
        ASIF(**params).fit(*drawn())


def test_more_pairs_than_columns_that_are_wise(monkeypatch):
    monkeypatch.setattr(asif_module, "MOST_ANCHORS", 20)
    with pytest.raises(ParameterError, match=r"at most 20 pairs.*got 30\. Do: pass a sample"):
        ASIF().fit(*drawn())


def test_a_row_of_zeros_has_no_direction():
    X, Y = drawn()
    Y[4] = 0
    with pytest.raises(ZeroVectorError, match="Y; got only zeros in row 4"):
        ASIF().fit(X, Y)
