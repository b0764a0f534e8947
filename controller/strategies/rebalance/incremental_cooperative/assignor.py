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
from typing import Final

from controller.strategies.common.worker_group import (
    NOTHING,
    ConnectorsAndTasks,
    Group,
    GroupAssignment,
    MemberAssignment,
    holders,
    repeated,
)
from controller.strategies.rebalance.incremental_cooperative.dealing import deal
from controller.strategies.rebalance.incremental_cooperative.leader import LeaderMemory, Release
from controller.strategies.rebalance.incremental_cooperative.lost_work import compared, settled
from controller.strategies.rebalance.incremental_cooperative.revocation import (
    above_the_average,
    above_the_share_by_load,
    above_the_share_by_name,
    back_off_ms,
    one_share_in_all,
)

_Work = dict[str, ConnectorsAndTasks]
#: "Holder" of what is deleted and not held by anybody.
_NOBODY: Final = ""


_EXCESS: Final = {
    Release.V2_6_0: one_share_in_all,
    Release.V2_6_3: above_the_average,
    Release.V3_9: above_the_share_by_name,
    Release.TRIMTAB: above_the_share_by_load,
}


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
        reported = {name: self._as_read(group.members[name]) for name in sorted(group.members)}
        configured = config.resources()
        comparison, memory = compared(reported, configured, memory, group.last_completed_generation, self.release)
        configured_work = {name: work - comparison.deleted for name, work in reported.items()}
        stop = self._deleted_or_repeated(reported, comparison.deleted)
        running = _without(configured_work, stop) if self.release.later else configured_work
        longest = self.scheduled_rebalance_max_delay_ms
        lost = settled(comparison.lost, running, memory, now_ms, release=self.release, longest_ms=longest)
        start, balance = lost.taken_over, configured if self.release.later else comparison.active
        running_then = _with(running, start) if self.release.later else configured_work
        revoked, memory = self._revoke(running_then, balance, lost.memory, now_ms)
        stop |= {name: stop.get(name, NOTHING) + work for name, work in revoked.items()}
        if self.release.later:
            running, start = _without(running, revoked), _without(start, revoked)
        start = deal(running, start, comparison.new + lost.dealt_out)

        stopped = ConnectorsAndTasks.union(stop.values()) if self.release.later else sum(stop.values(), NOTHING)
        memory = replace(
            memory,
            assigned=ConnectorsAndTasks.union([*running.values(), *start.values()]) - stopped,
            lost=comparison.lost,
            revoked=stopped,
            members=frozenset(reported),
            generation=group.generation,
            can_revoke=memory.delay_ms == 0 and not revoked,
        )
        assignments = {
            name: MemberAssignment(start=start[name], stop=_as_sent(stop.get(name, NOTHING))) for name in reported
        }
        return GroupAssignment(offset=config.offset, assignments=assignments, delay_ms=memory.delay_ms), memory

    def _as_read(self, work: ConnectorsAndTasks) -> ConnectorsAndTasks:
        """What a member says it holds: later releases read each once, however often the member names it."""
        return work.each_once() if self.release.later else work

    def _deleted_or_repeated(self, reported: _Work, deleted: ConnectorsAndTasks) -> _Work:
        """What members are to stop since it is configured no more, or since others hold it too."""
        repetitions = holders(reported, repeated(reported.values()))
        stop = holders(reported, deleted)
        if self.release.later:
            return {
                name: ConnectorsAndTasks.union([stop.get(name, NOTHING), repetitions.get(name, NOTHING)])
                for name in {**stop, **repetitions}
            }
        unheld = deleted - ConnectorsAndTasks.union(reported.values())
        if unheld:
            stop[_NOBODY] = unheld
        # In 2.6, the one takes the place of the other: such a member goes on with what was deleted.
        return stop | repetitions

    def _revoke(
        self, running: _Work, total: ConnectorsAndTasks, memory: LeaderMemory, now_ms: int
    ) -> tuple[_Work, LeaderMemory]:
        """What members are to stop so that others can have their share of *total*, and the wait before that."""
        if memory.delay_ms != 0:
            return {}, memory
        if not self.release.later:
            uneven = any(running.values()) and not all(running.values())
            return (self._excess(running, total) if uneven and memory.can_revoke else {}), memory
        excess = self._excess(running, total) if total else {}
        if not excess:
            waits = memory.successive_revocations if not memory.revoked_in_previous else 0
            return {}, replace(memory, revoked_in_previous=False, successive_revocations=waits)
        if not memory.revoked_in_previous:
            return excess, replace(memory, revoked_in_previous=True)
        successive = memory.successive_revocations + 1
        memory = replace(memory, successive_revocations=successive)
        delay = back_off_ms(successive, self.scheduled_rebalance_max_delay_ms)
        if delay == 0:
            return excess, memory
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


def _as_sent(stop: ConnectorsAndTasks) -> ConnectorsAndTasks:
    """*stop* as the answer has it: a connector once.  Releases 2.6 may name a task twice, for each reason to stop it.

    Kafka Connect: ExtendedAssignment.revokedAsMap
    """
    return replace(stop, connectors=tuple(dict.fromkeys(stop.connectors)))


def _with(work: _Work, more: Mapping[str, ConnectorsAndTasks]) -> _Work:
    return {name: own + more[name] for name, own in work.items()}


def _without(work: Mapping[str, ConnectorsAndTasks], removed: Mapping[str, ConnectorsAndTasks]) -> _Work:
    return {name: own - removed.get(name, NOTHING) for name, own in work.items()}
