"""Growing links: the directions, their weights, and what grows from few seeds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus._linalg import normalise, orthogonal_procrustes, singular_directions
from isthmus.link.growth import Anchors, Growth, principal_pairs, soft_weights

finite = st.floats(-2, 2, width=32)


def turned(n=60, dim=8, *, seed=0):
    """A cloud, and the same turned."""
    rng = np.random.default_rng(seed)
    source = normalise(rng.standard_normal((n, dim)))
    turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    return source, (source @ turn).astype(np.float32)


def test_rounds_end_two_after_the_rank_reaches_the_width():
    growth = Growth()
    for dim in (2, 12, 13, 100, 384, 1536):
        rounds = growth.rounds(dim)
        reach = next(r for r in range(99) if growth.first_rank * growth.rank_growth**r >= dim)
        assert rounds == reach + 2


def test_the_ranks_of_the_rounds_grow_to_all_directions(monkeypatch):
    ranks, powers = [], []

    def kept(*_, rank, power):
        ranks.append(rank)
        powers.append(power)
        return np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32)

    monkeypatch.setattr("isthmus.link.growth.principal_pairs", kept)
    side = np.eye(3)
    for number in range(Growth().rounds(64)):
        Growth().grow(side, side, side, side, np.ones(3), round_=number)

    assert ranks[0] == 12
    assert ranks == sorted(ranks)
    assert ranks[-3] < 64 <= ranks[-2]
    np.testing.assert_allclose(powers, 0.5 * 0.8 ** np.arange(len(powers)))


@given(st.lists(finite, min_size=1, max_size=50))
def test_weights_are_between_0_and_1_and_rise_with_the_score(scores):
    scores = np.array(scores)
    weights = soft_weights(scores)

    assert ((weights > 0) & (weights < 1)).all()
    order = np.argsort(scores, kind="stable")
    assert (np.diff(weights[order]) >= 0).all()
    assert np.median(weights) == pytest.approx(0.5)


def test_weights_of_equal_scores_and_of_none():
    assert soft_weights(np.full(5, 0.3, np.float32)).tolist() == pytest.approx([0.5] * 5)
    assert soft_weights(np.empty(0)).shape == (0,)
    scores = np.array([-0.2, 0.1, 0.5, 0.9])
    np.testing.assert_allclose(soft_weights(scores), soft_weights(7 * scores + 3))


@settings(max_examples=30)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 99), st.integers(1, 12))
def test_singular_directions_are_those_of_the_svd(rows, columns, seed, rank):
    cross = np.random.default_rng(seed).standard_normal((rows, columns))
    left, strength, right = singular_directions(cross, rank)
    u, s, vt = np.linalg.svd(cross, full_matrices=False)
    kept = min(rank, len(s))
    # The directions themselves are open up to their sign; their products are not.
    np.testing.assert_allclose(strength, s[: len(strength)], rtol=1e-6, atol=1e-9)
    assert len(strength) == min(kept, np.count_nonzero(s**2 > s[0] ** 2 * 1e-11))
    np.testing.assert_allclose(
        (left * strength) @ right.T, (u[:, :kept] * s[:kept]) @ vt[:kept], atol=2e-5 * s[0]
    )
    np.testing.assert_allclose(left.T @ left, np.eye(len(strength)), atol=1e-6)


def test_at_full_rank_and_power_0_inner_products_are_those_of_procrustes():
    source, target = turned()
    target = normalise(target + 0.1 * np.random.default_rng(1).standard_normal(target.shape))
    weight = np.random.default_rng(2).uniform(0.2, 1, 40)
    anchors = source[:40], target[:40]
    left, right = principal_pairs(source, target, *anchors, weight)

    means = [weight @ side / weight.sum() for side in anchors]
    centred = [side - mean for side, mean in zip(anchors, means, strict=True)]
    rotation = orthogonal_procrustes(*centred, weight=weight)
    expected = normalise((source - means[0]) @ rotation) @ normalise(target - means[1]).T
    np.testing.assert_allclose(left @ right.T, expected, atol=1e-5)


def test_a_planted_rotation_brings_partners_onto_each_other():
    source, target = turned()
    left, right = principal_pairs(source, target, source[:20], target[:20], np.ones(20))
    np.testing.assert_allclose(np.einsum("nd,nd->n", left, right), 1, atol=1e-5)


@pytest.mark.parametrize(("rank", "power"), [(None, 0.0), (4, 0.5), (6, 0.25)])
def test_turning_either_side_changes_no_similarity(rank, power):
    source, target = turned()
    other = np.linalg.qr(np.random.default_rng(3).standard_normal((8, 8)))[0]
    noisy = normalise(target + 0.2 * np.random.default_rng(4).standard_normal(target.shape))

    def similar(one, two):
        pairs = principal_pairs(one, two, one[:30], two[:30], np.ones(30), rank=rank, power=power)
        return pairs[0] @ pairs[1].T

    plain = similar(source, noisy)
    np.testing.assert_allclose(similar(source @ other, noisy), plain, atol=1e-4)
    np.testing.assert_allclose(similar(source, noisy @ other), plain, atol=1e-4)


def test_the_power_counts_directions_by_their_strength():
    """Diagonal anchors: singular values 4 and 1 by hand; with power .5, row (1, 1) leans over."""
    points = np.array([[2, 0], [-2, 0], [0, 1], [0, -1]], np.float32)
    row = np.array([[1, 1]], np.float32)
    left, right = principal_pairs(row, row, points, points, np.ones(4), power=0.5)
    np.testing.assert_allclose(np.abs(left), normalise(np.array([[1, 0.5]])), atol=1e-6)
    np.testing.assert_allclose(left, right, atol=1e-6)
    assert principal_pairs(row, row, points, points, np.ones(4), rank=1)[0].shape == (1, 1)


def test_anchors_that_are_one_point_say_nothing():
    source, target = turned()
    left, right = principal_pairs(
        source, target, source[:1].repeat(5, axis=0), target[:5], np.ones(5)
    )
    assert left.shape == right.shape == (60, 1)
    assert not left.any()
    assert not right.any()


@pytest.mark.parametrize("seed", [100, 101, 102])
def test_a_cloud_grows_from_ten_seeds_of_which_two_are_wrong(overlapping, seed):
    data = overlapping(alone=(0, 0), seeds=10, wrong=2, seed=seed)
    problem = data.problem()
    assert np.count_nonzero(data.partner[data.seeds[:, 0]] != data.seeds[:, 1]) == 2
    growth = Growth()
    source, target, weight = problem.seed_source, problem.seed_target, np.ones(10)
    for number in range(growth.rounds(24)):
        links = growth.grow(problem.source, problem.target, source, target, weight, round_=number)
        source, target = problem.source[links.source_rows], problem.target[links.target_rows]
        weight = links.weight

    assert len(links) >= 198
    assert data.hits(links) >= 198


def test_some_of_the_anchors():
    anchors = Anchors(np.array([3, 5, 7]), np.array([1, 0, 2]), np.array([0.1, 0.2, 0.3]))
    for kept in (np.array([True, False, True]), np.array([0, 2])):
        some = anchors.select(kept)
        assert len(some) == 2
        assert some.source_rows.tolist() == [3, 7]
        assert some.target_rows.tolist() == [1, 2]
        assert some.weight.tolist() == [0.1, 0.3]
