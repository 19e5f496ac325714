"""The bridge: spaces, direction, scope, and what fit puts together."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge import Bridge
from isthmus.errors import (
    DimensionError,
    SpaceMismatchError,
    TooFewPairsError,
    UnknownNameError,
    UnsupportedOperationError,
    VerdictError,
    WrongDirectionError,
)
from isthmus.spaces import Pairs, Space, VectorSet


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


FAST = settings(derandomize=True, deadline=None, max_examples=20)


def test_apply_lands_in_the_target_space_near_the_target_rows(planted, bridge):
    mapped = bridge.apply(planted.source)
    planted.target.space.check(mapped.space)
    assert mapped.ids.tolist() == planted.source.ids.tolist()
    assert mapped.space.bridged_from == bridge.hash
    new = slice(120, None)
    cosines = np.einsum("ij,ij->i", mapped.vectors[new], planted.target.vectors[new])
    assert cosines.mean() > 0.6
    np.testing.assert_allclose(np.linalg.norm(mapped.vectors, axis=1), 1, atol=1e-6)


def test_apply_keeps_kind_and_prompt_of_the_set(planted, bridge):
    space = dataclasses.replace(planted.source.space, kind="query", prompt="query: ")
    mapped = bridge.apply(VectorSet(planted.source.ids, planted.source.vectors, space))
    assert (mapped.space.kind, mapped.space.prompt) == ("query", "query: ")


def test_rows_keep_their_length_where_the_target_is_not_normalised(planted):
    free = dataclasses.replace(planted.target.space, normalized=False)
    target = VectorSet(planted.target.ids, 3 * planted.target.vectors, free)
    bridge = Bridge.fit(Pairs.from_ids(planted.source, target), method="ridge")
    mapped = bridge.apply(planted.source).vectors
    np.testing.assert_array_equal(mapped, bridge.transform(planted.source.vectors))
    assert np.linalg.norm(mapped, axis=1).mean() > 1.5


def test_transform_is_the_map_at_unit_length_and_the_target_side_stays(planted, bridge):
    rows = planted.source.vectors
    mapped = bridge.map.transform(rows)
    lengths = np.linalg.norm(mapped, axis=1, keepdims=True)
    np.testing.assert_allclose(bridge.transform(rows), mapped / lengths, atol=1e-6)
    assert abs(lengths - 1).max() > 0.01  # the map alone does not keep them
    np.testing.assert_array_equal(
        bridge.transform_target(planted.target.vectors), planted.target.vectors
    )


@FAST
@given(rows=st.lists(st.integers(0, 399), min_size=1, max_size=30, unique=True))
def test_numbers_of_a_row_do_not_depend_on_the_batch(planted, bridge, rows):
    whole, part = bridge.apply(planted.source), bridge.apply(planted.source.select(rows))
    np.testing.assert_array_equal(part.vectors, whole.vectors[rows])
    np.testing.assert_array_equal(
        bridge.outside(planted.source.vectors[rows]), bridge.outside(planted.source.vectors)[rows]
    )


def test_vectors_of_another_space_are_refused(bridge):
    other = VectorSet(["a"], unit(np.ones((1, 12))), Space(model="third", dim=12, normalized=True))
    for use in (bridge.apply, bridge.examine):
        with pytest.raises(SpaceMismatchError, match=r"model 'old'.*got model 'third'") as error:
            use(other)
        assert not isinstance(error.value, WrongDirectionError)


def test_vectors_of_the_target_space_ask_for_the_reverse_bridge(planted, bridge):
    for use in (bridge.apply, bridge.examine):
        with pytest.raises(
            WrongDirectionError,
            match=r"vectors of the source space, old.*got vectors of the target space, new.*"
            r"load the reverse bridge, from new to old",
        ):
            use(planted.target)


def test_the_reverse_bridge_is_a_fit_of_its_own(planted, bridge):
    back = Bridge.fit(planted.pairs.reverse(), method="procrustes")
    assert (back.source, back.target) == (bridge.target, bridge.source)
    assert back.apply(planted.target).space.model == "old"
    with pytest.raises(WrongDirectionError):
        back.apply(planted.source)


def test_arrays_of_another_width_are_refused(bridge):
    with pytest.raises(DimensionError, match="X with 12 columns"):
        bridge.transform(np.ones((2, 16)))
    with pytest.raises(DimensionError, match="X with 12 columns"):
        bridge.outside(np.ones((2, 16)))


def test_scope_counts_and_kind_are_flagged_not_refused(planted, bridge):
    inside = bridge.examine(planted.source)
    assert inside.rows == 400
    assert inside.share_outside < 0.1
    assert not inside.kind_differs
    rng = np.random.default_rng(0)
    noise = VectorSet(planted.source.ids, unit(rng.normal(size=(400, 12))), planted.source.space)
    assert bridge.examine(noise).share_outside > 0.3
    queries = VectorSet(
        planted.source.ids, planted.source.vectors, planted.source.space.with_kind("query")
    )
    report = bridge.examine(queries)
    assert (report.kind, report.pairs_kind, report.kind_differs) == ("query", "passage", True)


@pytest.mark.parametrize("method", ["cca", "relative"])
def test_maps_into_a_comparison_space_carry_both_sides_to_one_space(planted, fitted, method):
    bridge = fitted(method)
    assert bridge.lands_in == "comparison"
    assert bridge.calibration.n_scores > 0

    left, right = bridge.apply(planted.source), bridge.apply(planted.target)

    assert left.space.fingerprint == right.space.fingerprint
    assert left.space == dataclasses.replace(bridge.comparison_space, bridged_from=bridge.hash)
    assert left.space.model == f"{method} of {bridge.source.model} and {bridge.target.model}"
    for side, raw in (
        (left, bridge.transform(planted.source.vectors)),
        (right, bridge.transform_target(planted.target.vectors)),
    ):
        unit = raw / np.linalg.norm(raw, axis=1, keepdims=True)
        np.testing.assert_allclose(side.vectors, unit, atol=1e-6)
    found = (left.vectors @ right.vectors.T).argmax(axis=1)
    assert (found == np.arange(len(found))).mean() > 10 / len(found)


def test_a_comparison_space_belongs_to_one_bridge(planted, fitted):
    bridge, other = fitted("cca"), fitted("relative")
    carried = bridge.apply(planted.source)

    assert carried.space.fingerprint != other.apply(planted.source).space.fingerprint
    with pytest.raises(SpaceMismatchError):
        bridge.apply(carried)
    with pytest.raises(UnsupportedOperationError, match="one that lands in its target space"):
        _ = fitted("procrustes").comparison_space


def test_calibration_brings_scores_nearer_to_native_ones(planted, bridge):
    mapped = bridge.apply(planted.source).vectors[120:]
    native = planted.target.vectors[120:]
    bridged, wanted = mapped @ native.T, native @ native.T
    np.fill_diagonal(bridged, -1)
    first = np.argsort(-bridged, axis=1)[:, :10]  # what a search returns, and thresholds cut
    bridged, wanted = (np.take_along_axis(scores, first, axis=1) for scores in (bridged, wanted))
    assert bridged.mean() - wanted.mean() > 0.02
    assert abs(bridge.calibration.to_native(bridged).mean() - wanted.mean()) < 0.01


def test_scores_of_the_dot_product_and_of_distances_are_calibrated_too(planted):
    for metric in ("dot", "l2"):
        target = dataclasses.replace(planted.target.space, metric=metric, normalized=False)
        free = VectorSet(planted.target.ids, 5 * planted.target.vectors, target)
        bridge = Bridge.fit(Pairs.from_ids(planted.source, free), method="ridge")
        curve = bridge.calibration
        assert curve.error_after < curve.error_before
        assert (curve.native.max() <= 0) == (metric == "l2")


def test_what_fit_records(planted):
    pairs = planted.pairs.sample(80, "kmeans", seed=3)
    coverage = pairs.coverage(planted.source, planted.target).to_dict()
    bridge = Bridge.fit(pairs, method="ridge", coverage=coverage, seed=5)
    made = bridge.provenance
    assert (bridge.method, made.n_pairs, made.seed, made.strategy) == ("ridge", 80, 5, "kmeans")
    assert made.coverage == coverage
    assert made.libraries["numpy"] == np.__version__
    assert not made.weighted
    assert made.fitted_on(planted.source.ids, side="source").sum() == 80
    assert bridge.report.values.keys() >= {"nbr_overlap@10", "cos_to_target"}
    assert bridge.report.null.keys() >= {"nbr_overlap@10", "cos_to_target"}


def test_weights_count_and_are_recorded(planted):
    weight = np.linspace(0.1, 1, 120, dtype=np.float32)
    weighted = dataclasses.replace(planted.pairs, weight=weight)
    bridge = Bridge.fit(weighted, method="procrustes")
    assert bridge.provenance.weighted
    plain = Bridge.fit(planted.pairs, method="procrustes")
    assert np.abs(bridge.transform(np.eye(12)) - plain.transform(np.eye(12))).max() > 1e-3


def test_the_spaces_of_a_bridge_are_native_ones(planted):
    carried = dataclasses.replace(planted.source.space, bridged_from="0" * 64)
    again = Pairs.from_ids(
        VectorSet(planted.source.ids, planted.source.vectors, carried), planted.target
    )
    assert Bridge.fit(again, method="procrustes").source.bridged_from == ""


def test_a_fit_is_the_same_twice_and_another_seed_is_recorded(planted, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    one, two = (Bridge.fit(planted.pairs, method="ridge", seed=4) for _ in range(2))
    assert one.hash == two.hash
    assert one.provenance.created == "2023-11-14T22:13:20+00:00"
    assert Bridge.fit(planted.pairs, method="ridge", seed=5).hash != one.hash


def test_the_hash_follows_every_part(bridge):
    other = dataclasses.replace(
        bridge, provenance=dataclasses.replace(bridge.provenance, seed=bridge.provenance.seed + 1)
    )
    assert other.hash != bridge.hash
    assert len(bridge.hash) == 64


def test_a_bridge_says_what_it_is_in_one_line(bridge):
    said = dataclasses.replace(bridge, verdict=dataclasses.replace(bridge.verdict, status="bridge"))
    assert repr(said) == "Bridge(old (12, cosine) to new (16, cosine), procrustes: bridge)"


@pytest.mark.parametrize("n", [2, 3, 5, 12, 19])
def test_too_few_pairs_are_a_verdict_and_still_a_whole_bridge(planted, tmp_path, n):
    rows = np.arange(n)
    pairs = Pairs.from_rows(planted.source, planted.target, rows, rows)
    bridge = Bridge.fit(pairs, method="procrustes")
    assert bridge.verdict.status == "insufficient_pairs"
    bridge.save(tmp_path / "b")
    again = Bridge.load(tmp_path / "b")
    assert again.hash == bridge.hash
    assert again.calibration.to_native([0.25]).tolist() == [0.25]
    assert "too few pairs to measure" in (tmp_path / "b" / "README.md").read_text()
    with pytest.raises(VerdictError, match=f"got insufficient_pairs: {n} pairs"):
        again.require()


def test_one_pair_is_an_error(planted):
    with pytest.raises(TooFewPairsError):
        Bridge.fit(Pairs.from_rows(planted.source, planted.target, [0], [0]), method="procrustes")


def test_a_map_that_is_not_there_is_an_error(planted):
    with pytest.raises(UnknownNameError, match="got 'rigde'"):
        Bridge.fit(planted.pairs, method="rigde")


def test_a_collection_of_another_space_is_an_error(planted):
    with pytest.raises(SpaceMismatchError, match="a target collection with model 'new'"):
        Bridge.fit(planted.pairs, method="procrustes", collection=planted.source)


def test_require_takes_the_better_verdict_for_the_lesser(bridge):
    def judged(status):
        return dataclasses.replace(
            bridge, verdict=dataclasses.replace(bridge.verdict, status=status)
        )

    judged("bridge").require("bridge")
    judged("pre_aligned").require("bridge")
    judged("reindex").require("reindex")
    for status in ("insufficient_pairs", "reindex"):
        with pytest.raises(VerdictError, match=f"bridge or pre_aligned; got {status}"):
            judged(status).require("bridge")
    with pytest.raises(VerdictError, match="got bridge"):
        judged("bridge").require("pre_aligned")
