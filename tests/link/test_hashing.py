"""Hashes: what they keep and what they do not see."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from threadpoolctl import threadpool_limits

from isthmus._linalg import normalise
from isthmus.link.hashing import anchor_distances, kernel_hashes, median_distance


def cloud(n: int, *, dim: int = 8, seed: int = 0) -> np.ndarray:
    return normalise(np.random.default_rng(seed).standard_normal((n, dim)))


# --- distances -------------------------------------------------------------------------------


def test_distances_are_what_they_are_called():
    points, anchors = cloud(30), cloud(5, seed=1)
    apart = np.linalg.norm(points[:, None].astype(float) - anchors, axis=2)
    assert anchor_distances(points, anchors, distance="l2") == pytest.approx(apart, abs=1e-6)
    cosine = anchor_distances(points, anchors, distance="cosine")
    assert cosine == pytest.approx(apart**2 / 2, abs=1e-6)


@pytest.mark.parametrize("distance", ["cosine", "l2"])
def test_none_is_negative_and_that_to_itself_is_nothing(distance):
    points = cloud(300, dim=40)
    apart = anchor_distances(points, points, distance=distance)
    assert apart.min() >= 0
    assert np.diag(apart).max() < 1e-3
    assert apart.dtype == np.float32


def test_the_same_bits_on_one_thread_and_on_two():
    points, anchors = cloud(3_000, dim=40), cloud(17, dim=40, seed=1)
    with threadpool_limits(1, user_api="blas"):
        one = anchor_distances(points, anchors, distance="cosine")
    with threadpool_limits(2, user_api="blas"):
        two = anchor_distances(points, anchors, distance="cosine")
    assert np.array_equal(one, two)


# --- bandwidth -------------------------------------------------------------------------------


@settings(max_examples=20)
@given(st.integers(2, 30), st.integers(1, 6), st.integers(0, 99))
def test_the_median_is_that_of_all_pairs(n, size, seed):
    hashes = np.random.default_rng(seed).uniform(0, 2, (n, size)).astype(np.float32)
    assert median_distance(hashes) == pytest.approx(np.median(pdist(hashes)), rel=1e-5)


def test_equal_hashes_do_not_count():
    hashes = np.array([[0.3, 0.1]] * 20 + [[0.3, 1.1]], np.float32)
    assert median_distance(hashes) == pytest.approx(1.0)


def test_of_equal_hashes_alone_there_is_no_median_but_a_bandwidth():
    assert median_distance(np.full((5, 3), 0.7, np.float32)) == 1.0


# --- kernel ----------------------------------------------------------------------------------


def test_the_kernel_is_the_exponential_up_to_length():
    apart = np.random.default_rng(0).uniform(0, 2, (20, 7)).astype(np.float32)
    expected = np.exp(-apart.astype(float) / 0.4)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert kernel_hashes(apart, bandwidth=0.4) == pytest.approx(expected, abs=1e-6)


def test_raw_distances_up_to_length():
    apart = np.array([[3.0, 4.0], [0.0, 0.0]], np.float32)
    assert kernel_hashes(apart, bandwidth=None) == pytest.approx(np.array([[0.6, 0.8], [0, 0]]))


def test_a_tiny_bandwidth_leaves_the_nearest_anchor_and_no_nan():
    apart = np.array([[0.5, 1.5, 0.6]], np.float32)
    assert kernel_hashes(apart, bandwidth=1e-6).tolist() == [[1.0, 0.0, 0.0]]


@given(st.floats(0.1, 3))
def test_what_a_space_adds_to_all_distances_is_not_seen(shift):
    """Of the exponential, it is a factor of the row."""
    apart = np.random.default_rng(0).uniform(0, 1, (9, 5)).astype(np.float32)
    shifted = kernel_hashes(apart + np.float32(shift), bandwidth=0.5)
    assert shifted == pytest.approx(kernel_hashes(apart, bandwidth=0.5), abs=1e-5)


@given(st.floats(0.1, 10))
def test_scale_is_not_seen_where_the_bandwidth_scales_with_it(scale):
    """Theorem 1: distances of two encoders are alike up to a factor."""
    apart = np.random.default_rng(0).uniform(0, 1, (9, 5)).astype(np.float32)
    scaled = apart * np.float32(scale)
    first = kernel_hashes(apart, bandwidth=median_distance(apart))
    assert kernel_hashes(scaled, bandwidth=median_distance(scaled)) == pytest.approx(
        first, abs=1e-5
    )


def test_the_callers_distances_stay_as_they_are():
    apart = np.ones((3, 2), np.float32)
    kernel_hashes(apart, bandwidth=0.5)
    kernel_hashes(apart, bandwidth=None)
    assert (apart == 1).all()
