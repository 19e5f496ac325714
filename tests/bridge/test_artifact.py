"""The artifact on disk: exact round trips, atomic saves, and every hostile file of SPEC.md."""

import json
import os
import pickle
import resource
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge import Bridge
from isthmus.bridge.artifact import describe
from isthmus.bridge.format import read_tensors, tensor_record, write_tensors
from isthmus.bridge.manifest import manifest_hash
from isthmus.errors import (
    CorruptFileError,
    IsthmusError,
    MalformedArtifactError,
    MissingFileError,
    OversizedArtifactError,
    TamperedArtifactError,
    UnknownVersionError,
    UnsafePathError,
    WriteFailedError,
)
from isthmus.spaces import Space

FAST = settings(derandomize=True, deadline=None, max_examples=60)
METHODS = ["null", "procrustes", "cca", "relative", "low_rank", "ridge"]
MANIFEST, WEIGHTS, CARD = "bridge.json", "weights.safetensors", "README.md"


@pytest.fixture
def folder(bridge, tmp_path):
    bridge.save(tmp_path / "bridge")
    return tmp_path / "bridge"


def read(folder):
    return json.loads((folder / MANIFEST).read_text())


def write(folder, manifest, *, rehash=True):
    """Write a manifest as a careful forger would: with a hash that fits."""
    if rehash:
        manifest["hash"] = manifest_hash(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest))


def change(folder, path, value, *, rehash=True):
    """Change one field of the manifest, named by a dotted path."""
    manifest = read(folder)
    *above, last = path.split(".")
    place = manifest
    for name in above:
        place = place[name]
    place[last] = value
    write(folder, manifest, rehash=rehash)


def forge(folder, changes, *, record=True):
    """Change tensors, and record their new hashes unless told otherwise."""
    tensors = {**read_tensors(folder / WEIGHTS), **changes}
    tensors = {name: array for name, array in tensors.items() if array is not None}
    write_tensors(folder / WEIGHTS, tensors)
    if record:
        manifest = read(folder)
        manifest["tensors"] = {name: tensor_record(tensors[name], name=name) for name in tensors}
        write(folder, manifest)


# --- round trips ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_round_trip_is_exact_to_the_bit(planted, fitted, tmp_path, method):
    bridge = fitted(method)
    bridge.save(tmp_path / "b")
    again = Bridge.load(tmp_path / "b")
    X, Y = planted.source.vectors, planted.target.vectors
    assert again.transform(X).tobytes() == bridge.transform(X).tobytes()
    assert again.transform_target(Y).tobytes() == bridge.transform_target(Y).tobytes()
    np.testing.assert_array_equal(again.outside(X), bridge.outside(X))
    scores = np.linspace(-1, 1, 50)
    np.testing.assert_array_equal(
        again.calibration.to_native(scores), bridge.calibration.to_native(scores)
    )
    assert again.hash == bridge.hash
    assert (again.source, again.target, again.verdict) == (
        bridge.source,
        bridge.target,
        bridge.verdict,
    )
    assert again.lands_in == bridge.lands_in
    assert again.method == method


def test_every_number_of_the_report_comes_back(bridge, folder):
    again = Bridge.load(folder)
    assert again.report.n_queries == bridge.report.n_queries
    for side in ("values", "null", "oracle"):
        ours, theirs = getattr(bridge.report, side), getattr(again.report, side)
        assert ours.keys() == theirs.keys()
        for name, value in ours.items():
            assert theirs[name].per_query.tobytes() == value.per_query.tobytes()
            assert theirs[name].per_query.dtype == value.per_query.dtype
            np.testing.assert_equal(theirs[name].mean, value.mean)
            np.testing.assert_equal(theirs[name].low, value.low)
            np.testing.assert_equal(theirs[name].high, value.high)


def test_saving_what_was_loaded_gives_the_same_bytes(folder, tmp_path):
    Bridge.load(folder).save(tmp_path / "again")
    for name in (MANIFEST, WEIGHTS, CARD):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_the_manifest_has_every_field_of_the_map_family(bridge, folder):
    manifest = read(folder)
    assert manifest["method"] == "procrustes"
    assert manifest["paired"] is True
    assert manifest["null_map_baseline"].keys() == {"cos", "top1", "retrieval_agreement"}
    assert manifest["null_map_baseline"]["cos"] == bridge.report.null["cos_to_target"].mean
    assert None not in manifest["null_map_baseline"].values()
    assert manifest["preprocessing"] == {
        "center": True,
        "normalize": "unit",
        "source_pca": "none",
        "target_pca": "none",
        "source_steps": ["normalise", "centre"],
        "target_steps": ["normalise", "centre"],
    }
    assert manifest["anchor_selection"] == {"strategy": "as given", "coverage_report": None}
    assert manifest["reconstruction_metrics"].keys() == {"cos_to_target", "mse", "r2"}
    assert manifest["preservation_metrics"].keys() >= {
        "nbr_overlap@10",
        "rank_corr",
        "cluster_agreement",
        "retrieval_agreement@10",
        "hard_negative_margin",
    }
    assert manifest["chosen_because"] == bridge.verdict.chosen_because
    assert manifest["usable_for"] == list(bridge.verdict.usable_for)
    assert manifest["status"] == bridge.verdict.status
    for side, space in (("source", bridge.source), ("target", bridge.target)):
        assert manifest[side]["fingerprint"] == space.fingerprint
    assert manifest["hash"] == bridge.hash
    assert set(manifest["tensors"]) == set(read_tensors(folder / WEIGHTS))


def test_a_pca_is_recorded_by_its_hash(planted, tmp_path):
    from dataclasses import replace

    from isthmus.bridge.format import tensor_hash
    from isthmus.maps import PCA, Centre, Compose, Procrustes

    pairs = planted.pairs
    steps = Compose([Centre()], Procrustes(unequal="pca"), [PCA(n_components=14), Centre()])
    made = Bridge.fit(pairs, method="procrustes")
    bridge = replace(made, map=steps.fit(pairs.source, pairs.target))
    bridge.save(tmp_path / "b")
    recorded = read(tmp_path / "b")["preprocessing"]
    assert recorded["source_pca"] == "none"
    assert recorded["target_pca"] == tensor_hash(bridge.map.inner_.pca_)
    assert recorded["normalize"] == "none"
    assert Bridge.load(tmp_path / "b").hash == bridge.hash
    within = replace(made, map=Compose([PCA(n_components=5)], Procrustes(), []).fit(
        pairs.source, pairs.target))  # fmt: skip
    hashed = describe(within)[0]["preprocessing"]["source_pca"]
    assert hashed == tensor_hash(within.map.source_steps_[0].directions_)


def test_other_files_in_the_folder_are_ignored(bridge, folder):
    (folder / "notes.txt").write_text("mine")
    (folder / CARD).unlink()
    assert Bridge.load(folder).hash == bridge.hash


def test_files_are_readable_as_the_umask_says(folder):
    modes = {(folder / name).stat().st_mode & 0o777 for name in (MANIFEST, WEIGHTS, CARD)}
    umask = os.umask(0)
    os.umask(umask)
    assert modes == {0o666 & ~umask}


# --- saving --------------------------------------------------------------------------------------


def test_an_older_bridge_is_replaced(fitted, folder):
    fitted("ridge").save(folder)
    assert Bridge.load(folder).method == "ridge"
    assert sorted(item.name for item in folder.iterdir()) == [CARD, MANIFEST, WEIGHTS]
    assert [item.name for item in folder.parent.iterdir()] == ["bridge"]


@pytest.mark.parametrize("names", [["thesis.docx"], ["bridge.json", "thesis.docx"], ["README.md"]])
def test_a_folder_with_anything_else_is_not_replaced(bridge, tmp_path, names):
    for name in names:
        (tmp_path / name).write_text("years of work")
    with pytest.raises(WriteFailedError, match=r"got a folder with (thesis\.docx|README\.md)"):
        bridge.save(tmp_path)
    assert sorted(item.name for item in tmp_path.iterdir()) == sorted(names)


def test_a_file_is_not_replaced(bridge, tmp_path):
    (tmp_path / "b").write_text("mine")
    with pytest.raises(WriteFailedError, match="got a file"):
        bridge.save(tmp_path / "b")
    assert (tmp_path / "b").read_text() == "mine"


def test_an_empty_folder_is_filled(bridge, tmp_path):
    bridge.save(tmp_path)
    assert Bridge.load(tmp_path).hash == bridge.hash


def test_a_link_to_the_folder_stays_a_link(fitted, folder, tmp_path):
    (tmp_path / "current").symlink_to(folder)
    fitted("ridge").save(tmp_path / "current")
    assert (tmp_path / "current").is_symlink()
    assert Bridge.load(folder).method == "ridge"
    assert sorted(item.name for item in tmp_path.iterdir()) == ["bridge", "current"]


def test_a_full_disk_leaves_the_old_bridge(folder, tmp_path):
    before = {item.name: item.read_bytes() for item in folder.iterdir()}
    script = f"""
        import resource
        from isthmus import Bridge
        from isthmus.errors import WriteFailedError
        bridge = Bridge.load({str(folder)!r})
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))  # no file may grow beyond this
        try:
            bridge.save({str(folder)!r})
        except WriteFailedError as error:
            print("refused:", error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    assert "refused: expected to write 'bridge'" in done.stdout
    assert {item.name: item.read_bytes() for item in folder.iterdir()} == before
    assert [item.name for item in tmp_path.iterdir()] == ["bridge"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


# --- hostile folders -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [MANIFEST, WEIGHTS])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(MissingFileError, match=f"with the file '{name}'"):
        Bridge.load(folder)


def test_a_missing_folder_is_missing(tmp_path):
    with pytest.raises(MissingFileError):
        Bridge.load(tmp_path / "nowhere")


@pytest.mark.parametrize("name", [MANIFEST, WEIGHTS])
@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.9, 0.9999])
def test_a_file_cut_short_is_corrupt(folder, name, share):
    content = (folder / name).read_bytes()
    kept = content[: int(share * len(content))].rstrip(b"} \n\t")
    (folder / name).write_bytes(kept)
    with pytest.raises(CorruptFileError, match="cut short"):
        Bridge.load(folder)


def test_bytes_added_at_the_end_are_refused(folder):
    with (folder / WEIGHTS).open("ab") as file:
        file.write(b"\0")
    with pytest.raises(MalformedArtifactError, match="as its header says"):
        Bridge.load(folder)


@pytest.mark.parametrize("name", [MANIFEST, WEIGHTS])
def test_links_out_of_the_folder_are_unsafe(folder, tmp_path, name):
    shutil.move(folder / name, tmp_path / name)
    (folder / name).symlink_to(tmp_path / name)
    with pytest.raises(UnsafePathError, match="got a symbolic link"):
        Bridge.load(folder)


def test_a_link_to_the_folder_itself_is_the_users_own(bridge, folder, tmp_path):
    (tmp_path / "current").symlink_to(folder)
    assert Bridge.load(tmp_path / "current").hash == bridge.hash


def test_a_pipe_is_unsafe(folder):
    (folder / WEIGHTS).unlink()
    os.mkfifo(folder / WEIGHTS)
    with pytest.raises(UnsafePathError, match="a pipe"):
        Bridge.load(folder)


@pytest.mark.parametrize(
    "name", ["../weights.safetensors", "/etc/passwd", "..", "a\\b", "a/weights.safetensors", "C:w"]
)
@pytest.mark.parametrize("rehash", [True, False])
def test_a_path_in_the_manifest_is_unsafe(folder, name, rehash):
    change(folder, "weights_file", name, rehash=rehash)
    with pytest.raises(UnsafePathError, match="as the file of the tensors"):
        Bridge.load(folder)


def test_a_path_as_the_name_of_a_tensor_is_unsafe(folder):
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(content.replace(b"map/inner.rotation", b"../inner.rotations"))
    with pytest.raises(UnsafePathError, match="lead nowhere"):
        Bridge.load(folder)


def test_an_oversized_manifest_is_not_read(folder):
    with (folder / MANIFEST).open("ab") as file:
        file.truncate(5 * 2**20)
    with pytest.raises(OversizedArtifactError, match=r"4,194,304 bytes in bridge\.json"):
        Bridge.load(folder)


def test_an_oversized_header_is_not_read(folder):
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes((2**40).to_bytes(8, "little") + content[8:])
    with pytest.raises(OversizedArtifactError, match="the header of weights"):
        Bridge.load(folder)


def test_a_pickle_in_place_of_the_tensors_does_not_run(folder, tmp_path):
    class Attack:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    (folder / WEIGHTS).write_bytes(pickle.dumps(Attack()))
    with pytest.raises(IsthmusError):
        Bridge.load(folder)
    assert not (tmp_path / "ran").exists()


# --- hostile manifests ---------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 3, 99])
@pytest.mark.parametrize("rehash", [True, False])
def test_another_version_is_unknown(folder, version, rehash):
    change(folder, "format_version", version, rehash=rehash)
    with pytest.raises(UnknownVersionError, match=f"version 1 or 2; got version {version}"):
        Bridge.load(folder)


def test_a_newer_version_with_other_fields_is_still_only_unknown(folder):
    manifest = {"format": "isthmus.bridge", "format_version": 3, "surprise": True, "hash": "x"}
    write(folder, manifest, rehash=False)
    with pytest.raises(UnknownVersionError, match="upgrade Isthmus"):
        Bridge.load(folder)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("status", "pre_aligned"),
        ("usable_for", ["everything"]),
        ("source.model", "another"),
        ("report.values.nbr_overlap@10.mean", 0.99),
        ("scope.radius", 1e9),
        ("provenance.n_pairs", 100_000),
        ("hash", "0" * 64),
    ],
)
def test_a_changed_field_is_tampering(folder, path, value):
    change(folder, path, value, rehash=False)
    with pytest.raises(TamperedArtifactError, match="it was changed after it was written"):
        Bridge.load(folder)


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("format", "isthmus.other", "format 'isthmus.bridge'"),
        ("format_version", "1", "a whole number as format_version"),
        ("format_version", True, "a whole number as format_version"),
        ("surprise", 1, "surprise: Extra inputs are not permitted"),
        ("scope.surprise", 1, "scope.surprise: Extra inputs"),
        ("tensors.calibration/native.surprise", 1, "surprise: Extra inputs"),
        ("source.dim", 13, "center .13,. and"),
        ("source.dim", 0, "source.dim: Input should be greater"),
        ("source.dim", 12.5, "source.dim: Input should be a valid integer"),
        ("source.metric", "manhattan", "source.metric"),
        ("source.fingerprint", "0" * 64, "other values of source"),
        ("status", "perfect", "status: Input should be"),
        ("usable_for", "search", "usable_for: Input should be a valid list"),
        ("method", "ridge", "other values of method"),
        ("lands_in", "comparison", "other values of lands_in"),
        ("preprocessing.center", False, "other values of preprocessing"),
        ("null_map_baseline.cos", 0.0, "other values of null_map_baseline"),
        ("preservation_metrics.nbr_overlap@10", 0.99, "other values of preservation_metrics"),
        ("reconstruction_metrics.mse", 0.0, "other values of reconstruction_metrics"),
        ("report.values.nbr_overlap@10.per_query", None, "other values of"),
        ("report.values.nbr_overlap@10.per_query", "report/values/none", "map that its own"),
        ("map.inner.name", "nothing", "with a known name"),
        ("map.inner.name", "ridge", "ridge with the arrays"),
        ("map.inner.params", {"centre": True, "surprise": 1}, "unknown parameters"),
        ("map.dim_source", 13, "steps of widths"),
        ("map.source_steps", [], "steps of widths|arrays of the parts only"),
        ("map", {}, "source_steps, inner and target_steps"),
        ("scope.method", "none", "scope.method"),
        ("scope.radius", -1.0, "scope.radius"),
        ("scope.inside", 0.5, "other values of scope"),
        ("calibration.method", "none", "calibration.method"),
    ],
)
def test_a_forged_field_is_malformed(folder, path, value, text):
    change(folder, path, value)
    with pytest.raises(MalformedArtifactError, match=text):
        Bridge.load(folder)


def test_every_field_is_required(folder):
    manifest = read(folder)
    for name in manifest:
        write(folder, {key: value for key, value in manifest.items() if key != name}, rehash=False)
        with pytest.raises((MalformedArtifactError, TamperedArtifactError)):
            Bridge.load(folder)
        rest = {key: value for key, value in manifest.items() if key not in (name, "hash")}
        if name not in ("hash", "format", "format_version"):
            write(folder, rest)
            with pytest.raises(MalformedArtifactError, match=f"{name}: Field required"):
                Bridge.load(folder)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (b'"seed": 0', b'"seed": NaN', "NaN"),
        (b'"seed": 0', b'"seed": 1e999', "not JSON compliant"),
        (b'"seed": 0', b'"seed": 0, "seed": 0', "repeated"),
        (b'"seed": 0', b'"seed": "\\ud800"', "surrogates"),
        (b'"seed": 0', b'"seed": ' + b"[" * 50_000, "recursion"),
        (b"{", b"[{", "JSON"),
    ],
)
def test_a_manifest_that_is_not_the_json_of_the_spec_is_malformed(folder, old, new, text):
    content = (folder / MANIFEST).read_bytes()
    assert old in content
    (folder / MANIFEST).write_bytes(content.replace(old, new, 1))
    with pytest.raises(MalformedArtifactError, match=text):
        Bridge.load(folder)


# --- hostile tensors -----------------------------------------------------------------------------


def test_one_changed_bit_of_a_tensor_is_tampering(folder):
    content = bytearray((folder / WEIGHTS).read_bytes())
    content[-1] ^= 1
    (folder / WEIGHTS).write_bytes(content)
    with pytest.raises(TamperedArtifactError, match="as its hash in the manifest says"):
        Bridge.load(folder)


def test_tensors_of_another_bridge_are_tampering(fitted, folder, tmp_path):
    fitted("ridge").save(tmp_path / "other")
    shutil.copy(tmp_path / "other" / WEIGHTS, folder / WEIGHTS)
    with pytest.raises(TamperedArtifactError, match="missing or unknown"):
        Bridge.load(folder)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("map/inner.rotation", np.zeros((12, 16), np.float64)),
        ("map/inner.rotation", np.zeros((16, 12), np.float32)),
        ("map/inner.rotation", np.zeros((192,), np.float32)),
        ("map/extra", np.zeros(1)),
        ("map/inner.rotation", None),
    ],
)
def test_tensors_that_differ_from_their_record_are_tampering(folder, name, array):
    forge(folder, {name: array}, record=False)
    with pytest.raises(TamperedArtifactError):
        Bridge.load(folder)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "name", ["map/inner.rotation", "scope/center", "calibration/native", "map/source.1.mean"]
)
def test_numbers_that_are_not_finite_are_malformed(bridge, folder, name, bad):
    array = describe(bridge)[1][name].copy()
    array.flat[-1] = bad
    forge(folder, {name: array})
    with pytest.raises(MalformedArtifactError, match=f"finite numbers in tensor '{name}'"):
        Bridge.load(folder)


def test_the_value_of_a_query_may_be_undefined_but_not_infinite(bridge, folder):
    name = "report/values/nbr_overlap@10"
    array = describe(bridge)[1][name].copy()
    array[0] = np.nan
    forge(folder, {name: array})
    assert np.isnan(Bridge.load(folder).report.values["nbr_overlap@10"].per_query[0])
    array[0] = np.inf
    forge(folder, {name: array})
    with pytest.raises(MalformedArtifactError, match="infinity"):
        Bridge.load(folder)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("map/inner.rotation", np.zeros((12, 17), np.float32)),
        ("map/inner.rotation", np.zeros((13, 16), np.float32)),
        ("map/inner.rotation", np.zeros(12, np.float32)),
        ("map/source.1.mean", np.zeros(13)),
        ("map/target.1.mean", np.zeros(())),
        ("map/inner.scale", np.ones(3)),
        ("map/extra", np.zeros(3)),
        ("map/inner.rotation", None),
        ("scope/center", np.zeros(13, np.float32)),
        ("scope/directions", np.zeros((13, 2), np.float32)),
        ("scope/directions", None),
        ("calibration/native", np.zeros(3)),
        ("calibration/bridged", None),
        ("report/values/nbr_overlap@10", None),
        ("provenance/pairs", np.zeros((120, 3), np.int64)),
        ("provenance/pairs", None),
        ("elsewhere/x", np.zeros(3)),
        ("loose", np.zeros(3)),
    ],
)
def test_forged_tensors_that_do_not_fit_are_malformed(folder, name, array):
    forge(folder, {name: array})
    with pytest.raises(MalformedArtifactError):
        Bridge.load(folder)


@pytest.mark.parametrize(("side", "dim"), [("target", 20), ("target", 15), ("target", 1)])
def test_a_map_to_another_width_than_the_space_is_malformed(folder, side, dim):
    manifest = read(folder)
    fields = {name: value for name, value in manifest[side].items() if name != "fingerprint"}
    space = Space.from_dict({**fields, "dim": dim})
    manifest[side] = {**space.to_dict(), "fingerprint": space.fingerprint}
    write(folder, manifest)
    with pytest.raises(MalformedArtifactError):
        Bridge.load(folder)


def test_a_map_that_overflows_is_malformed(folder):
    huge = np.full((12, 16), 3e38, np.float32)
    forge(folder, {"map/inner.rotation": huge})
    with pytest.raises(MalformedArtifactError, match="got NaN or infinity"):
        Bridge.load(folder)


@FAST
@given(name=st.sampled_from([MANIFEST, WEIGHTS]), place=st.floats(0, 1), value=st.integers(0, 255))
def test_one_changed_byte_anywhere_is_refused_or_means_nothing(
    bridge, tmp_path_factory, name, place, value
):
    folder = tmp_path_factory.mktemp("t") / "b"
    bridge.save(folder)
    content = bytearray((folder / name).read_bytes())
    content[min(int(place * len(content)), len(content) - 1)] = value
    (folder / name).write_bytes(content)
    try:
        again = Bridge.load(folder)
    except IsthmusError:
        return
    assert again.hash == bridge.hash
    assert describe(again)[0] == describe(bridge)[0]
