"""When a query has stalled, and when it only has nothing to read."""

import re
import threading
import time
from collections.abc import Callable
from typing import Any, cast

import pytest

from controller.cycle.checked import unloads_by
from controller.model.errors import JournalError, StalledError, StrategyError
from controller.model.load import ClusterView
from controller.model.strategy_memory import StrategyMemory
from controller.strategies.protocols import Shedder
from streaming.batches.progress import Look, ProgressWatch, stalled
from streaming.batches.running_strategy import running_strategy

AFTER = 100.0


def look(at: float, ticked: int, batch: int = 7) -> Look:
    return Look(at_seconds=at, batch=batch, ticked=ticked)


def test_a_query_that_finishes_no_batch_while_ticks_arrive_has_stalled() -> None:
    looks = [look(t, ticked=t) for t in range(0, 111, 10)]
    # The first tick that it has surely not read came by the second look.
    assert not stalled(looks[:-1], AFTER)
    assert stalled(looks, AFTER)


def test_a_slow_query_that_makes_progress_has_not_stalled() -> None:
    looks = [look(t, ticked=t, batch=t // 90) for t in range(0, 1000, 10)]
    assert not any(stalled(looks[: n + 1], AFTER) for n in range(len(looks)))


def test_without_ticks_there_is_nothing_to_read() -> None:
    assert not stalled([look(t, ticked=5) for t in range(0, 1000, 10)], AFTER)


def test_the_first_tick_after_a_long_silence_may_take_its_time() -> None:
    silent = [look(t, ticked=5) for t in range(0, 1000, 10)]
    assert not stalled([*silent, look(1000, ticked=6)], AFTER)
    assert stalled([*silent, look(1000, ticked=6), look(1100, ticked=6)], AFTER)


def test_a_restarted_query_has_not_stalled() -> None:
    before = [look(0, ticked=0, batch=-1), look(10, ticked=1, batch=-1), look(20, ticked=2, batch=4)]
    assert not stalled([*before, look(130, ticked=3, batch=-1)], AFTER)


def looked() -> None:
    """Wait for the look that the watch has begun in a thread of its own."""
    for thread in threading.enumerate():
        if thread.name == "progress":
            thread.join()


def watched(ticks: list[int], batches: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Look as often as there are ticks, every 10 seconds."""
    clock = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    told = iter(ticks)
    watch = ProgressWatch(lambda: next(told), after_seconds=AFTER)
    for number in range(len(ticks)):
        clock += 10.0
        watch.check(lambda n=number: batches[n])  # type: ignore[misc]
        looked()


def test_a_stalled_query_is_told_with_an_exit_code_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    watched([*range(30)], [*range(30)], monkeypatch)
    with pytest.raises(StalledError, match="the query has finished no batch for 100 s") as caught:
        watched([*range(30)], [3] * 30, monkeypatch)
    assert caught.value.exit_code == 70


def test_a_log_that_cannot_be_read_says_nothing_about_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)

    def silent() -> int:
        raise JournalError("Kafka does not answer")

    watch = ProgressWatch(silent, after_seconds=AFTER)
    for _ in range(30):
        clock += 10.0
        watch.check(lambda: 3)
        looked()


def test_a_check_that_never_returns_counts_as_stalled(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, never = 0.0, threading.Event()
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    watch = ProgressWatch(lambda: never.wait() and None, after_seconds=AFTER)
    clock = 10.0
    watch.check(int)
    clock = 109.0
    watch.check(int)
    clock = 110.0
    with pytest.raises(StalledError, match="neither Spark nor the log has answered for 100 s"):
        watch.check(int)
    never.set()


class Endless:
    """A strategy of a user's that never answers."""

    def __init__(self) -> None:
        self.asked, self.answer = threading.Event(), threading.Event()

    def decide(self, view: object, memory: object) -> tuple[object, object]:
        self.asked.set()
        self.answer.wait()
        return view, memory


def _without_a_batch(_: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    watched([*range(30)], [3] * 30, monkeypatch)


def _without_an_answer(answered: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 10.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    watch = ProgressWatch(lambda: 1, after_seconds=AFTER)
    clock = 20.0
    watch.check(lambda: int(answered.wait()))
    clock = 20.0 + AFTER
    watch.check(lambda: 0)


@pytest.mark.parametrize(
    ("stall", "told"),
    [
        (_without_a_batch, "the query has finished no batch for 100 s"),
        (_without_an_answer, "neither Spark nor the log has answered"),
    ],
)
def test_a_strategy_that_never_answers_is_named_with_its_line(
    stall: Callable[[threading.Event, pytest.MonkeyPatch], None], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless, answered = Endless(), threading.Event()

    def ask() -> None:
        with pytest.raises(StrategyError):  # what it answers in the end is no decision
            unloads_by(cast("Shedder[Any]", endless), cast("ClusterView", None), cast("StrategyMemory", None))

    thread = threading.Thread(target=ask)
    thread.start()
    endless.asked.wait()
    line = Endless.decide.__code__.co_firstlineno
    name = rf"Endless \({re.escape(__name__)}, line ({line + 1}|{line + 2})\) was called and has not returned: fix it"
    try:
        with pytest.raises(StalledError, match=f"{told}.*; {name}"):
            stall(answered, monkeypatch)
    finally:
        answered.set()
        endless.answer.set()
        thread.join()
    assert running_strategy() == ""
