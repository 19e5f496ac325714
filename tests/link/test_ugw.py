"""Unbalanced Gromov-Wasserstein: a plan that no turn of a cloud changes, and mass left behind."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import MissingExtraError, ParameterError
from isthmus.link import UGW, LinkProblem
from isthmus.link.ugw import _distances, _start, _with_seeds

pytest.importorskip("ot")


def cloud(n=60, dim=12, seed=0):
    return np.random.default_rng(seed).standard_normal((n, dim))


def test_distances_have_mean_one_and_no_self():
    distances = _distances(np.array([[1, 0], [0, 1], [-1, 0]], np.float32))

    np.testing.assert_allclose(distances, 9 * np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]]) / 8)


def test_the_start_has_mass_one_and_leans_to_the_seeds():
    start = _start(4, 5, np.array([[1, 2], [3, 0]]), 0.5)

    assert np.isclose(start.sum(), 1)
    assert np.isclose(start[1, 2], 0.5 / 2 + 0.5 / 20)
    assert np.isclose(start[0, 0], 0.5 / 20)


def test_no_turn_of_a_cloud_changes_the_links():
    source, target = cloud(), cloud()[::-1] + 0.1 * cloud(seed=1)
    turn = np.linalg.qr(cloud(12, 12, seed=2))[0]
    seeds = [(row, 59 - row) for row in range(10)]

    plain = UGW().link(LinkProblem.of_rows(source, target, seeds))
    turned = UGW().link(LinkProblem.of_rows(source @ turn, target, seeds))

    assert np.mean(plain.source_rows + plain.target_rows == 59) > 0.95
    np.testing.assert_array_equal(plain.source_rows, turned.source_rows)
    np.testing.assert_array_equal(plain.target_rows, turned.target_rows)


def test_a_lower_relaxation_leaves_more_mass_behind():
    problem = LinkProblem.of_rows(cloud(), cloud(50, seed=3), [(0, 0), (1, 1), (2, 2)])

    masses = [UGW(relaxation=rho).plan(problem).sum() for rho in (0.3, 0.1, 0.01)]

    assert masses == sorted(masses, reverse=True)
    assert masses[-1] < 0.9 * masses[0]


def test_seeds_from_elsewhere_are_rows_only_while_it_runs():
    own, elsewhere = cloud(), cloud(9, seed=4)
    problem = LinkProblem.of_vectors(own[:40], own[20:], elsewhere, elsewhere)

    source, target, rows = _with_seeds(problem)

    assert (len(source), len(target)) == (49, 49)
    assert rows.tolist() == [[40 + row, 40 + row] for row in range(9)]
    assert UGW().plan(problem).shape == (40, 40)


def test_epsilon_is_doubled_until_float64_can_solve_it():
    problem = LinkProblem.of_rows(cloud(30, 2), cloud(30, 2), [(0, 0), (1, 1), (2, 2)])

    plan = UGW(epsilon=1e-6).plan(problem)

    assert np.isfinite(plan).all()
    assert plan.sum() > 0
    with pytest.raises(ParameterError, match="an epsilon that float64 can solve with; got 1e-300"):
        UGW(epsilon=1e-300).link(problem)


def test_clouds_that_are_too_large_are_refused_before_any_work():
    problem = LinkProblem.of_rows(cloud(), cloud(), [(0, 0), (1, 1), (2, 2)])
    with pytest.raises(ParameterError, match=r"at most 59 rows a side for ugw.*got 60"):
        UGW(max_rows=59).link(problem)
    assert len(UGW(max_rows=60).link(problem)) == 60


def test_without_pot_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ot.gromov", None)
    problem = LinkProblem.of_rows(cloud(), cloud(), [(0, 0), (1, 1), (2, 2)])
    with pytest.raises(MissingExtraError, match=r"isthmus\[ot\]"):
        UGW().link(problem)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"epsilon": 0.0}, "epsilon over 0"),
        ({"relaxation": 0.0}, "relaxation over 0"),
        ({"seed_mass": 1.0}, "seed_mass from 0 to under 1; got 1.0"),
        ({"seed_mass": float("nan")}, "seed_mass from 0 to under 1; got nan"),
        ({"max_iter": 0}, "max_iter as a whole number"),
        ({"max_iter_ot": 0}, "max_iter_ot as a whole number"),
        ({"max_rows": 0}, "max_rows as a whole number"),
    ],
)
def test_bad_parameters(params, text):
    with pytest.raises(ParameterError, match=text):
        UGW(**params)
