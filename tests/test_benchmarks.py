"""The benchmark scripts run on a small planted folder of data; the pages say what they found."""

from __future__ import annotations

import importlib
import json
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isthmus import Pairs, Space, VectorSet
from isthmus.evaluate.linking import are_true
from isthmus.link import LinkProblem, Links
from isthmus.link.self_training import SelfTraining
from isthmus.maps import MAPS, Compose
from isthmus.testing.planted import planted_pair

METHODS = tuple(name for name in MAPS if not MAPS[name]().costly)
BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
DOCUMENTS, QUERIES, PAIRS = 300, 40, 60


@pytest.fixture(scope="module", autouse=True)
def _scripts_importable():
    """Scripts import their neighbours by name, as when they are run."""
    before = set(sys.modules)
    sys.path.insert(0, str(BENCHMARKS))
    yield
    sys.path.remove(str(BENCHMARKS))
    for name in set(sys.modules) - before:
        if BENCHMARKS in Path(getattr(sys.modules[name], "__file__", None) or ".").parents:
            del sys.modules[name]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models of 24 and 32 columns; each query lies by a document, its only relevant one."""
    folder = tmp_path_factory.mktemp("data") / "planted"
    folder.mkdir()
    pair = planted_pair(DOCUMENTS, 24, 32, noise=0.3, normalized=True)
    rng = np.random.default_rng(0)
    for model, side in (("one", pair.source), ("two", pair.target)):
        space = Space(model=model, dim=side.dim, normalized=True)
        near = side.matrix()[:QUERIES] + 0.03 * rng.standard_normal((QUERIES, side.dim))
        near /= np.linalg.norm(near, axis=1, keepdims=True)
        ids = np.array([f"d{row}" for row in range(DOCUMENTS)])
        asked = np.array([f"q{row}" for row in range(QUERIES)])
        VectorSet(ids, side.matrix(), space).save(folder / f"docs.{model}.npz")
        VectorSet(asked, near.astype(np.float32), space).save(folder / f"queries.{model}.npz")
    judged = "".join(f"q{row}\td{row}\t1\n" for row in range(QUERIES))
    (folder / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    return folder.parent


@pytest.fixture(scope="module")
def results(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the bake-off on two seeds; its network is a small one, to be quick."""
    folder = tmp_path_factory.mktemp("results")
    args = Namespace(data=data, results=folder, seeds=[0, 1], pairs=PAIRS, held_out=80)
    lab19 = importlib.import_module("lab19")
    whole = lab19.compose_for

    def small(pairs: Pairs, method: str) -> Compose:
        made = whole(pairs, method)
        if method == "mlp_small":
            made.inner.set_params(hidden=(8, 8), max_epochs=20)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lab19, "compose_for", small)
        lab19.run(args, "planted", "one:two")
    return folder


def read(path: Path) -> dict:
    return json.loads(path.read_text())


def test_the_bake_off_keeps_one_file_per_run_and_one_that_pools_them(results: Path):
    files = sorted(path.name for path in (results / "lab19").iterdir())
    assert files == [f"planted.one.two.{which}.json" for which in ("0", "1", "pooled")]
    assert all((results / "lab19" / name).stat().st_size < 9_000 * len(METHODS) for name in files)


def test_every_map_is_measured_on_every_choice_of_pairs(results: Path):
    run = read(results / "lab19/planted.one.two.0.json")["result"]
    assert list(run["means"]) == ["all-easy", "one spot", "random", "coverage"]
    assert all(tuple(found) == METHODS for found in run["means"].values())
    assert run["anchors"]["all-easy"]["hard_pairs"] == 0.0
    assert (
        run["anchors"]["one spot"]["empty_clusters"] > run["anchors"]["coverage"]["empty_clusters"]
    )


def test_a_planted_rotation_is_found_by_the_rotation(results: Path):
    values = read(results / "lab19/planted.one.two.pooled.json")["result"]["values"]["coverage"]
    assert values["procrustes"]["nbr_overlap@10"][0] > 0.6 > values["null"]["nbr_overlap@10"][0]
    assert values["procrustes"]["agreement@1"][0] > 0.9


def test_pooled_values_are_means_over_queries_of_the_means_over_seeds(results: Path):
    runs = [read(results / f"lab19/planted.one.two.{seed}.json")["result"] for seed in (0, 1)]
    pooled = read(results / "lab19/planted.one.two.pooled.json")["result"]
    for name in ("agreement@10", "agreement@10, hard", "nDCG@10"):
        of_runs = np.mean([run["means"]["random"]["ridge"][name] for run in runs])
        mean, low, high = pooled["values"]["random"]["ridge"][name]
        assert mean == pytest.approx(of_runs, abs=2e-4)
        assert low <= mean <= high
    moved = pooled["moves"]["all-easy to coverage"]["ridge"]["agreement@10"][0]
    values = [
        pooled["values"][choice]["ridge"]["agreement@10"][0] for choice in ("coverage", "all-easy")
    ]
    assert moved == pytest.approx(values[0] - values[1], abs=2e-4)


def test_hard_queries_are_a_quarter_and_equal_answers_are_not_hard():
    from isthmus.evaluate.preservation import Native

    lab19 = importlib.import_module("lab19")
    angles = np.array([0.0, 0.1, 1.0, 1.3, 2.0, 2.6, 3.0, 3.0])
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    hard = lab19.hard(Native(rows, rows, own_rows=np.arange(8), depth=1))
    assert hard.tolist() == [False] * 8  # the closest quarter is two equal rows
    hard = lab19.hard(Native(rows[:7], rows[:7], own_rows=np.arange(7), depth=1))
    assert np.flatnonzero(hard).tolist() == [0, 1]


def test_values_that_a_seed_lacks_do_not_count():
    lab19 = importlib.import_module("lab19")
    mean = lab19.mean_of([np.array([1.0, np.nan, np.nan]), np.array([3.0, 5.0, np.nan])])
    np.testing.assert_array_equal(mean, [2.0, 5.0, np.nan])


def cell(**below: list[float]) -> dict:
    """Make a pooled record in which these maps stay below the best by these triples."""
    best = next(name for name, triple in below.items() if triple == [0, 0, 0])
    measures = ("nbr_overlap@10", "rank_corr", "agreement@10")
    return {
        "result": {"below_best": {"coverage": {name: {"best": best, **below} for name in measures}}}
    }


def test_the_most_constrained_map_within_noise_of_the_best_is_picked():
    pick = importlib.import_module("lab19_tables").pick
    even = cell(ridge=[0, 0, 0], procrustes=[0.01, -0.01, 0.03], null=[0.5, 0.4, 0.6])
    assert pick(even, "coverage") == "procrustes"
    worse = cell(ridge=[0, 0, 0], procrustes=[0.02, 0.01, 0.03], null=[0.5, 0.4, 0.6])
    assert pick(worse, "coverage") == "ridge"
    assert pick(worse, "coverage", tolerance=0.02) == "procrustes"
    worse["result"]["below_best"]["coverage"]["rank_corr"] = {
        "best": "procrustes",
        "procrustes": [0, 0, 0],
        "ridge": [0.1, 0.05, 0.15],
    }
    assert pick(worse, "coverage") is None


def write(results: Path, docs: Path) -> dict[str, str]:
    docs.mkdir(exist_ok=True)
    tables = importlib.import_module("tables")
    return {"numbers": tables.numbers(results), "lab19": tables.lab19(results)}


def test_pages_name_what_was_not_measured(tmp_path: Path):
    pages = write(tmp_path / "nothing", tmp_path / "docs")
    assert pages["numbers"].count("Not measured yet.") == 20
    assert "python benchmarks/honesty.py --data ../shared/data" in pages["numbers"]
    assert "Not measured yet: `python benchmarks/lab19.py" in pages["lab19"]


def test_the_page_of_the_lab_says_what_its_files_say(results: Path, tmp_path: Path):
    pages = write(results, tmp_path / "docs")
    assert pages == write(results, tmp_path / "docs")
    pooled = read(results / "lab19/planted.one.two.pooled.json")["result"]
    mean, low, high = pooled["values"]["coverage"]["ridge"]["agreement@10, hard"]
    assert f"{mean:.3f} [{low:.3f}, {high:.3f}]" in pages["lab19"]
    tables = importlib.import_module("lab19_tables")
    picked = tables.pick({"result": pooled}, "coverage")
    assert f"**{picked}** in 1 of 1 cases" in pages["lab19"]
    assert f"**{picked}** in 1 of 1 cases" in pages["numbers"]
    assert "By coverage" in pages["numbers"]


def test_results_of_another_format_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "apply_speed-10.json").write_text('{"rows": 10}')
    page = write(tmp_path, tmp_path / "docs")["numbers"]
    assert "Results are of another format than these tables; run it again." in page
    assert "apply_speed: results of another format (KeyError" in capsys.readouterr().out


def test_rivals_weights_and_calibration_come_from_the_script(data: Path, tmp_path: Path):
    script = importlib.import_module("federate_fusion")
    args = Namespace(
        data=data,
        results=tmp_path,
        datasets=["planted"],
        models=["one,two"],
        methods=["procrustes", "procrustes"],
        seeds=[0],
    )
    script.run(args, "planted", ["one", "two"], 0)
    records = importlib.import_module("common").read(tmp_path, "federate_fusion")
    means = records[0]["result"]["nDCG@10"]
    assert means["score, dummy maps"] < means["score"]
    assert {"cca", "ec into 0", "mig into 0", "mig into 1", "one_directional 1"} <= set(means)
    assert f"{means['cca']:.4f}" in script.table(records, args)


def test_the_adaptive_budget_comes_from_the_script(data: Path, tmp_path: Path):
    script = importlib.import_module("federate_budget")
    args = Namespace(data=data, results=tmp_path, hub="one", other="two", stores=3, seeds=[0])
    script.run(args, "planted", "topical", 0, tmp_path)
    records = importlib.import_module("common").read(tmp_path, "federate_budget")
    losses = records[0]["result"]["losses"]
    assert all(0 < cell["searched"] <= 1 for cell in losses.values())
    assert len(script.table(records, args).splitlines()) == 2 + len(losses)


def test_honesty_comes_from_the_script(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    script = importlib.import_module("honesty")
    monkeypatch.setattr(script, "SIZES", (100,))
    args = Namespace(data=data, results=tmp_path, measured=5000)
    script.run(args, "planted", "one", "two", 0)
    found = read(next((tmp_path / "honesty").iterdir()))["result"]
    held = found["reported"][1] <= found["measured"] <= found["reported"][2]
    page = write(tmp_path, tmp_path / "docs")["numbers"]
    answer = "yes" if held else "**no**"
    assert f"93 % of the cells | {held:.1%} (1 of 450 cells so far) | {answer} |" in page
    assert "planted, one to two | 1 |" in page


def honesty_record(seed: int, *, measured: float, verdict: str) -> dict:
    return {
        "parameters": {
            "dataset": "d", "source": "s", "target": "t", "pairs": 100, "seed": seed,
        },
        "result": {
            "reported": [0.5, 0.4, 0.6],
            "plain": [0.5, 0.45, 0.55],
            "measured": measured,
            "verdict": verdict,
        },
    }  # fmt: skip


def test_goals_that_are_missed_say_so_and_tuning_seeds_do_not_count():
    honesty = importlib.import_module("tables_quality").honesty
    records = [
        honesty_record(0, measured=0.5, verdict="reindex"),
        honesty_record(1, measured=0.2, verdict="bridge"),
        honesty_record(2, measured=0.9, verdict="reindex"),
        honesty_record(100, measured=0.5, verdict="bridge"),
    ]
    goals = honesty(records).goals
    said = [goal.measured.removesuffix(" (3 of 450 cells so far)") for goal in goals]
    assert said == ["33.3%", "2.00 times", "1 cells", "0.0% of 1"]
    assert [goal.answer for goal in goals] == ["**no**", "yes", "**no**", "**no**"]
    assert honesty(records[:1]).goals[-1].answer == "not measured"


def test_queries_are_compared_with_the_best_peer():
    few = {"isthmus (ridge)": 0.8, "isotrieve": 0.7, "rat-embed": 0.9}
    many = {"isthmus (procrustes)": 0.9, "isotrieve": 0.8, "rat-embed": 0.7, "embspec": 0.5}
    records = [
        {
            "parameters": {
                "dataset": "d", "source": "s", "target": "t", "pairs": pairs, "seed": seed,
            },
            "result": {"native": 0.5, "ratio": ratio},
        }
        for pairs, seed, ratio in ((500, 0, few), (500, 1, few), (2000, 0, many))
    ]  # fmt: skip
    part = importlib.import_module("tables_quality").query_mapping(records)
    assert [(goal.measured, goal.reached) for goal in part.goals] == [
        ("0.8000, rat-embed 0.9000 (2 of 5 splits so far)", False),
        ("0.9000, isotrieve 0.8000 (1 of 5 splits so far)", True),
    ]
    assert "| 500 | 0.800 | 0.700 | 0.900 | refuses |" in part.lines


def test_shares_outside_the_scope_are_told_apart():
    cells = [
        {
            "rule": "r", "pairs": 100, "home": "a",
            "outside": {"a": same, "a queries": 0.25, "b": 1.0, "b queries": 0.5},
        }
        for same in (0.125, 0.375)
    ]  # fmt: skip
    part = importlib.import_module("tables_quality").scope([{"result": {"cells": cells}}])
    assert part.lines[2] == "| r | 100 | 0.250 (0.125 to 0.375) | 0.250 | 0.750 (0.500) |"


def test_speed_is_read_from_flat_files_and_cells(tmp_path: Path):
    flat = {
        "rows": 1_000_000, "method": "ridge", "dtype": "float16", "ratio": 0.85, "peak_mb": 600.0,
        "machine": {"cores": 2},
    }  # fmt: skip
    seconds = {
        "alone": {"wall": [1.0, 2.0, 3.0], "processor": [1.0, 1.0, 1.0]},
        **{
            kind: {"wall": [wall] * 3, "processor": [1.25] * 3}
            for kind, wall in (("first", 3.0), ("again", 2.25), ("new", 2.5))
        },
    }
    overhead = {
        "parameters": {"dataset": "d", "method": "ridge", "threads": "1"},
        "result": {
            "cells": [
                {"layout": "all", "queries at a time": 1000, "searches": 1, "seconds": seconds}
            ]
        },
    }
    (tmp_path / "apply_speed-1000000-ridge-float16.json").write_text(json.dumps(flat))
    (tmp_path / "federated_overhead.json").write_text(json.dumps(overhead))
    (tmp_path / "neighbors_speed.json").write_text('{"result": {"top_k": {"s": [1, 2, 9]}}}')
    page = write(tmp_path, tmp_path / "docs")["numbers"]
    assert "at least 80 % of the bare loop's rate | 85% | yes |" in page
    assert "memory under 500 MB | 600 MB | **no** |" in page
    assert "whatever is remembered | nothing 1.50, some 1.25, all 1.12 | **no** |" in page
    assert "| all | 1,000 | 2.0000 | 1.50 (1.25) | 1.25 (1.25) | 1.12 (1.25) |" in page
    assert "| top_k, s (median of 3) | 2 |" in page


def test_the_slowest_fit_is_named():
    times = [
        {
            "size": [n, 3, 4],
            "ratios_one_thread": {"ridge": 1.0, "cca": slow},
            "ratios_all_threads": {"ridge": 1.25, "cca": 1.0},
        }
        for n, slow in ((10, 1.75), (20, 1.0))
    ]
    memory = {"ridge": {"peak": 900.0, "before fit": 300.0}}
    record = {
        "parameters": {"memory size": [20, 3, 4]}, "result": {"times": times, "memory_mb": memory}
    }  # fmt: skip
    part = importlib.import_module("tables_speed").fit_speed([record])
    assert [(goal.measured, goal.reached) for goal in part.goals] == [
        ("at most 1.75 times (cca, 10 x 3 to 4)", False),
        ("at most 1.25 times (ridge, 10 x 3 to 4)", True),
        ("900 MB at most", True),
    ]
    assert "| 10 x 3 to 4 | 1.00 | 1.75 |" in part.lines


@pytest.fixture(scope="module")
def clouds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two data sets of 300 objects each in the same two models of 24 and 32 columns."""
    folder = tmp_path_factory.mktemp("clouds")
    pair = planted_pair(2 * DOCUMENTS, 24, 32, noise=0.15, normalized=True)
    for place, name in enumerate(("near", "far")):
        (folder / name).mkdir()
        part = slice(place * DOCUMENTS, (place + 1) * DOCUMENTS)
        ids = np.array([f"d{row}" for row in range(DOCUMENTS)])
        for model, side in (("one", pair.source), ("two", pair.target)):
            space = Space(model=model, dim=side.dim, normalized=True)
            for kind in ("docs", "queries"):
                path = folder / f"{name}/{kind}.{model}.npz"
                VectorSet(ids, side.matrix()[part], space).save(path)
        judged = "".join(f"d{row}\td{row}\t1\n" for row in range(DOCUMENTS))
        (folder / name / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    return folder


@pytest.fixture
def linking(clouds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the benchmarks of linking know the two small data sets only; return their arguments."""
    cells, studied = (importlib.import_module(f"link_{name}") for name in ("cells", "studies"))
    speed = importlib.import_module("link_speed")
    near = cells.Pair("near", "one", "two")
    monkeypatch.setattr(cells, "PAIRS", dict.fromkeys(("near", "far"), (("one", "two"),)))
    monkeypatch.setattr(studied, "STRATEGY_PAIRS", [near])
    monkeypatch.setattr(studied, "UNRELATED_PAIRS", [near])
    monkeypatch.setattr(studied, "ELSEWHERE", "far")
    monkeypatch.setattr(importlib.import_module("link_geh"), "REAL", near)
    monkeypatch.setattr(speed, "CLIMATE", [near])
    monkeypatch.setattr(speed, "ANCHORS", 20)
    return ["--data", str(clouds), "--results", str(tmp_path), "--draws", "0", "--cells", "near"]


def call(name: str, *words: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [name, *words])
        importlib.import_module(name).main()


def test_a_split_shares_what_is_asked_for():
    split = importlib.import_module("link_cells").split
    for overlap, sizes in ((0.3, None), (1.0, None), (0.05, (45, 450))):
        cut = split(501, overlap=overlap, draw=100, sizes=sizes)
        shared = np.intersect1d(cut.source_rows, cut.target_rows)
        union = np.union1d(cut.source_rows, cut.target_rows)
        assert len(shared) == len(cut.truth) == round(overlap * 501)
        assert len(union) == (501 if sizes is None else sum(sizes) - len(shared))
        source, target = cut.truth.T
        np.testing.assert_array_equal(cut.source_rows[source], cut.target_rows[target])
        apart = abs(len(cut.source_rows) - len(cut.target_rows))
        assert apart == (405 if sizes else int(overlap < 1))
    assert not np.array_equal(cut.truth, split(501, overlap=0.05, draw=101, sizes=sizes).truth)
    with pytest.raises(ValueError, match="no clouds"):
        split(501, overlap=0.3, draw=0, sizes=(50, 500))


def test_linking_is_measured_kept_and_not_run_twice(
    linking: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    asked = ["--methods", "self_training", "procrustes", "--overlap", "0.3"]
    asked += ["--n-seeds", "15", "30"]
    call("link", *linking, *asked)
    assert "vecmap is left out" in capsys.readouterr().out
    files = sorted(path.name for path in (tmp_path / "link").iterdir())
    assert files == ["near.one.two.procrustes.json", "near.one.two.self_training.json"]
    kept = (tmp_path / "link" / files[1]).read_text()
    cell, more = json.loads(kept)["result"]["cells"]
    assert (cell["n_seeds"], more["n_seeds"]) == (15, 30)
    assert (cell["shared"], cell["rows"], cell["dims"]) == (90, [195, 195], [24, 32])
    assert cell["own"]["recall"] > 0.9
    true = round(cell["own"]["precision"] * cell["own"]["links"])
    assert cell["own"]["f1"] == pytest.approx(2 * true / (cell["own"]["links"] + 90), abs=1e-6)
    assert cell["coverage"][-1] == [1.0, cell["candidates"], true]
    assert cell["precision_95"]["precision"] is None
    call("link", *linking, *asked)
    assert capsys.readouterr().out.count("\n") == 1  # nothing but the line about vecmap
    assert (tmp_path / "link" / files[1]).read_text() == kept
    page = write(tmp_path, tmp_path / "docs")["numbers"]
    shown = [f"{100 * cell['own'][name]:.1f}" for name in ("precision", "recall", "f1")]
    assert f"| `self_training` | {' / '.join(shown)} |" in page.replace("**", "")


def test_a_link_that_is_stopped_is_no_result():
    measure = importlib.import_module("link_measure")
    problem = LinkProblem.of_rows(np.eye(5), np.eye(5), [(0, 0), (1, 1), (2, 2)])

    class Stopped:
        def link(self, problem: LinkProblem, *, seed: int) -> Links:
            return replace(SelfTraining().link(problem, seed=seed), interrupted=True)

    with pytest.raises(KeyboardInterrupt):
        measure.run(Stopped(), problem, np.repeat(np.arange(5)[:, None], 2, axis=1), seed=0)


VECMAP = """
import sys
import numpy as np
source, target, out, other, flag, seeds, _, seed = sys.argv[1:]
assert (flag, seed) == ("--semi_supervised", "0")
def read(path):
    rows = [line.split() for line in open(path)][1:]
    return [row[0] for row in rows], np.array([row[1:] for row in rows], float)
(s, X), (t, Y) = read(source), read(target)
pairs = [line.split() for line in open(seeds)]
x, y = X[[s.index(a) for a, _ in pairs]], Y[[t.index(b) for _, b in pairs]]
u, _, v = np.linalg.svd(x.T @ y)
for path, words, rows in ((out, s, X @ u @ v), (other, t, Y)):
    lines = [f"{word} {' '.join(map(str, row))}" for word, row in zip(words, rows)]
    open(path, "w").write("\\n".join([f"{len(rows)} {rows.shape[1]}", *lines]) + "\\n")
"""


def test_vecmap_is_called_where_its_scripts_are(linking: list[str], tmp_path: Path):
    (tmp_path / "map_embeddings.py").write_text(VECMAP)
    call("link", *linking, "--methods", "vecmap", "--n-seeds", "15", "--vecmap", str(tmp_path))
    found = read(tmp_path / "link/near.one.two.vecmap.json")["result"]["cells"]
    assert [cell["overlap"] for cell in found] == [0.3]  # the corner, once
    assert found[0]["own"]["f1"] > 0.5
    with pytest.raises(FileNotFoundError, match=r"map_embeddings\.py"):
        importlib.import_module("link_vecmap").Vecmap(tmp_path / "nothing")


def test_studies_of_linking_run_and_are_shown(linking: list[str], tmp_path: Path):
    asked = ["--methods", "self_training", "--n-seeds", "20"]
    call("link_studies", "all", *linking, *asked)
    kept = {path.name.split(".")[0]: read(path) for path in (tmp_path / "link_studies").iterdir()}
    found = {name: record["result"]["cells"] for name, record in kept.items()}
    assert sorted(found) == ["other", "sizes", "strategies", "unrelated", "wrong"]
    assert found["other"][0]["own"]["recall"] > 0.9
    cells = [cell for cell in found["sizes"] if cell["overlap"] == 0.05]
    assert {tuple(cell["rows"]) for cell in cells} == {(157, 158), (28, 287), (287, 28)}
    assert {cell["own"]["f1"] for cell in found["unrelated"]} == {0.0}
    assert {cell["new_at_95"] for cell in found["unrelated"]} == {0}
    page = write(tmp_path, tmp_path / "docs")["numbers"]
    assert "| near one / two; far, 0.3, 20 |" in page
    assert "| near one / two; self_training, two halves, queries, 20 |" in page


def test_a_share_of_the_seeds_is_wrong(clouds: Path):
    cells, studied = (importlib.import_module(f"link_{name}") for name in ("cells", "studies"))
    pair = cells.Pair("near", "one", "two")
    key = {"overlap": 0.3, "n_seeds": 15, "draw": 0}
    for share, count in ((0.1, 2), (0.2, 3)):
        problem, truth = studied.misled(clouds, pair, share, **key)
        assert 15 - are_true(problem.seed_rows, truth).sum() == count


def test_seeds_lie_as_their_strategy_says(clouds: Path):
    cells, studied = (importlib.import_module(f"link_{name}") for name in ("cells", "studies"))
    pair = cells.Pair("near", "one", "two")
    key = {"overlap": 0.5, "n_seeds": 15, "draw": 0}
    spread = {}
    for strategy in studied.STRATEGIES:
        problem, truth = studied.seeded_by(clouds, pair, strategy, **key)
        assert are_true(problem.seed_rows, truth).all()
        near = problem.seed_source @ problem.seed_source.T
        spread[strategy] = near[np.triu_indices(15, 1)].mean()
    assert spread["nearest"] > spread["random"] > spread["fps"]
    assert spread["nearest"] > spread["centroids"]


def test_geh_is_looked_into(linking: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    script = importlib.import_module("link_geh")
    monkeypatch.setattr(script, "VOTING_VIEWS", 6)
    for study in ("proximity", "votes"):
        call("link_geh", study, *linking, "--overlap", "0.5")
    folder = tmp_path / "link_studies"
    (cell,) = read(folder / "votes.near.one.two.geh.json")["result"]["cells"]
    assert cell["pairs"] == {
        name: sum(count for _, count in cell["histogram"][name]) for name in ("true", "spurious")
    }
    assert cell["median_true"] > 3
    (cell,) = read(folder / "proximity.near.one.two.geh.json")["result"]["cells"]
    assert all(np.diff([away for _, away, _, _ in cell["last"]]) >= 0)
    page = write(tmp_path, tmp_path / "docs")["numbers"]
    assert "| near one / two, last iteration |" in page
    assert "| near one / two; 0 |" in page


def test_the_parts_of_geh_have_names(clouds: Path):
    script = importlib.import_module("link_geh")
    cells = importlib.import_module("link_cells")
    made = [script.Geh(**settings) for settings in script.ABLATION.values()]
    assert len(set(made)) == len(made) == 7
    for name, values in script.SWEEPS.items():
        assert getattr(script.Geh(), name) in values
    source, target = cells.sides(clouds, cells.Pair("near", "one", cells.PLANTED), 0)
    noise = np.linalg.norm(target, axis=1)
    np.testing.assert_allclose(noise, 1.0, rtol=1e-6)
    rotation, _, right = np.linalg.svd(source.T @ target)
    cosines = ((source @ rotation @ right) * target).sum(axis=1)
    assert cosines.mean() == pytest.approx(1 / np.sqrt(1 + 0.3**2), abs=0.02)


def test_speed_of_linking_is_measured(
    linking: list[str], clouds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    call("link_speed", *linking, "--parts", "view", "--repeats", "1")
    times = read(tmp_path / "link_speed/view.near.one.two.json")["result"]["ms_one_thread"]
    assert min(times.values()) > 0
    capsys.readouterr()
    pair = {"dataset": "near", "source": "one", "target": "two"}
    key = {"overlap": 0.3, "n_seeds": 15, "draw": 0}
    script = importlib.import_module("link_speed")
    script.one(clouds, pair=pair, method="self_training", key=key)
    cell = json.loads(capsys.readouterr().out)
    assert cell["peak_mb"] >= cell["before_mb"]
    record = {"parameters": {**pair, "method": "auto"}, "result": {"cells": [{**key, **cell}]}}
    (tmp_path / "link_speed/near.one.two.auto.json").write_text(json.dumps(record))
    page = write(tmp_path, tmp_path / "docs")["numbers"]
    reached = "yes" if cell["peak_mb"] < 1_000 else "**no**"  # of this process, whatever it loaded
    assert f"15 seeds: under 1 GB | at most {cell['peak_mb']:,.0f} MB | {reached} |" in page
    assert "20,000 vectors a side: under 6 minutes | not measured yet | not measured |" in page


def linked(method: str, f1: float, status: str = "linked", **more: Any) -> dict[str, Any]:
    """Make the record of one cell of scifact minilm-l6 / para-l3 at overlap .3 and 15 seeds."""
    found = {"links": 9, "precision": 0.9, "recall": 0.6, "f1": f1}
    own = dict.fromkeys(("own", "max_f1", "hindsight", "precision_95", "unseeded"), found)
    cell = {
        "overlap": 0.3, "n_seeds": 15, "draw": 0, "seconds": 1.0, "peak_mb": 1.0, "ece": 0.25,
        "overlap_estimate": 9, "shared": 10, "verdict": {"status": status}, **own, **more,
    }  # fmt: skip
    given = {"dataset": "scifact", "source": "minilm-l6", "target": "para-l3", "method": method}
    return {"parameters": given, "result": {"cells": [cell]}}


def test_what_linking_misses_is_said():
    grid = importlib.import_module("tables_link").grid
    records = [linked("auto", 0.25, "doubtful"), linked("geh", 0.5), linked("procrustes", 0.125)]
    said = {goal.asked: goal for goal in grid(records).goals}

    def goal(word: str) -> tuple[str, bool | None]:
        (one,) = (each for asked, each in said.items() if word in asked)
        return one.measured, one.reached

    assert goal("draws of F1 under") == (
        "1 of 1 draws fail, 1 of them say so; in the whole grid 1 fail, 0 without a word", True,
    )  # fmt: skip
    assert goal("`geh`") == (
        "in 0 of 1; least lead -0.250 (scifact minilm-l6 / para-l3, 0.3, 15 seeds)", False,
    )  # fmt: skip
    assert goal("`procrustes`")[1] is True
    assert goal("true precision")[1] is False
    assert goal("recall of at least .5")[1] is True
    assert goal("calibration error") == ("0.250 (1 of 480 runs so far)", False)
    assert goal("`vecmap`") == ("not measured yet", None)
    silent = {each.asked: each for each in grid([linked("auto", 0.25)]).goals}
    assert [each.reached for asked, each in silent.items() if "draws of" in asked] == [False]


def test_draws_for_tuning_are_not_shown():
    grid = importlib.import_module("tables_link").grid
    assert grid([linked("auto", 0.25, draw=100)]).goals[6].reached is None


def test_unrelated_clouds_must_have_no_link_but_seeds():
    studies = importlib.import_module("tables_link_studies").studies
    more = {"clouds": "two halves", "seeds": "queries", "new_at_95": 9}
    record = linked("auto", 0.0, "no_overlap_found", **more)
    record["parameters"]["study"] = "unrelated"
    assert studies([record]).goals[1].measured == "no link in 0, the verdict in 1 of 1 runs"
    record["result"]["cells"][0]["new_at_95"] = 0
    assert studies([record]).goals[1].reached is True
