"""The documentation is run, and its generated pages are fresh.

After a change of numbers: ``UPDATE_README=1 python -m pytest tests/test_docs.py`` writes what this
machine prints into the README.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from isthmus.cli.app import GROUP_KINDS, GROUPS, NAMES
from isthmus.cli.reference import cli_page, errors_page

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CHANGED = "run: python -m isthmus.cli.reference docs"
NUMBER = re.compile(r"-?\d+\.\d+")
LOOSE = 0.01
"""How far a documented number may be from that of this machine: other kernels round otherwise."""
UPDATE = "UPDATE_README" in os.environ


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


# --- documented output -----------------------------------------------------------------------


def words(line: str) -> str:
    return " ".join(NUMBER.sub("#", line).split())


def same_line(documented: str, actual: str) -> bool:
    """Compare words exactly and numbers of three digits loosely; times (fewer digits) are free."""
    if words(documented) != words(actual):
        return False
    pairs = zip(NUMBER.findall(documented), NUMBER.findall(actual), strict=True)
    return all(
        len(one.partition(".")[2]) < 3 or abs(float(one) - float(other)) <= LOOSE
        for one, other in pairs
    )


def check_output(documented: str, actual: str) -> None:
    """Find every documented line, in order, in what was printed."""
    rest = iter(actual.splitlines())
    for line in documented.splitlines():
        if line.strip() not in ("", "..."):
            found = any(same_line(line, other) for other in rest)
            assert found, f"{line!r} is not in\n{actual}"


def check_or_update(documented: str, actual: str) -> None:
    """Check documented output, or put what was printed in its place."""
    if not UPDATE:
        check_output(documented, actual)
        return
    rest = iter(actual.splitlines())
    new = []
    for line in documented.splitlines():
        kept = line.strip() in ("", "...")
        new.append(line if kept else next(o for o in rest if words(o) == words(line)).rstrip())
    page = ROOT / "README.md"
    text = page.read_text(encoding="utf-8")
    assert documented in text
    page.write_text(text.replace(documented, "\n".join(new) + "\n"), encoding="utf-8")


def test_the_comparison_can_fail():
    assert same_line(" a 0.500 [0.400, 0.600]  0.15", " a   0.505 [0.400, 0.601] 9.99 ")
    assert not same_line("a 0.500", "a 0.511")
    assert not same_line("a 0.500", "b 0.500")
    assert not same_line("1,000 documents", "1,001 documents")
    with pytest.raises(AssertionError):
        check_output("one\ntwo", "two\none")


# --- the README ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    command: str
    output: str


def steps(session: str) -> Iterator[Step]:
    """Split a console session into commands and what they print."""
    for part in re.split(r"^\$ ", session.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield Step(command, output)


def test_the_python_example_prints_what_it_says(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (example,) = blocks("python")
    assert len([line for line in example.splitlines() if line.strip()]) <= 12
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, "README.md", "exec"), {})  # noqa: S102 - our own text
    check_or_update(blocks("text")[1], printed.getvalue())
    assert (tmp_path / "minilm-mpnet" / "bridge.json").is_file()


def test_the_session_prints_what_it_says(tmp_path: Path):
    (session,) = blocks("console")
    told = list(steps(session))
    assert told[0].command == "isthmus demo --dir demo"
    for step in told:
        program, *arguments = shlex.split(step.command)
        assert program == "isthmus"
        into = None
        if ">" in arguments:
            *arguments, _, into = arguments
        done = subprocess.run(
            [sys.executable, "-m", "isthmus", *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        if into is not None:
            (tmp_path / into).write_text(done.stdout)
        documented = blocks("text")[0] if step is told[0] else step.output
        if documented:
            check_or_update(documented, done.stdout)
    assert (tmp_path / "demo" / "run.trec").read_text().count("\n") == 3000
    assert (tmp_path / "report.json").read_text().startswith('{"ok": true')


def test_make_targets_that_the_readme_names_are_there():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"\bmake (\w+)", README):
        if target != "nothing":
            assert f"\n{target}:" in makefile


# --- pages -----------------------------------------------------------------------------------


def test_the_pages_are_fresh():
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == cli_page(), CHANGED
    assert (ROOT / "docs" / "errors.md").read_text(encoding="utf-8") == errors_page(), CHANGED


def test_every_command_has_a_section_with_help_for_every_option():
    page = cli_page()
    names = [
        *(name for name in NAMES if name not in GROUPS),
        *(
            group if name == getattr(GROUP_KINDS.get(group), "default", "") else f"{group} {name}"
            for group, members in GROUPS.items()
            for name in members
        ),
    ]
    assert re.findall(r"^## isthmus (.+)$", page, flags=re.MULTILINE) == names
    sections = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    for section in sections:
        for option in ("--json", "--quiet", "--seed N"):
            assert f"| `{option}` |" in section
        for row in re.findall(r"^\| `.*$", section, flags=re.MULTILINE):
            assert len(row.rstrip(" |").rsplit("|", 1)[-1].strip()) > 5, row


def test_links_between_pages_lead_somewhere():
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if not re.match(r"https?://|#", link):
                assert (page.parent / link.partition("#")[0]).exists(), f"{page.name}: {link}"
