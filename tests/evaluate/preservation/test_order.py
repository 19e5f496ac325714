"""Rank correlations: scipy's numbers, invariances, undefined rows, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata, spearmanr

from isthmus.errors import CountMismatchError, InvalidVectorsError, ParameterError
from isthmus.evaluate.preservation import order, rank_corr, relation_order_corr
from isthmus.evaluate.preservation.order import average_ranks, spearman

quick = settings(derandomize=True, deadline=None, max_examples=25)


def gaussian(seed, rows=40, dim=6):
    return np.random.default_rng(seed).standard_normal((rows, dim))


def rotation(seed, dim=6):
    return np.linalg.qr(gaussian(seed, rows=dim, dim=dim))[0]


@quick
@given(seed=st.integers(0, 10_000), values=st.integers(1, 8))
def test_ranks_and_correlations_equal_scipy(seed, values):
    draw = np.random.default_rng(seed)
    a, b = draw.integers(0, values, (2, 6, 15)).astype(float)  # many ties
    np.testing.assert_array_equal(average_ranks(a), rankdata(a, axis=1) - 1)
    found = spearman(a, b)
    for row in range(6):
        if len({*b[row]}) == 1:
            assert np.isnan(found[row])
        elif len({*a[row]}) == 1:
            assert found[row] == 0.0
        else:
            assert found[row] == pytest.approx(spearmanr(a[row], b[row]).statistic, abs=1e-12)


@quick
@given(seed=st.integers(0, 10_000))
def test_missing_places_are_left_out(seed):
    a, b = np.random.default_rng(seed).random((2, 3, 10))
    gaps_a, gaps_b = a.copy(), b.copy()
    gaps_a[:, 7:], gaps_b[:, 7:] = np.nan, np.nan
    np.testing.assert_allclose(spearman(gaps_a, gaps_b), spearman(a[:, :7], b[:, :7]), atol=1e-12)


@quick
@given(seed=st.integers(0, 10_000), metric=st.sampled_from(["cosine", "dot", "l2"]))
def test_rank_corr_equals_scipy_over_native_neighbours(seed, metric):
    collection, mapped, target = gaussian(seed, 50), gaussian(seed + 1, 5), gaussian(seed + 2, 5)

    def similarities(query):
        if metric == "l2":
            return -np.linalg.norm(collection - query, axis=1)
        products = collection @ query
        return products / np.linalg.norm(collection, axis=1) if metric == "cosine" else products

    found = rank_corr(mapped, target, collection=collection, metric=metric, depth=12)
    for row in range(5):
        native = similarities(target[row])
        near = np.argsort(-native)[:12]
        expected = spearmanr(native[near], similarities(mapped[row])[near]).statistic
        assert found[row] == pytest.approx(expected, abs=1e-9)


@quick
@given(seed=st.integers(0, 10_000), scale=st.floats(0.1, 10))
def test_relations_survive_rotation_and_scale(seed, scale):
    target = gaussian(seed)
    moved = scale * target @ rotation(seed + 1)
    assert relation_order_corr(target, target).min() == 1.0
    for metric in ("cosine", "dot", "l2"):
        assert relation_order_corr(moved, target, metric=metric).min() > 0.999
    shifted = relation_order_corr(target + 3.0, target, metric="l2")
    assert shifted.min() > 0.999


@quick
@given(seed=st.integers(0, 10_000))
def test_relations_are_symmetric_and_ignore_row_order(seed):
    a, b = gaussian(seed), gaussian(seed + 1, dim=9)
    found = relation_order_corr(a, b)
    np.testing.assert_allclose(relation_order_corr(b, a), found, atol=1e-12)
    permutation = np.random.default_rng(seed).permutation(40)
    np.testing.assert_allclose(
        relation_order_corr(a[permutation], b[permutation]), found[permutation], atol=1e-6
    )


def test_relations_equal_scipy():
    a, b = gaussian(0, rows=12), gaussian(1, rows=12)
    found = relation_order_corr(a, b, metric="dot")
    for row in range(12):
        others = np.arange(12) != row
        expected = spearmanr((a @ a[row])[others], (b @ b[row])[others]).statistic
        assert found[row] == pytest.approx(expected)


def test_a_random_map_keeps_no_order():
    a, b = gaussian(0, rows=400), gaussian(1, rows=400)
    assert relation_order_corr(a, b).mean() == pytest.approx(0.0, abs=0.02)
    assert rank_corr(a, b).mean() == pytest.approx(0.0, abs=0.05)


def test_partners_are_drawn_once_and_blocks_do_not_matter(monkeypatch):
    a, b = gaussian(0, rows=300), gaussian(0, rows=300) + gaussian(1, rows=300)
    some = relation_order_corr(a, b, partners=100, seed=3)
    assert (some == relation_order_corr(a, b, partners=100, seed=3)).all()
    assert (some != relation_order_corr(a, b, partners=100, seed=4)).any()
    assert some.mean() == pytest.approx(relation_order_corr(a, b).mean(), abs=0.03)
    monkeypatch.setattr(order, "BLOCK_ROWS", 37)
    np.testing.assert_allclose(relation_order_corr(a, b, partners=100, seed=3), some, atol=1e-6)


def test_rows_without_an_order_have_defined_values():
    constant, spread = np.ones((6, 2)), gaussian(0, rows=6, dim=2)
    assert relation_order_corr(constant, spread).tolist() == [0.0] * 6
    assert np.isnan(relation_order_corr(spread, constant)).all()
    assert np.isnan(rank_corr(spread[:2], spread[:2])).all()  # one neighbour has no order
    assert np.isnan(rank_corr(spread[:1], spread[:1])).all()
    assert np.isnan(relation_order_corr(spread[:1], spread[:1])).all()
    assert np.isnan(rank_corr(spread, constant)).all()
    assert (rank_corr(constant, spread, metric="l2") <= 1.0).all()


def test_one_column():
    rows = np.arange(1.0, 9.0)[:, None]
    assert relation_order_corr(rows, rows, metric="l2").tolist() == [1.0] * 8
    assert np.isnan(relation_order_corr(rows, rows)).all()  # all cosines are 1


def test_bad_input_says_expected_got_do():
    rows = gaussian(0)
    with pytest.raises(CountMismatchError, match="9 source rows and 40 target rows"):
        relation_order_corr(rows[:9], rows)
    with pytest.raises(InvalidVectorsError, match="finite numbers in target"):
        relation_order_corr(rows, rows * np.inf)
    with pytest.raises(ParameterError, match="partners as a whole number over 0"):
        relation_order_corr(rows, rows, partners=0)
    with pytest.raises(ParameterError, match="depth as a whole number over 0"):
        rank_corr(rows, rows, depth=0)
