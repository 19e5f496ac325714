"""The command line as a process: exit codes, streams, interruption, closed pipes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from isthmus import errors

SLOW = """
import sys, time
import isthmus.workflows
def wait(*_, **__):
    sys.stderr.write("waiting\\n"); sys.stderr.flush()
    time.sleep(60)
isthmus.workflows.inspect = wait
from isthmus.cli import main
main()
"""

BROKEN = """
import isthmus.workflows
def fail(*_, **__):
    raise RuntimeError("no\\nidea")
isthmus.workflows.inspect = fail
from isthmus.cli import main
main()
"""


def test_version_and_help_answer_on_stdout(process):
    version = process("--version")
    assert (version.code, version.out, version.err) == (0, "isthmus 0.1.0\n", "")
    for arguments in ((), ("--help",), ("-h",)):
        shown = process(*arguments)
        assert shown.code == 0
        assert "Start with 'isthmus\n  demo'" in shown.out or "isthmus demo" in shown.out
        assert shown.err == ""


@pytest.mark.parametrize(
    ("arguments", "said", "do"),
    [
        (("nope",), "No such command 'nope'", "run 'isthmus --help'"),
        (("fit",), "Missing argument 'A'", "run 'isthmus fit --help'"),
        (("info", "x", "--bad"), "No such option: --bad", "run 'isthmus info --help'"),
        (("store", "add"), "Missing argument 'URL'", "run 'isthmus store add --help'"),
        (("info", "x", "--seed", "-1"), "Invalid value for '--seed'", "isthmus info --help"),
    ],
)
def test_a_command_line_that_cannot_be_read_is_two_lines_and_exit_code_2(cli, arguments, said, do):
    ran = cli(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 2
    assert ran.err.startswith(f"isthmus: {said}")
    assert do in ran.err


def test_usage_errors_have_the_envelope_too(cli):
    ran = cli("fit", "--json")
    assert ran.code == ran.error["exit_code"] == 2
    assert ran.error["kind"] == "UsageError"
    assert ran.error["got"] == "Missing argument 'A'"
    assert ran.err == ""


def test_an_error_is_two_lines_on_stderr_and_its_class_is_the_exit_code(process):
    ran = process("inspect", "nothing.npz")
    assert (ran.code, ran.out) == (errors.MissingFileError.exit_code, "")
    assert ran.err == (
        "isthmus: expected a file at 'nothing.npz'; got nothing there\n  do: check the path\n"
    )


def test_an_error_is_one_envelope_on_stdout_with_json(process):
    ran = process("inspect", "nothing.npz", "--json")
    assert ran.err == ""
    assert ran.error == {
        "kind": "MissingFileError",
        "expected": "a file at 'nothing.npz'",
        "got": "nothing there",
        "do": "check the path",
        "exit_code": 41,
    }


def test_an_unexpected_error_is_one_line_and_exit_code_1(process):
    ran = process("inspect", "a.npz", program=BROKEN)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "isthmus: unexpected RuntimeError: no idea (set ISTHMUS_TRACEBACK=1 to see where, and "
        "report it)\n"
    )
    told = process("inspect", "a.npz", "--json", program=BROKEN)
    assert told.error["kind"] == "RuntimeError"
    assert told.error["exit_code"] == told.code == 1


def test_the_traceback_is_there_for_those_who_ask(process):
    ran = process("inspect", "a.npz", program=BROKEN, ISTHMUS_TRACEBACK="1")
    assert ran.code == 1
    assert ran.err.startswith("Traceback (most recent call last):")
    assert "in fail" in ran.err
    assert "Traceback" not in process("inspect", "a", program=BROKEN, ISTHMUS_TRACEBACK="0").err


@pytest.mark.parametrize("as_json", [False, True])
def test_ctrl_c_exits_130_without_a_traceback(tmp_path: Path, as_json):
    asked = ["inspect", "a.npz", *(["--json"] if as_json else [])]
    with subprocess.Popen(
        [sys.executable, "-c", SLOW, *asked],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    ) as running:
        assert running.stderr is not None
        assert running.stderr.readline() == "waiting\n"
        time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Traceback" not in err
    if as_json:
        assert '"kind": "Interrupted"' in out
        assert err == ""
    else:
        assert (out, err) == ("", "isthmus: interrupted\n")


def test_what_was_noted_in_an_interrupt_is_said(monkeypatch, cli):
    def stopped(*_, **__):
        stop = KeyboardInterrupt()
        stop.add_note("half of it is done")
        raise stop

    monkeypatch.setattr("isthmus.workflows.inspect", stopped)
    ran = cli("inspect", "a.npz")
    assert (ran.code, ran.err) == (130, "isthmus: interrupted (half of it is done)\n")


@pytest.mark.parametrize("extra", [(), ("--json",)])
def test_a_closed_pipe_is_no_error(files, extra):
    with subprocess.Popen(
        [sys.executable, "-m", "isthmus", "inspect", str(files.one), *extra],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout is not None
        running.stdout.close()
        assert running.stderr is not None
        said = running.stderr.read()
    assert (running.returncode, said) == (0, b"")


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f"{sys.executable} -m isthmus {line}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=120,
    )


@pytest.mark.parametrize(
    ("line", "code", "out", "err"),
    [
        ("info {bridge} >&-", 0, "", ""),
        ("info {bridge} --json >&-", 0, "", ""),
        ("info {bridge} >&- 2>&-", 0, "", ""),
        ("info nope 2>&-", 41, "", ""),
        ("info nope 2>/dev/full", 41, "", ""),
        ("info nope --json >&-", 41, "", ""),
        ("info {bridge} >/dev/full", 44, "", "stdout; got No space left on device"),
        ("info {bridge} --json >/dev/full", 44, "", "stdout; got No space left on device"),
        ("--help >/dev/full", 44, "", "stdout; got No space left on device"),
        ("info nope --json >/dev/full", 41, "", "got no such file"),
    ],
)
def test_streams_that_take_nothing(files, line, code, out, err):
    ran = shell(line.format(bridge=files.bridge), files.folder)
    assert (ran.returncode, ran.stdout) == (code, out)
    assert "Traceback" not in ran.stderr
    assert err in ran.stderr
    assert bool(ran.stderr) == bool(err)


WRITING = """
import sys, time
from pathlib import Path
import isthmus.workflows
from isthmus._files import atomic_path
def wait(*_, **__):
    with atomic_path(Path("out")) as temporary:
        temporary.write_text("half")
        sys.stderr.write("waiting\\n"); sys.stderr.flush()
        time.sleep(60)
isthmus.workflows.inspect = wait
from isthmus.cli import main
main()
"""


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_that_ends_it_leaves_no_temporary_file(tmp_path: Path, name, code):
    with subprocess.Popen(
        [sys.executable, "-c", WRITING, "inspect", "a.npz"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    ) as running:
        assert running.stderr is not None
        assert running.stderr.readline() == "waiting\n"
        assert len(list(tmp_path.iterdir())) == 1
        running.send_signal(getattr(signal, name))
        out, err = running.communicate(timeout=60)
    assert (running.returncode, out) == (code, "")
    assert err == f"isthmus: ended by the signal {name}\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("inspect", "LONG.npz"), "MissingFileError"),
        (("info", "LONG"), "MissingFileError"),
        (("fit", "LONG.npz", "LONG.npz", "--out", "b"), "MissingFileError"),
        (("fit", "LONG.npz", "LONG.npz", "--out", "LONG"), "WriteFailedError"),
        (("evaluate", "LONG", "LONG.npz", "LONG.npz"), "MissingFileError"),
        (("apply", "LONG", "LONG.npz", "--out", "o.npz"), "MissingFileError"),
        (("search", "LONG.toml", "--query-vectors", "LONG.npz"), "MissingFileError"),
        (("store", "info", "sqlite:///LONG.db?collection=c"), "MissingFileError"),
    ],
)
def test_a_name_longer_than_a_file_can_have(cli, tmp_path: Path, monkeypatch, arguments, kind):
    monkeypatch.chdir(tmp_path)
    ran = cli(*(one.replace("LONG", "x" * 300) for one in arguments), "--json")
    assert (ran.error["kind"], ran.code) == (kind, getattr(errors, kind).exit_code)


def test_what_a_file_holds_cannot_speak_to_the_terminal(cli, tmp_path: Path):
    ran = cli("inspect", tmp_path / "\x1b[31mred.npz")
    assert ran.code == 41
    assert "\x1b" not in ran.err
    assert "?[31mred.npz" in ran.err or "x1b[31mred.npz" in ran.err


def test_every_error_class_has_an_exit_code_of_its_own():
    codes = {name: getattr(errors, name).exit_code for name in errors.__all__}
    assert len(set(codes.values())) == len(codes)
    assert not set(codes.values()) & {0, 1, 2, 130}
    assert max(codes.values()) < 126
