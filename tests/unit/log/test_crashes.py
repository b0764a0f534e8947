"""A process dies, hangs or loses an answer at each of its effects on the log; another one takes over."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import pytest

from controller.log.inbox import AnswerRecord, Inbox
from controller.log.port import TakenOverError
from controller.model.errors import TrimtabError
from controller.wire.base import read_object
from controller.wire.command_signatures import why_not_believed
from controller.wire.commands import EpochEvent, parse_event
from controller.wire.ed25519 import SigningKey
from controller.wire.results import answered_command
from tests.commands import unload
from tests.journal_entries import UNLOAD, entry
from tests.records import CLUSTER, PERIOD, T, as_bytes, result
from tests.unit.log.places import MODES, MemoryPlace, Place, fresh, no_fault

__all__ = ["fresh"]

INTERVALS = [T, T + PERIOD, T + 2 * PERIOD]
#: What one process does, from its start; it goes on where others have stopped.
Work: TypeAlias = Callable[[Place], None]
#: Makes an empty log.
Fresh: TypeAlias = Callable[[], Place]


class KilledError(BaseException):
    """The process ends here."""


@dataclass
class Fault:
    """What happens at the effect number *at*, counted from 0: before it, or after it."""

    at: int
    when: str
    then: Callable[[], None]
    passed: int = 0
    has_happened: bool = field(default=False)

    def __call__(self, when: str, effect: str) -> None:
        if when != self.when or self.has_happened:
            return
        if self.passed == self.at:
            self.has_happened = True
            self.then()
        self.passed += 1


def kill() -> None:
    raise KilledError


def lose_the_answer() -> None:
    raise TrimtabError("no answer came")


def with_fault(place: Place, fault: Fault, work: Work) -> bool:
    """Do *work* under *fault*; whether the fault happened.  A process that fails ends."""
    place.at_effect = fault
    with suppress(KilledError, TrimtabError):
        work(place)
    place.at_effect = no_fault
    return fault.has_happened


def at_each_effect(make: Fresh, work: Work) -> Iterator[tuple[str, Place]]:
    """What lies in the log after each way in which *work* can fail and another process does it again."""
    for when, name, then in (("before", "killed", kill), ("after", "killed", kill), ("after", "lost", lose_the_answer)):
        for at in range(1_000):
            place = make()
            if not with_fault(place, Fault(at, when, then), work):
                break
            place.expel()  # its session is over
            work(place)
            yield f"{name} {when} effect {at}", place
    for at in range(1_000):
        place = make()

        def take_over(place: Place = place) -> None:
            place.at_effect = no_fault
            place.expel(hang=True)
            with suppress(TakenOverError):  # who hangs keeps the commands, in a folder
                work(place)

        if not with_fault(place, Fault(at, "before", take_over), work):
            break
        yield f"hung before effect {at}", place
        place.expel()
        work(place)
        yield f"hung before effect {at}, and a third one came", place


def lead(place: Place, *, more_commands: int = 3) -> None:
    """A leader that decides what nobody has decided yet, with a key of its own."""
    key = SigningKey.new()
    journal = place.journal(signing_key=key)
    head = journal.open()
    epoch = head.epoch + 1
    place.keys[epoch].append(key.public)
    journal.begin_epoch(epoch)
    for interval in INTERVALS:
        if head.last is None or head.last.interval < interval:
            commands = [
                replace(
                    UNLOAD, id=f"{interval}-{nth}", interval=interval, bundle=f"tenant/ns{nth}/0x00000000_0x80000000"
                )
                for nth in range(more_commands)
            ]
            made = entry(interval, *commands)
            journal.append(made, epoch=epoch, issued_at_ms=interval + epoch, before_commit=lambda: None)


def check_journal(place: Place, what: str) -> None:
    entries = place.entries()
    assert [each.interval for each in entries] == INTERVALS, what
    decided = {command.id for each in entries for command in each.decision.commands}
    events = [parse_event(value) for value in place.events()]
    issued = Counter(event.id for event in events if not isinstance(event, EpochEvent))
    assert issued == Counter(decided), what
    epochs = {int(each.headers["interval"]): int(each.headers["epoch"]) for each in decisions(place)}
    for event in events:
        if not isinstance(event, EpochEvent):
            assert event.epoch == epochs[event.data.interval], what
            assert event.time_ms == event.data.interval + event.epoch, what
            assert not why_not_believed(event, place.keys[event.epoch]), what


def decisions(place: Place) -> list:  # type: ignore[type-arg]
    log = place.connect()
    return [record for record in log.read("journal").read_to_end() if "interval" in record.headers]


def test_an_interval_is_decided_once_and_its_commands_are_issued_once(fresh: Fresh) -> None:
    for what, place in at_each_effect(fresh, lead):
        check_journal(place, what)


@pytest.mark.parametrize(("atomic", "seed"), MODES)
def test_commands_in_partitions_that_were_added_since_are_found(atomic: bool, seed: int) -> None:
    for at in range(1_000):
        place = MemoryPlace(atomic=atomic, seed=seed)
        if not with_fault(place, Fault(at, "after", kill), lead):
            return
        place.server.add_partitions("commands", 2)
        lead(place)
        check_journal(place, f"killed after effect {at}")


def test_commands_never_follow_a_newer_epoch_in_their_partition_but_those_of_the_decision_before_it(
    fresh: Fresh,
) -> None:
    for what, place in at_each_effect(fresh, lead):
        for partition in range(place.partitions):
            newest = 0
            for value in place.records("commands", partition):
                event = parse_event(value)
                assert event.epoch >= newest, what
                newest = max(newest, event.epoch)


def stop_all(place: Place) -> None:
    """`trimtab stop-all`: end the running leadership, whatever the entries hold."""
    journal = place.journal()
    journal.begin_epoch(journal.fence() + 1)


def test_who_ends_a_leadership_loses_no_command_that_was_decided(fresh: Fresh) -> None:
    for at in range(1_000):
        place = fresh()

        def end(place: Place = place) -> None:
            place.at_effect = no_fault
            stop_all(place)

        if not with_fault(place, Fault(at, "before", end), lead):
            return
        lead(place)
        check_journal(place, f"ended before effect {at}")


def collect(place: Place) -> None:
    """A collector that ends the intervals that nobody has ended yet."""
    log = place.log()
    log.lead(0)
    ticked = {arrived.head.interval for arrived in log.arrived()}
    for interval in INTERVALS:
        if interval not in ticked:
            log.tick(interval, {"broker:8080": None})


def check_ticks(place: Place, what: str) -> None:
    for topic in ("metrics", "results"):
        for partition in range(place.partitions):
            found = [read_object(value)["interval"] for value in place.records(topic, partition)]
            assert found == INTERVALS, f"{what}: {topic}/{partition}"


def test_an_interval_is_ticked_once_in_every_partition(fresh: Fresh) -> None:
    for what, place in at_each_effect(fresh, collect):
        check_ticks(place, what)


@pytest.mark.parametrize("seed", range(3))
def test_ticks_are_not_repeated_where_their_numbers_were_forgotten(seed: int) -> None:
    for at in range(1_000):
        place = MemoryPlace(atomic=False, seed=seed)
        if not with_fault(place, Fault(at, "after", kill), collect):
            return
        place.server.numbers.clear()
        collect(place)
        check_ticks(place, f"killed after effect {at}")


COMMANDS = [unload(f"tenant/ns{nth}/0x00000000_0x80000000", cluster=CLUSTER) for nth in range(5)]


def with_commands(place: Place) -> Place:
    """*place*, where commands were issued."""
    journal = place.journal()
    journal.open()
    journal.begin_epoch(1)
    for nth, command in enumerate(COMMANDS):
        made = entry(T + nth * PERIOD, replace(command, interval=T + nth * PERIOD))
        journal.append(made, epoch=1, issued_at_ms=T, before_commit=lambda: None)
    return place


def execute(place: Place) -> None:
    """An executor that carries out what it gets, two at a time, as controller.executor.loop does."""
    inbox = place.inbox()
    while taken := inbox.poll(2, 0.0):
        answers = []
        for delivery in taken:
            event = parse_event(delivery.value)
            memory = inbox.memory(delivery.partition)
            if isinstance(event, EpochEvent) or event.id in memory.answered:
                continue
            memory.answered.add(event.id)
            status = (
                "unknown" if event.id in memory.started else carried_out(inbox, place, delivery.partition, event.id)
            )
            value = as_bytes(result(id=event.id, status=status))
            answers.append(AnswerRecord(delivery.partition, "tenant/ns", value))
        inbox.answer(answers)
    inbox.close()


def carried_out(inbox: Inbox, place: Place, partition: int, command: str) -> str:
    inbox.begin(partition, command)
    place.acts.append(command)
    return "done"


def check_answers(place: Place, what: str) -> None:
    acts = Counter(place.acts)
    assert max(acts.values()) == 1, what
    answered = Counter(answered_command(value) for value in place.results())
    assert answered == Counter(command.id for command in COMMANDS), what
    statuses = {read_object(value)["id"]: read_object(value)["status"] for value in place.results()}
    assert all(command in acts for command, status in statuses.items() if status == "done"), what


def test_a_command_is_carried_out_once_at_most_and_answered_once(fresh: Fresh) -> None:
    for what, place in at_each_effect(lambda: with_commands(fresh()), execute):
        check_answers(place, what)


@pytest.mark.slow
def test_an_interrupted_pruning_keeps_what_is_needed(fresh: Fresh) -> None:
    def decided() -> Place:
        place = fresh()
        lead(place)
        return place

    def prune(place: Place) -> None:
        journal = place.journal()
        journal.open()
        journal.prune(committed=INTERVALS[-1], before=INTERVALS[-1] + PERIOD)

    for what, place in at_each_effect(decided, prune):
        assert place.entries()[-1].interval == INTERVALS[-1], what
        assert place.journal().open().last == place.entries()[-1], what
