"""Linking and fitting where nobody has a single pair."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from isthmus import Space, VectorSet, find_links, fit_bridge
from isthmus.bridge import Bridge
from isthmus.errors import InputError, ParameterError, TooFewPairsError
from isthmus.link import LinkVerdict
from isthmus.workflows import _zero_seeds
from isthmus.workflows._zero_seeds import ZeroSeeds, find_seeds

N, SHARED = 700, 500


def clustered(ids: np.ndarray, rows: np.ndarray, model: str) -> VectorSet:
    return VectorSet(ids.tolist(), rows, Space(model=model, dim=rows.shape[1]))


@pytest.fixture(scope="module")
def sets() -> tuple[VectorSet, VectorSet]:
    """Clusters of several sizes, turned; of 700 objects on each side 500 are on both."""
    rng = np.random.default_rng(8)
    sizes = rng.dirichlet(np.full(12, 2.0))
    group = rng.choice(12, size=N + N - SHARED, p=sizes)
    rows = 3 * rng.standard_normal((12, 10))[group] + rng.standard_normal((len(group), 10))
    turned = rows @ np.linalg.qr(rng.standard_normal((10, 10)))[0]
    ids = np.array([f"d{row}" for row in range(len(rows))])
    other = rng.permutation(np.arange(N - SHARED, len(rows)))
    return (
        clustered(ids[:N], rows[:N], "a"),
        clustered(ids[other], (turned + 0.01 * rng.standard_normal(turned.shape))[other], "b"),
    )


def right(found) -> float:
    pairs = found.pairs()
    return float((pairs.source_ids == pairs.target_ids).mean())


def test_links_are_found_without_a_single_seed(sets):
    found = find_links(*sets, "none", method="self_training")
    assert found.n_seeds == 100
    assert found.seeds_inside
    assert right(found) > 0.9
    assert len(found) > 0.8 * SHARED
    assert any("no seeds were given" in note for note in found.notes)


def test_the_same_seeds_are_found_again(sets):
    one, two = (find_seeds(*sets, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.rows, two.rows)
    assert one.reliable
    left, right_ids = sets[0].ids[one.rows[:, 0]], sets[1].ids[one.rows[:, 1]]
    assert (left == right_ids).mean() > 0.9


def test_a_stopped_run_goes_on_with_the_seeds_that_it_had(sets, tmp_path: Path):
    kept = tmp_path / "links.csv.checkpoint"
    whole = find_links(*sets, "none", method="self_training", checkpoint=kept)
    again = find_links(*sets, "none", method="self_training", checkpoint=kept, resume=True)
    assert again.resumed_after == len(whole.links.history)
    np.testing.assert_array_equal(whole.links.source_rows, again.links.source_rows)
    with pytest.raises(ParameterError, match="differs in: seed pairs"):
        find_links(*sets, "none", method="self_training", checkpoint=kept, resume=True, seed=9)


@pytest.mark.parametrize("method", ["self_training", "auto"])
def test_seeds_of_a_worthless_map_never_give_more_than_doubt(sets, monkeypatch, method):
    rows = np.column_stack([np.arange(30), np.random.default_rng(0).permutation(30)])
    poor = ZeroSeeds(rows, 0.04, reliable=False)
    module = importlib.import_module("isthmus.workflows.find_links")
    monkeypatch.setattr(module, "find_seeds", lambda *_, **__: poor)
    found = find_links(*sets, "none", method=method)
    assert found.links.verdict.status in {"doubtful", "no_overlap_found"}
    assert any("it is worthless, and so may be all links" in note for note in found.notes)


def test_a_verdict_is_lowered_and_never_raised(sets):
    links = find_links(*sets, "none", method="self_training").links
    poor = ZeroSeeds(np.zeros((3, 2), int), 0.1, reliable=False)
    linked = replace(links, verdict=LinkVerdict("linked"))
    assert poor.judge(linked).verdict.status == "doubtful"
    assert "confidence of 0.10" in poor.judge(linked).verdict.reasons[-1]
    for status in ("doubtful", "no_overlap_found"):
        less = replace(links, verdict=LinkVerdict(status, ("why",)))
        assert poor.judge(less) is less
    assert replace(poor, reliable=True).judge(linked) is linked


def test_sets_that_are_too_small_are_refused(sets):
    few = sets[0].select(np.arange(10))
    with pytest.raises(TooFewPairsError):
        find_links(few, sets[1], "none")


def test_none_and_seed_vectors_do_not_go_together(sets):
    with pytest.raises(ParameterError, match="seed vectors, or none"):
        find_links(*sets, "none", seed_vectors=sets)


def test_too_few_mutual_neighbours_are_named(sets, monkeypatch):
    monkeypatch.setattr(_zero_seeds, "FEWEST", N + 1)
    with pytest.raises(TooFewPairsError, match="each other's nearest"):
        find_seeds(*sets, seed=0)


# --- fit -----------------------------------------------------------------------------------------


def test_a_bridge_without_pairs_claims_nothing_and_works(sets, tmp_path: Path):
    bridge = fit_bridge(*sets, "none", method="unpaired_iterative")
    assert bridge.verdict.status == "insufficient_pairs"
    assert "fitted without pairs" in bridge.verdict.reason
    assert (bridge.provenance.n_unpaired_source, bridge.provenance.n_pairs) == (N, 0)
    assert bridge.provenance.coverage is None
    bridge.save(tmp_path / "bridge")
    assert Bridge.load(tmp_path / "bridge").apply(sets[0]).space.model == "b"


def test_no_equal_id_is_no_pair_for_a_map_that_needs_none(sets):
    renamed = VectorSet([f"x{one}" for one in sets[1].ids], sets[1].vectors, sets[1].space)
    bridge = fit_bridge(sets[0], renamed, method="unpaired_iterative")
    assert bridge.report.values == {}
    with pytest.raises(InputError, match="ids that stand in both sets"):
        fit_bridge(sets[0], renamed, method="ridge")


def test_pairs_measure_what_was_fitted_without_them(sets):
    bridge = fit_bridge(*sets, method="unpaired_iterative")
    assert bridge.verdict.status == "bridge"
    assert not bridge.provenance.paired
    assert bridge.report.n_queries == round(0.2 * N)
    assert bridge.provenance.n_unpaired_source == N - bridge.report.n_queries
