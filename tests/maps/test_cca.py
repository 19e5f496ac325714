"""CCA: canonical correlations by a second route, recovery, shrinkage."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import cross_decomposition
from sklearn.covariance import ledoit_wolf_shrinkage

from isthmus.errors import ParameterError
from isthmus.maps import CCA


def related(n=80, dim_source=6, dim_target=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, dim_source)) @ rng.standard_normal((dim_source, dim_source))
    Y = X @ rng.standard_normal((dim_source, dim_target)) + 2 * rng.standard_normal((n, dim_target))
    return X + 3, Y - 1


def covariances(X, Y, shrinkages, weight):
    parts = []
    for rows, share in zip((X, Y), shrinkages, strict=True):
        raw = np.cov(rows.T, bias=True, aweights=weight)
        dim = len(raw)
        parts.append(raw + share / (1 - share) * np.trace(raw) / dim * np.eye(dim))
    centred = [rows - np.average(rows, axis=0, weights=weight) for rows in (X, Y)]
    return *parts, (weight[:, None] * centred[0]).T @ centred[1] / weight.sum()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [80, 12])
def test_correlations_solve_the_generalised_eigenproblem(weighted, n):
    X, Y = related(n, 6, 5)
    weight = np.random.default_rng(1).random(n) + 0.2 if weighted else np.ones(n)
    fitted = CCA(shrinkage=0.2).fit(X, Y, sample_weight=weight)
    source, target, cross = covariances(X, Y, (0.2, 0.2), weight)

    values = scipy.linalg.eigh(cross @ np.linalg.solve(target, cross.T), source, eigvals_only=True)[
        ::-1
    ]

    np.testing.assert_allclose(fitted.correlations_**2, values[:5], rtol=1e-8)


def test_fewer_directions_than_columns_at_the_least_shrinkage():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3)) @ rng.standard_normal((3, 60))

    fitted = CCA(shrinkage=1e-9).fit(X, X[:, ::-1])

    np.testing.assert_allclose(fitted.correlations_, [1, 1, 1], atol=1e-5)


def test_directions_are_normalised_by_the_ridged_covariance():
    X, Y = related()
    fitted = CCA(shrinkage=0.1, power=0).fit(X, Y)
    source, target, cross = covariances(X, Y, (0.1, 0.1), np.ones(len(X)))
    A, B = fitted.source_directions_, fitted.target_directions_

    np.testing.assert_allclose(A.T @ source @ A, np.eye(5), atol=1e-5)
    np.testing.assert_allclose(B.T @ target @ B, np.eye(5), atol=1e-5)
    np.testing.assert_allclose(A.T @ cross @ B, np.diag(fitted.correlations_), atol=1e-5)


def test_agrees_with_scikit_learn():
    X, Y = related()
    reference = cross_decomposition.CCA(n_components=1).fit(X, Y)
    one, other = (side[:, 0] for side in reference.transform(X, Y))

    fitted = CCA(n_components=1, shrinkage=1e-9).fit(X, Y)

    assert fitted.correlations_[0] == pytest.approx(np.corrcoef(one, other)[0, 1], rel=1e-4)
    assert abs(np.corrcoef(fitted.transform(X)[:, 0], one)[0, 1]) == pytest.approx(1, abs=1e-4)
    assert abs(np.corrcoef(fitted.transform_target(Y)[:, 0], other)[0, 1]) == pytest.approx(
        1, abs=1e-4
    )


@settings(derandomize=True, deadline=None, max_examples=30)
@given(dim=st.integers(1, 8), shift=st.floats(-5, 5), seed=st.integers(0, 999))
def test_sides_that_are_a_linear_map_apart_meet(dim, shift, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((6 * dim + 5, dim))
    turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    Y = X @ turn * np.linspace(0.5, 2, dim) + shift

    fitted = CCA(shrinkage=1e-6).fit(X, Y)

    np.testing.assert_allclose(fitted.correlations_, 1, atol=1e-4)
    np.testing.assert_allclose(fitted.transform(X), fitted.transform_target(Y), atol=5e-3)


def test_private_noise_is_left_out_of_the_comparison():
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((400, 2))
    X = np.c_[shared, 5 * rng.standard_normal((400, 4))]
    Y = np.c_[5 * rng.standard_normal((400, 4)), shared]

    fitted = CCA(shrinkage=1e-3).fit(X, Y)

    lengths = np.linalg.norm(fitted.source_directions_, axis=0)
    np.testing.assert_allclose(fitted.correlations_[:2], 1, atol=3e-2)
    assert lengths[2:].max() < 1e-3 * lengths[:2].min()


@pytest.mark.parametrize("shape", [(50, 6), (10, 30)], ids=str)
def test_the_default_shrinkage_is_that_of_ledoit_and_wolf(shape):
    X, _ = related(shape[0], shape[1], 3)
    Y = np.random.default_rng(5).standard_normal((shape[0], 4))

    fitted = CCA().fit(X, Y)

    expected = [ledoit_wolf_shrinkage(X), ledoit_wolf_shrinkage(Y)]
    np.testing.assert_allclose(fitted.shrinkages_, expected, rtol=1e-5)


@pytest.mark.parametrize("kept", [1, 3])
def test_components_are_the_first_ones(kept):
    X, Y = related()
    every, few = CCA().fit(X, Y), CCA(n_components=kept).fit(X, Y)

    np.testing.assert_array_equal(few.transform(X), every.transform(X)[:, :kept])
    np.testing.assert_array_equal(few.correlations_, every.correlations_[:kept])


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"n_components": 0}, "n_components from 1 to 5, .*; got 0"),
        ({"n_components": 6}, "n_components from 1 to 5, .*; got 6"),
        ({"shrinkage": 0.0}, "shrinkage from 1e-09 to under 1 .*; got shrinkage=0.0"),
        ({"shrinkage": 1e-12}, "got shrinkage=1e-12"),
        ({"shrinkage": 1.5}, "got shrinkage=1.5"),
        ({"shrinkage": "oas"}, "got shrinkage='oas'"),
        ({"power": -1}, "power of at least 0; got .*power=-1"),
    ],
    ids=str,
)
def test_parameters_out_of_range(params, text):
    with pytest.raises(ParameterError, match=text):
        CCA(**params).fit(*related())
