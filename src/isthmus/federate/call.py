"""One source's share of a search, in a thread of its own or in the caller's.

Only the store is timed. Mapping and comparing what it gave is our own work, in the same thread.
"""

from __future__ import annotations

import threading
from typing import Any, Generic, Protocol, TypeVar, cast

from isthmus.federate.breaker import ORDINARY
from isthmus.federate.patience import Patience, Problem

__all__ = ["Call", "CallApart", "Work"]

T_co = TypeVar("T_co", covariant=True)


class Work(Protocol[T_co]):
    """What a call does: ask a store, then work on its answer."""

    @property
    def n_queries(self) -> int:
        """Count the queries."""

    def fetch(self) -> Any:
        """Ask the store."""

    def compare(self, fetched: Any, /) -> T_co:
        """Work on what `fetch` gave."""


class Call(Generic[T_co]):
    """A task in the caller's thread: it takes as long as it takes.

    Parameters
    ----------
    task : Work
    patience : Patience
        Of its store.
    """

    def __init__(self, task: Work[T_co], patience: Patience) -> None:
        self._task = task
        self._patience = patience
        self._queries = task.n_queries
        self._begun = patience.clock.now()
        self._deadline = patience.deadline(self._queries)
        self._error: BaseException | None = None
        admitted = patience.admit(self._queries)
        self._settled = isinstance(admitted, Problem)
        self._result: T_co | Problem | None = admitted if isinstance(admitted, Problem) else None
        self._ticket = ORDINARY if isinstance(admitted, Problem) else admitted

    def start(self) -> None:
        """Do all of it; an error is kept for `outcome`, an interrupt is not."""
        if self._result is None:
            try:
                self._result = self._work()
            except Exception as error:  # noqa: BLE001 - raised again by `outcome`
                self._error = error

    def outcome(self) -> T_co | Problem:
        """Return what came of it, or why there is nothing.

        Raises
        ------
        Exception
            What is not the store's fault.
        """
        if self._error is not None:
            raise self._error
        result = cast("T_co | Problem", self._result)  # one of both is there by now
        return result if self._settled else self._settle(result)

    def let_go(self) -> None:
        """Leave it when the search is over, whatever became of it."""
        if not self._settled:
            self._settled = True
            self._patience.breaker.cancelled(self._ticket)

    def _settle(self, result: T_co | Problem) -> T_co | Problem:
        self._settled = True
        self._patience.settle(result if isinstance(result, Problem) else None, self._ticket)
        return result

    def _work(self) -> T_co | Problem:
        fetched = self._patience.attempt(
            self._task.fetch, deadline=self._deadline, queries=self._queries
        )
        self._note_fetched()
        return fetched if isinstance(fetched, Problem) else self._task.compare(fetched)

    def _note_fetched(self) -> None:
        """Say that the store has answered."""


class CallApart(Call[T_co]):
    """A task in a thread of its own, which is left behind when its store takes too long.

    The thread does not keep the interpreter from ending.
    """

    def __init__(self, task: Work[T_co], patience: Patience) -> None:
        super().__init__(task, patience)
        self._lock = threading.Lock()
        self._fetched = threading.Event()
        self._done = threading.Event()
        self._done.set()
        self._abandoned = False

    def start(self) -> None:
        """Begin."""
        if self._result is None:
            name = f"isthmus-source-{self._patience.store}"
            self._done.clear()
            try:
                threading.Thread(target=self._run, name=name, daemon=True).start()
            except RuntimeError:  # no more threads
                self._done.set()
                raise

    def outcome(self) -> T_co | Problem:
        """Return what came of it as soon as it is there, or that its time is over."""
        if not self._wait():
            return self._settle(self._patience.late(self._begun, self._queries))
        return super().outcome()

    def let_go(self) -> None:
        """Leave it, even while it runs."""
        self._abandon("a call of a search that was broken off")
        super().let_go()

    def _run(self) -> None:
        try:
            self._result = self._work()
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            self._error = error
        with self._lock:
            self._fetched.set()
            self._done.set()
            abandoned = self._abandoned
        if abandoned:
            self._patience.ended()

    def _wait(self) -> bool:
        """Wait for the store as long as it has, then for our own work; say whether it came."""
        if self._patience.timeout is not None and not self._done.is_set():
            left = self._deadline - self._patience.clock.now()
            if not self._fetched.wait(min(max(0.0, left), threading.TIMEOUT_MAX)) and self._abandon(
                "a call that timed out"
            ):
                return False
        self._done.wait()
        return True

    def _abandon(self, why: str) -> bool:
        """Say whether it was still running, and is from now on nobody's."""
        with self._lock:
            if self._done.is_set() or self._abandoned:
                return False
            self._abandoned = True
            self._patience.abandon(why)
            return True

    def _note_fetched(self) -> None:
        self._fetched.set()
