"""CSA: its similarity by hand, correlations by a second route, what becomes of few pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import ParameterError
from isthmus.maps import CCA, CSA


def related(n=80, dim_source=6, dim_target=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, dim_source)) @ rng.standard_normal((dim_source, dim_source))
    Y = X @ rng.standard_normal((dim_source, dim_target)) + 2 * rng.standard_normal((n, dim_target))
    return X + 3, Y - 1


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(n_components=st.integers(1, 5), shrinkage=st.floats(0, 0.9), seed=st.integers(0, 999))
def test_a_plain_cosine_is_the_weighted_cosine(n_components, shrinkage, seed):
    X, Y = related(seed=seed)
    fitted = CSA(n_components=n_components, shrinkage=shrinkage).fit(X, Y)

    left = unit((X - fitted.mean_source_) @ fitted.source_directions_)
    right = unit((Y - fitted.mean_target_) @ fitted.target_directions_)
    source, target = fitted.transform(X), fitted.transform_target(Y)

    np.testing.assert_allclose(source @ target.T, left * fitted.correlations_ @ right.T, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(source, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(target, axis=1), 1, atol=1e-5)


def test_correlations_are_those_that_the_projected_pairs_have():
    X, Y = related()
    fitted = CSA().fit(X, Y)

    left = (X - fitted.mean_source_) @ fitted.source_directions_
    right = (Y - fitted.mean_target_) @ fitted.target_directions_

    np.testing.assert_allclose(left.T @ left / 80, np.eye(5), atol=1e-5)
    np.testing.assert_allclose(right.T @ right / 80, np.eye(5), atol=1e-5)
    np.testing.assert_allclose(left.T @ right / 80, np.diag(fitted.correlations_), atol=1e-5)


def test_shrinkage_is_that_of_cca():
    X, Y = related()
    np.testing.assert_allclose(
        CSA(shrinkage=0.3).fit(X, Y).correlations_, CCA(shrinkage=0.3).fit(X, Y).correlations_
    )


def test_with_fewer_pairs_than_dimensions_all_correlations_are_one():
    X, Y = related(12, 20, 16)
    noise = np.random.default_rng(5).standard_normal((12, 16))

    np.testing.assert_allclose(CSA().fit(X, Y).correlations_, np.ones(11))
    np.testing.assert_allclose(CSA().fit(X, noise).correlations_, np.ones(11))
    assert CSA(shrinkage=0.5).fit(X, noise).correlations_.max() < 0.9


def test_the_usual_number_of_components_is_150():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 160))

    assert CSA().fit(X, X).correlations_.shape == (150,)
    assert CSA(n_components=160).fit(X, X).correlations_.shape == (160,)


def test_a_row_at_the_mean_is_zero():
    X, Y = related()
    fitted = CSA().fit(X, Y)
    out = fitted.transform(fitted.mean_source_[None].astype(np.float64))

    assert np.linalg.norm(out) <= 1 + 1e-5
    assert np.isfinite(out).all()


@pytest.mark.parametrize("n_components", [0, 6])
def test_more_components_than_directions(n_components):
    with pytest.raises(ParameterError, match=r"from 1 to 5, the directions .* Do: keep fewer"):
        CSA(n_components=n_components).fit(*related())


def test_fewer_pairs_than_components():
    X, Y = related(6, 20, 16)
    with pytest.raises(ParameterError, match="from 1 to 5, the directions these pairs have; got 8"):
        CSA(n_components=8).fit(X, Y)


@pytest.mark.parametrize("shrinkage", [-0.1, 1.0, float("nan")])
def test_shrinkage_out_of_range(shrinkage):
    with pytest.raises(ParameterError, match="shrinkage from 0 to under 1"):
        CSA(shrinkage=shrinkage).fit(*related())
