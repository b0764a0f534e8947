"""Work of a member that left, and who gets it when.

Lost work waits for a delay: a member that only restarts comes back in time and takes it over.  After the delay it goes
to members that had nothing, or is dealt out like new work; that depends on the release.

Kafka Connect: IncrementalCooperativeAssignor.handleLostAssignments
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from controller.strategies.common.worker_group import NOTHING, ConnectorsAndTasks
from controller.strategies.rebalance.incremental_cooperative.dealing import in_turn
from controller.strategies.rebalance.incremental_cooperative.leader import LeaderMemory, Release


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What the members hold, compared with the leader's last answer and with what is configured."""

    #: What the members hold together, each resource once.
    active: ConnectorsAndTasks
    #: Assigned last time, and no longer configured.
    deleted: ConnectorsAndTasks
    #: Assigned last time and configured, but nobody holds it.
    lost: ConnectorsAndTasks
    #: Configured, but neither assigned last time nor held by anybody.
    new: ConnectorsAndTasks


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The treatment of lost work in one rebalance."""

    #: Member -> what it takes over.
    taken_over: Mapping[str, ConnectorsAndTasks]
    #: What is dealt out like new work.
    dealt_out: ConnectorsAndTasks
    #: With the delay of the rest.
    memory: LeaderMemory


def compared(
    members: Mapping[str, ConnectorsAndTasks],
    configured: ConnectorsAndTasks,
    memory: LeaderMemory,
    last_completed_generation: int,
    release: Release = Release.V2_6_0,
) -> tuple[Compared, LeaderMemory]:
    """Compare what *members* hold with what *memory* assigned to them and with what is *configured*.

    Kafka Connect's leader takes only what it assigned for deleted: a new leader lets deleted work run until the next
    rebalance.  trimtab's also looks at what the members run.

    The memory comes back, too: where members still hold what they were told to stop, they may be told again.
    """
    active = ConnectorsAndTasks.union(members.values())
    previous = ConnectorsAndTasks.union([memory.assigned, memory.lost])
    if memory.generation != last_completed_generation:
        previous = NOTHING  # the last answer may never have reached the members
    if memory.revoked & active:
        previous, memory = active, replace(memory, can_revoke=True)
    assigned = ConnectorsAndTasks.union([previous, active]) if release is Release.TRIMTAB else previous
    deleted = assigned - configured
    comparison = Compared(
        active=active, deleted=deleted, lost=previous - active - deleted, new=configured - previous - active
    )
    return comparison, memory


def settled(
    lost: ConnectorsAndTasks,
    running: Mapping[str, ConnectorsAndTasks],
    memory: LeaderMemory,
    now_ms: int,
    *,
    release: Release,
    longest_ms: int,
) -> Settled:
    """Who takes over *lost* work, given what each member is *running*; *longest_ms* is the delay of lost work.

    In releases from 3.9 on the delay may also be one of balancing, with nothing lost.
    """

    nobody = dict.fromkeys(running, NOTHING)

    def so(dealt_out: ConnectorsAndTasks, memory: LeaderMemory) -> Settled:
        return Settled(taken_over=nobody, dealt_out=dealt_out, memory=memory)

    calm = replace(memory, scheduled_rebalance_ms=0, delay_ms=0, candidates=())
    if not lost and not memory.revoked_in_previous:
        return so(NOTHING, calm)
    scheduled = memory.scheduled_rebalance_ms
    if scheduled <= 0 and memory.members <= running.keys():
        return so(lost, memory)  # nobody left: the last answer did not reach all of them
    if release.later and longest_ms == 0:
        return so(lost, memory)
    if 0 < scheduled <= now_ms:
        calm = replace(calm, revoked_in_previous=False)
        present = [name for name in memory.candidates if name in running]
        if not present or release is Release.TRIMTAB:
            return so(lost, calm)
        takers = present[:1] if release is Release.V2_6_0 else present
        return Settled(taken_over=nobody | in_turn(takers, lost), dealt_out=NOTHING, memory=calm)
    if not lost and scheduled <= 0 and release is Release.TRIMTAB:
        return so(NOTHING, memory)  # a member left that held nothing: there is nothing to wait for
    return so(NOTHING, _waiting(lost, running, memory, now_ms, release=release, longest_ms=longest_ms))


def _waiting(
    lost: ConnectorsAndTasks,
    running: Mapping[str, ConnectorsAndTasks],
    memory: LeaderMemory,
    now_ms: int,
    *,
    release: Release,
    longest_ms: int,
) -> LeaderMemory:
    """*memory* during a wait: with the rest of the delay, or with the whole delay where the wait begins now."""
    idle = [name for name in running if not running[name] and name not in memory.candidates]
    scheduled = memory.scheduled_rebalance_ms
    delay = min(scheduled - now_ms, longest_ms) if now_ms < scheduled else longest_ms
    return replace(
        memory,
        scheduled_rebalance_ms=now_ms + delay,
        delay_ms=delay,
        candidates=(*memory.candidates, *idle),
        # In 3.9, the next rebalance may take away again even if it comes before the wait is over.
        revoked_in_previous=memory.revoked_in_previous and not lost and release is Release.TRIMTAB,
    )
