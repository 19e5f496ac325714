"""Self-training: rounds that grow, settle and can be taken up again."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import ParameterError
from isthmus.link import LinkProblem, Procrustes, SelfTraining
from isthmus.link.self_training import align_centred


def two_views(n=300, dim=40, noise=0.35, shift=0.0, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((30, dim))
    cloud = centres[rng.integers(0, 30, n)] + 0.7 * rng.standard_normal((n, dim))
    cloud /= np.linalg.norm(cloud, axis=1, keepdims=True)
    turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    blur = rng.standard_normal((n, dim)) * noise / np.sqrt(dim)
    return cloud, cloud @ turn + blur + shift


def true_links(links):
    return int((links.source_rows == links.target_rows).sum())


def test_rounds_find_what_one_step_does_not():
    problem = LinkProblem.of_rows(*two_views(), [(row, row) for row in range(15)])

    once = Procrustes(csls_neighborhood=10).link(problem)
    links = SelfTraining().link(problem)

    assert true_links(once) < 250
    assert true_links(links) >= 295
    assert [step.anchors for step in links.history] == [
        15,
        *(step.links for step in links.history[:-1]),
    ]


def test_it_ends_when_the_links_no_longer_change():
    problem = LinkProblem.of_rows(*two_views(), [(row, row) for row in range(15)])
    states = []

    links = SelfTraining(rounds=100).link(problem, watch=states.append)

    assert len(states) < 30
    assert states[-1].done
    np.testing.assert_array_equal(states[-1].pairs, states[-2].pairs)
    assert not np.array_equal(states[-2].pairs, states[-3].pairs)
    assert len(links) == len(states[-1].pairs)


def test_rounds_are_an_upper_limit_and_resume_knows_the_number():
    problem = LinkProblem.of_rows(*two_views(), [(row, row) for row in range(15)])
    states = []
    links = SelfTraining(rounds=2).link(problem, watch=states.append)

    assert [state.done for state in states] == [False, True]
    assert [step.number for step in links.history] == [1, 2]
    assert len(SelfTraining(rounds=2).link(problem, resume=states[0]).history) == 2


def test_both_sides_are_centred_by_their_anchors():
    plain, moved = (two_views(noise=0.0, shift=shift) for shift in (0.0, 0.6))
    seeds = [(row, row) for row in range(60)]
    problem = LinkProblem.of_rows(*moved, seeds)
    anchors = problem.seed_source, problem.seed_target

    source, target = align_centred(problem, *anchors)

    assert source.dtype == target.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(source, axis=1), 1, atol=1e-5)
    both = LinkProblem.of_rows(*plain, seeds)
    exact_source, exact_target = align_centred(both, both.seed_source, both.seed_target)
    np.testing.assert_allclose(exact_source, exact_target, atol=1e-4)


def test_turning_a_cloud_changes_no_link():
    source, target = two_views(n=120)
    turn = np.linalg.qr(np.random.default_rng(9).standard_normal((40, 40)))[0]
    seeds = [(row, row) for row in range(15)]

    plain = SelfTraining(rounds=2).link(LinkProblem.of_rows(source, target, seeds))
    turned = SelfTraining(rounds=2).link(LinkProblem.of_rows(source @ turn, target, seeds))

    np.testing.assert_array_equal(plain.source_rows, turned.source_rows)
    np.testing.assert_array_equal(plain.target_rows, turned.target_rows)


def test_too_few_links_to_fit_on_end_it():
    cloud = np.random.default_rng(3).standard_normal((3, 5))
    problem = LinkProblem.of_vectors(
        cloud[:2], cloud[:2], np.random.default_rng(4).standard_normal((5, 5)), np.eye(5)
    )

    links = SelfTraining().link(problem)

    assert 1 <= len(links) <= 2
    assert len(links.history) == 1


def test_bad_parameters():
    with pytest.raises(ParameterError, match="rounds as a whole number of at least 1; got 0"):
        SelfTraining(rounds=0)
    with pytest.raises(ParameterError, match="csls_neighborhood"):
        SelfTraining(csls_neighborhood=0)
    with pytest.raises(ParameterError, match="'drop' or 'identity'"):
        SelfTraining(undetermined="keep")
