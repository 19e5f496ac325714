"""Evidence for candidate links: margins against brute force, and what is collected."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus._linalg import normalise
from isthmus.link.clouds import Clouds, Side
from isthmus.link.evidence import PROPOSING, collect, next_best
from isthmus.link.growth import Anchors
from isthmus.link.map_views import VIEWS
from isthmus.neighbors import mutual_by_csls, nearest_similarities


@settings(max_examples=60)
@given(st.integers(2, 12), st.integers(1, 15), st.integers(0, 3), st.integers(0, 999))
def test_next_best_is_the_mean_of_the_others(others, k, decimals, seed):
    """Brute force: all similarities of a row, its own struck out once, the k highest of the rest.

    Few decimals make ties; k may exceed the cloud.
    """
    rng = np.random.default_rng(seed)
    similar = rng.uniform(-1, 1, (6, others)).round(decimals)
    own_at = rng.integers(0, others, 6)
    own = similar[np.arange(6), own_at]
    highest = -np.sort(-similar, axis=1)[:, : k + 1]
    expected = [
        np.sort(np.delete(row, at))[::-1][:k].mean()
        for row, at in zip(similar, own_at, strict=True)
    ]
    np.testing.assert_allclose(next_best(highest, own), expected, atol=1e-12)


def test_next_best_of_a_cloud_of_one_row():
    assert next_best(np.array([[0.4], [0.9]]), np.array([0.4, 0.9])).tolist() == [0.4, 0.9]


@pytest.fixture(scope="module")
def collected(overlapping):
    data = overlapping(100, (30, 60), noise=0.4)
    clouds = Clouds(Side.of(data.source), Side.of(data.target))
    rows = np.flatnonzero(data.partner >= 0)[:70]
    anchors = Anchors(rows, data.partner[rows], np.linspace(0.5, 1.0, 70))
    return data, clouds, anchors, collect(clouds, anchors, neighborhood=10, rounds=0, seed=3)


def test_candidates_are_sorted_and_no_pair_is_twice(collected):
    _, clouds, _, found = collected
    codes = found.pairs[:, 0] * len(clouds.target) + found.pairs[:, 1]
    assert (np.diff(codes) > 0).all()
    assert found.pairs.shape == (len(codes), 2)
    assert found.features.shape == (len(codes), 4 * len(VIEWS))
    assert found.features.dtype == np.float64
    assert np.isfinite(found.features).all()


def views(clouds, anchors):
    rng = np.random.default_rng(3)
    return [view(clouds, anchors, rng) for view in VIEWS]


def test_votes_count_the_views_in_which_both_are_nearest(collected):
    _, clouds, anchors, found = collected
    votes = np.zeros(len(found.pairs), np.int64)
    proposed = set()
    pairs = list(map(tuple, found.pairs.tolist()))
    for number, view in enumerate(views(clouds, anchors)):
        mutual = mutual_by_csls(*view, neighborhood=10)
        these = set(zip(mutual.source_rows.tolist(), mutual.target_rows.tolist(), strict=True))
        here = np.array([pair in these for pair in pairs])
        np.testing.assert_array_equal(found.features[:, 4 * number + 3], here)
        votes += here
        if number < PROPOSING:
            proposed |= these

    np.testing.assert_array_equal(found.votes, votes)
    assert set(pairs) == proposed
    assert votes.min() >= 1
    assert 0 < np.count_nonzero(votes < len(VIEWS)) < len(votes)


def test_features_are_the_similarity_and_its_margins(collected):
    _, clouds, anchors, found = collected
    source, target = found.pairs.T
    for number, (left, right) in enumerate(views(clouds, anchors)):
        similar = left.astype(np.float64) @ right.T.astype(np.float64)
        own = similar[source, target]
        rest, back = similar[source], similar.T[target]
        rest[np.arange(len(own)), target] = back[np.arange(len(own)), source] = -2.0
        margins = [own - np.sort(side, axis=1)[:, -10:].mean(axis=1) for side in (rest, back)]
        np.testing.assert_allclose(
            found.features[:, 4 * number : 4 * number + 3],
            np.column_stack([own, *margins]),
            atol=2e-6,
        )


def test_refitting_forgets_wrong_anchors(overlapping):
    data = overlapping(150, (20, 20), noise=0.3)
    clouds = Clouds(Side.of(data.source), Side.of(data.target))
    rows = np.flatnonzero(data.partner >= 0)[:60]
    wrong = data.partner[rows].copy()
    wrong[:30] = np.roll(wrong[:30], 1)
    anchors = Anchors(rows, wrong, np.ones(60))

    def true(rounds):
        pairs = collect(clouds, anchors, neighborhood=10, rounds=rounds, seed=1).pairs
        return np.count_nonzero(data.partner[pairs[:, 0]] == pairs[:, 1])

    assert true(3) > true(0)


def test_the_seed_decides(collected):
    _, clouds, anchors, found = collected
    again = collect(clouds, anchors, neighborhood=10, rounds=0, seed=3)
    other = collect(clouds, anchors, neighborhood=10, rounds=0, seed=4)
    np.testing.assert_array_equal(again.features, found.features)
    assert not (
        other.features.shape == found.features.shape
        and np.array_equal(other.features, found.features)
    )


def test_similarities_block_by_block(collected, monkeypatch):
    _, clouds, anchors, found = collected
    monkeypatch.setattr("isthmus.link.evidence.BLOCK_ROWS", 7)
    parts = collect(clouds, anchors, neighborhood=10, rounds=0, seed=3)
    np.testing.assert_allclose(parts.features, found.features, atol=1e-6)


def test_a_neighborhood_wider_than_the_clouds():
    rng = np.random.default_rng(1)
    cloud = normalise(rng.standard_normal((8, 4)))
    clouds = Clouds(Side.of(cloud), Side.of(cloud[:6]))
    anchors = Anchors(np.arange(6), np.arange(6), np.ones(6))
    found = collect(clouds, anchors, neighborhood=50, rounds=1, seed=0)
    assert np.isfinite(found.features).all()
    assert nearest_similarities(cloud, cloud[:6], depth=51)[0].shape == (8, 6)
