"""Costs: profiles as the paper defines them, the spectrum, folding, tiles, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from isthmus.errors import (
    CountMismatchError,
    DegenerateVectorsError,
    DimensionError,
    EmptyInputError,
    InvalidVectorsError,
    ParameterError,
    ZeroVectorError,
)
from isthmus.transport import AnchorProfile, StoredCost, anchor_cost, cosine_cost, sinkhorn
from isthmus.transport import cost as cost_module
from isthmus.transport.cost import sample_costs

quick = settings(derandomize=True, deadline=None, max_examples=25)
EVERY = slice(None)


def unit(rows):
    rows = np.asarray(rows, dtype=np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def clouds(seed=0, n=40, m=30, anchors=12, dims=(7, 5)):
    """Two sides that see the same hidden rows, and anchor pairs."""
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((max(n, m) + anchors, 6))
    sides = [hidden @ rng.standard_normal((6, dim)) for dim in dims]
    return sides[0][:n], sides[1][:m], sides[0][-anchors:], sides[1][-anchors:]


def profiles(rows, anchors, gamma):
    """Phi of equation 5, written out in float64."""
    rows, anchors = unit(rows), unit(anchors)
    values, vectors = np.linalg.eigh(anchors.T @ anchors / len(anchors))
    values = np.maximum(values, 1e-6 * values.mean())
    return rows @ (vectors * values ** (-gamma / 2)) @ vectors.T @ anchors.T


# --- the anchor-relative cost ----------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("anchors", [3, 12, 60])  # fewer than dimensions, between, folded
def test_the_cost_is_one_minus_the_cosine_of_profiles(gamma, anchors):
    X, Y, A, B = clouds(anchors=anchors)
    left, right = profiles(X, A, gamma), profiles(Y, B, gamma)
    expected = 1 - unit(left) @ unit(right).T
    cost = anchor_cost(X, Y, A, B, gamma=gamma)
    np.testing.assert_allclose(cost.tile(EVERY, EVERY), expected, atol=2e-5)
    assert cost.shape == (40, 30)


def test_many_anchors_are_folded_into_few_columns():
    X, Y, A, B = clouds(anchors=60)
    assert anchor_cost(X, Y, A, B).source.shape == (40, 5)
    assert anchor_cost(X, Y, A[:4], B[:4]).source.shape == (40, 4)


@pytest.mark.parametrize("gamma", [0.0, 1.0, 2.0])
def test_profiles_are_those_of_equation_5(gamma):
    X, _, A, _ = clouds(anchors=20)
    mine = AnchorProfile.of(A, gamma=gamma).transform(X)
    np.testing.assert_allclose(mine, profiles(X, A, gamma), rtol=1e-4, atol=1e-4)


def spectrum(rows):
    """Eigenvalues of the second moment of rows, the largest first."""
    return np.linalg.eigvalsh(rows.T @ rows / len(rows))[::-1]


@pytest.mark.parametrize("gamma", [0.0, 1.0, 2.0])
def test_gamma_interpolates_the_spectrum(gamma):
    # Proposition 1, (ii): with N anchors from the same distribution as the rows, the spectrum of
    # the profiles over N goes to that of the rows to the power 2 - gamma.
    rng = np.random.default_rng(1)
    scale = np.array([3.0, 2.0, 1.0, 0.5, 0.3])
    rows = unit(rng.standard_normal((20_000, 5)) * scale)
    anchors = unit(rng.standard_normal((20_000, 5)) * scale)
    matrix = AnchorProfile.of(anchors, gamma=gamma).matrix
    root = np.linalg.cholesky(rows.T @ rows / len(rows))
    found = np.linalg.eigvalsh(root.T @ matrix @ matrix.T @ root)[::-1] / len(anchors)
    np.testing.assert_allclose(found, spectrum(rows) ** (2 - gamma), rtol=0.1)


@quick
@given(st.integers(0, 10**6), st.integers(8, 40))
def test_gamma_one_keeps_the_spectrum_at_every_number_of_anchors(seed, anchors):
    # Proposition 1, (i): exact for any N of at least the number of dimensions.
    rng = np.random.default_rng(seed)
    rows, few = rng.standard_normal((50, 4)), rng.standard_normal((anchors, 4))
    profile = AnchorProfile.of(few, gamma=1.0).transform(rows).astype(np.float64)
    np.testing.assert_allclose(spectrum(profile)[:4] / anchors, spectrum(unit(rows)), rtol=1e-3)
    inner = profile @ profile.T / anchors
    np.testing.assert_allclose(inner, unit(rows) @ unit(rows).T, atol=1e-4)


def test_fewer_anchors_than_dimensions_are_clipped():
    rng = np.random.default_rng(0)
    X, A = rng.standard_normal((20, 30)), rng.standard_normal((5, 30))
    for gamma in (0.0, 1.0, 2.0):
        profile = AnchorProfile.of(A, gamma=gamma)
        assert np.isfinite(profile.power).all()
        values = np.linalg.eigvalsh(profile.power)
        mean = 1 / 30  # of the eigenvalues of M: its trace is 1
        assert values.max() == pytest.approx((1e-6 * mean) ** (-gamma / 2), rel=1e-6)
        cost = anchor_cost(X, X, A, A, gamma=gamma).tile(EVERY, EVERY)
        assert np.diag(cost) == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("gamma", [0.0, 1.0, 2.0])
def test_anchors_that_repeat_count_more_and_do_no_harm(gamma):
    X, Y, A, B = clouds(anchors=12)
    twice = anchor_cost(X, Y, np.tile(A, (2, 1)), np.tile(B, (2, 1)), gamma=gamma)
    once = anchor_cost(X, Y, A, B, gamma=gamma)
    np.testing.assert_allclose(twice.tile(EVERY, EVERY), once.tile(EVERY, EVERY), atol=1e-5)
    few = np.arange(12) % 3
    plan = sinkhorn(anchor_cost(X, Y, A[few], B[few], gamma=gamma))
    assert plan.converged


def test_one_anchor_alone_says_nothing():
    X, Y, A, B = clouds()
    alike = np.zeros(12, dtype=int)
    with pytest.raises(DegenerateVectorsError, match="rows or anchors that are all alike"):
        sinkhorn(anchor_cost(np.abs(X), np.abs(Y), np.abs(A[alike]), np.abs(B[alike])))


def test_a_row_that_no_anchor_sees_costs_one():
    A = np.eye(4)[:2]
    cost = anchor_cost(np.eye(4), np.eye(4), A, A).tile(EVERY, EVERY)
    assert np.isfinite(cost).all()
    np.testing.assert_allclose(cost[2:], 1.0)
    np.testing.assert_allclose(cost[:2, :2], [[0, 1], [1, 0]], atol=1e-6)


def test_rows_cost_the_same_alone_and_among_others():
    X, Y, A, B = clouds(n=6_000, m=20)
    with threadpool_limits(1):
        one = anchor_cost(X, Y, A, B)
    with threadpool_limits(2):
        two = anchor_cost(X, Y, A, B)
    assert np.array_equal(one.source, two.source)
    assert np.array_equal(anchor_cost(X[7:8], Y, A, B).source[0], one.source[7])


def test_lengths_of_rows_do_not_matter():
    X, Y, A, B = clouds()
    cost = anchor_cost(X * 1e4, Y * 1e-4, A * 30, B).tile(EVERY, EVERY)
    np.testing.assert_allclose(cost, anchor_cost(X, Y, A, B).tile(EVERY, EVERY), atol=1e-5)


# --- tiles -----------------------------------------------------------------------------------


def costs():
    X, Y, A, B = clouds()
    return [
        anchor_cost(X, Y, A, B),
        cosine_cost(X[:, :5], Y),
        StoredCost(np.random.default_rng(0).standard_normal((40, 30))),
    ]


@pytest.mark.parametrize("cost", costs())
def test_tiles_are_parts_of_one_matrix(cost):
    whole = cost.tile(EVERY, EVERY)
    assert whole.shape == cost.shape
    assert whole.dtype == np.float32
    rows, columns = np.array([3, 1, 3]), np.array([0, 29])
    np.testing.assert_allclose(cost.tile(rows, columns), whole[rows][:, columns], atol=1e-6)
    np.testing.assert_allclose(cost.tile(slice(5, 9), columns), whole[5:9][:, columns], atol=1e-6)
    np.testing.assert_allclose(cost.transpose().tile(EVERY, EVERY), whole.T, atol=1e-6)
    out = np.empty((4, 30), dtype=np.float32)
    offset = np.linspace(-1, 1, 30)
    cost.write(slice(5, 9), -50.0, offset, out)
    np.testing.assert_allclose(out, -50 * whole[5:9] + offset, atol=1e-4)


def test_a_sample_of_a_small_cost_is_all_of_it(monkeypatch):
    cost = costs()[2]
    assert np.array_equal(sample_costs(cost, seed=0), cost.matrix)
    monkeypatch.setattr(cost_module, "SAMPLED", 8)
    some = sample_costs(cost, seed=0)
    assert some.shape == (8, 8)
    assert np.array_equal(some, sample_costs(cost, seed=0))
    assert not np.array_equal(some, sample_costs(cost, seed=1))
    assert np.isin(some, cost.matrix).all()


def test_stored_costs_keep_what_was_given():
    matrix = np.arange(6.0).reshape(2, 3)
    cost = StoredCost.of((2, 3), lambda rows: matrix[rows], rows=1)
    assert np.array_equal(cost.matrix, matrix)
    assert cost.matrix.dtype == np.float32


# --- bad input -------------------------------------------------------------------------------


def test_stored_costs_that_are_too_large_are_refused_before_any_work(monkeypatch):
    monkeypatch.setattr(cost_module, "MOST_STORED", 5)
    with pytest.raises(ParameterError, match=r"at most 5 costs.*got 2 x 3.*take a sample"):
        StoredCost(np.ones((2, 3)))
    with pytest.raises(ParameterError, match="at most 5 costs"):
        StoredCost.of((2, 3), lambda _: pytest.fail("worked"), rows=1)


def test_bad_vectors_are_named():
    X, Y, A, B = clouds()
    broken = X.copy()
    broken[2, 1] = np.nan
    with pytest.raises(InvalidVectorsError, match="finite numbers in source; got NaN"):
        anchor_cost(broken, Y, A, B)
    with pytest.raises(InvalidVectorsError, match="finite numbers in the cost"):
        StoredCost([[np.inf]])
    with pytest.raises(ZeroVectorError, match="in target; got only zeros in row 3"):
        anchor_cost(X, np.where(np.arange(30)[:, None] == 3, 0, Y), A, B)
    with pytest.raises(ZeroVectorError, match="in anchors"):
        anchor_cost(X, Y, A * 0, B)
    with pytest.raises(ZeroVectorError, match="in source"):
        cosine_cost([[0.0, 0.0]], [[1.0, 0.0]])
    with pytest.raises(CountMismatchError, match="12 source rows and 11 target rows"):
        anchor_cost(X, Y, A, B[:11])
    with pytest.raises(DimensionError, match="anchors_source with 7 columns"):
        anchor_cost(X, Y, B, B)
    with pytest.raises(DimensionError, match="target with 2 columns"):
        cosine_cost([[1.0, 2.0]], [[1.0]])
    with pytest.raises(DimensionError, match="rows with 7 columns"):
        AnchorProfile.of(A).transform(Y)
    with pytest.raises(EmptyInputError, match="at least one row"):
        anchor_cost(X[:0], Y, A, B)
    for gamma in (-0.1, 2.1, np.nan):
        with pytest.raises(ParameterError, match="gamma from 0 to 2"):
            anchor_cost(X, Y, A, B, gamma=gamma)
