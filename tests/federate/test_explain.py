"""What a ranking keeps besides: similarities in every space, what a budget skipped, calibration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isthmus.errors import (
    ConfigError,
    CountMismatchError,
    ParameterError,
    StoreError,
    UnknownNameError,
)
from isthmus.federate import Federation, ScoreCalibration, Source, hub
from isthmus.federate.budget import Budget
from isthmus.federate.fusion import OneDirectional, Score
from isthmus.rankings import Ranking

FIELDS = ("ids", "scores", "stores", "spaces", "native_scores", "mapped_scores")


@pytest.fixture
def three(stores, doubles):
    return [
        Source("a", stores[0]),
        Source("b", stores[1], *doubles.bridges(doubles.HUB, doubles.SPOKE)),
        Source("c", stores[2], *doubles.bridges(doubles.HUB, doubles.THIRD, seed=1)),
    ]


@pytest.mark.parametrize("fusion", ["score", "agg", "rrf", "combmnz", "one_directional"])
def test_explaining_changes_no_answer_and_names_every_space(three, queries, doubles, fusion):
    federation = Federation(doubles.HUB, three, fusion=fusion)
    plain = federation.search(queries, k=7)
    explained = federation.search(queries, k=7, explain=True)
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(plain, name), getattr(explained, name))
    assert plain.similarities is None
    assert plain.hits(0)[0].similarities == {}
    assert explained.similarities.shape == (3, 9, 7)
    assert explained.space_names == ("hub-model", "spoke-model", "third-model")
    for hit in explained.hits(4):
        model = {"a": "hub-model", "b": "spoke-model", "c": "third-model"}[hit.store]
        assert hit.similarities[model] == hit.native_score
        assert np.isfinite(list(hit.similarities.values())).all()


def test_the_score_is_the_mean_of_what_is_explained(three, queries, doubles):
    ranking = Federation(doubles.HUB, three).search(queries, k=7, explain=True)
    np.testing.assert_allclose(ranking.scores, ranking.similarities.mean(axis=0), atol=1e-6)


@pytest.mark.parametrize(
    "fusion",
    [
        Score(),
        Score(weight=0.7),
        Score(weights=(3, 1, 0)),
        Score(weights=(0, 1, 1), weight=0.2),
        OneDirectional(space=1),
    ],
)
def test_weights_and_similarities_give_the_score(three, queries, doubles, fusion):
    ranking = Federation(doubles.HUB, three, fusion=fusion).search(queries, k=20, explain=True)
    for _, hits in ranking:
        for hit in hits:
            assert set(hit.weights) == set(ranking.space_names)
            assert sum(hit.weights.values()) == pytest.approx(1)
            score = sum(share * hit.similarities[name] for name, share in hit.weights.items())
            assert score == pytest.approx(hit.score, abs=1e-6)


@pytest.mark.parametrize("fusion", ["agg", "rrf", "combmnz"])
def test_ranks_have_no_weights(three, queries, doubles, fusion):
    ranking = Federation(doubles.HUB, three, fusion=fusion).search(queries, explain=True)
    assert (ranking.weights, ranking.common, ranking.hits(0)[0].weights) == ({}, None, {})


def test_nothing_is_explained_unless_asked(three, queries, doubles):
    hit = Federation(doubles.HUB, three).search(queries).hits(0)[0]
    assert (hit.similarities, hit.weights, hit.common) == ({}, {}, None)


def test_absent_hits_have_no_similarities(three, queries, doubles):
    ranking = Federation(doubles.HUB, three).search(queries, k=100, explain=True)
    assert np.isnan(ranking.similarities[:, :, 75:]).all()
    assert np.isfinite(ranking.similarities[:, :, :75]).all()


def test_two_spaces_of_one_model_are_told_apart(doubles, stores, queries):
    twin = replace(doubles.HUB, revision="2")
    other = doubles.Store("b", twin, stores[0].vectors)
    sources = [Source("a", stores[0]), Source("b", other, *doubles.bridges(doubles.HUB, twin))]
    names = Federation(doubles.HUB, sources).search(queries, explain=True).space_names
    assert names == tuple(f"hub-model@{one.fingerprint[:8]}" for one in (doubles.HUB, twin))


def test_explaining_needs_the_bridges(doubles, stores, queries):
    to_store, _ = doubles.bridges(doubles.HUB, doubles.SPOKE)
    sources = [Source("a", stores[0]), Source("b", stores[1], to_store)]
    federation = Federation(doubles.HUB, sources, fusion="agg")
    assert len(federation.search(queries)) == 9
    with pytest.raises(ConfigError, match=r"a bridge store to hub for source 'b'"):
        federation.search(queries, explain=True)


def test_blocks_are_explained_as_the_whole(three, queries, doubles, monkeypatch):
    federation = Federation(doubles.HUB, three)
    whole = federation.search(queries, explain=True)
    monkeypatch.setattr(hub, "QUERY_BLOCK", 4)
    blocks = federation.search(queries, explain=True)
    np.testing.assert_array_equal(whole.similarities, blocks.similarities)
    assert blocks.space_names == whole.space_names
    assert blocks.weights == whole.weights != {}


# --- budgets -------------------------------------------------------------------------------------


class Chosen(Budget):
    """A choice that is known beforehand."""

    def __init__(self, chosen):
        self.chosen, self.asked = np.asarray(chosen), []

    def choose(self, queries, *, spaces, k):
        self.asked.append(([one.shape for one in queries], spaces.tolist(), k))
        return self.chosen

    def check(self, hub, sources):
        self.hub, self.names = hub, [source.name for source in sources]


@pytest.fixture
def choice():
    """For 9 queries and 3 sources: a always, b for the odd ones, c never."""
    chosen = np.zeros((9, 3), dtype=bool)
    chosen[:, 0] = True
    chosen[1::2, 1] = True
    return chosen


@pytest.mark.parametrize("dedup", ["none", "vector"])
def test_a_store_is_searched_for_its_own_queries_only(three, queries, doubles, choice, dedup):
    budget = Chosen(choice)
    federation = Federation(doubles.HUB, three, budget=budget, dedup=dedup)
    ranking = federation.search(queries, k=5, explain=True)
    assert (budget.hub, budget.names) == (doubles.HUB, ["a", "b", "c"])
    assert budget.asked == [([(9, 4), (9, 6), (9, 5)], [0, 1, 2], 5)]
    np.testing.assert_array_equal(ranking.skipped, ~choice)
    assert ranking.source_names == ("a", "b", "c")
    assert [len(one) for one in three[1].store.searched] == [4]
    assert three[2].store.searched == []
    # as if only the chosen stores were there
    with_b = Federation(doubles.HUB, three, dedup=dedup).candidates(queries, depth=5)
    hidden = np.repeat(~choice, 5, axis=1)
    ids = np.where(hidden, "", with_b.ids)
    values = np.where(hidden, np.float32("nan"), with_b.similarities)
    expected = federation.rank(replace(with_b, ids=ids, similarities=values), queries.ids, k=5)
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(ranking, name), getattr(expected, name))


def test_a_uniform_budget_skips_nothing(three, queries, doubles):
    ranking = Federation(doubles.HUB, three, budget="uniform").search(queries)
    assert (ranking.skipped, ranking.source_names) == (None, ())


def test_a_store_that_was_skipped_has_no_outage(three, queries, doubles, choice):
    def fail(_):
        raise KeyError("vectors")

    three[2].store._fault = fail
    assert Federation(doubles.HUB, three, budget=Chosen(choice)).search(queries).complete
    only_c = np.zeros((9, 3), dtype=bool)
    only_c[:, 2] = True
    with pytest.raises(StoreError, match=r"at least one store; got store 'c' \(error\): KeyError"):
        Federation(doubles.HUB, three, budget=Chosen(only_c)).search(queries)


@pytest.mark.parametrize("wrong", [np.ones((9, 2), bool), np.ones((9, 3)), np.ones(9, bool)])
def test_a_choice_of_another_shape_is_refused(three, queries, doubles, wrong):
    federation = Federation(doubles.HUB, three, budget=Chosen(wrong))
    with pytest.raises(CountMismatchError, match=r"a choice of shape \(9, 3\) from the budget"):
        federation.search(queries)


def test_an_unknown_budget_is_refused(three, doubles):
    with pytest.raises(UnknownNameError, match=r"a budget among adaptive, uniform; got 'best'"):
        Federation(doubles.HUB, three, budget="best")


def test_skipped_rows_of_batches_are_joined(three, queries, doubles, choice):
    federation = Federation(doubles.HUB, three, budget=Chosen(choice))
    both = Ranking.concatenate([federation.search(queries), federation.search(queries)])
    np.testing.assert_array_equal(both.skipped, np.concatenate([~choice, ~choice]))
    assert both.source_names == ("a", "b", "c")


# --- calibration ---------------------------------------------------------------------------------


class Steep:
    """Trusts the second source less."""

    def probability(self, scores, source):
        sure = 1 / (1 + np.exp(-4 * scores.astype(np.float64)))
        return np.where(source == 1, sure / 2, sure).astype(np.float32)

    def check(self, names, scoring):
        assert list(names)[:2] == ["a", "b"]
        assert scoring.method == "score()"


def test_hits_are_ranked_by_their_scores_with_the_probability_beside(three, queries, doubles):
    plain = Federation(doubles.HUB, three[:2]).search(queries, k=55)
    ranking = Federation(doubles.HUB, three[:2], calibration=Steep()).search(queries, k=55)
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(plain, name), getattr(ranking, name))
    assert plain.probabilities is None
    assert plain.hits(0)[0].probability is None
    for hit in ranking.hits(3):
        sure = 1 / (1 + np.exp(-4 * hit.score))
        assert hit.probability == pytest.approx(sure / 2 if hit.store == "b" else sure, rel=1e-5)
    wide = Federation(doubles.HUB, three[:2], calibration=Steep()).search(queries, k=60)
    assert np.isnan(wide.probabilities[:, 55:]).all()


def test_one_threshold_for_every_store(three, queries, doubles):
    federation = Federation(doubles.HUB, three[:2], calibration=Steep())
    whole = federation.search(queries, k=55)
    cut = federation.search(queries, k=55, min_probability=0.4)
    for row in range(len(queries)):
        likely = [hit for hit in whole.hits(row) if hit.probability >= 0.4]
        assert [hit.id for hit in cut.hits(row)] == [hit.id for hit in likely]
        assert len(likely) < 55
    few = federation.search(queries, k=3, depth=55, min_probability=0.4)
    np.testing.assert_array_equal(few.ids, cut.ids[:, :3])
    nothing = federation.search(queries, k=3, min_probability=1.0)
    assert (nothing.ids == "").all()
    assert np.isnan(nothing.probabilities).all()


def test_an_unlikely_copy_does_not_hide_a_likely_one(doubles, queries):
    rows = doubles.unit(np.random.default_rng(3), 20, 4)
    stores = [doubles.Store(name, doubles.HUB, rows, [*map(str, range(20))]) for name in "ba"]
    sources = [Source(name, store) for name, store in zip("ba", stores, strict=True)]

    class First(Steep):
        def check(self, names, scoring):
            assert (list(names), scoring.bridges) == (["b", "a"], ())

        def probability(self, scores, source):
            return super().probability(scores, 1 - source)  # the first source is trusted less

    federation = Federation(doubles.HUB, sources, dedup="id", calibration=First())
    shown = federation.search(queries, k=5, min_probability=0.5)
    assert {hit.store for hit in shown.hits(0)} == {"a"}
    assert shown.hits(0)[0].also == (("b", shown.hits(0)[0].id),)


def test_a_threshold_needs_a_calibration(three, queries, doubles):
    with pytest.raises(ParameterError, match="a federation with a calibration"):
        Federation(doubles.HUB, three).search(queries, min_probability=0.5)
    federation = Federation(doubles.HUB, three[:2], calibration=Steep())
    with pytest.raises(ParameterError, match="min_probability from 0 to 1"):
        federation.search(queries, min_probability=1.5)


# --- whose scores a calibration was learned on ---------------------------------------------------


@pytest.fixture
def calibrated(three, queries, doubles):
    """Curves of a federation of two under score, and its sources."""
    federation = Federation(doubles.HUB, three[:2])
    candidates = federation.candidates(queries, depth=20)
    relevant = federation.method.score(candidates) > 0.3
    return ScoreCalibration.of(federation, candidates, relevant), three[:2]


def test_a_calibration_is_taken_by_a_federation_that_scores_alike(calibrated, queries, doubles):
    curves, sources = calibrated
    ranking = Federation(doubles.HUB, sources, calibration=curves).search(queries)
    assert np.isfinite(ranking.probabilities).all()
    others = {"dedup": "id", "depth": 20, "retries": 0}
    assert Federation(doubles.HUB, sources, calibration=curves, **others).scoring == curves.scoring


@pytest.mark.parametrize("fusion", ["rrf", "one_directional", Score(weight=0.2)])
def test_a_calibration_of_another_method_is_refused(calibrated, doubles, fusion):
    curves, sources = calibrated
    with pytest.raises(ConfigError, match=r"the fusion method that was calibrated, score\(\); got"):
        Federation(doubles.HUB, sources, fusion=fusion, calibration=curves)


def test_a_calibration_of_other_bridges_or_of_unknown_scores_is_refused(calibrated, doubles):
    curves, sources = calibrated
    into, back = doubles.bridges(doubles.HUB, doubles.SPOKE, seed=9)
    other = replace(sources[1], to_store=into, to_hub=back)
    with pytest.raises(ConfigError, match="the bridges that the calibrated scores were made with"):
        Federation(doubles.HUB, [sources[0], other], calibration=curves)
    with pytest.raises(ConfigError, match="says which scores it was learned on"):
        Federation(doubles.HUB, sources, calibration=replace(curves, scoring=None))


def test_merging_counts_where_lists_are_added_up(three, doubles):
    made = [
        Federation(doubles.HUB, three[:2], fusion="rrf", dedup=dedup).scoring.method
        for dedup in ("none", "id")
    ]
    assert made == ["rrf(c=60.0, dedup='none')", "rrf(c=60.0, dedup='id')"]


# --- advice --------------------------------------------------------------------------------------


def test_advice_says_what_to_give(three, queries, doubles):
    federation = Federation(doubles.HUB, three[:2], calibration=Steep())
    with pytest.raises(ParameterError, match=r"got 0\. Do: give k 1 or more\."):
        federation.search(queries, k=0)
    with pytest.raises(ParameterError, match=r"got 40\. Do: give a share: 0\.4 is 40 %\."):
        federation.search(queries, min_probability=40)
    with pytest.raises(ParameterError, match=r"got -1\. Do: give a share: 0\.5 is one half\."):
        federation.search(queries, min_probability=-1)
