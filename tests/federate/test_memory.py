from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.federate import memory
from isthmus.federate.memory import CarriedRows, Marked


class Through:
    """Doubles rows, and counts them."""

    def __init__(self):
        self.counts = []

    def __call__(self, rows):
        self.counts.append(len(rows))
        return np.concatenate([rows * 2, rows[:, :1]], axis=1)


def rows_of(*values):
    return np.array([[value, 1, value] for value in values], dtype=np.float32)


def carry(carried, ids, rows, through):
    return carried.carry(Marked.of(np.array(ids), rows), rows, through)


def test_what_was_carried_is_not_carried_again():
    carried, through = CarriedRows(limit=10), Through()
    first = carry(carried, ["a", "b"], rows_of(1, 2), through)
    again = carry(carried, ["b", "c", "a"], rows_of(2, 3, 1), through)
    assert through.counts == [2, 1]
    np.testing.assert_array_equal(first, Through()(rows_of(1, 2)))
    np.testing.assert_array_equal(again, Through()(rows_of(2, 3, 1)))
    carry(carried, ["a", "b", "c"], rows_of(1, 2, 3), through)
    assert through.counts == [2, 1]


def test_a_row_that_changed_is_carried_anew():
    carried, through = CarriedRows(limit=10), Through()
    carry(carried, ["a", "b"], rows_of(1, 2), through)
    changed = carry(carried, ["a", "b"], rows_of(1, 5), through)
    np.testing.assert_array_equal(changed, Through()(rows_of(1, 5)))
    assert through.counts == [2, 1]
    carry(carried, ["b"], rows_of(5), through)
    assert through.counts == [2, 1]
    assert len(carried) == 2


def test_no_more_rows_than_the_limit_are_kept():
    carried, through = CarriedRows(limit=3), Through()
    carry(carried, ["a", "b"], rows_of(1, 2), through)
    carry(carried, ["c", "d"], rows_of(3, 4), through)
    assert len(carried) == 2  # a and b were forgotten
    carry(carried, ["e", "f", "g", "h"], rows_of(5, 6, 7, 8), through)
    assert len(carried) == 2
    carry(carried, ["c", "a"], rows_of(3, 1), through)
    assert through.counts == [2, 2, 4, 1]


def test_nothing_is_kept_when_asked():
    carried, through = CarriedRows(limit=0), Through()
    for _ in range(2):
        carry(carried, ["a"], rows_of(1), through)
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
        landed = carry(carried, list(search), rows, Through())
        np.testing.assert_array_equal(landed, Through()(rows))
        assert len(carried) <= limit


def test_many_threads_get_the_right_rows():
    carried = CarriedRows(limit=8)
    rng = np.random.default_rng(0)
    jobs = [rng.choice(20, size=4, replace=False) for _ in range(400)]

    def work(job):
        rows = rows_of(*job)
        landed = carry(carried, [f"d{value}" for value in job], rows, Through())
        return np.array_equal(landed, Through()(rows))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, jobs))


def test_many_searches_are_joined_in_few_arrays(monkeypatch):
    monkeypatch.setattr(memory, "MOST_CHUNKS", 3)
    carried = CarriedRows(limit=10**12)
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((40, 3)).astype(np.float32)
    ids = [f"d{row}" for row in range(40)]
    for stop in (1, 5, 6, 20, 21, 22, 40):
        landed = carry(carried, ids[:stop], rows[:stop], lambda some: some[:, :2] * 2)
        np.testing.assert_array_equal(landed, rows[:stop, :2] * 2)
    assert len(carried) == 40
    again = carry(carried, ids[::-1], rows[::-1], lambda some: some[:, :2] * 0)
    np.testing.assert_array_equal(again, rows[::-1, :2] * 2)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    dim=st.integers(1, 9), place=st.integers(0, 8), seed=st.integers(0, 99), bit=st.integers(0, 31)
)
def test_one_changed_bit_changes_the_checksum(dim, place, seed, bit):
    rows = np.random.default_rng(seed).standard_normal((2, dim)).astype(np.float32)
    rows[1] = rows[0]
    rows.view(np.uint32)[1, place % dim] ^= np.uint32(1 << bit)
    one, other = Marked.of(np.array(["a", "b"]), rows).checks
    assert one != other
