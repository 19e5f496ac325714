"""SPEC.md read by a reader that shares no code with Isthmus: it must be enough."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import isthmus.bridge
from isthmus.bridge.manifest import Manifest
from isthmus.bridge.reading import LIMITS
from isthmus.maps import names

SPEC = (Path(isthmus.bridge.__file__).parent / "SPEC.md").read_text()
DTYPES = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "BOOL": "?"}


def read_tensors(path):
    """Read safetensors with nothing but section 4."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        array = np.frombuffer(content[begin:end], DTYPES[entry["dtype"]])
        tensors[name] = array.reshape(entry["shape"])
    return tensors


def carry(rows, tensors, method):
    """Carry rows through normalise, centre, a map and back, as section 4 says."""
    t = {name.removeprefix("map/"): array.astype(float) for name, array in tensors.items()}
    x = rows / np.linalg.norm(rows, axis=1, keepdims=True) - t["source.1.mean"]
    if method == "procrustes":
        mapped = t["inner.scale"] * (x - t["inner.mean_source"]) @ t["inner.rotation"]
        mapped = mapped + t["inner.mean_target"]
    elif method == "low_rank":
        mapped = x @ t["inner.down"] @ t["inner.up"] + t["inner.bias"]
    elif method == "cca":
        return (x - t["inner.mean_source"]) @ t["inner.source_directions"]
    else:
        mapped = x @ t["inner.weight"] + t["inner.bias"]
    mapped = (mapped + t["target.1.mean"]) * t["target.0.length"]
    return mapped / np.linalg.norm(mapped, axis=1, keepdims=True)  # the target is normalized


@pytest.mark.parametrize("method", ["procrustes", "low_rank", "procrustes_ridge", "ridge", "cca"])
def test_a_foreign_reader_gets_the_same_numbers(planted, fitted, tmp_path, method):
    bridge = fitted(method)
    bridge.save(tmp_path / "b")
    tensors = read_tensors(tmp_path / "b" / "weights.safetensors")
    rows = planted.source.vectors
    theirs = carry(rows.astype(float), tensors, method)
    np.testing.assert_allclose(theirs, bridge.transform(rows), rtol=1e-4, atol=1e-5)


def test_a_foreign_reader_gets_the_same_hash(bridge, tmp_path):
    bridge.save(tmp_path / "b")
    manifest = json.loads((tmp_path / "b" / "bridge.json").read_text())
    recorded = manifest.pop("hash")
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert hashlib.sha256(text.encode()).hexdigest() == recorded == bridge.hash
    tensors = read_tensors(tmp_path / "b" / "weights.safetensors")
    for name, array in tensors.items():
        assert hashlib.sha256(array.tobytes()).hexdigest() == manifest["tensors"][name]["sha256"]


def test_a_foreign_reader_gets_the_same_scope_and_scores(planted, bridge):
    rows, scope = planted.source.vectors.astype(float), bridge.scope
    x = rows / np.linalg.norm(rows, axis=1, keepdims=True) - scope.center
    rest = np.square(x).sum(axis=1) - np.square(x @ scope.directions).sum(axis=1)
    np.testing.assert_array_equal(rest > scope.radius, bridge.outside(planted.source.vectors))
    knots, native = bridge.calibration.bridged, bridge.calibration.native
    assert bridge.calibration.to_native([knots[0] - 1])[0] == pytest.approx(native[0] - 1)
    assert bridge.calibration.to_native([knots[-1] + 1])[0] == pytest.approx(native[-1] + 1)
    middle = (knots[3] + knots[4]) / 2
    expected = (native[3] + native[4]) / 2
    assert bridge.calibration.to_native([middle])[0] == pytest.approx(expected)


def test_every_field_of_the_manifest_is_in_the_specification():
    for name in Manifest.model_fields:
        assert f"`{name}`" in SPEC, name


def test_every_map_is_in_the_specification():
    for name in names():
        assert f"| `{name}` |" in SPEC, name


def test_the_limits_of_the_specification_are_those_of_the_reader():
    for what, limit in (
        ("`bridge.json`", f"{LIMITS.manifest // 2**20} MiB"),
        ("header of `weights.safetensors`", f"{LIMITS.header // 2**20} MiB"),
        ("`weights.safetensors`", f"{LIMITS.weights // 2**30} GiB"),
        ("tensors", f"{LIMITS.tensors:,}"),
        ("axes of a tensor", f"{LIMITS.axes}"),
    ):
        assert f"| {what} | {limit} |" in SPEC
