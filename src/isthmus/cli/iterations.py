"""A live line for work that is done in iterations, nobody knows how many."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from isthmus._progress import SHOW_AFTER_SECONDS

if TYPE_CHECKING:
    from rich.progress import Progress

    from isthmus.link import Iteration

__all__ = ["track_iterations"]


def track_iterations(
    items: Iterable[Iteration], description: str, total: int, *, since: float | None = None
) -> Iterator[Iteration]:
    """Yield the iterations; show each on one line on stderr, once two seconds have passed.

    Nothing is shown where stderr is not a terminal.

    Parameters
    ----------
    items : iterable of Iteration
    description : str
    total : int
        Not known, and not used.
    since : float, optional
        When the two seconds began, by `time.monotonic`; now by default.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    del total
    start = time.monotonic() if since is None else since
    console = Console(stderr=True)
    line: Progress | None = None
    try:
        for item in items:
            late = time.monotonic() - start > SHOW_AFTER_SECONDS
            if line is None and late and console.is_terminal:
                line = Progress(
                    SpinnerColumn(),
                    TextColumn("{task.description}", markup=False),
                    TimeElapsedColumn(),
                    console=console,
                    transient=True,
                )
                line.start()
                task = line.add_task(description, total=None)
                line.tasks[0].start_time = start  # not only since there is a line
            if line is not None:
                line.update(task, description=f"{description}: {_say(item)}")
            yield item
    finally:
        if line is not None:
            line.stop()


def _say(item: Iteration) -> str:
    return (
        f"iteration {item.number} ({item.phase}), {item.links:,} links of "
        f"{item.candidates:,} candidates"
    )
