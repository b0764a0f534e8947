"""Move only what has to move: members keep what they hold while they rebalance.

One change takes up to two rebalances.  In the first, members that hold more than their share are told what to stop; in
the second, what they stopped is new to the group and goes to those that hold least.  What a member that left held is
lost, and waits for a delay: a member that only restarts comes back in time and takes it over.

Two rules keep the group calm: nothing is taken away while lost resources wait, nor in two rebalances in a row.  A
resource that should have stopped and still runs is noticed at the next rebalance, and may be taken away at once.

Releases differ in how much is taken away and in who gets what was lost: see ``Release``.

Kafka Connect: org.apache.kafka.connect.runtime.distributed.IncrementalCooperativeAssignor
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, TypeVar

from controller.strategies.rebalance.group import (
    NOTHING,
    Assignment,
    ConnectorsAndTasks,
    Group,
    GroupAssignment,
    holders,
    repeated,
)

R = TypeVar("R")
_Work = dict[str, ConnectorsAndTasks]
#: "Holder" of what is deleted and not held by anybody.
_NOBODY: Final = ""


class Release(StrEnum):
    """Whose behaviour."""

    #: Once a member has nothing, takes away one member's share in all, from the first by name; what was lost goes to
    #: one newcomer.
    V2_6_0 = "2.6.0"
    #: Once a member has nothing, takes from each what it holds above the average, rounded up; what was lost is dealt
    #: out to all newcomers.
    V2_6_3 = "2.6.3"
    #: Takes from each what it holds above its share whenever the group is uneven; what was lost goes to those with
    #: least; a member that holds duplicates is told of its deletions too.
    TRIMTAB = "trimtab"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderMemory:
    """What the leader remembers of its last rebalance."""

    #: What it left running or gave out, and what it found missing.
    assigned: ConnectorsAndTasks = NOTHING
    lost: ConnectorsAndTasks = NOTHING
    #: What it told members to stop.
    revoked: ConnectorsAndTasks = NOTHING
    members: frozenset[str] = frozenset()
    generation: int = -1
    #: Whether it may take away for the sake of balance next time.
    can_revoke: bool = True
    #: When what is lost is given out, epoch ms; 0: nothing waits.
    scheduled_rebalance_ms: int = 0
    delay_ms: int = 0
    #: Members that had nothing while something waited, in the order they were seen.
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalCooperativeAssignor:
    """See the module docstring."""

    #: How long lost resources wait for their member, ms.  Kafka Connect: scheduled.rebalance.max.delay.ms
    scheduled_rebalance_max_delay_ms: int = 300_000
    release: Release = Release.V2_6_0

    def initial_memory(self) -> LeaderMemory:
        """The memory of a leader that has just started."""
        return LeaderMemory()

    def assign(self, group: Group, memory: LeaderMemory, now_ms: int) -> tuple[GroupAssignment, LeaderMemory]:
        """What each member is to start and to stop, and after which delay all of them join again.

        *now_ms* is epoch ms, no earlier than the rebalance that *memory* is of.
        """
        config = group.leader_config()
        if config is None:
            return group.mismatch(), memory
        held = {name: group.members[name] for name in sorted(group.members)}
        configured, active = config.resources(), ConnectorsAndTasks.union(held.values())
        previous = ConnectorsAndTasks.union([memory.assigned, memory.lost])
        if memory.generation != group.last_completed_generation:
            previous = NOTHING  # the last answer may never have reached the members
        if memory.revoked & active:
            previous, memory = active, replace(memory, can_revoke=True)
        deleted = previous - configured
        lost = previous - active - deleted
        new = configured - previous - active
        kept = {name: work - deleted for name, work in held.items()}

        stop = self._deleted_or_repeated(held, deleted)
        start, homeless, memory = self._settle_lost(lost, kept, memory, now_ms)
        revoked: _Work = {}
        if memory.can_revoke and memory.delay_ms == 0:
            revoked = self._revoke(kept, stop, active if self.release is not Release.TRIMTAB else configured)
        stop |= {name: stop.get(name, NOTHING) + work for name, work in revoked.items()}
        start = _deal(kept, start, new + homeless)

        stopped = sum(stop.values(), NOTHING)
        running = ConnectorsAndTasks.union([*kept.values(), *start.values()])
        memory = replace(
            memory,
            assigned=running - stopped,
            lost=lost,
            revoked=stopped,
            members=frozenset(held),
            generation=group.generation,
            can_revoke=memory.delay_ms == 0 and not revoked,
        )
        assignments = {name: Assignment(start=start[name], stop=stop.get(name, NOTHING)) for name in held}
        return GroupAssignment(offset=config.offset, assignments=assignments, delay_ms=memory.delay_ms), memory

    def _deleted_or_repeated(self, held: _Work, deleted: ConnectorsAndTasks) -> _Work:
        """What members are to stop since it is configured no more, or since others hold it too."""
        repetitions = holders(held, repeated(held.values()))
        stop = holders(held, deleted)
        unheld = deleted - ConnectorsAndTasks.union(held.values())
        if unheld:
            stop[_NOBODY] = unheld
        if self.release is Release.TRIMTAB:
            return {
                name: ConnectorsAndTasks.union([stop.get(name, NOTHING), repetitions.get(name, NOTHING)])
                for name in {**stop, **repetitions}
            }
        # In Kafka, the one takes the place of the other: such a member goes on with what was deleted.
        return stop | repetitions

    def _settle_lost(
        self, lost: ConnectorsAndTasks, kept: _Work, memory: LeaderMemory, now_ms: int
    ) -> tuple[_Work, ConnectorsAndTasks, LeaderMemory]:
        """What candidates start of *lost*, what of it is dealt out like new, and the delay of the rest."""
        nobody: _Work = dict.fromkeys(kept, NOTHING)
        calm = replace(memory, scheduled_rebalance_ms=0, delay_ms=0, candidates=())
        if not lost:
            return nobody, NOTHING, calm
        scheduled = memory.scheduled_rebalance_ms
        if scheduled <= 0 and memory.members <= kept.keys():
            return nobody, lost, memory  # nobody left: the last answer did not reach all of them
        if 0 < scheduled <= now_ms:
            present = [name for name in memory.candidates if name in kept]
            if not present or self.release is Release.TRIMTAB:
                return nobody, lost, calm
            if self.release is Release.V2_6_0:
                present = present[:1]
            return nobody | _in_turn(present, lost), NOTHING, calm
        idle = [name for name in kept if not kept[name] and name not in memory.candidates]
        longest = self.scheduled_rebalance_max_delay_ms
        delay = min(scheduled - now_ms, longest) if now_ms < scheduled else longest
        waiting = replace(
            memory,
            scheduled_rebalance_ms=now_ms + delay,
            delay_ms=delay,
            candidates=(*memory.candidates, *idle),
        )
        return nobody, NOTHING, waiting

    def _revoke(self, kept: _Work, stop: _Work, total: ConnectorsAndTasks) -> _Work:
        """What members are to stop so that others can have their share of *total*."""
        if self.release is Release.TRIMTAB:
            kept = {name: work - stop.get(name, NOTHING) for name, work in kept.items()}
        elif all(kept.values()) or not any(kept.values()):
            return {}
        connectors = self._excess([len(work.connectors) for work in kept.values()], len(total.connectors))
        tasks = self._excess([len(work.tasks) for work in kept.values()], len(total.tasks))
        revoked = {
            name: ConnectorsAndTasks(connectors=work.connectors[:of_connectors], tasks=work.tasks[:of_tasks])
            for (name, work), of_connectors, of_tasks in zip(kept.items(), connectors, tasks, strict=True)
        }
        return {name: work for name, work in revoked.items() if work}

    def _excess(self, counts: Sequence[int], total: int) -> list[int]:
        """How many of its *counts* each member gives up, *total* being all there is."""
        floor, over = divmod(total, len(counts))
        if self.release is Release.V2_6_3:
            ceiling = floor + (over > 0)
            return [max(0, count - ceiling) for count in counts]
        if self.release is Release.V2_6_0:
            given, budget = [], floor
            for count in counts:
                given.append(max(0, min(count - floor, budget)))
                budget -= given[-1]
            return given
        fullest = sorted(range(len(counts)), key=lambda i: -counts[i])
        share = [floor] * len(counts)
        for i in fullest[:over]:
            share[i] += 1
        return [max(0, count - most) for count, most in zip(counts, share, strict=True)]


def to_least_loaded(loads: Mapping[str, int], resources: Sequence[R]) -> dict[str, list[R]]:
    """Member -> which of *resources* it gets, each going to the member with least; equal ones take turns by name.

    The members of the answer are in the order of their *loads*, then names.  O(members + resources x log members).
    Kafka Connect: IncrementalCooperativeAssignor.assignConnectors, assignTasks
    """
    heap = sorted((load, name) for name, load in loads.items())
    given: dict[str, list[R]] = {name: [] for _, name in heap}
    # By their place in the first order, not by name: that is who comes first among equals later on.
    heap_of_places = [(load, place) for place, (load, _) in enumerate(heap)]
    for resource in resources:
        load, place = heap_of_places[0]
        given[heap[place][1]].append(resource)
        heapq.heapreplace(heap_of_places, (load + 1, place))
    return given


def _deal(kept: _Work, start: _Work, new: ConnectorsAndTasks) -> _Work:
    """*start*, and *new* besides: to those that hold least, connectors and tasks each for themselves."""
    connectors = to_least_loaded(
        {name: len(work.connectors) + len(start[name].connectors) for name, work in kept.items()}, new.connectors
    )
    tasks = to_least_loaded({name: len(work.tasks) + len(start[name].tasks) for name, work in kept.items()}, new.tasks)
    return {
        name: before + ConnectorsAndTasks(connectors=tuple(connectors[name]), tasks=tuple(tasks[name]))
        for name, before in start.items()
    }


def _in_turn(names: Sequence[str], work: ConnectorsAndTasks) -> _Work:
    """*work* dealt out to *names* in turn, connectors and tasks each from the first on."""
    step = len(names)
    return {
        name: ConnectorsAndTasks(connectors=work.connectors[turn::step], tasks=work.tasks[turn::step])
        for turn, name in enumerate(names)
    }
