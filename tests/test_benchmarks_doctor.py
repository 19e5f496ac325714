"""The doctor's benchmark runs on small planted collections; the page says what it found."""

from __future__ import annotations

import importlib
import sys
from argparse import Namespace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from isthmus import Space, VectorSet

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
ROWS, DIM = 700, 64


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    module = importlib.import_module("doctor")
    planted = (("planted", "one", 0), ("planted", "two", 0))
    monkeypatch.setattr(
        module,
        "MIXTURES",
        {
            "planted: two in one, disjoint": (*planted, "disjoint"),
            "planted: two in one, same documents": (*planted, "same documents"),
        },
    )
    yield module
    for name in set(sys.modules):
        if BENCHMARKS in Path(getattr(sys.modules[name], "__file__", None) or ".").parents:
            del sys.modules[name]


@pytest.fixture
def args(tmp_path: Path) -> Namespace:
    folder = tmp_path / "data" / "planted"
    folder.mkdir(parents=True)
    for number, model in enumerate(("one", "two")):
        draw = np.random.default_rng(number)
        turn = np.linalg.qr(draw.standard_normal((DIM, DIM)))[0]
        rows = draw.standard_normal((ROWS, DIM)) * np.geomspace(1, 0.03, DIM) @ turn
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        space = Space(model=model, dim=DIM, normalized=True)
        VectorSet([f"d{row}" for row in range(ROWS)], rows, space).save(
            folder / f"docs.{model}.npz"
        )
    return Namespace(
        data=tmp_path / "data", results=tmp_path / "results", seeds=[0, 1], shares=(0.05, 0.2)
    )


def test_mixtures_are_measured_and_the_page_says_so(bench: ModuleType, args: Namespace):
    load = bench.Loader(args.data)
    bench.mixtures(args, load)
    one = load("planted", "one")
    cell = bench.Cell("one", one, np.zeros(len(one), bool))
    bench.keep(args, "unmixed", "planted one, 0", bench.measured(cell, 0))
    page = importlib.import_module("tables").numbers(args.results)
    assert "8 of 8 draws of 4 mixtures" in page
    assert "| planted: two in one, disjoint | 5% | 2 of 2 |" in page
    assert "| whole | 1 | 0 | 0 | 0 |" in page
    assert "no alarm on unmixed collections | 0 of 1 | yes |" in page


def test_parts_share_documents_as_they_say(bench: ModuleType):
    one, two = np.arange(100.0)[:, None], 1000 + np.arange(100.0)[:, None]
    for how, rows in (("disjoint", 100), ("same documents", 125)):
        cell = bench.mixed(one, two, 0.2, how, 3)
        assert (len(cell.vectors), cell.foreign.mean()) == (rows, 0.2)
        foreign = cell.vectors[cell.foreign] - 1000
        shared = np.isin(foreign, cell.vectors[~cell.foreign]).all()
        assert shared == (how == "same documents")


def test_false_alarms_and_power_of_drift_are_counted(bench: ModuleType, args: Namespace):
    module = importlib.import_module("doctor_drift")
    load = bench.Loader(args.data)
    one, two = load("planted", "one"), load("planted", "two")
    still = [module.halves(one, 200, seed) for seed in range(5)]
    moved = [module.shifted(one, two, 200, 0.5, seed) for seed in range(3)]
    bench.keep(args, "drift", "halves of planted, 200", module.told(still, 200, 0.0))
    bench.keep(args, "drift", "50% two in one, 200", module.told(moved, 200, 0.5))
    page = importlib.import_module("tables").numbers(args.results)
    assert "| 50% two in one | 200 | 1.00 |" in page
    assert "% of 5 pairs" in page


def test_statistics_tell_another_encoder_from_the_same(bench: ModuleType, args: Namespace):
    module = importlib.import_module("doctor_ideas")
    load = bench.Loader(args.data)
    one, two = load("planted", "one"), load("planted", "two")
    same, other = module.statistics(one[:350], one[350:]), module.statistics(one, two)
    assert max(same["energy in the emptiest 5%"]) < 0.2 < min(other["energy in the emptiest 5%"])
    assert module.gap({"one encoder": [0.1, 0.2], "two encoders": [0.5]}) == 0.3
    assert module.gap({"one encoder": [0.1, 0.6], "two encoders": [0.5]}) == -0.1
