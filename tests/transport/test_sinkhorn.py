"""Sinkhorn: marginals, symmetries, exact limits, POT, memory, and what it says when it fails."""

from __future__ import annotations

import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ot import sinkhorn as pot_sinkhorn
from ot.unbalanced import sinkhorn_unbalanced
from scipy.optimize import linear_sum_assignment
from threadpoolctl import threadpool_limits

from isthmus.errors import (
    CountMismatchError,
    DegenerateVectorsError,
    NotConvergedError,
    ParameterError,
)
from isthmus.transport import SimilarityCost, StoredCost, cosine_cost, sinkhorn
from isthmus.transport.sinkhorn import default_epsilon

MODULE = sys.modules["isthmus.transport.sinkhorn"]  # the package's `sinkhorn` is the function
EVERY = slice(None)
quick = settings(derandomize=True, deadline=None, max_examples=20)
sizes = st.integers(2, 25)
seeds = st.integers(0, 10**6)


def cloud_cost(seed, n=30, m=20, dim=4, noise=0.3):
    """Rows of two sides that are the same up to noise."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((max(n, m), dim))
    return cosine_cost(rows[:n], rows[:m] + noise * rng.standard_normal((m, dim)))


def plan_of(coupling):
    return coupling.block(EVERY, EVERY).astype(np.float64)


def masses(seed, n):
    mass = np.random.default_rng(seed).random(n) + 0.1
    return mass / mass.sum()


# --- marginals and symmetries ----------------------------------------------------------------


@quick
@given(seeds, sizes, sizes)
def test_marginals_are_met(seed, n, m):
    mu, nu = masses(seed, n), masses(seed + 1, m)
    found = sinkhorn(cloud_cost(seed, n, m), epsilon=0.1, source_mass=mu, target_mass=nu)
    assert found.converged
    plan = plan_of(found)
    np.testing.assert_allclose(plan.sum(axis=1), mu, atol=1e-4)
    np.testing.assert_allclose(plan.sum(axis=0), nu, atol=1e-4)
    np.testing.assert_allclose(found.mass("source"), plan.sum(axis=1), rtol=1e-5)
    np.testing.assert_allclose(found.mass("target"), plan.sum(axis=0), rtol=1e-5)
    off = np.abs(plan.sum(axis=0) - nu).sum()
    assert found.error == pytest.approx(off, abs=1e-5)


@quick
@given(seeds, sizes, sizes)
def test_swapping_the_sides_transposes_the_plan(seed, n, m):
    cost = cloud_cost(seed, n, m)
    there = sinkhorn(cost, epsilon=0.5, tolerance=1e-6)
    back = sinkhorn(cost.transpose(), epsilon=0.5, tolerance=1e-6)
    np.testing.assert_allclose(n * m * plan_of(back), n * m * plan_of(there).T, atol=1e-3)
    shift = np.median(there.source_potential - back.target_potential)  # f + c, g - c is the same
    np.testing.assert_allclose(there.source_potential - shift, back.target_potential, atol=1e-3)
    np.testing.assert_allclose(there.target_potential + shift, back.source_potential, atol=1e-3)
    same = there.transpose().transpose()
    assert np.array_equal(plan_of(same), plan_of(there))


@quick
@given(seeds)
def test_the_order_of_rows_does_not_matter(seed):
    cost = cloud_cost(seed)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(30), rng.permutation(20)
    plain = sinkhorn(cost, epsilon=0.05, tolerance=1e-6)
    shuffled = sinkhorn(
        SimilarityCost(cost.source[rows], cost.target[columns]), epsilon=0.05, tolerance=1e-6
    )
    np.testing.assert_allclose(plan_of(shuffled), plan_of(plain)[rows][:, columns], atol=1e-5)


# --- limits ----------------------------------------------------------------------------------


@quick
@given(seeds, st.integers(2, 9))
def test_a_small_epsilon_gives_the_exact_assignment(seed, n):
    matrix = np.random.default_rng(seed).random((n, n))
    rows, columns = linear_sum_assignment(matrix)
    found = sinkhorn(StoredCost(matrix), epsilon=2e-3, scaling=9, max_iterations=20_000)
    spent = n * (plan_of(found) * matrix).sum()
    assert spent == pytest.approx(matrix[rows, columns].sum(), abs=n * 2e-3 * np.log(n) + 0.01)
    assert spent >= matrix[rows, columns].sum() - 0.01
    ordered = np.sort([matrix[i, p].sum() for i, p in _swaps(rows, columns)])
    if n > 2 and ordered[0] - matrix[rows, columns].sum() > 0.1:  # no second best near by
        assert np.array_equal(found.nearest(1)[0][:, 0], columns)


def _swaps(rows, columns):
    """Yield the assignment with each two partners swapped."""
    for i in range(len(rows)):
        for j in range(i):
            swapped = columns.copy()
            swapped[[i, j]] = swapped[[j, i]]
            yield rows, swapped


def test_a_huge_epsilon_gives_the_product_of_the_marginals():
    mu, nu = masses(0, 30), masses(1, 20)
    found = sinkhorn(cloud_cost(0), epsilon=1e6, source_mass=mu, target_mass=nu)
    np.testing.assert_allclose(plan_of(found), np.outer(mu, nu), rtol=1e-4)
    assert len(found.errors) == 1


def test_a_tiny_epsilon_sums_lost_columns_again():
    matrix = np.ones((6, 6)) - np.eye(6)
    matrix[:, 5] += 0.9  # the nearest of no row: its entries are lost beside the others
    found = sinkhorn(StoredCost(matrix), epsilon=1e-5)
    assert found.converged
    np.testing.assert_allclose(plan_of(found), np.eye(6) / 6, atol=1e-3)
    assert np.isfinite(found.target_potential).all()


def test_lost_columns_come_back_in_one_step():
    matrix = np.random.default_rng(0).random((40, 30))
    matrix[:, :3] += 5.0
    found = sinkhorn(StoredCost(matrix), epsilon=1e-3, max_iterations=3)
    assert found.mass("target")[:3].min() > 1e-4  # 5,000 epsilons, which clipped steps never cross


# --- against POT -----------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "m", "epsilon"), [(30, 20, 0.1), (25, 60, 0.03), (50, 50, 0.01)])
def test_plans_equal_those_of_pot(n, m, epsilon):
    cost = cloud_cost(3, n, m)
    mu, nu = masses(0, n), masses(1, m)
    matrix = cost.tile(EVERY, EVERY).astype(np.float64)
    theirs = pot_sinkhorn(
        mu, nu, matrix, epsilon, method="sinkhorn_log", stopThr=1e-10, numItermax=50_000
    )
    mine = sinkhorn(
        cost, epsilon=epsilon, source_mass=mu, target_mass=nu, tolerance=1e-6, max_iterations=20_000
    )
    assert mine.converged
    np.testing.assert_allclose(plan_of(mine), theirs, atol=1e-5 * theirs.max())


@pytest.mark.parametrize("relaxation", [0.05, 0.5, 5.0])
@pytest.mark.parametrize("epsilon", [0.05, 0.2])
def test_unbalanced_plans_equal_those_of_pot(relaxation, epsilon):
    cost = cloud_cost(4)
    mu, nu = masses(0, 30), 2 * masses(1, 20)  # one side with twice the mass
    matrix = cost.tile(EVERY, EVERY).astype(np.float64)
    theirs = sinkhorn_unbalanced(
        mu,
        nu,
        matrix,
        epsilon,
        relaxation,
        method="sinkhorn_stabilized",
        stopThr=1e-13,
        numItermax=50_000,
    )
    mine = sinkhorn(
        cost,
        epsilon=epsilon,
        source_mass=mu,
        target_mass=nu,
        relaxation=relaxation,
        tolerance=1e-7,
        max_iterations=5_000,
    )
    np.testing.assert_allclose(plan_of(mine), theirs, atol=1e-4 * theirs.max())


def test_marginals_give_way_by_relaxation():
    rng = np.random.default_rng(0)
    shared = np.eye(6)[:3] + 0.01 * rng.standard_normal((3, 6))
    alone = -np.eye(6)[3:]  # fits nothing on the other side
    cost = cosine_cost(np.concatenate((shared, alone)), shared)
    kept = [sinkhorn(cost, epsilon=0.05, relaxation=rho).mass() for rho in (0.02, 0.2, 100.0)]
    assert kept[0][:3].min() > 5 * kept[0][3:].max()
    assert kept[0][3:].max() < kept[1][3:].max() < kept[2][3:].max()
    np.testing.assert_allclose(kept[2], 1 / 6, rtol=0.02)


@pytest.mark.parametrize("relaxation", [1e-6, 1e6])
def test_extreme_relaxations_stay_finite(relaxation):
    found = sinkhorn(cloud_cost(0), epsilon=0.05, relaxation=relaxation)
    assert np.isfinite(found.source_potential).all()
    assert np.isfinite(found.errors).all()
    assert found.converged


# --- the same numbers ------------------------------------------------------------------------


def test_one_thread_and_two_give_the_same_bits():
    cost = cloud_cost(0, 1_500, 700, dim=30)
    with threadpool_limits(1):
        one = sinkhorn(cost, epsilon=0.05)
    with threadpool_limits(2):
        two = sinkhorn(cost, epsilon=0.05)
    assert np.array_equal(one.source_potential, two.source_potential)
    assert np.array_equal(one.target_potential, two.target_potential)
    assert np.array_equal(one.errors, two.errors)


def test_small_tiles_change_rounding_alone(monkeypatch):
    cost = cloud_cost(0, 200, 150)
    large = sinkhorn(cost, epsilon=0.05)
    monkeypatch.setattr(MODULE, "TILE", 1)
    monkeypatch.setattr("isthmus.transport.coupling.TILE", 1)
    small = sinkhorn(cost, epsilon=0.05)
    np.testing.assert_allclose(plan_of(small), plan_of(large), atol=1e-6)
    assert np.array_equal(small.nearest(3)[0], large.nearest(3)[0])
    np.testing.assert_allclose(small.entropy(), large.entropy(), atol=1e-5)


def test_the_plan_is_never_in_memory():
    cost = cloud_cost(0, 4_000, 4_000, dim=16, noise=0.5)
    with threadpool_limits(1):
        tracemalloc.start()
        found = sinkhorn(cost, eta=0.3, max_iterations=3)
        found.nearest(5)
        found.entropy("target")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    entries = 4 * 4_000 * 4_000  # bytes of the plan in float32
    assert peak < 0.75 * entries
    assert peak < 50e6


def test_memory_of_the_solver_follows_the_tile(monkeypatch):
    monkeypatch.setattr(MODULE, "TILE", 1 << 16)
    monkeypatch.setattr("isthmus.transport.cost.SAMPLED", 64)
    cost = cloud_cost(0, 4_000, 4_000, dim=16, noise=0.5)
    with threadpool_limits(1):
        tracemalloc.start()
        sinkhorn(cost, eta=0.3, max_iterations=2)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 4e6


# --- how it gets there -----------------------------------------------------------------------


def test_the_error_curve_ends_at_the_tolerance():
    found = sinkhorn(cloud_cost(1), epsilon=0.02, tolerance=1e-3)
    assert found.converged
    assert found.error == found.errors[-1] <= 1e-3
    assert (found.errors[:-1] > 1e-3).all()
    tighter = sinkhorn(cloud_cost(1), epsilon=0.02, tolerance=1e-5)
    assert len(tighter.errors) > len(found.errors)


def test_a_warm_start_saves_iterations():
    cost = cloud_cost(2, 60, 60)
    cold = sinkhorn(cost, epsilon=0.02)
    warm = sinkhorn(cost, epsilon=0.02, start=cold)
    assert len(warm.errors) <= 2
    near = sinkhorn(cost, epsilon=0.022, start=cold)
    assert len(near.errors) < len(sinkhorn(cost, epsilon=0.022).errors)


def test_a_start_from_far_away_does_not_overflow():
    rng = np.random.default_rng(0)
    far = sinkhorn(StoredCost(100 * rng.standard_normal((30, 20))), epsilon=0.5)
    cost = cloud_cost(0)
    found = sinkhorn(cost, epsilon=0.05, start=far, tolerance=1e-5)
    plain = sinkhorn(cost, epsilon=0.05, tolerance=1e-5)
    np.testing.assert_allclose(plan_of(found), plan_of(plain), atol=1e-4)


def test_scaling_comes_to_the_same_plan():
    cost = cloud_cost(5)
    plain = sinkhorn(cost, epsilon=0.01, tolerance=1e-6, max_iterations=5_000)
    scaled = sinkhorn(cost, epsilon=0.01, scaling=5, tolerance=1e-6, max_iterations=5_000)
    assert scaled.epsilon == plain.epsilon
    np.testing.assert_allclose(600 * plan_of(scaled), 600 * plan_of(plain), atol=5e-3)
    few = sinkhorn(cost, epsilon=0.01, scaling=9, max_iterations=4)
    assert len(few.errors) == 4


def relaxed_and_plain(cost, monkeypatch, **options):
    found = sinkhorn(cost, max_iterations=3_000, **options)
    with monkeypatch.context() as patch:
        patch.setattr(MODULE, "MOST_RELAXED", 1.0)
        plain = sinkhorn(cost, max_iterations=3_000, **options)
    return found, plain


@pytest.mark.parametrize(
    "options",
    [{"epsilon": 0.05}, {"epsilon": 0.02}, {"epsilon": 0.03, "relaxation": 3.0}, {"epsilon": 1e-3}],
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_over_relaxation_settles_sooner_at_the_same_plan(options, seed, monkeypatch):
    cost = cloud_cost(seed, 80, 80, dim=6)
    found, plain = relaxed_and_plain(cost, monkeypatch, tolerance=1e-5, **options)
    assert found.converged
    assert len(found.errors) <= len(plain.errors) + 5
    if plain.converged:
        scale = plan_of(plain).max()
        np.testing.assert_allclose(plan_of(found) / scale, plan_of(plain) / scale, atol=5e-3)


def test_slow_problems_take_several_times_fewer_iterations(monkeypatch):
    found, plain = relaxed_and_plain(cloud_cost(0, 200, 200, dim=8), monkeypatch, epsilon=0.02)
    assert found.converged
    assert 5 * len(found.errors) < len(plain.errors)


def speed(errors):
    watched = MODULE._Speed()
    omegas = [watched.omega]
    for error in errors:
        watched.watch(error)
        omegas.append(watched.omega)
    return omegas


def test_the_speed_follows_the_rate():
    omegas = speed(0.9 ** np.arange(40))
    assert omegas[:10] == [1.0] * 10
    assert omegas[11] == pytest.approx(2 / (1 + np.sqrt(0.1)))
    assert max(speed(0.999999 ** np.arange(40))) == MODULE.MOST_RELAXED


def test_the_speed_goes_back_where_the_error_rises():
    omegas = speed([*(0.9 ** np.arange(11)), *np.linspace(0.4, 0.9, 15)])
    assert omegas[11] > 1.0
    assert omegas[-1] == 1.0


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_error_of_a_full_step_falls_under_over_relaxation(seed):
    errors = sinkhorn(cloud_cost(seed, 150, 150, dim=8), epsilon=0.02, max_iterations=3_000).errors
    later = errors[12:]
    assert (later[5:] < later[:-5]).mean() > 0.9


# --- negative costs, one row, equal rows -----------------------------------------------------


def test_a_constant_added_to_the_cost_changes_nothing():
    matrix = np.random.default_rng(0).standard_normal((20, 15))
    plain = sinkhorn(StoredCost(matrix), epsilon=0.3, tolerance=1e-6)
    lower = sinkhorn(StoredCost(matrix - 40), epsilon=0.3, tolerance=1e-6)
    assert plain.converged
    np.testing.assert_allclose(plan_of(lower), plan_of(plain), atol=1e-5)
    with pytest.raises(DegenerateVectorsError, match="a median cost over 0"):
        sinkhorn(StoredCost(matrix - 40))


def test_one_row_a_side():
    cost = cloud_cost(0, 1, 20)
    np.testing.assert_allclose(plan_of(sinkhorn(cost)), np.full((1, 20), 0.05), atol=1e-5)
    np.testing.assert_allclose(plan_of(sinkhorn(cost.transpose())), 0.05, atol=1e-5)
    alone = sinkhorn(cosine_cost([[1.0, 0.0]], [[0.0, 1.0]]))
    assert plan_of(alone) == pytest.approx(1.0)
    assert alone.entropy().tolist() == pytest.approx([0.0])
    assert alone.matched_rows().confidence.tolist() == pytest.approx([1.0])


def test_rows_that_are_all_alike():
    cost = cosine_cost(np.ones((4, 3)), np.ones((5, 3)))
    with pytest.raises(DegenerateVectorsError, match="a median cost over 0"):
        sinkhorn(cost)
    with pytest.raises(DegenerateVectorsError, match="set epsilon"):
        default_epsilon(cost, eta=0.02, seed=0)
    found = sinkhorn(cost, epsilon=0.1)
    np.testing.assert_allclose(plan_of(found), 1 / 20, rtol=1e-5)
    np.testing.assert_allclose(found.entropy(), 1.0, rtol=1e-5)


def test_epsilon_is_a_share_of_the_median():
    cost = cloud_cost(0)
    median = np.median(cost.tile(EVERY, EVERY))
    assert sinkhorn(cost, eta=0.3).epsilon == pytest.approx(0.3 * median)
    assert default_epsilon(cost, eta=0.3, seed=1) == pytest.approx(0.3 * median)


def test_masses_are_scaled_to_each_other_where_one_is_given():
    found = sinkhorn(cloud_cost(0), epsilon=0.2, source_mass=np.full(30, 3.0))
    assert found.target_mass.sum() == pytest.approx(90.0)
    assert found.mass("target").sum() == pytest.approx(90.0, rel=1e-4)
    large = sinkhorn(cloud_cost(0), epsilon=0.2, source_mass=np.full(30, 1e30))
    assert large.converged


# --- what cannot be done ---------------------------------------------------------------------


def test_a_plan_that_did_not_converge_says_so():
    found = sinkhorn(cloud_cost(0, 60, 60), epsilon=1e-3, max_iterations=4)
    assert not found.converged
    assert len(found.errors) == 4
    expected = r"marginals within 0.01 of the mass.*after 4 iterations at epsilon 0.001.*raise eps"
    with pytest.raises(NotConvergedError, match=expected):
        found.require()
    found.require(1.0)
    assert "4 iterations" in repr(found)
    # rows are exact after the last step, whatever happened before
    np.testing.assert_allclose(found.mass(), 1 / 60, rtol=1e-3)


def test_an_epsilon_beyond_float32_is_refused():
    cost = cloud_cost(0)
    with pytest.raises(ParameterError, match=r"have seven digits; got 1e-08. Do: raise epsilon"):
        sinkhorn(cost, epsilon=1e-8)
    with pytest.raises(ParameterError, match="subtract from the costs what they have in common"):
        sinkhorn(StoredCost(np.random.default_rng(0).random((3, 3)) + 1e6), epsilon=0.1)


def test_masses_that_cannot_be_used_are_named():
    cost = cloud_cost(0)
    with pytest.raises(ParameterError, match=r"one mass.*got 1 on the source side and 2 on the"):
        sinkhorn(cost, source_mass=np.full(30, 1 / 30), target_mass=np.full(20, 0.1))
    for bad in (0.0, -1.0, np.nan, np.inf):
        mass = np.ones(20)
        mass[3] = bad
        with pytest.raises(ParameterError, match="numbers over 0 in target_mass"):
            sinkhorn(cost, target_mass=mass)
    with pytest.raises(CountMismatchError, match=r"source_mass of shape \(30,\); got \(20,\)"):
        sinkhorn(cost, source_mass=np.ones(20))
    with pytest.raises(CountMismatchError, match=r"a start of shape \(30, 20\); got \(30, 10\)"):
        sinkhorn(cost, start=sinkhorn(cloud_cost(0, 30, 10)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eta": 0.0}, "eta over 0"),
        ({"epsilon": -1.0}, "epsilon over 0"),
        ({"epsilon": np.nan}, "epsilon over 0"),
        ({"relaxation": 0.0}, "relaxation over 0"),
        ({"tolerance": 1.5}, "tolerance from 0 to 1"),
        ({"max_iterations": 0}, "max_iterations as a whole number of at least 1"),
        ({"scaling": -1}, "scaling as a whole number of at least 0"),
    ],
)
def test_parameters_out_of_range_are_named(options, message):
    with pytest.raises(ParameterError, match=message):
        sinkhorn(cloud_cost(0), **options)


@pytest.mark.parametrize("factor", [0.5, 0.3, 0.15, 0.01])
def test_a_fall_faster_than_the_over_relaxation_allows_leaves_it(factor):
    speed = MODULE._Speed()
    speed.omega = 1.52

    for number in range(30):
        speed.watch(factor**number)

    assert speed.omega == pytest.approx(1.52, abs=0.01)


@pytest.mark.parametrize("halvings", [1, 5, 20])
def test_many_halvings_lead_to_the_same_plan(halvings):
    cost = cloud_cost(0, 60, 60)
    plain = sinkhorn(cost, eta=0.05)
    scaled = sinkhorn(cost, eta=0.05, scaling=halvings)

    assert scaled.converged
    np.testing.assert_allclose(plan_of(scaled), plan_of(plain), atol=2e-6)


@pytest.mark.parametrize("offset", [1e3, 1e8, 1e12])
def test_what_the_potentials_of_a_start_have_in_common_does_not_matter(offset):
    cost = cloud_cost(0, 60, 60)
    plain = sinkhorn(cost, eta=0.05)
    moved = replace(
        plain,
        source_potential=plain.source_potential - offset,
        target_potential=plain.target_potential + offset,
    )

    again = sinkhorn(cost, eta=0.05, start=moved)

    assert again.converged
    np.testing.assert_allclose(plan_of(again), plan_of(plain), atol=2e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_a_start_of_no_use_is_refused(value):
    cost = cloud_cost(0, 30, 30)
    plain = sinkhorn(cost, eta=0.05)
    broken = plain.target_potential.copy()
    broken[3] = value

    with pytest.raises(ParameterError, match="potentials lie within"):
        sinkhorn(cost, eta=0.05, start=replace(plain, target_potential=broken))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"eta": None}, "eta over 0; got None"),
        ({"scaling": 21}, "scaling"),
        ({"source_mass": ["a"] * 30}, "numbers in source_mass"),
        ({"source_mass": [1e36] * 30}, "from 1e-30 to 1e\\+30"),
        ({"target_mass": [1e-300] * 30}, "from 1e-30 to 1e\\+30"),
    ],
)
def test_more_numbers_out_of_range(given, text):
    with pytest.raises(ParameterError, match=text):
        sinkhorn(cloud_cost(0, 30, 30), **given)


def test_numbers_of_numpy_are_numbers():
    cost = cloud_cost(0, 30, 30)

    found = sinkhorn(cost, eta=np.float32(0.1))

    assert found.epsilon == pytest.approx(sinkhorn(cost, eta=0.1).epsilon, rel=1e-6)
