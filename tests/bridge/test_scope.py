"""Scope: new rows like the pairs lie inside, rows of another kind of data outside."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.scope import Scope, ScopeReport
from isthmus.errors import (
    DimensionError,
    InvalidVectorsError,
    MalformedArtifactError,
    TooFewPairsError,
)

FAST = settings(derandomize=True, deadline=None, max_examples=20)
DIM = 48


def domain(seed):
    """Return a sampler of rows around random directions, with noise: a stand-in for one domain."""
    base = np.random.default_rng(seed).normal(size=(12, DIM))

    def sample(n, *, seed):
        rng = np.random.default_rng(seed)
        return rng.normal(size=(n, 12)) @ base + rng.normal(size=(n, DIM))

    return sample


@pytest.mark.parametrize("unit_rows", [True, False])
@pytest.mark.parametrize("n", [40, 200, 1000])
def test_about_three_in_a_hundred_new_rows_lie_outside(n, unit_rows):
    shares = []
    for seed in range(20):
        sample = domain(seed)
        scope = Scope.fit(sample(n, seed=seed), unit_rows=unit_rows, kind="passage")
        shares.append(scope.outside(sample(500, seed=seed + 100)).mean())
    assert 0.01 <= np.mean(shares) <= 0.05


@pytest.mark.parametrize("unit_rows", [True, False])
def test_rows_of_another_domain_lie_mostly_outside(unit_rows):
    scope = Scope.fit(domain(1)(500, seed=1), unit_rows=unit_rows, kind="passage")
    assert scope.outside(domain(2)(500, seed=2)).mean() > 0.9


def test_length_says_nothing_for_the_cosine_and_something_otherwise():
    sample = domain(3)
    rows, new = sample(300, seed=1), sample(300, seed=2)
    by_angle = Scope.fit(rows, unit_rows=True, kind="passage")
    np.testing.assert_array_equal(by_angle.outside(new), by_angle.outside(1000 * new))
    by_place = Scope.fit(rows, unit_rows=False, kind="passage")
    assert by_place.outside(1000 * new).all()


def test_matches_the_formula_of_the_specification():
    sample = domain(4)
    scope, rows = (
        Scope.fit(sample(300, seed=1), unit_rows=True, kind="passage"),
        sample(400, seed=2),
    )
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True) - scope.center
    along = unit @ scope.directions
    rest = np.square(unit).sum(axis=1) - np.square(along).sum(axis=1)
    clear = np.abs(rest - scope.radius) > 1e-5
    np.testing.assert_array_equal(scope.outside(rows)[clear], (rest > scope.radius)[clear])
    np.testing.assert_allclose(
        scope.directions.T @ scope.directions, np.eye(scope.directions.shape[1]), atol=1e-6
    )


@FAST
@given(n=st.integers(1, 40), start=st.integers(0, 9_960))
def test_the_answer_for_a_row_does_not_depend_on_the_batch(n, start):
    sample = domain(5)
    scope, rows = (
        Scope.fit(sample(200, seed=1), unit_rows=True, kind="passage"),
        sample(10_000, seed=2),
    )
    np.testing.assert_array_equal(
        scope.outside(rows[start : start + n]), scope.outside(rows)[start : start + n]
    )


def test_rows_that_fill_a_plane_leave_only_rounding():
    rng = np.random.default_rng(0)
    base = rng.normal(size=(3, DIM))
    scope = Scope.fit(rng.normal(size=(200, 3)) @ base, unit_rows=False, kind="passage")
    assert not scope.outside(rng.normal(size=(500, 3)) @ base).any()
    assert scope.outside(rng.normal(size=(500, DIM))).all()


def test_few_pairs_name_no_direction_and_still_have_a_radius():
    sample = domain(6)
    scope = Scope.fit(sample(7, seed=1), unit_rows=True, kind="passage")
    assert scope.directions.shape == (DIM, 0)
    assert scope.outside(sample(100, seed=2)).shape == (100,)


def test_many_pairs_are_thinned_evenly():
    sample = domain(7)
    scope = Scope.fit(sample(12_000, seed=1), unit_rows=True, kind="passage")
    assert 0.02 < scope.outside(sample(4_000, seed=2)).mean() < 0.04


def test_a_fit_is_the_same_twice_and_changes_no_array():
    rows = domain(8)(100, seed=1)
    before = rows.copy()
    one, two = (Scope.fit(rows, unit_rows=True, kind="passage") for _ in range(2))
    np.testing.assert_array_equal(one.directions, two.directions)
    assert one.radius == two.radius
    np.testing.assert_array_equal(rows, before)


def test_round_trip():
    scope = Scope.fit(domain(9)(100, seed=1), unit_rows=True, kind="query")
    again = Scope.from_dict(scope.to_dict(), scope.tensors(), dim=DIM)
    assert again.to_dict() == scope.to_dict()
    np.testing.assert_array_equal(again.directions, scope.directions)


@pytest.mark.parametrize(
    "change",
    [
        {"center": np.zeros(DIM + 1, np.float32)},
        {"center": np.zeros(DIM)},
        {"directions": np.zeros((DIM + 1, 3), np.float32)},
        {"directions": np.zeros(DIM, np.float32)},
    ],
)
def test_arrays_of_another_shape_are_malformed(change):
    scope = Scope.fit(domain(9)(100, seed=1), unit_rows=True, kind="query")
    with pytest.raises(MalformedArtifactError, match=rf"center \({DIM},\)"):
        Scope.from_dict(scope.to_dict(), {**scope.tensors(), **change}, dim=DIM)


def test_bad_input_is_refused():
    with pytest.raises(TooFewPairsError, match="at least 2 pairs to learn a scope; got 1"):
        Scope.fit(np.eye(4)[:1], unit_rows=True, kind="passage")
    scope = Scope.fit(domain(9)(100, seed=1), unit_rows=True, kind="passage")
    with pytest.raises(DimensionError, match=f"X with {DIM} columns"):
        scope.outside(np.ones((2, 3)))
    with pytest.raises(InvalidVectorsError, match="row 1"):
        scope.outside(np.array([[1.0] * DIM, [np.nan] * DIM]))


def test_report_says_share_and_kind():
    report = ScopeReport(rows=200, outside=7, kind="query", pairs_kind="passage")
    assert report.share_outside == 0.035
    assert report.kind_differs
    assert not ScopeReport(rows=1, outside=0, kind="query", pairs_kind="query").kind_differs
