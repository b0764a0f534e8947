"""The fold's input in columns: one row for each tick, sweep chunk, bundle, topic, report or fact.

The Spark query makes rows in the JVM (streaming.decode); replay and the simulator make them from decoded records
(controller.wire.rows).  tests/integration/test_rows_in_spark_and_python.py compares the two.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from controller.aggregate.columns.name_column import NameColumn
from controller.model.load import RESOURCES, Bools, Floats, Ints
from controller.model.records import Fact
from controller.model.topic_kinds import KindFlags

#: Kinds of rows.
TICK, SWEEP, BUNDLE, TOPIC, REPORT, REPORT_BUNDLE, FACT = range(7)
#: A record that the query refused; the fold never gets one.
REFUSED = 7

#: The topic a row comes from.
METRICS, RESULTS = range(2)
#: (METRICS or RESULTS, partition number).
Partition: TypeAlias = tuple[int, int]

#: Columns of ``stats``.  Rates are in thousandths (of msg/s, of bytes/s), rounded, so that sums are exact in any
#: order, up to 9e12 msg/s or bytes/s.
RATES = ("rate_in", "rate_out", "throughput_in", "throughput_out")
STATS = (*RATES, "producers", "consumers", "topics")
PRODUCERS, CONSUMERS, TOPICS = 4, 5, 6
PER_UNIT = 1000.0

#: Columns of ``numbers`` of a SWEEP or REPORT row: usage, limit of each of the RESOURCES, then the broker's
#: totals: load (4), topics, bundles; then the kinds of topics that it does not serve, as flags of
#: controller.model.topic_kinds: a REPORT says so, a SWEEP has 0.
_REPORTED = 2 * len(RESOURCES)
NUMBER_USAGE, NUMBER_LIMIT = slice(0, _REPORTED, 2), slice(1, _REPORTED, 2)
NUMBER_LOAD, NUMBER_TOPICS, NUMBER_BUNDLES = slice(_REPORTED, _REPORTED + len(RATES)), _REPORTED + 4, _REPORTED + 5
NUMBER_KINDS_OFF = NUMBER_BUNDLES + 1
NUMBERS = NUMBER_KINDS_OFF + 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """(n,) columns, rows in any order; a column is valid for the kinds named."""

    kind: Ints
    #: Place of the record in the log: METRICS or RESULTS, partition, offset (or line, with ``file``).
    source: Ints
    partition: Ints
    offset: Ints
    #: Folder logs only: the file's name, which sorts before ``offset``; else None.
    file: NameColumn | None
    #: TICK, SWEEP, BUNDLE: T, epoch ms.
    interval: Ints
    #: All but TICK and FACT.
    broker: NameColumn
    #: SWEEP, BUNDLE.
    sweep: NameColumn
    chunk: Ints
    chunks: Ints
    #: All but TICK, FACT, TOPIC: epoch ms on the broker's clock.
    last_update: Ints
    #: BUNDLE, TOPIC, REPORT_BUNDLE.
    bundle: NameColumn
    #: (n, 7) BUNDLE, TOPIC, REPORT_BUNDLE: see STATS.
    stats: Floats
    #: (n,) The same: flags of controller.model.topic_kinds; 0 where no topic is loaded.
    kinds: KindFlags
    #: (n, 3) TOPIC: a 64-bit hash of the topic's name, its position on the ring, and its code of
    #: controller.model.segment_code.
    topic: Ints
    #: (n,) number of topics of a BUNDLE row in the three columns below, which hold row 0's topics, then row 1's, ...
    detail_size: Ints
    detail_position: Ints
    #: (topics, 4) msg/s and bytes/s.
    detail_load: Floats
    #: (topics,) codes of controller.model.segment_code.
    detail_segment: Ints
    #: SWEEP, REPORT: row -> NUMBERS numbers.
    numbers: dict[int, Floats]
    #: TICK, FACT: row -> the fact.
    facts: dict[int, Fact]

    def __len__(self) -> int:
        return len(self.kind)

    def unread(self) -> Ints:
        """(m,) The rows of ticks and facts whose record says no fact: it was refused."""
        rows = np.flatnonzero((self.kind == TICK) | (self.kind == FACT))
        return rows[[row not in self.facts for row in rows.tolist()]]

    def of_kind(self, kinds: Sequence[int]) -> Bools:
        """(rows,) whether each is of one of *kinds*.  Of few rows ``np.isin`` takes ten times as long."""
        mask = np.zeros(len(self.kind), np.bool_)
        for kind in kinds:
            mask |= self.kind == kind
        return mask

    def by_partition(self) -> Iterator[tuple[Partition, Ints]]:
        """The partitions of the rows, ascending, each with the numbers of its rows."""
        pairs = np.flatnonzero(np.bincount(2 * self.partition + self.source))
        for source, partition in sorted((pair % 2, pair // 2) for pair in pairs.tolist()):
            yield (source, partition), np.flatnonzero((self.source == source) & (self.partition == partition))


@dataclass(frozen=True, kw_only=True, eq=False)
class DatedRows(Rows):
    """Rows with their intervals.  ``offset`` orders the rows of a partition, also where the log has files."""

    #: T of the interval, UNDUE or LATE: see controller.aggregate.ticks.intervals.
    due: Ints
    #: Bytes that had arrived in its partition up to and including its record: see controller.aggregate.waiting.limits.
    upto: Ints
    #: FACT: row -> the fact as text, see controller.aggregate.state.facts.
    texts: dict[int, str]


def per_thousand(rates: Floats) -> Floats:
    """*rates* in thousandths, rounded half to even, as ``rint(x * 1000)`` does in the JVM."""
    return np.rint(rates * PER_UNIT)
