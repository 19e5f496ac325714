"""The small network: it learns, stops with a reason, and its forward pass is scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neural_network import MLPRegressor

from isthmus.errors import ParameterError
from isthmus.maps import Ridge, SmallMLP
from isthmus.maps.mlp_small import OUTCOMES


def curved(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = 100 + 10 * rng.standard_normal((n, 3))
    z = (X - 100) / 10
    return X, 1e-3 * np.c_[z[:, 0] * z[:, 1], np.abs(z[:, 2])] + 5


def left(fitted, X, Y):
    return float(np.sum((fitted.transform(X) - Y) ** 2) / np.sum((Y - Y.mean(0)) ** 2))


def test_it_bends_where_a_linear_map_cannot_at_any_unit_of_measure():
    X, Y = curved()
    new_x, new_y = curved(seed=1)

    network = SmallMLP(hidden=(64, 64), learning_rate=1e-2).fit(X, Y)

    assert left(Ridge().fit(X, Y), new_x, new_y) > 0.9
    assert left(network, new_x, new_y) < 0.1
    assert network.outcome == "no_more_gain"


def test_running_out_of_epochs_is_a_reason_not_a_warning():
    X, Y = curved(60)

    fitted = SmallMLP(hidden=(4, 4), max_epochs=3).fit(X, Y)

    assert fitted.outcome == "out_of_epochs"
    assert OUTCOMES[fitted.outcome].endswith("raise max_epochs.")
    assert int(fitted.epochs_) == 3
    assert int(fitted.converged_) == 0


def test_the_forward_pass_is_that_of_scikit_learn():
    X, Y = curved(80)
    x, y = ((side - side.mean(0)) / (side - side.mean(0)).std() for side in (X, Y))
    reference = MLPRegressor(
        hidden_layer_sizes=(8, 6), max_iter=500, random_state=3, early_stopping=True
    ).fit(x.astype(np.float32), y.astype(np.float32))

    fitted = SmallMLP(hidden=(8, 6), max_epochs=500, seed=3).fit(X, Y)

    expected = reference.predict(x.astype(np.float32)) * (Y - Y.mean(0)).std() + Y.mean(0)
    np.testing.assert_allclose(fitted.transform(X), expected, rtol=1e-5)


def test_a_seed_fixes_the_result():
    X, Y = curved(60)

    def train(seed):
        return SmallMLP(hidden=(4, 4), max_epochs=3, seed=seed).fit(X, Y).weight_2_

    np.testing.assert_array_equal(train(0), train(0))
    assert not np.array_equal(train(0), train(1))


@pytest.mark.parametrize("n", [10, 49, 50])
def test_few_pairs_and_one_column(n):
    X, Y = curved(n)

    fitted = SmallMLP(hidden=(4, 4), max_epochs=30).fit(X[:, :1], Y[:, :1])

    assert fitted.transform(X[:, :1]).shape == (n, 1)


def test_weights_pull_the_network():
    X = np.repeat([[0.0], [1.0]], 40, axis=0)
    Y = np.tile([[0.0], [10.0]], (40, 1))
    weight = np.where(Y[:, 0] == 10, 9.0, 1.0)

    fitted = SmallMLP(hidden=(8, 8), learning_rate=1e-2).fit(X, Y, sample_weight=weight)

    np.testing.assert_allclose(fitted.transform([[0.0], [1.0]]), 9, atol=1)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"hidden": (8,)}, "two widths of at least 1; got \\(8,\\)"),
        ({"hidden": (8, 0)}, "two widths of at least 1; got \\(8, 0\\)"),
        ({"penalty": 0.0}, "penalty over 0; got 0.0"),
        ({"learning_rate": -1.0}, "learning_rate over 0; got -1.0"),
        ({"max_epochs": 0}, "max_epochs over 0; got 0"),
    ],
    ids=str,
)
def test_parameters_out_of_range(params, text):
    with pytest.raises(ParameterError, match=text):
        SmallMLP(**params).fit(*curved(60))


def test_a_constant_target_column_does_not_stop_the_training():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 6))
    Y = np.c_[X @ rng.normal(size=(6, 5)), np.full(400, 0.25) + 1e-6 * rng.normal(size=400)]
    fitted = SmallMLP(hidden=(32, 32), max_epochs=100).fit(X[:300], Y[:300])
    mapped = fitted.transform(X[300:])
    np.testing.assert_allclose(mapped[:, 5], 0.25, atol=1e-4)
    left = np.square(mapped[:, :5] - Y[300:, :5]).mean() / Y[300:, :5].var()
    assert left < 0.2
