"""The null map: the floor of every table."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.maps import Null

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (3, [[0, 1, 2], [3, 4, 5]]),
        (2, [[0, 1], [3, 4]]),
        (5, [[0, 1, 2, 0, 0], [3, 4, 5, 0, 0]]),
    ],
)
def test_rows_as_they_are_cut_off_or_filled_up(width, expected):
    mapped = Null().fit(X, np.ones((2, width))).transform(X)

    np.testing.assert_array_equal(mapped, expected)


def test_the_answer_is_a_copy():
    mapped = Null().fit(X, X).transform(X)

    assert not np.shares_memory(mapped, X)
