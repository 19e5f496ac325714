"""The network on the seeds: it learns, repeats itself, and leaves torch as it was."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import MissingExtraError, ParameterError
from isthmus.link import MLP, LinkProblem

torch = pytest.importorskip("torch")


def pairs(n=15, dims=(24, 20), seed=0):
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal((n, dim)).astype(np.float32) for dim in dims)


@pytest.fixture(scope="module")
def trained():
    return MLP().train(*pairs(), seed=0)


def test_shapes_and_kinds(trained):
    layers, losses = trained

    assert [layer.shape for layer in layers] == [(24, 512), (512,), (512, 20), (20,)]
    assert {layer.dtype for layer in layers} == {np.dtype(np.float32)}
    assert losses.shape == (100,)


def test_fifteen_seeds_are_learned_by_heart(trained):
    (weight_1, bias_1, weight_2, bias_2), losses = trained
    X, Y = pairs()

    mapped = np.maximum(X @ weight_1 + bias_1, 0) @ weight_2 + bias_2

    cosines = (mapped * Y).sum(1) / np.linalg.norm(mapped, axis=1) / np.linalg.norm(Y, axis=1)
    assert cosines.min() > 0.99
    assert 0.7 < losses[0] < 1.3  # a cosine to a direction drawn at random is near 0
    assert losses[-1] < 0.01


def test_it_starts_where_torchs_linear_layers_start():
    """Uniform within 1 / sqrt(inputs): torch.nn.Linear's documented start."""
    (weight_1, bias_1, weight_2, bias_2), _ = MLP(learning_rate=1e-12, epochs=1).train(
        *pairs(), seed=0
    )

    for layer, inputs in ((weight_1, 24), (bias_1, 24), (weight_2, 512), (bias_2, 512)):
        assert np.abs(layer).max() <= 1 / np.sqrt(inputs)
    assert np.isclose(weight_1.std(), 1 / np.sqrt(3 * 24), rtol=0.03)
    assert np.isclose(weight_2.std(), 1 / np.sqrt(3 * 512), rtol=0.03)


def test_the_seed_decides_and_torchs_own_state_does_not(trained):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    threads_before = torch.get_num_threads()
    torch.set_num_threads(2)
    again, _ = MLP().train(*pairs(), seed=0)
    other, _ = MLP().train(*pairs(), seed=1)
    threads = torch.get_num_threads()
    torch.set_num_threads(threads_before)

    assert threads == 2
    assert torch.equal(torch.get_rng_state(), before)
    for one, two, three in zip(trained[0], again, other, strict=True):
        np.testing.assert_array_equal(one, two)
        assert not np.array_equal(one, three)


def test_a_device_that_is_not_there():
    problem = LinkProblem.of_rows(*pairs(), [(0, 0), (1, 1), (2, 2)])
    for device in ("cuda:77", "no such device"):
        with pytest.raises(ParameterError, match=f"got '{device}'"):
            MLP(device=device).link(problem)


def test_without_torch_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    problem = LinkProblem.of_rows(*pairs(), [(0, 0), (1, 1), (2, 2)])
    with pytest.raises(MissingExtraError, match=r"isthmus\[torch\]"):
        MLP().link(problem)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"hidden": 0}, "hidden as a whole number"),
        ({"epochs": 0}, "epochs as a whole number"),
        ({"learning_rate": 0.0}, "learning_rate over 0"),
        ({"weight_decay": -1.0}, "weight_decay of at least 0; got -1.0"),
        ({"weight_decay": float("nan")}, "weight_decay of at least 0; got nan"),
    ],
)
def test_bad_parameters(params, text):
    with pytest.raises(ParameterError, match=text):
        MLP(**params)
