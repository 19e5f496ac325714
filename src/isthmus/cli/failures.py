"""Failures: one or two lines on stderr, or one JSON envelope on stdout; never a traceback."""

from __future__ import annotations

import json
import os
import sys
import traceback
from dataclasses import asdict, dataclass

from isthmus.cli.text import one_line
from isthmus.errors import IsthmusError

__all__ = ["INTERRUPTED", "TRACEBACK", "UNEXPECTED", "USAGE", "Failure", "describe", "report"]

UNEXPECTED = 1
"""Exit code of a failure that is not one of Isthmus's own errors."""

USAGE = 2
"""Exit code of a command line that cannot be read."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it: 128 and the number of the signal."""

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
    notes = "; ".join(one_line(note) for note in getattr(error, "__notes__", ()))
    where = f" ({notes})" if notes else ""
    if isinstance(error, IsthmusError):
        return Failure(
            kind=type(error).__name__,
            expected=one_line(error.expected),
            got=one_line(error.got) + where,
            do=one_line(error.do),
            exit_code=error.exit_code,
        )
    if isinstance(error, KeyboardInterrupt):
        return Failure(
            "Interrupted", "to finish", "an interrupt (Ctrl-C)", "run it again", INTERRUPTED
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


def report(error: BaseException, *, as_json: bool, command: str = "") -> int:
    """Say a failure and return its exit code."""
    failure = describe(error, command=command)
    if os.environ.get(TRACEBACK, "") not in ("", "0"):
        traceback.print_exception(error)
    if as_json:
        envelope = {"ok": False, "error": asdict(failure)}
        sys.stdout.write(json.dumps(envelope, ensure_ascii=False) + "\n")
    elif failure.exit_code == INTERRUPTED:
        sys.stderr.write("isthmus: interrupted\n")
    elif failure.exit_code == UNEXPECTED:
        sys.stderr.write(f"isthmus: unexpected {failure.got} ({failure.do})\n")
    elif failure.exit_code == USAGE:
        sys.stderr.write(f"isthmus: {failure.got}\n  do: {failure.do}\n")
    else:
        sys.stderr.write(
            f"isthmus: expected {failure.expected}; got {failure.got}\n  do: {failure.do}\n"
        )
    return failure.exit_code
