"""What a coupling tells: entries, nearest, entropy, matches, with ties and lost entries."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import ParameterError
from isthmus.transport import Coupling, StoredCost, cosine_cost, sinkhorn
from isthmus.transport._ranking import best_columns, log_sums

EVERY = slice(None)


def coupled(seed=0, n=30, m=20, epsilon=0.05):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((max(n, m), 4))
    cost = cosine_cost(rows[:n], rows[:m] + 0.2 * rng.standard_normal((m, 4)))
    return sinkhorn(cost, epsilon=epsilon)


def of_potentials(matrix, epsilon=1.0):
    """A plan that is the exponential of minus a matrix."""
    n, m = np.shape(matrix)
    return Coupling(
        cost=StoredCost(matrix),
        source_potential=np.zeros(n),
        target_potential=np.zeros(m),
        epsilon=epsilon,
        source_mass=np.full(n, 1 / n),
        target_mass=np.full(m, 1 / m),
        errors=np.zeros(1),
        tolerance=1e-4,
    )


def test_entries_follow_from_the_potentials():
    found = coupled()
    matrix = found.cost.tile(EVERY, EVERY).astype(np.float64)
    plan = np.exp(found.source_potential[:, None] + found.target_potential - matrix / found.epsilon)
    np.testing.assert_allclose(found.block(EVERY, EVERY), plan, rtol=2e-5)
    np.testing.assert_allclose(found.rows([3, 7]), plan[[3, 7]], rtol=2e-5)
    np.testing.assert_allclose(found.columns([1, 0]), plan[:, [1, 0]], rtol=2e-5)
    np.testing.assert_allclose(found.block(slice(2, 5), np.array([4])), plan[2:5, [4]], rtol=2e-5)
    assert found.block(EVERY, EVERY).dtype == np.float32


@pytest.mark.parametrize("side", ["source", "target"])
def test_nearest_entropy_and_mass_are_those_of_the_matrix(side, monkeypatch):
    monkeypatch.setattr("isthmus.transport.coupling.TILE", 50)  # many blocks
    found = coupled()
    plan = found.block(EVERY, EVERY).astype(np.float64)
    plan = plan if side == "source" else plan.T
    share = plan / plan.sum(axis=1, keepdims=True)
    rows, shares = found.nearest(4, side=side)
    order = np.argsort(-share, axis=1)[:, :4]
    assert np.array_equal(rows, order)
    np.testing.assert_allclose(shares, np.take_along_axis(share, order, axis=1), rtol=1e-4)
    entropy = -(share * np.log(np.maximum(share, 1e-300))).sum(axis=1) / np.log(share.shape[1])
    np.testing.assert_allclose(found.entropy(side), entropy, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(found.mass(side), plan.sum(axis=1), rtol=1e-5)
    tiles = np.concatenate([tile for _, tile in found.tiles(side)])
    np.testing.assert_allclose(tiles, plan, rtol=1e-5)


def test_more_neighbours_than_rows_are_all_rows():
    rows, shares = coupled().nearest(100)
    assert rows.shape == (30, 20)
    assert np.array_equal(np.sort(rows, axis=1), np.broadcast_to(np.arange(20), (30, 20)))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-5)
    with pytest.raises(ParameterError, match="k as a whole number of at least 1"):
        coupled().nearest(0)


def test_entries_that_float32_cannot_hold_are_ranked():
    # the exponential of every entry is zero in float32, the order and the shares are not
    found = of_potentials([[200.0, 201.0, 150.0], [300.0, 300.0, 400.0]])
    rows, shares = found.nearest(3)
    assert rows.tolist() == [[2, 0, 1], [0, 1, 2]]
    np.testing.assert_allclose(shares[1], [0.5, 0.5, 0.0], atol=1e-6)
    assert found.entropy().tolist() == pytest.approx([0.0, np.log(2) / np.log(3)], abs=1e-5)


def test_equal_shares_go_to_the_lowest_row():
    found = of_potentials(np.ones((3, 9)))
    assert found.nearest(4)[0].tolist() == [[0, 1, 2, 3]] * 3
    assert found.nearest(1)[0].tolist() == [[0]] * 3
    assert found.entropy().tolist() == pytest.approx([1.0] * 3)


def test_matched_rows_are_each_others_largest():
    found = of_potentials([[0.0, 5.0, 5.0], [0.5, 5.0, 9.0], [9.0, 9.0, 0.0]])
    matched = found.matched_rows(0.5)
    assert matched.source_rows.tolist() == [0, 2]
    assert matched.target_rows.tolist() == [0, 2]
    # row 0 shares its column with row 1: exp(0) / (exp(0) + exp(-0.5))
    assert matched.confidence[0] == pytest.approx(1 / (1 + np.exp(-0.5) + np.exp(-9)), rel=1e-5)
    assert len(found.matched_rows(0.7)) == 1
    assert len(found.matched_rows(0.0)) == 2
    assert len(found.matched_rows(1.0)) == 0
    for bad in (-0.1, 1.1, np.nan):
        with pytest.raises(ParameterError, match="threshold from 0 to 1"):
            found.matched_rows(bad)


def test_rows_that_repeat_share_their_match():
    # two equal rows on both sides: half the mass each, and one match of the lowest rows
    matrix = np.array([[0.0, 0.0, 9.0], [0.0, 0.0, 9.0], [9.0, 9.0, 0.0]])
    matched = sinkhorn(StoredCost(matrix), epsilon=0.1).matched_rows(0.4)
    assert matched.source_rows.tolist() == [0, 2]
    assert matched.target_rows.tolist() == [0, 2]
    assert matched.confidence.tolist() == pytest.approx([0.5, 1.0], abs=1e-4)


def test_over_one_half_a_row_is_matched_once():
    found = coupled(epsilon=0.02)
    matched = found.matched_rows(0.5)
    assert len(matched) > 5
    assert len(np.unique(matched.source_rows)) == len(matched)
    assert len(np.unique(matched.target_rows)) == len(matched)
    assert (matched.confidence >= 0.5).all()
    back = found.transpose().matched_rows(0.5)
    assert sorted(zip(back.target_rows, back.source_rows, strict=True)) == list(
        zip(matched.source_rows, matched.target_rows, strict=True)
    )


# --- ranking ---------------------------------------------------------------------------------


def test_best_columns_break_ties_by_number_where_the_cut_falls():
    rng = np.random.default_rng(0)
    tile = rng.integers(0, 4, (200, 30)).astype(np.float32)
    for k in (1, 3, 29, 30):
        expected = np.argsort(-tile, axis=1, kind="stable")[:, :k]
        assert np.array_equal(best_columns(tile, k), expected)


def test_log_sums_hold_what_exponentials_cannot():
    tile = np.array([[-1000.0, -1000.0], [500.0, 0.0]], dtype=np.float32)
    assert log_sums(tile).tolist() == pytest.approx([-1000 + np.log(2), 500.0])
