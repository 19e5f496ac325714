from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.federate.candidates import Candidates, first_columns


def candidates(similarities, space):
    similarities = np.array(similarities, dtype=np.float32)
    width = similarities.shape[2]
    ids = np.array([[f"d{column}" for column in range(width)]] * similarities.shape[1])
    return Candidates(
        ids=ids,
        similarities=similarities,
        source=np.arange(width),
        rank=np.ones(width, dtype=np.int64),
        space=np.array(space),
        same=first_columns(ids, merge=False),
    )


def test_native_is_the_own_space():
    one = candidates([[[0.1, 0.2]], [[0.3, 0.4]]], space=[1, 0])
    np.testing.assert_array_equal(one.native, np.array([[0.3, 0.2]], dtype=np.float32))


def test_mapped_is_the_other_space():
    one = candidates([[[0.1, 0.2]], [[0.3, 0.4]]], space=[1, 0])
    np.testing.assert_array_equal(one.mapped, np.array([[0.1, 0.4]], dtype=np.float32))


def test_mapped_is_the_mean_of_the_spaces_that_were_asked_for():
    nan = float("nan")
    one = candidates([[[0.2, 0.4]], [[0.4, 0.9]], [[nan, nan]]], space=[0, 2])
    # d0 is native in space 0: only .4 is known of the others
    # d1 is native in space 2: (.4 + .9) / 2
    np.testing.assert_allclose(one.mapped, [[0.4, 0.65]], rtol=1e-6)


def test_one_space_has_no_mapped_similarity():
    assert np.isnan(candidates([[[0.1, 0.2]]], space=[0, 0]).mapped).all()


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.lists(st.lists(st.sampled_from(["", "a", "b", "c"]), min_size=5, max_size=5), min_size=1))
def test_first_columns_agree_with_a_search_from_the_left(rows):
    ids = np.array(rows)
    expected = [
        [row.index(text) if text else column for column, text in enumerate(row)] for row in rows
    ]
    assert first_columns(ids, merge=True).tolist() == expected


def test_unmerged_columns_stand_for_themselves():
    assert first_columns(np.array([["a", "a"]]), merge=False).tolist() == [[0, 1]]
