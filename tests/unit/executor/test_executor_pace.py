import threading

import pytest

from controller.executor.pace import RateLimiter, StandstillWatch


class Clock:
    """Time that passes when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_at_most_so_many_begin_in_a_second() -> None:
    clock = Clock()
    pace = RateLimiter(4, clock=clock, sleep=clock.sleep)
    began = []
    for _ in range(9):
        pace.wait()
        began.append(clock.now)
    assert began == pytest.approx([100 + nth / 4 for nth in range(9)])


def test_idle_time_does_not_accumulate_permits() -> None:
    clock = Clock()
    pace = RateLimiter(4, clock=clock, sleep=clock.sleep)
    clock.sleep(60)
    for _ in range(3):
        pace.wait()
    assert clock.now == pytest.approx(160.5)


def test_a_process_that_stood_still_for_too_long_is_found_out_whoever_looks_first_and_stays_so() -> None:
    clock = Clock()
    watch = StandstillWatch(5, clock=clock)
    clock.sleep(5)
    assert watch.is_steady()
    clock.sleep(5.1)
    assert not watch.is_steady()
    clock.sleep(0.1)
    assert not watch.is_steady()


def test_a_watch_taken_anew_forgets_what_was_before() -> None:
    clock = Clock()
    watch = StandstillWatch(5, clock=clock)
    clock.sleep(60)
    with watch.watching():
        assert watch.is_steady()
        clock.sleep(6)
        assert not watch.is_steady()
    with watch.watching():
        assert watch.is_steady()


def test_each_look_counts_as_a_beat() -> None:
    clock = Clock()
    watch = StandstillWatch(5, clock=clock)
    for _ in range(5):
        clock.sleep(4)
        assert watch.is_steady()
    clock.sleep(5.5)
    assert not watch.is_steady()


def test_while_it_is_taken_a_thread_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controller.executor.pace._BEAT_SECONDS", 0.001)
    beats, clock = threading.Event(), Clock()

    def looked() -> float:
        if threading.current_thread().name == "standstill":
            beats.set()
        return clock()

    with StandstillWatch(5, clock=looked).watching():
        assert beats.wait(30)
