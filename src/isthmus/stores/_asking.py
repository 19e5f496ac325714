"""Asking a database: again when it failed for a moment, in our words when it failed for good."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from isthmus.errors import IsthmusError, StoreUnreachableError

__all__ = ["PAUSES", "asked"]

PAUSES = (0.1, 0.4, 1.6)
"""Seconds before each of the three tries that follow the first."""

T = TypeVar("T")


def asked(
    action: Callable[[], T],
    *,
    transient: Callable[[Exception], bool],
    in_our_words: Callable[[Exception], IsthmusError],
    sleep: Callable[[float], None] | None = None,
) -> T:
    """Return what ``action`` gives; try three times more when it fails for a moment.

    Parameters
    ----------
    action : callable
        May run several times: what it does twice must be the same as once.
    transient : callable
        Whether an error of the database's client may be gone with the next try.
    in_our_words : callable
        Makes the error that the caller gets.
    sleep : callable, optional
        Instead of `time.sleep`; takes the seconds of a pause.

    Raises
    ------
    IsthmusError
        As ``in_our_words`` has it.

    Examples
    --------
    >>> answers = iter([ConnectionError("gone"), 7])
    >>> def action():
    ...     answer = next(answers)
    ...     if isinstance(answer, Exception):
    ...         raise answer
    ...     return answer
    >>> asked(action, transient=lambda error: True, in_our_words=unreachable, sleep=lambda s: None)
    7
    """
    for pause in (*PAUSES, None):
        try:
            return action()
        except IsthmusError:
            raise
        except Exception as error:
            if pause is None or not transient(error):
                raise in_our_words(error) from error
        (sleep or time.sleep)(pause)
    raise AssertionError  # pragma: no cover - the last try returns or raises


def unreachable(error: Exception, *, where: str = "the database") -> StoreUnreachableError:
    """Say that a database did not answer, without what it might have said of a secret."""
    tries = 1 + len(PAUSES)
    return StoreUnreachableError(
        expected=f"an answer of {where} in one of {tries} tries",
        got=type(error).__name__,
        do="check that it runs, its address and the network; then run the same command again",
    )
