"""The benchmark of alignment runs on small planted data, and the page says what came out."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isthmus import Space, VectorSet
from isthmus.testing.planted import planted_pair

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
ROWS, QUERIES = 260, 30
NAMES = {
    "chebi20": ("molecules.minimol", "texts.minilm-l6"),
    "climate-fever": ("docs.minilm-l6", "docs.mpnet"),
    "scifact": ("docs.minilm-l6", "docs.mpnet"),
}
SETTINGS: dict[str, dict[str, Any]] = {
    "align_cells": {"N_ANCHORS": 50, "N_TEST": 40},
    "align_studies": {
        "ANCHORS": (30, 60), "RESERVED": 60, "POOLS": (30, 60), "OVERLAP_POOL": 60,
        "SIZES": ((30, 40), (30, 60)), "ALPHAS": (0.0, 1.0), "GAMMAS": (0.0, 2.0),
    },
    "align_same": {"PAIRS": (50, 100)},
    "isthmus.maps._anchor_plan": {"GAMMAS": (0.5, 1.0), "ETAS": (0.1,)},  # a search is slow
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _scripts_importable():
    before = set(sys.modules)
    sys.path.insert(0, str(BENCHMARKS))
    yield
    sys.path.remove(str(BENCHMARKS))
    for name in set(sys.modules) - before:
        if BENCHMARKS in Path(getattr(sys.modules[name], "__file__", None) or ".").parents:
            del sys.modules[name]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three data sets in two models; each query lies by a document, its only relevant one."""
    folder = tmp_path_factory.mktemp("data")
    for number, (dataset, names) in enumerate(NAMES.items()):
        (folder / dataset).mkdir()
        pair = planted_pair(ROWS, 16, 20, noise=0.3, normalized=True, seed=number)
        ids = np.array([f"d{row}" for row in range(ROWS)])
        asked = np.array([f"q{row}" for row in range(QUERIES)])
        for name, side in zip(names, (pair.source, pair.target), strict=True):
            space = Space(model=name.split(".")[1], dim=side.dim, normalized=True)
            rows = side.matrix()
            VectorSet(ids, rows, space).save(folder / dataset / f"{name}.npz")
            near = rows[:QUERIES] + 0.1 * rows[1 : QUERIES + 1]
            near = near / np.linalg.norm(near, axis=1, keepdims=True)
            queries = folder / dataset / f"queries.{name.split('.')[1]}.npz"
            VectorSet(asked, near.astype(np.float32), space).save(queries)
        judged = "".join(f"q{row}\td{row}\t1\n" for row in range(QUERIES))
        (folder / dataset / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    return folder


@pytest.fixture
def small(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the scripts take few rows; return their arguments."""
    for script, values in SETTINGS.items():
        for name, value in values.items():
            monkeypatch.setattr(importlib.import_module(script), name, value)
    return ["--data", str(data), "--results", str(tmp_path), "--seeds", "0"]


def call(name: str, *words: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [name, *words])
        importlib.import_module(name).main()


def kept(results: Path, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((results / "align" / f"{name}.json").read_text())[
        "result"
    ]["cells"]
    return found


def page(results: Path) -> str:
    text: str = importlib.import_module("tables").numbers(results)
    return text


FAST = ["--methods", "ridge", "ridge, tuned", "anchor_cca", "cca"]


def test_maps_are_compared_on_one_split_and_no_cell_runs_twice(
    small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    call("align", *small, "--study", "retrieval", *FAST)
    (ridge,) = kept(tmp_path, "retrieval.ridge")
    assert ridge["there"][2] > 0.5
    assert ridge["there"] == sorted(ridge["there"])
    assert ridge["commit"] == importlib.import_module("align_cells").code_commit()
    (cca,) = kept(tmp_path, "retrieval.anchor_cca")
    (profile,) = kept(tmp_path, "profile.retrieval")
    assert (cca["gamma"], cca["eta"]) == (profile["gamma"], profile["eta"])
    assert cca["seconds"] < profile["seconds"]  # the search is apart
    capsys.readouterr()
    call("align", *small, "--study", "retrieval", *FAST)
    assert capsys.readouterr().out == ""
    assert "| `ridge, tuned` |" in page(tmp_path)


def test_a_map_that_is_not_there_is_named(
    small: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    studies = importlib.import_module("align_studies")
    named = studies.STUDIES["retrieval"]._replace(methods=("no such map",))
    monkeypatch.setitem(studies.STUDIES, "retrieval", named)
    call("align", *small, "--study", "retrieval")
    assert "no such map is left out" in capsys.readouterr().out


def test_trained_maps_are_measured(small: list[str], tmp_path: Path):
    pytest.importorskip("torch")
    call("align", *small, "--study", "retrieval", "time", "--epochs", "2",
         "--methods", "anchordot", "anchor_cca", "contrastive")  # fmt: skip
    (dot,) = kept(tmp_path, "retrieval.anchordot")
    (cca,) = kept(tmp_path, "retrieval.anchor_cca")
    assert dot["gamma"] == cca["gamma"]  # chosen once for both
    assert [cell["pool"] for cell in kept(tmp_path, "time.anchordot")] == [40, 60]
    assert all("with search" in cell for cell in kept(tmp_path, "time.anchor_cca"))
    told = page(tmp_path)
    assert "`anchordot` first in R@5 and R@10 both ways" in told
    assert "| s (over `anchordot`) |" in told


def test_sweeps_keep_what_they_do_not_vary(small: list[str], tmp_path: Path, data: Path):
    call("align", *small, "--study", "anchors", "pool", "overlap", "transfer", *FAST)
    assert [cell["anchors"] for cell in kept(tmp_path, "anchors.ridge")] == [30, 60]
    assert [cell["pool"] for cell in kept(tmp_path, "pool.anchor_cca")] == [30, 60]
    assert [cell["overlap"] for cell in kept(tmp_path, "overlap.anchor_cca")] == [0, 0.5, 1]
    (moved,) = kept(tmp_path, "transfer.ridge")
    assert moved["own"]["there"][2] > moved["other"]["there"][2]  # planted in other ways
    cells = importlib.import_module("align_cells")
    few, many = (
        cells.split_of(data, cells.MOLECULES, seed=0, anchors=count, reserved=60)
        for count in (30, 60)
    )
    assert np.array_equal(few.anchors[0], many.anchors[0][:30])
    assert np.array_equal(few.pools[1], many.pools[1])
    assert np.array_equal(few.test[0], many.test[0])
    told = page(tmp_path)
    for shown in ("| R@1 / R@10, anchors | 30 | 60 |", "| R@1 / R@10, overlap | 0 | 0.5 | 1 |"):
        assert shown in told
    assert "hidden pairs from none to all: R@10 changes by at most 3 points | `anchor_cca`" in told


@pytest.mark.parametrize(("overlap", "shared"), [(0.0, 0), (0.5, 30), (1.0, 60)])
def test_pools_share_what_is_asked_for_in_no_common_order(
    small: list[str], data: Path, overlap: float, shared: int
):
    del small
    cells = importlib.import_module("align_cells")
    split = cells.split_of(data, cells.MOLECULES, seed=0, pool=60, overlap=overlap)
    sides = cells.both_sides(data, *cells.MOLECULES)
    left, right = (
        [{row.tobytes(): place for place, row in enumerate(side.matrix())}[one.tobytes()]
         for one in rows]
        for side, rows in zip(sides, split.pools, strict=True)
    )  # fmt: skip
    assert len(set(left) & set(right)) == shared
    assert len(left) == len(right) == len(set(left)) == len(set(right)) == 60
    assert left != right
    test = {row.tobytes() for row in split.test[0]}
    assert not test & {row.tobytes() for row in np.concatenate([split.anchors[0], split.pools[0]])}


def test_more_rows_than_there_are_is_said(small: list[str], data: Path):
    del small
    cells = importlib.import_module("align_cells")
    with pytest.raises(SystemExit, match="too few"):
        cells.split_of(data, cells.MOLECULES, seed=0, pool=200)


def test_studies_of_the_plan_are_measured_and_shown(small: list[str], tmp_path: Path):
    pytest.importorskip("ot")
    call("align", *small, "--study", "hubness", "costs", "teacher", "participation", "fgw")
    rules = {cell["rule"]: cell for cell in kept(tmp_path, "hubness") if cell["centred"]}
    assert set(rules) == {"nearest", "inverted_softmax", "csls", "sinkhorn"}
    costs = {cell["cost"]: cell for cell in kept(tmp_path, "costs")}
    assert costs["anchor"]["there"] == rules["sinkhorn"]["there"]
    structure = {cell["alpha"]: cell for cell in kept(tmp_path, "fgw")}
    assert structure[1.0]["there"] == rules["sinkhorn"]["there"]
    for cell in kept(tmp_path, "participation"):
        assert 1 <= min(cell["source"]) <= max(cell["source"]) <= 16
    told = page(tmp_path)
    assert "the coupling has the lowest N_10 skewness of the four rules, both ways | csls" in told
    assert "| the coupling, gamma 1 and eta .02 |" not in told  # without its students, no table


def test_nothing_is_found_without_pairs_that_is_not_measured(small: list[str], tmp_path: Path):
    call("align", *small, "--study", "zero_pairs", "--methods", "icp")
    found = {cell["dataset"]: cell for cell in kept(tmp_path, "zero_pairs.icp")}
    assert set(found) == {"chebi20", "climate-fever"}
    assert "| chebi20 R@1 / R@10 | confidence |" in page(tmp_path)


def test_mapped_queries_are_judged_beside_native_ones(small: list[str], tmp_path: Path):
    call("align", *small, "--study", "same_modality",
         "--methods", "auto", "auto, unpaired", "ridge", "anchor_cca")  # fmt: skip
    (few, many) = kept(tmp_path, "same_modality.ridge")
    assert (few["pairs"], many["pairs"]) == (50, 100)
    assert 0.3 < few["nDCG@10"] <= few["native"] + 0.1
    assert few["native"] > 0.9
    assert (
        kept(tmp_path, "same_modality.auto")[0]["chosen"]
        in importlib.import_module("isthmus.maps").MAPS
    )
    halves = [cell["pairs"] for cell in kept(tmp_path, "same_modality.anchor_cca")]
    assert halves == [50, 50, 100, 100]  # all documents on both sides, and one half on each
    told = page(tmp_path)
    assert "| `auto, unpaired` |" in told
    assert "| `anchor_cca`, halves |" in told


def test_pictures_are_drawn(small: list[str], tmp_path: Path):
    pytest.importorskip("ot")
    call("align", *small, "--study", "anchors", "hubness", "participation", "fgw",
         "--methods", "ridge")  # fmt: skip
    call("plots_align", "--results", str(tmp_path), "--plots", str(tmp_path / "plots"))
    drawn = {path.stem for path in (tmp_path / "plots").iterdir()}
    assert drawn == {f"align_{name}" for name in importlib.import_module("plots_align").FIGURES}


def test_the_page_says_what_was_measured():
    root = BENCHMARKS.parent
    numbers = importlib.import_module("align_numbers")
    records = importlib.import_module("table_format").load(root / "benchmarks" / "results", "align")
    found = numbers.by(
        importlib.import_module("tables_align").cells_of(records)["retrieval"], "method"
    )
    page = (root / "docs" / "align.md").read_text(encoding="utf-8")
    for written, method in {
        "anchordot": "anchordot", "anchor_cca": "anchor_cca", "sotalign": "sotalign",
        "anchordot`, from drawn weights": "anchordot, random start",
        "cca`, tuned": "cca, tuned", "ridge`, tuned": "ridge, tuned", "ridge": "ridge",
        "contrastive": "contrastive", "cca": "cca", "asif": "asif", "sue": "sue",
    }.items():  # fmt: skip
        cells = found[method]
        told = [numbers.percent(numbers.recall(cells, way, k))
                for way in numbers.WAYS for k in (1, 5, 10)]  # fmt: skip
        name = written if "`" in written else f"{written}`"
        rows = [line for line in page.splitlines() if line.startswith(f"| `{name} |")]
        assert any(line.endswith(f"| {' | '.join(told)} |") for line in rows), (method, told)
