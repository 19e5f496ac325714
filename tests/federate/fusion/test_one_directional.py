from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import ParameterError
from isthmus.federate.fusion import OneDirectional

NAN = float("nan")


def test_the_hub_space_by_hand(two_sources):
    scores = OneDirectional().score(two_sources)
    np.testing.assert_allclose(scores[0], [0.8, 0.5, 0.6, 0.1], atol=1e-7)
    np.testing.assert_allclose(scores[1], [0.9, NAN, NAN, NAN], atol=1e-7)


def test_another_space_by_hand(two_sources):
    np.testing.assert_allclose(
        OneDirectional(space=1).score(two_sources)[0], [0.4, 0.3, 0.7, 0.2], atol=1e-7
    )


def test_it_asks_for_one_space():
    assert OneDirectional(space=1).spaces(3) == (1,)


def test_a_space_that_is_not_there_is_refused():
    with pytest.raises(ParameterError, match=r"a space under 2, .*; got 2"):
        OneDirectional(space=2).spaces(2)
    with pytest.raises(ParameterError, match=r"a space from 0 .*; got -1"):
        OneDirectional(space=-1)
