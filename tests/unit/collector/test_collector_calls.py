"""Calls that hang hold up nobody."""

import threading
import time
from collections.abc import Callable

from controller.collector.calls import Calls, Outcome


def outcomes(calls: Calls, number: int) -> list[Outcome]:
    found: list[Outcome] = []
    deadline = time.monotonic() + 10
    while len(found) < number:
        found += calls.finished()
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.001)
    return found


def fails() -> None:
    raise ValueError("no")


def test_a_call_comes_back_with_its_value_or_its_error() -> None:
    calls = Calls(2)
    calls.submit("a", lambda: 1)
    calls.submit("b", fails)
    found = {outcome.key: outcome for outcome in outcomes(calls, 2)}
    assert found["a"] == Outcome("a", 1, None)
    assert isinstance(found["b"].error, ValueError)


def test_no_more_calls_are_made_at_once_than_allowed() -> None:
    calls, at_once, most, lock = Calls(3), 0, 0, threading.Lock()

    def call() -> None:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
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
