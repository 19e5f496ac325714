"""Training of two encoders: its losses against their formulas, and its loop."""

import numpy as np
import pytest
import torch

from isthmus.errors import DivergedTrainingError
from isthmus.maps.training.encoder import Encoder
from isthmus.maps.training.two_sided import Batch, Plan, TwoSided, pair_loss, plan_loss
from isthmus.transport import anchor_cost, sinkhorn


def log_softmax(rows, axis):
    shifted = rows - rows.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


def planted(n=60, dim=6, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, dim)).astype(np.float32)
    turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    return rows, (rows @ turn).astype(np.float32)


def first(dims, width=16, seed=0):
    rng = np.random.default_rng(seed)
    left, right = (Encoder.draw(dim, width, rng=rng) for dim in dims)
    return left, right


def every(n):
    rows = np.arange(n)
    return lambda _: [Batch(rows, rows, pair_loss())]


def recall(trained, X, Y):
    scores = trained.source.forward(X) @ trained.target.forward(Y).T
    return float((scores.argmax(axis=1) == np.arange(len(X))).mean())


def reciprocal_rank(trained, X, Y):
    scores = trained.source.forward(X) @ trained.target.forward(Y).T
    own = np.diag(scores)
    ranks = [(scores > own[:, None]).sum(axis=1) + 1, (scores > own).sum(axis=0) + 1]
    return float(np.mean([1 / each for each in ranks]))


def test_pair_loss_is_the_mean_of_both_cross_entropies():
    cosines = np.random.default_rng(0).uniform(-1, 1, (5, 5))

    loss = pair_loss()(torch.from_numpy(cosines), torch.tensor(3.0, dtype=torch.float64))

    there = -np.diag(log_softmax(3 * cosines, 1)).mean()
    back = -np.diag(log_softmax(3 * cosines, 0)).mean()
    assert float(loss) == pytest.approx((there + back) / 2, rel=1e-6)


def test_pair_loss_counts_pairs_by_their_weight():
    cosines = torch.from_numpy(np.random.default_rng(1).uniform(-1, 1, (4, 4)))
    scale = torch.tensor(2.0, dtype=torch.float64)

    plain = pair_loss()(cosines, scale)
    ones = pair_loss(np.full(4, 7.0))(cosines, scale)
    one = pair_loss(np.array([0.0, 1.0, 0.0, 0.0]))(cosines, scale)

    assert float(ones) == pytest.approx(float(plain))
    own = [-log_softmax(2 * cosines.numpy(), axis)[1, 1] for axis in (0, 1)]
    assert float(one) == pytest.approx(sum(own) / 2)


def plan_of(X, Y, device="cpu"):
    cost = anchor_cost(X, Y, X[:20], Y[:20])
    coupling = sinkhorn(cost, eta=0.1)
    plan = Plan(
        cost.source,
        cost.target,
        coupling.source_potential,
        coupling.target_potential,
        coupling.epsilon,
        device,
    )
    return coupling, plan


def test_a_block_of_the_plan_is_that_of_the_coupling():
    coupling, plan = plan_of(*planted())
    rows, columns = np.array([3, 50, 7]), np.array([1, 0, 9, 33])

    np.testing.assert_allclose(
        plan.log_block(rows, columns).numpy(), coupling.log_block(rows, columns), atol=2e-4
    )


def test_plan_loss_is_equations_10_to_12():
    coupling, plan = plan_of(*planted())
    rows, columns = np.arange(0, 30), np.arange(10, 60, 2)
    cosines = np.random.default_rng(2).uniform(-1, 1, (30, 25)).astype(np.float32)

    loss = plan_loss(plan, rows, columns)(torch.from_numpy(cosines), torch.tensor(4.0))

    block = coupling.block(rows, columns).astype(np.float64)
    there = -(block / block.sum(1, keepdims=True) * log_softmax(4 * cosines, 1)).sum(1).mean()
    back = -(block / block.sum(0) * log_softmax(4 * cosines, 0)).sum(0).mean()
    assert float(loss) == pytest.approx((there + back) / 2, rel=1e-4)


def test_training_finds_the_partners_of_rotated_rows():
    X, Y = planted()

    trained = TwoSided(epochs=120, warm_up=10, weight_decay=0.0, learning_rate=1e-2).train(
        first((6, 6)), (X, Y), every(60)
    )

    assert recall(trained, X, Y) > 0.8
    assert trained.losses[-1] < trained.losses[0] / 2
    assert len(trained.losses) == 120


def test_the_first_encoders_stay_as_they_are_and_the_gain_is_multiplied_in():
    X, Y = planted()
    encoders = first((6, 6))
    before = [encoder.weight.copy() for encoder in encoders]

    one = TwoSided(epochs=3).train(encoders, (X, Y), every(60))
    other = TwoSided(epochs=3).train(encoders, (X, Y), every(60))

    for encoder, weight in zip(encoders, before, strict=True):
        np.testing.assert_array_equal(encoder.weight, weight)
    np.testing.assert_array_equal(one.source.weight, other.source.weight)
    assert not np.array_equal(one.source.weight, encoders[0].weight)


def test_the_inverse_temperature_is_learned_up_to_its_bound():
    X, Y = planted()

    seen = []

    def loss(cosines, scale):
        seen.append(float(scale.detach()))
        return pair_loss()(cosines, scale)

    TwoSided(epochs=40, learning_rate=0.05, warm_up=0, largest_scale=16.0).train(
        first((6, 6)), (X, Y), lambda _: [Batch(np.arange(60), np.arange(60), loss)]
    )

    assert seen[0] == pytest.approx(1 / 0.07)
    assert len(set(seen)) > 2
    assert max(seen) == 16.0


def test_with_patience_it_stops_and_gives_the_best_look():
    X, Y = planted(80)
    held = X[60:], np.random.default_rng(0).permutation(Y[60:])  # nothing to gain

    trained = TwoSided(epochs=200, patience=2, warm_up=0, learning_rate=1e-2).train(
        first((6, 6)), (X[:60], Y[:60]), every(60), held_out=held
    )

    epochs = [epoch for epoch, _ in trained.looks]
    scores = [score for _, score in trained.looks]
    assert epochs == list(range(5, 5 * len(epochs) + 1, 5))
    assert len(trained.losses) == epochs[-1] < 200
    assert max(scores[-2:]) <= max(scores[:-2])
    assert scores[-1] < max(scores)
    assert reciprocal_rank(trained, *held) == pytest.approx(max(scores), abs=1e-6)


def test_a_loss_without_bound_is_an_error():
    X, Y = planted()

    with pytest.raises(DivergedTrainingError, match="a finite training loss; got nan"):
        TwoSided(epochs=3).train(
            first((6, 6)),
            (X, Y),
            lambda _: [
                Batch(np.arange(5), np.arange(5), lambda cosines, _: cosines.sum() * np.nan)
            ],
        )
