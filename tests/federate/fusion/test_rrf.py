from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import ParameterError
from isthmus.federate.fusion import Rrf

NAN = float("nan")


def test_reciprocal_ranks_by_hand(two_sources):
    scores = Rrf().score(two_sources)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores[0], [1 / 61, 1 / 62, 1 / 61, 1 / 62], rtol=1e-6)
    np.testing.assert_allclose(scores[1], [1 / 61, NAN, NAN, NAN], rtol=1e-6)


def test_a_document_in_two_lists_gets_both_by_hand(overlapping):
    # x is second in one list and first in the other: 1/62 + 1/61, in both of its columns
    both = 1 / 62 + 1 / 61
    np.testing.assert_allclose(
        Rrf().score(overlapping)[0], [1 / 61, both, 1 / 63, both, 1 / 62, 1 / 63], rtol=1e-6
    )


def test_c_is_a_parameter(two_sources):
    np.testing.assert_allclose(
        Rrf(c=1).score(two_sources)[0], [1 / 2, 1 / 3, 1 / 2, 1 / 3], rtol=1e-6
    )


@pytest.mark.parametrize("c", [0, -1, NAN])
def test_c_must_be_over_zero(c):
    with pytest.raises(ParameterError, match="c of RRF over 0"):
        Rrf(c=c)


def test_it_asks_for_no_space():
    assert Rrf().spaces(2) == ()
