"""Limits on the rows that wait for ticks, by a rule that depends only on each partition's own log.

Of the rows that wait for the next tick of their partition, these are kept: sweeps of the newest intervals, and the
newest bytes of everything.  The oldest rows are dropped.  Whether a row is dropped depends only on rows of its own
partition before the next tick, so the same rows are dropped however the log is cut into batches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from controller.aggregate.columns.rows import BUNDLE, REPORT, SWEEP, TICK, DatedRows, Partition, Rows
from controller.aggregate.ticks.intervals import UNDUE, Advances
from controller.model.load import Ints

#: Approximate bytes of a waiting claim, a topic of detail, a header, and a fact without its text.
_CLAIM, _TOPIC, _HEADER, _FACT = 160, 48, 240, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitLimits:
    """Limits on waiting rows, in each shard and partition."""

    #: Number of intervals whose sweeps wait.
    intervals: int = 10
    #: Bytes of all rows.
    size: int = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Floors:
    """Which waiting rows of one partition are dropped, at each tick of a batch and at its end."""

    partition: Partition
    #: The highest T ticked before the batch.
    before: int
    #: (n,) T of each tick of the batch, ascending.
    ticks: Ints
    #: (n + 1,) sweeps of earlier intervals than this are dropped.
    interval: Ints
    #: (n + 1,) rows whose ``upto`` is not above this are dropped.
    upto: Ints
    #: T of the ticks with more bytes since the previous tick than may wait.
    flooded: Ints


@dataclass(frozen=True, kw_only=True)
class ArrivedBytes:
    """How much has arrived in each partition."""

    #: Bytes of all rows since the beginning of the log.
    size: Mapping[Partition, int] = field(default_factory=dict)
    #: Bytes of all rows up to the last tick.
    ticked: Mapping[Partition, int] = field(default_factory=dict)
    #: The newest intervals whose sweeps wait for a tick, ascending; at most WaitLimits.intervals.
    newest: Mapping[Partition, tuple[int, ...]] = field(default_factory=dict)

    def upto(self, rows: Rows, offset: Ints, texts: Mapping[int, str]) -> Ints:
        """(rows,) bytes that have arrived in the row's partition up to and including its record.

        *offset* and *texts* as in DatedRows.
        """
        size, upto = _sizes_of(rows, texts), np.zeros(len(rows), np.int64)
        for partition, here in rows.by_partition():
            here = here[np.argsort(offset[here], kind="stable")]
            came = self.size.get(partition, 0) + np.cumsum(size[here])
            # All rows of one record have the same value.
            upto[here] = came[np.searchsorted(offset[here], offset[here], side="right") - 1]
        return upto

    def with_rows(self, rows: DatedRows, advances: Advances, limits: WaitLimits) -> tuple["ArrivedBytes", list[Floors]]:
        """Add *rows*.  Returns the arrivals, and the floors of each partition that has any of the rows."""
        sizes, ticked, newest = dict(self.size), dict(self.ticked), dict(self.newest)
        floors = []
        swept = rows.of_kind([SWEEP, BUNDLE]) & (rows.due >= 0)
        for partition, here in rows.by_partition():
            here = here[np.argsort(rows.offset[here], kind="stable")]
            steps = advances.steps.get(partition, [])
            segment = np.searchsorted([o for o, _ in steps], rows.offset[here])
            ticks = np.array([t for _, t in steps], np.int64)
            arrived = [np.unique(rows.due[here[swept[here] & (segment == i)]]) for i in range(len(steps) + 1)]
            lowest, newest[partition] = _lowest(newest.get(partition, ()), arrived, ticks, limits.intervals)
            came = np.append(sizes.get(partition, 0), rows.upto[here])
            ends = came[np.searchsorted(segment, np.arange(len(steps) + 1), side="right")]
            starts = np.append(ticked.get(partition, 0), ends[:-1])
            sizes[partition], ticked[partition] = int(came[-1]), int(starts[-1])
            floors.append(
                Floors(
                    partition=partition,
                    before=advances.before.get(partition, -1),
                    ticks=ticks,
                    interval=lowest,
                    upto=ends - limits.size,
                    flooded=ticks[(ends - starts)[:-1] > limits.size],
                )
            )
        return ArrivedBytes(size=sizes, ticked=ticked, newest=newest), floors


def _lowest(waiting: tuple[int, ...], arrived: Sequence[Ints], ticks: Ints, limit: int) -> tuple[Ints, tuple[int, ...]]:
    """The lowest of the *limit* newest waiting intervals of sweeps, at each tick and at the end; and all at the end.

    ``waiting``: intervals that waited before the batch; ``arrived``: those that came before each tick, and after the
    last.  UNDUE where fewer than *limit* intervals wait.
    """
    lowest = []
    for i, intervals in enumerate(arrived):
        waiting = tuple(sorted({*waiting, *intervals.tolist()})[-limit:])
        lowest.append(waiting[0] if len(waiting) == limit else UNDUE)
        if i < len(ticks):
            waiting = tuple(t for t in waiting if t > ticks[i])
    return np.array(lowest, np.int64), waiting


def _sizes_of(rows: Rows, texts: Mapping[int, str]) -> Ints:
    """(rows,) approximate bytes of each row while it waits; *texts*: row -> the text of its fact."""
    size = _CLAIM + _TOPIC * rows.detail_size
    size[rows.of_kind([SWEEP, REPORT])] = _HEADER
    size[rows.kind == TICK] = 0
    for row, text in texts.items():
        size[row] = _FACT + len(text)
    return size
