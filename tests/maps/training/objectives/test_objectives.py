"""What all objectives share: a slow double loop says the same, and the slope leads downwards."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from isthmus.errors import UnknownNameError
from isthmus.maps.training import OBJECTIVES, find_objective


def sq(row):
    return float(np.dot(row, row))


def slow_fuzzy(f, y):
    b = len(f)
    return [
        sum(((1 - y[i] @ y[j]) - (1 - f[i] @ y[j])) ** 2 for j in range(b)) / b for i in range(b)
    ]


def slow_contrastive(f, y):
    b = len(f)
    out = []
    for i in range(b):
        total = 0.0
        for j in range(b):
            apart = np.sqrt(max(sq(f[i] - y[j]), 1e-9))
            total += apart**2 if i == j else max(0.0, 1.0 - apart) ** 2
        out.append(total / b)
    return out


def slow_mse(f, y):
    return [sq(f[i] - y[i]) for i in range(len(f))]


def slow_rkd(f, y):
    b = len(f)
    return [
        sum(((1 - y[i] @ y[j]) - (1 - f[i] @ f[j])) ** 2 for j in range(b)) / b + sq(f[i] - y[i])
        for i in range(b)
    ]


def slow_converter(f, y):
    b = len(f)
    out = []
    for i in range(b):
        apart = [sq(y[i] - y[j]) / 2 for j in range(b)]
        error = [(sq(f[i] - f[j]) / 2 - apart[j]) ** 2 for j in range(b)]
        others = sorted((j for j in range(b) if j != i), key=lambda j: apart[j])[:10]
        near = [error[j] for j in others]
        kept = sum(error) / b + sum(near) / len(near) if near else 0.0
        out.append(sq(f[i] - y[i]) + kept)
    return out


SLOW = {
    "fuzzy_contrastive": slow_fuzzy,
    "contrastive": slow_contrastive,
    "mse": slow_mse,
    "rkd_mse": slow_rkd,
    "embedding_converter": slow_converter,
}

batches = st.builds(
    lambda b, dim, seed, unit, far: drawn(b, dim, seed=seed, unit=unit, far=far),
    st.integers(1, 14),
    st.integers(2, 9),  # on a line, rows of length one have ties for the nearest
    st.integers(100, 10**6),
    st.booleans(),
    st.floats(0.0, 2.0),
)


def drawn(b, dim, *, seed, unit, far):
    rng = np.random.default_rng(seed)
    target = rng.standard_normal((b, dim))
    mapped = target + far * rng.standard_normal((b, dim))
    if unit:
        target, mapped = (
            side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-9)
            for side in (target, mapped)
        )
    return mapped, target


def loss_of(name, mapped, target):
    return find_objective(name)(torch.from_numpy(mapped), torch.from_numpy(target))


@pytest.fixture(params=OBJECTIVES)
def name(request):
    return request.param


def test_every_objective_is_tested():
    assert set(SLOW) == set(OBJECTIVES)


@given(batch=batches)
@settings(deadline=None, max_examples=60)
@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_slow_double_loop_says_the_same(name, batch):
    loss = loss_of(name, *batch)

    assert loss.shape == (len(batch[0]),)
    np.testing.assert_allclose(loss.numpy(), SLOW[name](*batch), rtol=1e-9, atol=1e-9)


@given(batch=batches)
@settings(deadline=None, max_examples=40)
@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_order_of_the_rows_does_not_matter(name, batch):
    mapped, target = batch
    order = np.random.default_rng(1).permutation(len(mapped))

    there = loss_of(name, mapped[order], target[order]).numpy()

    np.testing.assert_allclose(there, loss_of(name, mapped, target).numpy()[order], atol=1e-9)


@given(seed=st.integers(100, 10**6))
@settings(deadline=None, max_examples=30)
@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_small_step_down_the_slope_lowers_the_loss(name, seed):
    mapped, target = drawn(12, 5, seed=seed, unit=True, far=0.7)
    rows = torch.from_numpy(mapped).requires_grad_()
    before = find_objective(name)(rows, torch.from_numpy(target)).mean()
    (slope,) = torch.autograd.grad(before, rows)

    after = loss_of(name, mapped - 1e-4 * slope.numpy(), target).mean()

    fall = float((slope**2).sum()) * 1e-4
    assert fall > 0
    assert float(before.detach() - after) == pytest.approx(fall, rel=0.05)


@given(seed=st.integers(100, 10**6))
@settings(deadline=None, max_examples=10)
@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_slope_is_that_of_finite_differences(name, seed):
    mapped, target = drawn(6, 4, seed=seed, unit=True, far=0.7)
    rows = torch.from_numpy(mapped).requires_grad_()
    (slope,) = torch.autograd.grad(
        find_objective(name)(rows, torch.from_numpy(target)).mean(), rows
    )

    for place in np.ndindex(mapped.shape):
        step = np.zeros_like(mapped)
        step[place] = 1e-6
        up, down = (loss_of(name, mapped + s, target).mean() for s in (step, -step))
        assert float(slope[place]) == pytest.approx(float(up - down) / 2e-6, abs=1e-6)


@pytest.mark.parametrize("size", [(1, 1), (1, 3), (2, 3)])
def test_batches_of_one_row_and_rows_that_are_equal(name, size):
    rows = torch.ones(size, dtype=torch.float32, requires_grad=True)

    loss = OBJECTIVES[name](rows, torch.ones(size)).mean()
    loss.backward()

    assert loss.isfinite()
    assert rows.grad.isfinite().all()


class Largest(TorchDispatchMode):
    """Counts the numbers of the largest array that any operation gives."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for each in out if isinstance(out, tuple | list) else [out]:
            if isinstance(each, torch.Tensor):
                self.numbers = max(self.numbers, each.numel())
        return out


@pytest.mark.parametrize(("b", "dim"), [(40, 30), (16, 90), (90, 16)])
def test_no_operation_gives_an_array_of_batch_by_batch_by_dimension(name, b, dim):
    mapped, target = drawn(b, dim, seed=100, unit=True, far=1.0)
    rows = torch.from_numpy(mapped).requires_grad_()

    with Largest() as largest:
        OBJECTIVES[name](rows, torch.from_numpy(target)).mean().backward()

    assert b <= largest.numbers <= max(b * b, b * dim)


def test_an_unknown_name():
    with pytest.raises(UnknownNameError, match="fuzzy_contrastive"):
        find_objective("cosine")
