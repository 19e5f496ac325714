"""Held-out preservation: the share of native neighbours that mapped rows find."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isthmus.errors import UnknownNameError
from isthmus.maps import MLP
from isthmus.maps._fitting import PairedRows
from isthmus.maps.training import Fitting, Network, Schedule, find_objective
from isthmus.maps.training.held_out import (
    MOST_TARGETS,
    NEIGHBORS,
    Preservation,
    as_neighbors,
    draw_targets,
)

METRICS = ("cosine", "dot", "l2")


def rows(n, dim=6, *, seed):
    drawn = torch.randn(n, dim, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(drawn, dim=1)


TARGETS, HELD, NOISE = rows(80, seed=100), rows(25, seed=101), rows(25, seed=102)
LENGTHS = torch.linspace(0.2, 5, 80)[:, None]


def judge_of(held=HELD, targets=TARGETS, *, metric="dot"):
    among = as_neighbors(targets.numpy(), metric)
    return Preservation.of(held, held, *(torch.from_numpy(each) for each in among))


def nearest(row, targets, metric, k=NEIGHBORS):
    """Return the k nearest rows by the definition of the metric, ties by index."""
    row, targets = row.numpy().astype(np.float64), targets.numpy().astype(np.float64)
    near = {
        "dot": targets @ row,
        "cosine": targets @ row / np.linalg.norm(targets, axis=1),
        "l2": -np.sum((targets - row) ** 2, axis=1),
    }[metric]
    return {*np.argsort(-near, kind="stable")[:k].tolist()}


@pytest.mark.parametrize("metric", METRICS)
def test_the_native_rows_find_all_and_their_opposites_none(metric):
    judge = judge_of(metric=metric)

    assert judge.score(HELD) == 1
    assert judge.score(-HELD) == 0


@pytest.mark.parametrize("metric", METRICS)
def test_it_counts_as_a_slow_loop_does_for_targets_of_any_length(metric):
    targets, held = LENGTHS * TARGETS, 2 * HELD
    mapped = held + 0.6 * NOISE
    judge = judge_of(held, targets, metric=metric)

    total = 0.0
    for one, other in zip(mapped, held, strict=True):
        total += len(nearest(one, targets, metric) & nearest(other, targets, metric)) / NEIGHBORS
    assert judge.score(mapped) == pytest.approx(total / 25)


def test_the_metrics_differ_for_targets_of_any_length():
    mapped, scores = HELD + 0.3 * NOISE, set()
    for metric in METRICS:
        scores.add(judge_of(targets=LENGTHS * TARGETS, metric=metric).score(mapped))
    assert len(scores) == 3


@pytest.mark.parametrize("metric", ["cosine", "dot"])
def test_the_length_of_a_mapped_row_does_not_matter(metric):
    mapped = HELD + 0.3 * NOISE
    judge = judge_of(metric=metric)
    assert judge.score(mapped) == judge.score(8 * mapped)


def test_of_equal_targets_the_first_are_found():
    """Whole numbers, so that equal targets have equal inner products."""
    one, other = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    targets = torch.cat([other, one.repeat(40, 1), other])
    judge = judge_of(one, targets)

    assert judge.native.tolist() == [[*range(1, NEIGHBORS + 1)]]
    assert judge.score(5 * one) == 1
    assert judge.score(other) == (NEIGHBORS - 2) / NEIGHBORS  # both of its own come first
    assert judge_of(targets[5:6], one.repeat(40, 1)).native.tolist() == [[*range(NEIGHBORS)]]


@pytest.mark.parametrize("n", [1, 3, NEIGHBORS])
def test_with_few_targets_every_row_is_found(n):
    judge = judge_of(targets=TARGETS[:n])
    assert judge.native.shape == (25, n)
    assert judge.score(-HELD) == 1


# --- the limit ---------------------------------------------------------------------------------


def test_of_many_targets_some_are_drawn_by_the_seed_in_their_order():
    many = np.arange(MOST_TARGETS + 5_000)[:, None]
    one, again, other = (draw_targets(many, seed=seed)[:, 0] for seed in (100, 100, 101))
    assert len(one) == MOST_TARGETS
    assert (np.diff(one) > 0).all()
    assert (one >= MOST_TARGETS).mean() == pytest.approx(1 / 3, abs=0.02)
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)
    np.testing.assert_array_equal(draw_targets(many[:MOST_TARGETS], seed=100), many[:MOST_TARGETS])


def test_targets_of_the_pairs_and_of_a_collection_have_one_limit():
    X = rows(2 * MOST_TARGETS + 2_000, seed=100).numpy()
    start = {"start": lambda *_: Network([np.eye(6, dtype=np.float32)], [np.zeros(6, np.float32)])}
    for collection in (None, X):
        fit = Fitting(
            PairedRows(X, X, None),
            start,
            objective=find_objective("mse"),
            schedule=Schedule(1, 512, 1e-3, 1),
            epochs=1,
            held_out=0.1,
            seed=100,
            collection=collection,
        )
        searched = fit._collection
        among = X if collection is not None else X[fit._rows[0]]
        np.testing.assert_array_equal(searched, draw_targets(among, seed=100))
        assert len(searched) == MOST_TARGETS


# --- in a fit ----------------------------------------------------------------------------------


def test_a_fit_stops_by_the_neighbours_of_its_metric():
    """Where a few long targets win every inner product."""
    rng = np.random.default_rng(100)
    X = rng.standard_normal((200, 6)).astype(np.float32)
    Y = X * np.linspace(0.2, 5, 200)[:, None].astype(np.float32)
    scores = {
        metric: MLP(start="procrustes", width=4, least_steps=1, epochs=1, metric=metric)
        .fit(X, Y, unpaired_target=Y)
        .look_scores_[0]
        for metric in METRICS
    }
    assert len(set(scores.values())) == 3
    assert scores["dot"] > 0.9  # the long ones are neighbours of all

    with pytest.raises(UnknownNameError, match="metric among cosine, dot, l2; got 'euclid'"):
        MLP(metric="euclid").fit(X, Y)
