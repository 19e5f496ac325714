"""SUE: spectral coordinates by a second route, new rows, the use of unpaired rows, bad input."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import (
    DegenerateVectorsError,
    DimensionError,
    ParameterError,
    TooFewPairsError,
)
from isthmus.maps import SUE
from isthmus.maps._spectral import extend, spectral_coordinates

PLAIN = {"residual_epochs": 0, "neighbors": 12}


def ring(n, seed=0):
    """Return rows near a ring in six dimensions, and the angle of each."""
    rng = np.random.default_rng(seed)
    angle = rng.random(n) * 2 * np.pi
    flat = np.stack([np.cos(angle), np.sin(angle)], axis=1) * (1 + 0.3 * np.cos(angle))[:, None]
    turn = np.linalg.qr(np.random.default_rng(9).standard_normal((6, 6)))[0][:2]
    return flat @ turn + 0.02 * rng.standard_normal((n, 6)), angle


def both_sides(n, seed=0):
    rows, _ = ring(n, seed)
    other = np.random.default_rng(10).standard_normal((6, 7))
    return rows, np.tanh(rows @ other)


def recall(fitted, X, Y, k=10):
    unit = [
        m / np.linalg.norm(m, axis=1, keepdims=True)
        for m in (fitted.transform(X), fitted.transform_target(Y))
    ]
    cosine = unit[0] @ unit[1].T
    return float(np.mean((cosine > cosine.diagonal()[:, None]).sum(axis=1) < k))


@pytest.mark.parametrize("n", [60, 1_200], ids=["dense", "sparse"])
def test_values_are_eigenvectors_of_the_random_walk(n):
    rows, _ = ring(n)
    values, width = spectral_coordinates(rows.astype(np.float32), 6, neighbors=12, seed=0)

    squared = ((rows[:, None] - rows[None]) ** 2).sum(axis=-1)
    np.fill_diagonal(squared, np.inf)
    near = np.argsort(squared, axis=1)[:, :12]
    weight = np.zeros((n, n))
    np.put_along_axis(weight, near, 1.0, axis=1)
    weight *= np.exp(-squared / (2 * width**2))
    weight = (weight + weight.T) / 2 + np.eye(n)
    degree = weight.sum(axis=1)
    walk = weight / degree[:, None]

    eigenvalues = np.sort(np.linalg.eigvals(walk).real)[::-1][1:7]
    stepped = walk @ values
    size = np.sqrt(degree @ stepped**2 / degree.sum())  # the eigenvector itself has size one
    np.testing.assert_allclose(size, 1, atol=1e-4)
    np.testing.assert_allclose(stepped, values * eigenvalues, atol=1e-3)
    np.testing.assert_allclose(degree @ values, 0, atol=1e-4 * degree.sum())


def test_new_rows_get_coordinates_near_those_of_their_neighbours():
    rows, angle = ring(600)
    new, new_angle = ring(100, seed=1)
    values, width = spectral_coordinates(rows.astype(np.float32), 2, neighbors=20, seed=0)

    own = extend(rows, rows, values, width=width, neighbors=20)
    given = extend(new, rows, values, width=width, neighbors=20)

    apart = np.abs(np.angle(np.exp(1j * (angle[None] - new_angle[:, None]))))
    nearest = apart.argmin(axis=1)
    assert np.abs(given - own[nearest]).max() < 0.2 * np.ptp(own)


def test_a_row_far_from_all_others_has_coordinates():
    rows, _ = ring(60)
    values, width = spectral_coordinates(rows.astype(np.float32), 3, neighbors=12, seed=0)

    assert np.isfinite(extend(rows + 1e6, rows, values, width=width, neighbors=12)).all()


def test_a_cloud_in_two_parts_has_a_coordinate_for_the_parts():
    rows, _ = ring(80)
    rows[40:] += 1e3
    values, width = spectral_coordinates(rows.astype(np.float32), 4, neighbors=8, seed=0)
    own = extend(rows, rows, values, width=width, neighbors=8)

    part = np.repeat([-1.0, 1.0], 40)
    found = np.linalg.lstsq(np.c_[own, np.ones(80)], part, rcond=None)[0]
    np.testing.assert_allclose(np.c_[own, np.ones(80)] @ found, part, atol=1e-3)


def test_rows_that_repeat_more_often_than_they_have_neighbours():
    rows = np.repeat(np.eye(3), 30, axis=0)
    values, width = spectral_coordinates(rows.astype(np.float32), 2, neighbors=5, seed=0)

    assert width > 0
    assert np.isfinite(extend(rows, rows, values, width=width, neighbors=5)).all()


def spirals(n, seed):
    """Return points on two spirals of other shapes: near along them, not across."""
    rng = np.random.default_rng(seed)
    place = rng.random(n)
    views = []
    for turns, phase in ((3, 0.0), (2.5, 1.0)):
        angle = 2 * np.pi * turns * np.sqrt(place + 0.05) + phase
        round_ = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        views.append((place + 0.2)[:, None] * round_ + 0.005 * rng.standard_normal((n, 2)))
    return views


def test_unpaired_rows_unroll_what_pairs_alone_do_not():
    params = {"residual_epochs": 0, "neighbors": 8, "n_components": 2, "n_eigenvectors": 4}
    alone, helped = [], []
    for seed in range(4):
        X, Y = spirals(1_000, seed)
        new = spirals(200, seed + 50)
        alone.append(recall(SUE(**params).fit(X[:20], Y[:20]), *new))
        unpaired = {"unpaired_source": X[20:500], "unpaired_target": Y[500:]}
        helped.append(recall(SUE(**params).fit(X[:20], Y[:20], **unpaired), *new))

    assert np.mean(helped) > np.mean(alone) + 0.1


def test_the_residual_network_is_kept_only_where_clouds_come_nearer():
    X, Y = both_sides(300)
    params = {"n_components": 2, "n_eigenvectors": 4, "neighbors": 12}
    trained = SUE(**params, residual_epochs=20).fit(
        X[:50], Y[:50], unpaired_source=X[50:150], unpaired_target=Y[150:]
    )
    plain = SUE(**params, residual_epochs=0).fit(
        X[:50], Y[:50], unpaired_source=X[50:150], unpaired_target=Y[150:]
    )

    np.testing.assert_array_equal(plain.weight_last_, 0)
    np.testing.assert_array_equal(trained.transform_target(Y), plain.transform_target(Y))
    assert np.abs(trained.transform(X) - plain.transform(X)).max() < 1
    again = SUE(**params, residual_epochs=20).fit(
        X[:50], Y[:50], unpaired_source=X[50:150], unpaired_target=Y[150:]
    )
    np.testing.assert_array_equal(again.weight_last_, trained.weight_last_)


def test_unpaired_rows_are_drawn_and_pairs_are_always_kept():
    X, Y = both_sides(200)
    fitted = SUE(**PLAIN, n_components=2, max_rows=60).fit(X[:50], Y[:50], unpaired_source=X[50:])

    assert fitted.rows_source_.shape == (60, 6)
    np.testing.assert_array_equal(fitted.rows_source_[:50], X[:50].astype(np.float32))
    assert fitted.rows_target_.shape == (50, 7)


def test_fewer_pairs_than_components_ask_for():
    X, Y = both_sides(40)
    with pytest.raises(TooFewPairsError, match="at least 16 pairs; got 12"):
        SUE(**PLAIN).fit(X[:12], Y[:12], unpaired_source=X)


def test_pairs_that_repeat_have_fewer_directions():
    X, Y = (np.repeat(side, 8, axis=0) for side in both_sides(5))
    with pytest.raises(ParameterError, match=r"n_components from 1 to 4, .*got 8\. Do: keep fewer"):
        SUE(**PLAIN).fit(X, Y)


@pytest.mark.parametrize("side", ["unpaired_source", "unpaired_target"])
def test_a_pool_of_one_row(side):
    X, Y = both_sides(40)
    one = (X if side == "unpaired_source" else Y)[:1]
    with pytest.raises(DegenerateVectorsError, match=f"two different rows in {side}; got 1"):
        SUE(**PLAIN).fit(X, Y, **{side: one})


def test_a_pool_of_another_width():
    X, Y = both_sides(40)
    with pytest.raises(DimensionError, match="unpaired_target with 7 columns; got 6"):
        SUE(**PLAIN).fit(X, Y, unpaired_target=X)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"n_eigenvectors": 0}, "n_eigenvectors as a whole number of at least 1"),
        ({"n_components": 0}, "n_components as a whole number of at least 1"),
        ({"neighbors": 2.5}, "neighbors as a whole number"),
        ({"residual_epochs": -1}, "residual_epochs as a whole number of at least 0"),
        ({"max_rows": 0}, "max_rows as a whole number of at least 1"),
        ({"seed": -1}, "seed as a whole number of at least 0"),
    ],
)
def test_parameters_out_of_range(params, text):
    with pytest.raises(ParameterError, match=text):
        SUE(**params).fit(*both_sides(40))
