"""Ridge: recovery, the exact leave-one-out curve, agreement with scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.linear_model import RidgeCV

from isthmus.errors import ParameterError
from isthmus.maps import Ridge

quick = settings(derandomize=True, deadline=None, max_examples=30)


def noisy(n, dim_source, dim_target, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, dim_source)) + 2
    Y = X @ rng.standard_normal((dim_source, dim_target)) - 1
    return X, Y + rng.standard_normal((n, dim_target))


def brute_force(X, Y, penalty, weight):
    """Fit without each pair in turn; mean squared distance of what is said of it."""
    errors = []
    for row in range(len(X)):
        others = np.arange(len(X)) != row
        fitted = SklearnRidge(alpha=penalty).fit(X[others], Y[others], sample_weight=weight[others])
        errors.append(np.sum((fitted.predict(X[row : row + 1]) - Y[row]) ** 2))
    return np.average(errors, weights=weight)


@quick
@given(
    dim_source=st.integers(1, 10),
    dim_target=st.integers(1, 10),
    shift=st.floats(-10, 10),
    seed=st.integers(0, 999),
)
def test_a_planted_linear_map_is_recovered(dim_source, dim_target, shift, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((4 * dim_source + 4, dim_source))
    weight = rng.standard_normal((dim_source, dim_target))

    fitted = Ridge().fit(X, X @ weight + shift)

    np.testing.assert_allclose(fitted.weight_, weight, atol=2e-5 * (1 + abs(shift)))
    np.testing.assert_allclose(fitted.bias_, shift, atol=2e-5 * (1 + abs(shift)))


@pytest.mark.parametrize("shape", [(30, 4, 3), (12, 20, 5), (9, 8, 2), (10, 1, 1)], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_leave_one_out_curve_is_the_brute_force_one(shape, weighted):
    X, Y = noisy(*shape)
    weight = np.random.default_rng(1).random(len(X)) + 0.2 if weighted else np.ones(len(X))
    penalties = (1e-3, 0.1, 1.0, 30.0)

    fitted = Ridge(penalties=penalties).fit(X, Y, sample_weight=weight if weighted else None)

    expected = [brute_force(X, Y, penalty, weight) for penalty in penalties]
    np.testing.assert_allclose(fitted.penalties_, penalties)
    np.testing.assert_allclose(fitted.loo_errors_, expected, rtol=2e-5)
    assert float(fitted.penalty_) == penalties[int(np.argmin(expected))]


@pytest.mark.parametrize("shape", [(60, 7, 5), (12, 30, 4)], ids=str)
def test_agrees_with_scikit_learn(shape):
    X, Y = noisy(*shape)
    penalties = np.logspace(-3, 3, 13)
    reference = RidgeCV(alphas=penalties).fit(X, Y)

    fitted = Ridge(penalties=tuple(penalties)).fit(X, Y)

    assert float(fitted.penalty_) == pytest.approx(reference.alpha_)
    np.testing.assert_allclose(fitted.weight_, reference.coef_.T, atol=1e-5)
    np.testing.assert_allclose(fitted.transform(X), reference.predict(X), atol=2e-4)


@pytest.mark.parametrize("shape", [(50, 6, 4), (10, 25, 4)], ids=str)
def test_a_fixed_penalty_is_used_and_no_curve_is_made(shape):
    X, Y = noisy(*shape)
    weight = np.random.default_rng(1).random(len(X))
    reference = SklearnRidge(alpha=0.7).fit(X, Y, sample_weight=weight)

    fitted = Ridge(penalty=0.7).fit(X, Y, sample_weight=weight)

    np.testing.assert_allclose(fitted.weight_, reference.coef_.T, atol=1e-5)
    np.testing.assert_allclose(fitted.bias_, reference.intercept_, atol=1e-4)
    assert float(fitted.penalty_) == 0.7
    assert fitted.penalties_.size == fitted.loo_errors_.size == 0


def test_the_default_grid_scales_with_the_source():
    X, Y = noisy(60, 7, 5)

    one, other = Ridge().fit(X, Y), Ridge().fit(1e3 * X, Y)

    assert len(one.penalties_) == 25
    np.testing.assert_allclose(other.penalties_, 1e6 * one.penalties_, rtol=1e-6)
    np.testing.assert_allclose(one.transform(X), other.transform(1e3 * X), atol=1e-4)


def test_noise_without_a_relation_is_shrunk_to_the_mean():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((50, 20)), rng.standard_normal((50, 5)) + 4

    fitted = Ridge().fit(X, Y)

    np.testing.assert_allclose(fitted.transform(X), np.tile(Y.mean(0), (50, 1)), atol=0.3)
    assert float(fitted.penalty_) == fitted.penalties_[np.argmin(fitted.loo_errors_)]


def test_a_pair_that_stands_alone_does_not_divide_by_zero():
    # The second column is the first row's own: leaving it out, nothing is known of that column.
    X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
    Y = np.array([[9.0], [1.0], [2.0], [3.0]])

    fitted = Ridge().fit(X, Y)

    assert np.isfinite(fitted.loo_errors_).all()
    np.testing.assert_allclose(
        fitted.loo_errors_[10], brute_force(X, Y, fitted.penalties_[10], np.ones(4)), rtol=1e-4
    )


def test_two_equal_columns_share_their_weight():
    X, Y = noisy(40, 3, 2)
    X = np.c_[X, X[:, 0]]

    fitted = Ridge(penalty=1.0).fit(X, Y)

    np.testing.assert_allclose(fitted.weight_[0], fitted.weight_[3], atol=1e-6)


@pytest.mark.parametrize(
    "params",
    [
        {"penalty": 0},
        {"penalty": -1.0},
        {"penalty": float("nan")},
        {"penalty": "gcv"},
        {"penalties": ()},
        {"penalties": (1.0, -1.0)},
        {"penalties": (1.0, float("inf"))},
    ],
    ids=str,
)
def test_penalties_that_are_not_over_zero(params):
    with pytest.raises(ParameterError, match="penalty over 0 or 'loo'"):
        Ridge(**params).fit(*noisy(20, 3, 3))
