"""What is told of moves whatever became of them stays what it is: figures of two releases can be compared.

The numbers are tests.small_worlds.digits of all moves that were audited, of changes of owners and of sums.
"""

from dataclasses import replace
from random import Random
from typing import Any, Final

from controller.audit.moves import MoveSums, StraightPlan
from controller.model.decision import Command
from controller.model.peak_history import MovePromise, PeakHistory
from tests.audits import SPACE, auditor, decided, interval, move, remembering
from tests.small_worlds import digits

BROKERS: Final = ("b-1", "b-2", "b-3", "b-4")
#: Two halves, the quarters of one of them, and a bundle of another namespace.
NAMES: Final = (
    f"{SPACE}/0x00000000_0x80000000",
    f"{SPACE}/0x00000000_0x40000000",
    f"{SPACE}/0x40000000_0x80000000",
    f"{SPACE}/0x80000000_0xffffffff",
    f"{SPACE}x/0x00000000_0xffffffff",
)
STATUSES: Final = ("done", "done", "failed", "unknown", "expired", "obsolete", "already_done", "skipped", "fenced")
STEPS: Final = 30


def commands_of(chance: Random, minute: int, owners: dict[str, str]) -> list[Command]:
    found = []
    for name in NAMES:
        if chance.random() < 0.15:
            source, destination = chance.sample(BROKERS, 2)
            if chance.random() < 0.85:
                source = owners[name]
            each = move(minute, name, source, destination if chance.random() < 0.9 else "")
            if chance.random() < 0.2:
                each = replace(each, mode="dry_run") if chance.random() < 0.5 else replace(each, action="split")
                each = replace(each, unload_after_split=chance.random() < 0.5)
            found.append(each)
    return found


def audited(seed: int) -> int:
    chance, audits, sums, straight = Random(seed), auditor(), MoveSums(), StraightPlan()
    owners = {name: chance.choice(BROKERS) for name in NAMES}
    rates = {name: chance.choice((0.0, 10.0, 100.0, 600.0)) for name in NAMES}
    usage: dict[str, float | None] = dict.fromkeys(BROKERS, 50.0)
    minute, open_, told = 0, list[Command](), list[Any]()
    for _ in range(STEPS):
        if chance.random() < 0.6:
            usage[chance.choice(BROKERS)] = chance.choice((None, 0.0, 2.0, 18.0, 50.0, 82.0, 100.0, 100.0))
        for each in open_:
            if chance.random() < 0.7 and each.destination:
                owners[each.bundle] = each.destination
        if chance.random() < 0.3:
            owners[chance.choice(NAMES)] = chance.choice(BROKERS)
        listed = {name: (owners[name], rates[name]) for name in NAMES if chance.random() < 0.85}
        results = {each.id: chance.choice(STATUSES) for each in open_ if chance.random() < 0.6}
        gone = chance.sample(BROKERS, chance.choice((0, 0, 0, 1)))
        commands = commands_of(chance, minute, owners)
        memory = None
        if chance.random() < 0.5:
            memory = remembering(*commands, *open_)
            promises = {
                each.bundle: MovePromise(
                    source=each.source, destination=each.destination, promised=0.5, source_before=0.7,
                    rounds=chance.choice((0, 0, 1)),
                )
                for each in commands
            }  # fmt: skip
            memory = replace(memory, shedder=PeakHistory(promises=promises))
        decision = decided(minute, *commands)
        if chance.random() < 0.1:
            audits.decided_unseen(decision)
        else:
            step = audits.take([interval(minute, usage, listed, results, gone=gone)], decision, memory)
            told.append(digits(step, audits.held))
            for settled in step.settled:
                sums.add(settled)
                straight.add(settled.bundle, settled.source.broker, settled.destination.broker)
        open_ = commands
        minute += chance.choice((1, 1, 1, 1, 2, 5, 29, 57, 60))
    for audit in audits.ended():
        sums.add(audit)
        told.append(digits(audit, audit.helped))
    return digits(told, sums, straight.not_needed)


AUDITED: Final = [
    60_334_077, 47_550_025, 42_776_062, 17_716_906, 91_756_704, 50_765_978, 69_249_070,
    2_982_752,
]  # fmt: skip


def test_the_same_is_told_of_every_move() -> None:
    assert [audited(seed) for seed in range(8)] == AUDITED
