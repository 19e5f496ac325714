"""Matching clouds: two clouds come together, and a start that is best stays."""

from __future__ import annotations

import numpy as np

from isthmus.maps.training.discrepancy import match_clouds
from isthmus.maps.training.network import Network


def start(dim=2):
    rng = np.random.default_rng(0)
    return Network.draw([dim, 16, dim], rng=rng, skip=np.eye(dim), activation="relu")


def test_a_shifted_cloud_is_brought_back():
    rng = np.random.default_rng(1)
    target = rng.standard_normal((400, 2))
    source = rng.standard_normal((500, 2)) + np.array([1.0, -0.5])

    trained = match_clouds(start(), source, target, epochs=40, seed=0)

    moved = trained.forward(source)
    assert np.abs(moved.mean(axis=0) - target.mean(axis=0)).max() < 0.25
    np.testing.assert_array_equal(trained.skip, np.eye(2))


def test_the_same_seed_gives_the_same_network():
    rng = np.random.default_rng(1)
    clouds = rng.standard_normal((60, 2)) + 1, rng.standard_normal((90, 2))

    once, again = (match_clouds(start(), *clouds, epochs=3, seed=4) for _ in range(2))

    for one, other in zip(once.arrays, again.arrays, strict=True):
        np.testing.assert_array_equal(one, other)


def test_with_few_rows_the_start_stays():
    rows = np.random.default_rng(1).standard_normal((19, 2))

    assert match_clouds(first := start(), rows, rows + 1, epochs=5) is first


def test_clouds_of_one_point_each_give_finite_numbers():
    rows = np.ones((40, 2))

    trained = match_clouds(start(), rows, rows, epochs=2)

    assert np.isfinite(trained.forward(rows)).all()
