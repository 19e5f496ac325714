"""Anchor optimisation: one iteration of Sinkhorn a step, and no more links than the overlap."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import MissingExtraError, ParameterError
from isthmus.link import AO, LinkProblem
from isthmus.link.ao import _Sinkhorn

torch = pytest.importorskip("torch")


def problem(n=50, seeds=20, alone=0, dim=10):
    rng = np.random.default_rng(0)
    own = rng.standard_normal((n + 2 * alone, dim))
    source, target = own[: n + alone], np.concatenate((own[:n], own[n + alone :]))
    turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    return LinkProblem.of_rows(source, target @ turn, [(row, row) for row in range(seeds)])


def test_a_planted_turn_is_found():
    links = AO(overlap=50, steps=25).link(problem())

    assert len(links) == 50
    assert (links.source_rows == links.target_rows).mean() > 0.95


def test_there_are_at_most_as_many_links_as_shared_objects():
    given = problem(alone=30)

    few, many = (AO(overlap=overlap, steps=10).link(given) for overlap in (25, 60))

    assert len(few) == 25
    assert 25 < len(many) <= 60


def test_one_step_is_one_iteration_of_sinkhorn_in_the_log_domain():
    """Against the textbook: scale rows, then columns, of exp(-cost / epsilon) (Cuturi 2013)."""
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((2, 7, 4)).astype(np.float32)
    A, B = rng.standard_normal((2, 3, 4)).astype(np.float32)
    sinkhorn = _Sinkhorn(torch, torch.tensor(X), torch.tensor(Y), epsilon=0.5)

    def step():
        described, found = torch.tensor(X @ A.T), torch.tensor(Y @ B.T)
        return sinkhorn.step(described, found, torch.tensor(A), torch.tensor(B)).numpy()

    once, twice = step(), step()

    cost = np.square((X @ A.T)[:, None] - (Y @ B.T)[None]).sum(2)
    kernel, columns = np.exp(-cost / cost.mean() / 0.5), np.ones(7)
    for coupling in (once, twice):
        rows = 1 / (kernel @ columns)
        columns = 1 / (kernel.T @ rows)
        expected = rows[:, None] * kernel * columns / 7
        np.testing.assert_allclose(coupling, expected, rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(coupling.sum(0), 1 / 7, rtol=1e-5)


def test_source_anchors_are_the_seeds_and_then_other_rows():
    given = problem(seeds=5)

    anchors, noise = AO(overlap=50)._first_anchors(given, np.random.default_rng(0))

    np.testing.assert_array_equal(anchors[:5], given.seed_source)
    assert noise.shape == (45, 10)
    assert len(np.unique(anchors, axis=0)) == 50  # no row is an anchor twice


def test_the_seed_draws_the_anchors():
    given = problem(seeds=4, alone=20)
    plans = [AO(overlap=20, steps=3).plan(given, seed=seed) for seed in (0, 0, 1)]

    np.testing.assert_array_equal(plans[0], plans[1])
    assert not np.array_equal(plans[0], plans[2])


@pytest.mark.parametrize("overlap", [19, 51])
def test_an_overlap_that_cannot_be(overlap):
    with pytest.raises(ParameterError, match=f"overlap from 20, the seeds, to 50.*got {overlap}"):
        AO(overlap=overlap).link(problem())


def test_the_overlap_may_be_the_seeds():
    assert len(AO(overlap=20, steps=2).link(problem())) == 20


def test_clouds_that_are_too_large_are_refused():
    with pytest.raises(ParameterError, match=r"at most 49 rows a side for ao.*got 50"):
        AO(overlap=30, max_rows=49).link(problem())


def test_without_torch_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"isthmus\[torch\]"):
        AO(overlap=30).link(problem())


@pytest.mark.parametrize("name", ["overlap", "steps", "learning_rate", "epsilon", "max_rows"])
def test_bad_parameters(name):
    with pytest.raises(ParameterError, match=name):
        AO(**{"overlap": 30, name: 0})
