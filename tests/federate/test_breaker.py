from __future__ import annotations

import threading

import pytest

from isthmus.federate.breaker import ORDINARY, Breaker


@pytest.fixture
def time():
    return [0.0]


@pytest.fixture
def breaker(time):
    return Breaker(lambda: time[0])


def fail(breaker, times):
    for _ in range(times):
        ticket = breaker.admit()
        assert ticket is not None
        breaker.failed(ticket)


def test_it_opens_after_three_failures_in_a_row(breaker):
    fail(breaker, 2)
    breaker.succeeded()
    fail(breaker, 3)
    assert breaker.admit() is None
    assert (breaker.failures, breaker.remaining()) == (3, 30.0)


def test_one_trial_is_let_through_after_the_rest(breaker, time):
    fail(breaker, 3)
    time[0] = 29.9
    assert breaker.admit() is None
    time[0] = 30.0
    assert breaker.remaining() == 0.0
    assert [breaker.admit(), breaker.admit()] == [1, None]


def test_a_trial_that_fails_opens_it_again(breaker, time):
    fail(breaker, 3)
    time[0] = 31.0
    fail(breaker, 1)
    assert breaker.admit() is None
    assert breaker.remaining() == 30.0


def test_a_trial_that_succeeds_closes_it(breaker, time):
    fail(breaker, 3)
    time[0] = 31.0
    assert breaker.admit() == 1
    breaker.succeeded()
    assert breaker.remaining() == 0.0
    fail(breaker, 2)
    assert breaker.admit() == ORDINARY


def test_a_trial_that_says_nothing_is_followed_by_another(breaker, time):
    fail(breaker, 3)
    time[0] = 31.0
    breaker.cancelled(breaker.admit())
    assert breaker.admit() == 2


@pytest.mark.parametrize("end", ["failed", "cancelled"])
def test_a_search_from_before_does_not_end_the_trial_of_another(breaker, time, end):
    old = breaker.admit()
    fail(breaker, 3)
    time[0] = 31.0
    trial = breaker.admit()
    time[0] = 40.0
    getattr(breaker, end)(old)
    assert breaker.admit() is None  # the trial still runs
    breaker.failed(trial)
    assert breaker.remaining() == 30.0
    time[0] = 69.0
    breaker.failed(old)  # nor does it prolong the rest
    assert breaker.remaining() == 1.0


def test_a_trial_that_ends_twice_does_not_end_the_next(breaker, time):
    fail(breaker, 3)
    time[0] = 31.0
    first = breaker.admit()
    breaker.cancelled(first)
    second = breaker.admit()
    breaker.cancelled(first)
    assert breaker.admit() is None
    breaker.cancelled(second)
    assert breaker.admit() == 3


def test_many_threads_are_given_one_trial(breaker, time):
    fail(breaker, 3)
    time[0] = 31.0
    start, tickets = threading.Barrier(16), []

    def ask():
        start.wait()
        tickets.append(breaker.admit())

    for _ in range(20):
        threads = [threading.Thread(target=ask) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (trial,) = (ticket for ticket in tickets if ticket is not None)
        tickets.clear()
        breaker.cancelled(trial)


def test_failures_of_many_threads_are_all_counted(time):
    breaker = Breaker(lambda: time[0], failures=10_000)

    def fail_often():
        fail(breaker, 500)

    threads = [threading.Thread(target=fail_often) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert breaker.failures == 4_000
