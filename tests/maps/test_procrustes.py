"""Procrustes: what it recovers, what it keeps, what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import ParameterError
from isthmus.maps import Procrustes

quick = settings(derandomize=True, deadline=None, max_examples=30)


def orthonormal(rows, columns, seed):
    """Orthonormal rows, or columns where there are more rows."""
    wide = max(rows, columns)
    square = np.linalg.qr(np.random.default_rng(seed).standard_normal((wide, wide)))[0]
    return square[:rows, :columns]


@quick
@given(
    dim=st.integers(1, 12),
    extra=st.integers(0, 5),
    scale=st.floats(0.01, 100),
    shift=st.floats(-10, 10),
    seed=st.integers(0, 999),
)
def test_planted_rotation_shift_and_scale_are_recovered(dim, extra, scale, shift, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((3 * dim + 3, dim)) + 1
    turn = orthonormal(dim, dim + extra, seed)
    new = rng.standard_normal((4, dim))

    plain = Procrustes().fit(X, X @ turn + shift)
    scaled = Procrustes(scale=True).fit(X, scale * X @ turn + shift)

    size = abs(shift) + 1
    np.testing.assert_allclose(plain.transform(new), new @ turn + shift, atol=1e-5 * size)
    np.testing.assert_allclose(
        scaled.transform(new), scale * new @ turn + shift, atol=1e-5 * (scale + size)
    )
    assert float(scaled.scale_) == pytest.approx(scale, rel=1e-5)
    np.testing.assert_allclose(plain.rotation_, turn, atol=1e-5)


@quick
@given(dim=st.integers(2, 10), less=st.integers(1, 5), seed=st.integers(0, 999))
def test_a_planted_projection_to_fewer_dimensions_is_recovered(dim, less, seed):
    less = min(less, dim - 1)
    X = np.random.default_rng(seed).standard_normal((4 * dim, dim))
    # the source varies only where the projection looks, so that it is the best one
    down = orthonormal(dim, less, seed)
    X = X @ down @ down.T

    fitted = Procrustes(centre=False).fit(X, X @ down)

    np.testing.assert_allclose(fitted.rotation_, down, atol=1e-5)


def test_agrees_with_scipy():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 6)), rng.standard_normal((60, 6))
    reference = scipy.linalg.orthogonal_procrustes(X - X.mean(0), Y - Y.mean(0))[0]

    np.testing.assert_allclose(Procrustes().fit(X, Y).rotation_, reference, atol=1e-6)


@pytest.mark.parametrize("shape", [(7, 11), (11, 7), (8, 8)], ids=str)
@pytest.mark.parametrize("unequal", ["semi_orthogonal", "pca"])
@pytest.mark.parametrize("n", [5, 60])
def test_rows_or_columns_are_orthonormal(shape, unequal, n):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((n, shape[0])), rng.standard_normal((n, shape[1]))

    rotation = Procrustes(unequal=unequal).fit(X, Y).rotation_

    gram = rotation @ rotation.T if shape[0] <= shape[1] else rotation.T @ rotation
    np.testing.assert_allclose(gram, np.eye(min(shape)), atol=1e-6)


def test_distances_and_angles_of_the_source_survive():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 6)), rng.standard_normal((60, 9))
    mapped = Procrustes().fit(X, Y).transform(X)

    before = np.linalg.norm(X[:, None] - X[None], axis=2)
    after = np.linalg.norm(mapped[:, None] - mapped[None], axis=2)
    np.testing.assert_allclose(after, before, atol=1e-5)


@pytest.mark.parametrize("larger", ["source", "target"])
def test_pca_of_the_larger_side_comes_first_and_is_recorded(larger):
    rng = np.random.default_rng(0)
    small, large = rng.standard_normal((80, 3)), rng.standard_normal((80, 6))
    large[:, :3] = 10 * small @ orthonormal(3, 3, 1)  # by far the most variance
    X, Y = (large, small) if larger == "source" else (small, large)

    fitted = Procrustes(unequal="pca").fit(X, Y)

    centred = large - large.mean(0)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:3].T
    np.testing.assert_allclose(fitted.pca_ @ fitted.pca_.T, axes @ axes.T, atol=1e-5)
    # the map goes through the recorded axes only
    through = fitted.pca_ @ fitted.pca_.T
    turned = through @ fitted.rotation_ if larger == "source" else fitted.rotation_ @ through
    np.testing.assert_allclose(turned, fitted.rotation_, atol=1e-5)
    assert Procrustes().fit(X, Y).pca_.shape == (0, 0)
    assert Procrustes(unequal="pca").fit(small, small).pca_.shape == (0, 0)


def test_semi_orthogonal_fits_the_pairs_at_least_as_well_as_pca_first():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6)) * [9, 8, 7, 1, 1, 1]
    Y = X[:, 3:] @ orthonormal(3, 3, 1)  # what varies least is what counts

    def correlation(unequal):
        mapped = Procrustes(unequal=unequal).fit(X, Y).transform(X)
        return float(np.sum((mapped - mapped.mean(0)) * (Y - Y.mean(0))))

    assert correlation("semi_orthogonal") > 1.2 * correlation("pca")


def test_without_centring_the_origin_stays():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((30, 4)) + 2, rng.standard_normal((30, 4)) - 1

    fitted = Procrustes(centre=False).fit(X, Y)

    np.testing.assert_array_equal(fitted.transform(np.zeros((1, 4))), np.zeros((1, 4)))


def test_the_scale_is_the_one_of_least_squares():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((50, 7)), rng.standard_normal((50, 4))
    weight = rng.random(50)
    fitted = Procrustes(scale=True).fit(X, Y, sample_weight=weight)

    def error(scale):
        centred = X - fitted.mean_source_
        rest = scale * centred @ fitted.rotation_ + fitted.mean_target_ - Y
        return float(weight @ np.sum(rest**2, axis=1))

    best = float(fitted.scale_)
    assert error(best) < min(error(best * 1.01), error(best * 0.99))


def test_a_side_that_goes_the_other_way_keeps_the_scale_positive():
    X = np.array([[1.0], [2.0], [3.0]])
    fitted = Procrustes(scale=True).fit(X, -2 * X)

    assert float(fitted.scale_) == pytest.approx(2)
    np.testing.assert_allclose(fitted.transform([[5.0]]), [[-10]], rtol=1e-6)


def test_unknown_unequal():
    with pytest.raises(ParameterError, match="'semi_orthogonal' or 'pca'; got 'pad'"):
        Procrustes(unequal="pad").fit(np.eye(3), np.eye(3))
