"""Evaluate: what is held out, what stands beside it, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isthmus import Bridge, Pairs, Space, VectorSet, evaluate_bridge, fit_bridge
from isthmus.errors import (
    EmptyInputError,
    ParameterError,
    SpaceMismatchError,
    UnknownIdError,
    WrongDirectionError,
)
from isthmus.evaluate.preservation import nbr_overlap
from isthmus.spaces import Qrels

A = Space(model="a", dim=8, normalized=True)
B = Space(model="b", dim=8, normalized=True)
N, FITTED = 160, 60


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def world():
    """Documents and queries in two spaces, a noisy rotation apart, and a bridge on 60 of them."""
    draw = np.random.default_rng(11)
    turn = np.linalg.qr(draw.normal(size=(8, 8)))[0]
    rows = draw.normal(size=(N, 8))
    asked = rows[100:130] + 0.3 * draw.normal(size=(30, 8))
    ids, names = [f"d{i}" for i in range(N)], [f"q{i}" for i in range(30)]

    def both(at: np.ndarray, labels: list[str], kind: str) -> tuple[VectorSet, VectorSet]:
        other = unit(at @ turn + 0.2 * draw.normal(size=at.shape))
        return (
            VectorSet(labels, unit(at), A.with_kind(kind)),
            VectorSet(labels, other, B.with_kind(kind)),
        )

    one, two = both(rows, ids, "passage")
    queries, native = both(asked, names, "query")
    pairs = Pairs.from_rows(one, two, np.arange(FITTED), np.arange(FITTED))
    bridge = fit_bridge(one, two, pairs, method="procrustes")
    qrels = Qrels(names, [f"d{100 + i}" for i in range(30)], np.ones(30))
    return bridge, one, two, queries, native, qrels


def test_fitted_pairs_are_not_held_out(world):
    bridge, one, two, *_ = world
    result = evaluate_bridge(bridge, one, two)
    assert (result.shared, result.fitted, result.n_queries) == (N, FITTED, N - FITTED)
    rest = np.arange(FITTED, N)
    mapped = bridge.apply(one.select(rest)).matrix()
    by_hand = nbr_overlap(
        mapped, two.matrix()[rest], k=10, collection=two.matrix(), own_rows=rest, metric="cosine"
    )
    assert result.values["nbr_overlap@10"].per_query == pytest.approx(by_hand, abs=1e-7)
    assert set(result.null) == set(result.values)
    assert result.null["nbr_overlap@10"].mean < result.values["nbr_overlap@10"].mean
    assert result.notes == ("60 of 160 pairs were left out: the bridge was fitted on them",)
    assert result.rows_scope is not None
    assert result.rows_scope.rows == N - FITTED


def test_either_id_of_a_pair_is_enough_to_leave_it_out(world):
    bridge, one, two, *_ = world
    crossed = Pairs.from_rows(one, two, [0, 100, 101], [102, 1, 103])
    result = evaluate_bridge(bridge, one, two, crossed)
    assert (result.shared, result.fitted, result.n_queries) == (3, 2, 1)


def test_a_saved_bridge_remembers_its_pairs(world, tmp_path):
    bridge, one, two, *_ = world
    bridge.save(tmp_path / "bridge")
    again, there = evaluate_bridge(tmp_path / "bridge", one, two), evaluate_bridge(bridge, one, two)
    assert again.fitted == FITTED
    assert again.values["nbr_overlap@10"].mean == there.values["nbr_overlap@10"].mean


def test_a_bridge_that_does_not_remember_says_so(world):
    bridge, one, two, *_ = world
    nothing = np.empty((0, 2), np.int64)
    forgetful = replace(bridge, provenance=replace(bridge.provenance, pair_hashes=nothing))
    result = evaluate_bridge(forgetful, one, two)
    assert (result.fitted, result.n_queries) == (0, N)
    assert result.notes[0].startswith("the bridge does not say which ids it was fitted on")


def test_queries_beside_the_null_map_and_the_oracle(world):
    bridge, one, two, queries, native, qrels = world
    result = evaluate_bridge(bridge, one, two, queries=queries, target_queries=native, qrels=qrels)
    assert (result.judged, result.searched) == (30, N - FITTED)
    for name in ("nDCG@10", "Recall@10"):
        assert result.null[name].mean < result.values[name].mean <= result.oracle[name].mean
        share = result.values[f"{name}/oracle"]
        assert share.mean == pytest.approx(result.values[name].mean / result.oracle[name].mean)
        assert share.low <= share.mean <= share.high
    kept = result.values["nbr_overlap@10 of queries"]
    assert kept.per_query == pytest.approx(
        nbr_overlap(bridge.apply(queries).matrix(), native.matrix(), k=10, collection=two.matrix()),
        abs=1e-7,
    )
    assert any("the queries are of kind 'query'" in note for note in result.notes)


def test_one_query_has_a_value_and_no_interval(world):
    bridge, one, two, queries, native, qrels = world
    asked, same = queries.select([3]), native.select([3])
    result = evaluate_bridge(bridge, one, two, queries=asked, target_queries=same, qrels=qrels)
    assert (result.judged, result.n_queries) == (1, N - FITTED)
    for name in ("nDCG@10", "Recall@10", "nbr_overlap@10 of queries"):
        for side in (result.values, result.null):
            assert side[name].per_query.tolist() == pytest.approx([side[name].mean])
            assert np.isnan([side[name].low, side[name].high]).all()
    assert result.oracle["Recall@10"].mean == 1
    share = result.values["nDCG@10/oracle"]
    assert share.mean == result.values["nDCG@10"].mean / result.oracle["nDCG@10"].mean
    assert np.isnan([share.low, share.high]).all()
    assert result.queries_scope is not None
    assert result.queries_scope.rows == 1


def test_target_queries_in_another_order(world):
    bridge, one, two, queries, native, qrels = world
    turned = native.select(np.arange(30)[::-1])
    first, second = (
        evaluate_bridge(bridge, one, two, queries=queries, target_queries=side, qrels=qrels)
        for side in (native, turned)
    )
    assert first.oracle["nDCG@10"].mean == second.oracle["nDCG@10"].mean


def test_without_the_oracle_s_queries_there_is_no_oracle(world):
    bridge, one, two, queries, _, qrels = world
    result = evaluate_bridge(bridge, one, two, queries=queries, qrels=qrels)
    assert result.oracle == {}
    assert "nDCG@10/oracle" not in result.values
    assert "nbr_overlap@10 of queries" not in result.values


def test_queries_alone_where_every_pair_was_fitted_on(world):
    bridge, one, two, queries, _, qrels = world
    half = one.select(np.arange(FITTED))
    result = evaluate_bridge(bridge, half, two, queries=queries, qrels=qrels)
    assert (result.n_queries, result.judged) == (0, 30)
    assert result.rows_scope is None
    assert set(result.values) == {"nDCG@10", "Recall@10"}


def test_judgements_of_fitted_documents_do_not_count(world):
    bridge, one, two, queries, _, _ = world
    names = queries.ids.tolist()
    seen = Qrels(names, [f"d{i}" for i in range(30)], np.ones(30))
    result = evaluate_bridge(bridge, one, two, queries=queries, qrels=seen)
    assert result.judged == 0
    assert "nDCG@10" not in result.values
    (note,) = (one for one in result.notes if "judged" in one)
    assert note.startswith("no query could be judged, so nDCG@10 and Recall@10 are not known: the ")
    assert "relevant documents of 30 are not among the" in note
    assert note.endswith(
        "; fit on pairs without these documents (isthmus fit --pairs), or pass a larger target"
    )
    mixed = Qrels([*names, "q0"], [*(f"d{i}" for i in range(30)), "d100"], np.ones(31))
    result = evaluate_bridge(bridge, one, two, queries=queries, qrels=mixed)
    assert result.judged == 1
    assert any(note.startswith("29 of 30 queries were left out: the rel") for note in result.notes)
    few = Qrels(["q0"], ["d100"], np.ones(1))
    result = evaluate_bridge(bridge, one, two, queries=queries, qrels=few)
    why = "29 of 30 queries were left out: 29 have no relevant document in the judgements"
    assert why in result.notes


def test_a_bridge_fitted_on_every_document_leaves_none_to_judge_by(world):
    bridge, one, two, queries, _, qrels = world
    fitted = two.select(np.arange(FITTED))
    result = evaluate_bridge(bridge, one, fitted, queries=queries, qrels=qrels)
    assert (result.judged, result.searched) == (0, 0)
    assert any("fitted on every document of the target set" in note for note in result.notes)


def test_maps_that_move_both_sides_are_measured_where_they_meet(world):
    _, one, two, queries, native, qrels = world
    pairs = Pairs.from_rows(one, two, np.arange(FITTED), np.arange(FITTED))
    bridge = Bridge.fit(pairs, method="cca", collection=two)
    assert bridge.lands_in == "comparison"
    result = evaluate_bridge(bridge, one, two, queries=queries, target_queries=native, qrels=qrels)
    # Scaling by the correlations bends what a rotation would keep, but far more is kept than by
    # chance, which is what searching the unmoved target would give.
    assert result.values["nbr_overlap@10"].low > 2 * result.null["nbr_overlap@10"].high
    assert result.values["nbr_overlap@10 of queries"].mean > 0.25
    assert result.values["nDCG@10"].mean > 0.5


def test_many_rows_are_drawn_by_seed(world, monkeypatch):
    import isthmus.workflows._evaluating as evaluating

    monkeypatch.setattr(evaluating, "HELD_OUT_ROWS", 20)
    bridge, one, two, *_ = world
    first, same, other = (evaluate_bridge(bridge, one, two, seed=seed) for seed in (1, 1, 2))
    assert first.n_queries == 20
    assert first.values["mse"].mean == same.values["mse"].mean != other.values["mse"].mean


def test_the_report_is_plain_json(world):
    import json

    bridge, one, two, queries, _, qrels = world
    told = evaluate_bridge(bridge, one, two, queries=queries, qrels=qrels).to_dict()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told["fitted"] == FITTED
    assert told["scope"]["queries"]["kind"] == "query"


def test_nothing_held_out_is_an_error(world):
    bridge, one, two, *_ = world
    half = np.arange(FITTED)
    with pytest.raises(EmptyInputError, match="60 pairs, all of which it was fitted on"):
        evaluate_bridge(bridge, one.select(half), two.select(half))
    apart = VectorSet(["x"], two.matrix()[:1], B)
    with pytest.raises(EmptyInputError, match="no id in common and no queries"):
        evaluate_bridge(bridge, one, apart)


def test_what_does_not_fit_is_refused(world):
    bridge, one, two, queries, native, qrels = world
    with pytest.raises(WrongDirectionError):
        evaluate_bridge(bridge, two, one)
    with pytest.raises(SpaceMismatchError):
        evaluate_bridge(bridge, one, one)
    with pytest.raises(ParameterError, match="expected queries in the source space"):
        evaluate_bridge(bridge, one, two, qrels=qrels)
    with pytest.raises(ParameterError, match="expected judgements of the queries"):
        evaluate_bridge(bridge, one, two, queries=queries)
    with pytest.raises(SpaceMismatchError):
        evaluate_bridge(bridge, one, two, queries=queries, target_queries=queries)
    with pytest.raises(UnknownIdError):
        evaluate_bridge(
            bridge, one, two, queries=queries, target_queries=native.select(np.arange(5))
        )
    stranger = Pairs.from_rows(two, one, [0], [0])
    with pytest.raises(SpaceMismatchError):
        evaluate_bridge(bridge, one, two, stranger)
