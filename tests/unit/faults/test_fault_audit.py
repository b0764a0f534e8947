"""The audit of the fault tests finds what it is there for, and nothing at a site where all is well."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from controller.model.controls import Controls
from controller.model.decision import Command, Decision
from controller.model.journal import JournalEntry
from controller.model.memory import Memory
from controller.model.strategy_memory import NoMemory
from controller.wire.base import validate
from controller.wire.commands import CommandEvent, command_event, epoch_event, parse_event
from controller.wire.journal import encode_entry
from controller.wire.results import Result
from controller.wire.rows import Located
from tests.commands import B, C, unload
from tests.faults.audit import Findings, audit, differences
from tests.faults.log import Answered, Decided
from tests.faults.prove import p95
from tests.faults.pulsar import Act
from tests.records import as_bytes, result

FIRST = unload("tenant/ns/0x00000000_0x40000000", id="first")
SECOND = unload("tenant/ns/0x40000000_0x80000000", id="second")
PERIOD = 60_000


@dataclass
class CommandHistory:
    """A log in lists."""

    decided: list[Decided]
    partitions: list[list[CommandEvent]]
    answered: list[Answered]

    def decisions(self) -> list[Decided]:
        return self.decided

    def events(self) -> list[list[CommandEvent]]:
        return self.partitions

    def answers(self) -> list[Answered]:
        return self.answered

    def inputs(self) -> list[Located]:
        return []

    def dead_letters(self) -> int:
        return 0


def decided(nth: int, *commands: Command, epoch: int = 1) -> Decided:
    interval = FIRST.interval + nth * PERIOD
    memory = Memory(seed=0, last_interval=interval, samples=1, shedder=NoMemory(), placement=NoMemory())
    entry = JournalEntry(
        cluster="lab",
        decision=Decision(interval=interval, commands=commands, summary=""),
        memory=memory,
        controls=Controls(mode="active"),
    )
    return Decided(entry, encode_entry(entry), epoch, interval)


def began(epoch: int) -> CommandEvent:
    return parse_event(epoch_event("lab", epoch, 0))


def issued(command: Command, epoch: int = 1) -> CommandEvent:
    return parse_event(command_event(command, epoch, 0))


def answered(command: Command, status: str = "done") -> Answered:
    return Answered(validate(Result, as_bytes(result(id=command.id, status=status))), 0)


def moved(command: Command) -> Act:
    return Act(command.bundle, command.source, command.destination)


def two_leaderships() -> tuple[CommandHistory, list[Act]]:
    """Two commands, each of a leadership of its own, issued, carried out and answered."""
    log = CommandHistory(
        decided=[decided(0, FIRST), decided(1, SECOND, epoch=2)],
        partitions=[[began(1), issued(FIRST), began(2)], [began(1), began(2), issued(SECOND, 2)]],
        answered=[answered(FIRST), answered(SECOND)],
    )
    return log, [moved(FIRST), moved(SECOND)]


def test_nothing_is_found_where_all_is_well() -> None:
    log, acts = two_leaderships()
    assert audit(log, acts) == Findings()
    assert not audit(log, acts)


def test_a_command_that_was_never_issued_or_never_answered_is_lost() -> None:
    log, acts = two_leaderships()
    log.partitions[0].pop(1)
    assert audit(log, acts).lost == ["command first was decided and is not issued"]
    log, acts = two_leaderships()
    log.answered.pop()
    assert audit(log, acts).lost == ["command second has no result"]


def test_what_comes_twice_is_named() -> None:
    log, acts = two_leaderships()
    log.decided.insert(1, decided(0))
    assert audit(log, acts).twice == [f"interval {FIRST.interval}: 2 times"]
    log, acts = two_leaderships()
    log.partitions[1].append(issued(SECOND, 2))
    assert "command second: 2 times" in audit(log, acts).twice
    log, acts = two_leaderships()
    log.answered.append(answered(FIRST, "already_done"))
    assert "result of first: 2 times" in audit(log, acts).twice


@pytest.mark.parametrize("status", ["done", "already_done", "unknown"])
def test_an_act_for_which_no_command_accounts_was_done_twice(status: str) -> None:
    log, acts = two_leaderships()
    log.answered[0] = answered(FIRST, status)
    assert not audit(log, acts)
    [found] = audit(log, [*acts, moved(FIRST)]).twice
    assert found.startswith(f"{FIRST.bundle} was moved to {B} 2 times")


@pytest.mark.parametrize("status", ["fenced", "expired", "obsolete", "failed"])
def test_an_act_on_a_command_that_was_refused_is_found(status: str) -> None:
    log, acts = two_leaderships()
    log.answered[0] = answered(FIRST, status)
    assert audit(log, acts).twice
    assert not audit(log, acts[1:])


def test_a_move_that_real_brokers_turned_elsewhere_is_no_second_one() -> None:
    log, acts = two_leaderships()
    log.answered[0] = answered(FIRST, "failed")
    assert not audit(log, acts, obeyed=False)
    assert audit(log, [*acts, moved(FIRST)], obeyed=False).twice


def test_an_act_that_nobody_asked_for_is_found() -> None:
    log, acts = two_leaderships()
    assert audit(log, [*acts, Act(FIRST.bundle, B, C)]).twice


def test_an_answer_that_is_not_true_is_wrong() -> None:
    log, acts = two_leaderships()
    [found] = audit(log, acts[:1]).wrong
    assert found == f"1 answers say that {SECOND.bundle} was moved to {B}; it was 0 times"


def test_a_move_to_where_it_was_is_wrong() -> None:
    log, acts = two_leaderships()
    acts[0] = Act(FIRST.bundle, B, B)
    assert audit(log, acts).wrong == [f"{FIRST.bundle} was moved to where it was: {B}"]


def test_a_command_that_nobody_decided_is_wrong() -> None:
    log, acts = two_leaderships()
    stray = replace(FIRST, id="stray")
    log.partitions[0].append(issued(stray, 2))
    log.answered.append(answered(stray, "obsolete"))
    assert audit(log, acts).wrong == ["command stray is in no decision"]


def test_a_command_of_a_dead_epoch_behind_the_newer_one_is_wrong() -> None:
    log, acts = two_leaderships()
    log.partitions[0].reverse()
    assert audit(log, acts).wrong == [
        "trimtab.unload first of epoch 1 lies behind epoch 2",
        "trimtab.epoch epoch/1 of epoch 1 lies behind epoch 2",
    ]


def test_a_decision_of_a_dead_epoch_and_one_out_of_order_are_wrong() -> None:
    log, acts = two_leaderships()
    log.decided.append(decided(2, epoch=1))
    assert audit(log, acts).wrong == [f"interval {FIRST.interval + 2 * PERIOD} is decided in epoch 1, after one in 2"]
    log, acts = two_leaderships()
    log.decided.append(decided(-1, epoch=2))
    assert audit(log, acts).wrong == [f"interval {FIRST.interval - PERIOD} is decided after {FIRST.interval + PERIOD}"]


def test_a_journal_that_does_not_follow_from_the_log_is_told_from_one_that_does() -> None:
    journal = [decided(0, FIRST), decided(1, SECOND)]
    values: Sequence[bytes] = [each.value for each in journal]
    assert differences(journal, values) == []
    assert differences(journal, [values[0], decided(1).value]) == [
        f"interval {FIRST.interval + PERIOD} is decided otherwise"
    ]
    assert differences(journal, values[:1]) == ["2 intervals are decided instead of 1"]


def test_p95_is_one_of_the_values_and_few_are_above() -> None:
    assert p95([3.0]) == 3.0
    assert p95([1.0, 2.0]) == 2.0
    assert p95([float(n) for n in range(1, 21)]) == 19.0
    assert p95([float(n) for n in range(100, 0, -1)]) == 95.0
