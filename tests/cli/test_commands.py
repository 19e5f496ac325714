"""Every command on small planted spaces: what it writes, prints, and gives as JSON."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from isthmus import Bridge, Pairs, Space, VectorSet
from isthmus.errors import TooFewPairsError
from isthmus.federate import Federation, ScoreCalibration

WIDTH = 80


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a photo in it; whatever fits or maps for it fails."""
    monkeypatch.setattr("isthmus.workflows.fit_bridge", None)
    monkeypatch.setattr(Bridge, "apply", None)
    (tmp_path / "photo.jpg").write_text("me")
    return tmp_path


def wide(text: str) -> list[str]:
    """Return the table lines (those that are padded) wider than a piped table may be."""
    return [line for line in text.splitlines() if line.endswith(" ") and len(line) > WIDTH]


# --- inspect ---------------------------------------------------------------------------------


def test_inspect_one(cli, files):
    ran = cli("inspect", files.one)
    assert (ran.code, ran.err) == (0, "")
    assert "one.npz" in ran.out
    assert "240 x 8 (float32)" in ran.out
    assert not wide(ran.out)


def test_inspect_two_compares_what_is_shared(cli, files):
    ran = cli("inspect", files.one, files.two)
    assert "The spaces differ in model, dim" in ran.out
    assert "240 shared ids" in ran.out
    assert "NNO@10" in ran.out
    assert not wide(ran.out)
    both = cli("inspect", files.one, files.two, "--json").result["both"]
    assert both["shared_ids"] == 240
    assert both["overlap"]["mean"] > 0.9
    assert both["null_retention"]["mean"] < 0.2
    assert "per_query" not in both["overlap"]


def test_inspect_looks_at_files_that_nothing_else_takes(cli, tmp_path: Path):
    rows = np.ones((4, 3), np.float32)
    rows[1] = np.nan
    rows[2] = 0
    space = json.dumps({"model": "m", "dim": 3})
    np.savez(tmp_path / "bad.npz", ids=np.array(["a", "b", "c", "c"]), vectors=rows, space=space)
    ran = cli("inspect", tmp_path / "bad.npz")
    assert ran.code == 0
    assert "note: bad.npz: 1 rows hold NaN or infinity" in ran.err
    told = cli("inspect", tmp_path / "bad.npz", "--json")
    assert {name: told.result["a"][name] for name in ("invalid_rows", "zero_rows", "sound")} == {
        "invalid_rows": 1,
        "zero_rows": 1,
        "sound": False,
    }
    assert told.result["a"]["duplicate_rows"] == told.result["a"]["duplicate_ids"] == 1
    assert len(told.envelope["warnings"]) == 4
    both = cli("inspect", tmp_path / "bad.npz", tmp_path / "bad.npz")
    assert "note: the sets were not compared" in both.err


# --- fit -------------------------------------------------------------------------------------


def test_fit_writes_a_bridge_and_its_report(cli, files, tmp_path: Path):
    out = tmp_path / "bridge"
    ran = cli("fit", files.one, files.two, "--pairs", files.pairs, "--out", out)
    assert (ran.code, ran.err) == (0, "")
    assert f"Written: {out}" in ran.out
    assert "null map [95 %]" in ran.out
    assert not wide(ran.out)
    assert Bridge.load(out).provenance.n_pairs == 100


def test_fit_gives_everything_as_json(cli, files, tmp_path: Path):
    out = tmp_path / "bridge"
    told = cli("fit", files.one, files.two, "--method", "ridge", "--out", out, "--json").result
    bridge = Bridge.load(out)
    assert told["n_pairs"] == 240  # equal ids
    assert told["hash"] == bridge.hash
    assert told["method"] == bridge.method == "ridge"
    assert told["verdict"]["status"] == bridge.verdict.status
    assert set(told["report"]["values"]) == set(bridge.report.values)


def test_fit_for_scoring_and_with_a_target_of_its_own(cli, files, tmp_path: Path):
    asked = ("fit", files.one, files.two, "--json", "--out")
    searching = cli(*asked, tmp_path / "a").result
    scoring = cli(*asked, tmp_path / "b", "--purpose", "score").result
    assert {one["criterion"] for one in searching["candidates"]} == {"nbr_overlap@10"}
    assert {one["criterion"] for one in scoring["candidates"]} == {"similarity_error"}
    strict = cli(*asked, tmp_path / "c", "--min-retention", 1.0).result
    assert searching["verdict"]["status"] == "bridge" != strict["verdict"]["status"]


def test_fit_says_nothing_with_quiet(cli, files, tmp_path: Path):
    ran = cli("fit", files.one, files.two, "--out", tmp_path / "b", "--quiet")
    assert (ran.code, ran.out, ran.err) == (0, "", "")


def test_fit_depends_on_its_seed_only(cli, files, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    asked = ("fit", files.one, files.two, "--method", "procrustes", "--json")
    hashes = [
        cli(*asked, "--out", tmp_path / name, "--seed", seed).result["hash"]
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    assert hashes[0] == hashes[1] != hashes[2]


def test_too_few_pairs_is_a_verdict_unless_more_is_required(cli, files, tmp_path: Path):
    few = tmp_path / "few.csv"
    few.write_text("source,target\n" + "".join(f"d{i},d{i}\n" for i in range(12)))
    asked = ("fit", files.one, files.two, "--pairs", few, "--method", "procrustes")
    ran = cli(*asked, "--out", tmp_path / "few")
    assert ran.code == 0
    assert "note: the verdict is insufficient_pairs" in ran.err
    strict = cli(*asked, "--out", tmp_path / "few", "--require", "bridge", "--json")
    assert strict.code == strict.error["exit_code"] == 32
    assert strict.error["kind"] == "VerdictError"
    assert strict.error["got"].startswith("insufficient_pairs: ")
    assert Bridge.load(tmp_path / "few").verdict.status == "insufficient_pairs"


@pytest.mark.parametrize(
    ("extra", "refused"),
    [
        (("--method", "procrustse"), (23, "did you mean 'procrustes'?")),
        (("--require", "bridges"), (23, "did you mean 'bridge'?")),
        (("--purpose", "scores"), (23, "did you mean 'score'?")),
        (("--min-retention", "2"), (22, "min_retention over 0 and at most 1")),
        (("--pairs", "none.csv"), (41, "none.csv")),
    ],
)
def test_fit_refuses_before_it_works(cli, files, tmp_path: Path, extra, refused):
    code, said = refused
    ran = cli("fit", files.one, files.two, "--out", tmp_path / "b", *extra)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("out", "told"),
    [
        ("", ("as a new folder, or an older bridge to replace", "a folder with photo.jpg")),
        ("photo.jpg", ("'photo.jpg' as a new folder", "a file")),
        ("photo.jpg/b", ("a folder '{}/photo.jpg' to write 'b' in", "a file")),
        ("x" * 300, ("to write 'xxx", "File name too long")),
    ],
)
def test_fit_refuses_a_place_before_it_fits(cli, files, place: Path, out, told):
    expected, got = told
    ran = cli("fit", files.one, files.two, "--out", place / out, "--json")
    assert ran.code == 44
    assert expected.format(place) in ran.error["expected"]
    assert ran.error["got"] == got
    assert [path.name for path in place.iterdir()] == ["photo.jpg"]


def test_fit_refuses_a_folder_that_takes_no_file(cli, files, place: Path, monkeypatch):
    def refuse(_: Path, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "touch", refuse)
    ran = cli("fit", files.one, files.two, "--out", place / "b", "--json")
    assert (ran.code, ran.error["got"]) == (44, "Read-only file system")


def test_fit_makes_the_folders_above_and_replaces_a_bridge(cli, files, tmp_path: Path):
    asked = ("fit", files.one, files.two, "--method", "procrustes", "--out", tmp_path / "a" / "b")
    first, second = (cli(*asked, "--seed", seed, "--json").result["hash"] for seed in (0, 1))
    assert first != second == Bridge.load(tmp_path / "a" / "b").hash
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]


# --- info ------------------------------------------------------------------------------------


def test_info_shows_the_verdict_and_the_report(cli, files):
    ran = cli("info", files.bridge)
    assert ran.code == 0
    assert "retention@10" in ran.out
    assert "one (8, cosine)" in ran.out
    assert not wide(ran.out)
    told = cli("info", files.bridge, "--json").result
    assert told["provenance"]["n_pairs"] == 100
    assert "pair_hashes" not in told["provenance"]
    assert told["source"]["model"] == "one"


def test_info_refuses_what_was_tampered_with(cli, files, tmp_path: Path):
    shutil.copytree(files.bridge, tmp_path / "bad")
    manifest = tmp_path / "bad" / "bridge.json"
    manifest.write_text(manifest.read_text().replace('"n_pairs": 100', '"n_pairs": 900'))
    ran = cli("info", tmp_path / "bad", "--json")
    assert ran.code == 51
    assert ran.error["kind"] == "TamperedArtifactError"


def test_require_accepts_a_bridge(cli, files):
    assert cli("info", files.bridge, "--require", "bridge").code == 0
    refused = cli("info", files.bridge, "--require", "pre_aligned")
    assert refused.code == 32
    assert "expected the verdict pre_aligned; got bridge: " in refused.err


# --- evaluate --------------------------------------------------------------------------------


def test_evaluate_leaves_out_what_the_bridge_was_fitted_on(cli, files):
    ran = cli("evaluate", files.bridge, files.one, files.two)
    assert ran.code == 0
    assert "140 held-out rows" in ran.out
    assert "note: 100 of 240 pairs were left out: the bridge was fitted on them" in ran.err
    assert "reported" in ran.out
    assert not wide(ran.out)
    told = cli("evaluate", files.bridge, files.one, files.two, "--json").result
    assert (told["shared"], told["fitted"], told["n_queries"]) == (240, 100, 140)
    assert told["values"]["nbr_overlap@10"]["mean"] > 0.9
    assert "per_query" not in told["values"]["nbr_overlap@10"]


def test_evaluate_puts_queries_beside_the_oracle(cli, files):
    asked = (
        *("evaluate", files.bridge, files.one, files.two, "--queries", files.queries),
        *("--target-queries", files.target_queries, "--qrels", files.qrels),
    )
    ran = cli(*asked)
    assert ran.code == 0
    assert "20 judged queries over 140 documents" in ran.out
    assert "Of the oracle's nDCG@10 the bridge keeps" in ran.out
    assert not wide(ran.out)
    told = cli(*asked, "--json").result
    assert told["judged"] == 20
    assert told["values"]["nDCG@10/oracle"]["mean"] > 0.9
    assert told["null"]["nDCG@10"]["mean"] < told["values"]["nDCG@10"]["mean"]


def test_evaluate_shows_one_query_without_an_interval(cli, files, tmp_path: Path):
    paths = {}
    for name, path in (("--queries", files.queries), ("--target-queries", files.target_queries)):
        paths[name] = tmp_path / path.name
        VectorSet.load(path).select([7]).save(paths[name], dtype="float32")
    asked = ("evaluate", files.bridge, files.one, files.two, "--qrels", files.qrels)
    asked += tuple(part for pair in paths.items() for part in pair)
    ran = cli(*asked)
    assert (ran.code, ran.out.count("nan")) == (0, 0)
    assert "1 judged queries over 140 documents" in ran.out
    (line,) = [line for line in ran.out.splitlines() if line.strip().startswith("nDCG@10")]
    assert "[" not in line
    told = cli(*asked, "--json").result
    assert (told["judged"], told["searched"]) == (1, 140)
    value = told["values"]["nDCG@10"]
    assert (value["low"], value["high"]) == (None, None)
    assert value["mean"] == told["oracle"]["nDCG@10"]["mean"] == 1


def test_evaluate_refuses_when_nothing_is_held_out(cli, files):
    ran = cli("evaluate", files.bridge, files.one, files.two, "--pairs", files.pairs, "--json")
    assert ran.code == 16
    assert ran.error["got"] == "100 pairs, all of which it was fitted on"


def test_evaluate_refuses_the_wrong_direction(cli, files):
    ran = cli("evaluate", files.bridge, files.two, files.one, "--json")
    assert ran.code == 31
    assert ran.error["kind"] == "WrongDirectionError"


# --- apply -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["out.npz", "out.npy", "out.parquet", "out.jsonl"])
def test_apply_writes_the_target_space(cli, files, tmp_path: Path, name):
    ran = cli("apply", files.bridge, files.one, "--out", tmp_path / name)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("240 rows carried to two (12, cosine) in ")
    carried = VectorSet.load(tmp_path / name)
    assert carried.space.model == "two"
    assert carried.space.bridged_from == Bridge.load(files.bridge).hash
    native = VectorSet.load(files.two)
    cosines = (carried.matrix() * native.matrix()).sum(axis=1) / (
        np.linalg.norm(carried.matrix(), axis=1) * np.linalg.norm(native.matrix(), axis=1)
    )
    assert cosines.min() > 0.99


def test_apply_flags_queries_through_a_bridge_of_passages(cli, files, tmp_path: Path):
    ran = cli("apply", files.bridge, files.queries, "--out", tmp_path / "q.npz", "--json")
    assert ran.result["kind_differs"] is True
    assert any("the bridge was fitted on 'passage'" in one for one in ran.envelope["warnings"])


@pytest.mark.parametrize(
    ("out", "told"),
    [
        ("none/o.npz", (44, "nothing there")),
        ("a.npz", (44, "a folder")),
        ("o.txt", (42, "'o.txt'")),
    ],
)
def test_apply_refuses_a_place_before_it_maps(cli, files, place: Path, out, told):
    (place / "a.npz").mkdir()
    ran = cli("apply", files.bridge, files.one, "--out", place / out, "--json")
    assert (ran.code, ran.error["got"]) == told
    assert sorted(path.name for path in place.iterdir()) == ["a.npz", "photo.jpg"]


def test_apply_refuses_an_unknown_number_type(cli, files, tmp_path: Path):
    ran = cli("apply", files.bridge, files.one, "--out", tmp_path / "o.npz", "--dtype", "float61")
    assert ran.code == 23
    assert "did you mean 'float16'?" in ran.err


# --- store and search ------------------------------------------------------------------------


@pytest.fixture
def federation(cli, files, tmp_path: Path) -> Path:
    """Two stores with half of the documents each, joined by the bridges."""
    documents = {path: VectorSet.load(path) for path in (files.one, files.two)}
    for name, path, rows in (
        ("one", files.one, range(0, 240, 2)),
        ("two", files.two, range(1, 240, 2)),
    ):
        half = tmp_path / f"{name}-half.npz"
        documents[path].select(list(rows)).save(half, dtype="float32")
        url = f"sqlite:///{tmp_path}/{name}.db?collection=docs"
        ran = cli("store", "add", url, half)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith("120 rows written, 120 of them new: sqlite:////")
    shutil.copytree(files.bridge, tmp_path / "to")
    shutil.copytree(files.back, tmp_path / "from")
    path = tmp_path / "federation.toml"
    path.write_text(
        'hub = "one"\n[[stores]]\nname = "one"\nurl = "sqlite:///one.db?collection=docs"\n'
        '[[stores]]\nname = "two"\nurl = "sqlite:///two.db?collection=docs"\n'
        'bridge_to = "to"\nbridge_from = "from"\n'
    )
    return path


@pytest.mark.usefixtures("federation")
def test_store_add_replaces_and_info_tells(cli, tmp_path: Path):
    url = f"sqlite:///{tmp_path}/one.db?collection=docs"
    again = cli("store", "add", url, tmp_path / "one-half.npz", "--json").result
    assert (again["written"], again["new"], again["count"]) == (120, 0, 120)
    ran = cli("store", "info", url)
    assert ran.code == 0
    assert "one (8, cosine)" in ran.out
    assert cli("store", "info", url, "--json").result["count"] == 120


@pytest.mark.usefixtures("federation")
def test_store_errors(cli, files, tmp_path: Path):
    url = f"sqlite:///{tmp_path}/one.db?collection=docs"
    assert cli("store", "add", url, files.two, "--json").error["kind"] == "SpaceMismatchError"
    other = f"sqlite:///{tmp_path}/one.db?collection=none"
    assert cli("store", "info", other, "--json").error["kind"] == "MissingCollectionError"
    assert cli("store", "info", "sqlite:///x.db", "--json").error["kind"] == "InputError"
    assert cli("store", "info", "sqlight:///x.db?collection=a", "--json").code == 23


def test_store_add_refuses_what_does_not_last(cli, files):
    ran = cli("store", "add", "memory://x?collection=a", files.one, "--json")
    assert (ran.code, ran.error["kind"]) == (27, "UnsupportedOperationError")
    assert "what a memory store holds ends with the process" in ran.error["got"]


def test_store_add_notes_vectors_of_another_origin(cli, files, tmp_path: Path):
    cli("apply", files.back, files.two, "--out", tmp_path / "mapped.npz")
    url = f"sqlite:///{tmp_path}/mixed.db?collection=docs"
    assert cli("store", "add", url, files.one, "--json").envelope["warnings"] == []
    assert "bridged from" not in cli("store", "info", url).out
    (note,) = cli("store", "add", url, tmp_path / "mapped.npz", "--json").envelope["warnings"]
    assert "the vectors are mapped by bridge" in note
    assert "the collection was made for native ones" in note
    url = f"sqlite:///{tmp_path}/mapped.db?collection=docs"
    assert cli("store", "add", url, tmp_path / "mapped.npz", "--json").envelope["warnings"] == []
    assert "bridged from" in cli("store", "info", url).out


KIND_NOTE = "note: bridge_to of store 'two': the queries are of kind 'query'"


@pytest.mark.parametrize("ending", ["trec", "jsonl", "csv"])
def test_search_writes_a_run(cli, federation, files, tmp_path: Path, ending):
    out = tmp_path / f"run.{ending}"
    asked = ("search", federation, "--query-vectors", files.queries, "--k", 3, "--out", out)
    ran = cli(*asked)
    assert ran.code == 0
    assert [line.split(";")[0] for line in ran.err.splitlines()] == [KIND_NOTE]
    assert ran.out.startswith("20 queries answered in ")
    lines = out.read_text().splitlines()
    assert len(lines) == 60 + (ending == "csv")
    first = {
        "trec": lambda: lines[0].split()[2],
        "jsonl": lambda: json.loads(lines[0])["id"],
        "csv": lambda: next(csv.DictReader(lines))["id"],
    }[ending]()
    assert first == "d150"


def test_search_notes_what_apply_would(cli, federation, files, tmp_path: Path):
    asked = ("search", federation, "--out", tmp_path / "r.jsonl", "--json", "--query-vectors")
    (kind,) = cli(*asked, files.queries).envelope["warnings"]
    assert f"note: {kind.split(';')[0]}" == KIND_NOTE
    directions = Bridge.load(files.bridge).scope.directions
    away = np.linalg.svd(directions.T)[2][-1:]  # at a right angle to all of them
    VectorSet(["q"], 50 * away, Space(model="one", dim=8)).save(tmp_path / "far.npz")
    (outside,) = cli(*asked, tmp_path / "far.npz").envelope["warnings"]
    assert outside.startswith("bridge_to of store 'two': 100% of the queries lie outside the scope")


def test_search_notes_the_verdicts_of_its_bridges(cli, federation, files, tmp_path: Path):
    shutil.rmtree(tmp_path / "from")
    noise = np.random.default_rng(1).normal(size=(240, 12))
    one, two = VectorSet.load(files.one), VectorSet.load(files.two)
    bad = Bridge.fit(Pairs.from_ids(VectorSet(one.ids, noise, two.space), one), method="procrustes")
    bad.save(tmp_path / "from")
    asked = ("search", federation, "--query-vectors", files.queries, "--json")
    notes = cli(*asked).envelope["warnings"]
    assert notes[0].startswith(
        f"bridge_from of store 'two': the verdict is {bad.verdict.status}: {bad.verdict.reason}"[
            :80
        ]
    )


def test_search_notes_ids_that_come_twice_in_a_trec_run(cli, federation, files, tmp_path: Path):
    cli("store", "add", f"sqlite:///{tmp_path}/two.db?collection=docs", files.two)
    asked = ("search", federation, "--query-vectors", files.queries, "--k", 200, "--json", "--out")
    assert len(cli(*asked, tmp_path / "r.csv").envelope["warnings"]) == 1
    notes = cli(*asked, tmp_path / "r.trec").envelope["warnings"]
    assert "answers to 20 of 20 queries, and stands twice in a TREC run" in notes[1]
    assert 'write dedup = "id"' in notes[1]
    federation.write_text('dedup = "id"\n' + federation.read_text())
    merged, kind = cli(*asked, tmp_path / "r.trec").envelope["warnings"]
    assert merged.endswith(" copies of documents were merged into other hits")
    assert "'query'" in kind


def test_search_shows_answers_and_gives_them_as_json(cli, federation, files):
    ran = cli("search", federation, "--query-vectors", files.queries, "--k", 2)
    assert "query q0" in ran.out
    assert "17 more queries: write them with --out." in ran.out
    assert not wide(ran.out)
    told = cli("search", federation, "--query-vectors", files.queries, "--k", 2, "--json").result
    assert [one["query"] for one in told["answers"]] == [f"q{i}" for i in range(20)]
    best = [one["hits"][0] for one in told["answers"]]
    assert [hit["id"] for hit in best] == [f"d{150 + i}" for i in range(20)]
    assert {hit["store"] for hit in best} == {"one", "two"}


@pytest.fixture
def failing(monkeypatch):
    """Let the store with the half of the documents that is called ``two`` fail."""
    from isthmus.stores.sqlite import SqliteStore

    whole = SqliteStore.search

    def search(self, queries, **asked):
        if "two.db" in self.url:
            raise ConnectionError("no route to host")
        return whole(self, queries, **asked)

    monkeypatch.setattr(SqliteStore, "search", search)
    monkeypatch.setattr("isthmus.federate.patience.FIRST_PAUSE", 0.0)


@pytest.mark.usefixtures("failing")
def test_search_answers_without_a_store_that_fails_and_says_so(cli, federation, files, tmp_path):
    asked = ("search", federation, "--query-vectors", files.queries, "--k", 2)
    ran = cli(*asked, "--out", tmp_path / "run.trec")
    assert ran.code == 0
    note = "note: store 'two' (error): ConnectionError: no route to host; the answers to 20 of 20"
    assert ran.err.splitlines()[0].startswith(note)
    told = cli(*asked, "--json")
    assert told.envelope["warnings"][0].startswith(note.removeprefix("note: "))
    assert not told.result["complete"]
    (outage,) = told.result["outages"]
    assert outage.pop("seconds") >= 0
    assert outage == {
        "store": "two",
        "reason": "ConnectionError: no route to host",
        "kind": "error",
        "attempts": 3,
        "queries": 20,
    }
    assert {hit["store"] for one in told.result["answers"] for hit in one["hits"]} == {"one"}


@pytest.mark.usefixtures("failing")
def test_search_fails_when_every_store_is_required(cli, federation, files):
    asked = ("search", federation, "--query-vectors", files.queries, "--json")
    for more in (("--require-all",), ()):
        ran = cli(*asked, *more)
        assert (ran.code, ran.error["kind"]) == (60, "StoreError")
        assert ran.error["got"].startswith("store 'two' (error): ConnectionError: no route to")
        federation.write_text("require_all = true\n" + federation.read_text())


def test_search_explains(cli, federation, files):
    asked = ("search", federation, "--query-vectors", files.queries, "--k", 2, "--explain")
    lines = [line.split() for line in cli(*asked).out.splitlines()]
    assert ["rank", "id", "store", "score", "native", "mapped"] in lines
    at = lines.index(["rank", "one", "two"])
    assert lines[at - 2 : at] == [["similarities"], []]
    assert lines[at + 2] == ["weight", "0.500", "0.500"]
    assert [line[0] for line in lines[at + 3 : at + 5]] == ["1", "2"]
    told = cli(*asked, "--json").result
    assert told["complete"] is True
    assert (told["outages"], told["skipped"]) == ([], None)
    for hit in told["answers"][0]["hits"]:
        assert hit["similarities"][hit["store"]] == hit["native_score"]
        assert set(hit["similarities"]) == {"one", "two"}
        assert hit["weights"] == {"one": 0.5, "two": 0.5}
        assert "common" not in hit


def test_search_explains_a_score_with_a_common_space(cli, federation, files, tmp_path):
    fitted = cli("fit", files.one, files.two, "--method", "cca", "--out", tmp_path / "joint")
    assert fitted.code == 0
    federation.write_text(federation.read_text() + 'bridge_common = "joint"\n')
    asked = ("search", federation, "--query-vectors", files.queries, "--explain")
    lines = [line.split() for line in cli(*asked).out.splitlines()]
    assert ["weight", "0.400", "0.400", "0.200"] in lines
    assert ["rank", "one", "two", "common"] in lines
    for out in (tmp_path / "run.jsonl", tmp_path / "run.csv"):
        assert cli(*asked, "--out", out, "--quiet").code == 0
    hits = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    with (tmp_path / "run.csv").open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert len(hits) == len(rows) > 20
    for hit, row in zip(hits, rows, strict=True):
        values = {**hit["similarities"], "common": hit["common"]}
        score = sum(weight * values[name] for name, weight in hit["weights"].items())
        assert score == pytest.approx(hit["score"], abs=1e-6)
        assert {name: float(row[f"weight {name}"]) for name in values} == hit["weights"]
        for name, value in hit["similarities"].items():
            assert float(row[f"similarity {name}"]) == value
        assert float(row["common"]) == hit["common"]


LONG_MODELS = (
    "somebody/multi-lingual-retrieval-model-base-v2",
    "somebody/multi_lingual_retrieval_model_small_v2",
    "another/embedding-of-long-documents-large-v3",
)


@pytest.fixture
def long_names(cli, tmp_path) -> tuple[Path, Path]:
    """A federation whose models, stores and ids have long names, and its queries."""
    rng = np.random.default_rng(100)
    rows = rng.standard_normal((90, 8)).astype(np.float32)
    ids = np.array([f"collection-of-articles/2026/document-{at:08d}#part-1" for at in range(90)])
    stores, sets = [], []
    for place, model in enumerate(LONG_MODELS):
        turn = np.linalg.qr(rng.standard_normal((8, 8)))[0].astype(np.float32)
        sets.append(VectorSet(ids, rows @ turn, Space(model=model, dim=8)))
        part = tmp_path / f"part-{place}.npz"
        sets[place].select(list(range(place, 90, 3))).save(part, dtype="float32")
        url = f"sqlite:///{tmp_path}/long-{place}.db?collection=docs"
        assert cli("store", "add", url, part).code == 0
        stores.append(f'[[stores]]\nname = "the-store-of-department-{place}"\nurl = "{url}"')
        if place:
            for field, sides in (("to", (0, place)), ("from", (place, 0))):
                pairs = Pairs.from_ids(*(sets[one] for one in sides))
                Bridge.fit(pairs, method="procrustes").save(tmp_path / f"{field}-{place}")
                stores[-1] += f'\nbridge_{field} = "{field}-{place}"'
    queries = tmp_path / "long.npz"
    sets[0].select([1, 2]).save(queries, dtype="float32")
    path = tmp_path / "long.toml"
    path.write_text("\n".join(['hub = "the-store-of-department-0"', *stores, ""]))
    return path, queries


def test_80_columns_hold_every_number_and_id_of_an_explanation(cli, process, long_names):
    path, queries = long_names
    asked = ("search", path, "--query-vectors", queries, "--k", 4, "--explain")
    told = cli(*asked, "--json").result["answers"]
    ran = process(*asked, COLUMNS="80")
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "\u2026" not in ran.out
    lines = iter(ran.out.splitlines())
    for answer in told:
        for hit in answer["hits"]:
            line = next(one for one in lines if one.strip().startswith(f"{hit['rank']} "))
            for name in ("score", "native_score", "mapped_score"):
                assert f"{hit[name]:.4f}" in line.split()
        for hit in answer["hits"]:
            line = next(one for one in lines if one.strip().startswith(f"{hit['rank']} "))
            assert line.split()[1:] == [f"{one:.4f}" for one in hit["similarities"].values()]
    whole = "".join(ran.out.split())
    assert all(letter in whole for letter in ("rank", "score", "native", "mapped", "weight"))


def test_a_trec_run_says_that_it_explains_nothing(cli, federation, files, tmp_path):
    asked = ("search", federation, "--query-vectors", files.queries, "--out", tmp_path / "a.trec")
    assert "note: a TREC run has no room" in cli(*asked, "--explain").err
    assert "no room" not in cli(*asked).err


@pytest.mark.parametrize("content", [None, b"", b"noise" * 999])
def test_search_leaves_out_a_store_whose_file_is_missing_or_damaged(
    cli, federation, files, content
):
    (path,) = federation.parent.rglob("two.db")
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    told = cli("search", federation, "--query-vectors", files.queries, "--json")
    assert told.code == 0
    assert [outage["store"] for outage in told.result["outages"]] == ["two"]
    refused = cli("search", federation, "--query-vectors", files.queries, "--require-all")
    assert refused.code != 0
    assert "in store 'two', sqlite:" in refused.err


def test_search_shows_probabilities_and_cuts_below_one(cli, federation, files, tmp_path: Path):
    scores = np.linspace(-1, 1, 400, dtype=np.float32).reshape(40, 10)
    source = np.repeat([0, 1], 5)
    with Federation.load(federation) as opened:
        scoring = opened.scoring
    names = ("one", "two")
    curves = ScoreCalibration.fit(scores, scores > 0.8, source, names=names, scoring=scoring)
    curves.to_file(tmp_path / "scores.json")
    asked = ["search", federation, "--query-vectors", files.queries, "--k", 3]
    refused = cli(*asked, "--min-probability", 0.5, "--json")
    assert refused.code != 0
    assert refused.error["kind"] == "ParameterError"
    federation.write_text('calibration = "scores.json"\n' + federation.read_text())
    head = next(line for line in cli(*asked).out.splitlines() if "native" in line)
    assert head.split() == ["rank", "id", "store", "score", "native", "mapped", "probability"]
    whole = cli(*asked, "--json").result["answers"]
    least = float(np.median([hit["probability"] for one in whole for hit in one["hits"]]))
    cut = cli(*asked, "--min-probability", least, "--json").result["answers"]
    assert 0 < sum(len(one["hits"]) for one in cut) < sum(len(one["hits"]) for one in whole)
    for before, after in zip(whole, cut, strict=True):
        likely = [hit["id"] for hit in before["hits"] if hit["probability"] >= least]
        assert [hit["id"] for hit in after["hits"]] == likely


def test_search_says_what_a_budget_skipped(cli, federation, files, monkeypatch):
    from isthmus.federate.adaptive import Adaptive

    def half(_, queries, *, spaces, **__):
        chosen = np.ones((len(queries[0]), len(spaces)), dtype=bool)
        chosen[::2, 1] = False
        return chosen

    monkeypatch.setattr(Adaptive, "choose", half)
    federation.write_text('budget = "adaptive"\n' + federation.read_text())
    told = cli("search", federation, "--query-vectors", files.queries, "--json")
    assert told.result["skipped"] == 0.25
    assert told.envelope["warnings"][0] == "the budget left out 25% of the searches of stores"


def test_search_refuses(cli, federation, files, tmp_path: Path, monkeypatch):
    asked = ("search", federation, "--query-vectors", files.queries)
    with monkeypatch.context() as before:
        before.setattr("isthmus.workflows.search", None)  # calling it would fail otherwise
        assert cli(*asked, "--out", tmp_path / "run.txt", "--json").code == 42
        nowhere = cli(*asked, "--out", tmp_path / "none" / "run.trec", "--json")
        assert (nowhere.code, nowhere.error["got"]) == (44, "nothing there")
    assert cli(*asked, "--k", 0, "--json").error["kind"] == "ParameterError"
    wrong = cli("search", federation, "--query-vectors", files.two, "--json")
    assert wrong.error["kind"] == "SpaceMismatchError"
    spaced = VectorSet(["has space"], np.ones((1, 8)), Space(model="one", dim=8))
    spaced.save(tmp_path / "spaced.npz")
    asked = ("search", federation, "--query-vectors", tmp_path / "spaced.npz", "--out")
    assert cli(*asked, tmp_path / "run.trec", "--json").error["kind"] == "InvalidIdError"
    assert not (tmp_path / "run.trec").exists()
    assert cli(*asked, tmp_path / "run.jsonl").code == 0


def test_a_full_disk_is_told_and_leaves_nothing(cli, files, tmp_path: Path, monkeypatch):
    import isthmus._files as written

    def full(_: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(written, "_sync", full)
    ran = cli("apply", files.bridge, files.one, "--out", tmp_path / "o.npz", "--json")
    assert ran.code == 44
    assert ran.error["got"] == "No space left on device"
    assert list(tmp_path.iterdir()) == []


def test_fewer_pairs_than_a_map_needs(cli, files, tmp_path: Path):
    one = tmp_path / "one.csv"
    one.write_text("source,target\nd0,d0\n")
    ran = cli("fit", files.one, files.two, "--pairs", one, "--out", tmp_path / "b", "--json")
    assert (ran.code, ran.error["kind"]) == (TooFewPairsError.exit_code, "TooFewPairsError")


def test_a_bridge_that_is_fitted_to_the_output_of_one_is_warned_of(cli, files, tmp_path):
    carried = tmp_path / "carried.npz"
    assert cli("apply", files.bridge, files.one, "--out", carried).code == 0
    of_itself = f"the bridge {Bridge.load(files.bridge).hash[:16]} carried them there"
    ran = cli("fit", files.one, carried, "--method", "procrustes", "--out", tmp_path / "again")
    assert (ran.code, of_itself in ran.err) == (0, True)
    assert "target side (two)" in ran.err
    ran = cli("evaluate", files.bridge, files.one, carried)
    assert (ran.code, of_itself in ran.err) == (0, True)
    plain = cli("fit", files.one, files.two, "--method", "procrustes", "--out", tmp_path / "plain")
    assert "carried them" not in plain.err
