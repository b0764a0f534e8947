"""Rows: what the fold reads.  One row a tick, sweep, bundle, topic, report or fact, in columns.

The Spark query makes them in the JVM (streaming.decode), replay and the simulator from decoded records
(controller.wire.rows); a test holds the two against each other.
"""

from dataclasses import dataclass

import numpy as np

from controller.model.load import Floats, Ints
from controller.model.records import Fact

#: Kinds of rows.
TICK, SWEEP, BUNDLE, TOPIC, REPORT, REPORT_BUNDLE, FACT = range(7)

#: Roles of the topics a row comes from.
METRICS, RESULTS = range(2)

#: Columns of ``stats``.  Rates are in thousandths (of msg/s, of bytes/s), rounded, so that sums of them are
#: exact, and the same in any order, up to 9e12 msg/s or bytes/s.
RATES = ("rate_in", "rate_out", "throughput_in", "throughput_out")
STATS = (*RATES, "producers", "consumers", "topics")
PRODUCERS, CONSUMERS, TOPICS = 4, 5, 6
PER_UNIT = 1000.0

#: Columns of ``numbers`` of a SWEEP or REPORT row: usage and limit of the five resources in turn, then the
#: broker's own totals.
NUMBERS = 10 + 4 + 2
NUMBER_LOAD, NUMBER_TOPICS, NUMBER_BUNDLES = slice(10, 14), 14, 15


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """(n,) columns in any order; a column means something for the kinds named."""

    kind: Ints
    #: Where the record lies: METRICS or RESULTS, partition, offset (or line, with ``file``).
    source: Ints
    partition: Ints
    offset: Ints
    #: Folder logs only: the file's name, ordered before ``offset``; else None.
    file: list[str] | None
    #: TICK, SWEEP, BUNDLE: T, epoch ms.
    interval: Ints
    #: All but TICK and FACT.
    broker: list[str]
    #: SWEEP, BUNDLE.
    sweep: list[str]
    chunk: Ints
    chunks: Ints
    #: All but TICK, FACT, TOPIC: epoch ms on the broker's clock.
    last_update: Ints
    #: BUNDLE, TOPIC, REPORT_BUNDLE.
    bundle: list[str]
    #: (n, 7) BUNDLE, TOPIC, REPORT_BUNDLE: see STATS.
    stats: Floats
    #: (n, 2) TOPIC: a 64-bit hash of the topic's name, and its position on the ring.
    topic: Ints
    #: (n,) topics of detail that a BUNDLE row brings; their columns lie one row's after another.
    detail_size: Ints
    detail_position: Ints
    #: (topics, 4) msg/s and bytes/s.
    detail_load: Floats
    #: SWEEP, REPORT: row -> NUMBERS numbers.
    numbers: dict[int, Floats]
    #: TICK, FACT: row -> what it says.
    facts: dict[int, Fact]

    def __len__(self) -> int:
        return len(self.kind)


def per_thousand(rates: Floats) -> Floats:
    """Rates in thousandths, rounded half to even, as ``rint(x * 1000)`` does in the JVM."""
    return np.rint(rates * PER_UNIT)
