"""Calls that hang hold up nobody; each that is waited for has an answer or an error."""

import sys
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial

import pytest

from controller.adapters.network.calls import Calls, FinishedCall, NoAnswerError, side_by_side
from controller.adapters.network.waiting import wait_for


def outcomes(calls: Calls, number: int) -> list[FinishedCall]:
    found: list[FinishedCall] = []

    def are_all_there() -> bool:
        found.extend(calls.finished())
        return len(found) >= number

    wait_for(are_all_there, 10, every=0.001)
    return found


def fails() -> None:
    raise ValueError("no")


def test_a_call_comes_back_with_its_value_or_its_error() -> None:
    calls = Calls(2)
    calls.submit("a", lambda: 1)
    calls.submit("b", fails)
    found = {outcome.key: outcome for outcome in outcomes(calls, 2)}
    assert found["a"] == FinishedCall("a", 1, None)
    assert isinstance(found["b"].error, ValueError)


class Answer(list[str]):
    """One that can be seen to be gone."""


def test_an_error_that_waits_to_be_taken_keeps_nothing_of_its_call() -> None:
    seen: list[weakref.ref[Answer]] = []

    def reads() -> None:
        answer = Answer()
        seen.append(weakref.ref(answer))
        try:
            raise ValueError("odd")
        except ValueError as error:
            raise TypeError("unusable") from error

    calls = Calls(1)
    calls.submit("a", reads)
    [call] = outcomes(calls, 1)
    assert isinstance(call.error, TypeError)
    assert isinstance(call.error.__cause__, ValueError)
    assert [each() for each in seen] == [None]


def test_an_error_that_is_its_own_cause_comes_back_as_well() -> None:
    def raises() -> None:
        error = ValueError("odd")
        raise error from error

    calls = Calls(1)
    calls.submit("a", raises)
    [call] = outcomes(calls, 1)
    assert isinstance(call.error, ValueError)


def test_no_more_calls_are_made_at_once_than_allowed() -> None:
    calls, at_once, most, lock, three = Calls(3), 0, 0, threading.Lock(), threading.Barrier(3)

    def call() -> None:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        three.wait(30)
        time.sleep(0.01)
        with lock:
            at_once -= 1

    for key in range(12):
        calls.submit(key, call)
    outcomes(calls, 12)
    assert most == 3


def test_calls_that_hang_leave_room_for_new_ones_after_a_renewal_and_come_back_late() -> None:
    calls, release = Calls(2), threading.Event()
    hang: Callable[[], object] = lambda: release.wait(30)  # noqa: E731
    assert calls.submit("a", hang)
    assert calls.submit("b", hang)
    assert calls.submit("never begun", lambda: 1)
    time.sleep(0.05)
    calls.renew()
    assert not calls.submit("a", lambda: 1), "its last call has not ended"
    assert calls.submit("c", lambda: 2)
    assert [outcome.key for outcome in outcomes(calls, 1)] == ["c"]
    assert calls.is_open("a")
    assert not calls.is_open("never begun")
    release.set()
    assert {outcome.key for outcome in outcomes(calls, 2)} == {"a", "b"}
    assert calls.submit("a", lambda: 1)


def test_a_late_answer_is_left_out_and_does_not_delay_the_others() -> None:
    never = threading.Event()
    try:
        began = time.monotonic()
        found = side_by_side({"a": lambda: True, "b": lambda: never.wait(30)}, 0.1)
        assert time.monotonic() - began < 20
        assert found["a"].result() is True
        assert [found[key].late for key in ("a", "b")] == [False, True]
        with pytest.raises(NoAnswerError, match=r"no answer within 0\.1 s"):
            found["b"].result()
    finally:
        never.set()


def test_more_calls_than_threads_are_all_made() -> None:
    found = side_by_side({n: partial(pow, n, 2) for n in range(100)}, 5, at_once=3)
    assert {n: call.result() for n, call in found.items()} == {n: n * n for n in range(100)}


def test_the_error_of_a_call_is_its_result_and_no_late_answer() -> None:
    def times_out() -> None:
        raise TimeoutError("the socket's")

    found = side_by_side({"a": lambda: 1 // 0, "b": times_out})
    assert not found["a"].late
    assert not found["b"].late
    with pytest.raises(ZeroDivisionError):
        found["a"].result()
    with pytest.raises(TimeoutError, match="the socket's"):
        found["b"].result()


def test_what_ends_a_thread_ends_the_call_and_no_other() -> None:
    found = side_by_side({"a": sys.exit, "b": lambda: 2}, 5, at_once=1)
    assert isinstance(found["a"].error, SystemExit)
    assert found["b"].result() == 2


def test_calls_that_have_not_begun_in_time_are_never_made() -> None:
    release, made = threading.Event(), threading.Event()
    try:
        found = side_by_side({"a": lambda: release.wait(30), "b": made.set}, 0.05, at_once=1)
        assert [found[key].late for key in ("a", "b")] == [True, True]
    finally:
        release.set()
    assert not made.wait(0.1)


def test_threads_end_with_those_who_had_them_started() -> None:
    def alive() -> int:
        return sum(thread.name == "call" for thread in threading.enumerate())

    calls, before = Calls(4), alive()
    calls.together({n: partial(pow, n, 2) for n in range(4)})
    assert alive() > before
    del calls
    wait_for(lambda: alive() <= before, 10, every=0.001)


def hanging(calls: Calls, release: threading.Event, *keys: str) -> None:
    """Have as many calls made that return with *release*; returns when all have begun."""
    began = list[str]()

    def hang(key: str) -> None:
        began.append(key)
        release.wait(30)

    for key in keys:
        calls.submit(key, partial(hang, key))
    wait_for(lambda: len(began) == len(keys), 10, every=0.001)


def test_beside_calls_that_hang_others_are_made_once_patience_is_over() -> None:
    calls, release = Calls(2), threading.Event()
    try:
        hanging(calls, release, "a", "b")
        calls.submit("c", lambda: 3)
        for now in (0.0, 1.0):
            calls.add_workers_for_stuck(now, 1.0, answering=(), limit=5)
        assert calls.waiting == 1, "for no longer than patience"
        calls.add_workers_for_stuck(1.5, 1.0, answering={"a", "b"}, limit=5)
        calls.add_workers_for_stuck(1.6, 1.0, answering=(), limit=0)
        assert calls.waiting == 1, "they answer, or no more are allowed"
        calls.add_workers_for_stuck(1.7, 1.0, answering={"a"}, limit=5)
        assert [call.key for call in outcomes(calls, 1)] == ["c"]
    finally:
        release.set()


def test_a_thread_that_was_relieved_ends_with_its_call() -> None:
    calls, release, last = Calls(1), threading.Event(), threading.Event()
    try:
        hanging(calls, release, "a")
        calls.submit("b", last.wait)
        for now in (0.0, 2.0):
            calls.add_workers_for_stuck(now, 1.0, answering=(), limit=5)
        wait_for(lambda: not calls.waiting, 10, every=0.001)
        calls.submit("c", lambda: 3)
        release.set()
        assert [call.key for call in outcomes(calls, 1)] == ["a"]
        calls.add_workers_for_stuck(2.1, 1.0, answering=(), limit=5)
        assert calls.waiting == 1, "one call at a time, as before"
        last.set()
        assert [call.key for call in outcomes(calls, 2)] == ["b", "c"]
    finally:
        release.set()
        last.set()


def test_a_renewal_after_relief_starts_with_as_many_threads_as_allowed() -> None:
    calls, release = Calls(1), threading.Event()
    try:
        hanging(calls, release, "a")
        for now in (0.0, 2.0):
            calls.add_workers_for_stuck(now, 1.0, answering=(), limit=5)
        calls.renew()
        hanging(calls, release, "b")
        calls.submit("c", lambda: 3)
        calls.add_workers_for_stuck(3.0, 1.0, answering=(), limit=5)
        assert calls.waiting == 1, "the new call has not been waited for long"
    finally:
        release.set()
    assert {call.key for call in outcomes(calls, 3)} == {"a", "b", "c"}
