"""A modelled group of Kafka Connect workers that carries out its leader's assignments, rebalance by rebalance.

The leader is the oldest member.  Only the leader keeps state: when it leaves, the next leader starts without any.
The first leader knows the group as it is at the beginning: the work that members run then is work that it assigned.
Work that stops because its member left is not counted: no protocol can prevent that.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final

from controller.strategies.common.worker_group import (
    NOTHING,
    ConfigSnapshot,
    ConnectorsAndTasks,
    Group,
    GroupAssignment,
    MemberAssignment,
)
from controller.strategies.rebalance.eager import EagerAssignor
from controller.strategies.rebalance.incremental_cooperative import (
    IncrementalCooperativeAssignor,
    LeaderMemory,
    Release,
)
from controller.wire.readable import counted

#: Two rebalances settle a change, three a failed one; this limit stops a loop that would not end.
_MAX_FOLLOW_UPS: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Events that happen to the group together and cause one rebalance."""

    #: Since the change before, ms; None: once that has come to rest, its delay included.
    after_ms: int | None = None
    join: tuple[str, ...] = ()
    leave: tuple[str, ...] = ()
    #: Connector -> number of its tasks, new or from now on.
    create: Mapping[str, int] = field(default_factory=dict)
    delete: tuple[str, ...] = ()
    #: Members that do not stop what they are told to stop, in this rebalance only.
    does_not_stop: tuple[str, ...] = ()
    #: The leader's answer gets lost, this once.
    answer_lost: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """One rebalance, and the group after it."""

    #: The number of the change that caused it, from 1, and which rebalance since then, from 1.
    change: int
    step: int
    at_ms: int
    generation: int
    leader: str
    why: str
    #: What each member started and stopped because of it; a resource given back to its holder is in both.
    assignments: Mapping[str, MemberAssignment]
    members: Mapping[str, ConnectorsAndTasks]
    #: Configured, and run by nobody.
    missing: ConnectorsAndTasks
    #: Run by a member, and not configured: deleted, or beyond the connector's number of tasks.
    unconfigured: ConnectorsAndTasks
    delay_ms: int

    @property
    def stopped(self) -> int:
        """Connectors and tasks that stopped, of all members."""
        return sum(len(one.stop) for one in self.assignments.values())

    @property
    def started(self) -> int:
        """Connectors and tasks that started."""
        return sum(len(one.start) for one in self.assignments.values())

    def is_balanced(self) -> bool:
        """Whether exactly what is configured runs, each resource once, and evenly.

        Evenly: no member has two connectors, or two tasks, more than another.
        """
        sizes = [
            [len(work.connectors) for work in self.members.values()],
            [len(work.tasks) for work in self.members.values()],
        ]
        running = ConnectorsAndTasks.union(self.members.values())
        once = sum(map(len, self.members.values())) == len(running)
        exact = once and not self.missing and not self.unconfigured
        return exact and all(max(n, default=0) - min(n, default=0) < 2 for n in sizes)


#: Protocol -> the release of the cooperative one; None: eager.
PROTOCOLS: Final[Mapping[str, Release | None]] = {
    "eager": None,
    "cooperative": Release.V2_6_0,
    "cooperative-2.6.3": Release.V2_6_3,
    "cooperative-3.9": Release.V3_9,
    "cooperative-trimtab": Release.TRIMTAB,
}


def play(
    members: Mapping[str, ConnectorsAndTasks],
    connectors: Mapping[str, int],
    changes: Iterable[Change],
    *,
    protocol: str,
    max_delay_ms: int = 300_000,
    rebalance_ms: int = 0,
) -> list[Rebalance]:
    """Every rebalance that *changes* bring about in a group of *members*, the longest-standing one first.

    *protocol* is a key of PROTOCOLS.  A rebalance lasts *rebalance_ms*; a change in that time takes part in the next
    one, together with members that stopped something (KAFKA-12495).  A change that names a member or connector that
    is not there, or is there already, is the caller's to refuse.
    """
    release = PROTOCOLS[protocol]
    assignor = None
    if release is not None:
        assignor = IncrementalCooperativeAssignor(scheduled_rebalance_max_delay_ms=max_delay_ms, release=release)
    group = _Group(members, connectors, assignor, rebalance_ms)
    for change in changes:
        group.make(change)
    group.rest()
    return group.rebalances


class _Group:
    """The group over time; without an *assignor*, it rebalances by the eager protocol."""

    def __init__(
        self,
        members: Mapping[str, ConnectorsAndTasks],
        connectors: Mapping[str, int],
        assignor: IncrementalCooperativeAssignor | None,
        rebalance_ms: int,
    ) -> None:
        self.rebalances: list[Rebalance] = []
        self._members, self._connectors, self._assignor = dict(members), dict(connectors), assignor
        self._rebalance_ms = rebalance_ms
        running = ConnectorsAndTasks.union(members.values())
        self._leader_memory = LeaderMemory(assigned=running, members=frozenset(members), generation=0)
        self._now_ms = self._changed_at_ms = self._busy_until_ms = 0
        self._change = self._generation = self._completed = self._follow_ups = 0
        #: The next rebalance that needs no change: when, and why.
        self._due: tuple[int, str] | None = None

    def make(self, change: Change) -> None:
        """*change*, and the rebalance that it causes, as soon as none is under way."""
        if change.after_ms is None:
            self.rest()
        else:
            self._changed_at_ms += change.after_ms
            self.rest(self._changed_at_ms)
            self._now_ms = max(self._changed_at_ms, self._now_ms)
        self._now_ms = max(self._now_ms, self._busy_until_ms)
        self._changed_at_ms, self._change = self._now_ms, self._change + 1
        led = next(iter(self._members), "")
        for name in change.leave:
            del self._members[name]
        self._members |= dict.fromkeys(change.join, NOTHING)
        if next(iter(self._members)) != led:
            self._leader_memory = LeaderMemory()
        self._connectors = {name: n for name, n in self._connectors.items() if name not in change.delete}
        self._connectors |= change.create
        self._follow_ups = 0
        self._rebalance(_words(change), change)
        if not self._rebalance_ms:
            self.rest(self._now_ms)

    def rest(self, until_ms: int | None = None) -> None:
        """Run the rebalances that need no change: those that begin by *until_ms*, or all."""
        while self._due is not None and (until_ms is None or self._due[0] <= until_ms):
            self._now_ms, why = self._due
            self._rebalance(why, Change())

    def _rebalance(self, why: str, change: Change) -> None:
        """One rebalance now, and what follows from it: another one at its end, or after the delay."""
        answer = self._once(why, change)
        self._busy_until_ms = self._now_ms + self._rebalance_ms
        # A member that was told to stop something joins again, whether or not it could stop it.
        again = change.answer_lost or (self._assignor is not None and answer.stopped() > 0)
        if again and self._follow_ups < _MAX_FOLLOW_UPS:
            self._follow_ups += 1
            self._due = self._busy_until_ms, "the answer was lost" if change.answer_lost else "what stopped is free"
        else:
            self._follow_ups = 0
            rejoin_ms = max(self._now_ms + answer.delay_ms, self._busy_until_ms)
            self._due = (rejoin_ms, "the delay is over") if answer.delay_ms else None

    def _once(self, why: str, change: Change) -> GroupAssignment:
        self._generation += 1
        config = ConfigSnapshot(connectors=self._connectors)
        group = Group(
            members=self._members,
            configured=config,
            generation=self._generation,
            last_completed_generation=self._completed,
        )
        if self._assignor is None:
            answer = EagerAssignor().assign(group)
        else:
            answer, self._leader_memory = self._assignor.assign(group, self._leader_memory, self._now_ms)
        carried_out = {name: self._carried_out(name, answer, change) for name in sorted(self._members)}
        still_running = {name: work - carried_out[name].stop for name, work in self._members.items()}
        self._members = {name: work + (carried_out[name].start - work) for name, work in still_running.items()}
        if not change.answer_lost:
            self._completed = self._generation
        before = self.rebalances[-1] if self.rebalances else None
        running = ConnectorsAndTasks.union(self._members.values())
        rebalance = Rebalance(
            change=self._change,
            step=before.step + 1 if before is not None and before.change == self._change else 1,
            at_ms=self._now_ms,
            generation=self._generation,
            leader=next(iter(self._members)),
            why=why,
            assignments=carried_out,
            members=dict(sorted(self._members.items())),
            missing=config.resources() - running,
            unconfigured=running - config.resources(),
            delay_ms=answer.delay_ms,
        )
        self.rebalances.append(rebalance)
        return answer

    def _carried_out(self, name: str, answer: GroupAssignment, change: Change) -> MemberAssignment:
        """What *name* makes of the answer."""
        if change.answer_lost:
            # By the eager protocol, everything stopped before the answer could have come.
            return MemberAssignment(stop=self._members[name] if self._assignor is None else NOTHING)
        assigned = answer.assignments[name]
        # Nothing stops that is not running, and nothing twice.
        stop = ConnectorsAndTasks.union([assigned.stop & self._members[name]])
        return replace(assigned, stop=NOTHING if name in change.does_not_stop else stop)


def _words(change: Change) -> str:
    """What happened, for people."""
    parts = [f"{name} joins" for name in change.join]
    parts += [f"{name} leaves" for name in change.leave]
    parts += [f"{name} has {counted(n, 'task')}" for name, n in change.create.items()]
    parts += [f"{name} is deleted" for name in change.delete]
    parts += [f"{name} stops nothing" for name in change.does_not_stop]
    parts += ["the answer gets lost"] * change.answer_lost
    return ", ".join(parts) or "all join again"


CONNECTORS: Final = 90
TASKS_EACH: Final = 10
#: One in this many steps is shown.
_SHOWN_EVERY: Final = 15
WORKERS: Final = 3
_NAMES: Final = tuple(f"connector-{i:02}" for i in range(1, CONNECTORS + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleRow:
    """One change under both protocols."""

    what: str
    #: Tasks that are configured after it.
    tasks: int
    #: Tasks that stopped because of it.
    eager: int
    cooperative: int


def example_rows(release: str = "cooperative-2.6.3") -> list[ExampleRow]:
    """Every change of the example, in order; *release* is the cooperative protocol's name."""
    words = [f"start {name}" for name in _NAMES] + [f"stop {name}" for name in _NAMES]
    sizes = [*range(1, CONNECTORS + 1), *range(CONNECTORS - 1, -1, -1)]
    return [
        ExampleRow(what=what, tasks=size * TASKS_EACH, eager=stopped, cooperative=fewer)
        for what, size, stopped, fewer in zip(words, sizes, _stopped("eager"), _stopped(release), strict=True)
    ]


def summary_rows(rows: Sequence[ExampleRow]) -> list[ExampleRow]:
    """Some of *rows*, and the sums of starting, of stopping and of both."""
    half = len(rows) // 2
    sparse = [row for i, row in enumerate(rows) if i % half == 0 or (i + 1) % _SHOWN_EVERY == 0]
    sums = [("start all", rows[:half]), ("stop all", rows[half:]), ("altogether", rows)]
    return sparse + [
        ExampleRow(
            what=what,
            tasks=of[-1].tasks,
            eager=sum(row.eager for row in of),
            cooperative=sum(row.cooperative for row in of),
        )
        for what, of in sums
    ]


@cache
def _stopped(protocol: str) -> list[int]:
    """Tasks that each change of the example stops under *protocol*."""
    changes = [Change(create={name: TASKS_EACH}) for name in _NAMES] + [Change(delete=(name,)) for name in _NAMES]
    workers = {f"worker-{i}": NOTHING for i in range(1, WORKERS + 1)}
    return tasks_stopped(play(workers, {}, changes, protocol=protocol), len(changes))


def tasks_stopped(rebalances: Sequence[Rebalance], changes: int) -> list[int]:
    """Tasks stopped because of each of so many *changes*, over all rebalances that it brought about."""
    stopped = [0] * changes
    for one in rebalances:
        stopped[one.change - 1] += sum(len(assignment.stop.tasks) for assignment in one.assignments.values())
    return stopped
