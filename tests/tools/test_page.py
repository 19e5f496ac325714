"""The page of the tool is run, and the examples in its docstrings."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import pkgutil
import re
import shlex
from pathlib import Path

import cross_domain
from cross_domain.corpora import read_corpora

PAGE = (Path(__file__).parents[2] / "docs" / "cross_domain.md").read_text(encoding="utf-8")


def block(language):
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return found


def test_the_corpus_of_the_page_is_one(tmp_path, corpora):
    path = tmp_path / "page.jsonl"
    path.write_text(block("jsonl"), encoding="utf-8")
    assert read_corpora([path, corpora[0]])[0].ids == ["money-1", "money-2"]


def test_the_session_of_the_page_runs(stub, corpora, vectors, tool, monkeypatch):
    assert all(path.parent == corpora[0].parent for path in (*corpora, *vectors))
    monkeypatch.chdir(corpora[0].parent)
    steps = re.split(r"^\$ ", block("console").replace("\\\n", " "), flags=re.MULTILINE)[1:]
    assert len(steps) == 4
    for step in steps:
        command, _, output = step.partition("\n")
        program, folder, *arguments = shlex.split(command)
        assert (program, folder) == ("python", "tools/cross_domain")
        if arguments[0] == "agree":
            for path in map(Path, arguments[1:]):
                path.write_text(path.read_text(encoding="utf-8-sig").replace(",\n", ",1\n"))
        done = tool(*(stub.url if one == "http://localhost:8000/v1" else one for one in arguments))
        assert done.code == 0, done.err
        for line in output.splitlines():
            assert line == "..." or line in done.out.splitlines()


def test_the_example_of_the_page_prints_what_it_says():
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(block("python"), {})  # noqa: S102 - our own page
    assert printed.getvalue() == block("text")


def test_every_verb_and_file_is_on_the_page():
    for word in ("generate", "expand", "export", "agree"):
        assert f"**`{word}`**" in PAGE
    for name in ("queries.jsonl", "plan.json", "judgements.jsonl", "qrels.tsv"):
        assert name in PAGE


def test_the_examples_in_docstrings_are_true():
    names = [module.name for module in pkgutil.iter_modules(cross_domain.__path__)]
    modules = [importlib.import_module(f"cross_domain.{name}") for name in names]
    results = [doctest.testmod(module) for module in modules]
    assert sum(result.attempted for result in results) >= 2
    assert sum(result.failed for result in results) == 0
