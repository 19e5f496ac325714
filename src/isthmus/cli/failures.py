"""Failures: one or two lines on stderr, or one JSON envelope on stdout; never a traceback."""

from __future__ import annotations

import errno
import json
import os
import sys
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path

from isthmus.cli.streams import Terminated, complain, drop
from isthmus.cli.text import one_line
from isthmus.errors import FileError, IsthmusError, MissingFileError

__all__ = [
    "INTERRUPTED",
    "SIGNAL",
    "TRACEBACK",
    "UNEXPECTED",
    "USAGE",
    "Failure",
    "describe",
    "report",
]

UNEXPECTED = 1
"""Exit code of a failure that is not one of Isthmus's own errors."""

USAGE = 2
"""Exit code of a command line that cannot be read."""

INTERRUPTED = 130
"""Exit code after Ctrl-C: `SIGNAL` and the number of SIGINT."""

SIGNAL = 128
"""Exit code after a signal, as shells have it: this and the number of the signal."""

TRACEBACK = "ISTHMUS_TRACEBACK"
"""Environment variable: set to 1, the traceback is printed too."""


@dataclass(frozen=True)
class Failure:
    """What went wrong, as the error envelope says it."""

    kind: str
    expected: str
    got: str
    do: str
    exit_code: int


def describe(error: BaseException, *, command: str = "") -> Failure:
    """Put any exception into the words of the envelope.

    Parameters
    ----------
    error : BaseException
    command : str, default ""
        For the hint of a usage error.

    Examples
    --------
    >>> describe(RuntimeError("no disk")).got
    'RuntimeError: no disk'
    """
    if isinstance(error, OSError) and error.filename is not None:
        error = _of_file(error)
    where = _notes(error)
    if isinstance(error, IsthmusError):
        return Failure(
            kind=type(error).__name__,
            expected=one_line(error.expected),
            got=one_line(error.got) + where,
            do=one_line(error.do),
            exit_code=error.exit_code,
        )
    if isinstance(error, Terminated):
        return Failure(
            "Terminated",
            "to finish",
            f"the signal {error}{where}",
            "run it again",
            SIGNAL + error.number,
        )
    if isinstance(error, KeyboardInterrupt):
        return Failure(
            "Interrupted", "to finish", f"an interrupt (Ctrl-C){where}", "run it again", INTERRUPTED
        )
    if hasattr(error, "format_message"):  # a usage error of the library that reads the options
        asked = f"isthmus {command}".strip()
        return Failure(
            kind="UsageError",
            expected=f"a command line as '{asked} --help' describes it",
            got=one_line(error.format_message()).rstrip("."),
            do=f"run '{asked} --help'",
            exit_code=USAGE,
        )
    return Failure(
        kind=type(error).__name__,
        expected="to finish",
        got=one_line(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
        + where,
        do=f"set {TRACEBACK}=1 to see where, and report it",
        exit_code=UNEXPECTED,
    )


def _notes(error: BaseException) -> str:
    """Return what was noted on the way up, in brackets."""
    notes = "; ".join(one_line(note) for note in getattr(error, "__notes__", ()))
    return f" ({notes})" if notes else ""


def _of_file(error: OSError) -> OSError:
    """Put what the file system says of a path into our words; a path too long names no file."""
    if isinstance(error, IsthmusError):
        return error
    missing = error.errno in {errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
    return (MissingFileError if missing else FileError)(
        expected=f"to use {Path(os.fsdecode(error.filename)).name[:80]!r}",
        got=error.strerror or str(error),
        do="check the path" if missing else "check the permission",
    )


def report(error: BaseException, *, as_json: bool, command: str = "") -> int:
    """Say a failure and return its exit code, even where nothing can be said."""
    failure = describe(error, command=command)
    if os.environ.get(TRACEBACK, "") not in ("", "0"):
        complain("".join(traceback.format_exception(error)))
    said = f"isthmus: expected {failure.expected}; got {failure.got}\n  do: {failure.do}\n"
    if failure.exit_code == INTERRUPTED:
        said = f"isthmus: interrupted{_notes(error)}\n"
    elif failure.exit_code > SIGNAL:
        said = f"isthmus: ended by {failure.got}\n"
    elif failure.exit_code == UNEXPECTED:
        said = f"isthmus: unexpected {failure.got} ({failure.do})\n"
    elif failure.exit_code == USAGE:
        said = f"isthmus: {failure.got}\n  do: {failure.do}\n"
    _tell(said, json.dumps({"ok": False, "error": asdict(failure)}, ensure_ascii=False), as_json)
    return failure.exit_code


def _tell(said: str, envelope: str, as_json: bool) -> None:  # noqa: FBT001 - of one caller
    """Say it where it is looked for, or else on stderr."""
    try:
        if as_json:
            sys.stdout.write(envelope + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        drop(sys.stdout)
    except OSError:
        drop(sys.stdout)
        as_json = False
    if not as_json:
        complain(said)
