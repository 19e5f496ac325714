"""Both sides of held-out rows: own rows, depths, a moved target side, bad input."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import (
    CountMismatchError,
    DimensionError,
    InvalidVectorsError,
    ParameterError,
    UnknownNameError,
    ZeroVectorError,
)
from isthmus.evaluate.view import Native, View, without_own
from isthmus.neighbors import Neighbors, top_k


def gaussian(seed, rows=40, dim=6):
    return np.random.default_rng(seed).standard_normal((rows, dim)).astype(np.float32)


def test_own_rows_are_dropped_as_an_excluding_search_does():
    collection = gaussian(0, rows=200)
    collection[7] = collection[50]  # a twin of a held-out row, before it
    own = np.array([50, 3, -1, 199])
    target = np.concatenate([collection[[50, 3]], gaussian(1, rows=1), collection[[199]]])
    native = Native(target, collection, own_rows=own, depth=9)
    expected = top_k(target, collection, k=9, exclude=own)
    np.testing.assert_array_equal(native.neighbors.rows, expected.rows)
    np.testing.assert_array_equal(native.neighbors.scores, expected.scores)
    assert native.found.rows.shape == (4, 10)
    assert native.found.rows[0, :2].tolist() == [7, 50]


def test_rows_without_an_own_row_lose_nothing():
    found = Neighbors(rows=np.array([[4, 2, -1]]), scores=np.array([[0.9, 0.5, np.nan]]))
    kept = without_own(found, np.array([-1]), keep=2)
    assert kept.rows.tolist() == [[4, 2]]
    assert without_own(found, np.array([4]), keep=2).rows.tolist() == [[2, -1]]


def test_without_a_collection_rows_search_each_other():
    rows = gaussian(2)
    native = Native(rows)
    assert native.own_rows.tolist() == list(range(40))
    assert (native.neighbors.rows[:, 0] != np.arange(40)).all()


def test_with_a_collection_rows_are_queries():
    native = Native(gaussian(3, rows=5), gaussian(4))
    assert native.own_rows.tolist() == [-1] * 5


def test_scores_of_the_same_vectors_are_the_same_bits():
    collection = gaussian(5, rows=100)
    native = Native(collection[:20], collection, own_rows=np.arange(20))
    view = View(collection[:20], native)
    np.testing.assert_array_equal(view.mapped_scores, native.neighbors.scores)
    np.testing.assert_array_equal(view.own_scores, np.ones(20, np.float32))
    np.testing.assert_array_equal(view.neighbors.rows, native.neighbors.rows[:, :10])


def test_a_map_that_moves_both_sides_is_held_against_native_neighbours():
    target, collection = gaussian(6, rows=12), gaussian(7, rows=80)
    native = Native(target, collection)
    squeeze = gaussian(8, rows=6, dim=3)
    view = View(target @ squeeze, native, target=target @ squeeze, collection=collection @ squeeze)
    expected = top_k(target @ squeeze, collection @ squeeze, k=10)
    np.testing.assert_array_equal(view.neighbors.rows, expected.rows)
    np.testing.assert_array_equal(
        native.neighbors.rows, top_k(target, collection, k=80).rows[:, :100]
    )


def test_the_native_collection_is_prepared_once():
    collection = gaussian(9)
    native = Native(collection[:5], collection)
    assert View(collection[:5], native, collection=collection).index is native.index
    assert View(collection[:5], native, target=collection[:5]).index is native.index
    assert native.clusters(seed=1)[0] is native.clusters(seed=1)[0]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda a: Native(a, own_rows=[0]), CountMismatchError, "40 excluded rows, one per query"),
        (lambda a: Native(a, own_rows=np.full(40, 40)), ParameterError, "from -1 to 39"),
        (lambda a: Native(a, a[:, :3]), DimensionError, "with 3 columns; got 6 columns"),
        (lambda a: Native(a, metric="l1"), UnknownNameError, "a metric among cosine, dot, l2"),
        (lambda a: Native(a * np.nan), InvalidVectorsError, "finite numbers in target"),
        (lambda a: Native(a * 0), ZeroVectorError, "rows with a direction"),
        (lambda a: View(a[:, :3], Native(a)), DimensionError, "mapped with 6 columns; got 3"),
        (lambda a: View(a[:9], Native(a)), CountMismatchError, "9 source rows and 40 target rows"),
        (
            lambda a: View(a, Native(a), target=a, collection=a[:9]),
            CountMismatchError,
            "the 40 rows of the native collection; got 9",
        ),
        (
            lambda a: View(a, Native(a, a.copy()), target=a + 1),
            ParameterError,
            "the collection in the comparison space, as the target rows are moved; got none",
        ),
    ],
)
def test_bad_input_says_expected_got_do(call, error, text):
    with pytest.raises(error, match="Do: ") as caught:
        call(gaussian(0))
    assert text in str(caught.value)
