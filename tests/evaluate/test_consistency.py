"""Consistency of two spaces: obvious loops, symmetry, the paper's shapes, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import (
    CountMismatchError,
    DimensionError,
    InvalidVectorsError,
    ParameterError,
    UnknownNameError,
)
from isthmus.evaluate import consistency
from isthmus.evaluate.consistency import distance_correlation, jaccard_curve, nno

quick = settings(derandomize=True, deadline=None, max_examples=25)


def two_sides(seed, rows=60, dim_a=8, dim_b=5, noise=0.5):
    """Two views of one hidden cloud, of unequal widths."""
    draw = np.random.default_rng(seed)
    hidden = draw.standard_normal((rows, 4))
    return (
        hidden @ draw.standard_normal((4, dim_a)) + noise * draw.standard_normal((rows, dim_a)),
        hidden @ draw.standard_normal((4, dim_b)) + noise * draw.standard_normal((rows, dim_b)),
    )


def slow_lists(rows, k):
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -np.inf)
    return [set(row[:k].tolist()) for row in np.argsort(-cosines, axis=1)]


@quick
@given(seed=st.integers(0, 10_000), k=st.integers(1, 20))
def test_nno_and_jaccard_equal_the_obvious_loop(seed, k):
    a, b = two_sides(seed)
    lists = list(zip(slow_lists(a, k), slow_lists(b, k), strict=True))
    expected = [len(one & other) / k for one, other in lists]
    np.testing.assert_allclose(nno(a, b, k=k), expected)
    curve = jaccard_curve(a, b, max_k=20, queries=None)
    assert curve.k.tolist() == list(range(1, 21))
    jaccard = [len(one & other) / len(one | other) for one, other in lists]
    np.testing.assert_allclose(curve.per_query[:, k - 1], jaccard)
    np.testing.assert_allclose(curve.mean[k - 1], np.mean(jaccard))
    np.testing.assert_allclose(curve.std[k - 1], np.std(jaccard))


@quick
@given(seed=st.integers(0, 10_000))
def test_neighbour_measures_are_symmetric_and_ignore_rotation(seed):
    a, b = two_sides(seed)
    np.testing.assert_array_equal(nno(a, b, k=5), nno(b, a, k=5))
    np.testing.assert_array_equal(jaccard_curve(a, b).mean, jaccard_curve(b, a).mean)
    rotation, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((8, 8)))
    assert nno(a, a @ rotation, k=5).mean() == 1.0
    assert (jaccard_curve(a, 7.0 * a @ rotation, max_k=30).mean == 1.0).all()


@quick
@given(seed=st.integers(0, 10_000))
def test_order_of_rows_does_not_matter(seed):
    a, b = two_sides(seed)
    order = np.random.default_rng(seed).permutation(len(a))
    np.testing.assert_array_equal(nno(a[order], b[order]), nno(a, b)[order])


def test_unrelated_sides_agree_by_chance():
    draw = np.random.default_rng(0)
    a, b = draw.standard_normal((400, 10)), draw.standard_normal((400, 12))
    assert nno(a, b, k=20).mean() == pytest.approx(20 / 399, abs=0.01)
    found = distance_correlation(a, b)
    assert np.nanmax(np.abs(found.correlation)) < 0.1


def test_nno_of_chosen_rows():
    a, b = two_sides(0)
    np.testing.assert_array_equal(nno(a, b, rows=[7, 3]), nno(a, b)[[7, 3]])


def test_curve_takes_random_rows_and_blocks_do_not_matter(monkeypatch):
    a, b = two_sides(1, rows=300)
    curve = jaccard_curve(a, b, seed=4)
    assert curve.per_query.shape == (100, 50)
    assert (jaccard_curve(a, b, seed=4).per_query == curve.per_query).all()
    assert (jaccard_curve(a, b, seed=5).per_query != curve.per_query).any()
    monkeypatch.setattr(consistency, "BLOCK_NUMBERS", 50 * 50 * 7)
    np.testing.assert_array_equal(jaccard_curve(a, b, seed=4).per_query, curve.per_query)


def test_few_rows_shorten_the_lists():
    a, b = two_sides(2, rows=4)
    assert jaccard_curve(a, b).k.tolist() == [1, 2, 3]
    assert nno(a, b, k=10).tolist() == [1.0] * 4
    assert np.isnan(nno(a[:1], b[:1])).all()


@pytest.mark.parametrize("spacing", ["count", "width"])
def test_distance_correlation_equals_numpy(spacing):
    a, b = two_sides(3, rows=80)
    found = distance_correlation(a, b, bins=5, spacing=spacing, metric="l2")
    first, second = np.triu_indices(80, 1)
    x = np.linalg.norm(a[first] - a[second], axis=1)
    y = np.linalg.norm(b[first] - b[second], axis=1)
    shares = np.linspace(0, 1, 6)
    edges = np.quantile(x, shares) if spacing == "count" else x.min() + shares * np.ptp(x)
    assert found.count.sum() == len(x)
    for place in range(5):
        inside = (x >= edges[place] - 1e-6) & (x < edges[place + 1] + 1e-6 * (place == 4))
        assert found.count[place] == pytest.approx(inside.sum(), abs=2)
        assert found.median[place] == pytest.approx(np.median(x[inside]), abs=0.01)
        if inside.sum() >= 30:
            expected = np.corrcoef(x[inside], y[inside])[0, 1]
            assert found.correlation[place] == pytest.approx(expected, abs=0.02)
    if spacing == "count":
        assert np.ptp(found.count) <= 1


def test_short_distances_agree_better_where_only_neighbourhoods_are_shared():
    # Tight groups at places that the second space draws anew: local agreement only.
    draw = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 10)
    local = 0.2 * draw.standard_normal((400, 6))
    a = 4 * draw.standard_normal((40, 6))[groups] + local
    b = 4 * draw.standard_normal((40, 6))[groups] + local
    found = distance_correlation(a, b, spacing="width", bins=10, metric="l2")
    assert found.correlation[0] > 0.9
    assert np.nanmax(np.abs(found.correlation[4:])) < 0.5


def test_bins_with_too_few_pairs_say_so():
    a, b = two_sides(4, rows=6)
    found = distance_correlation(a, b, bins=3, spacing="width")
    assert np.isnan(found.correlation).all()
    assert found.count.sum() == 15
    alone = distance_correlation(a[:1], b[:1], bins=3)
    assert np.isnan(alone.median).all()
    assert alone.count.tolist() == [0, 0, 0]
    alike = distance_correlation(np.ones((40, 2)), b[:1].repeat(40, axis=0), bins=2)
    assert np.isnan(alike.correlation).all()
    assert alike.count.sum() == 780


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda a, b: nno(a, b[:3]), CountMismatchError, "60 source rows and 3 target rows"),
        (lambda a, b: nno(a, b, k=0), ParameterError, "k as a whole number over 0"),
        (lambda a, b: nno(a, b, rows=[60]), ParameterError, "rows as whole numbers from 0 to 59"),
        (lambda a, b: nno(a, b, rows=[]), ParameterError, "rows as whole numbers from 0 to 59"),
        (lambda a, b: nno(a * np.nan, b), InvalidVectorsError, "finite numbers in a"),
        (lambda a, b: nno(a[0], b), DimensionError, "a with two axes"),
        (lambda a, b: jaccard_curve(a, b, max_k=0), ParameterError, "max_k as a whole number"),
        (lambda a, b: jaccard_curve(a[:1], b[:1]), ParameterError, "at least two rows; got one"),
        (lambda a, b: distance_correlation(a, b, bins=0), ParameterError, "bins as a whole number"),
        (
            lambda a, b: distance_correlation(a, b, spacing="log"),
            UnknownNameError,
            "a spacing among count, width; got 'log'",
        ),
    ],
)
def test_bad_input_says_expected_got_do(call, error, text):
    with pytest.raises(error, match="Do: ") as caught:
        call(*two_sides(0))
    assert text in str(caught.value)
