"""The benchmarks of federation run on two small planted data sets, and the pages say what came."""

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
DOCUMENTS, QUERIES = 240, 30
MODELS = ("one", "two", "three")


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
    """Three data sets in three models; each query lies by two documents, its relevant ones."""
    folder = tmp_path_factory.mktemp("data")
    for number, dataset in enumerate(("near", "far", "titles")):
        (folder / dataset).mkdir()
        pairs = [planted_pair(DOCUMENTS, 16, dim, noise=0.3, seed=number) for dim in (20, 24)]
        sides = (pairs[0].source, pairs[0].target, pairs[1].target)
        for model, side in zip(MODELS, sides, strict=True):
            rows = side.matrix() / np.linalg.norm(side.matrix(), axis=1, keepdims=True)
            space = Space(model=model, dim=side.dim, normalized=True)
            ids = np.array([f"d{row}" for row in range(DOCUMENTS)])
            asked = np.array([f"q{row}" for row in range(QUERIES)])
            VectorSet(ids, rows, space).save(folder / dataset / f"docs.{model}.npz")
            near = rows[:QUERIES] + rows[QUERIES : 2 * QUERIES]
            near /= np.linalg.norm(near, axis=1, keepdims=True)
            VectorSet(asked, near, space).save(folder / dataset / f"queries.{model}.npz")
        judged = "".join(
            f"q{row}\td{row}\t1\nq{row}\td{row + QUERIES}\t1\n" for row in range(QUERIES)
        )
        (folder / dataset / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    return folder


@pytest.fixture
def small(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the scripts know the small data sets only; return their arguments."""
    cells = importlib.import_module("federate_cells")
    monkeypatch.setattr(cells, "OTHER", {"near": "far", "far": "near"})
    changes: dict[str, dict[str, Any]] = {
        "federate": {"TITLES": "titles", "TITLE_MODELS": ("one", "two")},
        "federate_studies": {
            "HUB": "one", "OTHER_MODEL": "two", "THIRD": "three", "TITLES": "titles",
            "MODELS": MODELS, "DATASETS": ("near", "far"), "PAIRS": (("one", "two"),),
            "SIZES": (60, 120), "HELD_OUT": 40, "NETWORKS": (), "GRAPHS": ((8, 16),),
            "SAME_NUMBER": 40, "DEPTHS": (5, 10),
        },
        "federate_cost": {"DATASETS": ("near", "far"), "MODELS": MODELS, "BATCH": 10, "PAIRS": 99,
                          "WIDEST": "three"},
        "federate_training": {"DATASETS": ("near",), "TITLES": "titles",
                              "TITLE_MODELS": ("one", "two")},
    }  # fmt: skip
    for script, values in changes.items():
        for name, value in values.items():
            monkeypatch.setattr(importlib.import_module(script), name, value)
    return ["--data", str(data), "--results", str(tmp_path)]


def call(name: str, *words: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [name, *words])
        importlib.import_module(name).main()


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def pages(results: Path) -> str:
    return importlib.import_module("tables").numbers(results)


GRID = ["--datasets", "near", "--seeds", "0", "--maps", "ridge", "dummy", "auto"]


def test_every_way_to_rank_is_measured_kept_and_not_run_twice(
    small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    asked = [*GRID, "--models", "one,two", "two,one", "one,two,three"]
    call("federate", *small, *asked, "--auxiliary", "in:0.2", "other", "titles")
    names = sorted(path.stem for path in (tmp_path / "federate").iterdir())
    assert len(names) == 8  # titles are in two of the models only
    cells = {
        cell["map"]: cell
        for cell in read(tmp_path / "federate/near.one.two.in0.2.json")["result"]["cells"]
    }
    assert set(cells) == {"none", "ridge", "dummy", "auto"}
    assert set(cells["none"]["nDCG@10"]) >= {"agg, all encoders", "mig one", "mig two"}
    ranked = cells["ridge"]["nDCG@10"]
    assert ranked["score"] > cells["dummy"]["nDCG@10"]["score"]
    assert ranked["score w=0.5"] == pytest.approx(ranked["score"])
    assert {"ec", "cca", "agg", "one_directional two", "score, common"} <= set(ranked)
    unpack = importlib.import_module("federate_cells").unpack
    kept = unpack(cells["ridge"]["per_query"]["score"][0])
    assert kept.shape == (QUERIES,)
    assert kept.mean() == pytest.approx(ranked["score"], abs=1e-3)
    capsys.readouterr()
    call("federate", *small, *asked, "--auxiliary", "in:0.2")
    assert capsys.readouterr().out == ""
    page = pages(tmp_path)
    assert "| near, one two three |" in page
    assert "two stores, a fifth as pairs, either model is the hub" in page


def test_fitted_maps_are_shared_by_commands(small: list[str], tmp_path: Path):
    kept = ["--keep-maps", str(tmp_path / "maps"), "--models", "one,two", "--auxiliary", "in:0.2"]
    call("federate", *small, *GRID, *kept)
    first = read(tmp_path / "federate/near.one.two.in0.2.json")["result"]["cells"]
    assert len(list((tmp_path / "maps").iterdir())) == 7  # three maps each way, cca one way
    call("federate", *small, *GRID, *kept, "--again")
    again = read(tmp_path / "federate/near.one.two.in0.2.json")["result"]["cells"]
    assert [one["nDCG@10"] for one in first] == [one["nDCG@10"] for one in again]


def test_studies_run_and_are_shown(small: list[str], tmp_path: Path):
    call("federate_studies", "all", *small, "--datasets", "near", "--seeds", "0", "--maps", "ridge")
    folder = tmp_path / "federate_studies"
    found = {path.stem.split(".")[0]: read(path)["result"]["cells"] for path in folder.iterdir()}
    assert sorted(found) == sorted(importlib.import_module("federate_studies").STUDIES)
    assert [cell["N"] for cell in found["stores"] if cell["models"] == "one,two"] == [2, 3, 4, 5, 6]
    whole = {cell["mig one"] for cell in found["stores"]}
    assert len(whole) == 1  # however the documents lie
    assert all(0 <= cell["NNO@10"] <= 1 for cell in found["similarity"])
    assert {cell["pairs"] for cell in found["sizes"]} == {60, 120}
    assert found["graphs"][0]["ridge"]["search seconds"] > 0
    page = pages(tmp_path)
    assert "| from 2 to 6 stores, `ridge`: loses at most a third" in page.replace(
        "Federation: stores, skew, pairs, maps, graphs: ", ""
    )
    assert "skewed against balanced relevance, `ridge, common`" in page


def test_queries_that_share_a_document_stay_in_one_store():
    studies = importlib.import_module("federate_studies")
    qrels = importlib.import_module("isthmus.spaces").Qrels(
        np.array(["a", "a", "b", "b", "c"]),
        np.array(["1", "2", "2", "3", "5"]),
        np.ones(5, np.float32),
    )
    groups = studies.relevant_groups(qrels, np.array(["0", "1", "2", "3", "4", "5"]))
    assert groups.tolist() == [-1, 1, 1, 1, -1, 5]
    place = studies.by_group(groups[groups >= 0], np.random.default_rng(0))
    assert place.tolist() == [0, 0, 0, 1]


def test_parts_of_a_search_are_timed(small: list[str], tmp_path: Path):
    call("federate_cost", *small, "--rows", "200", "--turns", "2", "--sizes", "2", "6",
         "--depths", "10", "20")  # fmt: skip
    (path,) = (tmp_path / "federate_cost").iterdir()
    result = read(path)["result"]
    assert len(result["cells"]) == 8
    for cell in result["cells"]:
        for state in ("first", "new", "again"):
            assert min(cell[state][part] for part in ("search", "map", "fetch", "rank")) >= 0
        assert cell["agg"]["map"] == 0
    assert set(result["growth"]) == {
        f"{layout}, {axis}" for layout in ("three models", "a model per store") for axis in "NK"
    }
    large = {
        one["method"]: one for one in result["reckoned"] if (one["size"], one["N"]) == ("1B", 2)
    }
    assert large["score"]["indexing"] == 0 < large["mig"]["indexing"]
    assert "N = 6, K = 10, batch of 100: mapping and ranking under 10 %" in pages(tmp_path)


def test_products_of_training_are_counted(small: list[str], tmp_path: Path):
    call("federate_training", *small, "--seeds", "0", "--pairs", "100", "--threads", "1",
         "--map", "mlp:depth=2,width=8,least_steps=3,epochs=1")  # fmt: skip
    (path,) = (tmp_path / "federate_training").iterdir()
    (fit,) = read(path)["result"]["fits"]
    assert fit["flops"] > 0
    assert fit["share"] > 0
    assert "at least 60 % of the bare products' rate" in pages(tmp_path)


def test_pictures_are_drawn(small: list[str], tmp_path: Path):
    call("federate", *small, *GRID, "--models", "one,two", "--auxiliary", "in:0.2")
    call("federate_studies", "stores", "sizes", "similarity", "graphs", *small, "--datasets",
         "near", "--seeds", "0", "--maps", "ridge")  # fmt: skip
    call("federate_cost", *small, "--rows", "200", "--turns", "1", "--sizes", "2", "3",
         "--depths", "10")  # fmt: skip
    call("plots_federate", "--results", str(tmp_path), "--plots", str(tmp_path / "plots"))
    drawn = sorted(path.name for path in (tmp_path / "plots").iterdir())
    assert drawn == sorted(
        f"federate_{name}.svg" for name in importlib.import_module("plots_federate").FIGURES
    )


def test_seeds_for_tuning_are_not_shown(small: list[str], tmp_path: Path):
    call("federate", *small, *GRID[:2], "--seeds", "100", "--maps", "ridge", "--models", "one,two",
         "--auxiliary", "in:0.2")  # fmt: skip
    assert "Only tuning seeds so far." in pages(tmp_path)
