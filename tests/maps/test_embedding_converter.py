"""Embedding-Converter: `mlp` from random weights with another objective, and nothing else."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from isthmus._linalg import normalise
from isthmus.errors import MissingExtraError, ParameterError
from isthmus.maps import MLP, EmbeddingConverter, make

SMALL = {"width": 16, "epochs": 2, "least_steps": 100, "batch": 64}


def planted(n=300):
    rng = np.random.default_rng(100)
    X = normalise(rng.standard_normal((n, 6)))
    return X, normalise(np.tanh(2 * X @ rng.standard_normal((6, 9))))


def test_it_is_mlp_with_its_objective_from_random_weights():
    X, Y = planted()
    ours = EmbeddingConverter(**SMALL).fit(X, Y)
    other = MLP(objective="embedding_converter", start="random", **SMALL).fit(X, Y)
    for name, array in other.get_state().items():
        np.testing.assert_array_equal(array, ours.get_state()[name])
    assert not ours.skip_.any()
    assert not np.array_equal(
        ours.transform(X), MLP(start="random", **SMALL).fit(X, Y).transform(X)
    )


def test_it_learns_places_and_distances():
    X, Y = planted()
    fitted = EmbeddingConverter(**{**SMALL, "least_steps": 600, "patience": 50}).fit(X, Y)
    mapped = fitted.transform(X)
    assert np.mean(np.sum(mapped * Y, axis=1)) > 0.95
    assert np.corrcoef((mapped @ mapped.T).ravel(), (Y @ Y.T).ravel())[0, 1] > 0.95


def test_all_parameters_are_those_of_mlp_but_the_two_that_make_it():
    ours, theirs = EmbeddingConverter().get_params(), MLP().get_params()
    assert set(theirs) - set(ours) == {"objective", "start"}
    assert ours == {name: theirs[name] for name in ours}
    with pytest.raises(ParameterError, match="parameters of embedding_converter"):
        make("embedding_converter", objective="mse")


def test_its_state_is_its_own():
    X, Y = planted()
    fitted = EmbeddingConverter(**SMALL).fit(X, Y)
    again = EmbeddingConverter.from_state(
        fitted.recorded_params(), fitted.get_state(), dim_source=6, dim_target=9
    )
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
    assert again.about == fitted.about


def test_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'isthmus\[torch\]'"):
        EmbeddingConverter(**SMALL).fit(*planted())
