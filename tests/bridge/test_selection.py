"""The rule on planted spaces: a rotation for a rotation, more freedom only where it pays."""

import numpy as np
import pytest

from isthmus.bridge import Bridge
from isthmus.bridge.selection import compose_for, select
from isthmus.errors import (
    DegenerateVectorsError,
    ParameterError,
    TooFewPairsError,
    UnknownNameError,
)
from isthmus.evaluate.preservation import measure_pairs, nbr_overlap
from isthmus.spaces import Pairs, Space, VectorSet
from isthmus.testing import planted_pair


def pairs_of(planted, n: int | None = None) -> Pairs:
    pairs = Pairs.from_ids(planted.source, planted.target)
    return pairs if n is None else pairs.select(np.arange(n))


@pytest.fixture(scope="module")
def rotated():
    return planted_pair(600, 16, 20, noise=0.05, normalized=True, seed=1)


@pytest.fixture(scope="module")
def chosen(rotated):
    return select(
        pairs_of(rotated, 200), collection=rotated.target.matrix(), collection_rows=np.arange(200)
    )


def test_a_rotation_is_recognised_and_the_report_holds_on_the_rest(rotated, chosen):
    assert chosen.map.inner.name == "procrustes"
    assert chosen.verdict.status == "bridge"
    assert "most constrained map within noise of best" in chosen.verdict.chosen_because
    rest = np.arange(200, 600)
    measured = nbr_overlap(
        chosen.map.transform(rotated.source.matrix()[rest]),
        rotated.target.matrix()[rest],
        k=10,
        collection=rotated.target.matrix(),
        own_rows=rest,
    ).mean()
    value = chosen.report.values["retention@10"]
    assert value.low <= measured <= value.high
    assert chosen.report.null["retention@10"].mean < 0.1
    assert chosen.report.n_queries == 200


def test_every_candidate_is_listed_with_its_distance_to_the_best(chosen):
    rows = {row["method"]: row for row in chosen.candidates}
    assert list(rows) == ["null", "procrustes", "ridge"]
    assert min(row["worse_than_best"]["mean"] for row in rows.values()) == 0.0
    assert rows["null"]["worse_than_best"]["low"] > 0.3
    assert {"rank_corr", "cos_to_target", "similarity_error"} <= set(rows["ridge"])


def test_a_stretched_space_takes_ridge():
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(500, 12))
    stretch = np.diag(np.logspace(0, 1.2, 12))
    ids = [str(row) for row in range(500)]
    one = VectorSet(ids, latent, Space(model="a", dim=12, metric="l2"))
    two = VectorSet(ids, latent @ stretch, Space(model="b", dim=12, metric="l2"))
    chosen = select(Pairs.from_ids(one, two))
    assert chosen.map.inner.name == "ridge"
    assert chosen.verdict.status == "bridge"


def test_equal_spaces_are_pre_aligned_and_keep_the_null_map():
    planted = planted_pair(200, 8, 8, seed=2)
    twin = VectorSet(planted.source.ids, planted.source.vectors, planted.target.space)
    chosen = select(Pairs.from_ids(planted.source, twin))
    assert (chosen.verdict.status, chosen.map.inner.name) == ("pre_aligned", "null")
    assert chosen.report.values["retention@10"].mean == 1.0


def test_unrelated_spaces_mean_reindex():
    rng = np.random.default_rng(3)
    ids = [str(row) for row in range(300)]
    one, two = (
        VectorSet(ids, rng.normal(size=(300, 8)), Space(model=name, dim=8)) for name in "ab"
    )
    chosen = select(Pairs.from_ids(one, two))
    assert chosen.verdict.status == "reindex"
    assert chosen.report.values["retention@10"].mean < 0.15
    assert chosen.verdict.usable_for == ()


def test_few_pairs_are_a_verdict_without_numbers(rotated):
    chosen = select(pairs_of(rotated, 10))
    assert chosen.verdict.status == "insufficient_pairs"
    assert chosen.report.values == {}
    assert chosen.map.transform(rotated.source.matrix()[:2]).shape == (2, 20)


def test_the_verdict_follows_the_target_that_was_asked_for(rotated):
    high, low = (
        select(pairs_of(rotated, 60), min_retention=least).verdict.status for least in (0.99, 0.05)
    )
    assert (high, low) == ("reindex", "bridge")


@pytest.mark.parametrize("method", ["cca", "relative", "null", "low_rank"])
def test_a_named_map_is_taken_and_measured_beside_the_null_map(rotated, method):
    chosen = select(pairs_of(rotated, 150), method=method)
    assert chosen.map.inner.name == method
    assert chosen.verdict.chosen_because == "it was asked for by name"
    assert chosen.report.null["retention@10"].mean < 0.3
    if method != "null":
        assert chosen.report.values["retention@10"].mean > 0.5


def test_scoring_asks_for_similarities_that_can_be_compared(rotated):
    chosen = select(pairs_of(rotated, 200), purpose="score")
    assert "similarity_error" in chosen.verdict.chosen_because
    errors = {row["method"]: row["similarity_error"] for row in chosen.candidates}
    name = chosen.map.inner.name
    assert errors[name] <= min(errors.values()) * 1.2


def test_the_same_seed_gives_the_same_selection(rotated):
    one, two = (select(pairs_of(rotated, 50), seed=4) for _ in range(2))
    assert str(one.report.values["retention@10"]) == str(two.report.values["retention@10"])
    np.testing.assert_array_equal(
        one.map.transform(rotated.source.matrix()), two.map.transform(rotated.source.matrix())
    )


def test_default_preprocessing_follows_the_metric(rotated):
    pairs = pairs_of(rotated, 30)
    assert [step.name for step in compose_for(pairs, "ridge").source_steps] == [
        "normalise",
        "centre",
    ]
    assert compose_for(pairs, "null").source_steps == []


def test_bad_input(rotated):
    with pytest.raises(UnknownNameError, match="did you mean 'ridge'"):
        select(pairs_of(rotated, 30), method="rigde")
    with pytest.raises(UnknownNameError, match="expected a purpose among score, search"):
        select(pairs_of(rotated, 30), purpose="serach")
    with pytest.raises(ParameterError, match="min_retention over 0 and at most 1; got 0"):
        select(pairs_of(rotated, 30), min_retention=0)
    with pytest.raises(TooFewPairsError):
        select(pairs_of(rotated, 1))


def test_copies_count_once(rotated):
    pairs = pairs_of(rotated, 15)
    rows = np.tile(np.arange(15), 3)
    sides = [
        VectorSet([f"{place}" for place in range(45)], side[rows], space)
        for side, space in (
            (pairs.source, pairs.source_space),
            (pairs.target, pairs.target_space),
        )
    ]
    chosen = select(Pairs.from_ids(*sides))
    assert chosen.verdict.status == "insufficient_pairs"
    assert "45 pairs, 15 of them different" in chosen.verdict.reason


def test_equal_rows_cannot_be_fitted(rotated):
    pairs = pairs_of(rotated, 30)
    same = VectorSet(pairs.source_ids, np.full((30, 16), 0.25), pairs.source_space)
    two = VectorSet(pairs.target_ids, pairs.target, pairs.target_space)
    with pytest.raises(DegenerateVectorsError):
        select(Pairs.from_rows(same, two, np.arange(30), np.arange(30)))


def test_one_vector_in_most_pairs_is_a_verdict(rotated):
    pairs = pairs_of(rotated, 60)
    source = pairs.source.copy()
    source[:50] = source[0]
    one = VectorSet(pairs.source_ids, source, pairs.source_space)
    two = VectorSet(pairs.target_ids, pairs.target, pairs.target_space)
    chosen = select(Pairs.from_rows(one, two, np.arange(60), np.arange(60)))
    assert chosen.verdict.status == "insufficient_pairs"
    assert "60 pairs, 11 of them different" in chosen.verdict.reason


@pytest.mark.parametrize("metric", ["cosine", "dot", "l2"])
def test_the_report_agrees_with_the_finished_bridge(metric):
    planted = planted_pair(500, 12, 12, noise=0.3, normalized=True, metric=metric, seed=9)
    bridge = Bridge.fit(pairs_of(planted, 300), method="procrustes", collection=planted.target)
    rest = np.arange(300, 500)
    measured = measure_pairs(
        bridge.transform(planted.source.matrix()[rest]),
        planted.target.matrix()[rest],
        planted.target.matrix(),
        own_rows=rest,
        metric=metric,
    )
    for name in ("similarity_error", "mse", "cos_to_target", "nbr_overlap@10"):
        reported = bridge.report.values[name].mean
        assert measured[name].mean == pytest.approx(reported, rel=0.12), name


@pytest.mark.parametrize("metric", ["cosine", "dot", "l2"])
def test_a_learned_map_stops_by_the_metric_of_the_target_space(planted, metric):
    target = Space(model="new", revision="2", dim=16, metric=metric)
    vectors = VectorSet(planted.target.ids, planted.target.matrix(), target)
    rows = np.arange(60)
    pairs = Pairs.from_rows(planted.source, vectors, rows, rows)
    made = select(pairs, method="mlp", params={"width": 4, "least_steps": 1, "epochs": 1})
    assert made.map.inner_.metric == metric


@pytest.mark.parametrize(("n", "status"), [(30, "insufficient_pairs"), (60, None)])
def test_a_map_that_needs_more_pairs_than_a_split_has_gets_a_verdict_and_no_error(n, status):
    rng = np.random.default_rng(0)
    one, two = (Space(model=name, dim=6) for name in "ab")
    rows = rng.normal(size=(200, 6))
    ids = [f"r{i}" for i in range(200)]
    source, target = VectorSet(ids, rows, one), VectorSet(ids, rows[:, ::-1].copy(), two)
    pairs = Pairs.from_rows(source, target, np.arange(n), np.arange(n))

    bridge = Bridge.fit(
        pairs,
        method="anchor_cca",
        params={"gamma": 1.0, "eta": 0.1},
        unpaired_source=source.select(np.arange(100, 150)),
        unpaired_target=target.select(np.arange(150, 200)),
    )

    if status is None:
        assert "retention@10" in bridge.report.values
    else:
        assert bridge.verdict.status == status
        assert bridge.verdict.reason.startswith("30 pairs: too few to hold any out")
        assert bridge.verdict.pairs_needed == 50
