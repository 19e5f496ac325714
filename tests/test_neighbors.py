"""Neighbours: exact against an obvious loop, ties, batches, threads, bad input."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import (
    CountMismatchError,
    DimensionError,
    EmptyInputError,
    InvalidVectorsError,
    ParameterError,
    UnknownNameError,
    ZeroVectorError,
)
from isthmus.neighbors import Exact, Hnsw, csls, exact, mutual_nearest_neighbors, top_k

METRICS = ("cosine", "dot", "l2")
quick = settings(derandomize=True, deadline=None, max_examples=60)


def slow_scores(queries, database, metric):
    """Score every pair by the definition, in float64, rounded as the canonical score is."""
    q, x = (np.asarray(side, np.float32).astype(np.float64) for side in (queries, database))
    if metric == "l2":
        scores = -np.sqrt(((q[:, None] - x[None]) ** 2).sum(-1))
    else:
        scores = (q[:, None] * x[None]).sum(-1)
        if metric == "cosine":
            scores /= np.linalg.norm(q, axis=1)[:, None] * np.linalg.norm(x, axis=1)
    # Rounding in two steps hides the last bits, in which equal sums of another order may differ.
    return np.round(scores, 12).astype(np.float32)


def slow_top_k(queries, database, *, k, metric, exclude=None):
    scores = slow_scores(queries, database, metric)
    if exclude is not None:
        scores[np.arange(len(scores)), exclude] = -np.inf
    rows = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return rows, np.take_along_axis(scores, rows, axis=1)


def gaussian(rows, dim, seed=0):
    return np.random.default_rng(seed).standard_normal((rows, dim)).astype(np.float32)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dim", [1, 3, 40])
def test_equals_the_obvious_loop(metric, dim):
    queries, database = gaussian(30, dim, 1), gaussian(200, dim, 2)
    found = top_k(queries, database, k=7, metric=metric)
    rows, scores = slow_top_k(queries, database, k=7, metric=metric)
    np.testing.assert_allclose(found.scores, scores, rtol=2e-7, atol=1e-7)
    if dim > 1:  # in one dimension many cosines differ only by rounding
        np.testing.assert_array_equal(found.rows, rows)
    assert found.rows.dtype == np.int64
    assert found.scores.dtype == np.float32


@quick
@given(
    seed=st.integers(0, 10_000),
    metric=st.sampled_from(METRICS),
    k=st.integers(1, 30),
    n=st.integers(1, 400),
    own=st.booleans(),
)
def test_ties_go_to_the_lowest_row_even_at_the_cut(seed, metric, k, n, own):
    # Vectors of -1, 0, 1 repeat often, so that the k-th place is nearly always a tie.
    draw = np.random.default_rng(seed)
    database = draw.integers(-1, 2, (n, 4)).astype(np.float32)
    database[~database.any(axis=1), 0] = 1.0
    queries = database[draw.integers(0, n, 20)]
    exclude = draw.integers(0, n, 20) if own else None
    found = top_k(queries, database, k=k, metric=metric, exclude=exclude)
    rows, scores = slow_top_k(queries, database, k=k, metric=metric, exclude=exclude)
    there = min(k, n - own)
    np.testing.assert_array_equal(found.rows[:, :there], rows[:, :there])
    np.testing.assert_array_equal(found.scores[:, :there], scores[:, :there])
    assert (found.rows[:, there:] == -1).all()
    assert np.isnan(found.scores[:, there:]).all()


def test_all_rows_alike_come_in_order():
    database = np.full((5000, 8), 0.3, np.float32)
    found = top_k(database[:3], database, k=12, exclude=[0, 5, 4999])
    assert found.rows[0].tolist() == list(range(1, 13))
    assert found.rows[1].tolist() == [0, 1, 2, 3, 4, *range(6, 13)]
    assert found.rows[2].tolist() == list(range(12))
    assert (found.scores == 1.0).all()


def test_rows_of_one_direction_tie_in_cosine_whatever_their_length():
    row = gaussian(1, 64)
    database = np.concatenate([row * scale for scale in (4.0, 0.5, 1.0, 2.0**-20)])
    assert top_k(row, database, k=4).rows.tolist() == [[0, 1, 2, 3]]


@pytest.mark.parametrize("metric", METRICS)
def test_one_query_and_many_give_the_same_bits(metric, monkeypatch):
    queries, database = gaussian(700, 96, 3), gaussian(1500, 96, 4)
    database[700:] = database[:800] + 1e-6 * gaussian(800, 96, 5)  # near ties
    many = top_k(queries, database, k=5, metric=metric)
    for row in (0, 13, 699):
        one = top_k(queries[row : row + 1], database, k=5, metric=metric)
        np.testing.assert_array_equal(one.rows[0], many.rows[row])
        np.testing.assert_array_equal(one.scores[0], many.scores[row])
    some = top_k(queries[5:22], database, k=5, metric=metric)
    np.testing.assert_array_equal(some.scores, many.scores[5:22])
    monkeypatch.setattr(exact, "BLOCK_NUMBERS", 96 * 101)
    blocks = top_k(queries, database, k=5, metric=metric)
    np.testing.assert_array_equal(blocks.rows, many.rows)
    np.testing.assert_array_equal(blocks.scores, many.scores)


@pytest.mark.parametrize("metric", METRICS)
def test_one_thread_and_many_give_the_same_bits(metric):
    queries, database = gaussian(300, 64, 6), gaussian(2000, 64, 7)
    threads = faiss.omp_get_max_threads()
    answers = []
    try:
        for count in (1, 3):
            faiss.omp_set_num_threads(count)
            exactly = top_k(queries, database, k=9, metric=metric)
            nearly = Hnsw(database, metric=metric).search(queries, k=9)
            answers.append((exactly.rows, exactly.scores, nearly.rows, nearly.scores))
    finally:
        faiss.omp_set_num_threads(threads)
    for first, second in zip(*answers, strict=True):
        np.testing.assert_array_equal(first, second)


@quick
@given(seed=st.integers(0, 10_000), metric=st.sampled_from(METRICS))
def test_does_not_depend_on_the_order_of_the_database(seed, metric):
    queries, database = gaussian(8, 12, seed), gaussian(120, 12, seed + 1)
    order = np.random.default_rng(seed).permutation(120)
    straight = top_k(queries, database, k=6, metric=metric)
    shuffled = top_k(queries, database[order], k=6, metric=metric)
    np.testing.assert_array_equal(order[shuffled.rows], straight.rows)
    np.testing.assert_array_equal(shuffled.scores, straight.scores)


@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_l2_far_from_the_origin_keeps_its_precision(offset):
    # The usual expansion |q|^2 + |x|^2 - 2qx loses all digits here.
    database = (np.round(gaussian(500, 8, 8) * 8) / 8 + offset).astype(np.float32)
    queries = database[:20] + np.float32(0.125)
    found = top_k(queries, database, k=5, metric="l2")
    rows, scores = slow_top_k(queries, database, k=5, metric="l2")
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_allclose(found.scores, scores, rtol=1e-6)


def test_l2_queries_far_outside_the_database():
    database, queries = gaussian(400, 12, 21), 200.0 * gaussian(30, 12, 22)
    for index in (Exact(database, metric="l2"), Hnsw(database, metric="l2")):
        found = index.search(queries, k=5)
        rows, scores = slow_top_k(queries, database, k=5, metric="l2")
        assert (found.rows == rows).mean() > (0.99 if isinstance(index, Exact) else 0.9)
        np.testing.assert_allclose(found.scores[:, 0], scores[:, 0], rtol=1e-4)


def test_dot_with_one_huge_row_still_orders_the_small_ones():
    database = gaussian(300, 16, 9) * np.float32(1e-6)
    database[7] = 1e6
    queries = gaussian(10, 16, 10)
    found = top_k(queries, database, k=20, metric="dot")
    wide = queries.astype(np.float64) @ database.astype(np.float64).T
    np.testing.assert_array_equal(found.rows, np.argsort(-wide, axis=1, kind="stable")[:, :20])


def test_fewer_rows_than_asked_end_in_no_row():
    found = top_k([[1.0, 0.0]], [[0.0, 1.0], [1.0, 1.0]], k=4, exclude=[0])
    assert found.rows.tolist() == [[1, -1, -1, -1]]
    assert found.scores[0, 0] == np.float32(np.sqrt(0.5))
    assert np.isnan(found.scores[0, 1:]).all()


def test_float16_memory_map_gives_the_numbers_of_its_float32_copy(tmp_path: Path):
    stored = gaussian(300, 24, 11).astype(np.float16)
    np.save(tmp_path / "stored.npy", stored)
    mapped = np.load(tmp_path / "stored.npy", mmap_mode="r")
    queries = gaussian(9, 24, 12)
    one = top_k(queries, mapped, k=5)
    two = top_k(queries.astype(np.float64), stored.astype(np.float32), k=5)
    np.testing.assert_array_equal(one.rows, two.rows)
    np.testing.assert_array_equal(one.scores, two.scores)


def test_memory_stays_far_below_the_full_matrix(monkeypatch):
    monkeypatch.setattr(exact, "BLOCK_NUMBERS", 2**16)
    queries, database = gaussian(3000, 16, 13), gaussian(3000, 16, 14)
    top_k(queries[:5], database, k=5)
    tracemalloc.start()
    top_k(queries, database, k=5)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3000 * 3000 * 4 / 2


def test_arguments_are_not_changed():
    queries, database = gaussian(5, 6, 15), gaussian(50, 6, 16)
    before = queries.copy(), database.copy()
    for metric in METRICS:
        top_k(queries, database, k=3, metric=metric)
        Hnsw(database, metric=metric).search(queries, k=3)
    csls(queries, database, k=3)
    np.testing.assert_array_equal(queries, before[0])
    np.testing.assert_array_equal(database, before[1])


def test_prepared_index_answers_like_the_function():
    queries, database = gaussian(5, 6, 17), gaussian(50, 6, 18)
    index = Exact(database, metric="l2")
    assert len(index) == 50
    for _ in range(2):
        np.testing.assert_array_equal(
            index.search(queries, k=3).rows, top_k(queries, database, k=3, metric="l2").rows
        )


# --- CSLS and mutual neighbours ----------------------------------------------------------------


def slow_csls(queries, database, reference, neighborhood):
    cosines = slow_scores(queries, database, "cosine").astype(np.float64)
    hubs = slow_scores(database, reference, "cosine").astype(np.float64)
    near = np.sort(cosines, axis=1)[:, -neighborhood:].mean(axis=1)
    near_hubs = np.sort(hubs, axis=1)[:, -neighborhood:].mean(axis=1)
    return 2 * cosines - near[:, None] - near_hubs


@quick
@given(seed=st.integers(0, 10_000), neighborhood=st.integers(1, 12))
def test_csls_equals_the_formula(seed, neighborhood):
    queries, database = gaussian(25, 10, seed), gaussian(60, 10, seed + 1)
    expected = slow_csls(queries, database, queries, neighborhood)
    found = csls(queries, database, k=4, neighborhood=neighborhood)
    np.testing.assert_allclose(
        found.scores, np.take_along_axis(expected, found.rows, axis=1), atol=2e-6
    )
    np.testing.assert_allclose(found.scores, -np.sort(-expected, axis=1)[:, :4], atol=2e-6)


def test_csls_with_a_reference_gives_one_query_the_numbers_of_many():
    queries, database = gaussian(40, 10, 1), gaussian(60, 10, 2)
    many = csls(queries, database, k=4, reference=queries)
    one = csls(queries[7:8], database, k=4, reference=queries)
    np.testing.assert_array_equal(one.rows[0], many.rows[7])
    np.testing.assert_array_equal(one.scores[0], many.scores[7])


def test_csls_marks_a_hub_down():
    # Row 0 lies in the middle of the queries: nearest to all by the cosine, not by CSLS.
    angles = np.array([-0.5, 0.5])
    queries = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    beyond = np.array([0.0, -1.05, 1.05])
    database = np.stack([np.cos(beyond), np.sin(beyond)], axis=1)
    assert top_k(queries, database, k=1).rows.ravel().tolist() == [0, 0]
    assert csls(queries, database, k=1, neighborhood=2).rows.ravel().tolist() == [1, 2]


def test_csls_leaves_the_excluded_row_out_of_its_mean():
    database = gaussian(30, 5, 3)
    own = np.arange(30)
    found = csls(database, database, k=2, neighborhood=1, exclude=own)
    plain = top_k(database, database, k=1, exclude=own).scores[:, 0]
    assert (found.rows != own[:, None]).all()
    cosine = slow_scores(database, database, "cosine")[own, found.rows[:, 0]]
    # r_R counts the queries themselves, which here are the database: each row's nearest is itself.
    np.testing.assert_allclose(found.scores[:, 0], 2 * cosine - plain - 1.0, atol=2e-6)


@quick
@given(
    seed=st.integers(0, 10_000),
    k=st.integers(1, 4),
    metric=st.sampled_from(METRICS),
    neighborhood=st.sampled_from([None, 3]),
)
def test_mutual_neighbours_are_symmetric_and_right(seed, k, metric, neighborhood):
    a, b = gaussian(40, 6, seed), gaussian(30, 6, seed + 1)
    there = mutual_nearest_neighbors(a, b, k=k, metric=metric, csls_neighborhood=neighborhood)
    back = mutual_nearest_neighbors(b, a, k=k, metric=metric, csls_neighborhood=neighborhood)
    pairs = set(zip(there.source_rows.tolist(), there.target_rows.tolist(), strict=True))
    assert pairs == set(zip(back.target_rows.tolist(), back.source_rows.tolist(), strict=True))
    if neighborhood is None:
        forward, _ = slow_top_k(a, b, k=k, metric=metric)
        backward, _ = slow_top_k(b, a, k=k, metric=metric)
        expected = {(i, int(j)) for i in range(40) for j in forward[i] if i in backward[j]}
        assert pairs == expected
        scores = slow_scores(a, b, metric)[there.source_rows, there.target_rows]
        np.testing.assert_allclose(there.scores, scores, rtol=1e-6, atol=1e-7)
    assert len(there) == len(pairs)


def test_a_shuffled_copy_is_all_mutual():
    a = gaussian(50, 8, 5)
    order = np.random.default_rng(5).permutation(50)
    pairs = mutual_nearest_neighbors(a, a[order])
    np.testing.assert_array_equal(pairs.source_rows, np.arange(50))
    np.testing.assert_array_equal(order[pairs.target_rows], np.arange(50))


# --- HNSW --------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
def test_hnsw_finds_most_and_scores_them_exactly(metric):
    database = gaussian(1200, 16, 6) + (3.0 if metric == "l2" else 0.0)
    queries = database[:100]
    own = np.arange(100)
    truth = top_k(queries, database, k=5, metric=metric, exclude=own)
    found = Hnsw(database, metric=metric).search(queries, k=5, exclude=own)
    hits = [np.isin(a, b).mean() for a, b in zip(found.rows, truth.rows, strict=True)]
    assert np.mean(hits) > 0.97
    assert (found.rows != own[:, None]).all()
    every = slow_scores(queries, database, metric)
    np.testing.assert_allclose(
        found.scores, np.take_along_axis(every, found.rows, axis=1), rtol=1e-6, atol=1e-6
    )
    one = Hnsw(database, metric=metric).search(queries[3:4], k=5, exclude=[3])
    np.testing.assert_array_equal(one.rows[0], found.rows[3])


def test_hnsw_with_fewer_rows_than_asked():
    index = Hnsw([[1.0, 0.0], [0.0, 1.0]])
    found = index.search([[1.0, 0.2]], k=4)
    assert found.rows.tolist() == [[0, 1, -1, -1]]
    assert np.isnan(found.scores[0, 2:]).all()
    assert len(index) == 2


# --- bad input ---------------------------------------------------------------------------------

GOOD = [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("queries", "database", "options", "error", "text"),
    [
        (GOOD, [[1.0]], {}, DimensionError, "expected queries with 1 columns; got 2 columns"),
        ([1.0, 2.0], GOOD, {}, DimensionError, "expected queries with two axes"),
        ([], GOOD, {}, DimensionError, "expected queries with two axes"),
        (np.empty((0, 2)), GOOD, {}, EmptyInputError, "expected queries with at least one row"),
        (GOOD, np.empty((0, 2)), {}, EmptyInputError, "expected database with at least one row"),
        (GOOD, np.empty((0, 2), np.float16), {}, EmptyInputError, "database with at least one"),
        (GOOD, np.ones((1, 3), np.float16), {}, DimensionError, "expected queries with 3 columns"),
        (np.ones((1, 3), np.float16), GOOD, {}, DimensionError, "expected queries with 2 columns"),
        ([[np.nan, 1.0]], GOOD, {}, InvalidVectorsError, "NaN or infinity in row 0"),
        (GOOD, [[1.0, 1.0], [np.inf, 1.0]], {}, InvalidVectorsError, "NaN or infinity in row 1"),
        (
            GOOD,
            np.array([[1, 1], [np.nan, 1]], np.float16),
            {},
            InvalidVectorsError,
            "NaN or infinity in row 1",
        ),
        (GOOD, [["a", "b"]], {}, InvalidVectorsError, "expected database as numbers"),
        (GOOD, np.array([[1e300, 1.0]]), {}, InvalidVectorsError, "as float32 holds them"),
        ([[0.0, 0.0]], GOOD, {}, ZeroVectorError, "queries; got only zeros in row 0"),
        (GOOD, [[1.0, 0.0], [0.0, 0.0]], {}, ZeroVectorError, "database; got only zeros in row 1"),
        (GOOD, GOOD, {"k": 0}, ParameterError, "expected k as a whole number over 0; got 0"),
        (GOOD, GOOD, {"k": 1.5}, ParameterError, "expected k as a whole number over 0; got 1.5"),
        (GOOD, GOOD, {"metric": "l1"}, UnknownNameError, "among cosine, dot, l2; got 'l1'"),
        (GOOD, GOOD, {"exclude": [0]}, CountMismatchError, "2 excluded rows, one per query"),
        (GOOD, GOOD, {"exclude": [0, 2]}, ParameterError, "from -1 to 1; got type int64"),
        (GOOD, GOOD, {"exclude": [0.0, 1.0]}, ParameterError, "whole numbers from -1 to 1"),
    ],
)
def test_bad_input_says_expected_got_do(queries, database, options, error, text):
    with pytest.raises(error, match="Do: ") as caught:
        top_k(queries, database, **{"k": 1, **options})
    assert text in str(caught.value)


def test_products_too_large_for_float32_are_refused():
    big = np.full((1, 4), 1e30, np.float32)
    with pytest.raises(InvalidVectorsError, match="inner products that float32 can hold"):
        top_k(big, big, k=1, metric="dot")
    assert top_k(big, big, k=1).scores.tolist() == [[1.0]]


def test_zero_rows_are_fine_where_a_direction_is_not_needed():
    database = [[0.0, 0.0], [1.0, 0.0]]
    assert top_k([[0.0, 0.0]], database, k=2, metric="dot").rows.tolist() == [[0, 1]]
    assert top_k([[0.0, 0.0]], database, k=2, metric="l2").scores.tolist() == [[0.0, -1.0]]
    assert top_k([[0.0, 0.0]], [[0.0, 0.0]], k=1, metric="l2").scores.tolist() == [[0.0]]


def test_other_searches_check_their_counts():
    with pytest.raises(ParameterError, match="expected k as a whole number"):
        csls(GOOD, GOOD, k=1, neighborhood=0)
    with pytest.raises(ParameterError, match="expected connections as a whole number"):
        Hnsw(GOOD, connections=0)
    with pytest.raises(ParameterError, match="expected effort as a whole number"):
        Hnsw(GOOD).search(GOOD, k=1, effort=0)
    with pytest.raises(DimensionError, match="expected target with 2 columns; got 1 columns"):
        mutual_nearest_neighbors(GOOD, [[1.0]])
