from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.federate import memory
from isthmus.federate.memory import CarriedRows


class Through:
    """Doubles rows, and counts them."""

    def __init__(self):
        self.counts = []

    def __call__(self, rows):
        self.counts.append(len(rows))
        return np.concatenate([rows * 2, rows[:, :1]], axis=1)


def rows_of(*values):
    return np.array([[value, 1, value] for value in values], dtype=np.float32)


def test_what_was_carried_is_not_carried_again():
    carried, through = CarriedRows(limit=10), Through()
    first = carried.carry(np.array(["a", "b"]), rows_of(1, 2), through)
    again = carried.carry(np.array(["b", "c", "a"]), rows_of(2, 3, 1), through)
    assert through.counts == [2, 1]
    np.testing.assert_array_equal(first, Through()(rows_of(1, 2)))
    np.testing.assert_array_equal(again, Through()(rows_of(2, 3, 1)))
    carried.carry(np.array(["a", "b", "c"]), rows_of(1, 2, 3), through)
    assert through.counts == [2, 1]


def test_a_row_that_changed_is_carried_anew():
    carried, through = CarriedRows(limit=10), Through()
    carried.carry(np.array(["a", "b"]), rows_of(1, 2), through)
    changed = carried.carry(np.array(["a", "b"]), rows_of(1, 5), through)
    np.testing.assert_array_equal(changed, Through()(rows_of(1, 5)))
    assert through.counts == [2, 1]
    carried.carry(np.array(["b"]), rows_of(5), through)
    assert through.counts == [2, 1]
    assert len(carried) == 2


def test_no_more_rows_than_the_limit_are_kept():
    carried, through = CarriedRows(limit=3), Through()
    carried.carry(np.array(["a", "b"]), rows_of(1, 2), through)
    carried.carry(np.array(["c", "d"]), rows_of(3, 4), through)
    assert len(carried) == 2  # a and b were forgotten
    carried.carry(np.array(["e", "f", "g", "h"]), rows_of(5, 6, 7, 8), through)
    assert len(carried) == 2
    carried.carry(np.array(["c", "a"]), rows_of(3, 1), through)
    assert through.counts == [2, 2, 4, 1]


def test_nothing_is_kept_when_asked():
    carried, through = CarriedRows(limit=0), Through()
    for _ in range(2):
        carried.carry(np.array(["a"]), rows_of(1), through)
    assert through.counts == [1, 1]
    assert len(carried) == 0


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    limit=st.integers(0, 6),
    searches=st.lists(
        st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3), min_size=1, max_size=5),
        min_size=1,
        max_size=8,
    ),
)
def test_the_answer_never_depends_on_what_is_remembered(limit, searches):
    carried = CarriedRows(limit)
    for search in searches:
        rows = rows_of(*search.values())
        landed = carried.carry(np.array(list(search)), rows, Through())
        np.testing.assert_array_equal(landed, Through()(rows))
        assert len(carried) <= limit


def test_many_threads_get_the_right_rows():
    carried = CarriedRows(limit=8)
    rng = np.random.default_rng(0)
    jobs = [rng.choice(20, size=4, replace=False) for _ in range(400)]

    def work(job):
        rows = rows_of(*job)
        landed = carried.carry(np.array([f"d{value}" for value in job]), rows, Through())
        return np.array_equal(landed, Through()(rows))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, jobs))


def test_a_large_limit_takes_room_as_it_is_needed(monkeypatch):
    monkeypatch.setattr(memory, "FIRST_ROWS", 2)
    carried = CarriedRows(limit=10**12)
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((40, 3)).astype(np.float32)
    ids = np.array([f"d{row}" for row in range(40)])
    for stop in (1, 5, 6, 40):
        landed = carried.carry(ids[:stop], rows[:stop], lambda some: some[:, :2] * 2)
        np.testing.assert_array_equal(landed, rows[:stop, :2] * 2)
    assert len(carried) == 40
    again = carried.carry(ids, rows, lambda some: some[:, :2] * 0)
    np.testing.assert_array_equal(again, rows[:, :2] * 2)
