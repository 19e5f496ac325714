"""Run one command line and return its exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from isthmus.cli.failures import INTERRUPTED, report
from isthmus.cli.output import drop_stdout

__all__ = ["run"]


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; every failure ends here.

    Parameters
    ----------
    arguments : sequence of str
        Without the name of the program.

    Returns
    -------
    int
        0, or the exit code of the error's class (docs/errors.md).
    """
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough
        drop_stdout()
        return 0
    except SystemExit as stop:  # what the library that reads the options makes of a closed pipe
        if not isinstance(stop.__context__, BrokenPipeError):
            raise
        drop_stdout()
        return 0
    return code


def _run(arguments: Sequence[str]) -> int:
    """Run a command; report what it raises, but for a closed pipe."""
    as_json, command = "--json" in arguments, _name(arguments)
    try:
        from isthmus.cli.app import command as entry

        code = entry().main(args=list(arguments), prog_name="isthmus", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - all of them end here
        return report(error, as_json=as_json, command=command)
    if code == INTERRUPTED:
        return report(KeyboardInterrupt(), as_json=as_json, command=command)
    return code if isinstance(code, int) else 0


def _name(arguments: Sequence[str]) -> str:
    """Return the words of the command at the start of a command line, for the hint."""
    from isthmus.cli.app import GROUPS, NAMES

    words = [word for word in arguments if not word.startswith("-")]
    if not words or words[0] not in NAMES:
        return ""
    if words[0] in GROUPS and len(words) > 1 and words[1] in GROUPS[words[0]]:
        return f"{words[0]} {words[1]}"
    return words[0]
