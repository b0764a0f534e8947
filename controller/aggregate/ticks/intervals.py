"""Ticks in the log alone decide which interval a record belongs to and when an interval closes.

A record belongs to T if it precedes, in its own partition, the first tick with interval >= T.  T closes when every
partition has such a tick.  The first tick of T in partition 0 of the metrics topic has the roster; an interval without
a tick there is never decided.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from controller.aggregate.columns.rows import BUNDLE, METRICS, RESULTS, SWEEP, Partition, Rows
from controller.model.load import Ints
from controller.model.records import Tick

#: The partition whose ticks have the roster.
_OF_ROSTERS: Partition = (METRICS, 0)

#: ``due`` of a row that waits for the next tick of its partition, which has its interval.
UNDUE = -1
#: ``due`` of a row that came after the tick of its interval.
LATE = -2


@dataclass(frozen=True, kw_only=True)
class TickClock:
    """The ticks read so far, and the last interval closed."""

    #: Partition -> highest T ticked.
    ticked: Mapping[Partition, int] = field(default_factory=dict)
    #: T -> its tick in partition 0, for every T that is not closed yet.
    rosters: Mapping[int, Tick] = field(default_factory=dict)
    #: The last T closed; -1 before the first.
    closed: int = -1

    def closable(self) -> list[int]:
        """The intervals that can be closed now, ascending."""
        return [t for t, tick in sorted(self.rosters.items()) if self._all_ticked(t, tick)]

    def _all_ticked(self, interval: int, tick: Tick) -> bool:
        required = [(METRICS, p) for p in range(tick.metrics_partitions)]
        required += [(RESULTS, p) for p in range(tick.results_partitions)]
        return all(self.ticked.get(partition, -1) >= interval for partition in required)

    def without(self, interval: int) -> "TickClock":
        """The clock after *interval* is closed."""
        rosters = {t: tick for t, tick in self.rosters.items() if t > interval}
        return replace(self, rosters=rosters, closed=interval)

    def advance(self, ticks: Iterable[tuple[Partition, int, Tick]]) -> tuple["TickClock", "Advances"]:
        """Add *ticks*: (partition, offset, tick), in order of offset within each partition.

        A tick is ignored if its partition already has one of that T or later.  A roster counts only in partition 0 of
        the metrics topic, and is ignored elsewhere.
        """
        ticked, rosters = dict(self.ticked), dict(self.rosters)
        steps: dict[Partition, list[tuple[int, int]]] = {}
        for partition, offset, tick in ticks:
            if tick.interval <= ticked.get(partition, -1):
                continue
            ticked[partition] = tick.interval
            steps.setdefault(partition, []).append((offset, tick.interval))
            if partition == _OF_ROSTERS and tick.roster is not None and tick.interval > self.closed:
                rosters[tick.interval] = tick
        return replace(self, ticked=ticked, rosters=rosters), Advances(before=self.ticked, steps=steps)


@dataclass(frozen=True, kw_only=True)
class Advances:
    """The ticks of one batch, which give its rows their intervals."""

    #: Partition -> highest T ticked before the batch.
    before: Mapping[Partition, int]
    #: Partition -> (offset, T) of each of its ticks that counts, ascending.
    steps: Mapping[Partition, list[tuple[int, int]]]

    def first(self, partition: Partition) -> int:
        """T of the first tick of *partition* in the batch, or UNDUE: the interval of rows of earlier batches."""
        steps = self.steps.get(partition)
        return steps[0][1] if steps else UNDUE

    def due(self, rows: Rows, offset: Ints) -> Ints:
        """(rows,) T of each row, LATE after its tick, or UNDUE; *offset* orders the rows of a partition.

        Sweeps say their T.  Other rows get that of the next tick of their partition.
        """
        interval, due = np.where(rows.of_kind([SWEEP, BUNDLE]), rows.interval, UNDUE), np.empty(len(rows), np.int64)
        for partition, here in rows.by_partition():
            steps = self.steps.get(partition, [])
            ticked = np.array([self.before.get(partition, -1), *(t for _, t in steps)], np.int64)
            upcoming = np.append(ticked[1:], UNDUE)
            passed = np.searchsorted([o for o, _ in steps], offset[here])
            own = np.where(interval[here] > ticked[passed], interval[here], LATE)
            due[here] = np.where(interval[here] >= 0, own, upcoming[passed])
        return due
