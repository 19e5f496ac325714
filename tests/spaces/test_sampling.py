"""Which pairs each strategy chooses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import ParameterError, TooFewPairsError, UnknownNameError, ZeroVectorError
from isthmus.spaces.sampling import STRATEGIES, choose, draw_rows, hard_range, nearest_distance

PROPERTY = settings(derandomize=True, deadline=None, max_examples=15)
every_strategy = pytest.mark.parametrize("strategy", sorted(STRATEGIES))


def blobs(*, sizes, seed=0, width=0.05):
    """Make groups of points around far-apart centres; returns points and group of each."""
    rng = np.random.default_rng(seed)
    centres = 10 * np.eye(len(sizes))
    group = np.repeat(np.arange(len(sizes)), sizes)
    return centres[group] + width * rng.standard_normal((len(group), len(sizes))), group


def test_the_strategies_of_the_design():
    assert set(STRATEGIES) == {"random", "fps", "kmeans", "nearest", "coverage"}


@every_strategy
@PROPERTY
@given(
    n_all=st.integers(1, 40),
    share=st.floats(0, 1),
    metric=st.sampled_from(["cosine", "dot", "l2"]),
    repeats=st.booleans(),
    seed=st.integers(0, 5),
)
def test_every_choice_is_n_different_rows_and_the_same_again(  # noqa: PLR0917 - drawn by name
    strategy, n_all, share, metric, repeats, seed
):
    points = np.random.default_rng(seed).standard_normal((n_all, 4)).astype(np.float32)
    if repeats:
        points[:] = points[0]
    before = points.copy()
    n = max(1, round(share * n_all))
    rows = choose(points, n, strategy=strategy, metric=metric, seed=seed)
    assert rows.dtype == np.int64
    assert len(set(rows.tolist())) == len(rows) == n
    assert set(rows.tolist()) <= set(range(n_all))
    assert choose(points, n, strategy=strategy, metric=metric, seed=seed).tolist() == rows.tolist()
    assert (points == before).all()


@every_strategy
def test_other_seeds_choose_other_rows(strategy):
    points = np.random.default_rng(0).standard_normal((200, 8))
    first, second = (choose(points, 20, strategy=strategy, seed=seed) for seed in (0, 1))
    assert set(first.tolist()) != set(second.tolist())


def test_furthest_points_are_furthest():
    line = np.arange(11.0)[:, None]
    rows = choose(line, 3, strategy="fps", metric="l2", seed=0)
    first, second, third = rows.tolist()
    assert second == (0 if first > 5 else 10)
    nearest = np.minimum(abs(np.arange(11) - first), abs(np.arange(11) - second))
    assert nearest[third] == nearest.max()


def test_furthest_points_visit_every_group_before_any_twice():
    points, group = blobs(sizes=[50, 3, 3, 50, 2])
    assert sorted(group[choose(points, 5, strategy="fps", metric="l2")].tolist()) == [0, 1, 2, 3, 4]


def test_furthest_points_grow_by_adding():
    points = np.random.default_rng(0).standard_normal((60, 5))
    few, many = (choose(points, n, strategy="fps").tolist() for n in (10, 30))
    assert many[:10] == few


def test_centroids_stand_for_their_groups():
    points, group = blobs(sizes=[30, 30, 30, 30])
    rows = choose(points, 4, strategy="kmeans", metric="l2", seed=3)
    for row in rows:
        members = points[group == group[row]]
        distance = np.linalg.norm(members - members.mean(axis=0), axis=1)
        own = np.linalg.norm(points[row] - members.mean(axis=0))
        assert own <= np.median(distance)
    assert len(set(group[rows].tolist())) >= 3


def test_the_nearest_are_one_point_and_its_neighbours():
    points = np.random.default_rng(0).standard_normal((100, 3))
    rows = choose(points, 10, strategy="nearest", metric="l2", seed=4)
    order = np.argsort(np.linalg.norm(points - points[rows[0]], axis=1))
    assert rows.tolist() == order[:10].tolist()


def test_the_nearest_cover_least_and_the_furthest_spread_most():
    points = np.random.default_rng(0).standard_normal((500, 6))
    spread = {
        strategy: nearest_distance(
            points, points[choose(points, 40, strategy=strategy, metric="l2")]
        ).max()
        for strategy in STRATEGIES
    }
    assert max(spread, key=spread.get) == "nearest"
    assert min(spread, key=spread.get) == "fps"


def test_coverage_balances_the_groups():
    points, group = blobs(sizes=[400, 40, 40, 20])
    counts = np.bincount(group[choose(points, 60, strategy="coverage", metric="l2")])
    random = np.bincount(group[choose(points, 60, strategy="random")], minlength=4)
    assert counts.min() >= 8
    assert random.max() > counts.max()


def test_coverage_takes_as_many_hard_points_as_others():
    points = np.random.default_rng(0).standard_normal((2_000, 6))
    closeness = nearest_distance(points, points, exclude=np.arange(2_000))
    low, high = hard_range(closeness)
    hard = (closeness > low) & (closeness <= high)
    assert hard.mean() == pytest.approx(0.25, abs=0.001)
    share = hard[choose(points, 200, strategy="coverage", metric="l2")].mean()
    assert share == pytest.approx(0.5, abs=0.05)
    assert hard[choose(points, 200, strategy="random")].mean() < 0.35


def test_equal_rows_are_not_hard_negatives():
    points = np.random.default_rng(0).standard_normal((100, 4))
    points[:5] = points[5]
    closeness = nearest_distance(points, points, exclude=np.arange(100))
    low, high = hard_range(closeness)
    assert not ((closeness > low) & (closeness <= high))[:6].any()


def test_coverage_looks_at_a_part_of_very_many_pairs(monkeypatch):
    monkeypatch.setattr("isthmus.spaces.sampling.POOL_ROWS", 50)
    points = np.random.default_rng(0).standard_normal((400, 4))
    for n in (10, 120, 400):
        assert len(set(choose(points, n, strategy="coverage").tolist())) == n


@pytest.mark.parametrize(
    ("n", "error", "message"),
    [
        (0, ParameterError, "at least 1; got 0"),
        (-3, ParameterError, "at least 1; got -3"),
        (1.5, ParameterError, "got 1.5"),
        (True, ParameterError, "got True"),
        (4, TooFewPairsError, "at least 4 pairs to choose from; got 3"),
    ],
)
def test_a_bad_number(n, error, message):
    with pytest.raises(error, match=message):
        choose(np.eye(3), n, strategy="random")


def test_an_unknown_strategy():
    with pytest.raises(UnknownNameError, match="coverage, fps, kmeans, nearest, random; got 'far'"):
        choose(np.eye(3), 1, strategy="far")


def test_rows_without_direction():
    with pytest.raises(ZeroVectorError, match="row 0"):
        choose(np.zeros((3, 2)), 1, strategy="fps")
    assert len(choose(np.zeros((3, 2)), 2, strategy="fps", metric="dot")) == 2


def test_distances_of_directions():
    found = nearest_distance(np.array([[2.0, 0.0]]), np.array([[0.0, 3.0]]), metric="cosine")
    assert found.tolist() == pytest.approx([2**0.5])
    alone = nearest_distance(np.array([[1.0]]), np.array([[1.0]]), exclude=np.array([0]))
    assert alone.tolist() == [np.inf]


def test_rows_are_drawn_by_seed_and_in_order():
    assert draw_rows(5, 10, seed=0).tolist() == [0, 1, 2, 3, 4]
    drawn = draw_rows(1000, 10, seed=1)
    assert drawn.tolist() == sorted(set(drawn.tolist())) == draw_rows(1000, 10, seed=1).tolist()
    assert drawn.tolist() != draw_rows(1000, 10, seed=2).tolist()
