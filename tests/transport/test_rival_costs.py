"""Bridge cost and keypoint cost, against what they say written out."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy.spatial.distance import cdist, jensenshannon
from threadpoolctl import threadpool_limits

from isthmus.errors import (
    CountMismatchError,
    DimensionError,
    InvalidVectorsError,
    ParameterError,
    ZeroVectorError,
)
from isthmus.transport import bridge_cost, kpg_rl_cost, sinkhorn

RIVALS = (bridge_cost, kpg_rl_cost)


def clouds(seed=0, n=20, m=15, anchors=9, dims=(7, 5)):
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((max(n, m) + anchors, 6))
    sides = [hidden @ rng.standard_normal((6, dim)) for dim in dims]
    return sides[0][:n], sides[1][:m], sides[0][-anchors:], sides[1][-anchors:]


def test_the_bridge_is_the_shortest_path_over_one_anchor():
    X, Y, A, B = clouds()
    left, right = cdist(X, A, "cosine"), cdist(Y, B, "cosine")
    expected = (left[:, None, :] + right[None, :, :]).min(axis=2)
    np.testing.assert_allclose(bridge_cost(X, Y, A, B).matrix, expected, atol=1e-5)


@pytest.mark.parametrize("tau", [0.01, 0.1, 1.0])
def test_the_keypoint_cost_is_the_divergence_of_softmax_profiles(tau):
    X, Y, A, B = clouds()
    shares = []
    for rows, anchors in ((X, A), (Y, B)):
        distances = cdist(rows, anchors, "cosine")
        share = np.exp(-distances / (tau * distances.max()))
        shares.append(share / share.sum(axis=1, keepdims=True))
    expected = [[jensenshannon(one, other) ** 2 for other in shares[1]] for one in shares[0]]
    np.testing.assert_allclose(kpg_rl_cost(X, Y, A, B, tau=tau).matrix, expected, atol=1e-5)


def test_bounds():
    X, _, A, _ = clouds(n=50)
    assert bridge_cost(A, A, A, A).matrix.diagonal().max() == pytest.approx(0, abs=1e-6)
    cost = kpg_rl_cost(X, X, A, A, tau=1e-4).matrix
    assert cost.min() >= 0
    assert cost.max() == pytest.approx(np.log(2), abs=1e-5)
    assert np.abs(cost.diagonal()).max() < 1e-6
    assert bridge_cost(A, -A, A[:1], A[:1]).matrix.max() <= 4


@pytest.mark.parametrize("rival", RIVALS)
def test_small_blocks_and_two_threads_give_the_same(rival, monkeypatch):
    X, Y, A, B = clouds(n=90, m=70)
    with threadpool_limits(1):
        whole = rival(X, Y, A, B).matrix
    monkeypatch.setattr(sys.modules[rival.__module__], "BLOCK", 40)
    with threadpool_limits(2):
        assert np.array_equal(rival(X, Y, A, B).matrix, whole)


@pytest.mark.parametrize("rival", RIVALS)
def test_sinkhorn_takes_them(rival):
    X, Y, A, B = clouds(n=15, anchors=30)
    plan = sinkhorn(rival(X, Y, A, B))
    assert plan.converged
    assert (plan.nearest(3)[0] == np.arange(15)[:, None]).any(axis=1).mean() > 0.5


@pytest.mark.parametrize("rival", RIVALS)
def test_anchors_that_repeat_are_taken(rival):
    X, Y, A, B = clouds()
    few = np.zeros(9, dtype=int)
    assert np.isfinite(rival(X, Y, A[few], B[few]).matrix).all()


@pytest.mark.parametrize("rival", RIVALS)
def test_bad_input_is_named(rival, monkeypatch):
    X, Y, A, B = clouds()
    with pytest.raises(CountMismatchError, match="9 source rows and 8 target rows"):
        rival(X, Y, A, B[:8])
    with pytest.raises(DimensionError, match="anchors_target with 5 columns"):
        rival(X, Y, A, A)
    with pytest.raises(ZeroVectorError, match="in anchors_target"):
        rival(X, Y, A, 0 * B)
    with pytest.raises(ZeroVectorError, match="in source"):
        rival(0 * X, Y, A, B)
    with pytest.raises(InvalidVectorsError, match="finite numbers in target"):
        rival(X, Y * np.nan, A, B)
    monkeypatch.setattr("isthmus.transport.cost.MOST_STORED", 100)
    with pytest.raises(ParameterError, match=r"at most 100 costs.*got 20 x 15.*anchor_cost"):
        rival(X, Y, A, B)


def test_a_temperature_is_over_zero():
    with pytest.raises(ParameterError, match="tau over 0"):
        kpg_rl_cost(*clouds(), tau=0.0)
