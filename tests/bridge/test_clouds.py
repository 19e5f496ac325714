"""Fits that pairs do not enter: what is fitted on, what measures, what is claimed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import pytest

from isthmus.bridge import Bridge
from isthmus.bridge.selection import compose_for
from isthmus.errors import EmptyInputError, ParameterError
from isthmus.evaluate.preservation import nbr_overlap
from isthmus.maps import MAPS, Map
from isthmus.spaces import Pairs, Space, VectorSet

N, DIM = 900, 8


class ByMoments(Map):
    """A rotation between two clouds, from their axes and the signs of the third moments."""

    name: ClassVar[str] = "by_moments"
    freedom: ClassVar[int] = 10
    paired: ClassVar[bool] = False
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "rotation": ("source", "target"),
        "confidence": (),
    }
    seen: ClassVar[list[tuple[np.ndarray, np.ndarray]]] = []

    def __init__(self, *, confidence: float = 0.9, wrong: bool = False) -> None:
        self.confidence = confidence
        self.wrong = wrong

    def fit(self, X, Y, *, sample_weight=None, unpaired_source=None, unpaired_target=None):
        """Turn the axes of X into those of Y."""
        assert sample_weight is unpaired_source is unpaired_target is None
        self.seen.append((X, Y))
        axes = [_axes(np.asarray(side, np.float64)) for side in (X, Y)]
        if self.wrong:
            axes[0] = axes[0][:, ::-1]
        self.rotation_ = (axes[0] @ axes[1].T).astype(np.float32)
        self.confidence_ = np.asarray(self.confidence)
        self.n_features_in_, self.n_features_target_ = X.shape[1], Y.shape[1]
        return self

    @property
    def reliable(self) -> bool:
        """Whether the map is worth anything."""
        return bool(self.confidence_ >= 0.5)

    def transform(self, X):
        """Turn rows."""
        return self._check_source(X) @ self.rotation_


def _axes(rows: np.ndarray) -> np.ndarray:
    axes = np.linalg.eigh(rows.T @ rows)[1]
    return axes * np.sign(((rows @ axes) ** 3).sum(axis=0))


@pytest.fixture(autouse=True)
def seen(monkeypatch):
    monkeypatch.setitem(MAPS, ByMoments.name, ByMoments)
    ByMoments.seen.clear()
    return ByMoments.seen


@pytest.fixture(scope="module")
def sets() -> tuple[VectorSet, VectorSet]:
    """Skewed rows of unequal variances, and the same rows turned, with a little noise."""
    draw = np.random.default_rng(11)
    rows = draw.gamma(1.0, size=(N, DIM)) * np.logspace(0, 1, DIM)
    turned = rows @ np.linalg.qr(draw.normal(size=(DIM, DIM)))[0]
    ids = [f"d{row}" for row in range(N)]
    return (
        VectorSet(ids, rows, Space(model="a", dim=DIM, metric="l2", kind="query")),
        VectorSet(
            ids,
            turned + 5 + 0.1 * draw.normal(size=turned.shape),
            Space(model="b", dim=DIM, metric="l2"),
        ),
    )


def pairs_of(sets, n: int) -> Pairs:
    return Pairs.from_rows(*sets, np.arange(n), np.arange(n))


def fit(sets, pairs: Pairs | None, **changed) -> Bridge:
    given = {"unpaired_source": sets[0], "unpaired_target": sets[1], "method": "by_moments"}
    return Bridge.fit(pairs, **{**given, **changed})


# --- with pairs ----------------------------------------------------------------------------------


def test_pairs_measure_and_never_enter_the_fit(sets, seen):
    bridge = fit(sets, pairs_of(sets, 100), collection=sets[1])
    assert len(seen) == 1  # the map that is measured is the one that the bridge has
    assert [len(side) for side in seen[0]] == [N - 100, N - 100]
    assert bridge.verdict.status == "bridge"
    assert "fitted without pairs; on 100 of them" in bridge.verdict.reason
    assert bridge.report.n_queries == 100
    assert bridge.calibration.n_scores > 0
    made = bridge.provenance
    assert (made.paired, made.n_pairs, len(made.pair_hashes)) == (False, 0, 0)
    assert (made.n_unpaired_source, made.n_unpaired_target) == (N - 100, N - 100)
    assert [row["method"] for row in made.candidates] == ["null", "by_moments"]


def test_the_measured_value_is_that_of_the_map(sets):
    bridge = fit(sets, pairs_of(sets, 100), collection=sets[1])
    kept = nbr_overlap(
        bridge.transform(sets[0].vectors[:100]),
        sets[1].vectors[:100],
        k=10,
        metric="l2",
        collection=sets[1].vectors,
        own_rows=np.arange(100),
    )
    assert bridge.report.values["nbr_overlap@10"].mean == pytest.approx(kept.mean())
    assert bridge.report.values["retention@10"].mean == pytest.approx(kept.mean())


def test_where_all_rows_are_paired_a_fifth_is_held_out_and_the_order_says_nothing(sets, seen):
    bridge = fit(sets, pairs_of(sets, N), unpaired_source=None, unpaired_target=None)
    assert bridge.report.n_queries == N // 5
    X, Y = seen[0]
    assert len(X) == len(Y) == bridge.provenance.n_unpaired_source == N - N // 5
    order = [np.argsort(side @ _axes(side)[:, -1]) for side in (X, Y)]
    assert (order[0] == order[1]).mean() < 0.02


def test_wrong_pairs_neither_mend_nor_spoil_the_map_and_judge_it(sets):
    wrong = Pairs.from_rows(*sets, np.arange(100), np.arange(100)[::-1])
    one, two = (fit(sets, each) for each in (pairs_of(sets, 100), wrong))
    assert [each.verdict.status for each in (one, two)] == ["bridge", "reindex"]
    rows = sets[0].vectors[:50]
    np.testing.assert_allclose(one.transform(rows), two.transform(rows), atol=1e-4)


def test_a_wrong_map_is_measured_as_one(sets):
    bridge = fit(sets, pairs_of(sets, 100), params={"wrong": True})
    assert bridge.verdict.status == "reindex"
    assert "it does not learn from pairs" in bridge.verdict.reason
    assert "search" not in bridge.verdict.usable_for


def test_a_few_pairs_that_leave_it_open_ask_for_more(sets):
    full = fit(sets, pairs_of(sets, 100)).report.values["retention@10"]
    bridge = fit(sets, pairs_of(sets, 100), min_retention=0.25 * full.low + 0.75 * full.mean)
    assert bridge.verdict.status == "insufficient_pairs"
    assert bridge.verdict.pairs_needed > 100


def test_too_few_pairs_measure_nothing_and_their_rows_stay_in_the_clouds(sets, seen):
    bridge = fit(sets, pairs_of(sets, 7))
    assert bridge.verdict.status == "insufficient_pairs"
    assert "7 pairs are too few to measure it: 20 pairs would do" in bridge.verdict.reason
    assert bridge.report.values == {}
    assert [len(side) for side in seen[0]] == [N, N]
    assert bridge.provenance.n_unpaired_source == N


# --- without pairs -------------------------------------------------------------------------------


def test_without_pairs_nothing_is_claimed(sets, seen, tmp_path):
    target = sets[1].select(np.arange(300, N))
    bridge = fit((sets[0], target), None)
    assert [len(side) for side in seen[0]] == [N, N - 300]
    verdict = bridge.verdict
    assert verdict.status == "insufficient_pairs"
    assert verdict.usable_for == ()
    assert verdict.pairs_needed == 20
    assert "confidence, which no pair has checked, is 0.90" in verdict.reason
    assert "nothing could be measured: 20 pairs would do" in verdict.reason
    assert bridge.report.values == {}
    assert bridge.calibration.n_scores == 0
    assert bridge.provenance.source_kind == "query"
    bridge.save(tmp_path / "b")
    loaded = Bridge.load(tmp_path / "b")
    assert loaded.hash == bridge.hash
    assert not loaded.provenance.paired
    mapped = loaded.apply(sets[0])
    assert mapped.space.model == "b"
    np.testing.assert_array_equal(mapped.matrix(), bridge.apply(sets[0]).matrix())


def test_without_pairs_the_scope_is_that_of_the_cloud(sets):
    bridge = fit(sets, None)
    assert bridge.scope.kind == "query"
    assert bridge.examine(sets[0]).share_outside == pytest.approx(0.03, abs=0.02)
    away = np.random.default_rng(0).normal(size=(100, DIM)) * 60
    assert bridge.outside(away).mean() > 0.9


def test_a_low_confidence_says_that_the_map_is_worthless(sets):
    bridge = fit(sets, None, params={"confidence": 0.2})
    assert bridge.verdict.status == "reindex"
    assert "is 0.20: what it found is worthless" in bridge.verdict.reason


def test_the_card_says_that_no_pairs_were_there(sets, tmp_path):
    fit(sets, None).save(tmp_path / "b")
    card = (tmp_path / "b" / "README.md").read_text()
    assert "Fitted without pairs, on 900 source rows and 900 target rows" in card
    assert "too few pairs to measure anything" in card


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["ridge", "auto"])
def test_a_map_that_learns_from_pairs_needs_some(sets, method):
    with pytest.raises(EmptyInputError, match=f"pairs, which {method} learns from.*by_moments"):
        fit(sets, None, method=method)


@pytest.mark.parametrize("side", ["unpaired_source", "unpaired_target"])
def test_without_pairs_both_sides_are_needed(sets, side):
    with pytest.raises(EmptyInputError, match="unpaired rows on both sides"):
        fit(sets, None, **{side: None})


def test_a_retention_out_of_range_is_refused(sets):
    with pytest.raises(ParameterError, match="min_retention"):
        fit(sets, None, min_retention=0.0)


def test_clouds_of_other_widths_go_through_the_steps(sets):
    unfitted = compose_for(pairs_of(sets, 2), "by_moments")
    fitted = unfitted.fit(sets[0].vectors, sets[1].vectors[:100])
    assert fitted.paired is False
    np.testing.assert_allclose(
        fitted.transform(sets[0].vectors).mean(axis=0), sets[1].vectors[:100].mean(axis=0), atol=0.2
    )
