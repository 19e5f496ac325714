"""A linear map shrunk towards a rotation: its two ends, and the curve between them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import ParameterError
from isthmus.maps import Procrustes, ProcrustesRidge, Ridge


def noisy(n=60, dim_source=6, dim_target=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, dim_source)) + 2
    Y = X @ rng.standard_normal((dim_source, dim_target)) - 1
    return X, Y + rng.standard_normal((n, dim_target))


@settings(derandomize=True, deadline=None, max_examples=30)
@given(dims=st.tuples(st.integers(1, 8), st.integers(1, 8)), seed=st.integers(0, 999))
def test_a_planted_rotation_and_a_planted_linear_map_are_recovered(dims, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((4 * dims[0] + 6, dims[0]))
    turn = np.linalg.qr(rng.standard_normal((dims[0], dims[0])))[0]
    weight = rng.standard_normal(dims)

    np.testing.assert_allclose(
        ProcrustesRidge().fit(X, X @ turn + 3).transform(X), X @ turn + 3, atol=5e-5
    )
    np.testing.assert_allclose(
        ProcrustesRidge().fit(X, X @ weight + 3).transform(X), X @ weight + 3, atol=2e-4
    )


@pytest.mark.parametrize("dims", [(6, 6), (4, 7), (7, 4)], ids=str)
def test_the_two_ends_are_procrustes_and_ridge(dims):
    X, Y = noisy(60, *dims)

    stiff = ProcrustesRidge(penalty=1e12).fit(X, Y)
    loose = ProcrustesRidge(penalty=1e-9).fit(X, Y)

    np.testing.assert_allclose(stiff.weight_, Procrustes().fit(X, Y).rotation_, atol=1e-5)
    np.testing.assert_allclose(stiff.transform(X), Procrustes().fit(X, Y).transform(X), atol=1e-4)
    np.testing.assert_allclose(loose.weight_, Ridge(penalty=1e-9).fit(X, Y).weight_, atol=1e-4)


def test_the_weights_are_those_of_the_stated_problem():
    X, Y = noisy()
    weight, penalty = np.random.default_rng(1).random(len(X)), 3.0
    fitted = ProcrustesRidge(penalty=penalty).fit(X, Y, sample_weight=weight)
    rotation = Procrustes().fit(X, Y, sample_weight=weight).rotation_.astype(np.float64)

    x, y = X - np.average(X, axis=0, weights=weight), Y - np.average(Y, axis=0, weights=weight)
    gram = (weight[:, None] * x).T @ x + penalty * np.eye(6)
    expected = np.linalg.solve(gram, (weight[:, None] * x).T @ y + penalty * rotation)
    np.testing.assert_allclose(fitted.weight_, expected, atol=1e-5)


def test_the_curve_is_the_brute_force_one_with_the_rotation_held_fixed():
    X, Y = noisy(25, 4, 4)
    rotation = Procrustes().fit(X, Y).rotation_.astype(np.float64)
    fitted = ProcrustesRidge(penalties=(0.1, 5.0, 100.0)).fit(X, Y)

    for penalty, error in zip(fitted.penalties_, fitted.loo_errors_, strict=True):
        errors = []
        for row in range(len(X)):
            others = np.arange(len(X)) != row
            without = Ridge(penalty=penalty).fit(X[others], Y[others] - X[others] @ rotation)
            said = without.transform(X[row : row + 1]) + X[row] @ rotation
            errors.append(np.sum((said - Y[row]) ** 2))
        assert error == pytest.approx(np.mean(errors), rel=1e-4)


def test_a_penalty_that_is_not_over_zero():
    with pytest.raises(ParameterError, match="got penalty=0, penalties=None"):
        ProcrustesRidge(penalty=0).fit(*noisy())
