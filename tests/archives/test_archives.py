"""Bridges that earlier versions wrote are read for ever and give the same numbers."""

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest

from isthmus.bridge import Bridge
from isthmus.maps import names

HERE = Path(__file__).parent
ARCHIVED = sorted(path.parent for path in HERE.glob("v*/*/bridge"))


@pytest.fixture(scope="module")
def writer():
    spec = importlib.util.spec_from_file_location("write_archive", HERE / "write_archive.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_archive_holds_the_maps_of_its_version():
    archived = {path.name for path in ARCHIVED if path.parent.name == "v1"}
    assert archived >= {"null", "procrustes", "cca", "relative", "low_rank", "ridge", "mlp_small"}
    assert archived <= set(names())  # a map that was ever saved is never taken away


@pytest.mark.parametrize("folder", ARCHIVED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_archived_bridges_give_the_same_numbers(writer, folder):
    bridge = Bridge.load(folder / "bridge")
    expected = np.load(folder / "numbers.npz")
    given = writer.numbers(bridge, *writer.planted())
    assert given.keys() == set(expected)
    assert bridge.hash == str(expected["hash"])
    assert bridge.method == folder.name
    for name in ("mapped", "target", "calibrated"):
        np.testing.assert_allclose(given[name], expected[name], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(given["outside"], expected["outside"])


@pytest.mark.parametrize("folder", ARCHIVED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_archived_bridges_are_written_again_as_they_were(folder, tmp_path):
    Bridge.load(folder / "bridge").save(tmp_path / "again")
    for name in ("bridge.json", "weights.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / "bridge" / name).read_bytes()


def test_the_archive_is_read_from_a_read_only_copy(tmp_path):
    shutil.copytree(ARCHIVED[0] / "bridge", tmp_path / "copy")
    (tmp_path / "copy").chmod(0o555)
    Bridge.load(tmp_path / "copy")
    assert sorted(item.name for item in (tmp_path / "copy").iterdir()) == [
        "README.md",
        "bridge.json",
        "weights.safetensors",
    ]
    (tmp_path / "copy").chmod(0o755)
