"""A group of workers and the resources assigned to them: the input and output of both rebalance protocols.

Kafka Connect: WorkerCoordinator.ConnectorsAndTasks, ConnectorTaskId, ClusterConfigState, ExtendedAssignment
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple, Self, TypeVar


class ConnectorTaskId(NamedTuple):
    """A task: the connector it works for, and its number there.  Sorted by connector, then number."""

    connector: str
    task: int

    def __str__(self) -> str:
        return f"{self.connector}:{self.task}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorsAndTasks:
    """What a member holds, is to start or is to stop, in order; the same resource may be in it twice."""

    connectors: tuple[str, ...] = ()
    tasks: tuple[ConnectorTaskId, ...] = ()

    def __len__(self) -> int:
        return len(self.connectors) + len(self.tasks)

    @classmethod
    def union(cls, parts: Iterable[Self]) -> Self:
        """Everything in one or more of *parts*, each once, sorted."""
        parts = list(parts)
        # In the order of *parts*, not of a set: most of it is sorted, so that little is left to sort.
        return cls(
            connectors=tuple(sorted(dict.fromkeys(chain.from_iterable(one.connectors for one in parts)))),
            tasks=tuple(sorted(dict.fromkeys(chain.from_iterable(one.tasks for one in parts)))),
        )

    def each_once(self) -> Self:
        """The same without repetitions, in the order of the first ones."""
        return type(self)(connectors=tuple(dict.fromkeys(self.connectors)), tasks=tuple(dict.fromkeys(self.tasks)))

    def __add__(self, other: Self) -> Self:
        return type(self)(connectors=self.connectors + other.connectors, tasks=self.tasks + other.tasks)

    def __sub__(self, other: Self) -> Self:
        return self._where(other, contained=False) if other else self

    def __and__(self, other: Self) -> Self:
        return self._where(other, contained=True)

    def _where(self, other: Self, *, contained: bool) -> Self:
        connectors, tasks = frozenset(other.connectors), frozenset(other.tasks)
        return type(self)(
            connectors=tuple([name for name in self.connectors if (name in connectors) is contained]),
            tasks=tuple([task for task in self.tasks if (task in tasks) is contained]),
        )


NOTHING: Final = ConnectorsAndTasks()
_R = TypeVar("_R", str, ConnectorTaskId)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSnapshot:
    """The configured resources, as of an offset of the configuration topic."""

    offset: int = 0
    #: Connector -> number of its tasks.
    connectors: Mapping[str, int] = field(default_factory=dict)

    def resources(self) -> ConnectorsAndTasks:
        """All connectors and all their tasks, sorted."""
        names = sorted(self.connectors)
        tasks = chain.from_iterable(_tasks(name, self.connectors[name]) for name in names)
        return ConnectorsAndTasks(connectors=tuple(names), tasks=tuple(tasks))


@lru_cache(maxsize=4096)
def _tasks(connector: str, number: int) -> tuple[ConnectorTaskId, ...]:
    """The tasks of a connector that has so many; kept, because every rebalance asks for them again."""
    return tuple(ConnectorTaskId(connector, i) for i in range(number))


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The leader's input in one rebalance."""

    #: Member -> what it says it holds, in its own order.
    members: Mapping[str, ConnectorsAndTasks]
    configured: ConfigSnapshot
    #: The configuration as it is when the leader reads it again.
    reread: ConfigSnapshot | None = None
    #: Member -> the offset up to which it has read the configuration topic; none: as far as the leader.
    config_offsets: Mapping[str, int] = field(default_factory=dict)
    #: The number of this rebalance, and of the last one that came to its end.
    generation: int = 1
    last_completed_generation: int = -1

    def leader_config(self) -> ConfigSnapshot | None:
        """The configuration to assign by, or None where a member has read further than the leader can."""
        needed = max(self.config_offsets.values(), default=self.configured.offset)
        if self.configured.offset >= needed:
            return ConfigSnapshot(offset=needed, connectors=self.configured.connectors)
        if self.reread is not None and self.reread.offset >= needed:
            return self.reread
        return None

    def mismatch(self) -> "GroupAssignment":
        """The answer when the leader's configuration is too old: everybody joins again."""
        assignments = {name: MemberAssignment() for name in sorted(self.members)}
        return GroupAssignment(
            config_mismatch=True, offset=max(self.config_offsets.values(), default=0), assignments=assignments
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberAssignment:
    """What one member starts and stops now; it continues with everything else that it holds."""

    start: ConnectorsAndTasks = NOTHING
    stop: ConnectorsAndTasks = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAssignment:
    """The leader's answer, for every member by name."""

    assignments: Mapping[str, MemberAssignment]
    #: The offset of the configuration that it goes by.
    offset: int = 0
    #: True: nothing is assigned, all join again.  Kafka Connect: Assignment.CONFIG_MISMATCH
    config_mismatch: bool = False
    #: Every member joins again after so long; 0: no sooner than anything else asks for it.
    delay_ms: int = 0

    def stopped(self) -> int:
        """How many connectors and tasks are to stop."""
        return sum(len(one.stop) for one in self.assignments.values())


def holders(members: Mapping[str, ConnectorsAndTasks], resources: ConnectorsAndTasks) -> dict[str, ConnectorsAndTasks]:
    """Member -> which of *resources* it holds, sorted; members that hold none are left out."""
    work_of = {name: ConnectorsAndTasks.union([members[name] & resources]) for name in sorted(members)}
    return {name: work for name, work in work_of.items() if work}


def repeated(members: Iterable[ConnectorsAndTasks]) -> ConnectorsAndTasks:
    """What is in *members* more than once, each once, sorted."""
    everything = list(members)
    return ConnectorsAndTasks(
        connectors=_more_than_once([name for work in everything for name in work.connectors]),
        tasks=_more_than_once([task for work in everything for task in work.tasks]),
    )


def _more_than_once(resources: list[_R]) -> tuple[_R, ...]:
    if len(set(resources)) == len(resources):  # nearly always, and seen sooner than counted
        return ()
    return tuple(sorted(resource for resource, times in Counter(resources).items() if times > 1))
