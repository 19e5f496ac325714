"""Streams that cannot be written to, and signals that end a command: neither may lose a result."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

__all__ = ["Stopped", "Terminated", "complain", "drop", "ended_by_signals", "open_closed"]

ENDING = ("SIGTERM", "SIGHUP")


class Terminated(KeyboardInterrupt):
    """A signal that asks the command to end: it unwinds as Ctrl-C does."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(signal.Signals(number).name)


class Stopped(Exception):  # noqa: N818 - it carries an interrupt, and is none itself
    """An interrupt on its way through the library that reads the options, which would drop it."""

    def __init__(self, stop: KeyboardInterrupt) -> None:
        self.stop = stop
        super().__init__(str(stop))


@contextlib.contextmanager
def ended_by_signals() -> Iterator[list[int]]:
    """Let SIGTERM and SIGHUP unwind the command, so that temporary files go; give those that came.

    A signal that is ignored stays so (nohup), and so does one that a program around this handles.
    Those after the first are ignored: they would break the unwinding.
    """
    came: list[int] = []

    def end(number: int, frame: Any) -> None:
        del frame
        came.append(number)
        if len(came) == 1:
            raise Terminated(number)

    numbers = [getattr(signal, name) for name in ENDING if hasattr(signal, name)]
    in_main = threading.current_thread() is threading.main_thread()
    ours = [one for one in numbers if in_main and signal.getsignal(one) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, end)
    try:
        yield came
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def open_closed() -> None:
    """Put the null device where stdout or stderr was closed (``>&-``): Python has None there."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open while the process runs


def complain(text: str) -> None:
    """Write to stderr; where it cannot be written to, nobody is there to be told."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        drop(sys.stderr)


def drop(stream: TextIO) -> None:
    """Let what is still to be written go nowhere: nobody can read it."""
    with contextlib.suppress(OSError, ValueError):  # a stream without a file of its own
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
