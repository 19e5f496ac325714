"""The benchmark of couplings runs on small planted sides."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from isthmus import Space, VectorSet
from isthmus.testing.planted import planted_pair

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, for sides of 60 rows and 30 anchors."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    module = importlib.import_module("sinkhorn_speed")
    small = {"SETS": ("planted",), "MODELS": ("one", "two"), "SIZES": (60,), "ANCHORS": 30}
    for name, value in {**small, "POT_SIZE": 60, "LAZY_ITERATIONS": 2, "ETA": 0.2}.items():
        monkeypatch.setattr(module, name, value)
    return module


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "planted"
    folder.mkdir()
    pair = planted_pair(90, 12, 16, noise=0.3, normalized=True)
    for model, side in (("one", pair.source), ("two", pair.target)):
        ids = np.array([f"d{row}" for row in range(90)])
        space = Space(model=model, dim=side.dim, normalized=True)
        VectorSet(ids, side.matrix(), space).save(folder / f"docs.{model}.npz")
    return tmp_path


def test_every_run_says_what_it_took(bench: ModuleType, data: Path, monkeypatch):
    module = sys.modules["isthmus.transport.sinkhorn"]
    monkeypatch.setattr(module, "MOST_RELAXED", module.MOST_RELAXED)  # a run changes it
    coupled = bench.coupling(data, 60, 0)
    assert coupled["error"] <= bench.TOLERANCE
    assert min(coupled[key] for key in ("sinkhorn_s", "bare_pass_s", "arrays_mb")) > 0
    assert coupled["columns"] == 12
    assert bench.plain(data, 60, 0)["iterations"] >= coupled["iterations"]
    assert bench.pot(data, 60, 0)["largest_difference"] < 0.05


def test_the_sides_hold_the_same_objects_in_other_orders(bench: ModuleType, data: Path):
    (X, Y), (A, B) = bench.sides(data, 60, 0)
    assert [len(each) for each in (X, Y, A, B)] == [60, 60, 30, 30]
    assert X.dtype == np.float32
    again = bench.sides(data, 20, 0)[0][0]
    assert np.array_equal(again, X[:20])


def test_all_runs_are_kept(bench: ModuleType, tmp_path: Path, monkeypatch):
    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 0, json.dumps({"n": int(command[-1])}))

    monkeypatch.setattr(bench.subprocess, "run", run)
    monkeypatch.setattr(sys, "argv", ["x", "--data", "none", "--results", str(tmp_path)])
    bench.main()
    record = json.loads((tmp_path / "sinkhorn_speed" / "seed0.json").read_text())
    assert [len(record["result"][name]) for name in ("coupling", "plain", "pot")] == [1, 1, 1]
    assert record["parameters"]["anchors"] == 30
