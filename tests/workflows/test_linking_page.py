"""docs/linking.md: its examples run, and it names every method, verdict and threshold."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import get_args

import pytest

from isthmus import Pairs, VectorSet
from isthmus.cli.run import run
from isthmus.link import registry
from isthmus.link.links import Status

PAGE = (Path(__file__).parents[2] / "docs" / "linking.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_the_examples_run_one_after_the_other(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, "docs/linking.md", "exec"), names)  # noqa: S102 - our own page
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("FoundLinks(")
    assert printed[-1] == "False 200"
    ours, theirs, seeds = names["ours"], names["theirs"], names["seeds"]
    assert isinstance(ours, VectorSet)
    assert isinstance(theirs, VectorSet)
    assert isinstance(seeds, Pairs)
    assert len(Pairs.from_file("links.csv", ours, theirs)) == len(names["pairs"])
    assert 0.4 < names["scores"].precision.mean <= 1.0
    assert names["scores"].recall.mean > 0.6
    assert names["correct"].mean() > 0.4


def test_the_commands_run(tmp_path: Path, monkeypatch, capsys):
    from isthmus import sample

    monkeypatch.chdir(tmp_path)
    documents = sample.load().documents
    ours = documents["minilm-l6"].select(range(400))
    theirs = documents["mpnet"].select(range(200, 600))
    seeds = Pairs.from_ids(ours, theirs).sample(20)
    away = {"known-a": "minilm-l6", "known-b": "mpnet"}
    for name, vectors in (
        ("ours", ours),
        ("theirs", theirs),
        *((name, documents[model].select(range(600, 900))) for name, model in away.items()),
    ):
        vectors.save(f"{name}.npz")
    lines = zip(seeds.source_ids, seeds.target_ids, strict=True)
    Path("seeds.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in lines))
    commands = [line[2:] for block in blocks("console") for line in block.splitlines()]
    assert len(commands) == 3
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "isthmus"
        assert run(arguments) == 0
        capsys.readouterr()
    assert Path("bridge/bridge.json").is_file()


def rows() -> set[str]:
    return set(re.findall(r"^\| `([^`]+)` \|", PAGE, flags=re.MULTILINE))


@pytest.mark.parametrize("name", registry.names())
def test_every_method_has_a_row(name):
    assert name in rows()


def test_every_row_is_of_something_there_is():
    options = {one for one in rows() if one.startswith("--")}
    assert rows() - options == set(registry.names()) | set(get_args(Status))
    assert {one.split()[0] for one in options} == {"--threshold", "--precision", "--coverage"}
