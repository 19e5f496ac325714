"""Planted pairs hold what they promise."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import ParameterError
from isthmus.testing import planted_pair


@pytest.mark.parametrize(("dim_source", "dim_target"), [(8, 8), (8, 5), (5, 8)])
def test_the_map_is_semi_orthogonal_and_known(dim_source, dim_target):
    pair = planted_pair(200, dim_source, dim_target, scale=2.0, shift=3.0, seed=4)
    mapped = pair.source.vectors @ pair.weight + pair.shift
    assert np.allclose(mapped, pair.target.vectors, atol=1e-5)
    weight = pair.weight / 2
    product = weight.T @ weight if dim_target <= dim_source else weight @ weight.T
    assert np.allclose(product, np.eye(min(dim_source, dim_target)), atol=1e-6)
    assert np.isclose(np.linalg.norm(pair.shift), 3.0)
    assert pair.source.ids.tolist() == pair.target.ids.tolist()
    assert pair.source.space.fingerprint != pair.target.space.fingerprint


def test_noise_has_the_length_asked_for():
    clean = planted_pair(2_000, seed=1).target.vectors
    noisy = planted_pair(2_000, noise=0.3, seed=1).target.vectors
    assert np.isclose(np.linalg.norm(noisy - clean, axis=1).mean(), 0.3, atol=0.01)


def test_the_seed_decides_and_nothing_else():
    np.random.seed(0)  # noqa: NPY002 - the global state must neither be used nor moved
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    one, same, other = (planted_pair(50, seed=seed) for seed in (7, 7, 8))
    assert np.array_equal(one.target.vectors, same.target.vectors)
    assert not np.array_equal(one.target.vectors, other.target.vectors)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_rows_have_neighbours_and_may_be_normalised():
    pair = planted_pair(500, clusters=10, normalized=True, metric="dot", seed=2)
    assert np.allclose(np.linalg.norm(pair.target.vectors, axis=1), 1, atol=1e-6)
    similar = pair.source.vectors @ pair.source.vectors.T
    np.fill_diagonal(similar, -1)
    assert similar.max(axis=1).mean() > similar.mean() + 0.5
    assert pair.source.space.metric == "dot"
    assert pair.source.space.normalized


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n": 0}, "n over 0"),
        ({"dim_target": 0}, "dim_target over 0"),
        ({"clusters": 0}, "clusters over 0"),
        ({"scale": 0.0}, "scale over 0"),
        ({"noise": -1.0}, "noise and shift of at least 0; got -1.0, 0.0"),
        ({"shift": float("nan")}, "noise and shift of at least 0"),
    ],
)
def test_refused(wrong, message):
    with pytest.raises(ParameterError, match=message):
        planted_pair(**wrong)
