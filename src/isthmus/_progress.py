"""Progress with an estimate of the time left, shown only for work over two seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

__all__ = ["Track", "silent", "track"]

T = TypeVar("T")

Track = Callable[[Iterable[T], str, int], Iterator[T]]
"""What a workflow takes as ``track``: items, what is being done, how many steps in all."""

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


def track(items: Iterable[T], description: str, total: int) -> Iterator[T]:
    """Yield the items; once two seconds have passed, show a bar with rate and time left on stderr.

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

    start = time.monotonic()
    bar: Progress | None = None
    try:
        for done, item in enumerate(items):
            if bar is None and time.monotonic() - start > SHOW_AFTER_SECONDS:
                bar = Progress(
                    TextColumn("{task.description}"),
                    BarColumn(),
                    MofNCompleteColumn(),
                    TimeRemainingColumn(),
                    console=Console(stderr=True),
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
