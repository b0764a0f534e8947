"""Records as rows of the fold: from Spark's columns, or from decoded records one by one.

Both ways give the same rows for the same records; an integration test holds them against each other.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller.aggregate.averages import LONG_TERM_SAMPLES, SHORT_TERM_SAMPLES
from controller.aggregate.name_column import NameColumn
from controller.aggregate.rows import (
    BUNDLE,
    FACT,
    METRICS,
    RATES,
    REFUSED,
    REPORT,
    REPORT_BUNDLE,
    STATS,
    SWEEP,
    TICK,
    TOPIC,
    Rows,
)
from controller.aggregate.shard import DetailLimits
from controller.model import records as model
from controller.model.errors import WireError
from controller.model.load import Floats
from controller.model.names import topic_hash
from controller.wire import metrics, results
from controller.wire.arrow_load import arrow_load, in_stats
from controller.wire.base import reader
from controller.wire.sweep import ArrowSweep, BrokerSweep, BundleStats, BundleTotals, SweepHeader

_NO_LOAD = np.zeros(len(STATS))
_BYTES_OF_STATS = 8 * len(STATS)
#: Whole numbers of a topic in the column ``topics``.
_TOPIC_NUMBERS = 5


def fact_of(record: Any) -> model.Fact:
    """The fact that a decoded tick, result, state or bundle_data states."""
    match record:
        case metrics.TickRecord():
            roster = record.roster
            listed = None if roster is None else tuple(sorted((e.broker, e.sweep_id or "") for e in roster))
            return model.Tick(
                interval=record.interval,
                metrics_partitions=record.partitions.metrics,
                results_partitions=record.partitions.results,
                roster=listed,
            )
        case results.Result():
            return model.CommandResult(
                id=record.id,
                status=record.status,
                detail=record.detail,
                owner_before=record.owner_before or "",
                owner_after=record.owner_after or "",
            )
        case metrics.NamespaceStateRecord():
            return model.NamespaceState(
                namespace=record.namespace,
                version=record.version,
                boundaries=record.boundaries,
                anti_affinity_group=record.anti_affinity_group or "",
                isolation_policies=record.isolation_policies or (),
            )
        case metrics.BrokerStateRecord():
            capacity = {} if record.capacity is None else record.capacity.model_dump(by_alias=True, exclude_none=True)
            return model.BrokerState(
                broker=record.broker,
                version=record.version,
                failure_domain=record.failure_domain or "",
                broker_version=record.broker_version_string or "",
                persistent_topics=record.persistent_topics_enabled is not False,
                non_persistent_topics=record.non_persistent_topics_enabled is not False,
                capacity=tuple(sorted(capacity.items())),
            )
        case metrics.BundleData():
            return _seed(record)
    raise TypeError(f"{type(record).__name__} is not a fact")


def _seed(record: metrics.BundleData) -> model.BundleSeed:
    if record.bundle_data is not None:
        short, long = record.bundle_data.short_term_data, record.bundle_data.long_term_data
        return model.BundleSeed(
            bundle=record.bundle,
            short_term_samples=short.num_samples,
            short_term=(short.msg_rate_in, short.msg_rate_out, short.msg_throughput_in, short.msg_throughput_out),
            long_term_samples=long.num_samples,
            long_term=(long.msg_rate_in, long.msg_rate_out, long.msg_throughput_in, long.msg_throughput_out),
        )
    quota = record.resource_quota
    assert quota is not None, "a bundle_data has one of the two, says its model"
    load = (quota.msg_rate_in, quota.msg_rate_out, quota.bandwidth_in, quota.bandwidth_out)
    # A quota starts at the full number of samples, as in Pulsar.
    return model.BundleSeed(
        bundle=record.bundle,
        short_term_samples=SHORT_TERM_SAMPLES,
        short_term=load,
        long_term_samples=LONG_TERM_SAMPLES,
        long_term=load,
    )


# ---- from Spark's columns ----


def rows_from_columns(columns: Mapping[str, NDArray[Any]], *, cluster: str, period_ms: int, files: bool) -> Rows:
    """Rows from the columns of streaming.schemas.ROW, unpacked; those of refused records are left out.

    Facts that do not decode are left out of ``facts``: see ``Rows.unread``.  ``files``: the log is a folder, and
    ``file`` orders before ``offset``.  O(bytes); nothing in Python a bundle but its name, nothing a topic.
    """
    columns = _without_refused(columns)
    packed = _Packed(columns)
    stats, detail_size = _bundle_columns(columns, packed.loaded, packed.at)
    return Rows(
        kind=packed.kind[packed.at],
        source=packed.numbers("source"),
        partition=packed.numbers("partition"),
        offset=packed.of_topics(0, packed.numbers("offset")),
        file=packed.texts("file") if files else None,
        interval=packed.numbers("interval"),
        broker=packed.lines("broker", packed.of_topics(1, packed.zero)),
        sweep=packed.texts("sweep"),
        chunk=packed.numbers("chunk"),
        chunks=packed.numbers("chunks"),
        last_update=packed.numbers("last_update"),
        bundle=packed.lines("bundles", packed.of_topics(2, packed.nth)),
        stats=stats,
        topic=np.stack([packed.of_topics(column, packed.zero) for column in (3, 4)], axis=1),
        detail_size=detail_size,
        detail_position=_unpacked(columns["detail_position"], "<i8"),
        detail_load=_unpacked(columns["detail_load"], "<f8").reshape(-1, len(RATES)),
        numbers=_numbers(columns, packed.kind, packed.start),
        facts=_facts(columns, packed.kind, packed.start, cluster, period_ms),
    )


def _without_refused(columns: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
    good = columns["kind"] != REFUSED
    return columns if good.all() else {name: column[good] for name, column in columns.items()}


class _Packed:
    """The packed rows of *columns*, and which rows each unpacks to."""

    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        self._columns = columns
        #: (packed,)
        self.kind = columns["kind"].astype(np.int64)
        self.loaded = np.isin(self.kind, (BUNDLE, TOPIC, REPORT_BUNDLE))
        size = np.ones(len(self.kind), np.int64)
        size[self.loaded] = [len(stats) // _BYTES_OF_STATS for stats in columns["stats"][self.loaded]]
        #: (packed,) the first row that each unpacks to.
        self.start = np.cumsum(size) - size
        #: (rows,) the packed row that each comes from, and its place among the rows that come from there.
        self.at = np.repeat(np.arange(len(self.kind)), size)
        self.nth = np.arange(len(self.at)) - self.start[self.at]
        self.zero = np.zeros(len(self.at), np.int64)
        self._by_topic = self.kind[self.at] == TOPIC
        self._topics = _unpacked(columns["topics"], "<i8").reshape(-1, _TOPIC_NUMBERS)

    def numbers(self, name: str) -> NDArray[np.int64]:
        """A column of numbers: each row has that of its packed row, as in :meth:`texts`."""
        return self._columns[name].astype(np.int64)[self.at]

    def texts(self, name: str) -> NameColumn:
        """A column of texts."""
        return NameColumn(names=self._columns[name].tolist(), codes=self.at)

    def lines(self, name: str, line: NDArray[np.int64]) -> NameColumn:
        """A column of texts of many lines: each row has one, that *line*."""
        texts = self._columns[name].tolist()
        first = np.cumsum([0, *(text.count("\n") + 1 for text in texts)])
        # No name has a line break (controller.wire.base.Name).  A row without names has an empty one: a line too.
        return NameColumn(names="\n".join(texts).split("\n"), codes=first[self.at] + line)

    def of_topics(self, column: int, others: NDArray[np.int64]) -> NDArray[np.int64]:
        """*others*, (rows,), but that *column* of ``topics`` in TOPIC rows."""
        found = others.copy()
        found[self._by_topic] = self._topics[:, column]
        return found


def _bundle_columns(
    columns: Mapping[str, NDArray[Any]], loaded: NDArray[np.bool_], at: NDArray[np.int64]
) -> tuple[Floats, NDArray[np.int64]]:
    """(rows, 7) stats and (rows,) the number of topics in detail; 0 in rows that are not *loaded*, or not detailed.

    *at*: of each row the place in *columns* that it is unpacked from.
    """
    stats, detail_size = np.zeros((len(at), len(STATS))), np.zeros(len(at), np.int64)
    stats[loaded[at]] = _unpacked(columns["stats"], "<i8").reshape(-1, len(STATS))
    detailed = np.array([sizes is not None for sizes in columns["detail_size"]], np.bool_)
    detail_size[detailed[at]] = _unpacked(columns["detail_size"], "<i8")
    return stats, detail_size


def _numbers(
    columns: Mapping[str, NDArray[Any]], packed: NDArray[np.int64], start: NDArray[np.int64]
) -> dict[int, Floats]:
    """Row -> what a broker says of itself; *packed* and *start* as in :func:`_facts`."""
    reports = np.flatnonzero((packed == SWEEP) | (packed == REPORT)).tolist()
    return {int(start[i]): np.frombuffer(columns["numbers"][i], "<f8") for i in reports}


def _facts(
    columns: Mapping[str, NDArray[Any]],
    packed: NDArray[np.int64],
    start: NDArray[np.int64],
    cluster: str,
    period_ms: int,
) -> dict[int, Any]:
    """Row -> the fact in it; *packed* is each column's kind, *start* the row that it unpacks to."""
    facts = {}
    for i in np.flatnonzero((packed == TICK) | (packed == FACT)).tolist():
        fact = _fact_in(columns["body"][i], int(columns["source"][i]), cluster, period_ms)
        if fact is not None:
            facts[int(start[i])] = fact
    return facts


def _unpacked(column: NDArray[Any], kind: str) -> NDArray[Any]:
    return np.frombuffer(b"".join(packed for packed in column if packed is not None), kind)


# A tick comes to every shard, and its roster names every broker: it is read once for all shards of a worker.
@lru_cache(maxsize=16)
def _fact_in(body: str, source: int, cluster: str, period_ms: int) -> model.Fact | None:
    try:
        return _read_fact(body, source, cluster, period_ms)
    except WireError:
        return None


@reader
def _read_fact(body: str, source: int, cluster: str, period_ms: int) -> model.Fact | None:
    decode = metrics.decode_metric if source == METRICS else results.decode_result
    value = body.encode()
    # The query has already refused records that are too long or ahead of their append time.
    record = decode(value, cluster=cluster, period_ms=period_ms, max_bytes=len(value))
    return None if record is None else fact_of(record)


# ---- from decoded records ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A decoded record and where it lies."""

    source: int
    partition: int
    offset: int
    record: Any
    file: str = ""


@dataclass(slots=True)
class _Columns:
    """Rows being collected, one entry a row."""

    at: list[tuple[int, int, int, str]] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    dated: list[tuple[int, int, int, int]] = field(default_factory=list)
    names: list[tuple[str, str, str]] = field(default_factory=list)
    stats: list[Floats] = field(default_factory=list)
    topic: list[tuple[int, int]] = field(default_factory=list)
    detail: list[tuple[list[int], Floats]] = field(default_factory=list)
    numbers: dict[int, Floats] = field(default_factory=dict)
    facts: dict[int, model.Fact] = field(default_factory=dict)

    def add(
        self,
        at: Located,
        kind: int,
        *,
        interval: int = -1,
        broker: str = "",
        sweep: str = "",
        chunk: int = 0,
        chunks: int = 0,
        last_update: int = 0,
        bundle: str = "",
        stats: Floats = _NO_LOAD,
        topic: tuple[int, int] = (0, 0),
        detail: tuple[list[int], Floats] = ([], np.empty((0, 4))),
    ) -> int:
        self.at.append((at.source, at.partition, at.offset, at.file))
        self.kind.append(kind)
        self.dated.append((interval, chunk, chunks, last_update))
        self.names.append((broker, sweep, bundle))
        self.stats.append(stats)
        self.topic.append(topic)
        self.detail.append(detail)
        return len(self.kind) - 1

    def rows(self, *, files: bool) -> Rows:
        source, partition, offset = (np.array([at[i] for at in self.at], np.int64) for i in range(3))
        interval, chunk, chunks, last_update = (np.array([d[i] for d in self.dated], np.int64) for i in range(4))
        positions = [np.array(position, np.int64) for position, _ in self.detail]
        return Rows(
            kind=np.array(self.kind, np.int64),
            source=source,
            partition=partition,
            offset=offset,
            file=NameColumn.of([at[3] for at in self.at]) if files else None,
            interval=interval,
            broker=NameColumn.of([names[0] for names in self.names]),
            sweep=NameColumn.of([names[1] for names in self.names]),
            chunk=chunk,
            chunks=chunks,
            last_update=last_update,
            bundle=NameColumn.of([names[2] for names in self.names]),
            stats=np.array(self.stats).reshape(-1, len(STATS)),
            topic=np.array(self.topic, np.int64).reshape(-1, 2),
            detail_size=np.array([len(position) for position in positions], np.int64),
            detail_position=np.concatenate([np.empty(0, np.int64), *positions]),
            detail_load=np.concatenate([np.empty((0, 4)), *(load for _, load in self.detail)]),
            numbers=self.numbers,
            facts=self.facts,
        )


def rows_from_records(records: Iterable[Located], limits: DetailLimits, *, files: bool = False) -> Rows:
    """Rows of decoded *records*, for one shard that holds everything."""
    columns = _Columns()
    for at in records:
        match at.record:
            case BrokerSweep():
                _add_sweep(columns, at, at.record, limits)
            case ArrowSweep():
                _add_arrow_sweep(columns, at, at.record, limits)
            case metrics.BrokerLoadRecord():
                _add_report(columns, at, at.record)
            case metrics.TopicStats():
                _add_topic(columns, at, at.record)
            case metrics.TickRecord():
                columns.facts[columns.add(at, TICK, interval=at.record.interval)] = fact_of(at.record)
            case record:
                columns.facts[columns.add(at, FACT)] = fact_of(record)
    return columns.rows(files=files)


def _add_sweep(columns: _Columns, at: Located, sweep: BrokerSweep, limits: DetailLimits) -> None:
    said = _said(sweep)
    columns.numbers[columns.add(at, SWEEP, **said)] = numbers_of(sweep)
    for stats in sweep.bundle_stats:
        loads = _topic_loads(stats)
        detail = (
            ([topic_hash(topic) for topic in stats.topic], loads) if _near(stats.totals, limits) else ([], loads[:0])
        )
        columns.add(at, BUNDLE, bundle=stats.bundle, stats=_summed(stats, loads), detail=detail, **said)


def _add_arrow_sweep(columns: _Columns, at: Located, sweep: ArrowSweep, limits: DetailLimits) -> None:
    said, load = _said(sweep), arrow_load(sweep, limits)
    columns.numbers[columns.add(at, SWEEP, **said)] = numbers_of(sweep)
    ends = np.cumsum(load.detail_size)
    for bundle, stats, lo, hi in zip(sweep.bundles, load.stats, ends - load.detail_size, ends, strict=True):
        detail = (load.detail_position[lo:hi].tolist(), load.detail_load[lo:hi])
        columns.add(at, BUNDLE, bundle=bundle, stats=stats, detail=detail, **said)


def _said(sweep: SweepHeader) -> dict[str, Any]:
    return {
        "interval": sweep.interval,
        "broker": sweep.broker,
        "sweep": sweep.sweep_id,
        "chunk": sweep.chunk,
        "chunks": sweep.chunks,
        "last_update": sweep.last_update,
    }


def _add_report(columns: _Columns, at: Located, load: metrics.BrokerLoadRecord) -> None:
    said: dict[str, Any] = {"broker": load.broker_name, "last_update": load.report.last_update}
    columns.numbers[columns.add(at, REPORT, **said)] = numbers_of(load.report)
    for bundle, totals in load.report.last_stats.items():
        columns.add(at, REPORT_BUNDLE, bundle=bundle, stats=_totals(totals), **said)


def _add_topic(columns: _Columns, at: Located, stats: metrics.TopicStats) -> None:
    rates = (stats.msg_rate_in, stats.msg_rate_out, stats.msg_throughput_in, stats.msg_throughput_out)
    counts = (stats.producer_count, stats.consumer_count, 1)
    key = int.from_bytes(blake2b(stats.topic.encode(), digest_size=8).digest(), "big", signed=True)
    columns.add(
        at,
        TOPIC,
        broker=stats.broker,
        bundle=stats.bundle,
        stats=_in_stats(np.array(rates), counts),
        topic=(key, topic_hash(stats.topic)),
    )


def numbers_of(said: SweepHeader | metrics.LocalBrokerDataRecord) -> Floats:
    """(16,) what a broker says of itself: see controller.aggregate.rows.NUMBERS."""
    resources = (said.cpu, said.memory, said.direct_memory, said.bandwidth_in, said.bandwidth_out)
    loads = (said.msg_rate_in, said.msg_rate_out, said.msg_throughput_in, said.msg_throughput_out)
    parts = [number for resource in resources for number in (resource.usage, resource.limit)]
    return np.array([*parts, *loads, said.num_topics, said.num_bundles], np.float64)


def _topic_loads(stats: BundleStats) -> Floats:
    rates = (stats.msg_rate_in, stats.msg_rate_out, stats.msg_throughput_in, stats.msg_throughput_out)
    return np.array(rates, np.float64).reshape(4, len(stats.topic)).T


def _summed(stats: BundleStats, loads: Floats) -> Floats:
    """A bundle's load: its topics summed in the record's order, as the JVM does, or its totals."""
    if not stats.topic:
        return _totals(stats.totals)
    sessions = np.array([stats.producer_count, stats.consumer_count], np.float64)
    counts = (*np.cumsum(sessions, axis=1)[:, -1], len(stats.topic))
    return _in_stats(np.cumsum(loads, axis=0)[-1], counts)


def _totals(totals: BundleTotals) -> Floats:
    rates = (totals.msg_rate_in, totals.msg_rate_out, totals.msg_throughput_in, totals.msg_throughput_out)
    return _in_stats(np.array(rates, np.float64), (totals.producer_count, totals.consumer_count, totals.topics))


def _in_stats(rates: Floats, counts: Sequence[float]) -> Floats:
    return in_stats(rates, np.array(counts, np.float64))


def _near(totals: BundleTotals, limits: DetailLimits) -> bool:
    return (
        totals.topics >= limits.topics
        or totals.producer_count + totals.consumer_count >= limits.sessions
        or totals.msg_rate_in + totals.msg_rate_out >= limits.msg_rate
        or totals.msg_throughput_in + totals.msg_throughput_out >= limits.throughput
    )
