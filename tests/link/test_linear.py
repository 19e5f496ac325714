"""Linear regression by Adam: the steps of the paper, and the least squares they lead to."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import ParameterError
from isthmus.link import Linear
from isthmus.link.linear import fit_by_adam


def fit(X, Y, *, learning_rate=1e-3, epochs=100, seed=0):
    generator = np.random.default_rng(seed)
    return fit_by_adam(X, Y, learning_rate=learning_rate, epochs=epochs, generator=generator)


def pairs(n=15, dim_source=32, dim_target=24, seed=0):
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((n, dim_source)), rng.standard_normal((n, dim_target))
    return (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (X, Y))


@pytest.mark.parametrize("seed", range(5))
def test_the_loss_falls_at_every_step_of_the_paper(seed):
    X, Y = pairs(seed=seed)

    _, losses = fit(X, Y, seed=seed)

    assert losses.shape == (100,)
    assert (np.diff(losses) < 0).all()
    assert losses[-1] < losses[0] / 2


def test_many_steps_reach_least_squares():
    X, Y = pairs(n=60, dim_source=5, dim_target=3)

    weight, losses = fit(X, Y, learning_rate=0.01, epochs=3_000)

    best = np.linalg.lstsq(X, Y, rcond=None)[0]
    np.testing.assert_allclose(weight, best, atol=1e-4)
    assert np.isclose(losses[-1], np.square(X @ best - Y).sum(1).mean())


def test_the_first_steps_are_adams():
    """Against torch's own Adam on the same numbers (Kingma and Ba 2015, algorithm 1)."""
    torch = pytest.importorskip("torch")
    X, Y = pairs()
    bound = 1 / np.sqrt(32)
    start = np.random.default_rng(0).uniform(-bound, bound, (32, 24))
    weight = torch.tensor(start, requires_grad=True)
    adam = torch.optim.Adam([weight], lr=1e-3)
    for _ in range(20):
        adam.zero_grad()
        torch.square(torch.tensor(X) @ weight - torch.tensor(Y)).sum(1).mean().backward()
        adam.step()

    found, _ = fit(X, Y, epochs=20)

    np.testing.assert_allclose(found, weight.detach().numpy(), atol=1e-9)


def test_the_seed_decides_where_it_starts():
    X, Y = pairs()

    assert not np.array_equal(fit(X, Y, seed=0)[0], fit(X, Y, seed=1)[0])


def test_bad_parameters():
    with pytest.raises(ParameterError, match="learning_rate over 0; got 0"):
        Linear(learning_rate=0)
    with pytest.raises(ParameterError, match="epochs as a whole number of at least 1; got 0"):
        Linear(epochs=0)
    with pytest.raises(ParameterError, match="csls_neighborhood"):
        Linear(csls_neighborhood=-1)
