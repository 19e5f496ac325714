"""Progress with an estimate of the time left, shown only for work over two seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

__all__ = [
    "Counting",
    "Track",
    "counting",
    "current_track",
    "silent",
    "track",
    "tracking",
    "uncounted",
]

T = TypeVar("T")

Track = Callable[[Iterable[T], str, int], Iterator[T]]
"""What a workflow takes as ``track``: items, what is being done, how many steps in all."""

Counting = Callable[[str, int, int], AbstractContextManager[Callable[[int], None]]]
"""What a workflow takes as ``counting``: what is being done, how many rows are done already and how
many there are in all; it gives what takes the number of rows of each step."""

SHOW_AFTER_SECONDS = 2.0


def silent(items: Iterable[T], description: str, total: int) -> Iterator[T]:
    """Yield the items and show nothing: the default of every library function.

    Examples
    --------
    >>> list(silent([1, 2], "fit", 2))
    [1, 2]
    """
    del description, total
    yield from items


_current: ContextVar[Track[Any]] = ContextVar("track", default=silent)


@contextmanager
def tracking(track: Track[Any]) -> Iterator[None]:
    """Let long work deep inside the block show its progress, as the training of a map in its fit.

    For what has a signature of its own, as ``fit`` has; everything else takes ``track``.

    Examples
    --------
    >>> with tracking(silent):
    ...     list(current_track()([1, 2], "training", 2))
    [1, 2]
    """
    token = _current.set(track)
    try:
        yield
    finally:
        _current.reset(token)


def current_track() -> Track[Any]:
    """Return what `tracking` set: `silent` outside of it."""
    return _current.get()


def track(
    items: Iterable[T], description: str, total: int, *, since: float | None = None
) -> Iterator[T]:
    """Yield the items; once two seconds have passed, show a bar with rate and time left on stderr.

    Nothing is shown where stderr is not a terminal: a bar in a log file is noise.

    Parameters
    ----------
    items : iterable
    description : str
    total : int
    since : float, optional
        When the two seconds began, by `time.monotonic`; now by default. Work in many short steps
        counts from its first one.

    Examples
    --------
    >>> list(track([1, 2], "fit", 2))
    [1, 2]
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    start = time.monotonic() if since is None else since
    console = Console(stderr=True)
    bar: Progress | None = None
    try:
        for done, item in enumerate(items):
            late = time.monotonic() - start > SHOW_AFTER_SECONDS
            if bar is None and late and console.is_terminal:
                bar = Progress(
                    TextColumn("{task.description}"),
                    BarColumn(),
                    MofNCompleteColumn(),
                    TimeRemainingColumn(),
                    console=console,
                    transient=True,
                )
                bar.start()
                task = bar.add_task(description, total=total, completed=done)
            yield item
            if bar is not None:
                bar.update(task, completed=done + 1)
    finally:
        if bar is not None:
            bar.stop()


@contextmanager
def uncounted(description: str, done: int, total: int) -> Iterator[Callable[[int], None]]:
    """Take the numbers of rows and show nothing: the default of every library function.

    Examples
    --------
    >>> with uncounted("copying", 0, 3) as advance:
    ...     advance(3)
    """
    del description, done, total
    yield lambda _: None


@contextmanager
def counting(
    description: str, done: int, total: int, *, since: float | None = None
) -> Iterator[Callable[[int], None]]:
    """Count rows; once two seconds have passed, show N/M, rows a second and time left on stderr.

    The rate is that of the rows that were counted here: those that were done already make the bar
    start where an earlier run stopped. Nothing is shown where stderr is not a terminal.

    Parameters
    ----------
    description : str
    done, total : int
    since : float, optional
        When the two seconds began, by `time.monotonic`; now by default.

    Examples
    --------
    >>> with counting("copying", 0, 3) as advance:
    ...     advance(3)
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    begun = time.monotonic()
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]:,.0f} rows/s"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    task = bar.add_task(description, total=total, completed=done, rate=0.0)
    counted, shown = 0, False

    def advance(rows: int) -> None:
        nonlocal counted, shown
        counted += rows
        now = time.monotonic()
        late = now - (begun if since is None else since) > SHOW_AFTER_SECONDS
        if late and not shown and console.is_terminal:
            bar.start()
            shown = True
        rate = counted / max(now - begun, 1e-9)
        bar.update(task, completed=done + counted, rate=rate)

    try:
        yield advance
    finally:
        if shown:
            bar.stop()
