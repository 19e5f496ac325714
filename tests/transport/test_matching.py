"""Four rules on one cost, against what they say written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from isthmus.errors import CountMismatchError, ParameterError, UnknownNameError
from isthmus.evaluate.hubness import hubness_both_ways
from isthmus.transport import StoredCost, cosine_cost, match, sinkhorn

EVERY = slice(None)
RULES = ("nearest", "inverted_softmax", "csls", "sinkhorn")


def cloud_cost(seed=0, n=30, m=20, dim=4):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((max(n, m), dim))
    return cosine_cost(rows[:n], rows[:m] + 0.3 * rng.standard_normal((m, dim)))


def written_out(cost, rule, epsilon=0.05, neighborhood=5):
    """Scores of both directions, as matrices."""
    similar = -cost.tile(EVERY, EVERY).astype(np.float64)
    if rule == "nearest":
        return similar, similar.T
    if rule == "inverted_softmax":
        logs = similar / epsilon
        return (
            logs - logsumexp(logs, axis=0, keepdims=True),
            (logs - logsumexp(logs, axis=1, keepdims=True)).T,
        )
    if rule == "csls":
        ordered = [np.sort(side, axis=1)[:, -neighborhood:] for side in (similar, similar.T)]
        ours, theirs = (side.mean(axis=1) for side in ordered)
        scores = 2 * similar - ours[:, None] - theirs
        return scores, scores.T
    logs = np.log(sinkhorn(cost, epsilon=epsilon).block(EVERY, EVERY).astype(np.float64))
    return logs, logs.T


@pytest.mark.parametrize("rule", RULES)
def test_rankings_are_those_of_the_rule_written_out(rule, monkeypatch):
    monkeypatch.setattr("isthmus.transport.matching.TILE", 100)  # many blocks
    cost = cloud_cost()
    found = match(cost, rule, k=6, epsilon=0.05, neighborhood=5)
    there, back = written_out(cost, rule)
    for scores, rows, values in (
        (there, found.target_rows, found.target_scores),
        (back, found.source_rows, found.source_scores),
    ):
        assert np.array_equal(rows, np.argsort(-scores, axis=1)[:, :6])
        np.testing.assert_allclose(values, -np.sort(-scores, axis=1)[:, :6], atol=1e-3)
    assert found.rule == rule


@pytest.mark.parametrize("rule", RULES)
def test_one_thread_and_two_rank_alike(rule, monkeypatch):
    monkeypatch.setattr("isthmus.transport.matching.TILE", 1 << 14)
    cost = cloud_cost(1, 500, 400, dim=12)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(match(cost, rule))
    assert np.array_equal(found[0].target_rows, found[1].target_rows)
    assert np.array_equal(found[0].source_scores, found[1].source_scores)


def test_swapping_the_sides_swaps_the_rankings():
    cost = cloud_cost()
    for rule in RULES:
        there, back = match(cost, rule, epsilon=0.1), match(cost.transpose(), rule, epsilon=0.1)
        assert np.array_equal(there.target_rows[:, 0], back.source_rows[:, 0])
        assert np.array_equal(there.source_rows[:, 0], back.target_rows[:, 0])


def test_more_neighbours_than_rows_are_all_rows():
    for rule in RULES:
        found = match(cloud_cost(), rule, k=25, neighborhood=50)
        assert found.target_rows.shape == (30, 20)
        assert found.source_rows.shape == (20, 25)


def test_equal_scores_go_to_the_lowest_row():
    found = match(StoredCost(np.ones((4, 6))), "nearest", k=3)
    assert found.target_rows.tolist() == [[0, 1, 2]] * 4


def test_a_coupling_that_is_known_is_not_made_again():
    cost = cloud_cost()
    plan = sinkhorn(cost, epsilon=0.3)
    given = match(cost, "sinkhorn", coupling=plan)
    assert np.array_equal(given.target_rows, plan.nearest(10)[0])
    assert np.array_equal(given.source_rows, plan.nearest(10, side="target")[0])
    with pytest.raises(CountMismatchError, match=r"a coupling of shape \(30, 20\)"):
        match(cost, "sinkhorn", coupling=sinkhorn(cloud_cost(0, 10, 20)))


def test_sinkhorn_undoes_hubs_that_the_nearest_make():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((300, 20))
    hubs = 1.5 * rng.standard_normal(300)  # some targets are near to all, some to none
    cost = StoredCost(
        cosine_cost(rows, rows + rng.standard_normal(rows.shape)).tile(EVERY, EVERY) - 0.2 * hubs
    )
    skewness = {}
    hits = {}
    for rule in RULES:
        found = match(cost, rule, epsilon=0.05)
        skewness[rule] = hubness_both_ways(found.target_rows, found.source_rows)[0]
        hits[rule] = (found.target_rows == np.arange(300)[:, None]).any(axis=1).mean()
    assert skewness["sinkhorn"] < skewness["csls"] < skewness["nearest"]
    assert skewness["sinkhorn"] < 0.5 * skewness["nearest"]
    assert hits["sinkhorn"] >= hits["csls"] > hits["nearest"]


def test_bad_input_is_named():
    cost = cloud_cost()
    with pytest.raises(UnknownNameError, match="nearest"):
        match(cost, "closest")
    with pytest.raises(ParameterError, match="k as a whole number"):
        match(cost, "nearest", k=0)
    with pytest.raises(ParameterError, match="neighborhood as a whole number"):
        match(cost, "csls", neighborhood=0)
    for rule in ("inverted_softmax", "sinkhorn"):
        with pytest.raises(ParameterError, match="epsilon over 0"):
            match(cost, rule, epsilon=0.0)
        with pytest.raises(ParameterError, match="eta over 0"):
            match(cost, rule, eta=-1.0)
