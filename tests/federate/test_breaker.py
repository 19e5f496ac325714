from __future__ import annotations

import pytest

from isthmus.federate.breaker import Breaker


@pytest.fixture
def time():
    return [0.0]


@pytest.fixture
def breaker(time):
    return Breaker(lambda: time[0])


def fail(breaker, times):
    for _ in range(times):
        assert breaker.admit()
        breaker.failed()


def test_it_opens_after_three_failures_in_a_row(breaker):
    fail(breaker, 2)
    breaker.succeeded()
    fail(breaker, 3)
    assert not breaker.admit()
    assert (breaker.failures, breaker.remaining()) == (3, 30.0)


def test_one_trial_is_let_through_after_the_rest(breaker, time):
    fail(breaker, 3)
    time[0] = 29.9
    assert not breaker.admit()
    time[0] = 30.0
    assert breaker.remaining() == 0.0
    assert [breaker.admit(), breaker.admit()] == [True, False]


def test_a_trial_that_fails_opens_it_again(breaker, time):
    fail(breaker, 3)
    time[0] = 31.0
    fail(breaker, 1)
    assert not breaker.admit()
    assert breaker.remaining() == 30.0


def test_a_trial_that_succeeds_closes_it(breaker, time):
    fail(breaker, 3)
    time[0] = 31.0
    assert breaker.admit()
    breaker.succeeded()
    assert breaker.remaining() == 0.0
    fail(breaker, 2)
    assert breaker.admit()


def test_a_trial_that_says_nothing_is_followed_by_another(breaker, time):
    fail(breaker, 3)
    time[0] = 31.0
    assert breaker.admit()
    breaker.cancelled()
    assert breaker.admit()
