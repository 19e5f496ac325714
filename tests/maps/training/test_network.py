"""Layers as arrays: numpy and torch agree, a row's bits are its own, raw rows are folded in."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.maps.training import Network
from isthmus.maps.training.network import ACTIVATIONS


def drawn(activation, depth, *, skip, width=9, dims=(7, 5), seed=100):
    """Return a network all of whose numbers differ from zero."""
    rng = np.random.default_rng(seed)
    branch = rng.standard_normal(dims) if skip else None
    network = Network.draw(
        [dims[0], *[width] * (depth - 1), dims[1]], rng=rng, skip=branch, activation=activation
    )
    return network.with_arrays(
        [rng.standard_normal(each.shape).astype(np.float32) / 2 for each in network.arrays]
    )


def by_torch(network, rows):
    tensors = [torch.from_numpy(each) for each in network.arrays]
    return network.forward_torch(tensors, torch.from_numpy(rows)).numpy()


def plain(network, rows):
    """Return the formula in float64."""
    bend = {
        "selu": lambda z: (
            1.0507009873554805 * np.where(z > 0, z, 1.6732632423543772 * (np.exp(z) - 1))
        ),
        "relu": lambda z: z * (z > 0),
        "gelu": lambda z: torch.nn.functional.gelu(torch.from_numpy(z)).numpy(),
        "identity": lambda z: z,
    }[network.activation]
    inner = rows.astype(np.float64)
    for weight, bias in zip(network.weights[:-1], network.biases[:-1], strict=True):
        inner = bend(inner @ weight + bias)
    out = inner @ network.weights[-1] + network.biases[-1]
    return out if network.skip is None else out + rows @ network.skip


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_numpy_torch_and_the_formula_agree(activation, skip, depth):
    rows = np.random.default_rng(1).standard_normal((40, 7)).astype(np.float32)
    network = drawn(activation, depth, skip=skip)

    out = network.forward(rows)

    assert out.dtype == np.float32
    np.testing.assert_allclose(out, by_torch(network, rows), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(out, plain(network, rows), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_at_zero_and_at_large_numbers(activation):
    given = np.array([[-1e30, -1e4, -50, -1e-6, -0.0, 0, 1e-6, 50, 1e4, 1e30]], dtype=np.float32)
    expected = ACTIVATIONS[activation].forward_torch(torch.from_numpy(given)).numpy()

    np.testing.assert_allclose(
        ACTIVATIONS[activation].forward(given), expected, rtol=1e-6, atol=1e-12
    )


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_bits_of_a_row_do_not_depend_on_the_batch(activation):
    rows = np.random.default_rng(2).standard_normal((5_000, 7)).astype(np.float32)
    network = drawn(activation, 4, skip=True)

    together = network.forward(rows)

    for part in (slice(0, 1), slice(13, 14), slice(100, 731), slice(4_999, 5_000)):
        np.testing.assert_array_equal(network.forward(rows[part]), together[part])


def test_first_weights_have_the_variance_that_selu_asks_for():
    network = Network.draw([400, 300, 200], rng=np.random.default_rng(100))

    for weight in network.weights:
        assert weight.dtype == np.float32
        assert weight.var() * len(weight) == pytest.approx(1, abs=0.02)
    assert not any(bias.any() for bias in network.biases)
    out = network.forward(np.random.default_rng(1).standard_normal((500, 400)))
    assert 0.5 < out.std() < 2  # neither dies out nor blows up


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_with_a_branch_training_starts_at_the_branch(depth):
    rng = np.random.default_rng(100)
    skip, bias = rng.standard_normal((6, 3)), rng.standard_normal(3)
    rows = rng.standard_normal((20, 6)).astype(np.float32)

    network = Network.draw([6, *[9] * (depth - 1), 3], rng=rng, skip=skip, bias=bias)

    np.testing.assert_allclose(network.forward(rows), rows @ skip + bias, rtol=1e-5, atol=1e-5)


def test_arrays_go_out_and_in():
    network = drawn("gelu", 3, skip=True)
    again = network.with_arrays(network.arrays)

    assert len(network.arrays) == 7
    assert again.activation == "gelu"
    for one, other in zip(network.arrays, again.arrays, strict=True):
        assert one is other
    assert len(drawn("relu", 2, skip=False).arrays) == 4


@given(
    depth=st.integers(1, 4),
    skip=st.booleans(),
    scale=st.floats(1e-3, 1e3),
    out_scale=st.floats(1e-3, 1e3),
    seed=st.integers(100, 10_000),
)
@settings(deadline=None, max_examples=60)
def test_folding_gives_the_same_function_of_raw_rows(depth, skip, scale, out_scale, seed):
    rng = np.random.default_rng(seed)
    rows = (scale * rng.standard_normal((12, 7))).astype(np.float32)
    mean = scale * rng.standard_normal(7)
    network = drawn("selu", depth, skip=skip, seed=seed)
    bare = Network(network.weights, network.biases, None, network.activation)
    expected = plain(bare, (rows - mean) / scale)
    if network.skip is not None:
        expected = expected + rows.astype(np.float64) @ network.skip

    folded = network.fold(mean, scale, out_scale).forward(rows)

    size = np.abs(expected).max()
    np.testing.assert_allclose(folded / out_scale, expected, rtol=1e-4, atol=1e-4 * size)
