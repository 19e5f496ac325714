"""Mutual nearest neighbours by CSLS at matrix speed, against the definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from isthmus._linalg import normalise
from isthmus.neighbors import (
    local_scaling,
    mutual_by_csls,
    mutual_nearest_neighbors,
    nearest_similarities,
    scaled,
)

sizes = st.integers(1, 40)


def cloud(n: int, *, dim: int = 6, seed: int = 0) -> np.ndarray:
    return normalise(np.random.default_rng(seed).standard_normal((n, dim)))


def scores_by_definition(source: np.ndarray, target: np.ndarray, k: int) -> np.ndarray:
    """Lample et al. 2018, equation 3, in float64."""
    similar = source.astype(float) @ target.T.astype(float)
    of_source = np.sort(similar, axis=1)[:, -k:].mean(axis=1)
    of_target = np.sort(similar, axis=0)[-k:].mean(axis=0)
    return 2 * similar - of_source[:, None] - of_target


@settings(max_examples=40)
@given(sizes, sizes, st.integers(1, 60), st.integers(0, 99))
def test_pairs_are_those_of_the_definition(n, m, k, seed):
    source, target = cloud(n, seed=seed), cloud(m, seed=seed + 1)
    found = mutual_by_csls(source, target, neighborhood=k)
    scores = scores_by_definition(source, target, k)
    rows, columns = found.source_rows, found.target_rows
    assert found.scores == pytest.approx(scores[rows, columns], abs=1e-5)
    best, back = scores.max(axis=1), scores.max(axis=0)
    assert (found.scores >= np.maximum(best[rows], back[columns]) - 1e-5).all()
    # Nothing is left out whose scores float32 can tell from the next.
    near = (scores >= best[:, None] - 1e-5) | (scores >= back - 1e-5)
    clear = (scores == best[:, None]) & (scores == back)
    clear &= (near.sum(axis=1, keepdims=True) == 1) & (near.sum(axis=0) == 1)
    assert set(map(tuple, np.argwhere(clear))) <= set(zip(rows, columns, strict=True))


def test_as_the_exact_search_says():
    source, target = cloud(300, dim=12), cloud(200, dim=12, seed=1)
    found = mutual_by_csls(source, target, neighborhood=7)
    exact = mutual_nearest_neighbors(source, target, csls_neighborhood=7)
    assert np.array_equal(found.source_rows, exact.source_rows)
    assert np.array_equal(found.target_rows, exact.target_rows)


@settings(max_examples=20)
@given(sizes, sizes, st.integers(1, 60))
def test_scaling_is_the_mean_of_the_nearest(n, m, k):
    source, target = cloud(n), cloud(m, seed=1)
    found = local_scaling(source, target, neighborhood=k)
    similar = np.sort(source @ target.T, axis=1)
    assert found.source == pytest.approx(similar[:, -k:].mean(axis=1), abs=1e-6)
    other = local_scaling(target, source, neighborhood=k)
    assert np.array_equal(found.target, other.source)


def test_a_known_scaling_is_taken():
    source, target = cloud(50), cloud(60, seed=1)
    known = local_scaling(source, target, neighborhood=5)
    given_it = mutual_by_csls(source, target, neighborhood=1, scaling=known)
    measured = mutual_by_csls(source, target, neighborhood=5)
    assert np.array_equal(given_it.scores, measured.scores)


@pytest.mark.parametrize(("n", "m"), [(700, 500), (40, 3_000), (3_000, 40)])
def test_blocks_are_put_together_rightly(n, m, monkeypatch):
    source, target = cloud(n), cloud(m, seed=1)
    whole = mutual_by_csls(source, target, neighborhood=10)
    monkeypatch.setattr(scaled, "BLOCK_NUMBERS", 16 * m)  # 16 rows a block
    parts = mutual_by_csls(source, target, neighborhood=10)
    assert np.array_equal(whole.source_rows, parts.source_rows)
    assert np.array_equal(whole.target_rows, parts.target_rows)
    assert whole.scores == pytest.approx(parts.scores, abs=1e-6)


def test_equal_scores_go_to_the_lowest_row():
    """Whole numbers: equal rows have equal scores to the bit."""
    source = np.eye(2, dtype=np.float32)[[0, 0, 1, 1]]
    target = np.eye(2, dtype=np.float32)[[1, 1, 0, 0, 0]]
    found = mutual_by_csls(source, target, neighborhood=2)
    assert found.source_rows.tolist() == [0, 2]
    assert found.target_rows.tolist() == [2, 0]


def test_equal_scores_in_several_blocks_go_to_the_lowest_row(monkeypatch):
    monkeypatch.setattr(scaled, "BLOCK_NUMBERS", 1)  # 16 rows a block
    source = np.eye(2, dtype=np.float32)[np.arange(64) % 2]
    found = mutual_by_csls(source, np.eye(2, dtype=np.float32), neighborhood=1)
    assert found.source_rows.tolist() == [0, 1]


def test_the_same_bits_on_one_thread_and_on_two():
    source, target = cloud(2_000, dim=30), cloud(1_500, dim=30, seed=1)
    with threadpool_limits(1, user_api="blas"):
        one = mutual_by_csls(source, target, neighborhood=20)
    with threadpool_limits(2, user_api="blas"):
        two = mutual_by_csls(source, target, neighborhood=20)
    assert np.array_equal(one.source_rows, two.source_rows)
    assert np.array_equal(one.target_rows, two.target_rows)
    assert np.array_equal(one.scores, two.scores)


def test_the_callers_matrices_stay_as_they_are():
    source, target = cloud(20), cloud(30, seed=1)
    kept = source.copy(), target.copy()
    mutual_by_csls(source, target, neighborhood=5)
    assert np.array_equal(source, kept[0])
    assert np.array_equal(target, kept[1])


@settings(max_examples=30)
@given(sizes, sizes, st.integers(1, 60), st.integers(0, 99))
def test_nearest_similarities_are_the_highest_sorted(n, m, depth, seed):
    source, target = cloud(n, seed=seed), cloud(m, seed=seed + 1)
    similar = source.astype(float) @ target.T.astype(float)
    of_source, of_target = nearest_similarities(source, target, depth=depth)
    assert of_source.shape == (n, min(depth, m))
    assert of_target.shape == (m, min(depth, n))
    assert of_source.dtype == of_target.dtype == np.float32
    assert of_source == pytest.approx(-np.sort(-similar, axis=1)[:, :depth], abs=1e-6)
    assert of_target == pytest.approx(-np.sort(-similar.T, axis=1)[:, :depth], abs=1e-6)


def test_nearest_similarities_block_by_block(monkeypatch):
    source, target = cloud(200), cloud(90, seed=1)
    whole = nearest_similarities(source, target, depth=7)
    monkeypatch.setattr(scaled, "BLOCK_NUMBERS", 1)  # 16 rows a block
    parts = nearest_similarities(source, target, depth=7)
    for one, other in zip(whole, parts, strict=True):
        assert one == pytest.approx(other, abs=1e-6)


def test_the_scaling_is_the_mean_of_the_nearest_similarities():
    source, target = cloud(80), cloud(60, seed=1)
    known = local_scaling(source, target, neighborhood=5)
    sides = nearest_similarities(source, target, depth=6)
    assert known.source == pytest.approx(sides[0][:, :5].mean(axis=1), abs=1e-6)
    assert known.target == pytest.approx(sides[1][:, :5].mean(axis=1), abs=1e-6)


def test_nearest_similarities_have_the_same_bits_on_two_threads():
    source, target = cloud(2_000, dim=30), cloud(1_500, dim=30, seed=1)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            found.append(nearest_similarities(source, target, depth=11))
    assert np.array_equal(found[0][0], found[1][0])
    assert np.array_equal(found[0][1], found[1][1])
