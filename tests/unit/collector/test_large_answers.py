"""Answers that take much memory are read of one broker at a time: a quarter of a gigabyte may become a whole one."""

import threading
import time
import weakref
from collections import Counter
from functools import partial
from typing import Any

import pytest

from controller.adapters.network.calls import FinishedCall, side_by_side
from controller.adapters.pulsar.admin import LargeAnswerError, PulsarError
from controller.collector.reports import ReportError, SweepName
from controller.collector.sweeper import USUAL_ANSWER, Sweeper
from controller.settings.capacity import CapacityOverrides
from controller.wire.chunks import json_chunks
from tests.fake_pulsar import sample

T = 1_795_233_660_000
USUAL = ("a:8080", "b:8080")
LARGE = ("x:8080", "y:8080", "z:8080")


class Brokers:
    """The admin API of brokers with few topics, and of some with many."""

    def __init__(self) -> None:
        self.allowed = 256 << 20
        self.asked = Counter[tuple[str, int]]()
        self.reading, self.at_once = 0, 0
        self.refused = set[str]()
        #: Set while large answers come to their end.
        self.flows = threading.Event()
        self.flows.set()
        self.lock = threading.Lock()

    def reading_at_most(self, allowed: int) -> Any:
        limited = Brokers()
        limited.__dict__.update(self.__dict__, allowed=allowed, whole=self)
        return limited

    def within(self, *_: object) -> "Brokers":
        return self

    def asked_topic_stats(self, broker: str) -> Any:
        self.asked[broker, self.allowed] += 1
        if broker in LARGE:
            whole = self.__dict__.get("whole", self)
            if self.allowed <= USUAL_ANSWER:
                raise LargeAnswerError("too large")
            with self.lock:
                whole.reading += 1
                whole.at_once = max(whole.at_once, whole.reading)
            self.flows.wait(30)
            with self.lock:
                whole.reading -= 1
        if broker in self.refused:
            raise LargeAnswerError("too large for anybody")
        return partial(sample, "topics_1.json")

    def load_report(self, _: str) -> Any:
        return sample("load_report_1.json")


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()


@pytest.fixture
def sweeper(brokers: Brokers) -> Sweeper:
    admin: Any = brokers
    nothing: Any = None
    return Sweeper(admin, CapacityOverrides(), nothing, form=json_chunks, timeout_seconds=1)


def swept(sweeper: Sweeper, names: tuple[str, ...], seconds: float = 30.0) -> dict[str, FinishedCall]:
    def sweep(broker: str) -> Any:
        return sweeper.sweep(SweepName(cluster="lab", broker=broker, interval=T, sweep_id="s"), T)

    return side_by_side({name: partial(sweep, name) for name in names}, seconds, at_once=8)


def test_large_answers_are_read_one_after_the_other_and_those_of_others_beside_them(
    brokers: Brokers, sweeper: Sweeper
) -> None:
    brokers.flows.clear()
    calls: dict[str, FinishedCall] = {}
    thread = threading.Thread(target=lambda: calls.update(swept(sweeper, LARGE)))
    thread.start()
    assert all(call.error is None for call in swept(sweeper, USUAL).values()), "these wait for nobody"
    brokers.flows.set()
    thread.join(30)
    assert [calls[name].error for name in LARGE] == [None, None, None]
    assert all(0 <= calls[name].value.seconds < 30 for name in LARGE)
    assert brokers.at_once == 1


@pytest.mark.parametrize(
    ("said", "status", "extensible"),
    [
        ("java.lang.UnsupportedOperationException", 500, True),
        ("java.lang.UnsupportedOperationException", 503, False),
        ("java.lang.NullPointerException", 500, False),
    ],
)
def test_only_a_broker_that_says_that_it_has_no_load_report_is_asked_as_an_extensible_one(
    brokers: Brokers, sweeper: Sweeper, said: str, status: int, extensible: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_: Brokers, broker: str) -> Any:
        raise PulsarError(f"{broker}: {said}", status=status)

    asked = list[str]()

    def version(_: Brokers, broker: str) -> tuple[str, str]:
        asked.append(broker)
        return "", ""

    monkeypatch.setattr(Brokers, "load_report", failing)
    monkeypatch.setattr(Brokers, "version", version, raising=False)
    assert swept(sweeper, USUAL[:1])[USUAL[0]].error is not None
    assert asked == (["a:8080"] if extensible else [])


def test_one_whose_turn_does_not_come_fails_and_is_not_late_for_ever(brokers: Brokers) -> None:
    admin: Any = brokers
    nothing: Any = None
    sweeper = Sweeper(admin, CapacityOverrides(), nothing, form=json_chunks, timeout_seconds=0.05)
    brokers.flows.clear()
    held = threading.Thread(target=swept, args=[sweeper, LARGE[:1]])
    held.start()
    while not brokers.reading:
        time.sleep(0.001)
    late = swept(sweeper, LARGE[1:2])[LARGE[1]].error
    assert isinstance(late, ReportError)
    assert "its turn did not come within 0.1 s: start more collectors" in str(late)
    brokers.flows.set()
    held.join(30)
    assert swept(sweeper, LARGE[1:2])[LARGE[1]].error is None


def test_who_gave_a_large_answer_is_asked_once_from_then_on_until_it_is_gone(
    brokers: Brokers, sweeper: Sweeper
) -> None:
    def asked(broker: str) -> list[int]:
        return [brokers.asked[broker, allowed] for allowed in (USUAL_ANSWER, brokers.allowed)]

    for _ in range(3):
        swept(sweeper, (*USUAL, *LARGE))
    assert [asked("a:8080"), asked("x:8080")] == [[3, 0], [1, 3]]
    sweeper.retain({"x:8080"})
    swept(sweeper, LARGE)
    assert [asked("x:8080"), asked("y:8080")] == [[1, 4], [2, 4]]


def test_one_that_is_too_large_for_anybody_fails_and_lets_the_next_one_pass(brokers: Brokers, sweeper: Sweeper) -> None:
    brokers.refused.add("x:8080")
    calls = swept(sweeper, LARGE)
    assert isinstance(calls["x:8080"].error, LargeAnswerError)
    assert [calls[name].error for name in LARGE[1:]] == [None, None]


class ParsedBrokers(Brokers):
    """Counts whose topics are parsed, and how many parsed ones there are at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.parsed, self.most, self.reported = set[str](), 0, 0

    def reading_at_most(self, _: int) -> Any:
        return self

    def asked_topic_stats(self, broker: str) -> Any:
        return partial(self._parse, broker)

    def _parse(self, broker: str) -> Any:
        class Parsed(dict[str, Any]):
            pass

        found = Parsed(sample("topics_1.json"))
        with self.lock:
            self.parsed.add(broker)
            self.most = max(self.most, len(self.parsed))
        weakref.finalize(found, self.parsed.remove, broker)
        time.sleep(0.005)
        return found

    def load_report(self, broker: str) -> Any:
        assert broker not in self.parsed, "its parsed topics wait for the report"
        self.reported += 1
        return super().load_report(broker)


def test_parsed_topics_of_one_broker_are_in_memory_at_a_time_and_not_while_it_is_asked_for_its_report() -> None:
    brokers: Any = ParsedBrokers()
    nothing: Any = None
    sweeper = Sweeper(brokers, CapacityOverrides(), nothing, form=json_chunks, timeout_seconds=1)
    calls = swept(sweeper, tuple(f"{number}:8080" for number in range(6)))
    assert [call.error for call in calls.values()] == [None] * 6
    assert (brokers.reported, brokers.most, brokers.parsed) == (6, 1, set())
