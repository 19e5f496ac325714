from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import (
    CorruptStoreError,
    ParameterError,
    SpaceMismatchError,
    StoreBusyError,
    StoreError,
    UnsupportedOperationError,
    ZeroVectorError,
)
from isthmus.federate.breaker import ORDINARY
from isthmus.federate.patience import Clock, Patience, Problem
from isthmus.federate.source import UnusableAnswerError

SAID = {"expected": "an answer", "got": "none", "do": "wait"}


class ClientError(Exception):
    """Of a database's client, which we do not know."""


@pytest.fixture
def time():
    """A clock that only moves when somebody sleeps."""

    class Time:
        now, slept = 0.0, []

        def sleep(self, seconds):
            self.slept.append(seconds)
            self.now += seconds

    time = Time()
    time.slept = []
    time.clock = Clock(now=lambda: time.now, sleep=time.sleep)
    return time


@pytest.fixture
def make(time):
    def make(timeout=30.0, retries=2, seed=0):
        return Patience("s", timeout=timeout, retries=retries, clock=time.clock, seed=[seed])

    return make


def failing(*errors):
    """Return an action that raises these in turn, then answers with how often it was called."""
    rest = list(errors)

    def act():
        if rest:
            raise rest.pop(0)
        return len(errors) + 1

    return act


def attempt(patience, action, queries=1):
    return patience.attempt(action, deadline=patience.deadline(queries), queries=queries)


@pytest.mark.parametrize(
    "error",
    [
        StoreBusyError(**SAID),
        StoreError(**SAID),
        TimeoutError(),
        ConnectionResetError("reset"),
        OSError("no route to host"),
        ClientError("502"),
    ],
)
def test_what_may_pass_is_tried_again(make, time, error):
    assert attempt(make(), failing(error, error)) == 3
    assert len(time.slept) == 2


def test_pauses_double_and_are_drawn_from_the_seed(make, time):
    attempt(make(retries=5), failing(*[TimeoutError()] * 5))
    for place, seconds in enumerate(time.slept):
        assert 0.05 * 2**place <= seconds <= 0.1 * 2**place
    first, time.slept[:] = list(time.slept), []
    attempt(make(retries=5), failing(*[TimeoutError()] * 5))
    assert time.slept == first
    time.slept[:] = []
    attempt(make(retries=5, seed=1), failing(*[TimeoutError()] * 5))
    assert time.slept != first


def test_after_the_last_attempt_it_is_an_outage(make, time):
    problem = attempt(make(), failing(*[ConnectionError("gone\n away")] * 3), queries=7)
    assert isinstance(problem.error, ConnectionError)
    outage = problem.outage
    assert (outage.store, outage.kind, outage.attempts, outage.queries) == ("s", "error", 3, 7)
    assert outage.reason == "ConnectionError: gone away"
    assert outage.seconds == pytest.approx(sum(time.slept))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (CorruptStoreError(**SAID), "error"),
        (UnusableAnswerError(**SAID), "garbage"),
        (KeyError("vectors"), "error"),
        (TypeError(), "error"),
        (np.linalg.LinAlgError("singular"), "error"),
    ],
)
def test_what_comes_again_is_not_tried_again(make, time, error, kind):
    problem = attempt(make(retries=0), failing(error))
    assert (problem.outage.kind, problem.outage.attempts) == (kind, 1)
    assert problem.outage.reason
    assert time.slept == []


@pytest.mark.parametrize(
    "error",
    [
        ZeroVectorError(**SAID),
        ParameterError(**SAID),
        SpaceMismatchError(**SAID),
        UnsupportedOperationError(**SAID),
        MemoryError(),
    ],
)
def test_what_is_the_callers_fault_is_raised(make, error):
    with pytest.raises(type(error)):
        attempt(make(), failing(error))


def test_an_interrupt_passes_through(make):
    with pytest.raises(KeyboardInterrupt):
        attempt(make(), failing(KeyboardInterrupt()))


def test_there_is_no_attempt_after_the_deadline(make, time):
    problem = attempt(make(timeout=0.12, retries=9), failing(*[TimeoutError()] * 10))
    assert problem.outage.attempts == 2
    assert time.now <= 0.12


def test_a_large_block_of_queries_has_more_time(make):
    patience = make(timeout=2.0)
    assert [patience.deadline(queries) for queries in (1, 100, 1000)] == [2.0, 2.0, 20.0]
    assert make(timeout=None).deadline(10**6) == float("inf")


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan"), float("inf")])
def test_seconds_are_over_zero(make, timeout):
    with pytest.raises(ParameterError, match="timeout in seconds over 0; got"):
        make(timeout=timeout)


def test_a_store_that_keeps_failing_rests(make, time):
    patience = make()
    for _ in range(3):
        ticket = patience.admit(1)
        patience.settle(attempt(patience, failing(KeyError("vectors"))), ticket)
    refused = patience.admit(5)
    assert isinstance(refused, Problem)
    assert (refused.outage.kind, refused.outage.attempts, refused.outage.queries) == (
        "resting", 0, 5,
    )  # fmt: skip
    assert refused.outage.reason == (
        "3 searches in a row failed, asked again in 30 s; the last: KeyError: 'vectors'"
    )
    time.now += 30
    assert patience.admit(1) == 1
    patience.settle(None, 1)
    assert patience.admit(1) == ORDINARY


def test_a_store_with_an_abandoned_call_is_busy_and_closed_when_it_ends(make):
    patience, closed = make(), []
    patience.abandon("a call that timed out")
    refused = patience.admit(1).outage
    assert (refused.kind, refused.reason) == ("busy", "a call that timed out is still running")
    patience.close(lambda: closed.append("late"))
    assert closed == []
    patience.ended()
    assert closed == ["late"]
    assert patience.admit(1) == ORDINARY
    make().close(lambda: closed.append("now"))
    assert closed == ["late", "now"]
