"""Applying from file to file: the same numbers as in memory, and nothing half written."""

import dataclasses
import importlib

import numpy as np
import pytest

from isthmus.bridge import Bridge
from isthmus.errors import (
    InvalidVectorsError,
    MissingFileError,
    ParameterError,
    SpaceMismatchError,
    UnknownFormatError,
    WriteFailedError,
    WrongDirectionError,
)
from isthmus.spaces import Pairs, Space, VectorSet
from isthmus.workflows.apply_bridge import apply_bridge

SOURCE = Space(model="old", dim=6, normalized=True)
TARGET = Space(model="new", dim=9, normalized=True)


@pytest.fixture(scope="module")
def sets():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_500, 6))
    Y = X @ rng.normal(size=(6, 9)) + 0.1 * rng.normal(size=(2_500, 9))
    ids = [f"doc{row}" for row in range(2_500)]
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (X, Y)]
    return VectorSet(ids, unit[0], SOURCE), VectorSet(ids, unit[1], TARGET)


@pytest.fixture(scope="module")
def bridge(sets):
    rows = np.arange(200)
    return Bridge.fit(Pairs.from_rows(*sets, rows, rows), method="ridge")


@pytest.fixture
def source(sets, tmp_path):
    sets[0].save(tmp_path / "source.npy", dtype="float32")
    return tmp_path / "source.npy"


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".parquet", ".jsonl", ".safetensors"])
def test_files_hold_what_apply_gives_in_memory(sets, bridge, source, tmp_path, suffix):
    applied = apply_bridge(bridge, source, tmp_path / f"out{suffix}", dtype="float32")
    written = VectorSet.load(tmp_path / f"out{suffix}")
    expected = bridge.apply(sets[0])
    np.testing.assert_array_equal(written.matrix(), expected.matrix())
    assert written.ids.tolist() == expected.ids.tolist()
    assert written.space == expected.space == applied.space
    assert written.space.bridged_from == bridge.hash
    assert applied.path == tmp_path / f"out{suffix}"
    assert applied.rows == 2_500
    assert applied.scope.outside == bridge.examine(sets[0]).outside
    assert 0 < applied.share_outside < 0.1
    assert applied.seconds > 0


def test_the_scope_of_many_rows_is_that_of_batches_at_even_distances(
    sets, bridge, source, tmp_path, monkeypatch
):
    module = importlib.import_module("isthmus.workflows.apply_bridge")
    monkeypatch.setattr(module, "MOST_EXAMINED", 500)
    applied = apply_bridge(bridge, source, tmp_path / "out.npy", batch_rows=100)
    looked_at = np.concatenate([np.arange(start, start + 100) for start in range(0, 2_500, 500)])
    assert (applied.rows, applied.scope.rows) == (2_500, 500)
    assert applied.scope.outside == bridge.examine(sets[0].select(looked_at)).outside
    assert applied.to_dict()["examined"] == 500


@pytest.mark.parametrize("batch_rows", [1, 7, 960, 1_000, 5_000])
def test_numbers_do_not_depend_on_the_batches(sets, bridge, source, tmp_path, batch_rows):
    if batch_rows == 1:
        sets[0].select(np.arange(50)).save(source, dtype="float32")
    apply_bridge(bridge, source, tmp_path / "out.npy", dtype="float32", batch_rows=batch_rows)
    written = VectorSet.load(tmp_path / "out.npy").matrix()
    np.testing.assert_array_equal(written, bridge.apply(sets[0]).matrix()[: len(written)])


def test_half_precision_is_the_default(sets, bridge, source, tmp_path):
    apply_bridge(bridge, source, tmp_path / "out.npy")
    assert np.load(tmp_path / "out.npy", mmap_mode="r").dtype == np.float16
    written = VectorSet.load(tmp_path / "out.npy").matrix()
    np.testing.assert_allclose(written, bridge.apply(sets[0]).matrix(), atol=1e-3)


def test_bridge_and_source_may_be_folder_and_set(sets, bridge, tmp_path):
    bridge.save(tmp_path / "bridge")
    applied = apply_bridge(tmp_path / "bridge", sets[0], str(tmp_path / "out.npz"))
    assert applied.space.bridged_from == bridge.hash


def test_another_kind_is_flagged_and_carried(sets, bridge, tmp_path):
    queries = VectorSet(sets[0].ids, sets[0].vectors, sets[0].space.with_kind("query"))
    applied = apply_bridge(bridge, queries, tmp_path / "out.npz")
    assert applied.kind_differs
    assert applied.space.kind == "query"
    fields = applied.to_dict()
    assert (fields["kind"], fields["pairs_kind"], fields["rows"]) == ("query", "passage", 2_500)
    assert fields["share_outside"] == applied.share_outside


def test_progress_sees_every_batch(bridge, source, tmp_path):
    seen = []

    def track(items, description, total):
        for item in items:
            seen.append((len(item), description, total))
            yield item

    apply_bridge(bridge, source, tmp_path / "out.npy", batch_rows=1_000, track=track)
    assert seen == [(1_000, "applying", 3), (1_000, "applying", 3), (500, "applying", 3)]


def test_the_source_is_never_overwritten(bridge, source, tmp_path):
    before = source.read_bytes()
    (tmp_path / "link.npy").symlink_to(source)
    for out in (source, tmp_path / "link.npy"):
        with pytest.raises(ParameterError, match="another file to write to"):
            apply_bridge(bridge, source, out)
    assert source.read_bytes() == before


def test_nothing_is_written_for_vectors_that_do_not_fit(sets, bridge, tmp_path):
    out = tmp_path / "out.npy"
    with pytest.raises(WrongDirectionError, match="load the reverse bridge"):
        apply_bridge(bridge, sets[1], out)
    other = dataclasses.replace(SOURCE, revision="2")
    with pytest.raises(SpaceMismatchError, match="revision"):
        apply_bridge(bridge, VectorSet(sets[0].ids, sets[0].vectors, other), out)
    with pytest.raises(ParameterError, match="batch_rows"):
        apply_bridge(bridge, sets[0], out, batch_rows=0)
    with pytest.raises(UnknownFormatError):
        apply_bridge(bridge, sets[0], tmp_path / "out.txt")
    with pytest.raises(MissingFileError):
        apply_bridge(bridge, tmp_path / "nowhere.npy", out)
    assert list(tmp_path.iterdir()) == []


def test_a_comparison_map_carries_both_sides_where_they_meet(sets, tmp_path):
    rows = np.arange(200)
    bridge = Bridge.fit(Pairs.from_rows(*sets, rows, rows), method="cca")

    done = [
        apply_bridge(bridge, side, tmp_path / name, dtype="float32")
        for side, name in zip(sets, ("a.npy", "b.npy"), strict=True)
    ]

    left, right = (VectorSet.load(one.path) for one in done)
    assert left.space.fingerprint == right.space.fingerprint == done[0].space.fingerprint
    np.testing.assert_array_equal(left.vectors, bridge.apply(sets[0]).vectors)
    np.testing.assert_array_equal(right.vectors, bridge.apply(sets[1]).vectors)
    assert done[0].scope.rows == len(sets[0])
    assert (done[1].scope.rows, done[1].share_outside) == (0, 0.0)


def test_a_bad_row_in_the_middle_leaves_what_was_there(sets, bridge, source, tmp_path):
    apply_bridge(bridge, source, tmp_path / "out.npy")
    before = {item.name: item.read_bytes() for item in tmp_path.iterdir() if "out" in item.name}
    rows = np.array(sets[0].vectors)
    rows[2_000, 3] = np.nan
    with (tmp_path / "source.npy").open("r+b") as file:
        file.seek(-rows.nbytes, 2)
        file.write(rows.tobytes())
    with pytest.raises(InvalidVectorsError, match=r"2,?000"):
        apply_bridge(bridge, source, tmp_path / "out.npy")
    after = {item.name: item.read_bytes() for item in tmp_path.iterdir() if "out" in item.name}
    assert after == before


def test_a_writer_that_fails_stops_the_work(bridge, source, tmp_path, monkeypatch):
    from isthmus.spaces.io.writer import VectorWriter

    def fail(*_):
        raise WriteFailedError(expected="space", got="a full disk", do="free some")

    monkeypatch.setattr(VectorWriter, "write", fail)
    with pytest.raises(WriteFailedError, match="a full disk"):
        apply_bridge(bridge, source, tmp_path / "out.npy")
    assert not [item for item in tmp_path.iterdir() if "out" in item.name]
