"""Fitting: which start, how long, and the same steps on all pairs; any unit of measure."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from isthmus._linalg import normalise
from isthmus._progress import tracking
from isthmus.errors import DivergedTrainingError
from isthmus.maps import ProcrustesRidge, Ridge
from isthmus.maps._fitting import PairedRows
from isthmus.maps.training import Fitting, Network, Schedule, find_objective
from isthmus.maps.training.fitting import is_unit


def linear(made, source, target, weight):
    fitted = made.fit(source, target, sample_weight=weight)
    dims = [*fitted.weight_.shape]
    rng = np.random.default_rng(100)
    return Network.draw([dims[0], 8, dims[1]], rng=rng, skip=fitted.weight_, bias=fitted.bias_)


def noise(source, target, _):
    rng = np.random.default_rng(100)
    return Network.draw([source.shape[1], 8, target.shape[1]], rng=rng)


RIDGE = {"ridge": partial(linear, Ridge())}


def fitting(pairs, starts=None, *, steps=40, patience=5, rate=1e-3, **params):
    X, Y, *weight = pairs
    given = {
        "objective": find_objective("fuzzy_contrastive"),
        "schedule": Schedule(steps, 32, rate, patience),
        "epochs": 1,
        "held_out": 0.2,
        "seed": 100,
        **params,
    }
    return Fitting(PairedRows(X, Y, weight[0] if weight else None), starts or RIDGE, **given)


def trainings(fit):
    """Return what was trained, and the steps of each training."""
    steps = []
    with tracking(lambda items, _, total: (steps.append(total), items)[1]):
        return fit.run(), steps


# --- rows --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "share", "held"),
    [
        (49, 0.5, 0),
        (50, 0.2, 10),
        (200, 0.2, 40),
        (200, 1.0, 100),
        (200, 0.0, 0),
        (5_000, 0.9, 500),
    ],
)
def test_how_many_pairs_are_held_out(n, share, held):
    rng = np.random.default_rng(100)
    X = rng.standard_normal((n, 2))
    rest, out = fitting((X, X), held_out=share)._rows
    assert (len(rest), len(out)) == (n - held, held)
    np.testing.assert_array_equal(np.sort(np.r_[rest, out]), np.arange(n))


def test_the_seed_says_which_pairs_are_held_out(pairs):
    held = [set(fitting(pairs, seed=seed)._rows[1].tolist()) for seed in (100, 100, 101)]
    assert held[0] == held[1] != held[2]


# --- starts and steps --------------------------------------------------------------------------


def taken(pairs, starts):
    """Return the name of the start that was fitted on all pairs."""
    drawn = []

    def noting(name, draw, source, *others):
        drawn.append((name, len(source)))
        return draw(source, *others)

    named = {name: partial(noting, name, draw) for name, draw in starts.items()}
    fitting(pairs, named, rate=1e-6).run()
    (name,) = {name for name, n in drawn if n == 200}
    assert {(each, 160) for each in starts} <= set(drawn)
    return name


def test_the_start_that_keeps_most_is_taken_and_the_first_on_a_tie(pairs):
    good = RIDGE["ridge"]
    assert taken(pairs, {"bad": noise, "good": good}) == "good"
    assert taken(pairs, {"good": good, "bad": noise}) == "good"
    assert taken(pairs, {"one": good, "other": good}) == "one"


def test_the_same_steps_are_taken_again_on_all_pairs_from_a_start_fitted_on_all(pairs):
    fit = fitting(pairs, rate=3e-3)
    trained, steps = trainings(fit)
    assert trained.steps > 0
    assert steps == [40, trained.steps]

    every = np.arange(200)
    first = fit._draw("ridge", every)
    again = fit._train(first, every, steps=trained.steps)
    mean, scale = fit._standard
    for one, other in zip(
        trained.network.arrays, again.network.fold(mean, scale, 1.0).arrays, strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_few_pairs_held_out_of_many_are_not_worth_a_second_training():
    rng = np.random.default_rng(100)
    X = normalise(rng.standard_normal((12_000, 3)))
    trained, steps = trainings(fitting((X, X), steps=5, epochs=1, held_out=0.01))
    assert steps == [372]  # 11,880 rows in batches of 32
    assert trained.looks[0][0] == 0


def test_steps_are_those_of_the_epochs_or_the_least(pairs):
    for epochs, least, expected in ((3, 1, 15), (1, 40, 40)):  # 160 rows are 5 batches
        _, steps = trainings(fitting(pairs, steps=least, epochs=epochs))
        assert steps[0] == expected


@pytest.mark.parametrize("made", [Ridge, ProcrustesRidge])
def test_where_nothing_gains_what_comes_out_is_the_closed_form_on_all_pairs(pairs, made):
    X, Y = pairs
    trained, steps = trainings(
        fitting(pairs, {"start": partial(linear, made())}, rate=1e4, patience=2)
    )

    assert (trained.steps, steps) == (0, [40, 0])
    expected = normalise(made().fit(X, Y).transform(X))
    np.testing.assert_allclose(normalise(trained.network.forward(X)), expected, atol=1e-6)


@pytest.mark.parametrize("n", [10, 30, 49])
def test_with_few_pairs_a_closed_form_stays_and_random_weights_are_trained(pairs, n):
    few = tuple(side[:n] for side in pairs)
    kept, steps = trainings(fitting(few))
    assert (kept.steps, steps) == (0, [0])
    expected = normalise(Ridge().fit(*few).transform(few[0]))
    np.testing.assert_allclose(normalise(kept.network.forward(few[0])), expected, atol=1e-6)

    trained, steps = trainings(fitting(few, {"random": noise}, train_few=True))
    assert (trained.steps, steps, trained.outcome) == (40, [40], "out_of_steps")


def test_never_worse_than_the_start_on_the_pairs_held_out(pairs):
    for seed in range(100, 104):
        for rate in (1e-4, 1e-2, 1.0):
            trained = fitting(pairs, seed=seed, rate=rate).run()
            scores = dict(trained.looks)
            assert scores[trained.steps] == max(scores.values()) >= scores[0]


# --- units of measure --------------------------------------------------------------------------


def test_what_counts_as_length_one():
    rows = normalise(np.random.default_rng(100).standard_normal((50, 30)))
    assert is_unit(rows)
    assert is_unit(rows.astype(np.float16))
    assert not is_unit(1.01 * rows)
    assert not is_unit(np.r_[rows, rows[:1] / 2])


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e3, 1e12])
def test_the_scale_of_the_targets_only_scales_what_comes_out(pairs, scale):
    """Up to rounding: training amplifies it, so few steps are taken."""
    X, Y = pairs
    Y = Y * (1 + np.arange(200)[:, None] / 400)
    params = {"steps": 5, "rate": 1e-3}
    one, other = (fitting((X, each), **params).run() for each in (Y, scale * Y))

    assert [step for step, _ in one.looks] == [step for step, _ in other.looks]
    expected = one.network.forward(X)
    np.testing.assert_allclose(other.network.forward(X) / scale, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_scale_and_the_place_of_the_source_do_not_hinder_training(pairs, scale):
    X, Y = pairs
    moved = (scale * (X + 3)).astype(np.float32)
    trained = fitting((moved, Y), {"random": noise}, steps=300, rate=1e-2, train_few=True).run()

    scores = [score for _, score in trained.looks]
    assert max(scores) > scores[0] + 0.2
    assert np.isfinite(trained.network.forward(moved)).all()


def test_weights_reach_the_start_and_the_loss(pairs):
    X, Y = pairs
    weight = np.where(np.arange(200) < 100, 1.0, 1e-9)

    weighted = fitting((X, Y, weight), steps=0, epochs=0, held_out=0.0).run()

    expected = Ridge().fit(X, Y, sample_weight=weight).transform(X)
    np.testing.assert_allclose(weighted.network.forward(X), expected, atol=1e-5)
    trained = [
        fitting((X, Y, each), {"random": noise}, held_out=0.0, train_few=True).run()
        for each in (weight, None)
    ]
    assert not np.array_equal(trained[0].network.weights[0], trained[1].network.weights[0])


def far_off(source, target, weight):
    """Return a start whose rows have no number."""
    network = noise(source, target, weight)
    return network.with_arrays([np.full_like(each, 1e38) for each in network.arrays])


@pytest.mark.parametrize("order", [("far_off", "ridge"), ("ridge", "far_off")], ids=str)
def test_a_start_that_diverges_is_left_out_while_another_does_not(pairs, order):
    starts = {"far_off": far_off, **RIDGE}

    found = fitting(pairs, {name: starts[name] for name in order}).run()

    for one, other in zip(found.network.arrays, fitting(pairs).run().network.arrays, strict=True):
        np.testing.assert_array_equal(one, other)


def test_where_all_starts_diverge_the_error_is_raised(pairs):
    with pytest.raises(DivergedTrainingError, match="lower learning_rate"):
        fitting(pairs, {"one": far_off, "other": far_off}).run()


def test_where_training_on_all_pairs_diverges_the_first_training_stands(pairs):
    def start(source, target, weight):
        made = far_off if len(source) == len(pairs[0]) else RIDGE["ridge"]
        return made(source, target, weight)

    found = fitting(pairs, {"start": start}, rate=1e-2, patience=50).run()

    assert found.steps > 0
    assert all(np.isfinite(each).all() for each in found.network.arrays)
