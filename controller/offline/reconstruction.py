"""The load of one interval, read again from the log: the records of its own and of some intervals before it.

A log has more partitions than one, and reading backwards loses which record lay in which.  So an interval is closed
where the last of its partitions was ticked, as the controller does.  Averages begin with the first interval that is
read: of a log that is not read whole they are near those that the controller had, not the same.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from controller.aggregate.rows import METRICS, RESULTS
from controller.aggregate.shard import FoldOptions, ShardState, fold
from controller.aggregate.snapshot import Snapshot
from controller.cycle import Policy
from controller.model.errors import WireError
from controller.ports.systems import LogTail
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

    *before*: so many intervals before it are read, too.  TrimtabError where the log cannot be read.
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
    located = [*_located(METRICS, metrics), *_located(RESULTS, results)]
    detail = policy.detail_limits(settings.intervals.detail_share)
    options = FoldOptions(
        bundle_ttl_ms=settings.intervals.bundle_ttl_intervals * period_ms,
        detail=detail,
        state_ttl=settings.intervals.state_ttl_intervals,
    )
    _, snapshots = fold(ShardState(shard=0, shards=1), rows_from_records(located, detail), options)
    return next((each for each in snapshots if each.interval == interval), None)


def _span(values: Iterable[bytes], interval: int, first: int, decode: _Decode) -> list[object]:
    """The records in *values*, newest first, that the ticks from *first* to *interval* end; the oldest is the first."""
    found, begun = list[object](), False
    for value in values:
        # What came after the interval is not decoded.
        record = _usable(value, decode) if begun or _TICK in value else None
        if isinstance(record, TickRecord):
            begun = begun or record.interval <= interval
            if record.interval < first:
                break
        if begun and record is not None:
            found.append(record)
    return found[::-1]


def _located(source: int, records: Sequence[object]) -> Iterator[Located]:
    """*records* as those of one partition: a tick of each interval stands where the last partition was ticked."""
    ticks = [record for record in records if isinstance(record, TickRecord)]
    seen = Counter(tick.interval for tick in ticks)
    rosters = {tick.interval: tick.roster for tick in reversed(ticks) if tick.roster is not None}
    left = {tick.interval: min(_partitions(source, tick), seen[tick.interval]) for tick in ticks}
    for offset, record in enumerate(records):
        if not isinstance(record, TickRecord):
            yield Located(source=source, partition=0, offset=offset, record=record)
            continue
        left[record.interval] -= 1
        if left[record.interval] == 0:
            roster = rosters.get(record.interval) if source == METRICS else None
            tick = record.model_copy(update={"partitions": _ONE_EACH, "roster": roster})
            yield Located(source=source, partition=0, offset=offset, record=tick)


def _partitions(source: int, tick: TickRecord) -> int:
    return tick.partitions.metrics if source == METRICS else tick.partitions.results


def _usable(value: bytes, decode: _Decode) -> object | None:
    """The record that *value* holds; None of one that is another cluster's, or that became a dead letter."""
    try:
        return decode(value)
    except WireError:
        return None
