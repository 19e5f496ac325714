"""Gromov-Wasserstein and its fused form, through POT."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from isthmus.errors import (
    CountMismatchError,
    DegenerateVectorsError,
    MissingExtraError,
    NotConvergedError,
    ParameterError,
    ZeroVectorError,
)
from isthmus.transport import anchor_cost, gromov, gromov_seconds, sinkhorn

EVERY = slice(None)


def turned(seed=0, n=60, noise=0.05):
    """A cloud of uneven clusters, and the same cloud rotated, with noise."""
    rng = np.random.default_rng(seed)
    centres = 1.5 * rng.standard_normal((8, 12))
    X = centres[rng.integers(0, 8, n)] + rng.standard_normal((n, 12))
    turn = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    return X, (X + noise * rng.standard_normal(X.shape)) @ turn


def hits(plan):
    return (plan.nearest(1)[0][:, 0] == np.arange(plan.shape[0])).mean()


def test_distances_alone_match_a_rotated_cloud():
    found = gromov(*turned())
    assert hits(found) > 0.95
    plan = found.block(EVERY, EVERY).astype(np.float64)
    np.testing.assert_allclose(plan.sum(axis=1), 1 / 60, rtol=0.02)
    np.testing.assert_allclose(plan.sum(axis=0), 1 / 60, rtol=0.02)
    assert found.converged
    assert len(found.matched_rows()) > 50


def test_sides_may_differ_in_rows_and_width():
    X, Y = turned()
    found = gromov(X, Y[:40, :9], eta=0.1)
    assert found.shape == (60, 40)
    np.testing.assert_allclose(found.mass("target"), 1 / 40, rtol=0.05)


def test_all_of_the_cost_is_sinkhorn():
    X, Y = turned()
    cost = anchor_cost(X, Y, X[:10], Y[:10])
    found, plain = gromov(X, Y, cost=cost, alpha=1.0), sinkhorn(cost)
    assert np.array_equal(found.source_potential, plain.source_potential)
    assert np.array_equal(found.errors, plain.errors)
    assert found.converged
    assert found.settled
    nearly = gromov(X, Y, cost=cost, alpha=1 - 1e-6, sinkhorn_iterations=5_000)
    assert nearly.epsilon == pytest.approx(plain.epsilon, rel=1e-4)
    np.testing.assert_allclose(
        60 * nearly.block(EVERY, EVERY), 60 * plain.block(EVERY, EVERY), atol=5e-3
    )


def test_a_cost_leads_where_distances_cannot():
    rng = np.random.default_rng(0)
    X, Y = turned()
    Y = np.concatenate((Y[:30], rng.standard_normal((30, 12))))  # half of the rows fit
    cost = anchor_cost(X, Y, X[:15], Y[:15])
    alone, fused = gromov(X, Y), gromov(X, Y, cost=cost, alpha=0.9)
    assert hits(fused) > hits(alone)
    assert gromov(X, Y, cost=cost).epsilon == gromov(X, Y, cost=cost, alpha=0.5).epsilon


def test_a_run_that_is_cut_short_says_so():
    found = gromov(*turned(), max_iterations=1)
    assert not found.settled
    assert not found.converged
    assert "1 looks" in repr(found)


def test_the_error_is_that_of_the_marginals():
    found = gromov(*turned())
    off = [abs(found.mass(side) - 1 / 60).sum() for side in ("source", "target")]
    assert found.errors.shape == (1,)
    assert found.error == pytest.approx(sum(off), abs=1e-4)
    assert found.settled
    assert found.changes[-1] <= 1e-6 < found.changes[0]
    back = found.transpose()
    assert (back.changes is found.changes, back.converged) == (True, True)


def test_a_plan_whose_marginals_are_off_is_refused():
    found = gromov(*turned(), sinkhorn_iterations=1, max_iterations=1)
    assert found.error > 0.01
    assert not found.converged
    with pytest.raises(NotConvergedError, match=r"marginals within 0.01 .* looks, the last at"):
        found.require()


def test_an_epsilon_that_float64_cannot_hold_is_named():
    with pytest.raises(ParameterError, match=r"float64 can solve with; got 1e-05. Do: raise eps"):
        gromov(*turned(), epsilon=1e-5)


def test_time_grows_with_the_third_power():
    small, large = gromov_seconds(500, 500), gromov_seconds(8_000, 8_000)
    assert small > 0
    assert large > 16**2 * small / 3  # timings differ from call to call
    assert gromov_seconds(500, 500, max_iterations=10_000) > 10 * small


def test_large_sides_are_refused_with_an_estimate():
    X, Y = turned()
    expected = r"at most 50 rows a side; got 60 and 60, which take up to .* seconds and .* GB"
    with pytest.raises(ParameterError, match=expected):
        gromov(X, Y, max_rows=50)


def test_bad_input_is_named():
    X, Y = turned()
    cost = anchor_cost(X, Y, X[:10], Y[:10])
    with pytest.raises(ParameterError, match="a cost where alpha is over 0; got none"):
        gromov(X, Y, alpha=0.5)
    with pytest.raises(ParameterError, match="alpha from 0 to 1"):
        gromov(X, Y, cost=cost, alpha=1.5)
    with pytest.raises(CountMismatchError, match=r"a cost of shape \(50, 60\).*the same rows"):
        gromov(X[:50], Y, cost=cost)
    with pytest.raises(DegenerateVectorsError, match="several directions in source"):
        gromov(np.ones((5, 3)), Y)
    with pytest.raises(ZeroVectorError, match="in target"):
        gromov(X, 0 * Y)
    for options in ({"eta": 0.0}, {"epsilon": -1.0}, {"max_iterations": 0}, {"tolerance": 0.0}):
        with pytest.raises(ParameterError, match=next(iter(options))):
            gromov(X, Y, **options)


def test_without_the_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ot.gromov", None)
    with pytest.raises(MissingExtraError, match=r"isthmus\[ot\]"):
        gromov(*turned())
