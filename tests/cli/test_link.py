"""``isthmus link``: what it writes and says, what it refuses, how it is stopped and taken up."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from isthmus import Bridge, Pairs, Space, VectorSet
from isthmus.link import LinkVerdict
from isthmus.link.self_training import SelfTraining

WAITS = """
import os, sys, time
from dataclasses import dataclass
from isthmus.link import registry
from isthmus.link.self_training import SelfTraining

@dataclass(frozen=True, kw_only=True)
class Waits(SelfTraining):
    name = "waits"

    def iterate(self, problem, *, seed, state):
        for one in super().iterate(problem, seed=seed, state=state):
            yield one
            if "WAIT" in os.environ:
                sys.stderr.write("waiting\\n"); sys.stderr.flush()
                time.sleep(60)

registry.LINKERS["waits"] = Waits
from isthmus.cli import main
main()
"""


@pytest.fixture
def seeds(tmp_path: Path) -> Path:
    path = tmp_path / "seeds.csv"
    path.write_text("source,target\n" + "".join(f"d{i},d{i}\n" for i in range(0, 240, 12)))
    return path


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever links fails."""
    monkeypatch.setattr("isthmus.workflows.find_links", None)


@pytest.fixture
def asked(files, seeds: Path) -> tuple[object, ...]:
    """Return a command line, but for where to write."""
    return ("link", files.one, files.two, "--seeds", seeds, "--method", "self_training")


def lines_of(path: Path) -> list[list[str]]:
    with path.open(newline="") as stream:
        return list(csv.reader(stream))


# --- what it gives ---------------------------------------------------------------------------


def test_links_are_written_and_shown(cli, asked, tmp_path: Path):
    out = tmp_path / "links.csv"
    ran = cli(*asked, "--out", out)
    assert (ran.code, ran.err) == (0, "")
    head, *rows = lines_of(out)
    assert head == ["source", "target", "posterior", "votes"]
    assert len(rows) > 230
    assert np.mean([row[0] == row[1] for row in rows]) > 0.98
    assert f"{len(rows)} of {len(rows)} candidates" in ran.out
    assert "240 rows of one (8, cosine)" in ran.out
    assert "not estimated by this method" in ran.out
    assert "1 self_training" in ran.out
    assert f"Written: {out}" in ran.out
    assert not [line for line in ran.out.splitlines() if line.endswith(" ") and len(line) > 80]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["links.csv", "seeds.csv"]


def test_everything_is_in_the_envelope(cli, asked, tmp_path: Path):
    out = tmp_path / "links.parquet"
    ran = cli(*asked, "--out", out, "--json")
    assert (ran.code, ran.err) == (0, "")
    told = ran.result
    assert told["path"] == str(out)
    assert (told["method"], told["seeds"], told["seeds_inside"]) == ("self_training", 20, True)
    assert told["verdict"] == {"status": "not_judged", "reasons": []}
    assert told["history"][-1]["links"] == told["candidates"] == told["links"]
    assert told["overlap"] is None
    assert told["interrupted"] is False


def test_quiet_says_nothing(cli, asked, tmp_path: Path):
    ran = cli(*asked, "--out", tmp_path / "links.csv", "--quiet")
    assert (ran.code, ran.out, ran.err) == (0, "", "")


def test_coverage_all_and_an_empty_file(cli, asked, tmp_path: Path):
    out = tmp_path / "links.csv"
    half = cli(*asked, "--out", out, "--coverage", 0.5, "--json").result
    assert len(lines_of(out)) == 1 + half["links"] == 1 + round(half["candidates"] / 2)
    every = cli(*asked, "--out", out, "--coverage", 0.5, "--all", "--json").result
    assert len(lines_of(out)) == 1 + every["candidates"] > 1 + every["links"]
    none = cli(*asked, "--out", out, "--threshold", 0.99)
    assert none.code == 0
    assert "note: no candidate is sure enough to be a link" in none.err
    assert lines_of(out) == [["source", "target", "posterior", "votes"]]
    assert "0 of " in none.out


def test_links_are_pairs_for_a_bridge(cli, files, asked, tmp_path: Path):
    out = tmp_path / "links.csv"
    found = cli(*asked, "--out", out, "--json").result
    ran = cli(
        *("fit", files.one, files.two, "--pairs", out, "--method", "procrustes"),
        *("--out", tmp_path / "bridge", "--json"),
    )
    assert ran.result["n_pairs"] == found["links"]
    assert Bridge.load(tmp_path / "bridge").verdict.status == "bridge"
    pairs = Pairs.from_file(out, VectorSet.load(files.one), VectorSet.load(files.two))
    assert pairs.weight is not None
    np.testing.assert_allclose(pairs.weight, 2 / 3, rtol=1e-6)


def test_seeds_from_another_domain(cli, files, tmp_path: Path):
    half = {}
    for path in (files.one, files.two):
        whole = VectorSet.load(path)
        for name, rows in (("a", range(60)), ("b", range(60, 240))):
            half[name, path] = tmp_path / f"{name}.{path.name}"
            whole.select(list(rows)).save(half[name, path], dtype="float32")
    asked = ("link", half["b", files.one], half["b", files.two], "--method", "self_training")
    other = ("--seed-vectors", half["a", files.one], half["a", files.two])
    out = tmp_path / "links.csv"
    told = cli(*asked, *other, "--out", out, "--json").result
    assert (told["seeds"], told["seeds_inside"]) == (60, False)
    assert told["links"] > 170
    few = tmp_path / "few.csv"
    few.write_text("source,target\n" + "".join(f"d{i},d{i}\n" for i in range(30)))
    ran = cli(*asked, *other, "--seeds", few, "--out", out)
    assert "30, other objects" in ran.out
    swapped = cli(*asked, *other[:1], other[2], other[1], "--out", out, "--json")
    assert swapped.error["kind"] == "SpaceMismatchError"


def test_parameters_of_the_method(cli, asked, tmp_path: Path):
    out = ("--out", tmp_path / "links.csv", "--json")
    assert len(cli(*asked, *out, "--param", "rounds=1").result["history"]) == 1
    for text, kind in (
        ("rounds", "ParameterError"),
        ("rounds=0", "ParameterError"),
        ("rounds=many", "ParameterError"),
        ("turns=1", "ParameterError"),
        ("name=cca", "ParameterError"),
    ):
        assert cli(*asked, *out, "--param", text).error["kind"] == kind


def test_the_verdict_may_be_required(cli, asked, tmp_path: Path, monkeypatch):
    out = tmp_path / "links.csv"
    strict = cli(*asked, "--out", out, "--require", "linked", "--json")
    assert strict.code == strict.error["exit_code"] == 32
    assert strict.error["got"] == "not_judged"
    assert out.is_file()
    whole = SelfTraining.finish

    def judged(self, *arguments, **named):
        links = whole(self, *arguments, **named)
        object.__setattr__(links, "verdict", LinkVerdict("doubtful", ("few seeds", "it moved")))
        return links

    monkeypatch.setattr(SelfTraining, "finish", judged)
    ran = cli(*asked, "--out", out)
    assert ran.code == 0
    assert "note: the verdict is doubtful: few seeds; it moved" in ran.err
    assert "doubtful: few seeds; it moved" in ran.out
    refused = cli(*asked, "--out", out, "--require", "linked", "--json")
    assert refused.error["got"] == "doubtful: few seeds; it moved"


def test_the_same_space_is_allowed_and_said(cli, files, seeds, tmp_path: Path):
    ran = cli(
        *("link", files.one, files.one, "--seeds", seeds, "--method", "self_training"),
        *("--out", tmp_path / "links.csv"),
    )
    assert ran.code == 0
    assert "note: both sets are of one space" in ran.err
    assert len(lines_of(tmp_path / "links.csv")) == 241


# --- what it refuses -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("extra", "refused"),
    [
        (("--method", "self_trainin"), (23, "did you mean 'self_training'?")),
        (("--require", "bridge"), (23, "a verdict to require among linked")),
        (("--threshold", "best"), (22, "a posterior, 'own' or 'max_f1'")),
        (("--threshold", "2"), (22, "threshold from 0 to 1")),
        (("--threshold", "nan"), (22, "threshold from 0 to 1")),
        (("--precision", "0.9", "--coverage", "0.5"), (22, "one of threshold, precision and")),
        (("--seeds", "none.csv"), (41, "none.csv")),
        (("--seed", "-1"), (2, "Invalid value for '--seed'")),
    ],
)
def test_it_refuses_before_it_works(cli, asked, tmp_path: Path, extra, refused):
    code, said = refused
    ran = cli(*asked, "--out", tmp_path / "links.csv", *extra)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert not (tmp_path / "links.csv").exists()


@pytest.mark.parametrize(
    ("out", "told"),
    [
        ("links.tsv", (42, "'links.tsv'")),
        ("links", (42, "'links'")),
        ("none/links.csv", (44, "nothing there")),
        ("folder.csv", (44, "a folder")),
        ("seeds.csv/links.csv", (44, "a file")),
        (f"{'x' * 300}.csv", (44, "File name too long")),
        ("seeds.csv", (22, "'seeds.csv'")),
    ],
)
@pytest.mark.usefixtures("no_work")
def test_a_place_that_cannot_be_written(cli, asked, tmp_path: Path, out, told):
    (tmp_path / "folder.csv").mkdir()
    before = (tmp_path / "seeds.csv").read_text()
    ran = cli(*asked, "--out", tmp_path / out, "--json")
    assert (ran.code, ran.error["got"]) == told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.csv", "seeds.csv"]
    assert (tmp_path / "seeds.csv").read_text() == before


def test_seeds_are_needed(cli, files, tmp_path: Path):
    asked = ("link", files.one, files.two, "--out", tmp_path / "links.csv")
    ran = cli(*asked, "--method", "self_training", "--json")
    assert (ran.code, ran.error["got"]) == (22, "none of them")
    assert cli(*asked[:3], "--json").error["kind"] == "UsageError"
    lone = cli(*asked, "--json", "--seed-vectors", files.one)
    assert lone.error["kind"] == "UsageError"


# --- stopped and taken up --------------------------------------------------------------------


@pytest.fixture
def waiting(tmp_path: Path, files, seeds):
    """Start a run that waits after its first iteration; it is stopped by the signal given."""
    place = [sys.executable, "-c", WAITS, "link", str(files.one), str(files.two), "--seeds"]
    place += [str(seeds), "--method", "waits", "--out", "links.csv"]

    def start(number: int, *extra: str) -> tuple[int, str, str]:
        with subprocess.Popen(
            [*place, *extra],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "WAIT": "1"},
        ) as running:
            assert running.stderr is not None
            assert running.stderr.readline() == "waiting\n"
            time.sleep(0.1)
            running.send_signal(number)
            out, err = running.communicate(timeout=60)
        return running.returncode, out, err

    return start


@pytest.fixture
def again(process, files, seeds):
    """Run the same, without waiting."""

    def call(out: str, *extra: str):
        return process(
            *("link", files.one, files.two, "--seeds", seeds, "--method", "waits"),
            *("--out", out, *extra),
            program=WAITS,
        )

    return call


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_an_interrupt_keeps_the_links_so_far(waiting, again, tmp_path: Path, name, code):
    returned, out, err = waiting(getattr(signal, name))
    assert returned == code
    assert "Traceback" not in err
    note, last = err.splitlines()
    assert note == (
        "note: interrupted after iteration 1: links.csv has the links so far; --resume goes on"
    )
    assert last in {"isthmus: interrupted", "isthmus: ended by the signal SIGTERM"}
    assert "Written: links.csv" in out
    assert len(lines_of(tmp_path / "links.csv")) > 100
    assert (tmp_path / "links.csv.checkpoint").is_file()
    resumed = again("links.csv", "--resume", "--json")
    assert resumed.result["resumed_after"] == 1
    assert resumed.result["history"][0]["number"] == 1
    assert again("whole.csv").code == 0
    assert (tmp_path / "links.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["links.csv", "seeds.csv", "whole.csv"]


def test_an_interrupt_is_one_envelope_with_json(waiting, tmp_path: Path):
    returned, out, err = waiting(signal.SIGINT, "--json")
    assert (returned, err) == (130, "")
    told = json.loads(out)
    assert (told["ok"], told["error"]["kind"]) == (False, "Interrupted")
    assert len(lines_of(tmp_path / "links.csv")) > 100


def test_a_killed_run_goes_on(waiting, again, tmp_path: Path):
    assert waiting(signal.SIGKILL)[0] == -signal.SIGKILL
    assert not (tmp_path / "links.csv").exists()
    assert again("links.csv", "--resume", "--json").result["resumed_after"] == 1
    assert again("whole.csv").code == 0
    assert (tmp_path / "links.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_what_stands_in_the_way_of_resuming(cli, asked, tmp_path: Path, monkeypatch):
    out = tmp_path / "links.csv"
    fresh = cli(*asked, "--out", out, "--resume")
    assert fresh.code == 0
    assert "note: there is no checkpoint to resume from: linking started anew" in fresh.err

    def stop(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("isthmus.workflows._found_links.write_links", stop)
        assert cli(*asked, "--out", out).code == 44
    checkpoint = tmp_path / "links.csv.checkpoint"
    assert checkpoint.is_file()  # the work is not lost with the place to write it to
    other = cli(*asked, "--out", out, "--resume", "--seed", 1, "--json")
    assert (other.code, other.error["kind"]) == (22, "ParameterError")
    assert other.error["got"] == "one that differs in: seed"
    kept = checkpoint.read_bytes()
    checkpoint.write_bytes(kept[:-7])
    cut = cli(*asked, "--out", out, "--resume", "--json")
    assert (cut.code, cut.error["kind"]) == (43, "CorruptFileError")
    checkpoint.write_bytes(kept)
    half = cli(*asked, "--out", out, "--resume", "--coverage", 0.5, "--json").result
    assert half["resumed_after"] > 0  # which links are kept may be decided anew
    assert len(lines_of(out)) == 1 + round(half["candidates"] / 2)
    checkpoint.write_bytes(kept)
    anew = cli(*asked, "--out", out)
    assert "links.csv.checkpoint of a stopped run is replaced; --resume would go on" in anew.err
    assert not checkpoint.exists()


def test_a_checkpoint_never_replaces_what_is_read(cli, files, seeds, tmp_path: Path):
    (tmp_path / "links.csv.checkpoint").symlink_to(files.one)
    before = Path(files.one).read_bytes()
    ran = cli("link", files.one, files.two, "--seeds", seeds, "--out", tmp_path / "links.csv")
    assert ran.code == 22
    assert "'links.csv.checkpoint'" in ran.err
    assert Path(files.one).read_bytes() == before


def test_a_set_without_spread(cli, files, seeds, tmp_path: Path):
    flat = VectorSet([f"d{i}" for i in range(240)], np.ones((240, 8)), Space(model="one", dim=8))
    flat.save(tmp_path / "flat.npz")
    ran = cli(
        *("link", tmp_path / "flat.npz", files.two, "--seeds", seeds),
        *("--method", "self_training", "--out", tmp_path / "links.csv", "--json"),
    )
    assert ran.error["kind"] == "DegenerateVectorsError"
