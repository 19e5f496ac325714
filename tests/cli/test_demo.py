"""The demo as a command; what it measures is tested with its workflow and with the README."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest

import isthmus.workflows
from isthmus.bridge import Verdict
from isthmus.cli.app import NAMES
from isthmus.evaluate import Value
from isthmus.workflows import DemoResult
from isthmus.workflows._demo_systems import System


@pytest.fixture
def planted(monkeypatch, tmp_path: Path) -> list[dict[str, object]]:
    """A demo that is over at once; what it was asked is kept."""
    asked: list[dict[str, object]] = []
    value = Value("nDCG@10", 0.5, 0.4, 0.6, np.zeros(3, np.float32))
    recall = Value("Recall@10", 0.25, 0.125, float("nan"), np.zeros(3, np.float32))

    def show(folder: Path | None, **more: object) -> DemoResult:
        asked.append({"folder": folder, **more})
        return DemoResult(
            folder=tmp_path / "a b" if folder is None else folder,
            systems=(System("Isthmus", "one", value, recall, 0.00125),),
            documents=1000,
            pairs=500,
            queries=300,
            to_spoke=Verdict(status="bridge", reason="enough"),
            to_hub=Verdict(status="reindex", reason="too little"),
            methods=("ridge", "procrustes"),
        )

    monkeypatch.setattr(isthmus.workflows, "demo", show)
    return asked


@pytest.mark.usefixtures("planted")
def test_the_table_and_what_to_try_next(cli, tmp_path: Path):
    ran = cli("demo")
    assert (ran.code, ran.err) == (0, "")
    assert "SciFact sample: 300 queries, 1,000 documents in two stores, 500 pairs" in ran.out
    row = next(line for line in ran.out.splitlines() if line.strip().startswith("Isthmus"))
    assert row.split()[1:4] == ["0.500", "[0.400,", "0.600]"]
    assert row.split()[-1] == "1.25"
    assert "Bridge one-two: ridge, bridge." in ran.out
    assert "Bridge two-one: procrustes, reindex." in ran.out
    lines = ran.out.splitlines()
    commands = [shlex.split(line) for line in lines[lines.index("") + 1 :] if line.strip()]
    commands = [line for line in commands if str(tmp_path / "a b") in " ".join(line)]
    asked = [next(word for word in line if word in NAMES) for line in commands]
    assert asked == ["info", "search", "inspect", "fit", "evaluate", "apply"]


def test_json_and_quiet(cli, planted, tmp_path: Path):
    told = cli("demo", "--dir", tmp_path / "d", "--seed", 3, "--json").result
    assert planted[0]["folder"] == tmp_path / "d"
    assert planted[0]["seed"] == 3
    assert told["systems"][0]["nDCG@10"] == {"mean": 0.5, "low": 0.4, "high": 0.6}
    assert told["systems"][0]["Recall@10"]["high"] is None
    assert told["bridges"]["two-one"]["status"] == "reindex"
    ran = cli("demo", "--quiet")
    assert "Isthmus" in ran.out
    assert "Try next" not in ran.out


def test_a_folder_that_holds_something(cli, tmp_path: Path):
    (tmp_path / "photo.jpg").write_text("me")
    ran = cli("demo", "--dir", tmp_path)
    assert ran.code == 22
    assert "expected a new or an empty folder for the demo" in ran.err


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize(
    ("found", "started", "said"),
    [
        ("/bin/isthmus", "anything", "isthmus info"),
        (None, ".venv/bin/isthmus", ".venv/bin/isthmus info"),
        (None, "/x/isthmus/__main__.py", "-m isthmus info"),
    ],
)
def test_it_names_the_program_as_the_user_can_type_it(cli, monkeypatch, found, started, said):
    monkeypatch.setattr("shutil.which", lambda _: found)
    monkeypatch.setattr("sys.argv", [started])
    assert said in cli("demo").out
