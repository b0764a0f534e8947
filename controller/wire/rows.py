"""Decoded records as rows of the fold, one by one.

wire/packed_rows.py makes rows of the columns that the query's Java has packed.  Both give the same rows for the same
records: tests/integration/test_rows_in_spark_and_python.py.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

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
from controller.model import records as model
from controller.model.load import LONG_TERM_SAMPLES, RESOURCE_FIELDS, SHORT_TERM_SAMPLES, Floats, Ints
from controller.model.names import topic_hash
from controller.model.segment_code import segment_code
from controller.model.topic_kinds import kind_of
from controller.wire import metrics, results
from controller.wire.sweep import ArrowSweep, BrokerSweep, BundleTotals, SweepHeader
from controller.wire.sweep_load import in_stats, kinds_of_totals, sweep_load, totals_of

_NO_LOAD = np.zeros(len(STATS))
_NO_TOPICS = np.zeros(0, np.int64), np.zeros((0, 4)), np.zeros(0, np.int64)


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
                auto_scale=record.auto_scale_policy.overrides if record.auto_scale_policy is not None else None,
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
    assert quota is not None, "a bundle_data has exactly one of the two, as its model ensures"
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


class _Row(NamedTuple):
    """A row of Rows; what a kind of rows does not have is left out."""

    at: Located
    kind: int
    interval: int = -1
    broker: str = ""
    sweep: str = ""
    chunk: int = 0
    chunks: int = 0
    last_update: int = 0
    bundle: str = ""
    stats: Floats = _NO_LOAD
    kinds: int = 0
    topic: tuple[int, int, int] = (0, 0, 0)
    #: Positions, load and codes of its topics.
    detail: tuple[Ints, Floats, Ints] = _NO_TOPICS
    numbers: Floats | None = None
    fact: model.Fact | None = None


def rows_from_records(records: Iterable[Located], limits: DetailLimits, *, files: bool = False) -> Rows:
    """Rows of decoded *records*, for one shard that holds everything."""
    rows = [row for at in records for row in _rows_of(at, limits)]

    def ints(name: str) -> Ints:
        return np.array([*map(attrgetter(name), rows)], np.int64)

    def names(name: str) -> NameColumn:
        return NameColumn.of([*map(attrgetter(name), rows)])

    return Rows(
        kind=ints("kind"),
        source=ints("at.source"),
        partition=ints("at.partition"),
        offset=ints("at.offset"),
        file=names("at.file") if files else None,
        interval=ints("interval"),
        broker=names("broker"),
        sweep=names("sweep"),
        chunk=ints("chunk"),
        chunks=ints("chunks"),
        last_update=ints("last_update"),
        bundle=names("bundle"),
        stats=np.array([row.stats for row in rows]).reshape(-1, len(STATS)),
        kinds=ints("kinds").astype(np.uint8),
        topic=ints("topic").reshape(-1, 3),
        detail_size=np.array([len(row.detail[0]) for row in rows], np.int64),
        detail_position=np.concatenate([_NO_TOPICS[0], *(row.detail[0] for row in rows)]),
        detail_load=np.concatenate([_NO_TOPICS[1], *(row.detail[1] for row in rows)]),
        detail_segment=np.concatenate([_NO_TOPICS[2], *(row.detail[2] for row in rows)]),
        numbers={i: row.numbers for i, row in enumerate(rows) if row.numbers is not None},
        facts={i: row.fact for i, row in enumerate(rows) if row.fact is not None},
    )


def _rows_of(at: Located, limits: DetailLimits) -> Iterator[_Row]:
    match at.record:
        case BrokerSweep() | ArrowSweep():
            yield from _of_sweep(at, at.record, limits)
        case metrics.BrokerLoadRecord():
            yield from _of_report(at, at.record)
        case metrics.TopicStats():
            yield _of_topic(at, at.record)
        case metrics.TickRecord():
            yield _Row(at, TICK, interval=at.record.interval, fact=fact_of(at.record))
        case record:
            yield _Row(at, FACT, fact=fact_of(record))


def _of_sweep(at: Located, sweep: BrokerSweep | ArrowSweep, limits: DetailLimits) -> Iterator[_Row]:
    header = _Row(
        at,
        SWEEP,
        interval=sweep.interval,
        broker=sweep.broker,
        sweep=sweep.sweep_id,
        chunk=sweep.chunk,
        chunks=sweep.chunks,
        last_update=sweep.last_update,
    )
    yield header._replace(numbers=numbers_of(sweep))
    load = sweep_load(sweep, limits)
    detail, of_bundle = load.detail, header._replace(kind=BUNDLE)
    places = pairwise(detail.starts.tolist())
    for bundle, stats, kinds, (lo, hi) in zip(sweep.bundles, load.stats, load.kinds.tolist(), places, strict=True):
        topics = detail.position[lo:hi], detail.load[lo:hi], detail.segment[lo:hi]
        yield of_bundle._replace(bundle=bundle, stats=stats, kinds=kinds, detail=topics)


def _of_report(at: Located, load: metrics.BrokerLoadRecord) -> Iterator[_Row]:
    header = _Row(at, REPORT, broker=load.broker_name, last_update=load.report.last_update)
    yield header._replace(numbers=numbers_of(load.report))
    of_bundle = header._replace(kind=REPORT_BUNDLE)
    for bundle, totals in load.report.last_stats.items():
        yield of_bundle._replace(bundle=bundle, stats=_totals(totals), kinds=kinds_of_totals(totals))


def _of_topic(at: Located, stats: metrics.TopicStats) -> _Row:
    rates = (stats.msg_rate_in, stats.msg_rate_out, stats.msg_throughput_in, stats.msg_throughput_out)
    numbers = np.array([*rates, stats.producer_count, stats.consumer_count, 1], np.float64)
    key = int.from_bytes(blake2b(stats.topic.encode(), digest_size=8).digest(), "big", signed=True)
    return _Row(
        at,
        TOPIC,
        broker=stats.broker,
        bundle=stats.bundle,
        stats=in_stats(numbers),
        kinds=kind_of(stats.topic),
        topic=(key, topic_hash(stats.topic), segment_code(stats.topic)),
    )


def numbers_of(values: SweepHeader | metrics.LocalBrokerDataRecord) -> Floats:
    """(NUMBERS,) what a broker says of itself: see controller.aggregate.columns.rows."""
    loads = (values.msg_rate_in, values.msg_rate_out, values.msg_throughput_in, values.msg_throughput_out)
    resources = [getattr(values, name) for name in RESOURCE_FIELDS]
    parts = [number for resource in resources for number in (resource.used, resource.limit)]
    kinds_off = values.kinds_off if isinstance(values, metrics.LocalBrokerDataRecord) else 0
    return np.array([*parts, *loads, values.num_topics, values.num_bundles, kinds_off], np.float64)


def _totals(totals: BundleTotals) -> Floats:
    return in_stats(np.array(totals_of(totals), np.float64))
