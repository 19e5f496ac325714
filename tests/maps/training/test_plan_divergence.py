"""The divergence of plans: plans by a second route, its gradient by finite differences."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from isthmus.maps.training.plan_divergence import log_plan, plan_divergence


def drawn(n, m, seed=0):
    rng = np.random.default_rng(seed)
    return torch.tensor(rng.uniform(-1, 1, (n, m)), dtype=torch.float64)


def by_hand(similarities, epsilon, iterations):
    scores = similarities.numpy() / epsilon
    n, m = scores.shape
    column = np.zeros(m)
    for _ in range(iterations):
        row = -np.log(n) - logsumexp(scores + column, axis=1)
        column = -np.log(m) - logsumexp(scores + row[:, None], axis=0)
    again = (
        -np.log(n) - logsumexp(scores + column, axis=1),
        -np.log(m) - logsumexp(scores + row[:, None], axis=0),
    )
    return scores + (row + again[0])[:, None] / 2 + (column + again[1]) / 2


@settings(derandomize=True, deadline=None, max_examples=30)
@given(
    n=st.integers(1, 30),
    m=st.integers(1, 30),
    epsilon=st.sampled_from([0.005, 0.05, 0.5]),
    iterations=st.sampled_from([1, 7, 10, 25, 100]),
    seed=st.integers(0, 999),
)
def test_the_plan_is_that_of_as_many_iterations_in_the_log_domain(n, m, epsilon, iterations, seed):
    similarities = drawn(n, m, seed)

    plan = log_plan(similarities, epsilon=epsilon, iterations=iterations)

    expected = by_hand(similarities, epsilon, iterations)
    np.testing.assert_allclose(plan.exp().numpy(), np.exp(expected), atol=1e-9)


def test_float32_gives_the_same_plan():
    similarities = drawn(60, 50)
    plan = log_plan(similarities.float(), epsilon=0.005)

    assert plan.isfinite().all()
    np.testing.assert_allclose(
        plan.exp().numpy(), np.exp(by_hand(similarities, 0.005, 100)), atol=1e-4
    )


def test_marginals_and_swapped_sides():
    similarities = drawn(12, 9)
    plan = log_plan(similarities, epsilon=0.1, iterations=1_000).exp()

    np.testing.assert_allclose(plan.sum(dim=1), 1 / 12, atol=1e-8)
    np.testing.assert_allclose(plan.sum(dim=0), 1 / 9, atol=1e-8)
    swapped = log_plan(similarities.T, epsilon=0.1, iterations=1_000).exp()
    np.testing.assert_allclose(swapped.T, plan, atol=1e-8)


def test_the_gradient_is_that_of_the_divergence():
    similarities = drawn(6, 5).requires_grad_()
    teacher = log_plan(drawn(6, 5, seed=1), epsilon=0.3, iterations=2_000)

    plan_divergence(similarities, teacher, epsilon=0.5).backward()

    def value(at):
        return plan_divergence(at, teacher, epsilon=0.5).item()

    step = 1e-4
    for place in [(0, 0), (3, 2), (5, 4)]:
        more, less = similarities.detach().clone(), similarities.detach().clone()
        more[place] += step
        less[place] -= step
        slope = (value(more) - value(less)) / (2 * step)
        assert similarities.grad[place].item() == pytest.approx(slope, abs=1e-4)


def test_no_divergence_from_oneself():
    similarities = drawn(7, 8).requires_grad_()
    own = log_plan(similarities.detach(), epsilon=0.05)

    loss = plan_divergence(similarities, own)
    loss.backward()

    assert loss.item() == pytest.approx(0, abs=1e-12)
    assert similarities.grad.abs().max().item() == 0
