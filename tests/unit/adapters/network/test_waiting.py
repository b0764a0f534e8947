"""Deadlines, and waiting for what comes, on a clock of the test's own."""

import math
from collections.abc import Callable

import pytest

from controller.adapters.network.deadline import Deadline
from controller.adapters.network.waiting import retry, wait_for


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_deadline_says_how_much_time_is_left_and_never_less_than_nothing() -> None:
    clock = Clock()
    deadline = Deadline.after(5, clock)
    assert (deadline.remaining, deadline.passed) == (5.0, False)
    clock.now += 4.5
    assert (deadline.remaining, deadline.passed) == (0.5, False)
    clock.now += 0.5
    assert (deadline.remaining, deadline.passed) == (0.0, True)
    clock.now += 10
    assert (deadline.remaining, deadline.passed) == (0.0, True)


def test_the_earlier_of_two_deadlines_counts() -> None:
    clock = Clock()
    deadline = Deadline.after(5, clock)
    assert deadline.within(2).remaining == 2.0
    assert deadline.within(7).remaining == 5.0
    assert Deadline(math.inf, clock).within(7).remaining == 7.0


def test_without_a_limit_time_is_never_over() -> None:
    deadline = Deadline(math.inf)
    assert (deadline.remaining, deadline.passed) == (math.inf, False)


def answers(*given: object) -> Callable[[], object]:
    """A call that raises or returns what is *given*, one after the other."""
    left = list(given)

    def call() -> object:
        each = left.pop(0)
        if isinstance(each, Exception):
            raise each
        return each

    return call


def test_what_is_waited_for_is_returned_and_looked_for_at_the_pace_that_was_asked() -> None:
    slept: list[float] = []
    assert wait_for(answers(None, 0, "there", "later"), 60, every=0.25, sleep=slept.append) == "there"
    assert slept == [0.25, 0.25]


def test_what_does_not_come_in_time_is_a_timeout() -> None:
    with pytest.raises(TimeoutError, match="not done within 0 s"):
        wait_for(answers(None, None), 0, every=0.25, sleep=lambda _: None)


def test_an_error_while_looking_is_raised_at_once() -> None:
    with pytest.raises(KeyError):
        wait_for(answers(None, KeyError("gone"), "there"), 60, every=0.25, sleep=lambda _: None)


def test_a_call_is_made_again_after_errors_that_pass() -> None:
    slept: list[float] = []
    call = answers(OSError("busy"), OSError("busy"), "done")
    assert retry(call, 60, again_after=lambda error: "busy" in str(error), every=0.1, sleep=slept.append) == "done"
    assert slept == [0.1, 0.1]


def test_other_errors_and_the_last_one_in_time_are_raised_as_they_are() -> None:
    def busy(error: BaseException) -> bool:
        return "busy" in str(error)

    with pytest.raises(OSError, match="broken"):
        retry(answers(OSError("busy"), OSError("broken")), 60, again_after=busy, every=0.1, sleep=lambda _: None)
    with pytest.raises(OSError, match="busy"):
        retry(answers(OSError("busy"), "done"), 0, again_after=busy, every=0.1, sleep=lambda _: None)
