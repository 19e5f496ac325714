"""Preprocessing steps: what each does, its way back, bits that do not depend on the batch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import decomposition
from sklearn.base import clone

from isthmus.errors import (
    DegenerateVectorsError,
    DimensionError,
    InvalidVectorsError,
    MalformedArtifactError,
    NotFittedError,
    ParameterError,
    ZeroVectorError,
)
from isthmus.maps import PCA, STEPS, Centre, Normalise, Whiten

MADE = {
    "centre": Centre(),
    "normalise": Normalise(),
    "whiten": Whiten(),
    "pca": PCA(n_components=2),
}


@pytest.fixture(params=MADE)
def step(request):
    return clone(MADE[request.param])


def rows(n=40, dim=4, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((n, dim)) @ rng.standard_normal((dim, dim)) + 2).astype(np.float32)


def test_every_step_is_tested():
    assert set(MADE) == set(STEPS)
    assert all(type(made) is STEPS[name] for name, made in MADE.items())


@settings(derandomize=True, deadline=None, max_examples=40)
@given(name=st.sampled_from(sorted(MADE)), dim=st.integers(2, 8), seed=st.integers(0, 999))
def test_there_and_back_and_there_again_is_there(name, dim, seed):
    X = rows(30, dim, seed)
    fitted = clone(MADE[name]).fit(X)
    there = fitted.transform(X)

    again = fitted.transform(fitted.inverse_transform(there))

    np.testing.assert_allclose(again, there, atol=2e-3)
    if name in ("centre", "whiten"):
        np.testing.assert_allclose(fitted.inverse_transform(there), X, atol=1e-3)


def test_centre_with_weights():
    X, weight = rows(), np.arange(1.0, 41)

    centred = Centre().fit(X, sample_weight=weight).transform(X)

    np.testing.assert_allclose(np.average(centred, axis=0, weights=weight), 0, atol=1e-6)


def test_normalise_gives_back_the_mean_length():
    X = np.array([[3.0, 4.0], [0.0, 1.0]])

    plain, weighted = Normalise().fit(X), Normalise().fit(X, sample_weight=[3, 1])

    np.testing.assert_allclose(plain.transform(X), [[0.6, 0.8], [0, 1]], rtol=1e-6)
    np.testing.assert_allclose(plain.inverse_transform([[1.0, 0.0]]), [[3, 0]], rtol=1e-6)
    np.testing.assert_allclose(weighted.inverse_transform([[1.0, 0.0]]), [[4, 0]], rtol=1e-6)


def test_unit_rows_come_back_as_they_were():
    X = rows()
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    fitted = Normalise().fit(unit)

    np.testing.assert_allclose(fitted.inverse_transform(fitted.transform(unit)), unit, rtol=1e-6)


def test_whitened_rows_have_unit_covariance():
    X = rows(200)

    white = Whiten(shrinkage=0.0).fit(X).transform(X)

    np.testing.assert_allclose(np.cov(white.T, bias=True), np.eye(4), atol=1e-4)


def test_pca_agrees_with_scikit_learn():
    X = rows(60, 6)
    reference = decomposition.PCA(n_components=3).fit(X)

    fitted = PCA(n_components=3).fit(X)

    np.testing.assert_allclose(
        np.abs(fitted.transform(X)), np.abs(reference.transform(X)), atol=1e-4
    )
    np.testing.assert_allclose(
        fitted.inverse_transform(fitted.transform(X)),
        reference.inverse_transform(reference.transform(X)),
        atol=1e-4,
    )
    assert (fitted.n_features_in_, fitted.n_features_out_) == (6, 3)


def test_a_weight_of_k_is_the_same_as_the_row_k_times(step):
    X = rows(12)
    counts = np.arange(12) % 3 + 1

    weighted = clone(step).fit(X, sample_weight=counts)
    repeated = clone(step).fit(np.repeat(X, counts, axis=0))

    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-4)


def test_bits_do_not_depend_on_the_batch_and_the_input_stays(step):
    X = rows(3_000)
    X.flags.writeable = False
    fitted = step.fit(X)
    there = fitted.transform(X)
    back = fitted.inverse_transform(there)

    for part in (slice(0, 1), slice(1, 8), slice(5, 900)):
        np.testing.assert_array_equal(fitted.transform(X[part]), there[part])
        np.testing.assert_array_equal(fitted.inverse_transform(there[part]), back[part])
    assert there.dtype == back.dtype == np.float32


def test_state_round_trip(step):
    X = rows()
    fitted = step.fit(X)

    again = type(step).from_state(fitted.get_params(), fitted.get_state(), dim=4)

    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
    with pytest.raises(MalformedArtifactError, match="unknown \\['more'\\]"):
        type(step).from_state(
            fitted.get_params(), {**fitted.get_state(), "more": np.zeros(1)}, dim=4
        )


def test_bad_rows_and_use_before_fit(step):
    with pytest.raises(NotFittedError, match=f"a fitted {step.name}; got one that was not"):
        clone(step).transform(rows())
    with pytest.raises(NotFittedError, match=f"a fitted {step.name}"):
        clone(step).inverse_transform(rows())
    fitted = step.fit(rows())
    with pytest.raises(DimensionError, match="X with 4 columns; got 3 columns"):
        fitted.transform(rows(dim=3))
    with pytest.raises(DimensionError, match=f"Z with {fitted.n_features_out_} columns; got 7"):
        fitted.inverse_transform(rows(dim=7))
    with pytest.raises(InvalidVectorsError, match="finite numbers in X"):
        clone(step).fit([[1.0, np.nan], [0.0, 1.0]])


def test_what_cannot_be_learned():
    same = np.ones((5, 3))
    with pytest.raises(ZeroVectorError, match="only zeros in row 1"):
        Normalise().fit([[1.0, 0.0], [0.0, 0.0]])
    with pytest.raises(DegenerateVectorsError, match="5 equal rows"):
        Whiten().fit(same)
    with pytest.raises(DegenerateVectorsError, match="5 equal rows"):
        PCA(n_components=1).fit(same)
    with pytest.raises(ParameterError, match="shrinkage from 0 to 1; got 2"):
        Whiten(shrinkage=2).fit(rows())
    with pytest.raises(ParameterError, match="n_components of at least 1; got 0"):
        PCA(n_components=0).fit(rows())
    with pytest.raises(ParameterError, match=r"n_components of at most 2, .*; got 4"):
        PCA(n_components=4).fit(rows(n=3))
