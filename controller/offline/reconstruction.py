"""The load of one interval, read again from the log: the records of its own and of some intervals before it.

A log has more partitions than one, and reading backwards loses which record lay in which.  So an interval is closed
where the last of its partitions was ticked, as the controller does.  Averages begin with the first interval that is
read: of a log that is not read whole they are near those that the controller had, not the same.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from controller.aggregate.columns.rows import METRICS, RESULTS
from controller.aggregate.shard.fold import FoldOptions, ShardState, fold
from controller.aggregate.snapshot import Snapshot
from controller.cycle import Policy
from controller.log.tail import LogTail
from controller.model.errors import WireError
from controller.settings.trimtab_toml import Settings
from controller.wire.metrics import Partitions, TickRecord, decode_metric
from controller.wire.results import decode_result
from controller.wire.rows import Located, rows_from_records

_ONE_EACH: Final = Partitions(metrics=1, results=1)
_TICK: Final = b'"tick"'
#: A record of one topic; None of another cluster's, WireError of a refused one.
_Decode: TypeAlias = Callable[[bytes], object | None]


def snapshot_at(tail: LogTail, settings: Settings, policy: Policy, interval: int, *, before: int) -> Snapshot | None:
    """The load of *interval*, epoch ms, as the controller had it; None where the log does not hold it.

    *before*: this many intervals before it are read, too.  TrimtabError where the log cannot be read.
    """
    period_ms = settings.intervals.period_ms
    first = interval - before * period_ms
    cluster = settings.cluster.name

    def metric(value: bytes) -> object:
        return decode_metric(value, cluster=cluster, period_ms=period_ms, max_bytes=settings.intervals.max_record_bytes)

    def result(value: bytes) -> object:
        return decode_result(value, cluster=cluster, period_ms=period_ms)

    metrics = _span(tail.backwards("metrics", (b"",)), interval, first, metric)
    results = _span(tail.backwards("results", (b"",)), interval, first, result)
    detail = policy.detail_limits(settings.intervals.detail_share)
    options = FoldOptions(
        bundle_ttl_ms=settings.intervals.bundle_ttl_intervals * period_ms,
        detail=detail,
        state_ttl=settings.intervals.state_ttl_intervals,
    )
    state, batch = ShardState(shard=0, shards=1), list(_located(RESULTS, results, result))
    for located in _located(METRICS, metrics, metric):
        batch.append(located)
        if isinstance(located.record, TickRecord):
            # One interval at a time, so that decoded records of one alone are in memory.
            state, snapshots = fold(state, rows_from_records(batch, detail), options)
            batch = []
            for snapshot in snapshots:
                if snapshot.interval == interval:
                    return snapshot
    return None


def _span(values: Iterable[bytes], interval: int, first: int, decode: _Decode) -> list[bytes]:
    """Those of *values*, newest first, that the ticks from *first* to *interval* end; the oldest is the first."""
    entries, has_begun = list[bytes](), False
    for value in values:
        tick = _tick(value, decode)
        if tick is not None:
            has_begun = has_begun or tick.interval <= interval
            if tick.interval < first:
                break
            if tick.interval > interval:
                continue  # a collector's clock was ahead: the controller has refused it, or decides nothing until then
        if has_begun:
            entries.append(value)
    return entries[::-1]


def _located(source: int, values: Sequence[bytes], decode: _Decode) -> Iterator[Located]:
    """The records in *values* as those of one partition: a tick of each interval stands where the last one stood."""
    ticks = [tick for value in values if (tick := _tick(value, decode)) is not None]
    ticks_seen = Counter(tick.interval for tick in ticks)
    rosters = {tick.interval: tick.roster for tick in reversed(ticks) if tick.roster is not None}
    missing = {tick.interval: min(_partitions(source, tick), ticks_seen[tick.interval]) for tick in ticks}
    for offset, value in enumerate(values):
        record = _usable(value, decode)
        if record is None:
            continue
        if isinstance(record, TickRecord):
            missing[record.interval] -= 1
            if missing[record.interval] != 0:
                continue
            roster = rosters.get(record.interval) if source == METRICS else None
            record = record.model_copy(update={"partitions": _ONE_EACH, "roster": roster})
        yield Located(source=source, partition=0, offset=offset, record=record)


def _partitions(source: int, tick: TickRecord) -> int:
    return tick.partitions.metrics if source == METRICS else tick.partitions.results


def _tick(value: bytes, decode: _Decode) -> TickRecord | None:
    """The tick that *value* holds; None of any other record, which is not decoded."""
    record = _usable(value, decode) if _TICK in value else None
    return record if isinstance(record, TickRecord) else None


def _usable(value: bytes, decode: _Decode) -> object | None:
    """The record that *value* holds; None of one that is another cluster's, or that became a dead letter."""
    try:
        return decode(value)
    except WireError:
        return None
