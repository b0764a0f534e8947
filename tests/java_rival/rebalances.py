"""Random groups of Kafka Connect workers, and trimtab's answers beside those of Kafka Connect's class."""

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Final

from controller.strategies.common.worker_group import (
    ConfigSnapshot,
    ConnectorsAndTasks,
    ConnectorTaskId,
    Group,
    GroupAssignment,
    MemberAssignment,
)
from controller.strategies.rebalance.incremental_cooperative import IncrementalCooperativeAssignor, Release
from tests.java_rival.asked import PlanRequest

#: Java goes through hash sets of single letters from a on, of which there are no more than twelve, in their order.
_MEMBERS: Final = "abcdefgh"
_CONNECTORS: Final = "pqrstu"
_ROUNDS: Final = 7


def rebalances(release: Release, random: Random) -> Iterator[PlanRequest]:
    """The rebalances of a random group under one leader: members come, go, and miss answers."""
    longest = random.choice((0, 1, 1000, 300_000))
    assignor = IncrementalCooperativeAssignor(scheduled_rebalance_max_delay_ms=longest, release=release)
    yield PlanRequest(f"new {longest}", ("new",))
    memory, now, generation, completed = assignor.initial_memory(), 1_000_000, 1, -1
    configured = {name: random.randint(0, 6) for name in random.sample(_CONNECTORS, random.randint(1, 5))}
    held = dict.fromkeys(sorted(random.sample(_MEMBERS, random.randint(1, 4))), ConnectorsAndTasks())
    for _ in range(random.randint(2, _ROUNDS)):
        group = Group(
            members=held,
            configured=ConfigSnapshot(connectors=configured),
            generation=generation,
            last_completed_generation=completed,
        )
        found, memory = assignor.assign(group, memory, now)
        yield PlanRequest(_line(now, group), (_answer(found),))
        held = _changed(random, {name: _after(random, work, found.assignments[name]) for name, work in held.items()})
        configured = _reconfigured(random, configured)
        completed = generation if random.random() < 0.93 else random.randint(-1, generation)
        generation += random.randint(1, 2)
        now += random.choice((1, 500, found.delay_ms, found.delay_ms + 1, longest * 2))


def _after(random: Random, work: ConnectorsAndTasks, told: MemberAssignment) -> ConnectorsAndTasks:
    """What a member holds next: it seldom misses its answer, and may hold something twice."""
    if random.random() < 0.1:
        return work
    held = (work - told.stop) + told.start
    if random.random() < 0.3:
        held = ConnectorsAndTasks(
            connectors=tuple(random.sample(held.connectors, len(held.connectors))),
            tasks=tuple(random.sample(held.tasks, len(held.tasks))),
        )
    if random.random() < 0.05:
        held += ConnectorsAndTasks(connectors=held.connectors[:1], tasks=held.tasks[:2])
    return held


def _changed(random: Random, held: Mapping[str, ConnectorsAndTasks]) -> dict[str, ConnectorsAndTasks]:
    """Members leave and join, and some say that they hold what others hold, too."""
    left = {name: work for name, work in held.items() if random.random() > 0.12}
    left = left or dict(held)
    for name in random.sample(_MEMBERS, random.choice((0, 0, 1, 2))):
        left.setdefault(name, ConnectorsAndTasks())
    if random.random() < 0.15:
        one, other = random.choice(sorted(left)), random.choice(sorted(left))
        if one != other:
            work = left[other]
            left[one] += ConnectorsAndTasks(
                connectors=_some(random, work.connectors), tasks=tuple(_some(random, work.tasks))
            )
    return dict(sorted(left.items()))


def _some(random: Random, of: Sequence[str] | Sequence[ConnectorTaskId]) -> tuple:  # type: ignore[type-arg]
    return tuple(random.sample(of, random.randint(0, len(of))))


def _reconfigured(random: Random, configured: Mapping[str, int]) -> dict[str, int]:
    kept = {name: tasks for name, tasks in configured.items() if random.random() > 0.1}
    for name in random.sample(_CONNECTORS, random.choice((0, 0, 0, 1))):
        kept[name] = random.randint(0, 6)
    return kept


def _line(now: int, group: Group) -> str:
    words: list[object] = ["round", now, group.generation, group.last_completed_generation]
    connectors = group.configured.connectors
    words += [len(connectors), *(word for item in sorted(connectors.items()) for word in item), len(group.members)]
    for name, work in group.members.items():
        words += [name, len(work.connectors), *work.connectors, len(work.tasks), *work.tasks]
    return " ".join(map(str, words))


def _answer(found: GroupAssignment) -> str:
    words: list[object] = [found.delay_ms]
    for name, one in found.assignments.items():
        words.append(name)
        for part in (one.start.connectors, one.start.tasks, one.stop.connectors, one.stop.tasks):
            words += [len(part), *sorted(map(str, part))]
    return " ".join(map(str, words))
