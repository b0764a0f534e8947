"""Move only what has to move: members keep what they hold while they rebalance.

One change takes up to two rebalances.  In the first, members that hold more than their share are told what to stop; in
the second, what they stopped is new to the group and goes to those that hold least.  What a member that left held is
lost, and waits for a delay: a member that only restarts comes back in time and takes it over.

Nothing is taken away while lost resources wait.  Nor is it in two rebalances in a row: releases 2.6 then take nothing
away, which may leave the group uneven; later ones do it after a wait that grows with each further time.

Releases differ in how much is taken away and in who gets what was lost: see ``Release``.

Kafka Connect: org.apache.kafka.connect.runtime.distributed.IncrementalCooperativeAssignor
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from controller.strategies.rebalance.dealing import deal, in_turn
from controller.strategies.rebalance.group import (
    NOTHING,
    Assignment,
    ConnectorsAndTasks,
    Group,
    GroupAssignment,
    holders,
    repeated,
)
from controller.strategies.rebalance.revocation import (
    above_the_average,
    above_the_share_by_load,
    above_the_share_by_name,
    back_off_ms,
    one_share_in_all,
)

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
    #: Takes from each what it holds above its share whenever the group is uneven, and again and again only after a
    #: wait (KAFKA-12495); what was lost is dealt out to all newcomers, and without a delay at once (KAFKA-15693).
    V3_9 = "3.9"
    #: As 3.9, but what was lost goes to those with least, and a wait ends only when it is over.
    TRIMTAB = "trimtab"

    @property
    def later(self) -> bool:
        """Whether it waits before it takes away again, and deals out around what it takes away."""
        return self in (Release.V3_9, Release.TRIMTAB)


_EXCESS: Final = {
    Release.V2_6_0: one_share_in_all,
    Release.V2_6_3: above_the_average,
    Release.V3_9: above_the_share_by_name,
    Release.TRIMTAB: above_the_share_by_load,
}


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
    #: Releases 2.6: whether it may take away for the sake of balance next time.
    can_revoke: bool = True
    #: Later ones: whether it took away for the sake of balance last time, and how often that had to wait since.
    revoked_in_previous: bool = False
    successive_revocations: int = 0
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
        running = _without(kept, stop) if self.release.later else kept
        start, homeless, memory = self._settle_lost(lost, running, memory, now_ms)
        balance = configured if self.release.later else active
        revoked, memory = self._revoke(_with(running, start) if self.release.later else kept, balance, memory, now_ms)
        stop |= {name: stop.get(name, NOTHING) + work for name, work in revoked.items()}
        if self.release.later:
            running, start = _without(running, revoked), _without(start, revoked)
        start = deal(running, start, new + homeless)

        stopped = ConnectorsAndTasks.union(stop.values()) if self.release.later else sum(stop.values(), NOTHING)
        memory = replace(
            memory,
            assigned=ConnectorsAndTasks.union([*running.values(), *start.values()]) - stopped,
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
        if self.release.later:
            return {
                name: ConnectorsAndTasks.union([stop.get(name, NOTHING), repetitions.get(name, NOTHING)])
                for name in {**stop, **repetitions}
            }
        unheld = deleted - ConnectorsAndTasks.union(held.values())
        if unheld:
            stop[_NOBODY] = unheld
        # In 2.6, the one takes the place of the other: such a member goes on with what was deleted.
        return stop | repetitions

    def _settle_lost(
        self, lost: ConnectorsAndTasks, running: _Work, memory: LeaderMemory, now_ms: int
    ) -> tuple[_Work, ConnectorsAndTasks, LeaderMemory]:
        """What candidates start of *lost*, what of it is dealt out like new, and the delay of the rest.

        In later releases the delay may also be one of balancing, with nothing lost.
        """
        nobody: _Work = dict.fromkeys(running, NOTHING)
        calm = replace(memory, scheduled_rebalance_ms=0, delay_ms=0, candidates=())
        if not lost and not memory.revoked_in_previous:
            return nobody, NOTHING, calm
        scheduled, longest = memory.scheduled_rebalance_ms, self.scheduled_rebalance_max_delay_ms
        if scheduled <= 0 and memory.members <= running.keys():
            return nobody, lost, memory  # nobody left: the last answer did not reach all of them
        if self.release.later and longest == 0:
            return nobody, lost, memory
        if 0 < scheduled <= now_ms:
            calm = replace(calm, revoked_in_previous=False)
            present = [name for name in memory.candidates if name in running]
            if not present or self.release is Release.TRIMTAB:
                return nobody, lost, calm
            if self.release is Release.V2_6_0:
                present = present[:1]
            return nobody | in_turn(present, lost), NOTHING, calm
        if not lost and scheduled <= 0 and self.release is Release.TRIMTAB:
            return nobody, NOTHING, memory  # a member left that held nothing: there is nothing to wait for
        return nobody, NOTHING, self._waiting(lost, running, memory, now_ms)

    def _waiting(self, lost: ConnectorsAndTasks, running: _Work, memory: LeaderMemory, now_ms: int) -> LeaderMemory:
        """*memory* in a wait: what is left of it, or all of it where it begins now."""
        idle = [name for name in running if not running[name] and name not in memory.candidates]
        scheduled, longest = memory.scheduled_rebalance_ms, self.scheduled_rebalance_max_delay_ms
        delay = min(scheduled - now_ms, longest) if now_ms < scheduled else longest
        return replace(
            memory,
            scheduled_rebalance_ms=now_ms + delay,
            delay_ms=delay,
            candidates=(*memory.candidates, *idle),
            # In 3.9, the next rebalance may take away again even if it comes before the wait is over.
            revoked_in_previous=memory.revoked_in_previous and not lost and self.release is Release.TRIMTAB,
        )

    def _revoke(
        self, running: _Work, total: ConnectorsAndTasks, memory: LeaderMemory, now_ms: int
    ) -> tuple[_Work, LeaderMemory]:
        """What members are to stop so that others can have their share of *total*, and the wait before that."""
        if memory.delay_ms != 0:
            return {}, memory
        if not self.release.later:
            uneven = any(running.values()) and not all(running.values())
            return (self._excess(running, total) if uneven and memory.can_revoke else {}), memory
        wanted = self._excess(running, total) if total else {}
        if not wanted:
            waits = memory.successive_revocations if not memory.revoked_in_previous else 0
            return {}, replace(memory, revoked_in_previous=False, successive_revocations=waits)
        if not memory.revoked_in_previous:
            return wanted, replace(memory, revoked_in_previous=True)
        successive = memory.successive_revocations + 1
        memory = replace(memory, successive_revocations=successive)
        delay = back_off_ms(successive, self.scheduled_rebalance_max_delay_ms)
        if delay == 0:
            return wanted, memory
        return {}, replace(memory, delay_ms=delay, scheduled_rebalance_ms=now_ms + delay)

    def _excess(self, running: _Work, total: ConnectorsAndTasks) -> _Work:
        """What each member holds too much of *total*, the first in its own order."""
        excess = _EXCESS[self.release]
        connectors = excess([len(work.connectors) for work in running.values()], len(total.connectors))
        tasks = excess([len(work.tasks) for work in running.values()], len(total.tasks))
        revoked = {
            name: ConnectorsAndTasks(connectors=work.connectors[:of_connectors], tasks=work.tasks[:of_tasks])
            for (name, work), of_connectors, of_tasks in zip(running.items(), connectors, tasks, strict=True)
        }
        return {name: work for name, work in revoked.items() if work}


def _with(work: _Work, more: _Work) -> _Work:
    return {name: held + more[name] for name, held in work.items()}


def _without(work: Mapping[str, ConnectorsAndTasks], taken: Mapping[str, ConnectorsAndTasks]) -> _Work:
    return {name: held - taken.get(name, NOTHING) for name, held in work.items()}
