"""Relative representations: what they do not depend on, kernels, anchors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import ParameterError
from isthmus.maps import Relative


@settings(derandomize=True, deadline=None, max_examples=30)
@given(
    kernel=st.sampled_from(["cosine", "poly", "rbf"]),
    dim=st.integers(2, 8),
    extra=st.integers(0, 4),
    scale=st.floats(0.01, 100),
    seed=st.integers(0, 999),
)
def test_a_rotation_and_a_scale_between_the_sides_do_not_show(kernel, dim, extra, scale, seed):
    rng = np.random.default_rng(seed)
    X, new = rng.standard_normal((12, dim)), rng.standard_normal((5, dim))
    turn = np.linalg.qr(rng.standard_normal((dim + extra, dim + extra)))[0][:dim]

    fitted = Relative(kernel=kernel).fit(X, scale * X @ turn)

    np.testing.assert_allclose(
        fitted.transform(new), fitted.transform_target(scale * new @ turn), atol=1e-4
    )


def hand_made():
    X = np.array([[1.0, 0.0], [3.0, 4.0], [0.0, 2.0]])
    unit = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    return X, unit @ unit.T


@pytest.mark.parametrize(
    ("kernel", "of_cosine"),
    [
        ("cosine", lambda cosine: cosine),
        ("poly", lambda cosine: (cosine + 1) ** 2),
        # squared distances 0.8, 2 and 0.4: their median is 0.8
        ("rbf", lambda cosine: np.exp(-(2 - 2 * cosine) / 0.8)),
    ],
)
def test_kernels_by_hand(kernel, of_cosine):
    X, cosine = hand_made()

    fitted = Relative(kernel=kernel).fit(X, X)

    np.testing.assert_allclose(fitted.transform(X), of_cosine(cosine), atol=1e-6)


def test_a_weight_counts_like_so_many_anchors():
    X, _ = hand_made()
    weighted = Relative().fit(X, X, sample_weight=[1, 3, 2]).transform(X)
    repeated = np.repeat(X, [1, 3, 2], axis=0)
    plain = Relative().fit(repeated, repeated).transform(X)

    np.testing.assert_allclose(weighted @ weighted.T, plain @ plain.T, rtol=1e-6)


def test_anchors_are_drawn_by_seed_and_by_weight():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((50, 4)), rng.standard_normal((50, 3))
    weight = np.where(np.arange(50) < 10, 1e6, 1.0)

    def draw(**params):
        fitted = Relative(max_anchors=10, **params).fit(X, Y)
        return fitted.anchors_source_

    assert draw(seed=1).shape == (10, 4)
    np.testing.assert_array_equal(draw(seed=1), draw(seed=1))
    assert not np.array_equal(draw(seed=1), draw(seed=2))
    heavy = Relative(max_anchors=10).fit(X, Y, sample_weight=weight).anchors_source_
    unit = X[:10] / np.linalg.norm(X[:10], axis=1, keepdims=True)
    np.testing.assert_allclose(heavy, unit, atol=1e-6)


def test_a_row_of_zeros_is_unlike_every_anchor():
    X, _ = hand_made()

    np.testing.assert_array_equal(Relative().fit(X, X).transform([[0.0, 0.0]]), [[0, 0, 0]])


def test_anchors_that_are_all_alike_have_a_width():
    X = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])

    assert Relative(kernel="rbf").fit(X, X).widths_.tolist() == [1, 1]


@pytest.mark.parametrize("params", [{"kernel": "linear"}, {"max_anchors": 1}], ids=str)
def test_parameters_out_of_range(params):
    X, _ = hand_made()
    with pytest.raises(ParameterError, match="cosine, poly, rbf and max_anchors of at least 2"):
        Relative(**params).fit(X, X)
