"""The dummy map: a random rotation that learned nothing."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import ParameterError
from isthmus.maps import Dummy

rng = np.random.default_rng(0)
X, Y = rng.standard_normal((30, 5)), rng.standard_normal((30, 8))


def test_distances_are_kept_to_as_many_or_more_dimensions():
    mapped = Dummy().fit(X, Y).transform(X)
    np.testing.assert_allclose(mapped @ mapped.T, X @ X.T, atol=1e-5)


def test_to_fewer_dimensions_it_is_a_projection():
    rotation = Dummy().fit(Y, X).rotation_
    np.testing.assert_allclose(rotation.T @ rotation, np.eye(5), atol=1e-6)


def test_it_learns_nothing():
    np.testing.assert_array_equal(
        Dummy().fit(X, Y).rotation_, Dummy().fit(X[::-1], 3 * Y[:30] + 1).rotation_
    )


def test_the_seed_decides():
    assert not np.allclose(Dummy(seed=1).fit(X, Y).rotation_, Dummy().fit(X, Y).rotation_)
    with pytest.raises(ParameterError, match="seed"):
        Dummy(seed=-1).fit(X, Y)
