"""Views through maps: what a row's own anchor pair can and cannot change."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus._linalg import normalise
from isthmus.link.clouds import Clouds, Side
from isthmus.link.growth import Anchors, principal_pairs
from isthmus.link.map_views import RIDGE, VIEWS, held_out, in_sample, ridge, ridge_back


@pytest.fixture(scope="module")
def problem():
    """Clouds of 60 and 70 rows, and 40 anchors with weights, some of them wrong."""
    rng = np.random.default_rng(100)
    source = normalise(rng.standard_normal((60, 7)) + 0.3)
    target = normalise(source @ rng.standard_normal((7, 9)) + 0.3)
    target = normalise(np.vstack([target, rng.standard_normal((10, 9))]))
    rows = rng.permutation(60)[:40]
    targets = rows.copy()
    targets[:4] = np.roll(targets[:4], 1)
    anchors = Anchors(rows, targets, rng.uniform(0.3, 1.0, 40))
    return Clouds(Side.of(source), Side.of(target)), anchors


def rng():
    return np.random.default_rng(5)


def refitted(clouds, anchors, row):
    """Predict one source row by a ridge regression without its anchor, by the normal equations.

    The means and the penalty are those of all anchors, as the closed form has them.
    """
    w = anchors.weight
    x = clouds.source.rows[anchors.source_rows].astype(np.float64)
    y = clouds.target.rows[anchors.target_rows].astype(np.float64)
    mean_x, mean_y = w @ x / w.sum(), w @ y / w.sum()
    x, y = x - mean_x, y - mean_y
    penalty = RIDGE * np.trace((w[:, None] * x).T @ x) / x.shape[1]
    kept = anchors.source_rows != row
    x, y, w = x[kept], y[kept], w[kept, None]
    fitted = np.linalg.solve(x.T @ (w * x) + penalty * np.eye(x.shape[1]), x.T @ (w * y))
    return (clouds.source.rows[row] - mean_x) @ fitted, mean_y


def test_ridge_leaves_each_row_out_of_its_own_fit(problem):
    clouds, anchors = problem
    predicted, target = ridge(clouds, anchors, rng())
    for row in range(60):  # anchors and others
        expected, mean = refitted(clouds, anchors, row)
        np.testing.assert_allclose(predicted[row], normalise(expected[None])[0], atol=2e-5)
    np.testing.assert_allclose(target, normalise(clouds.target.rows - mean), atol=1e-5)


def test_ridge_back_is_ridge_of_the_clouds_exchanged(problem):
    clouds, anchors = problem
    back = ridge_back(clouds, anchors, rng())
    turned = Anchors(anchors.target_rows, anchors.source_rows, anchors.weight)
    there = ridge(Clouds(clouds.target, clouds.source), turned, rng())
    np.testing.assert_array_equal(back[0], there[1])
    np.testing.assert_array_equal(back[1], there[0])


def with_another_target(clouds, anchors, place):
    """The clouds with the target row of one anchor moved to where it has no business."""
    white = clouds.target.white.copy()
    white[anchors.target_rows[place]] *= -3.0
    return Clouds(clouds.source, Side(clouds.target.rows, white))


def test_held_out_rows_do_not_see_their_own_anchor(problem):
    """Bit for bit: the target of an anchor moves, and the source row's vector does not."""
    clouds, anchors = problem
    before = held_out(clouds, anchors, rng())[0]
    for place in (0, 11, 39):
        after = held_out(with_another_target(clouds, anchors, place), anchors, rng())[0]
        row = anchors.source_rows[place]
        np.testing.assert_array_equal(after[row], before[row])
        assert np.count_nonzero((after != before).any(axis=1)) > 30  # the other folds' rows do


def test_in_sample_rows_do(problem):
    clouds, anchors = problem
    before = in_sample(clouds, anchors, rng())
    after = in_sample(with_another_target(clouds, anchors, 0), anchors, rng())
    row = anchors.source_rows[0]
    # The axes may change sign: similarities to rows that did not move are compared.
    others = anchors.target_rows[1:]
    assert (
        np.abs(before[0][row] @ before[1][others].T - after[0][row] @ after[1][others].T).max()
        > 1e-3
    )


def test_in_sample_rotates_the_whitened_clouds(problem):
    clouds, anchors = problem
    white = clouds.source.white, clouds.target.white
    seen = white[0][anchors.source_rows], white[1][anchors.target_rows]
    left, right = principal_pairs(*white, *seen, anchors.weight, power=0.5)
    view = in_sample(clouds, anchors, rng())
    np.testing.assert_array_equal(view[0], left)
    np.testing.assert_array_equal(view[1], right)


def test_held_out_folds_come_from_the_generator(problem):
    clouds, anchors = problem
    one, same = (held_out(clouds, anchors, rng())[0] for _ in range(2))
    other = held_out(clouds, anchors, np.random.default_rng(6))[0]
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.__name__)
@pytest.mark.parametrize("count", [1, 2, 3, 40])
def test_both_sides_have_one_width_and_rows_of_length_one(problem, view, count):
    clouds, anchors = problem
    left, right = view(clouds, anchors.select(np.arange(count)), rng())
    assert left.shape == (60, right.shape[1])
    assert len(right) == 70
    assert left.dtype == right.dtype == np.float32
    for side in (left, right):
        lengths = np.linalg.norm(side, axis=1)
        assert (np.isclose(lengths, 1, atol=1e-5) | (lengths == 0)).all()
    if count == 40:
        assert np.count_nonzero((left @ right.T).argmax(axis=1) == np.arange(60)) >= 40
