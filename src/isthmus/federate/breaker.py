"""A circuit breaker: a store that keeps failing is left alone for a while.

After so many failed searches in a row the store is not asked; when it has rested, one search is let
through as a trial, and its outcome decides.

Reference: Nygard, "Release It!", 2007, chapter 5 (circuit breaker).
"""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["FAILURES", "ORDINARY", "REST_SECONDS", "Breaker"]

FAILURES = 3
REST_SECONDS = 30.0
"""Round numbers, not measured: one lost search is chance, and a restart takes about so long."""

ORDINARY = 0
"""Ticket of every search that is no trial."""


class Breaker:
    """Counts the failed searches of one store; safe to use from several threads.

    Every search that was admitted has a ticket, and must end in one of `succeeded`, `failed` and
    `cancelled` with it: one that was admitted before the breaker opened, and ends late, does not
    speak for the trial.

    Parameters
    ----------
    now : callable
        Gives seconds that only grow.
    failures : int, default 3
        So many in a row open it.
    rest : float, default 30.0
        Seconds until the trial.

    Examples
    --------
    >>> seconds = [0.0]
    >>> breaker = Breaker(lambda: seconds[0], failures=1, rest=30.0)
    >>> breaker.admit(), breaker.failed(0), breaker.admit()
    (0, None, None)
    >>> seconds[0] = 30.0
    >>> breaker.admit(), breaker.admit()  # one trial at a time
    (1, None)
    """

    def __init__(
        self, now: Callable[[], float], *, failures: int = FAILURES, rest: float = REST_SECONDS
    ) -> None:
        self._now = now
        self._most = failures
        self._rest = rest
        self._lock = threading.Lock()
        self._failed = 0
        self._opened = 0.0
        self._trial = ORDINARY
        self._trials = 0

    @property
    def failures(self) -> int:
        """Count the failed searches in a row."""
        return self._failed

    def admit(self) -> int | None:
        """Return the ticket of a search; None where the store may not be asked."""
        if self._failed < self._most:  # without the lock: the usual case, and one read
            return ORDINARY
        with self._lock:
            if self._failed < self._most:
                return ORDINARY
            if self._trial or self._now() < self._opened + self._rest:
                return None
            self._trials += 1
            self._trial = self._trials
            return self._trial

    def remaining(self) -> float:
        """Return the seconds until the next trial, 0 where nothing has to be waited for."""
        if self._failed < self._most:
            return 0.0
        return max(0.0, self._opened + self._rest - self._now())

    def succeeded(self) -> None:
        """Note an answer, whenever it was asked for: the store is whole again."""
        with self._lock:
            self._failed, self._trial = 0, ORDINARY

    def failed(self, ticket: int) -> None:
        """Note a failed search; the rest begins with the one that opens it, or ends the trial."""
        with self._lock:
            self._failed += 1
            if self._ends_trial(ticket) or self._failed == self._most:
                self._opened = self._now()

    def cancelled(self, ticket: int) -> None:
        """Note a search that says nothing about the store."""
        with self._lock:
            self._ends_trial(ticket)

    def _ends_trial(self, ticket: int) -> bool:
        if ticket == ORDINARY or ticket != self._trial:
            return False
        self._trial = ORDINARY
        return True
