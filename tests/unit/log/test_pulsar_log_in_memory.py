"""The log's port on a Pulsar in memory: what the adapter makes of pulsar-client's calls."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress

import pytest

from controller.log.pulsar.log import PulsarLog
from controller.model.errors import JournalError, StateError
from controller.wire.base import read_object
from tests.contracts.bytes_log import (
    TICKS,
    BytesLogContract,
    ClaimsContract,
    FencedContract,
    HungExecutorContract,
    answers,
    executor,
    issue,
    line,
    open_fence,
    rest,
    take,
    tick,
    values,
)
from tests.pulsar_in_memory import Killed, PulsarInMemory, broker, log_settings
from tests.records import CLUSTER, PERIOD, T
from tests.unit.log import places
from tests.unit.log.test_crashes import (
    Work,
    check_answers,
    check_journal,
    check_ticks,
    collect,
    execute,
    lead,
    with_commands,
)

__all__ = ["broker"]


def carry_out(place: places.Place) -> None:
    """Issue commands, once, and carry them out."""
    if not place.acts:
        with_commands(place)
    execute(place)


class Place:
    """One Pulsar for each test."""

    partitions, atomic, keys = 2, False, True

    def __init__(self, opened: ExitStack) -> None:
        self._opened = opened
        self._executors = 100

    def log(self) -> PulsarLog:
        self._executors -= 1  # the brokers give the first partitions to the lowest names
        made = PulsarLog(log_settings(), cluster=CLUSTER, executor=f"{self._executors:03d}", claim_seconds=0.0)
        return self._opened.enter_context(closing(made))

    def expel(self) -> None:
        """Whoever comes next has a lower name, and gets the first partition."""


@pytest.fixture
def place(broker: PulsarInMemory) -> Iterator[Place]:
    broker.now_ms = lambda: time.time_ns() // 1_000_000
    with ExitStack() as opened:
        yield Place(opened)


class TestBytesLog(BytesLogContract):
    pass


class TestFenced(FencedContract):
    pass


class TestClaims(ClaimsContract):
    pass


class TestHungExecutor(HungExecutorContract):
    pass


def forget_numbers(broker: PulsarInMemory) -> None:
    """What brokers do after brokerDeduplicationProducerInactivityTimeoutMinutes, six hours."""
    for partition in broker.partitions.values():
        partition.numbers.clear()


def test_ticks_are_there_once_where_the_brokers_have_forgotten_their_numbers(
    broker: PulsarInMemory, place: Place
) -> None:
    ticks = tick(60_000, place.partitions)
    with open_fence(place, TICKS) as fenced:
        fenced.append(*ticks)
    forget_numbers(broker)
    with open_fence(place, TICKS) as fenced:
        fenced.complete(ticks[1])
    for partition in range(place.partitions):
        assert values(rest(place.log(), "results", partition=partition)) == [line(60_000, "tick")]
    assert values(rest(place.log(), "metrics", partition=0)) == [line(60_000)]


@pytest.mark.parametrize("sent", range(2, 5))
def test_ticks_of_a_killed_writer_are_completed_where_the_brokers_have_forgotten_their_numbers(
    broker: PulsarInMemory, place: Place, sent: int
) -> None:
    ticks = tick(60_000, place.partitions)
    with open_fence(place, TICKS) as fenced, broker.killed_at(sent, stored=True), suppress(Killed):
        fenced.append(*ticks)
    forget_numbers(broker)
    with open_fence(place, TICKS) as fenced:
        fenced.complete(ticks[1])
    for partition in range(place.partitions):
        assert values(rest(place.log(), "results", partition=partition)) == [line(60_000, "tick")]
    assert values(rest(place.log(), "metrics", partition=0)) == [line(60_000)]


def test_results_are_there_once_where_the_brokers_have_forgotten_their_numbers(
    broker: PulsarInMemory, place: Place
) -> None:
    issue(place, 1)
    with executor(place) as claims:
        [one] = take(claims, 1)
        with broker.killed_at(2, stored=True), suppress(Killed):
            claims.claim(one.partition).finish(b"", answers(one.partition, 1), one.position)
    forget_numbers(broker)
    issue(place, 2)
    with executor(place) as claims:
        assert values(take(claims, 1)) == [line(2)]
    assert values(rest(place.log(), "results")) == [line(1, "done")]


@pytest.mark.slow
@pytest.mark.parametrize(("work", "check"), [(lead, check_journal), (collect, check_ticks), (carry_out, check_answers)])
def test_an_answer_that_is_lost_once_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, work: Work, check: Callable[[places.Place, str], None]
) -> None:
    for nth in range(1, 1_000):
        place = places.PulsarPlace(monkeypatch)
        place.broker.loses_answer = lambda number, nth=nth: number == nth  # type: ignore[misc]
        for _ in range(2):
            work(place)
            place.expel()
        check(place, f"message {nth}")
        if place.broker.sent < nth:
            return


def test_a_leader_that_never_learns_where_its_mark_lies_does_not_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    place = places.PulsarPlace(monkeypatch)
    place.broker.loses_answer = lambda _: True
    with pytest.raises(JournalError, match="stored 5 records but did not return their positions"):
        place.journal().open()


def test_true_intervals_are_ticked_after_one_of_the_future_by_a_collector_whose_clock_was_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place, ahead = places.PulsarPlace(monkeypatch), T + 100_000 * PERIOD
    for interval in (ahead, T):
        log = place.log()
        log.lead(0)
        log.tick(interval, {"a:8080": None})
        log.close()
    found = [read_object(value)["interval"] for value in place.records("results", 0)]
    assert found == [ahead, T]


def test_a_state_that_is_no_state_is_named_with_its_topic(broker: PulsarInMemory, place: Place) -> None:
    issue(place, 1)
    with executor(place) as claims:
        [one] = take(claims, 1)
        claims.claim(one.partition).store(b"{}")
    name = f"persistent://public/trimtab/commands-control-partition-{one.partition}"
    for message in broker.partitions[name].messages:
        message.value = b'{"number":true}'
    with executor(place) as claims, pytest.raises(StateError, match=r"commands-control.*not an executor's state"):
        take(claims, 1)


def test_an_executor_that_stops_waits_for_no_broker_that_is_away(broker: PulsarInMemory, place: Place) -> None:
    issue(place, 1)
    with executor(place) as claims:
        take(claims, 1)
        for partition in broker.partitions.values():
            for producer in partition.producers:
                producer.state = "away"
        sent = broker.sent
    assert broker.sent == sent
