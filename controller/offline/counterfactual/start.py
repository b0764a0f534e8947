"""Finds where to start in the middle of a log, behind the ticks of an interval, and the state at that point."""

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from controller.adapters.recordings.reading import Recording
from controller.adapters.recordings.record_log import Extent, RecordedTopic, RecordLog
from controller.aggregate.shard.shard_state import DetailLimits, ShardState
from controller.aggregate.state.bundles import KnownBundles, Seeds
from controller.aggregate.state.states import States
from controller.model.load import LONG_TERM_SAMPLES, SHORT_TERM_SAMPLES, Floats
from controller.model.names import namespace_of
from controller.model.records import BrokerState, NamespaceState
from controller.offline.counterfactual.reading import FoldedBatch, RecordedLoadLog
from controller.offline.record import FROM_THE_BEGINNING, KnownBefore
from controller.offline.record_texts import FOLDED_TOPICS, begin_of
from controller.settings.trimtab_toml import IntervalSettings
from controller.wire.base import encode
from controller.wire.metrics import (
    BalancingSwitches,
    BrokerStateRecord,
    BundleData,
    Capacity,
    NamespaceStateRecord,
    StoredBundleData,
    TickRecord,
    TimeAverage,
)


def known_in(state: ShardState, cluster: str) -> Iterator[bytes]:
    """Records from which a fold begins with the averages and states of *state*, the only shard."""
    yield from _namespaces(state.namespaces, cluster)
    yield from _brokers(state.brokers, cluster)
    bundles, seeds = state.bundles, state.seeds
    known = {name for row, name in enumerate(bundles.names) if bundles.long_samples[row] > 0}
    yield from _averages(bundles, known, cluster)
    yield from _averages(seeds, set(seeds.names) - known, cluster)


def _averages(table: KnownBundles | Seeds, names: Set[str], cluster: str) -> Iterator[bytes]:
    for row, name in enumerate(table.names):
        if name in names:
            short = _average(table.short_term[row], int(table.short_samples[row]), SHORT_TERM_SAMPLES)
            long = _average(table.long_term[row], int(table.long_samples[row]), LONG_TERM_SAMPLES)
            stored = StoredBundleData(short_term_data=short, long_term_data=long, topics=0)
            yield encode(BundleData(cluster=cluster, bundle=name, bundle_data=stored))


def _average(load: Floats, samples: int, max_samples: int) -> TimeAverage:
    rate_in, rate_out, bytes_in, bytes_out = load.tolist()
    return TimeAverage(
        max_samples=max_samples,
        num_samples=samples,
        msg_rate_in=rate_in,
        msg_rate_out=rate_out,
        msg_throughput_in=bytes_in,
        msg_throughput_out=bytes_out,
    )


def _namespaces(states: States[NamespaceState], cluster: str) -> Iterator[bytes]:
    for state in states:
        yield encode(
            NamespaceStateRecord(
                cluster=cluster,
                namespace=state.namespace,
                version=state.version,
                boundaries=state.boundaries,
                anti_affinity_group=state.anti_affinity_group or None,
                isolation_policies=state.isolation_policies or None,
            )
        )


def _brokers(states: States[BrokerState], cluster: str) -> Iterator[bytes]:
    for state in states:
        record = BrokerStateRecord(
            cluster=cluster,
            broker=state.broker,
            version=state.version,
            failure_domain=state.failure_domain or None,
            broker_version_string=state.broker_version or None,
            persistent_topics_enabled=state.persistent_topics,
            non_persistent_topics_enabled=state.non_persistent_topics,
            balancing=None if state.balancing is None else BalancingSwitches.of(state.balancing),
            leader=state.leader,
        )
        if state.capacity:
            record = record.model_copy(update={"capacity": Capacity.model_validate(dict(state.capacity))})
        yield encode(record)


#: No topic is kept: averages and states do not need them.
_NONE = DetailLimits(topics=float("inf"), sessions=float("inf"), msg_rate=float("inf"), throughput=float("inf"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogStart:
    """Behind the ticks of an interval."""

    state: ShardState
    #: Topic -> partition -> the first offset behind them.
    first: dict[RecordedTopic, dict[int, int]]
    #: How many intervals were read, and T of the first and of the last one, epoch ms.
    intervals: int
    first_ms: int
    last_ms: int


def start_before(
    log: RecordLog,
    since: int,
    settings: IntervalSettings,
    cluster: str,
    *,
    before: int | None = None,
    tell: Callable[[float], None] = lambda _: None,
) -> LogStart | None:
    """Behind the last interval before *since*, epoch ms; None where the log has none.

    *before*: only this many intervals before it are read, for averages, if there is one among them; None: all that the
    log has.  *tell* takes how many are read.  One interval at a time is in memory.
    """
    begin = begin_of(log)
    parts = {} if before is None else _parts_since(log, since - (before + 1) * settings.period_ms)
    load = RecordedLoadLog(records=log, cluster=cluster, settings=settings, begin=begin, parts=parts, detail=_NONE)
    start, ticks = None, list[_Tick]()
    for step in load.folded():
        ticks += _ticks(step)
        closed = [snapshot.interval for snapshot in step.closed]
        if closed and closed[-1] >= since:
            break
        if closed:
            start = _behind(start, step, closed, [tick for tick in ticks if tick.interval <= closed[-1]])
            ticks = [tick for tick in ticks if tick.interval > closed[-1]]
            tell(start.intervals)
    if start is None and before is not None:  # nothing was ticked for longer than that
        return start_before(log, since, settings, cluster, tell=tell)
    return start


def _behind(start: LogStart | None, step: FoldedBatch, closed: Sequence[int], ticks: Sequence["_Tick"]) -> LogStart:
    """Behind *step*, which has *closed* intervals; *ticks* are those of them that *start* does not know."""
    first: dict[RecordedTopic, dict[int, int]] = {topic: {} for topic in FOLDED_TOPICS.values()}
    if start is not None:
        first |= {topic: dict(offsets) for topic, offsets in start.first.items()}
    for tick in ticks:
        first[tick.topic][tick.partition] = tick.offset + 1
    return LogStart(
        state=step.state,
        first=first,
        intervals=len(closed) + (0 if start is None else start.intervals),
        first_ms=closed[0] if start is None else start.first_ms,
        last_ms=closed[-1],
    )


def known_before(
    log: RecordLog,
    since: int | None,
    settings: IntervalSettings,
    cluster: str,
    *,
    before: int | None = None,
    tell: Callable[[float], None] = lambda _: None,
) -> KnownBefore | None:
    """What a controller knew when it read the first interval from *since* (epoch ms) on; see ``start_before``.

    Where the log has no interval before that, or *since* is None, that is what is known when the log begins; None where
    it is nothing.
    """
    start = None if since is None else start_before(log, since, settings, cluster, before=before, tell=tell)
    return known_at(start, log, cluster)


def known_at(start: LogStart | None, log: RecordLog, cluster: str) -> KnownBefore | None:
    """What was known at *start*; None: when *log* begins, and None where that is nothing."""
    if start is None:
        return _known_when_it_begins(log)
    namespaces_seen = {namespace_of(name) for name in start.state.bundles.names}
    return KnownBefore(
        records=tuple(known_in(start.state, cluster)),
        first=start.first,
        intervals=start.intervals,
        first_ms=start.first_ms,
        last_ms=start.last_ms,
        undescribed=len(namespaces_seen - {state.namespace for state in start.state.namespaces}),
    )


def _known_when_it_begins(log: RecordLog) -> KnownBefore | None:
    about = log.manifest.known_before if isinstance(log, Recording) else None
    if about is None:
        return None
    return KnownBefore(
        records=begin_of(log),
        first=FROM_THE_BEGINNING,
        intervals=about.intervals,
        first_ms=about.first_ms,
        last_ms=about.last_ms,
        undescribed=about.undescribed,
    )


class _Tick(NamedTuple):
    topic: RecordedTopic
    partition: int
    offset: int
    interval: int


def _ticks(step: FoldedBatch) -> Iterator[_Tick]:
    for located in step.records:
        if isinstance(located.record, TickRecord):
            yield _Tick(FOLDED_TOPICS[located.source], located.partition, located.offset, located.record.interval)


def _parts_since(log: RecordLog, time_ms: int) -> dict[RecordedTopic, dict[int, Extent]]:
    extents: dict[RecordedTopic, dict[int, Extent]] = {}
    for topic in FOLDED_TOPICS.values():
        since = log.since(topic, max(0, time_ms))
        extents[topic] = {each: Extent(since.get(each, at.first), at.end) for each, at in log.extents(topic).items()}
    return extents
