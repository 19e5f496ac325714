"""How long a federation waits for one store, how often it asks again, and when it stops asking.

A call that does not come back in time cannot be ended: Python has no way to stop a thread. It is
abandoned, and its store is not asked again before it ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from isthmus._validate import check_positive
from isthmus.errors import (
    InputError,
    IsthmusError,
    MissingExtraError,
    SpaceMismatchError,
    StoreBusyError,
    StoreError,
    UnsupportedOperationError,
)
from isthmus.federate.breaker import Breaker
from isthmus.federate.source import UnusableAnswerError
from isthmus.rankings import Outage, OutageKind

__all__ = ["RETRIES", "TIMEOUT_SECONDS", "Clock", "Patience", "Problem", "may_pass"]

TIMEOUT_SECONDS = 30.0
RETRIES = 2

QUERIES_PER_TIMEOUT = 100
"""A larger block of queries gets as many times more seconds."""

FIRST_PAUSE = 0.1
"""Seconds before the second attempt at most; twice as many before every further one."""

REASON_LENGTH = 300

T = TypeVar("T")


@dataclass(frozen=True)
class Clock:
    """Where a federation has the time from; another one for tests.

    Parameters
    ----------
    now : callable, default `time.monotonic`
    sleep : callable, default `time.sleep`
    """

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class Problem:
    """An outage, and the error behind it where there is one."""

    outage: Outage
    error: Exception | None = None


class Patience:
    """What is known of one store between searches; safe to use from several threads.

    Parameters
    ----------
    store : str
        Name of the source.
    timeout : float or None
        Seconds for one search of up to 100 queries, attempts and pauses together; None waits.
    retries : int
        Further attempts after a passing error.
    clock : Clock
    seed : sequence of int
        Of the pauses, which are drawn so that many clients do not come back at one moment.

    Raises
    ------
    ParameterError
        Seconds that are not over 0.
    """

    def __init__(
        self, store: str, *, timeout: float | None, retries: int, clock: Clock, seed: list[int]
    ) -> None:
        if timeout is not None:
            check_positive(timeout, name="timeout in seconds")
        self.store = store
        self.timeout = timeout
        self.clock = clock
        self.breaker = Breaker(clock.now)
        self._retries = retries
        self._random = np.random.default_rng(seed)
        self._lock = threading.Lock()
        self._abandoned = 0
        self._why_abandoned = ""
        self._last = ""
        self._at_end: Callable[[], None] | None = None

    def deadline(self, queries: int) -> float:
        """Return the time at which a search of so many queries that begins now has failed."""
        if self.timeout is None:
            return float("inf")
        return self.clock.now() + self.timeout * max(1.0, queries / QUERIES_PER_TIMEOUT)

    def admit(self, queries: int) -> int | Problem:
        """Return the ticket of a search, to be settled; or why the store is not asked now."""
        if self._abandoned:
            return self._problem("busy", f"{self._why_abandoned} is still running", queries)
        ticket = self.breaker.admit()
        if ticket is not None:
            return ticket
        reason = (
            f"{self.breaker.failures} searches in a row failed, asked again in "
            f"{self.breaker.remaining():.0f} s; the last: {self._last}"
        )
        return self._problem("resting", reason[:REASON_LENGTH], queries)

    def attempt(self, action: Callable[[], T], *, deadline: float, queries: int) -> T | Problem:
        """Return what the action gives, tried again after passing errors.

        Raises
        ------
        InputError, SpaceMismatchError, UnsupportedOperationError, MissingExtraError
            What the caller did wrong, which no store will answer.
        """
        start, attempts = self.clock.now(), 0
        while True:
            attempts += 1
            try:
                return action()
            except Exception as error:
                if _is_of_the_caller(error):
                    raise
                pause = FIRST_PAUSE * 2 ** (attempts - 1) * (0.5 + 0.5 * self._random.random())
                in_time = self.clock.now() + pause < deadline
                if attempts > self._retries or not may_pass(error) or not in_time:
                    kind: OutageKind = (
                        "garbage" if isinstance(error, UnusableAnswerError) else "error"
                    )
                    seconds = self.clock.now() - start
                    return self._problem(
                        kind,
                        _say(error),
                        queries,
                        attempts=attempts,
                        seconds=seconds,
                        error=error,
                    )
                self.clock.sleep(pause)

    def late(self, start: float, queries: int) -> Problem:
        """Return the outage of a store whose call did not come back."""
        seconds = self.clock.now() - start
        reason = f"no answer in {seconds:.3g} s"
        return self._problem("timeout", reason, queries, attempts=1, seconds=seconds)

    def settle(self, problem: Problem | None, ticket: int) -> None:
        """Note how a search went that was admitted with this ticket."""
        if problem is None:
            if self.breaker.failures:
                self.breaker.succeeded()
        else:
            self._last = problem.outage.reason
            self.breaker.failed(ticket)

    def abandon(self, why: str) -> None:
        """Note a call that nobody waits for any more, and say which."""
        with self._lock:
            self._abandoned += 1
            self._why_abandoned = why

    def ended(self) -> None:
        """Note that an abandoned call has ended; close the store if it was to be closed."""
        with self._lock:
            self._abandoned -= 1
            action = None if self._abandoned else self._at_end
        if action is not None:
            action()

    def close(self, action: Callable[[], None]) -> None:
        """Close the store now, or when the call that still runs in it has ended."""
        with self._lock:
            if self._abandoned:
                self._at_end = action
                return
        action()

    def _problem(
        self,
        kind: OutageKind,
        reason: str,
        queries: int,
        *,
        attempts: int = 0,
        seconds: float = 0.0,
        error: Exception | None = None,
    ) -> Problem:
        return Problem(Outage(self.store, reason, kind, attempts, seconds, queries), error)


def _is_of_the_caller(error: Exception) -> bool:
    kinds = InputError, SpaceMismatchError, UnsupportedOperationError, MissingExtraError
    return isinstance(error, (*kinds, MemoryError)) and not isinstance(error, StoreError)


def may_pass(error: Exception) -> bool:
    """Say whether another attempt may succeed.

    Busy stores, timeouts and connections; a plain `StoreError`, which says nothing closer; and
    types of a database's client that we do not know, which are errors of its network as a rule. Not
    a damaged store, an unusable answer, or an error of Python itself (a bug comes again).
    """
    if isinstance(error, IsthmusError):
        return isinstance(error, StoreBusyError) or type(error) is StoreError
    return isinstance(error, OSError) or type(error).__module__ != "builtins"


def _say(error: Exception) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - of a database's client, which we do not know
        text = ""
    if not isinstance(error, IsthmusError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text[:REASON_LENGTH].removesuffix(".")  # sentences are joined to it
