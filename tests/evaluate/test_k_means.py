"""K-means: planted groups, and a cluster that empties."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans

from isthmus.evaluate.k_means import cluster_count, cluster_from, cluster_rows, ready_rows


def groups(seed=0):
    draw = np.random.default_rng(seed)
    return 10 * draw.standard_normal((5, 4)).repeat(20, axis=0) + draw.standard_normal((100, 4))


def test_planted_groups_are_found():
    labels, start = cluster_rows(groups(), 5, seed=0)
    assert [len(set(labels[place : place + 20])) for place in range(0, 100, 20)] == [1] * 5
    assert len(set(labels.tolist())) == 5
    assert len(set((start // 20).tolist())) == 5


def test_equals_scikit_learn_from_the_same_start():
    rows = np.random.default_rng(1).standard_normal((200, 6))
    start = np.arange(7)
    labels, inertia = cluster_from(rows, start)
    theirs = KMeans(7, init=rows[start], n_init=1, max_iter=100, tol=0.0).fit(rows)
    np.testing.assert_array_equal(labels, theirs.labels_)
    assert inertia == pytest.approx(theirs.inertia_, rel=1e-9)


def test_equal_rows_make_one_cluster_without_complaint():
    labels, inertia = cluster_from(np.ones((10, 3)), np.arange(4))
    assert labels.tolist() == [0] * 10
    assert inertia == pytest.approx(0.0, abs=1e-12)


def test_a_cluster_that_empties_keeps_its_centre():
    # The second centre starts on the first one and wins no row; at 0 it would win the last row.
    labels, _ = cluster_from(np.array([[10.0], [10.0], [16.0], [4.0]]), np.array([0, 1]))
    assert labels.tolist() == [0, 0, 0, 0]


def test_default_number_of_clusters():
    assert [cluster_count(rows) for rows in (1, 2, 10, 100, 1000)] == [1, 2, 2, 7, 20]


def test_zero_rows_stay_zero():
    rows = np.array([[0.0, 0.0], [3.0, 4.0]], np.float32)
    np.testing.assert_allclose(ready_rows(rows, "cosine"), [[0.0, 0.0], [0.6, 0.8]])
    np.testing.assert_array_equal(ready_rows(rows, "l2"), rows)
