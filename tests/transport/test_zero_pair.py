"""Wasserstein Procrustes and iterative closest point: rotations without a pair."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from isthmus.errors import (
    DegenerateVectorsError,
    DimensionError,
    InvalidVectorsError,
    ParameterError,
    ZeroVectorError,
)
from isthmus.transport import Alignment, icp, wasserstein_procrustes

FAST = {"batch": 250, "relaxed_rows": 250, "relaxed_steps": 30, "steps": 20, "doublings": 1}


def turned(seed=0, n=250, dim=6, noise=0.02):
    """A lopsided cloud, and the same cloud in another order, rotated, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(1.0, size=(n, dim)) * np.linspace(3, 1, dim)
    turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    order = rng.permutation(n)
    return X, ((X + noise * rng.standard_normal(X.shape)) @ turn)[order], order


def hits(found, X, Y, order):
    cost = found.cost(X, Y).tile(slice(None), slice(None))
    return (cost.argmin(axis=0) == order).mean()


def check_rotation(found):
    width = len(found.rotation)
    np.testing.assert_allclose(found.rotation @ found.rotation.T, np.eye(width), atol=1e-8)


@pytest.mark.parametrize("seed", [0, 1])
def test_both_find_a_rotation(seed):
    X, Y, order = turned(seed)
    wasserstein = wasserstein_procrustes(X, Y, **FAST)
    closest = icp(X, Y)
    polished = icp(X, Y, start=wasserstein)
    assert hits(wasserstein, X, Y, order) > 0.8
    assert hits(closest, X, Y, order) > 0.95
    assert hits(polished, X, Y, order) > 0.95
    for found in (wasserstein, closest, polished):
        check_rotation(found)
    assert closest.converged
    assert closest.curve[-1] > 0.9
    assert wasserstein.curve.shape == (2,)


def test_unequal_widths_come_to_the_smaller():
    X, Y, order = turned()
    wide = np.concatenate((X, 0.01 * X[:, ::-1] ** 2), axis=1)
    for found in (icp(wide, Y), wasserstein_procrustes(wide, Y, **FAST)):
        assert found.rotation.shape == (6, 6)
        assert found.transform(wide).shape == (250, 6)
        assert found.transform_target(Y).shape == (250, 6)
        check_rotation(found)
    assert hits(icp(Y, wide), Y, wide, np.argsort(order)) > 0.5


def test_sides_may_differ_in_rows():
    X, Y, order = turned()
    assert hits(icp(X, Y[:180]), X, Y[:180], order[:180]) > 0.9
    found = wasserstein_procrustes(X, Y[:180], **FAST)
    assert hits(found, X, Y[:180], order[:180]) > 0.5


def test_a_transform_does_not_depend_on_the_batch():
    X, Y, _ = turned()
    found = icp(X, Y)
    assert np.array_equal(found.transform(X)[3:4], found.transform(X[3:4]))
    assert found.transform(X).dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(found.transform(X), axis=1), 1.0, rtol=1e-5)
    with pytest.raises(DimensionError, match="rows with 6 columns"):
        found.transform(X[:, :4])


def test_seeds_and_threads():
    X, Y, _ = turned()
    rotations = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            rotations.append(wasserstein_procrustes(X, Y, **FAST).rotation)
    np.testing.assert_allclose(rotations[0], rotations[1], atol=1e-6)
    other = wasserstein_procrustes(X, Y, batch=50, relaxed_rows=100, steps=5, doublings=0, seed=1)
    again = wasserstein_procrustes(X, Y, batch=50, relaxed_rows=100, steps=5, doublings=0, seed=1)
    assert np.array_equal(other.rotation, again.rotation)
    assert not other.converged  # one size of batch cannot tell


def test_a_sample_stands_for_many_rows():
    X, Y, order = turned(n=600)
    found = icp(X, Y, max_rows=580)
    assert hits(found, X, Y, order) > 0.8


def test_a_row_at_the_mean_has_no_direction_and_is_left_out():
    rows = np.concatenate((np.eye(3), np.ones((1, 3))))  # the last is the mean direction
    found = icp(rows, rows)
    assert np.isfinite(found.transform(rows)).all()


def test_steps_of_zero_start_from_the_axes():
    X, Y, _ = turned()
    found = wasserstein_procrustes(X, Y, relaxed_steps=0, steps=4, doublings=0)
    check_rotation(found)


def test_few_directions_are_enough():
    rng = np.random.default_rng(0)
    flat = rng.gamma(1.0, size=(50, 2)) @ rng.standard_normal((2, 5))
    assert len(Alignment.of(flat, rng.standard_normal((40, 5))).rotation) <= 3


@pytest.mark.parametrize("method", [icp, wasserstein_procrustes])
def test_bad_input_is_named(method):
    X, Y, _ = turned()
    with pytest.raises(DegenerateVectorsError, match="two different rows in source"):
        method(np.ones((9, 6)), Y)
    with pytest.raises(DegenerateVectorsError, match="two different rows in target"):
        method(X, Y[:1])
    with pytest.raises(ZeroVectorError, match="in source"):
        method(0 * X, Y)
    with pytest.raises(InvalidVectorsError, match="finite numbers in target"):
        method(X, Y * np.nan)


def test_parameters_out_of_range_are_named():
    X, Y, _ = turned()
    for name in ("relaxed_rows", "batch", "steps", "eta"):
        with pytest.raises(ParameterError, match=name):
            wasserstein_procrustes(X, Y, **{name: 0})
    for name in ("max_iterations", "max_rows"):
        with pytest.raises(ParameterError, match=name):
            icp(X, Y, **{name: 0})
