"""What a command says: tables or one JSON envelope on stdout, notes and progress on stderr."""

from __future__ import annotations

import functools
import json
import math
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isthmus._progress import Counting, Track, counting, silent, track, uncounted
from isthmus.cli.streams import complain
from isthmus.cli.text import one_line, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["Output", "plain"]


class Output:
    """The two ways out of a command.

    Parameters
    ----------
    command : str
        Its name, for the envelope.
    as_json : bool
        One envelope on stdout and nothing else.
    quiet : bool
        No progress and no notes; tables that were asked for remain.
    """

    def __init__(self, command: str, *, as_json: bool, quiet: bool) -> None:
        self.command = command
        self.as_json = as_json
        self.quiet = quiet
        self._warnings: list[str] = []
        self._since = time.monotonic()

    @property
    def track(self) -> Track[Any]:
        """Progress on stderr for work over two seconds, unless nobody wants it."""
        if self.quiet or self.as_json:
            return silent
        return functools.partial(track, since=self._since)

    @property
    def counting(self) -> Counting:
        """Progress in rows, as `track` shows it in steps."""
        if self.quiet or self.as_json:
            return uncounted
        return functools.partial(counting, since=self._since)

    def warn(self, text: str) -> None:
        """Say what the user should know: on stderr, or in the envelope."""
        self._warnings.append(one_line(text))
        if not (self.quiet or self.as_json):
            complain(f"note: {one_line(text)}\n")

    def say(self, *lines: str) -> None:
        """Say what was done; nothing with ``--quiet`` or ``--json``."""
        if not (self.quiet or self.as_json):
            self.show(*lines)

    def show(self, *items: Table | str) -> None:
        """Print tables and lines to stdout; nothing with ``--json``."""
        if self.as_json:
            return
        screen = console()
        for item in items:
            screen.print(printable(item) if isinstance(item, str) else item, soft_wrap=True)

    def done(self, result: Mapping[str, Any]) -> None:
        """Write the success envelope, with ``--json``."""
        if self.as_json:
            envelope = {
                "ok": True,
                "command": self.command,
                "warnings": self._warnings,
                "result": plain(result),
            }
            sys.stdout.write(json.dumps(envelope, ensure_ascii=False, allow_nan=False) + "\n")
            sys.stdout.flush()


def console() -> Console:
    """Return a console on stdout: 80 columns when piped, text taken as it is, no markup."""
    from rich.console import Console

    class Quiet(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Quiet(markup=False, emoji=False, highlight=False)


def grid(columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "") -> Table:
    """Make a table: the first column to the left, all others to the right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    for place, name in enumerate(columns):
        table.add_column(
            name,
            justify="right" if place else "left",
            overflow="fold",
            no_wrap=bool(place),
        )
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


def facts(rows: Iterable[tuple[str, str]], *, title: str = "") -> Table:
    """Make a table of names and values, without a head."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE, title=title or None, title_justify="left", show_header=False, pad_edge=False
    )
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, Text(printable(value)))
    return table


def plain(value: Any) -> Any:
    """Return plain JSON values: numpy numbers and arrays, paths, null for what is no number."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
