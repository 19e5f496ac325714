"""A rotation that learns from unpaired rows: what it gains, when it stays as it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus._linalg import normalise
from isthmus.errors import (
    DegenerateVectorsError,
    DimensionError,
    InvalidVectorsError,
    ParameterError,
)
from isthmus.maps import Barycentric, Compose, Normalise, Procrustes

DIM = 32


def alike(n, *, seed=0, widths=(DIM, DIM), noise=0.05):
    """Rows of two spaces for the same n objects, which lie in clusters of clusters."""
    world = np.random.default_rng(99)
    coarse = world.standard_normal((6, DIM))
    fine = coarse[np.arange(120) % 6] + 0.7 * world.standard_normal((120, DIM))
    turns = [np.linalg.qr(world.standard_normal((DIM, DIM)))[0][:, :width] for width in widths]
    rng = np.random.default_rng(seed)
    objects = fine[rng.integers(0, 120, n)] + 0.2 * rng.standard_normal((n, DIM))
    return [
        normalise((objects + noise * rng.standard_normal((n, DIM))) @ turn).astype(np.float32)
        for turn in turns
    ]


def fit_both(pairs, source, target, **params):
    """Return the map from the pairs alone, and the one with unpaired rows."""
    given = {"unpaired_source": source, "unpaired_target": target}
    return Procrustes().fit(*pairs), Barycentric(**params).fit(*pairs, **given)


def error(fitted, X, Y):
    return float(np.mean(np.sum((fitted.transform(X) - Y) ** 2, axis=1)))


@settings(derandomize=True, deadline=None, max_examples=20)
@given(
    n=st.integers(2, 40),
    dims=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    weighted=st.booleans(),
    seed=st.integers(0, 999),
)
def test_without_unpaired_rows_it_is_procrustes(n, dims, weighted, seed):
    rng = np.random.default_rng(seed)
    X, Y = (rng.standard_normal((n, dim)) for dim in dims)
    weight = rng.random(n) + 0.1 if weighted else None
    given = {"sample_weight": weight}

    expected = Procrustes().fit(X, Y, **given).transform(X)

    fitted = Barycentric().fit(X, Y, **given)
    np.testing.assert_array_equal(fitted.transform(X), expected)
    one_side = Barycentric().fit(X, Y, **given, unpaired_source=rng.random((80, dims[0])))
    np.testing.assert_array_equal(one_side.transform(X), expected)
    assert not int(fitted.unpaired_used_)
    assert not len(fitted.held_out_overlap_)


@pytest.mark.parametrize("widths", [(DIM, DIM), (DIM, 24), (24, DIM)], ids=str)
@pytest.mark.parametrize("shared", [True, False], ids=["same objects", "other objects"])
def test_unpaired_rows_tell_what_few_pairs_do_not(widths, shared):
    X, Y = alike(1_416, widths=widths)
    source = X[16:616]
    target = Y[16:616][::-1] if shared else Y[616:1_216]
    test = X[1_216:], Y[1_216:]

    plain, fitted = fit_both((X[:16], Y[:16]), source, target)

    assert int(fitted.unpaired_used_) == 1
    before, after = fitted.held_out_overlap_
    assert after > before
    assert error(fitted, *test) < 0.6 * error(plain, *test)
    np.testing.assert_allclose(
        *(
            [rotation @ rotation.T, rotation.T @ rotation][widths[0] > widths[1]]
            for rotation in (fitted.rotation_, np.eye(*widths))
        ),
        atol=1e-5,
    )


@pytest.mark.parametrize("n", [12, 40])
def test_clouds_that_share_nothing_change_nothing(n):
    X, Y = alike(n)
    rng = np.random.default_rng(5)
    source, target = (normalise(rng.standard_normal((400, DIM))) for _ in range(2))

    plain, fitted = fit_both((X, Y), source, target)

    before, after = fitted.held_out_overlap_
    assert after <= before
    assert int(fitted.unpaired_used_) == 0
    np.testing.assert_array_equal(fitted.transform(X), plain.transform(X))


def test_the_order_of_the_unpaired_rows_does_not_matter():
    X, Y = alike(900)
    pairs, source, target = (X[:20], Y[:20]), X[20:420], Y[420:820]
    rng = np.random.default_rng(3)

    _, one = fit_both(pairs, source, target)
    _, other = fit_both(pairs, source[rng.permutation(400)], target[rng.permutation(400)])

    np.testing.assert_allclose(one.transform(X), other.transform(X), atol=1e-4)


def test_the_scale_of_the_weights_does_not_matter_and_a_weight_of_zero_is_no_pair():
    X, Y = alike(660)
    wrong = np.r_[np.ones(20), np.zeros(20)]
    clouds = {"unpaired_source": X[60:360], "unpaired_target": Y[360:]}
    shuffled = np.r_[Y[:20], Y[20:40][::-1]]

    plain = Barycentric().fit(X[:20], Y[:20], **clouds)
    weighted = Barycentric().fit(X[:40], shuffled, sample_weight=7 * wrong, **clouds)

    np.testing.assert_allclose(weighted.transform(X), plain.transform(X), atol=1e-5)


def test_of_many_rows_some_are_drawn_by_the_seed():
    X, Y = alike(820)
    pairs, clouds = (X[:20], Y[:20]), (X[20:], Y[20:])

    fits = [fit_both(pairs, *clouds, max_rows=300, seed=seed)[1] for seed in (1, 1, 2)]

    np.testing.assert_array_equal(fits[0].rotation_, fits[1].rotation_)
    assert np.abs(fits[0].rotation_ - fits[2].rotation_).max() > 1e-4
    assert all(int(fitted.unpaired_used_) for fitted in fits)


@pytest.mark.parametrize(("n", "rows"), [(9, 400), (40, 49)])
def test_too_few_pairs_or_rows_to_learn_from(n, rows):
    X, Y = alike(n + rows)

    plain, fitted = fit_both((X[:n], Y[:n]), X[n:], Y[n:])

    assert not int(fitted.unpaired_used_)
    assert not len(fitted.held_out_overlap_)
    np.testing.assert_array_equal(fitted.transform(X), plain.transform(X))


def test_pairs_that_are_equal_once_some_are_held_out():
    X, Y = alike(420)
    pairs = [np.r_[np.repeat(side[:1], 19, axis=0), side[1:2]] for side in (X, Y)]
    seen = set()
    for seed in range(12):  # the one that differs is held out in some
        plain, fitted = fit_both(pairs, X[20:], Y[20:], seed=seed)
        told = fitted.held_out_overlap_.tolist()
        seen.add(len(told))
        used = bool(told) and told[1] > told[0]
        assert int(fitted.unpaired_used_) == used
        if used:
            np.testing.assert_allclose(
                fitted.rotation_ @ fitted.rotation_.T, np.eye(DIM), atol=1e-5
            )
        else:
            np.testing.assert_array_equal(fitted.transform(X), plain.transform(X))
    assert seen == {0, 2}


def test_rows_of_zeros_and_copies_among_the_unpaired_rows():
    X, Y = alike(640)
    source, target = X[40:340].copy(), Y[340:].copy()
    source[:60], target[:5], target[5:90] = 0, 0, target[90]

    _, fitted = fit_both((X[:40], Y[:40]), source, target)

    assert np.isfinite(fitted.transform(X)).all()


def test_pairs_that_tell_no_direction_in_common():
    signs = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]] * 10, np.float32)
    rng = np.random.default_rng(0)
    clouds = {"unpaired_source": rng.random((60, 1)), "unpaired_target": rng.random((60, 1))}

    fitted = Barycentric().fit(signs[:, :1], signs[:, 1:], **clouds)

    assert np.isfinite(fitted.transform(signs[:, :1])).all()


@pytest.mark.parametrize("neighbors", [1, 500])
def test_one_neighbour_and_more_than_there_are_rows(neighbors):
    X, Y = alike(340)

    _, fitted = fit_both((X[:40], Y[:40]), X[40:340], Y[40:240], neighbors=neighbors)

    assert np.isfinite(fitted.transform(X)).all()
    assert len(fitted.held_out_overlap_) == 2


def test_in_a_bridge_it_sees_the_unpaired_rows_as_the_steps_leave_them():
    X, Y = alike(1_220)
    pairs = 5 * X[:20], 3 * Y[:20]
    clouds = {"unpaired_source": 2 * X[20:620], "unpaired_target": 4 * Y[620:]}

    composed = Compose([Normalise()], Barycentric(), [Normalise()]).fit(*pairs, **clouds)

    plain = Barycentric().fit(X[:20], Y[:20], unpaired_source=X[20:620], unpaired_target=Y[620:])
    np.testing.assert_allclose(
        normalise(composed.transform(X)), normalise(plain.transform(X)), atol=1e-3
    )


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"neighbors": 0}, "neighbors as a whole number of at least 1"),
        ({"max_rows": 2.5}, "max_rows as a whole number"),
        ({"temperature": 0.0}, "temperature over 0"),
        ({"pair_weight": -1.0}, "pair_weight over 0"),
        ({"temperature": np.nan}, "temperature over 0"),
        ({"seed": -1}, "seed as a whole number of at least 0"),
    ],
)
def test_bad_parameters(params, text):
    X, Y = alike(20)
    with pytest.raises(ParameterError, match=text):
        Barycentric(**params).fit(X, Y)


def test_bad_unpaired_rows():
    X, Y = alike(100)
    hole = X.copy()
    hole[3, 1] = np.nan

    with pytest.raises(InvalidVectorsError, match="finite numbers in unpaired_source"):
        Barycentric().fit(X, Y, unpaired_source=hole, unpaired_target=Y)
    with pytest.raises(DimensionError, match=f"unpaired_target with {DIM} columns; got 3"):
        Barycentric().fit(X, Y, unpaired_source=X, unpaired_target=Y[:, :3])
    with pytest.raises(DegenerateVectorsError, match="two different rows in unpaired_target"):
        Barycentric().fit(X, Y, unpaired_source=X, unpaired_target=np.repeat(Y[:1], 60, axis=0))
