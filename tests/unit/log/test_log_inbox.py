"""Executors that lose a partition, or cannot ask the log."""

import pytest

from controller.log.inbox import AnswerRecord, Inbox
from controller.log.memory import MemoryLog, MemoryServer
from controller.log.port import OLDEST, LogTopic, Out, PartitionTakenOverError, Reader, Start, TakenOverError
from controller.model.errors import SettingsError, StateError, TrimtabError
from controller.wire.commands import command_event, epoch_event
from tests.commands import T, unload
from tests.records import CLUSTER, as_bytes, result
from tests.unit.log.places import GROUP, MODES, MemoryPlace

COMMANDS = [unload(f"tenant/ns/0x{nth}0000000_0x{nth + 1}0000000", cluster=CLUSTER) for nth in range(4)]


def issue(place: MemoryPlace, nth: int, partition: int) -> None:
    event = command_event(COMMANDS[nth], 1, T)
    place.connect().append([Out("commands", event, partition=partition)], within_seconds=1.0)


def answer(nth: int, partition: int) -> AnswerRecord:
    return AnswerRecord(partition, "tenant/ns", as_bytes(result(id=COMMANDS[nth].id)))


@pytest.mark.parametrize(("atomic", "seed"), MODES)
def test_who_loses_one_partition_answers_nothing_of_it_and_goes_on_with_the_others(atomic: bool, seed: int) -> None:
    place = MemoryPlace(atomic=atomic, seed=seed, partitions=2)
    issue(place, 0, 0)
    issue(place, 1, 1)
    first = place.inbox()
    assert len(first.poll(16, 0.0)) == 2
    second = place.inbox()  # the group gives it one of them
    [taken] = second.poll(16, 0.0)
    with pytest.raises(PartitionTakenOverError, match=rf"partitions \[{taken.partition}\]"):
        first.answer([answer(0, 0), answer(1, 1)])
    other = 1 - taken.partition
    assert len(place.records("results", other)) == 1
    assert place.records("results", taken.partition) == []
    second.answer([answer(taken.partition, taken.partition)])
    issue(place, 2 + other, other)
    assert [each.partition for each in first.poll(16, 0.0)] == [other]


@pytest.mark.parametrize(("atomic", "seed"), MODES)
def test_who_gets_a_partition_again_knows_what_became_of_it_meanwhile(atomic: bool, seed: int) -> None:
    place = MemoryPlace(atomic=atomic, seed=seed, partitions=2)
    issue(place, 1, 1)
    first = place.inbox()
    assert len(first.poll(16, 0.0)) == 1
    second = place.inbox()
    [taken] = second.poll(16, 0.0)
    second.begin(1, COMMANDS[1].id)
    second.memory(1).epoch = 5
    second.memory(1).answered.add(COMMANDS[1].id)
    second.answer([answer(1, 1)])
    with pytest.raises(PartitionTakenOverError):
        first.begin(1, COMMANDS[1].id)
    second.close()
    assert first.poll(16, 0.0) == []
    issue(place, 2, 1)
    assert [each.partition for each in first.poll(16, 0.0)] == [taken.partition]
    memory = first.memory(1)
    assert (memory.epoch, set(memory.answered), memory.started) == (5, {COMMANDS[1].id}, set())


def test_the_result_topic_needs_a_partition_for_each_of_the_commands() -> None:
    place = MemoryPlace(atomic=True, seed=0, partitions=2)
    place.server.add_partitions("commands")
    with pytest.raises(SettingsError, match="commands has 3 partitions and memory/results 2"):
        place.inbox()


def test_a_state_that_somebody_else_stored_is_named_with_what_to_do() -> None:
    place = MemoryPlace(atomic=True, seed=0)
    issue(place, 0, 0)
    place.server.done[GROUP, 0] = (b"?", -1)
    with pytest.raises(StateError, match=r"partition 0: .* not an executor's state .* start a new process"):
        place.inbox().poll(16, 0.0)


class Silent(MemoryLog):
    """A log whose commands cannot be read by themselves."""

    def read(self, topic: LogTopic, start: Start = OLDEST, *, partition: int | None = None) -> Reader:  # type: ignore[override]
        if topic == "commands":
            raise TrimtabError("no answer")
        return super().read(topic, start, partition=partition)


def test_an_executor_that_cannot_read_the_newest_epoch_begins_nothing() -> None:
    server = MemoryServer()
    place = MemoryPlace(atomic=True, seed=0)
    place.server = server
    issue(place, 0, 0)
    with pytest.raises(TakenOverError, match="no answer"):
        Inbox(Silent(server), group=GROUP, cluster=CLUSTER).poll(1, 0.0)


def test_the_newest_epoch_is_read_beyond_what_was_taken_and_no_forged_one_counts() -> None:
    place = MemoryPlace(atomic=False, seed=1, partitions=1)
    issue(place, 0, 0)
    inbox = place.inbox()
    assert len(inbox.poll(1, 0.0)) == 1
    place.begin_epoch(4)
    place.begin_epoch(900_000_000)
    assert inbox.newest_epoch(0) == 4
    place.connect().append([Out("commands", epoch_event("other", 5, T), partition=0)], within_seconds=1.0)
    assert inbox.newest_epoch(0) == 4
