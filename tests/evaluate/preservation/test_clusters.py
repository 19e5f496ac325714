"""Cluster agreement: scikit-learn's index, planted groups, undefined sets, intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from isthmus.errors import CountMismatchError, InvalidVectorsError, ParameterError
from isthmus.evaluate.preservation import cluster_agreement
from isthmus.evaluate.preservation.clusters import adjusted_rand

quick = settings(derandomize=True, deadline=None, max_examples=25)


def gaussian(seed, rows=60, dim=6):
    return np.random.default_rng(seed).standard_normal((rows, dim))


def groups(seed=0, spread=1.0):
    return 10 * gaussian(seed, rows=5).repeat(20, axis=0) + spread * gaussian(seed + 1, rows=100)


@quick
@given(seed=st.integers(0, 10_000), most=st.integers(1, 6))
def test_index_equals_scikit_learn(seed, most):
    a, b = np.random.default_rng(seed).integers(0, most, (2, 30))
    found = adjusted_rand(a, b, np.ones((1, 30)))
    assert found[0] == pytest.approx(adjusted_rand_score(a, b), abs=1e-12)
    np.testing.assert_allclose(adjusted_rand(b, a, np.ones((1, 30))), found, atol=1e-12)


def test_weights_leave_rows_out_and_never_pair_a_row_with_itself():
    a, b = np.random.default_rng(0).integers(0, 3, (2, 20))
    keep = np.arange(20) % 2 == 0
    found = adjusted_rand(a, b, keep[None, :].astype(float))
    assert found[0] == pytest.approx(adjusted_rand_score(a[keep], b[keep]), abs=1e-12)
    # Doubling every row must not make the clusterings look more alike than chance allows.
    doubled = adjusted_rand(a, b, np.full((1, 20), 2.0))
    assert doubled[0] == pytest.approx(adjusted_rand_score(a, b), abs=1e-12)
    assert adjusted_rand_score(a.repeat(2), b.repeat(2)) != pytest.approx(doubled[0], abs=1e-3)


@quick
@given(seed=st.integers(0, 10_000))
def test_identity_scale_and_rotation_keep_all_clusters(seed):
    target = groups(seed)
    turn = np.linalg.qr(gaussian(seed, rows=6))[0]
    for mapped in (target, 3.0 * target, target @ turn):
        assert cluster_agreement(mapped, target).mean == pytest.approx(1.0, abs=0.02)
    exact = cluster_agreement(target, target)
    assert (exact.mean, exact.low, exact.high) == (1.0, 1.0, 1.0)


def test_order_of_rows_does_not_matter_for_clear_clusters():
    target = groups(3, spread=0.1)
    mapped = target + 0.1 * gaussian(9, rows=100)
    order = np.random.default_rng(0).permutation(100)
    straight = cluster_agreement(mapped, target, clusters=5)
    assert straight.mean == 1.0
    assert cluster_agreement(mapped[order], target[order], clusters=5).mean == 1.0


def test_a_random_map_agrees_by_chance():
    found = cluster_agreement(gaussian(0, rows=400), gaussian(1, rows=400))
    assert found.mean == pytest.approx(0.0, abs=0.02)
    assert found.low <= found.mean <= found.high
    assert found.high - found.low < 0.05


def test_interval_surrounds_a_middling_value():
    target = groups(5, spread=6.0)
    found = cluster_agreement(target + 6.0 * gaussian(11, rows=100), target, seed=2)
    assert 0.05 < found.low < found.mean < found.high < 0.95
    assert found == cluster_agreement(target + 6.0 * gaussian(11, rows=100), target, seed=2)


def test_sets_without_clusters_are_undefined_or_worst():
    rows = gaussian(0)
    assert np.isnan(cluster_agreement(rows, np.ones((60, 2))).mean)
    assert np.isnan(cluster_agreement(rows[:3], rows[:3]).mean)
    assert np.isnan(cluster_agreement(rows, rows, clusters=1).mean)
    assert cluster_agreement(np.ones((60, 2)), rows).mean == 0.0
    assert cluster_agreement(rows[:, :1], rows[:, :1]).mean == 1.0  # one column: two signs


def test_more_clusters_than_rows_are_cut():
    rows = gaussian(0, rows=5)
    assert cluster_agreement(rows, rows, clusters=50).mean == 1.0


def test_bad_input_says_expected_got_do():
    rows = gaussian(0)
    with pytest.raises(CountMismatchError, match="9 source rows and 60 target rows"):
        cluster_agreement(rows[:9], rows)
    with pytest.raises(InvalidVectorsError, match="finite numbers in mapped"):
        cluster_agreement(rows * np.nan, rows)
    with pytest.raises(ParameterError, match="clusters as a whole number over 0"):
        cluster_agreement(rows, rows, clusters=0)
