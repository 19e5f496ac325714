"""RCSLS: its loss against the formula, its gradient against differences, its matrix orthogonal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import ParameterError
from isthmus.link import RCSLS, LinkProblem
from isthmus.link.procrustes import rotation
from isthmus.link.rcsls import _loss, fit_rcsls


def pairs(n, dim_source, dim_target, seed):
    rng = np.random.default_rng(seed)
    latent = rng.standard_normal((n, 5))
    sides = [
        latent @ rng.standard_normal((5, dim)) + 0.5 * rng.standard_normal((n, dim))
        for dim in (dim_source, dim_target)
    ]
    return (side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides)


def loss_by_the_formula(X, Y, turn, k):
    """Joulin et al. (2018), equation 4, by loops over the seeds."""
    scores = X @ turn @ Y.T
    total = 0.0
    for i in range(len(X)):
        nearest = np.sort(scores[i])[::-1][:k]
        from_target = np.sort(scores[:, i])[::-1][:k]
        total += -2 * scores[i, i] + nearest.mean() + from_target.mean()
    return total / len(X)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 9))
def test_the_loss_is_the_papers(seed, k):
    X, Y = pairs(12, 7, 9, seed)
    turn = np.random.default_rng(seed).standard_normal((7, 9))

    loss, _ = _loss(X, Y, turn, k)

    assert np.isclose(loss, loss_by_the_formula(X, Y, turn, k), rtol=1e-5)


def test_the_gradient_is_that_of_the_loss():
    X, Y = pairs(12, 4, 4, seed=1)
    turn = np.random.default_rng(2).standard_normal((4, 4))
    _, gradient = _loss(X, Y, turn, 3)

    for place in np.ndindex(4, 4):
        step = np.zeros((4, 4))
        step[place] = 1e-6
        ahead, behind = (loss_by_the_formula(X, Y, turn + s, 3) for s in (step, -step))
        assert np.isclose((ahead - behind) / 2e-6, gradient[place], atol=1e-5)


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    dims=st.sampled_from([(8, 8), (6, 9), (9, 6)]),
    rate=st.sampled_from([0.1, 1.0, 50.0]),
)
def test_it_stays_orthogonal_and_the_loss_never_rises(seed, dims, rate):
    X, Y = pairs(40, *dims, seed)

    turn, losses = fit_rcsls(X, Y, neighbors=10, learning_rate=rate, epochs=10)

    product = turn @ turn.T if dims[0] <= dims[1] else turn.T @ turn
    np.testing.assert_allclose(product, np.eye(min(dims)), atol=1e-6)
    assert (np.diff(losses) <= 0).all()


def test_it_starts_at_procrustes_and_gains():
    X, Y = pairs(40, 8, 8, seed=3)

    start, first = fit_rcsls(X, Y, neighbors=10, learning_rate=1e-12, epochs=1)
    _, losses = fit_rcsls(X, Y, neighbors=10, learning_rate=1.0, epochs=10)

    np.testing.assert_allclose(start, rotation(X, Y), atol=1e-6)
    assert np.isclose(losses[0], first[0])
    assert losses[-1] < losses[0]


def test_few_seeds_give_a_map_of_their_span():
    X, Y = pairs(6, 20, 15, seed=4)

    turn, _ = fit_rcsls(X, Y, neighbors=3, learning_rate=1.0, epochs=10)

    singular = np.linalg.svd(turn, compute_uv=False)
    np.testing.assert_allclose(singular[:6], 1, atol=1e-6)
    np.testing.assert_allclose(singular[6:], 0, atol=1e-6)


def test_more_neighbours_than_seeds_take_all_others():
    cloud = np.random.default_rng(5).standard_normal((30, 6))
    problem = LinkProblem.of_rows(cloud, cloud[:, ::-1], [(row, row) for row in range(8)])

    all_others, more = RCSLS(neighbors=7).link(problem), RCSLS(neighbors=500).link(problem)

    assert all_others.source_rows.tolist() == more.source_rows.tolist()
    assert all_others.target_rows.tolist() == more.target_rows.tolist()


def test_bad_parameters():
    with pytest.raises(ParameterError, match="neighbors as a whole number"):
        RCSLS(neighbors=0)
    with pytest.raises(ParameterError, match="learning_rate over 0"):
        RCSLS(learning_rate=-1)
    with pytest.raises(ParameterError, match="epochs as a whole number"):
        RCSLS(epochs=0)
