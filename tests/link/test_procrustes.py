"""Procrustes on the seeds: the rotation it must find, and the directions it must not invent."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus._linalg import orthogonal_procrustes
from isthmus.errors import ParameterError
from isthmus.link import LinkProblem, Procrustes
from isthmus.link.procrustes import polar_of_rank, rotation


def turned(n, dim, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, dim))
    turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    return X, X @ turn, turn


@settings(max_examples=30, deadline=None)
@given(dim=st.integers(2, 12), extra=st.integers(0, 20), seed=st.integers(0, 10**6))
def test_a_rotation_is_found_exactly(dim, extra, seed):
    X, Y, turn = turned(dim + extra, dim, seed)

    np.testing.assert_allclose(rotation(X, Y), turn, atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(n=st.integers(3, 9), dim=st.integers(10, 15), seed=st.integers(0, 10**6))
def test_few_seeds_determine_their_span_and_no_more(n, dim, seed):
    X, Y, turn = turned(n, dim, seed)

    found = rotation(X, Y)

    np.testing.assert_allclose(X @ found, Y, atol=1e-6)
    assert np.linalg.matrix_rank(found, tol=1e-6) == n
    # turning a cloud changes nothing else
    np.testing.assert_allclose(rotation(X @ turn, Y), turn.T @ found, atol=1e-6)


@pytest.mark.parametrize("shape", [(8, 8), (8, 12), (12, 8)], ids=str)
def test_the_small_and_the_large_way_agree(shape):
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((7, shape[0])), rng.standard_normal((7, shape[1]))
    means = {"mean_x": X.mean(0), "mean_y": Y.mean(0)}

    small = rotation(X, Y, **means)

    large = polar_of_rank((X - means["mean_x"]).T @ (Y - means["mean_y"]))
    np.testing.assert_allclose(small, large, atol=1e-9)
    assert np.linalg.matrix_rank(small, tol=1e-6) == 6  # centring takes one


def test_with_enough_seeds_it_is_the_rotation_of_the_maps():
    X, Y, _ = turned(30, 8, seed=2)
    Y += 0.3 * np.random.default_rng(3).standard_normal(Y.shape)

    np.testing.assert_allclose(rotation(X, Y), orthogonal_procrustes(X, Y), atol=1e-8)


def test_the_identity_completes_what_the_seeds_leave_open():
    cloud = np.random.default_rng(4).standard_normal((50, 20))
    problem = LinkProblem.of_rows(cloud, cloud, [(0, 0), (1, 1), (2, 2)])

    dropped = Procrustes().link(problem)
    completed = Procrustes(undetermined="identity").link(problem)

    assert (completed.source_rows == completed.target_rows).mean() == 1.0
    assert len(completed) == 50 > (dropped.source_rows == dropped.target_rows).sum()


def test_turning_a_cloud_changes_no_link():
    rng = np.random.default_rng(5)
    cloud, other = rng.standard_normal((2, 60, 12))
    turn = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    seeds = [(row, row) for row in range(5)]

    plain = Procrustes().link(LinkProblem.of_rows(cloud, other, seeds))
    with_turn = Procrustes().link(LinkProblem.of_rows(cloud @ turn, other, seeds))

    assert plain.source_rows.tolist() == with_turn.source_rows.tolist()
    assert plain.target_rows.tolist() == with_turn.target_rows.tolist()


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"undetermined": "zero"}, "'drop' or 'identity'; got 'zero'"),
        ({"csls_neighborhood": 0}, "csls_neighborhood as a whole number of at least 1; got 0"),
        ({"csls_neighborhood": 2.5}, "got 2.5"),
        ({"csls_neighborhood": True}, "got True"),
    ],
)
def test_bad_parameters(params, text):
    with pytest.raises(ParameterError, match=text):
        Procrustes(**params)
