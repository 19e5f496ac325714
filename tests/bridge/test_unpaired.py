"""Rows without a pair: which rows count, who is handed them, and what is recorded."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

from isthmus.bridge import Bridge
from isthmus.bridge.manifest import manifest_hash
from isthmus.bridge.selection import candidates
from isthmus.bridge.unpaired import NO_ROWS, Unpaired
from isthmus.errors import EmptyInputError, MalformedArtifactError, SpaceMismatchError
from isthmus.maps import MAPS, Ridge
from isthmus.spaces import Pairs, VectorSet


class SeesUnpaired(Ridge):
    """Ridge that keeps what it was handed beside the pairs."""

    name: ClassVar[str] = "sees_unpaired"
    sees_unpaired: ClassVar[bool] = True
    seen: ClassVar[list[dict[str, Any]]] = []

    def fit(self, X, Y, *, sample_weight=None, unpaired_source=None, unpaired_target=None):
        """Keep the rows, and fit ridge."""
        self.seen.append({"pairs": len(X), "source": unpaired_source, "target": unpaired_target})
        return super().fit(X, Y, sample_weight=sample_weight)


@pytest.fixture
def seen(monkeypatch):
    monkeypatch.setitem(MAPS, SeesUnpaired.name, SeesUnpaired)
    SeesUnpaired.seen.clear()
    return SeesUnpaired.seen


def fit(planted, **changed) -> Bridge:
    given = {
        "method": "sees_unpaired",
        "unpaired_source": planted.source,
        "unpaired_target": planted.target.select(np.arange(350)),
    }
    return Bridge.fit(planted.pairs, **{**given, **changed})


def test_rows_that_stand_in_pairs_are_left_out_of_every_fit(planted, seen):
    bridge = fit(planted)
    assert len(seen) == 10 + 2 + 1  # ten folds, two halves, and the bridge itself
    for one in seen:
        assert (len(one["source"]), len(one["target"])) == (280, 230)
        moved = one["source"] - seen[0]["source"]  # each fit centres on its own pairs
        np.testing.assert_allclose(moved, np.tile(moved[0], (280, 1)), atol=1e-6)
    provenance = bridge.provenance
    assert (provenance.n_unpaired_source, provenance.n_unpaired_target) == (280, 230)
    assert (provenance.n_pairs, provenance.paired) == (120, True)


def test_the_rows_go_through_the_steps_of_their_side(planted, seen):
    bridge = fit(planted)
    rest = planted.source.vectors[120:]
    expected = rest
    for step in bridge.map.source_steps_:
        expected = step.transform(expected)
    np.testing.assert_allclose(seen[-1]["source"], expected, atol=1e-6)


def test_a_map_that_does_not_look_is_handed_nothing_and_nothing_is_recorded(planted):
    with_rows, without = (
        fit(planted, method="ridge", **more)
        for more in ({}, dict.fromkeys(("unpaired_source", "unpaired_target")))
    )
    assert with_rows.provenance.n_unpaired_source == 0
    np.testing.assert_array_equal(
        with_rows.transform(planted.source.vectors), without.transform(planted.source.vectors)
    )


def test_one_side_alone_is_handed_over_alone(planted, seen):
    fit(planted, unpaired_target=None)
    assert seen[-1]["target"] is None
    assert len(seen[-1]["source"]) == 280


def test_with_too_few_pairs_to_measure_the_rows_are_seen_too(planted, seen):
    rows = np.arange(10)
    pairs = Pairs.from_rows(planted.source, planted.target, rows, rows)
    bridge = Bridge.fit(pairs, method="sees_unpaired", unpaired_source=planted.source)
    assert bridge.verdict.status == "insufficient_pairs"
    assert len(seen[-1]["source"]) == bridge.provenance.n_unpaired_source == 390


@pytest.mark.parametrize("side", ["source", "target"])
def test_rows_of_another_space_are_refused(planted, seen, side):
    vectors = getattr(planted, side)
    strange = VectorSet(vectors.ids, vectors.vectors, replace(vectors.space, model="another"))
    with pytest.raises(SpaceMismatchError, match=f"unpaired rows on the {side} side"):
        fit(planted, **{f"unpaired_{side}": strange})
    assert not seen


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_set_of_paired_rows_only_is_refused(planted, side):
    paired = getattr(planted, side).select(np.arange(120))
    with pytest.raises(EmptyInputError, match=f"{side} side; got none: all 120 stand in pairs"):
        fit(planted, **{f"unpaired_{side}": paired})


def test_auto_has_room_for_maps_that_look_at_both_sides(monkeypatch):
    monkeypatch.setattr("isthmus.bridge.selection.AUTO_WITH_UNPAIRED", ("more",))
    rows = np.ones((2, 2), np.float32)
    assert candidates("auto", Unpaired(rows, rows))[-1] == "more"
    for less in (NO_ROWS, Unpaired(rows), Unpaired(None, rows)):
        assert candidates("auto", less) == ("null", "procrustes", "ridge")


# --- the artifact --------------------------------------------------------------------------------


def read(folder) -> dict[str, Any]:
    return json.loads((folder / "bridge.json").read_text())


@pytest.mark.usefixtures("seen")
def test_the_counts_are_kept_in_version_2_and_only_there(planted, tmp_path):
    bridge = fit(planted)
    bridge.save(tmp_path / "two")
    fields = read(tmp_path / "two")
    assert fields["format_version"] == 2
    assert fields["provenance"]["n_unpaired_source"] == 280
    loaded = Bridge.load(tmp_path / "two")
    assert loaded.hash == bridge.hash
    assert loaded.provenance.n_unpaired_target == 230
    fit(planted, method="procrustes").save(tmp_path / "one")
    fields = read(tmp_path / "one")
    assert fields["format_version"] == 1
    assert "n_unpaired_source" not in fields["provenance"]


@pytest.mark.usefixtures("seen")
@pytest.mark.parametrize("version", [1, 2])
def test_counts_in_the_wrong_version_are_refused(planted, tmp_path, version):
    bridge = fit(planted, **({"method": "ridge"} if version == 1 else {}))
    bridge.save(tmp_path / "b")
    fields = read(tmp_path / "b")
    fields["format_version"] = 3 - version
    fields["hash"] = manifest_hash(fields)
    (tmp_path / "b" / "bridge.json").write_text(json.dumps(fields))
    with pytest.raises(MalformedArtifactError, match="n_unpaired_source"):
        Bridge.load(tmp_path / "b")


def test_version_2_without_a_count_is_not_the_oldest_that_can_hold_it(planted, tmp_path):
    fit(planted, method="ridge").save(tmp_path / "b")
    fields = read(tmp_path / "b")
    fields["format_version"] = 2
    fields["provenance"] |= {"n_unpaired_source": 0, "n_unpaired_target": 0}
    fields["hash"] = manifest_hash(fields)
    (tmp_path / "b" / "bridge.json").write_text(json.dumps(fields))
    with pytest.raises(MalformedArtifactError, match="format_version"):
        Bridge.load(tmp_path / "b")
