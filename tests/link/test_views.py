"""Schedules and views: how many, how large, and how far apart their points are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus._linalg import normalise
from isthmus.link.views import furthest_points, random_points, schedule

PAPER = {"base_views": 5, "fraction": 0.4, "growth": 0.3}


def cloud(n: int, *, dim: int = 6, seed: int = 0) -> np.ndarray:
    return normalise(np.random.default_rng(seed).standard_normal((n, dim)))


# --- schedule --------------------------------------------------------------------------------


def test_without_growth_it_is_the_base():
    """Appendix B.2: u(1) = 0, g = 1 is the initial state."""
    assert schedule(15, 15, **PAPER).views == 5
    assert schedule(15, 15, **PAPER).size == 6  # 0.4 * 15


def test_by_hand_after_a_hundredfold_growth():
    """sf = 1 + 0.3 ln 100 = 2.3816: ceil(11.908) views of ceil(251.9) anchors."""
    made = schedule(1_500, 15, **PAPER)
    assert (made.views, made.size) == (12, 252)


def test_rounding_up_forgives_rounding_errors():
    assert math.ceil(0.55 * 100) == 56
    assert schedule(100, 100, base_views=5, fraction=0.55, growth=0.3).size == 55


@given(st.integers(3, 60), st.integers(1, 10_000), st.floats(0, 2), st.floats(0.05, 1))
def test_an_anchor_is_in_about_as_many_views_as_ever(seeds, grown, growth, fraction):
    """Appendix B.2, objective O2: m_t rho_t is m_0 rho_0 but for rounding up."""
    anchors = seeds + grown
    made = schedule(anchors, seeds, base_views=5, fraction=fraction, growth=growth)
    coverage = made.views * made.size / anchors
    factor = 1 + growth * math.log(anchors / seeds)
    exact = 5 * fraction
    assert exact - 1e-6 <= coverage <= (5 * factor + 1) * (fraction / factor + 1 / anchors) + 1e-6


def test_fixed_is_growth_zero():
    made = schedule(1_500, 15, base_views=5, fraction=0.4, growth=0.0)
    assert (made.views, made.size) == (5, 600)


# --- furthest points -------------------------------------------------------------------------


def furthest_by_definition(vectors: np.ndarray, start: int, size: int) -> list[int]:
    chosen = [start]
    while len(chosen) < size:
        apart = 1.0 - vectors @ vectors[chosen].T
        away = apart.min(axis=1)
        away[chosen] = -1.0
        chosen.append(int(away.argmax()))
    return sorted(chosen)


@settings(max_examples=25)
@given(st.integers(2, 40), st.integers(1, 12), st.integers(1, 5), st.integers(0, 99))
def test_each_view_is_gonzalez_from_its_start(n, size, views, seed):
    vectors, size = cloud(n, seed=seed), min(size, n)
    drawn = furthest_points(vectors, views=views, size=size, rng=np.random.default_rng(seed))
    starts = np.random.default_rng(seed).choice(n, size=views, replace=views > n)
    assert drawn.tolist() == [furthest_by_definition(vectors, start, size) for start in starts]


def test_a_view_of_all_points_has_each_once_even_where_points_are_equal():
    vectors = np.repeat(cloud(4), 3, axis=0)
    drawn = furthest_points(vectors, views=3, size=12, rng=np.random.default_rng(0))
    assert (drawn == np.arange(12)).all()


def test_equal_points_come_last():
    vectors = np.repeat(cloud(5), 4, axis=0)
    drawn = furthest_points(vectors, views=4, size=5, rng=np.random.default_rng(0))
    assert (np.sort(drawn // 4, axis=1) == np.arange(5)).all()


def test_given_points_are_kept_away_from():
    vectors = normalise(np.array([[1, 0], [0.9, 0.1], [0.7, 0.7], [0, 1.0], [-1, 0]]))
    kept = {"views": 5, "size": 2, "rng": np.random.default_rng(0)}
    drawn = furthest_points(vectors, given=np.array([[-1, 0]], np.float32), **kept)
    assert all(0 in view or 4 not in view for view in drawn.tolist())


def test_starts_differ_while_they_can():
    drawn = furthest_points(cloud(6), views=6, size=1, rng=np.random.default_rng(0))
    assert sorted(drawn[:, 0].tolist()) == list(range(6))


def test_they_are_further_apart_than_random_ones():
    vectors = cloud(400, dim=4)

    def least_distance(drawn):
        apart = [1 - vectors[view] @ vectors[view].T + 2 * np.eye(len(view)) for view in drawn]
        return np.mean([each.min() for each in apart])

    shape = {"views": 5, "size": 20}
    furthest = furthest_points(vectors, rng=np.random.default_rng(0), **shape)
    uniform = random_points(400, rng=np.random.default_rng(0), **shape)
    assert least_distance(furthest) > 5 * least_distance(uniform)


@pytest.mark.parametrize(("n", "size"), [(9, 4), (9, 9), (1, 1)])
def test_random_views_hold_each_point_once(n, size):
    drawn = random_points(n, views=6, size=size, rng=np.random.default_rng(0))
    assert drawn.shape == (6, size)
    assert (np.diff(drawn, axis=1) > 0).all()
    assert drawn.min() >= 0
    assert drawn.max() < n
