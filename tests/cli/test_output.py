"""What a command says, and where."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from isthmus._progress import silent
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
import time
from isthmus.cli.output import Output
output = Output("x", as_json=False, quiet={quiet})
output._since -= 3
for _ in output.track(range(3), "counting", 3):
    time.sleep(0.3)
print("end")
"""


@pytest.mark.parametrize("quiet", [False, True])
def test_progress_is_on_a_terminal_s_stderr_and_gone_with_quiet(quiet):
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", SLOW.format(quiet=quiet)],
        stdout=subprocess.PIPE,
        stderr=theirs,
        check=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the end of a terminal, on Linux
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert done.stdout == b"end\n"
    assert (b"counting" in shown) is not quiet
    assert (b"/3" in shown) is not quiet


def test_no_bar_in_a_log_file():
    done = subprocess.run(
        [sys.executable, "-c", SLOW.format(quiet=False)], capture_output=True, check=True
    )
    assert (done.stdout, done.stderr) == (b"end\n", b"")
