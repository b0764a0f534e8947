"""A writer of the log in Pulsar is killed, or hangs while another takes over, or is not answered, at each message."""

import json
from contextlib import nullcontext, suppress
from dataclasses import replace

import pytest

from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.journal import PulsarJournal
from controller.adapters.pulsar.log.journal_reading import read_journal
from controller.adapters.pulsar.log.owned import OwnedPartition
from controller.adapters.pulsar.log.ticks import PulsarCollectorLog
from controller.adapters.pulsar.log.topics import create_topics, executors_control
from controller.model.decision import Command
from controller.model.errors import LeadershipLostError, TrimtabError
from controller.ports.inbox import AnswerRecord, TakenOverError
from controller.ports.journal import JournalHead
from controller.wire.commands import EpochEvent, parse_event
from tests.journal_entries import SPLIT, UNLOAD, entry
from tests.pulsar_in_memory import Killed, PulsarInMemory, broker, log_settings
from tests.records import CLUSTER, PERIOD, T, as_bytes, result

__all__ = ["broker"]

LOG = log_settings()
OTHER = replace(UNLOAD, id="0c5c2b9e-0000-5000-8000-000000000003", interval=T + PERIOD)
#: What a leader writes in its first interval; collectors and executors write less.
MESSAGES = 7
MOMENTS = [(nth, stored) for nth in range(1, MESSAGES + 1) for stored in (False, True)]


def url(name: str) -> str:
    return f"persistent://{LOG.namespace}/{name}"


def lead(epoch: int, interval: int, *commands: Command) -> JournalHead:
    """One leadership: it decides *interval*, unless that was decided before.  Returns what it found."""
    journal = PulsarJournal(LOG, cluster=CLUSTER)
    head = journal.open()
    journal.begin_epoch(max(epoch, head.epoch + 1))
    if head.last is None or head.last.interval < interval:
        journal.append(
            entry(interval, *commands),
            epoch=max(epoch, head.epoch + 1),
            issued_at_ms=interval + 1,
            before_commit=lambda: None,
        )
    return head


def check_journal_and_commands(broker: PulsarInMemory) -> None:
    """Every interval is decided once, and what was decided is issued once, and nothing else."""
    entries = [*read_journal(LogConnection(LOG), cluster=CLUSTER)]
    assert [each.interval for each in entries] in ([T, T + PERIOD], [T + PERIOD])
    events = [parse_event(value) for value in broker.values(url("commands"))]
    issued = sorted(event.id for event in events if not isinstance(event, EpochEvent))
    assert issued == sorted(command.id for each in entries for command in each.decision.commands)
    assert len(issued) == len(entries) + (entries[0].interval == T)


@pytest.mark.parametrize(("nth", "stored"), MOMENTS)
def test_the_next_leader_completes_what_a_killed_one_began(broker: PulsarInMemory, nth: int, stored: bool) -> None:
    with broker.killed_at(nth, stored=stored), suppress(Killed):
        lead(1, T, UNLOAD, SPLIT)
    lead(2, T + PERIOD, OTHER)
    check_journal_and_commands(broker)


def test_the_moments_meet_every_message_of_a_leader(broker: PulsarInMemory) -> None:
    lead(1, T, UNLOAD, SPLIT)
    assert broker.sent == MESSAGES


@pytest.mark.parametrize(("nth", "stored"), MOMENTS)
def test_a_leader_that_hangs_until_another_has_decided_adds_nothing(
    broker: PulsarInMemory, nth: int, stored: bool
) -> None:
    def takes_over(number: int) -> None:
        if number == nth:
            lead(2, T + PERIOD, OTHER)

    setattr(broker, "after_store" if stored else "before_store", takes_over)
    with pytest.raises(LeadershipLostError) if (nth, stored) != MOMENTS[-1] else nullcontext():
        lead(1, T, UNLOAD, SPLIT)
    check_journal_and_commands(broker)


@pytest.mark.parametrize("nth", range(1, 2 * MESSAGES + 4))
def test_a_leader_that_is_not_answered_once_knows_what_was_decided(broker: PulsarInMemory, nth: int) -> None:
    broker.loses_answer = lambda number: number == nth
    lead(1, T, UNLOAD, SPLIT)
    assert lead(2, T + PERIOD, OTHER) == JournalHead(last=entry(T, UNLOAD, SPLIT), epoch=1)
    check_journal_and_commands(broker)


def test_a_leader_that_never_learns_where_its_mark_lies_does_not_lead(broker: PulsarInMemory) -> None:
    lead(1, T, UNLOAD, SPLIT)
    broker.loses_answer = lambda _: True
    with pytest.raises(TrimtabError, match="did not say where 5 records lie"):
        lead(2, T + PERIOD, OTHER)


def collector(broker: PulsarInMemory) -> PulsarCollectorLog:
    made = PulsarCollectorLog(LOG, cluster=CLUSTER)
    made.lead(T)
    return made


def ticked(broker: PulsarInMemory) -> list[list[int]]:
    """The intervals that are ticked in each partition."""
    return [
        [json.loads(message.value)["interval"] for message in partition.messages]
        for name, partition in broker.partitions.items()
        if name.startswith((f"{url('metrics')}-partition", f"{url('results')}-partition"))
    ]


@pytest.mark.parametrize(("nth", "stored"), MOMENTS)
def test_an_interval_is_ticked_everywhere_or_nowhere(broker: PulsarInMemory, nth: int, stored: bool) -> None:
    with broker.killed_at(nth, stored=stored), suppress(Killed):
        collector(broker).tick(T, {"a:8080": "sweep"})
    for each in broker.partitions.values():
        each.producers.clear()  # as when the process is dead
    collector(broker).tick(T + PERIOD, {"a:8080": "sweep"})
    found = ticked(broker)
    assert len(found) == 4
    assert found in ([[T, T + PERIOD]] * 4, [[T + PERIOD]] * 4)


@pytest.mark.parametrize("nth", range(1, MESSAGES))
def test_a_tick_that_is_not_answered_once_is_there_once(broker: PulsarInMemory, nth: int) -> None:
    broker.loses_answer = lambda number: number == nth
    log = collector(broker)
    log.tick(T, {"a:8080": "sweep"})
    log.close()
    collector(broker).tick(T + PERIOD, {"a:8080": "sweep"})
    assert ticked(broker) == [[T, T + PERIOD]] * 4


def test_true_intervals_are_ticked_after_one_of_the_future_by_a_collector_whose_clock_was_ahead(
    broker: PulsarInMemory,
) -> None:
    ahead = T + 1_000 * PERIOD
    log = collector(broker)
    log.tick(ahead, {"a:8080": None})
    log.tick(T, {"a:8080": None})
    log.close()
    collector(broker).tick(T + PERIOD, {"a:8080": None})
    assert ticked(broker) == [[ahead, T, T + PERIOD]] * 4


def owned(broker: PulsarInMemory) -> OwnedPartition:
    return OwnedPartition(LogConnection(LOG), 0, cluster=CLUSTER, patience_seconds=0.0)


def answered(command: str) -> AnswerRecord:
    return AnswerRecord(0, "tenant/ns", as_bytes(result(id=command)))


def carry_out(broker: PulsarInMemory, acted: list[str]) -> None:
    """Carry out two commands as an executor does: begun, acted on, answered; those begun before are looked at alone."""
    mine = owned(broker)
    answers = []
    for command in ("one", "two"):
        if command in mine.memory.answered:
            continue
        if command not in mine.memory.begun:
            mine.memory.begun.add(command)
            mine.store()
            acted.append(command)
        answers.append(answered(command))
        mine.memory.answered.add(command)
    mine.memory.settle()
    mine.answer(answers, (7, 5, 0))


def check_results(broker: PulsarInMemory, acted: list[str]) -> None:
    found = [json.loads(value)["id"] for value in broker.values(url("results"))]
    assert sorted(found) == ["one", "two"]
    assert len(acted) == len(set(acted))


@pytest.fixture
def topics(broker: PulsarInMemory) -> PulsarInMemory:
    create_topics(LogConnection(LOG))
    return broker


def dead(broker: PulsarInMemory) -> None:
    for each in broker.partitions.values():
        each.producers.clear()


@pytest.mark.parametrize(("nth", "stored"), MOMENTS)
def test_commands_are_carried_out_at_most_once_and_answered_once(
    topics: PulsarInMemory, nth: int, stored: bool
) -> None:
    acted: list[str] = []
    with topics.killed_at(nth, stored=stored), suppress(Killed):
        carry_out(topics, acted)
    dead(topics)
    carry_out(topics, acted)
    check_results(topics, acted)


@pytest.mark.parametrize(("nth", "stored"), MOMENTS)
def test_an_executor_that_hangs_until_another_has_answered_answers_nothing(
    topics: PulsarInMemory, nth: int, stored: bool
) -> None:
    acted: list[str] = []

    def takes_over(number: int) -> None:
        if number == nth:
            for each in topics.partitions.values():  # the brokers drop the connection of a process that hangs
                for producer in each.producers:
                    producer.state = "closed"
                each.producers.clear()
            carry_out(topics, acted)

    setattr(topics, "after_store" if stored else "before_store", takes_over)
    with suppress(TakenOverError):
        carry_out(topics, acted)
    check_results(topics, acted)


@pytest.mark.parametrize(("nth", "stored"), MOMENTS)
def test_an_executor_that_is_not_told_where_its_mark_lies_knows_what_was_begun(
    topics: PulsarInMemory, nth: int, stored: bool
) -> None:
    acted: list[str] = []
    with topics.killed_at(nth, stored=stored), suppress(Killed):
        carry_out(topics, acted)
    dead(topics)
    mark = topics.sent + 1
    topics.loses_answer = lambda number: number == mark
    carry_out(topics, acted)
    check_results(topics, acted)


@pytest.mark.parametrize("nth", range(1, 2 * MESSAGES))
def test_an_executor_that_is_not_answered_once_does_everything_once(topics: PulsarInMemory, nth: int) -> None:
    acted: list[str] = []
    topics.loses_answer = lambda number: number == nth
    carry_out(topics, acted)
    dead(topics)
    carry_out(topics, acted)
    check_results(topics, acted)


def test_a_state_that_is_no_state_is_named_with_its_topic(topics: PulsarInMemory) -> None:
    owned(topics).store()
    name = f"{url(executors_control(LOG))}-partition-0"
    topics.partitions[name].messages[-1].value = b'{"number":true}'
    with pytest.raises(TakenOverError, match=r"commands-control.*no state of an executor"):
        owned(topics)


def test_an_executor_that_stops_waits_for_no_broker_that_is_away(topics: PulsarInMemory) -> None:
    mine = owned(topics)
    for each in topics.partitions.values():
        for producer in each.producers:
            producer.state = "away"
    sent = topics.sent
    mine.close()
    assert topics.sent == sent
