"""Pairs of two planted spaces that a bent map joins."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.maps import MLP

SMALL = {"start": "ridge", "width": 8, "epochs": 3, "least_steps": 40, "batch": 32}


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="session")
def pairs():
    """Return 200 rows of 8 and of 10 columns, of length one."""
    rng = np.random.default_rng(100)
    X = unit(rng.standard_normal((200, 8)))
    return X, unit(np.tanh(2 * X @ rng.standard_normal((8, 10))))


@pytest.fixture
def make_mlp():
    """Return a maker of small networks."""

    def make(**params):
        return MLP(**{**SMALL, **params})

    return make


@pytest.fixture
def same_state():
    """Return a check that two fitted maps have the same bits."""

    def check(one, other):
        state = other.get_state()
        assert one.get_state().keys() == state.keys()
        for name, array in one.get_state().items():
            np.testing.assert_array_equal(array, state[name], err_msg=name)

    return check
