"""The benchmark of conversions runs on a small planted set, and its tables say what came."""

from __future__ import annotations

import importlib
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from isthmus import Bridge, Pairs, VectorSet
from isthmus.testing.planted import planted_pair

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
ROWS = 300


@pytest.fixture
def scripts(monkeypatch):
    """Scripts import their neighbours by name, as when they are run."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if BENCHMARKS in Path(getattr(sys.modules[name], "__file__", None) or ".").parents:
            del sys.modules[name]


@pytest.fixture
def planted():
    pair = planted_pair(ROWS, 12, 16, noise=0.1, normalized=True)
    pairs = Pairs.from_ids(pair.source, pair.target)
    there, back = (Bridge.fit(one, method="procrustes") for one in (pairs, pairs.reverse()))
    return pair, there, back


def test_speed_is_measured_and_told(scripts, planted, tmp_path):
    pair, there, _ = planted
    benchmark = scripts("convert")
    args = Namespace(results=tmp_path, rounds=2, method="procrustes")
    benchmark.speed(args, "sqlite", pair.source, there)
    records = scripts("table_format").load(tmp_path, "convert")
    assert len(records[0]["result"]["seconds"]["bulk_copy"]) == 2
    part = scripts("tables_convert").convert(records)
    assert "| sqlite | procrustes |" in "\n".join(part.lines)
    assert part.goals[0].reached == (records[0]["result"]["ratio"] >= 0.8)


def test_search_half_way_is_measured_and_told(scripts, planted):
    pair, there, back = planted
    benchmark = scripts("convert")
    asked = VectorSet(["q0", "q1"], pair.target.matrix()[[3, 250]], pair.target.space)
    for share in (0.0, 0.5, 1.0):
        found = benchmark.search(pair.source, there, back, asked, share=share)["one_directional"]
        assert found.ids[:, 0].tolist() == pair.source.ids[[3, 250]].tolist()
        assert all(len(set(ids)) == 10 for ids in found.ids.tolist())
    rows = {"one_directional": {"0.0": 0.5, "0.5": 0.45, "1.0": 0.52}}
    record = {"parameters": {"what": "halfway"}, "result": rows}
    part = scripts("tables_convert").convert([record])
    assert [goal.reached for goal in part.goals] == [None, False]
    assert "| one_directional | 0.500 | 0.450 | 0.520 |" in part.lines


def test_memory_is_told(scripts):
    result = {"idle_mb": 100.0, "peak_mb": {"20000": 200.0, "200000": 230.0}}
    record = {"parameters": {"what": "memory"}, "result": result}
    part = scripts("tables_convert").convert([record])
    assert part.goals[1].reached
    assert "| 200,000 rows | 230 |" in part.lines
    assert np.isclose(float(part.goals[1].measured), 1.15)
