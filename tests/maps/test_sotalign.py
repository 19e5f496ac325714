"""SOTAlign: what the unpaired rows bring, its batches, teachers, bad input."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import EmptyInputError, ParameterError, TooFewPairsError, UnknownNameError
from isthmus.maps import Contrastive, SOTAlign
from isthmus.maps._fitting import check_fit
from isthmus.maps._sides import centre_sides

QUICK = {"epochs": 6, "warm_up": 5, "width": 16, "batch": 60}


def related(n, seed=0):
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((n, 10))
    mix = np.random.default_rng(9).standard_normal((2, 10, 24))
    X, Y = (shared @ each + 0.5 * rng.standard_normal((n, 24)) for each in mix)
    return X + 2, Y[:, :23] - 1


def fit(made, n_pairs=30):
    X, Y = related(630)
    rows = slice(0, n_pairs)
    return made.fit(X[rows], Y[rows], unpaired_source=X[30:330], unpaired_target=Y[330:])


def recall(fitted, seed=1):
    X, Y = related(100, seed=seed)
    cosine = fitted.transform(X) @ fitted.transform_target(Y).T
    return float(np.mean((cosine > cosine.diagonal()[:, None]).sum(axis=1) < 5))


@pytest.mark.parametrize("teacher", ["cca", "ridge"])
def test_unpaired_rows_find_more_than_pairs_alone(teacher):
    params = {"width": 16, "warm_up": 5}
    alone = fit(Contrastive(epochs=60, **params))
    taught = fit(SOTAlign(teacher=teacher, epochs=12, batch=60, **params))

    assert recall(taught) > recall(alone) + 0.05
    assert taught.losses_[-1] < taught.losses_[0]
    assert taught.about == f"12 epochs after the teacher {teacher}"


def test_the_same_seed_gives_the_same_encoders():
    once, again, other = (fit(SOTAlign(**QUICK, seed=seed)) for seed in (1, 1, 2))

    np.testing.assert_array_equal(once.source_weight_, again.source_weight_)
    assert not np.array_equal(once.source_weight_, other.source_weight_)


@pytest.mark.parametrize(("n_source", "n_target"), [(300, 300), (300, 45), (25, 130), (20, 20)])
def test_each_row_of_the_larger_pool_comes_once_and_pairs_in_every_batch(n_source, n_target):
    X, Y = related(330)
    pairs = check_fit(X[:30], Y[:30], None)
    sides = centre_sides(pairs, X[30 : 30 + n_source], Y[30 : 30 + n_target])
    made = SOTAlign(batch=60)

    batches = list(made._batches(sides, made._teach(sides), epoch=0))

    for side, size in (("source", n_source), ("target", n_target)):
        picked = [getattr(batch, side) for batch in batches]
        for rows in picked:
            np.testing.assert_array_equal(rows[:30], np.arange(30))
            assert len(rows) - 30 <= 60
            assert len(np.unique(rows)) == len(rows)
        counts = np.bincount(np.concatenate([rows[30:] for rows in picked]) - 30, minlength=size)
        assert len(counts) == size
        assert counts.min() >= 1
        if size == max(n_source, n_target):
            assert counts.max() <= 2
            assert counts.sum() <= size + len(batches)


def test_fewer_than_twenty_different_pairs():
    with pytest.raises(TooFewPairsError, match="at least 20 pairs; got 19"):
        fit(SOTAlign(), n_pairs=19)
    X, Y = related(80)
    repeated = np.repeat(np.arange(10), 3)
    with pytest.raises(TooFewPairsError, match="got 30 pairs, 10 of them different"):
        SOTAlign().fit(X[repeated], Y[repeated], unpaired_source=X, unpaired_target=Y)


def test_pools_that_are_missing_or_of_one_row():
    X, Y = related(80)
    with pytest.raises(EmptyInputError, match=r"20 rows in unpaired_source, .*; got 0"):
        SOTAlign().fit(X[:30], Y[:30])
    with pytest.raises(EmptyInputError, match=r"20 rows in unpaired_target, .*; got 1"):
        SOTAlign().fit(X[:30], Y[:30], unpaired_source=X[30:], unpaired_target=Y[:1])


def test_an_unknown_teacher():
    with pytest.raises(UnknownNameError, match="cca"):
        fit(SOTAlign(teacher="ccq"))


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"kl_weight": 0.0}, "kl_weight over 0"),
        ({"batch": 1}, "batch as a whole number of at least 2"),
        ({"epochs": 0}, "epochs as a whole number of at least 1"),
        ({"warm_up": -1}, "warm_up as a whole number of at least 0"),
        ({"learning_rate": float("nan")}, "learning_rate over 0"),
    ],
)
def test_parameters_out_of_range(params, text):
    with pytest.raises(ParameterError, match=text):
        fit(SOTAlign(**params))
