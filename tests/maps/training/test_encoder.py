"""One side's encoder: the numpy pass against torch's."""

import numpy as np
import torch

from isthmus.maps.training.encoder import Encoder, layer_norm


def test_the_numpy_pass_gives_what_torch_gives():
    rng = np.random.default_rng(0)
    encoder = Encoder.draw(12, 7, rng=rng)
    rows = rng.standard_normal((30, 12)).astype(np.float32)

    inner = torch.nn.functional.layer_norm(torch.from_numpy(rows), (12,))
    out = torch.nn.functional.linear(
        inner, torch.from_numpy(encoder.weight.T.copy()), torch.from_numpy(encoder.bias)
    )
    expected = torch.nn.functional.normalize(out, dim=1).numpy()

    np.testing.assert_allclose(encoder.forward(rows), expected, atol=1e-5)


def test_layer_norm_has_mean_zero_and_variance_one_whatever_the_scale():
    rows = np.random.default_rng(1).standard_normal((5, 40)) * 100 + 7

    out = layer_norm(rows)

    np.testing.assert_allclose(out.mean(axis=1), 0, atol=1e-5)
    np.testing.assert_allclose(out.var(axis=1), 1, atol=1e-4)


def test_what_comes_out_has_length_one_and_does_not_depend_on_other_rows():
    rng = np.random.default_rng(2)
    encoder = Encoder.draw(9, 5, rng=rng)
    rows = rng.standard_normal((600, 9)).astype(np.float32)

    out = encoder.forward(rows)

    np.testing.assert_allclose(np.linalg.norm(out, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(encoder.forward(rows[7:8]), out[7:8])


def test_directions_become_an_encoder_that_projects_on_them():
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((20, 8))
    rows -= rows.mean(axis=1, keepdims=True)
    directions = rng.standard_normal((8, 5))

    encoder = Encoder.project(directions, width=3)

    expected = rows @ directions[:, :3]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(encoder.forward(rows), expected, atol=1e-5)
    assert Encoder.project(directions, width=9).weight.shape == (8, 5)


def test_the_same_seed_draws_the_same_weights():
    one, other = (Encoder.draw(6, 4, rng=np.random.default_rng(3)) for _ in range(2))

    np.testing.assert_array_equal(one.weight, other.weight)
    assert np.abs(one.weight).max() <= 1 / np.sqrt(6)
