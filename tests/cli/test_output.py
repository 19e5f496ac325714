"""What a command says, and where."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from isthmus._progress import silent, uncounted
from isthmus.cli.output import Output, facts, grid, plain
from isthmus.cli.text import one_line, printable


def test_plain_values_know_numpy_paths_and_what_is_no_number():
    given = {
        "n": np.int64(3),
        "x": np.float32(0.5),
        "rows": np.array([1.0, np.nan]),
        "path": Path("a/b"),
        "none": None,
        "pair": (1, float("inf")),
    }
    assert plain(given) == {
        "n": 3,
        "x": 0.5,
        "rows": [1.0, None],
        "path": "a/b",
        "none": None,
        "pair": [1, None],
    }


def test_json_says_one_line_and_holds_the_warnings(capsys):
    output = Output("fit", as_json=True, quiet=False)
    output.warn("mind\nthe gap")
    output.show("a table")
    output.say("done")
    output.done({"x": float("nan")})
    said = capsys.readouterr()
    assert said.err == ""
    assert json.loads(said.out) == {
        "ok": True,
        "command": "fit",
        "warnings": ["mind the gap"],
        "result": {"x": None},
    }
    assert output.track is silent
    assert output.counting is uncounted


def test_quiet_leaves_the_tables_and_nothing_else(capsys):
    output = Output("fit", as_json=False, quiet=True)
    output.warn("mind the gap")
    output.say("done")
    output.show("a table")
    output.done({})
    said = capsys.readouterr()
    assert (said.out, said.err) == ("a table\n", "")
    assert output.track is silent


def test_notes_go_to_stderr_and_tables_to_stdout(capsys):
    output = Output("fit", as_json=False, quiet=False)
    output.warn("mind the gap")
    output.say("one", "two")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("one\ntwo\n", "note: mind the gap\n")


def test_tables_take_text_as_it_is(capsys):
    output = Output("x", as_json=False, quiet=False)
    output.show(grid(["[b]name[/b]", "n"], [["[red]id[/red] :smile: \x1b[2J", "1"]]))
    output.show(facts([("key", "[i]value[/i]")]))
    said = capsys.readouterr().out
    assert "[b]name[/b]" in said
    assert "[red]id[/red] :smile: ?[2J" in said
    assert "[i]value[/i]" in said
    assert "\x1b" not in said


@pytest.mark.parametrize(
    ("text", "expected"), [("a\x07b", "a?b"), ("\x9b2J", "?2J"), ("tab\there", "tab?here")]
)
def test_printable(text, expected):
    assert printable(text) == expected


def test_one_line_joins_lines():
    assert one_line(" a\r\n  b\tc ") == "a b c"


SLOW = """
import sys, time
from isthmus.cli.run import run
from isthmus.workflows import _look

whole = _look._blocks

def slowly(vectors):
    for block in whole(vectors):
        time.sleep(0.4)
        yield block

_look.BLOCK_ROWS, _look._blocks = 30, slowly
raise SystemExit(run(sys.argv[1:]))
"""
"""``isthmus inspect`` as it is, but that 240 rows are eight blocks and take over three seconds."""

FAST = """
from isthmus.cli.output import Output
for _ in Output("x", as_json=False, quiet=False).track(range(3), "counting", 3):
    pass
"""


COUNTS = """
import time
from isthmus.cli.output import Output
with Output("x", as_json=False, quiet=False).counting("copying", 500, 1000) as advance:
    for _ in range(6):
        time.sleep(0.5)
        advance(50)
"""


def on_terminal(program: str, *arguments: object) -> tuple[str, str]:
    """Run a program; return what it wrote to stdout, a pipe, and to stderr, a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", program, *(str(one) for one in arguments)],
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    ) as running:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal, on Linux
            while part := os.read(ours, 65536):
                shown += part
        os.close(ours)
        assert running.stdout is not None
        out = running.stdout.read()
    assert running.returncode == 0
    return out, shown.decode()


def test_work_over_two_seconds_shows_a_bar_with_the_time_left(files):
    out, shown = on_terminal(SLOW, "inspect", files.one)
    assert "240 x 8" in out
    assert "looking at rows" not in out
    lines = [line for line in re.split("[\r\n]+", shown) if "looking at rows" in line]
    assert lines, "no bar"
    done = [int(count) for line in lines for count in re.findall(r"(\d)/8", line)]
    assert 0 < done[0] < done[-1] <= 8  # not from the start
    assert any(re.search("[1-7]/8.*0:00:0[0-9]", line) for line in lines), "no time left"


@pytest.mark.parametrize("option", ["--quiet", "--json"])
def test_no_bar_where_nobody_wants_one(files, option):
    out, shown = on_terminal(SLOW, "inspect", files.one, option)
    assert out.startswith('{"ok": true') is (option == "--json")
    assert shown == ""


def test_no_bar_for_what_is_done_in_a_moment():
    assert on_terminal(FAST) == ("", "")


def test_no_bar_in_a_log_file(files):
    done = subprocess.run(
        [sys.executable, "-c", SLOW, "inspect", str(files.one)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "240 x 8" in done.stdout
    assert done.stderr == ""


def test_rows_are_counted_from_the_checkpoint_with_rate_and_time_left():
    _, shown = on_terminal(COUNTS)
    lines = [line for line in re.split("[\r\n]+", shown) if "copying" in line]
    assert lines, "no bar"
    assert "800/1000" in lines[-1]  # 500 before, and six times 50
    rate = re.search(r"(\d+) rows/s", lines[-1])
    assert rate is not None
    assert 0 < int(rate.group(1)) <= 100  # of the rows that were counted here
    assert re.search(r"\d:\d\d:\d\d", lines[-1])
