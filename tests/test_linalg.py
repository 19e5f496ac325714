"""Closed forms: two routes to each number, and the properties that define it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from isthmus import _linalg
from isthmus._linalg import (
    cross_product,
    eigen_directions,
    mean_rows,
    normalise,
    orthogonal_procrustes,
    pca,
    right_singular,
    row_lengths,
    semi_orthogonal,
    whitening,
)

ROWS = _linalg.BLOCK_ROWS

quick = settings(derandomize=True, deadline=None, max_examples=30)
dims = st.integers(1, 12)


def random_orthogonal(dim, seed):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((dim, dim)))[0]


# --- lengths -----------------------------------------------------------------------------------


@quick
@given(
    n=st.integers(1, 9), dim=st.integers(1, 40), power=st.integers(-40, 37), seed=st.integers(0, 99)
)
def test_unit_rows_at_any_scale(n, dim, power, seed):
    rows = np.random.default_rng(seed).standard_normal((n, dim)) + 3
    scaled = (rows * 10.0**power).astype(np.float32)

    lengths = np.linalg.norm(normalise(scaled).astype(np.float64), axis=1)

    # 1e-40 is under the smallest normal float32: its digits are few, its direction is there.
    np.testing.assert_allclose(lengths, 1, rtol=1e-6)
    np.testing.assert_allclose(
        row_lengths(scaled), np.linalg.norm(scaled.astype(np.float64), axis=1), rtol=1e-6
    )


def test_zero_rows_stay_zero_and_nothing_is_changed():
    rows = np.array([[0.0, 0.0], [0.0, -2.0]], dtype=np.float32)
    rows.flags.writeable = False

    np.testing.assert_array_equal(normalise(rows), [[0, 0], [0, -1]])


@pytest.mark.parametrize("dim", [1, 7, 384, 777])
def test_the_length_of_a_row_does_not_depend_on_the_batch(dim):
    rows = np.random.default_rng(0).standard_normal((5_000, dim)).astype(np.float32)
    rows[3] *= 1e-30
    expected = normalise(rows)

    for start, stop in ((0, 1), (1, 8), (3, 4), (77, 3_000)):
        np.testing.assert_array_equal(normalise(rows[start:stop]), expected[start:stop])


# --- sums over rows ----------------------------------------------------------------------------


@quick
@given(n=st.sampled_from([1, 2, 17, ROWS, ROWS + 1]), p=dims, q=dims, weighted=st.booleans())
def test_sums_over_rows(n, p, q, weighted):
    rng = np.random.default_rng(n + 31 * p + q)
    X, Y = rng.standard_normal((n, p)), rng.standard_normal((n, q)).astype(np.float32)
    weight = rng.random(n) + 0.1 if weighted else None
    w = np.ones(n) if weight is None else weight
    mean_x, mean_y = np.average(X, axis=0, weights=w), np.average(Y, axis=0, weights=w)

    np.testing.assert_allclose(mean_rows(X, weight=weight), mean_x, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(
        cross_product(X, Y, mean_x=mean_x, mean_y=mean_y, weight=weight),
        (w[:, None] * (X - mean_x)).T @ (Y - mean_y),
        atol=1e-9,
    )
    np.testing.assert_allclose(
        cross_product(X, weight=weight), (w[:, None] * X).T @ X, rtol=1e-10, atol=1e-9
    )


def test_means_of_many_float32_rows_are_summed_in_float64():
    rows = np.full((200_000, 1), 0.1, dtype=np.float32)

    assert mean_rows(rows)[0] == pytest.approx(float(np.float32(0.1)), rel=1e-12)


# --- decompositions ----------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(50, 8), (8, 8), (6, 20)], ids=str)
def test_right_singular_agrees_with_an_svd(shape):
    rng = np.random.default_rng(0)
    X, weight = rng.standard_normal(shape) * np.arange(1, shape[1] + 1), rng.random(shape[0]) + 0.5
    mean = mean_rows(X, weight=weight)
    centred = np.sqrt(weight)[:, None] * (X - mean)
    values, right = np.linalg.svd(centred)[1:]

    singular, basis = right_singular(X, mean=mean, weight=weight)

    rank = min(shape[0] - 1, shape[1])
    assert basis.shape == (shape[1], rank)
    np.testing.assert_allclose(singular, values[:rank], rtol=1e-9)
    np.testing.assert_allclose(np.abs(np.sum(basis * right[:rank].T, axis=0)), 1, rtol=1e-9)


def test_noise_directions_are_left_out():
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((100, 3)) @ rng.standard_normal((3, 10))).astype(np.float32)

    singular, basis = right_singular(X, mean=mean_rows(X))

    assert len(singular) == 3
    np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-12)


def test_eigen_directions_have_a_sign():
    values, vectors = eigen_directions(np.diag([1.0, 4.0]))

    np.testing.assert_array_equal(values, [4, 1])
    np.testing.assert_array_equal(vectors, [[0, 1], [1, 0]])


@quick
@given(p=dims, q=dims, seed=st.integers(0, 999))
def test_semi_orthogonal_is_the_polar_factor(p, q, seed):
    cross = np.random.default_rng(seed).standard_normal((p, q))

    rotation = semi_orthogonal(cross)

    small = rotation @ rotation.T if p <= q else rotation.T @ rotation
    np.testing.assert_allclose(small, np.eye(min(p, q)), atol=1e-7)
    np.testing.assert_allclose(rotation, scipy.linalg.polar(cross)[0], atol=1e-6)


@pytest.mark.parametrize("shape", [(12, 12), (8, 12), (12, 8)], ids=str)
@pytest.mark.parametrize("weak", [0, 1, 2, 5])
@pytest.mark.parametrize("size", [1e-5, 1e-9])
def test_weak_directions_are_as_exact_as_strong_ones(shape, weak, size):
    rng = np.random.default_rng(0)
    small = min(shape)
    left, right = (np.linalg.qr(rng.standard_normal((dim, small)))[0] for dim in shape)
    values = np.linspace(1, 0.1, small)
    values[small - weak :] = size * np.linspace(2, 1, weak)

    rotation = semi_orthogonal((left * values) @ right.T)

    gram = rotation @ rotation.T if shape[0] <= shape[1] else rotation.T @ rotation
    np.testing.assert_allclose(gram, np.eye(small), atol=1e-7)
    # the nudge along the identity shows at 1e-12 of a direction of 1e-9
    np.testing.assert_allclose(rotation, left @ right.T, atol=1e-6 if size > 1e-6 else 5e-3)


@pytest.mark.parametrize(("p", "q"), [(4, 4), (4, 6), (6, 4)])
def test_where_the_pairs_say_nothing_the_rotation_stays_near_the_identity(p, q):
    one_direction = np.zeros((p, q))
    one_direction[0, 1] = one_direction[1, 0] = 1.0

    rotation = semi_orthogonal(one_direction)

    expected = np.eye(p, q)
    expected[:2, :2] = [[0, 1], [1, 0]]
    np.testing.assert_allclose(rotation, expected, atol=1e-7)


@quick
@given(dim=st.integers(1, 10), seed=st.integers(0, 999), weighted=st.booleans())
def test_a_planted_rotation_is_recovered(dim, seed, weighted):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((3 * dim + 2, dim))
    turn = random_orthogonal(dim, seed)
    weight = rng.random(len(X)) + 0.1 if weighted else None

    np.testing.assert_allclose(orthogonal_procrustes(X, X @ turn, weight=weight), turn, atol=1e-9)


def test_procrustes_agrees_with_scipy():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((50, 6)), rng.standard_normal((50, 6))

    np.testing.assert_allclose(
        orthogonal_procrustes(X, Y), scipy.linalg.orthogonal_procrustes(X, Y)[0], atol=1e-9
    )


@pytest.mark.parametrize("shape", [(60, 7), (5, 9)], ids=str)
def test_pca_agrees_with_scikit_learn(shape):
    X = np.random.default_rng(0).standard_normal(shape) * np.arange(1, shape[1] + 1)
    reference = PCA(n_components=3).fit(X)

    mean, directions, variances = pca(X, 3)

    np.testing.assert_allclose(mean, reference.mean_, atol=1e-12)
    np.testing.assert_allclose(
        np.abs(np.sum(directions.T * reference.components_, axis=1)), 1, rtol=1e-9
    )
    np.testing.assert_allclose(
        variances, reference.explained_variance_ * (shape[0] - 1) / shape[0], rtol=1e-9
    )


@quick
@given(dim=st.integers(1, 8), seed=st.integers(0, 99), shrinkage=st.sampled_from([0.0, 0.3, 1.0]))
def test_whitening_gives_unit_variance_and_comes_back(dim, seed, shrinkage):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, dim)) @ rng.standard_normal((dim, dim)) + 2

    mean, matrix, inverse = whitening(X, shrinkage=shrinkage)

    covariance = np.cov(X.T, bias=True).reshape(dim, dim)
    ridged = (1 - shrinkage) * covariance + shrinkage * np.trace(covariance) / dim * np.eye(dim)
    np.testing.assert_allclose(matrix @ ridged @ matrix, np.eye(dim), atol=1e-5)
    np.testing.assert_allclose(matrix @ inverse, np.eye(dim), atol=1e-7)
    np.testing.assert_allclose(mean, X.mean(axis=0), atol=1e-12)


def test_whitening_leaves_directions_without_variance_at_zero():
    X = np.array([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0]])

    _, matrix, inverse = whitening(X)

    assert matrix[1, 1] == inverse[1, 1] == 0
