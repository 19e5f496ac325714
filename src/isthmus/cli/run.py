"""Run one command line and return its exit code."""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence

from isthmus.cli.failures import INTERRUPTED, report
from isthmus.cli.streams import Stopped, Terminated, drop, ended_by_signals, open_closed
from isthmus.errors import WriteFailedError

__all__ = ["run"]

TAKES_NOTHING = {errno.ENOSPC, errno.EBADF, errno.EIO, errno.EFBIG, errno.EDQUOT}


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
    open_closed()
    with ended_by_signals() as came:
        try:
            return _run(arguments, came)
        except BrokenPipeError:  # the reader has seen enough
            drop(sys.stdout)
            return 0
        except SystemExit as stop:  # what the library that reads the options makes of it
            if not isinstance(stop.__context__, BrokenPipeError):
                raise
            drop(sys.stdout)
            return 0


def _run(arguments: Sequence[str], came: Sequence[int]) -> int:
    """Run a command; report what it raises, but for a closed pipe."""
    as_json, command = "--json" in arguments, _name(arguments)
    try:
        from isthmus.cli.app import command as entry

        code = entry().main(args=list(arguments), prog_name="isthmus", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except (Exception, KeyboardInterrupt) as raised:  # noqa: BLE001 - all of them end here
        error = raised.stop if isinstance(raised, Stopped) else raised
        told = _of_stdout(error)
        return report(told, as_json=as_json and told is error, command=command)
    if code == INTERRUPTED:  # what that library makes of an interrupt
        stop = Terminated(came[0]) if came else KeyboardInterrupt()
        return report(stop, as_json=as_json, command=command)
    return code if isinstance(code, int) else 0


def _of_stdout(error: BaseException) -> BaseException:
    """Say so where it is stdout that takes nothing: all else that is written has a name."""
    if not isinstance(error, OSError) or error.filename or error.errno not in TAKES_NOTHING:
        return error
    drop(sys.stdout)
    return WriteFailedError(
        expected="to write the result to stdout",
        got=error.strerror or str(error),
        do="send it to a place that takes it",
    )


def _name(arguments: Sequence[str]) -> str:
    """Return the words of the command at the start of a command line, for the hint."""
    from isthmus.cli.app import GROUPS, NAMES

    words = [word for word in arguments if not word.startswith("-")]
    if not words or words[0] not in NAMES:
        return ""
    if words[0] in GROUPS and len(words) > 1 and words[1] in GROUPS[words[0]]:
        return f"{words[0]} {words[1]}"
    return words[0]
