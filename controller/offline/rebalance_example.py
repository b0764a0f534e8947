"""90 connectors with 10 tasks each, started one by one and stopped one by one: what each protocol stops for it.

The group that Kafka's authors compare the protocols by.  Here each connector comes and goes with its tasks in one
rebalance; in Kafka Connect it takes two or more, so the eager protocol does worse still.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from controller.offline.connect_group import Change, Rebalance, play
from controller.strategies.common.worker_group import NOTHING

CONNECTORS: Final = 90
TASKS_EACH: Final = 10
#: Of the steps one in so many is shown.
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
    few = [row for i, row in enumerate(rows) if i % half == 0 or (i + 1) % _SHOWN_EVERY == 0]
    sums = [("start all", rows[:half]), ("stop all", rows[half:]), ("altogether", rows)]
    return few + [
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
