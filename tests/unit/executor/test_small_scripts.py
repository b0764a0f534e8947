"""How commands end, whatever the cluster says at each look and act, stays what it is: an act is never done twice.

The numbers are tests.small_worlds.digits of the outcomes of many scripts, and of the answers that single looks give.
"""

from dataclasses import replace
from random import Random
from typing import Any, Final, Self

from controller.adapters.pulsar.admin import PulsarError
from controller.executor.attempt import carry_out
from controller.executor.judge import Answer, Failure, Observation, after, before, children, refusal
from controller.model.decision import Command
from tests.commands import QUARTERS, A, B, C, T, split, unload
from tests.small_worlds import digits, logged

BOUNDARIES: Final = (QUARTERS, QUARTERS, (), (0, 0x40000000, 0x60000000, 0x80000000, 0xFFFFFFFF), (0, 0xFFFFFFFF))
STATUSES: Final = (0, 400, 404, 409, 412, 429, 499, 500, 502, 503, 504)


def command_of(chance: Random) -> Command:
    if chance.random() < 0.4:
        algorithm = chance.choice(("specified_positions_divide", "range_equally_divide", "topic_count_equally_divide"))
        cuts = chance.choice(((), (0x60000000,), (0x50000000, 0x60000000), (0x40000000,), (0x80000000,)))
        return split(algorithm=algorithm, boundaries=cuts)
    return unload(destination=chance.choice((B, B, "", A)), mode=chance.choice(("active", "active", "dry_run")))


def seen(chance: Random) -> Observation:
    return Observation(boundaries=chance.choice(BOUNDARIES), owner=chance.choice((A, A, B, C, "")))


def error(chance: Random) -> PulsarError:
    return PulsarError(
        "no",
        status=chance.choice(STATUSES),
        sent=chance.random() < 0.6,
        away=chance.random() < 0.4,
        wait_seconds=chance.choice((0.0, 3.0, 30.0, 31.0)),
    )


class ByChance:
    """A cluster in which anything can be seen, or go wrong, at any time."""

    def __init__(self, chance: Random) -> None:
        self.chance, self.told = chance, list[str]()

    def within(self, _: float) -> Self:
        return self

    def not_active(self, command: Command) -> tuple[str, ...]:
        self.told.append("who")
        return (command.source, command.destination)[: self.chance.choice((0,) * 20 + (1, 2))]

    def look(self, _: Command) -> Observation:
        self.told.append("look")
        if self.chance.random() < 0.3:
            raise error(self.chance)
        return seen(self.chance)

    def look_after(self, command: Command) -> Observation:
        self.told.append("after")
        return self.look(command)

    def act(self, _: Command) -> None:
        self.told.append("act")
        if self.chance.random() < 0.5:
            raise error(self.chance)


def carried_out(seed: int) -> int:
    chance, told = Random(seed), list[Any]()
    for _ in range(60):
        cluster, pauses, waits = ByChance(chance), list[float](), [chance.random() < 0.5 for _ in range(4)]
        with logged("controller.executor") as lines:
            outcome = carry_out(
                command_of(chance),
                cluster,
                may_act=lambda: Answer(status="fenced") if chance.random() < 0.1 else None,
                may_wait=lambda waits=waits: bool(waits) and waits.pop(),  # type: ignore[misc]
                maybe_begun=chance.random() < 0.2,
                dry_run=chance.random() < 0.1,
                most_attempts=chance.choice((1, 2, 3)),
                pause_seconds=0.5,
                sleep=pauses.append,
            )
        answer = outcome.answer
        told.append([answer.status, bool(answer.detail), digits(outcome), cluster.told, pauses, lines])
    return digits(told)


def judged(seed: int) -> int:
    chance, told = Random(seed), list[Any]()
    for _ in range(200):
        command, look = command_of(chance), seen(chance)
        failure = None
        if chance.random() < 0.7:
            status, sent = chance.choice(STATUSES), chance.random() < 0.5
            failure = Failure(detail="no", status=status, sent=sent, away=chance.random() < 0.3)
        begun, dry = chance.random() < 0.3, chance.random() < 0.3
        told += [before(command, look, maybe_begun=begun, dry_run=dry), after(command, look, failure)]
        bundle = chance.choice((command.bundle, "pulsar/system/0x00000000_0xffffffff", "own/ns/0x00000000_0xffffffff"))
        now_ms, epoch = T + 300_000 + chance.choice((-1, 0, 1)), chance.choice((2, 3, 4))
        told.append(
            refusal(
                replace(command, bundle=bundle), epoch=epoch, newest_epoch=3, now_ms=now_ms, own_namespaces=("own/ns",)
            )
        )
        told.append(children(command))
    return digits(told)


CARRIED_OUT: Final = 18_821_545
JUDGED: Final = 42_328_829


def test_commands_end_in_the_same_way() -> None:
    assert digits([carried_out(seed) for seed in range(14)]) == CARRIED_OUT


def test_looks_at_the_cluster_are_judged_in_the_same_way() -> None:
    assert digits([judged(seed) for seed in range(6)]) == JUDGED
