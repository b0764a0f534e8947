"""How much may wait for ticks, by a rule that follows from each partition's own log.

Of what waits for the next tick of its partition there stay: of sweeps those of the newest intervals, and of everything
the newest bytes.  The oldest goes.  What a row is dropped for lies in its own partition, before the tick that would
have dated it; so the same rows are dropped however the log was cut into batches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from controller.aggregate.intervals import UNDUE, Advances, Partition
from controller.aggregate.rows import BUNDLE, REPORT, SWEEP, TICK, Rows
from controller.model.load import Bools, Ints

#: Bytes that a row takes while it waits, about; a topic of detail; the rest of a fact beside its text.
_CLAIM, _TOPIC, _HEADER, _FACT = 160, 40, 240, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitLimits:
    """How much waits at most, in each shard and partition."""

    #: Sweeps of so many intervals.
    intervals: int = 10
    #: Bytes of everything.
    size: int = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Floors:
    """Below what the rows of a partition that wait for a tick are dropped: at each tick of a batch, and at its end."""

    #: The highest T ticked before the batch.
    before: int
    #: (n,) T of each tick of the batch, ascending.
    ticks: Ints
    #: (n + 1,) a sweep of an earlier interval is dropped.
    interval: Ints
    #: (n + 1,) a row that came with no more bytes than these is dropped.
    upto: Ints
    #: Those of the ticks before which more bytes came than may wait, since the tick before.
    flooded: Ints

    def any(self) -> bool:
        """Whether there may be something to drop."""
        return bool((self.upto > 0).any() or (self.interval >= 0).any())

    def gone(self, due: Ints, upto: Ints, *, swept: Bools | bool) -> Bools:
        """Which rows are dropped: *due* as their ticks dated them, *swept* where that is their own interval."""
        at = np.where(due == UNDUE, len(self.ticks), np.searchsorted(self.ticks, due))
        dropped: Bools = (upto <= self.upto[at]) | (swept & (due < self.interval[at]))
        dropped &= (due == UNDUE) | (due > self.before)
        return dropped


@dataclass(frozen=True, kw_only=True)
class Arrivals:
    """What has come in each partition."""

    #: Bytes of all rows, since the beginning.
    size: Mapping[Partition, int] = field(default_factory=dict)
    #: And of those up to its last tick.
    ticked: Mapping[Partition, int] = field(default_factory=dict)
    #: The newest intervals of sweeps that wait for a tick, ascending; no more than may wait.
    newest: Mapping[Partition, tuple[int, ...]] = field(default_factory=dict)

    def with_rows(
        self, rows: Rows, offset: Ints, due: Ints, size: Ints, advances: Advances, limits: WaitLimits
    ) -> tuple["Arrivals", Ints, dict[Partition, Floors]]:
        """These and *rows*; (rows,) bytes that had come in its partition with each; and what has to go."""
        sizes, ticked, newest = dict(self.size), dict(self.ticked), dict(self.newest)
        floors = dict[Partition, Floors]()
        upto = np.zeros(len(rows), np.int64)
        swept = np.isin(rows.kind, (SWEEP, BUNDLE)) & (due >= 0)
        for partition in sorted(set(zip(rows.source.tolist(), rows.partition.tolist(), strict=True))):
            here = np.flatnonzero((rows.source == partition[0]) & (rows.partition == partition[1]))
            here = here[np.argsort(offset[here], kind="stable")]
            steps = advances.steps.get(partition, [])
            segment = np.searchsorted(np.array([o for o, _ in steps], np.int64), offset[here])
            came = sizes.get(partition, 0) + np.append(0, np.cumsum(size[here]))
            # Rows of one record come together.
            upto[here] = came[np.searchsorted(offset[here], offset[here], side="right")]
            ticks = np.array([t for _, t in steps], np.int64)
            found = [np.unique(due[here[swept[here] & (segment == i)]]) for i in range(len(steps) + 1)]
            lowest, newest[partition] = _lowest(newest.get(partition, ()), found, ticks, limits.intervals)
            ends = came[np.searchsorted(segment, np.arange(len(steps) + 1), side="right")]
            starts = np.append(ticked.get(partition, 0), ends[:-1])
            sizes[partition], ticked[partition] = int(came[-1]), int(starts[-1])
            floors[partition] = Floors(
                before=advances.before.get(partition, -1),
                ticks=ticks,
                interval=lowest,
                upto=ends - limits.size,
                flooded=ticks[(ends - starts)[:-1] > limits.size],
            )
        return Arrivals(size=sizes, ticked=ticked, newest=newest), upto, floors


def _lowest(held: tuple[int, ...], found: Sequence[Ints], ticks: Ints, most: int) -> tuple[Ints, tuple[int, ...]]:
    """Of the *most* newest intervals of sweeps that wait: the lowest at each tick and at the end; and all at the end.

    ``held``: those that waited before; ``found``: those that came before each tick, and after the last.
    """
    lowest = []
    for i, intervals in enumerate(found):
        held = tuple(sorted({*held, *intervals.tolist()})[-most:])
        lowest.append(held[0] if len(held) == most else UNDUE)
        if i < len(ticks):
            held = tuple(t for t in held if t > ticks[i])
    return np.array(lowest, np.int64), held


def sizes_of(rows: Rows, texts: Mapping[int, str]) -> Ints:
    """(rows,) bytes that each row takes while it waits; *texts*: row -> the text of its fact."""
    size = _CLAIM + _TOPIC * rows.detail_size
    size[np.isin(rows.kind, (SWEEP, REPORT))] = _HEADER
    size[rows.kind == TICK] = 0
    for row, text in texts.items():
        size[row] = _FACT + len(text)
    return size
