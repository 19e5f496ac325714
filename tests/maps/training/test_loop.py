"""The training loop: when it looks, what it keeps, and that only the seed decides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isthmus._linalg import normalise
from isthmus._progress import tracking
from isthmus.errors import DivergedTrainingError
from isthmus.maps import Ridge
from isthmus.maps.training import Network, Schedule, find_objective
from isthmus.maps.training.held_out import Preservation
from isthmus.maps.training.loop import DIVERGED, train

SCHEDULE = Schedule(steps=60, batch=32, learning_rate=3e-3, patience=100)
MSE = find_objective("mse")


@pytest.fixture
def started(pairs):
    """Return a network that starts at ridge, the rows to train on, and the rows held out."""
    X, Y = pairs
    rest, held = slice(0, 150), slice(150, 200)
    fitted = Ridge().fit(X[rest], Y[rest])
    network = Network.draw(
        [8, 12, 10], rng=np.random.default_rng(100), skip=fitted.weight_, bias=fitted.bias_
    )
    return network, X[rest], Y[rest], (X[held], Y[held])


@pytest.fixture
def drawn(started):
    """Return the same from random weights, without a branch."""
    rng = np.random.default_rng(100)
    return Network.draw([8, 24, 24, 10], rng=rng), *started[1:]


def run(started, schedule=SCHEDULE, *, judged=True, seed=100, **others):
    network, X, Y, held = started
    given = {"objective": MSE, "seed": seed, "held_out": held if judged else None, **others}
    return train(network, X, Y, schedule=schedule, **given)


def same(one, other):
    return all(
        np.array_equal(a, b) for a, b in zip(one.network.arrays, other.network.arrays, strict=True)
    )


def kept(trained, started):
    """Return what the trained network keeps of the held-out rows, counted by numpy."""
    _, _, targets, (rows, wanted) = started
    mapped = normalise(trained.network.forward(rows))
    found, native = (np.argsort(-side @ targets.T)[:, :10] for side in (mapped, wanted))
    return np.mean([len({*a} & {*b}) / 10 for a, b in zip(found, native, strict=True)])


# --- looks -------------------------------------------------------------------------------------


def looks(steps, patience=1):
    schedule = Schedule(steps, 8, 1e-3, patience)
    return [step for step in range(1, steps + 1) if schedule.is_look(step)]


def test_looks_lie_further_and_further_apart_and_the_last_step_is_one():
    assert looks(50) == [5, 10, 15, 20, 25, 30, 36, 44, 50]
    apart = np.diff(looks(3_000)[:-1])
    assert (np.diff(apart) >= 0).all()
    assert looks(3) == [3]
    assert len(looks(100_000)) < 60


# --- what is kept ------------------------------------------------------------------------------


def test_training_gains_and_keeps_the_best_weights_that_it_saw(drawn):
    trained = run(drawn)
    steps, scores = zip(*trained.looks, strict=True)

    assert steps == (0, *looks(60))
    assert trained.steps == steps[int(np.argmax(scores))]
    assert max(scores) > scores[0] + 0.3
    assert kept(trained, drawn) == pytest.approx(max(scores), abs=0.005)


def test_the_network_that_was_given_stays_as_it_is(started):
    before = [each.copy() for each in started[0].arrays]
    run(started)
    for one, other in zip(before, started[0].arrays, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("rate", [1e-5, 1e-3, 0.1, 10.0])
def test_what_is_kept_is_never_worse_than_the_start(started, rate):
    trained = run(started, replace(SCHEDULE, learning_rate=rate))
    assert max(score for _, score in trained.looks) >= trained.looks[0][1]
    assert kept(trained, started) >= trained.looks[0][1] - 0.005


def test_where_nothing_gains_the_start_is_kept_to_the_bit(started):
    trained = run(started, replace(SCHEDULE, learning_rate=1e4, patience=3))
    assert (trained.steps, trained.outcome) == (0, "no_more_gain")
    for one, other in zip(trained.network.arrays, started[0].arrays, strict=True):
        np.testing.assert_array_equal(one, other)
    assert [step for step, _ in trained.looks] == [0, 5, 10, 15]


def test_no_step_is_the_start(started):
    for judged in (True, False):
        trained = run(started, replace(SCHEDULE, steps=0), judged=judged)
        assert trained.steps == 0
        assert trained.outcome == "out_of_steps"
        for one, other in zip(trained.network.arrays, started[0].arrays, strict=True):
            np.testing.assert_array_equal(one, other)


def test_without_held_out_rows_all_steps_are_taken_and_the_last_weights_kept(started):
    trained = run(started, judged=False)
    assert (trained.steps, trained.looks, trained.outcome) == (60, (), "out_of_steps")
    assert not same(trained, run(started, replace(SCHEDULE, steps=59), judged=False))


def test_patience_counts_looks_without_gain(started):
    eager = run(started, replace(SCHEDULE, steps=2_000, patience=2))
    scores = [score for _, score in eager.looks]
    assert eager.outcome == "no_more_gain"
    assert len(scores) - 1 - int(np.argmax(scores)) == 2


def test_a_collection_says_which_neighbours_count_and_teaches_nothing(drawn):
    """As many steps as there are, so that it cannot say when to stop."""
    schedule = replace(SCHEDULE, patience=10**6)
    collection = normalise(np.random.default_rng(1).standard_normal((500, 10)))
    plain, among = (run(drawn, schedule, collection=each) for each in (None, collection))
    assert [step for step, _ in plain.looks] == [step for step, _ in among.looks]
    assert plain.looks != among.looks

    network, X, _, held = drawn
    again = run((network, X, collection, held), replace(SCHEDULE, steps=0))
    assert among.looks[0] == again.looks[0]
    last = [run(drawn, schedule, collection=each, judged=False) for each in (None, collection)]
    assert same(*last)


# --- only the seed decides ---------------------------------------------------------------------


def test_a_seed_fixes_every_bit_and_another_seed_another_order(started):
    assert same(run(started), run(started))
    assert not same(run(started), run(started, seed=101))


def test_torch_random_state_is_neither_used_nor_touched(started):
    import torch

    torch.manual_seed(1)
    first = run(started)
    state = torch.random.get_rng_state()
    torch.manual_seed(2)
    assert same(first, run(started))
    torch.manual_seed(1)
    assert torch.equal(state, torch.random.get_rng_state())


def test_every_row_comes_once_per_epoch_in_parts_of_equal_size(started):
    network, X, Y, _ = started
    seen = []

    def watch(mapped, target):
        seen.append(target.detach().numpy().copy())
        return MSE(mapped, target)

    train(
        network,
        X[:101],
        Y[:101],
        objective=watch,
        schedule=replace(SCHEDULE, steps=8, batch=30),
        seed=100,
    )

    assert [len(part) for part in seen] == [26, 25, 25, 25] * 2
    for epoch in (seen[:4], seen[4:]):
        rows = np.concatenate(epoch)
        np.testing.assert_array_equal(np.sort(rows, axis=0), np.sort(Y[:101], axis=0))
    assert not np.array_equal(seen[0], seen[4])


# --- weights, lengths, scales, precision -------------------------------------------------------


def test_equal_weights_are_no_weights(started):
    weighted = run(started, weight=np.full(150, 7.0))
    assert same(weighted, run(started, weight=np.ones(150)))
    assert same(weighted, run(started))


def test_weights_pull(pairs):
    X, _ = pairs
    wanted = np.where(np.arange(200)[:, None] % 2, 1.0, -1.0) * np.ones((1, 3))
    weight = np.where(np.arange(200) % 2, 9.0, 1.0)
    network = Network.draw([8, 3], rng=np.random.default_rng(100))
    trained = train(
        network,
        0 * X,
        wanted.astype(np.float32),
        objective=MSE,
        schedule=Schedule(400, 200, 1e-2, 1),
        seed=100,
        weight=weight,
        normalise=False,
    )
    np.testing.assert_allclose(trained.network.biases[0], 0.8, atol=0.02)  # (9 - 1) / 10


def test_lengths_are_taken_away_before_the_objective_sees_them_or_not(started):
    lengths = {}

    def watch(mapped, target):
        lengths[name] = mapped.norm(dim=1).detach().numpy()
        return MSE(mapped, target)

    for name in ("normalise", "plain"):
        run(started, replace(SCHEDULE, steps=1), objective=watch, normalise=name == "normalise")
    np.testing.assert_allclose(lengths["normalise"], 1, atol=1e-6)
    assert np.abs(lengths["plain"] - 1).max() > 0.01


def test_bfloat16_trains_and_gives_float32(drawn):
    trained = run(drawn, precision="bfloat16")
    assert all(array.dtype == np.float32 for array in trained.network.arrays)
    assert max(score for _, score in trained.looks) > trained.looks[0][1] + 0.3
    assert not same(trained, run(drawn))


def test_progress_is_told_step_by_step(started):
    told = []

    def track(items, description, total):
        told.append((description, total))
        yield from items

    with tracking(track):
        run(started, replace(SCHEDULE, steps=7))
    assert told == [("training", 7)]


# --- divergence --------------------------------------------------------------------------------


def diverge(started, **params):
    with pytest.raises(DivergedTrainingError) as caught:
        run(started, **params)
    return str(caught.value)


def test_a_loss_that_grows_without_bound_says_what_to_do(started):
    text = diverge(started, schedule=replace(SCHEDULE, learning_rate=1e6), normalise=False)
    assert "a training loss that falls; got" in text
    assert "at step 5, after" in text
    assert "lower learning_rate (it was 1e+06)" in text


def test_a_loss_that_is_not_a_number(started):
    text = diverge(started, objective=lambda mapped, target: MSE(mapped, target) * np.nan)
    assert "got nan at step 1" in text


def test_mapped_rows_without_a_number_are_no_score(drawn):
    """The loss of the last step is that before it; what it leaves is looked at too."""
    schedule = replace(SCHEDULE, learning_rate=1e30, steps=1)
    assert "got nan at step 1" in diverge(drawn, schedule=schedule)


def test_weights_without_a_number_where_nothing_is_held_out(started):
    def steep(mapped, target):
        """Return a loss that is a number and has a slope that is none."""
        return MSE(mapped, target) + (0 * mapped).square().sum(dim=1).sqrt()

    schedule = replace(SCHEDULE, steps=1)
    assert "got nan at step 1" in diverge(started, objective=steep, judged=False, schedule=schedule)


def test_a_loss_may_grow_a_little(started):
    factor = iter([1.0, *[DIVERGED / 1e3] * 59])
    trained = run(started, objective=lambda mapped, target: MSE(mapped, target) * next(factor))
    assert trained.looks[-1][0] == 60


def test_held_out_rows_are_not_trained_on(started):
    network, X, Y, (rows, wanted) = started
    other = run((network, X, Y, (rows, wanted[::-1].copy())), replace(SCHEDULE, patience=10**6))
    plain = run(started, replace(SCHEDULE, patience=10**6))
    assert other.looks != plain.looks
    last = [run(each, judged=False) for each in (started, (network, X, Y, None))]
    assert same(*last)


def test_the_judge_counts_neighbours_as_numpy_does(started):
    import torch

    _, _, targets, (rows, wanted) = started
    sides = (torch.from_numpy(each) for each in (rows, wanted, targets))
    judge = Preservation.of(*sides, offset=torch.zeros(len(targets)))
    mapped = normalise(started[0].forward(rows))
    expected = kept(run(started, replace(SCHEDULE, steps=0)), started)
    assert judge.score(torch.from_numpy(mapped)) == pytest.approx(expected, abs=1e-9)
