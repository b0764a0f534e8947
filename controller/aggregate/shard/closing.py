"""Closes an interval in one shard: makes its snapshot, updates the averages, and removes what has expired."""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from controller.aggregate.columns.rows import BUNDLE
from controller.aggregate.shard.shard_state import FoldOptions, ShardState
from controller.aggregate.shard.tidying import without_unused_names
from controller.aggregate.snapshot import BrokerRow, Snapshot
from controller.aggregate.state.facts import fact_from_text
from controller.aggregate.waiting.settling import Loads, settle
from controller.aggregate.waiting.waiting_rows import WaitingHeaders
from controller.model.load import Bools, Ints
from controller.model.records import BrokerState, BundleSeed, CommandResult, NamespaceState
from controller.model.segment_code import NO_SEGMENT

_INTERVAL_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportHeader:
    """A SWEEP or REPORT row: a broker's report about itself."""

    due: int
    source: int
    partition: int
    offset: int
    broker: str
    #: "" for a REPORT.
    sweep: str
    chunk: int
    chunks: int
    last_update: int
    numbers: tuple[float, ...]


def close(state: ShardState, interval: int, options: FoldOptions) -> tuple[ShardState, Snapshot]:
    """Close *interval*, the oldest that can be: its snapshot, and the state behind it.  O(bundles + claims)."""
    roster = state.clock.rosters[interval].roster or ()
    active = {broker for broker, _ in roster}
    over = (state.headers.due >= 0) & (state.headers.due <= interval)
    headers = [h for h in _named(state.headers.take(over), state.pool) if h.broker in active]
    state, results = _with_known_facts(state, interval)

    is_due = (state.claims.due >= 0) & (state.claims.due <= interval)
    unrostered = int(((state.claims.kind == BUNDLE) & is_due & (state.claims.due < interval)).sum())
    loads = _settled(state, is_due, interval, roster, headers)
    state = replace(
        state,
        bundles=state.bundles.seeded(state.seeds).advanced(loads.bundle, loads.load, interval),
        unrostered=state.unrostered + unrostered,
    )
    average = state.bundles.long_term[loads.bundle]
    near = options.detail.near_split(loads.topics, loads.producers + loads.consumers, average)
    detail = topics_for_splits(loads, near, options.most_topics, interval)
    snapshot = _snapshot(state, interval, roster, headers, results, loads, detail)
    state = replace(
        state,
        clock=state.clock.without(interval),
        claims=state.claims.take(~is_due),
        headers=state.headers.take(~over),
        seeds=state.seeds.without(set(snapshot.names)),
        torn=frozenset(place for place in state.torn if not 0 <= place[0] <= interval),
        closes=state.closes + 1,
    )
    return _without_the_old(state, interval, options), snapshot


def _snapshot(
    state: ShardState,
    interval: int,
    roster: tuple[tuple[str, str], ...],
    headers: list[ReportHeader],
    results: list[CommandResult],
    loads: Loads,
    detail: dict[str, Any],
) -> Snapshot:
    """The snapshot of *interval*; *state* has the averages with this interval's *loads*."""
    bundles = state.bundles
    return Snapshot(
        interval=interval,
        shard=state.shard,
        shards=state.shards,
        roster=tuple(broker for broker, _ in roster),
        unswept=tuple(broker for broker, sweep in roster if not sweep),
        brokers=tuple(_brokers(headers, roster, interval)) if state.shard == 0 else (),
        namespaces=state.namespaces.for_snapshot(),
        broker_states=state.brokers.for_snapshot(),
        results=tuple(results),
        torn=tuple(sorted((source, partition) for due, source, partition in state.torn if due == interval)),
        late=state.late,
        unrostered=state.unrostered,
        dropped=state.dropped,
        dropped_states=state.dropped_states,
        names=[bundles.names[i] for i in loads.bundle.tolist()],
        owner=loads.owner,
        contested=loads.contested,
        claimant=loads.claimant,
        load=loads.load,
        kinds=loads.kinds,
        short_samples=bundles.short_samples[loads.bundle],
        short_term=bundles.short_term[loads.bundle],
        long_samples=bundles.long_samples[loads.bundle],
        long_term=bundles.long_term[loads.bundle],
        topics=loads.topics,
        producers=loads.producers,
        consumers=loads.consumers,
        **detail,
    )


def _with_known_facts(state: ShardState, interval: int) -> tuple[ShardState, list[CommandResult]]:
    """Add the facts due by *interval* to the state; results of commands are returned."""
    is_due = (state.facts.due >= 0) & (state.facts.due <= interval)
    facts = [fact_from_text(text) for text in state.facts.take(is_due).in_order()]
    namespaces = [fact for fact in facts if isinstance(fact, NamespaceState)]
    brokers = [fact for fact in facts if isinstance(fact, BrokerState)]
    if namespaces:
        later = state.namespaces.with_later(namespaces, state.closes)
        state = replace(state, namespaces=later, dropped_states=state.dropped_states + later.dropped)
    if brokers:
        those = state.brokers.with_later(brokers, state.closes)
        state = replace(state, brokers=those, dropped_states=state.dropped_states + those.dropped)
    state = replace(
        state,
        facts=state.facts.take(~is_due),
        seeds=state.seeds.with_later({f.bundle: f for f in facts if isinstance(f, BundleSeed)}, state.closes),
    )
    return state, [fact for fact in facts if isinstance(fact, CommandResult)]


def _settled(
    state: ShardState,
    is_due: Bools,
    interval: int,
    roster: tuple[tuple[str, str], ...],
    headers: list[ReportHeader],
) -> Loads:
    code_of = {name: i for i, name in enumerate(state.pool)}
    rank = np.full(len(state.pool) + 1, -1)
    sweeps = np.full(len(roster) + 1, -1)  # one spare row, so that rank -1 can be looked up
    reports = np.full((len(roster) + 1, 3), -1)
    last = {h.broker: h for h in sorted(_reports(headers), key=_position)}
    for row, (broker, sweep) in enumerate(roster):
        if broker in code_of:
            rank[code_of[broker]] = row
        if sweep:
            sweeps[row] = code_of.get(sweep, len(state.pool))
        if broker in last:
            reports[row] = (last[broker].source, last[broker].partition, last[broker].offset)
    return settle(state.claims.take(is_due), interval, rank, sweeps, reports)


def _named(headers: WaitingHeaders, pool: Sequence[str]) -> Iterator[ReportHeader]:
    """Each of *headers*, with the names of its broker and sweep from *pool*."""
    numbers = headers.numbers.tolist()
    columns = {name: array.tolist() for name, array in headers.columns().items() if name not in ("upto", "numbers")}
    for i, values in enumerate(zip(*columns.values(), strict=True)):
        row = dict(zip(columns, values, strict=True))
        names = {"broker": pool[row["broker"]], "sweep": pool[row["sweep"]]}
        yield ReportHeader(**row | names, numbers=tuple(numbers[i]))


def _position(header: ReportHeader) -> tuple[int, int, int, int]:
    return header.due, header.source, header.partition, header.offset


def _reports(headers: Iterable[ReportHeader]) -> list[ReportHeader]:
    return [h for h in headers if not h.sweep]


def _brokers(headers: list[ReportHeader], roster: tuple[tuple[str, str], ...], interval: int) -> Iterable[BrokerRow]:
    """Each broker's report about itself: its sweep that counts, if all chunks came, or its last load report."""
    sweeps: dict[tuple[str, str], dict[int, ReportHeader]] = {}
    reports: dict[str, ReportHeader] = {}
    for header in sorted(headers, key=_position):
        if not header.sweep:
            reports[header.broker] = header
        elif header.due == interval:
            sweeps.setdefault((header.broker, header.sweep), {}).setdefault(header.chunk, header)
    for broker, sweep in roster:
        chunks = sweeps.get((broker, sweep), {})
        first = reports.get(broker) if not sweep else chunks.get(0)
        if first is not None and (not sweep or len(chunks) == first.chunks):
            places = {(h.source, h.partition) for h in chunks.values()}
            yield BrokerRow(
                broker=broker, last_update=first.last_update, numbers=first.numbers, places=tuple(sorted(places))
            )


def _without_the_old(state: ShardState, interval: int, options: FoldOptions) -> ShardState:
    """*state* without bundles, states and stored averages whose time to live is over, and without unused names."""
    state = without_unused_names(state, state.bundles.seen < interval - options.bundle_ttl_ms)
    if options.state_ttl is None:
        return state
    oldest = state.closes - options.state_ttl
    return replace(
        state,
        namespaces=state.namespaces.since(oldest),
        brokers=state.brokers.since(oldest),
        seeds=state.seeds.since(oldest),
    )


def topics_for_splits(loads: Loads, near: Bools, max_topics: int | None, interval: int) -> dict[str, Any]:
    """The columns of topic detail in the snapshot of *interval*: of bundles *near* a split, (bundles,), and segments.

    Of other bundles come the segments that have any load.  *max_topics*: topics at most; those of further bundles come
    in later intervals, segments of bundles that are far from a split behind all others.
    """
    detail = loads.detail
    bundle = np.repeat(np.arange(len(near)), detail.sizes)
    counts = near[bundle]
    segments = np.flatnonzero(~counts & (detail.segment != NO_SEGMENT))
    counts[segments] = detail.load[segments].any(axis=1)
    size = np.bincount(bundle[counts], minlength=len(near))
    if max_topics is not None:
        for which in (near, ~near):
            rows = np.flatnonzero(which & (size > 0))
            size[rows[~_in_turn(size[rows], max_topics, interval)]] = 0
            max_topics -= int(size[rows].sum())
    topics = np.flatnonzero(counts & (size > 0)[bundle])
    return {
        "detail_size": size,
        "detail_position": detail.position[topics],
        "detail_load": detail.load[topics],
        "detail_segment": detail.segment[topics],
    }


def _in_turn(sizes: Ints, max_topics: int, interval: int) -> Bools:
    """(bundles,) which of them come in *interval*: all where they have *max_topics* topics together, or fewer.

    Else those from a place on that differs from interval to interval, so that each bundle comes again and again, also
    where some can never be split.  The first one comes whatever its size.  Ascending order of rows stays.
    """
    comes = np.full(len(sizes), max_topics > 0)
    if int(sizes.sum()) <= max_topics or not comes.any():
        return comes
    first = zlib.crc32(interval.to_bytes(_INTERVAL_BYTES, "big", signed=True)) % len(sizes)
    order = np.roll(np.arange(len(sizes)), -first)
    fits = np.cumsum(sizes[order]) <= max_topics
    fits[0] = True
    comes[order] = fits
    return comes
