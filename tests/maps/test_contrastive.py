"""Contrastive: it learns its pairs, when it stops, bad input."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import ParameterError, TooFewPairsError
from isthmus.maps import Contrastive

QUICK = {"epochs": 40, "warm_up": 5, "width": 16}


def related(n, seed=0):
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((n, 5))
    mix = np.random.default_rng(9).standard_normal((2, 5, 8))
    X, Y = (shared @ each + 0.1 * rng.standard_normal((n, 8)) for each in mix)
    return X + 2, Y[:, :7] - 1


def recall(fitted, X, Y):
    cosine = fitted.transform(X) @ fitted.transform_target(Y).T
    return float(np.mean(cosine.argmax(axis=1) == np.arange(len(X))))


def test_it_finds_pairs_that_it_has_not_seen():
    fitted = Contrastive(epochs=200, learning_rate=1e-2, warm_up=5, width=16).fit(*related(200))

    assert recall(fitted, *related(100, seed=1)) > 0.5
    assert fitted.losses_[-1] < 0.2 * fitted.losses_[0]
    assert fitted.about == "200 epochs on the pairs alone"


def test_it_does_not_look_at_unpaired_rows():
    X, Y = related(60)
    plain = Contrastive(**QUICK).fit(X, Y)
    given = Contrastive(**QUICK).fit(X, Y, unpaired_source=X + 1, unpaired_target=Y + 1)

    assert not Contrastive.sees_unpaired
    np.testing.assert_array_equal(given.source_weight_, plain.source_weight_)


def test_a_batch_of_a_part_of_the_pairs():
    X, Y = related(60)
    whole = Contrastive(**QUICK).fit(X, Y)
    parts = Contrastive(**QUICK, batch=25).fit(X, Y)

    assert parts.losses_.shape == whole.losses_.shape
    assert not np.array_equal(parts.source_weight_, whole.source_weight_)


def test_patience_stops_and_trains_again_on_all_pairs():
    rng = np.random.default_rng(0)
    X, Y = related(60)
    Y = Y + 2 * rng.standard_normal(Y.shape)  # so that there is something to learn by heart
    fitted = Contrastive(epochs=200, warm_up=5, width=16, patience=2).fit(X, Y)

    best = fitted.look_epochs_[fitted.look_scores_.argmax()]
    assert len(fitted.losses_) == best < 200
    again = Contrastive(epochs=int(best), warm_up=5, width=16).fit(X, Y)
    np.testing.assert_array_equal(again.source_weight_, fitted.source_weight_)


def test_patience_with_fewer_epochs_than_a_look_takes():
    fitted = Contrastive(epochs=3, width=4, patience=1).fit(*related(40))

    assert len(fitted.losses_) == 3
    assert not len(fitted.look_epochs_)


def test_fewer_than_twenty_different_pairs():
    X, Y = related(19)
    with pytest.raises(TooFewPairsError, match="at least 20 pairs; got 19"):
        Contrastive().fit(X, Y)
    twice = np.repeat(X, 2, axis=0), np.repeat(Y, 2, axis=0)
    with pytest.raises(TooFewPairsError, match="got 38 pairs, 19 of them different"):
        Contrastive().fit(*twice)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"epochs": 0}, "epochs as a whole number of at least 1"),
        ({"patience": 0}, "patience as a whole number of at least 1"),
        ({"batch": 1}, "batch as a whole number of at least 2"),
        ({"width": 0}, "width as a whole number of at least 1"),
        ({"warm_up": -1}, "warm_up as a whole number of at least 0"),
        ({"learning_rate": 0.0}, "learning_rate over 0"),
        ({"weight_decay": -1.0}, "weight_decay from 0"),
        ({"device": "nowhere"}, "a device that torch has here"),
    ],
)
def test_parameters_out_of_range(params, text):
    with pytest.raises(ParameterError, match=text):
        Contrastive(**params).fit(*related(40))
