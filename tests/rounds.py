"""What brokers say of their bundles, interval by interval, taken the whole way through wire and fold."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from controller.aggregate.columns.rows import METRICS, RESULTS
from controller.aggregate.shard.fold import DetailLimits, FoldOptions, ShardState, fold
from controller.aggregate.snapshot import Snapshot
from controller.wire.metrics import decode_metric
from controller.wire.rows import Located, rows_from_records
from tests.records import CLUSTER, PERIOD, RATES, T, as_bytes, broker_sweep, bundle_stats, tick

_NO_DETAIL: Final = DetailLimits(topics=np.inf, sessions=np.inf, msg_rate=np.inf, throughput=np.inf)
#: Offsets come this many apart from round to round.
_PER_ROUND: Final = 10_000

#: A bundle's msg/s in and out, bytes/s in and out, topics, producers, consumers.
Stats = Sequence[float]


def close_round(
    state: ShardState, number: int, listed: Mapping[str, Mapping[str, Stats]], *, bundle_ttl_ms: int
) -> tuple[ShardState, Snapshot]:
    """Close round *number*, in which each broker of *listed* (``host:port``) swept these bundles."""
    interval = T + number * PERIOD
    sweeps = [
        broker_sweep(
            broker,
            interval=interval,
            sweepId=f"{broker}@{interval}",
            bundleStats=[bundle_stats(name, topics=0, totals=_totals(stats)) for name, stats in bundles.items()],
        )
        for broker, bundles in sorted(listed.items())
    ]
    end = tick(interval, roster=[{"broker": sweep["broker"], "sweepId": sweep["sweepId"]} for sweep in sweeps])
    records = [
        Located(
            source=role,
            partition=0,
            offset=number * _PER_ROUND + position,
            record=decode_metric(as_bytes(record), cluster=CLUSTER, period_ms=PERIOD),
        )
        for position, (role, record) in enumerate([*((METRICS, one) for one in sweeps), (METRICS, end), (RESULTS, end)])
    ]
    options = FoldOptions(bundle_ttl_ms=bundle_ttl_ms, detail=_NO_DETAIL)
    state, [snapshot] = fold(state, rows_from_records(records, _NO_DETAIL), options)
    return state, snapshot


def _totals(stats: Stats) -> dict[str, float]:
    counts = zip(("topics", "producerCount", "consumerCount"), map(int, stats[4:]), strict=True)
    return dict(zip(RATES, stats[:4], strict=True)) | dict(counts)
