"""Decoded records as rows of the fold, one by one.

wire/packed_rows.py makes rows of the columns that the query's Java has packed.  Both give the same rows for the same
records: tests/integration/test_rows_in_spark_and_python.py.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np

from controller.aggregate.columns.name_column import NameColumn
from controller.aggregate.columns.rows import (
    BUNDLE,
    FACT,
    REPORT,
    REPORT_BUNDLE,
    STATS,
    SWEEP,
    TICK,
    TOPIC,
    Rows,
)
from controller.aggregate.shard.fold import DetailLimits
from controller.aggregate.state.averages import LONG_TERM_SAMPLES, SHORT_TERM_SAMPLES
from controller.model import records as model
from controller.model.load import RESOURCE_FIELDS, Floats, Ints
from controller.model.names import topic_hash
from controller.model.topic_kinds import kind_of
from controller.wire import metrics, results
from controller.wire.sweep import ArrowSweep, BrokerSweep, BundleTotals, SweepHeader
from controller.wire.sweep_load import in_stats, kinds_of_totals, sweep_load, totals_of

_NO_LOAD = np.zeros(len(STATS))
_NO_TOPICS = np.zeros(0, np.int64), np.zeros((0, 4))


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
                balancing=None if record.balancing is None else record.balancing.balancing,
                leader=record.leader or None,
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
    kinds: list[int] = field(default_factory=list)
    topic: list[tuple[int, int]] = field(default_factory=list)
    detail: list[tuple[Ints, Floats]] = field(default_factory=list)
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
        kinds: int = 0,
        topic: tuple[int, int] = (0, 0),
        detail: tuple[Ints, Floats] = _NO_TOPICS,
    ) -> int:
        self.at.append((at.source, at.partition, at.offset, at.file))
        self.kind.append(kind)
        self.dated.append((interval, chunk, chunks, last_update))
        self.names.append((broker, sweep, bundle))
        self.stats.append(stats)
        self.kinds.append(kinds)
        self.topic.append(topic)
        self.detail.append(detail)
        return len(self.kind) - 1

    def rows(self, *, files: bool) -> Rows:
        source, partition, offset = (np.array([at[i] for at in self.at], np.int64) for i in range(3))
        interval, chunk, chunks, last_update = (np.array([d[i] for d in self.dated], np.int64) for i in range(4))
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
            kinds=np.array(self.kinds, np.uint8),
            topic=np.array(self.topic, np.int64).reshape(-1, 2),
            detail_size=np.array([len(position) for position, _ in self.detail], np.int64),
            detail_position=np.concatenate([_NO_TOPICS[0], *(position for position, _ in self.detail)]),
            detail_load=np.concatenate([_NO_TOPICS[1], *(load for _, load in self.detail)]),
            numbers=self.numbers,
            facts=self.facts,
        )


def rows_from_records(records: Iterable[Located], limits: DetailLimits, *, files: bool = False) -> Rows:
    """Rows of decoded *records*, for one shard that holds everything."""
    columns = _Columns()
    for at in records:
        match at.record:
            case BrokerSweep() | ArrowSweep():
                _add_sweep(columns, at, at.record, limits)
            case metrics.BrokerLoadRecord():
                _add_report(columns, at, at.record)
            case metrics.TopicStats():
                _add_topic(columns, at, at.record)
            case metrics.TickRecord():
                columns.facts[columns.add(at, TICK, interval=at.record.interval)] = fact_of(at.record)
            case record:
                columns.facts[columns.add(at, FACT)] = fact_of(record)
    return columns.rows(files=files)


def _add_sweep(columns: _Columns, at: Located, sweep: BrokerSweep | ArrowSweep, limits: DetailLimits) -> None:
    said, load = _said(sweep), sweep_load(sweep, limits)
    columns.numbers[columns.add(at, SWEEP, **said)] = numbers_of(sweep)
    detail = load.detail
    for bundle, stats, kinds, (lo, hi) in zip(
        sweep.bundles, load.stats, load.kinds.tolist(), pairwise(detail.starts.tolist()), strict=True
    ):
        topics = detail.position[lo:hi], detail.load[lo:hi]
        columns.add(at, BUNDLE, bundle=bundle, stats=stats, kinds=kinds, detail=topics, **said)


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
        columns.add(at, REPORT_BUNDLE, bundle=bundle, stats=_totals(totals), kinds=kinds_of_totals(totals), **said)


def _add_topic(columns: _Columns, at: Located, stats: metrics.TopicStats) -> None:
    rates = (stats.msg_rate_in, stats.msg_rate_out, stats.msg_throughput_in, stats.msg_throughput_out)
    numbers = np.array([*rates, stats.producer_count, stats.consumer_count, 1], np.float64)
    key = int.from_bytes(blake2b(stats.topic.encode(), digest_size=8).digest(), "big", signed=True)
    columns.add(
        at,
        TOPIC,
        broker=stats.broker,
        bundle=stats.bundle,
        stats=in_stats(numbers),
        kinds=kind_of(stats.topic),
        topic=(key, topic_hash(stats.topic)),
    )


def numbers_of(said: SweepHeader | metrics.LocalBrokerDataRecord) -> Floats:
    """(NUMBERS,) what a broker says of itself: see controller.aggregate.columns.rows."""
    loads = (said.msg_rate_in, said.msg_rate_out, said.msg_throughput_in, said.msg_throughput_out)
    resources = [getattr(said, name) for name in RESOURCE_FIELDS]
    parts = [number for resource in resources for number in (resource.used, resource.limit)]
    kinds_off = said.kinds_off if isinstance(said, metrics.LocalBrokerDataRecord) else 0
    return np.array([*parts, *loads, said.num_topics, said.num_bundles, kinds_off], np.float64)


def _totals(totals: BundleTotals) -> Floats:
    return in_stats(np.array(totals_of(totals), np.float64))
