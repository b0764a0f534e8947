"""One shard of the bundle state, and the fold that moves it: the heart of the streaming query.

``fold(state, rows, options) -> (state, snapshots)`` is pure and the same for Spark, replay and the simulator.  The
log alone says which records belong to which interval (controller.aggregate.intervals), sums are exact in any order,
and ties go by name; so the snapshots are bit-identical however the log was cut into batches.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from controller.aggregate.bundles import KnownBundles
from controller.aggregate.claims import Claims, Loads, ragged, settle
from controller.aggregate.intervals import LATE, UNDUE, Advances, Clock, Partition
from controller.aggregate.rows import BUNDLE, FACT, REPORT, REPORT_BUNDLE, SWEEP, TOPIC, Rows
from controller.aggregate.snapshot import BrokerRow, Snapshot
from controller.model.errors import StateError
from controller.model.load import RATE_IN, RATE_OUT, THROUGHPUT_IN, THROUGHPUT_OUT, Bools, Ints
from controller.model.records import BrokerState, BundleSeed, CommandResult, Fact, NamespaceState, Tick

#: Lines of a folder's file are counted within it; files come this many offsets apart.
_FILE_STRIDE = 1 << 32


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailLimits:
    """From where on a bundle's topics are kept one by one: a share of the split thresholds."""

    topics: float
    sessions: float
    msg_rate: float
    throughput: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldOptions:
    """What the fold needs to know besides the log."""

    #: A bundle that no roster broker lists for so long (ms) is forgotten.
    bundle_ttl_ms: int
    detail: DetailLimits
    #: One batch closes so many intervals at most, and later ones the rest; None: all that can be closed.
    close_at_most: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """A SWEEP or REPORT row waiting for its interval: what a broker says of itself."""

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
    #: Empty outside shard 0, where only the position counts.
    numbers: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingFact:
    """A fact waiting for the tick that follows it."""

    due: int
    source: int
    partition: int
    offset: int
    fact: Fact


@dataclass(frozen=True, kw_only=True, eq=False)
class ShardState:
    """Everything a shard remembers between batches."""

    shard: int
    shards: int
    clock: Clock = field(default_factory=Clock)
    #: Brokers and sweep ids that claims refer to by position.
    pool: list[str] = field(default_factory=list)
    bundles: KnownBundles = field(default_factory=KnownBundles.empty)
    claims: Claims = field(default_factory=Claims.empty)
    headers: tuple[Header, ...] = ()
    facts: tuple[WaitingFact, ...] = ()
    #: Bundle -> averages to start from, until the bundle is first seen.
    seeds: Mapping[str, BundleSeed] = field(default_factory=dict)
    namespaces: Mapping[str, NamespaceState] = field(default_factory=dict)
    brokers: Mapping[str, BrokerState] = field(default_factory=dict)
    #: Rows that came after their tick, since the beginning.
    late: int = 0
    #: Rows of intervals that were never ticked in partition 0, since the beginning.
    unrostered: int = 0
    #: Files of a folder log seen so far, so that offsets go on rising.
    files: int = 0


def fold(state: ShardState, rows: Rows, options: FoldOptions) -> tuple[ShardState, list[Snapshot]]:
    """Take in one batch of rows and close what can be closed, oldest first.  O(rows log rows + bundles).

    Only a batch with a tick closes anything: every shard gets every tick, so all shards close the same intervals in
    the same batch.  A batch without one may reach some shards and not others.
    """
    state, offset = _offsets(state, rows)
    ticks = _ticks(rows, offset)
    clock, advances = state.clock.advance(ticks)
    due = _due(rows, offset, advances)
    state = _redue(replace(state, clock=clock), advances)
    state = replace(state, late=state.late + int((due == LATE).sum()))
    state = _with_facts(_with_headers(_with_claims(state, rows, offset, due), rows, offset, due), rows, offset, due)
    snapshots = []
    for interval in clock.closable()[: options.close_at_most] if ticks else ():
        state, snapshot = _close(state, interval, options)
        snapshots.append(snapshot)
    return state, snapshots


def check_shards(state: ShardState, shards: int) -> None:
    """Refuse a state that was cut into another number of shards: its bundles lie elsewhere."""
    if state.shards != shards:
        raise StateError(
            f"the checkpoint was made with shards = {state.shards}, the settings say {shards}: "
            "set intervals.shards back, or start with a new checkpoint"
        )


# ---- dating rows ----


def _offsets(state: ShardState, rows: Rows) -> tuple[ShardState, Ints]:
    if rows.file is None:
        return state, rows.offset
    rank = {name: i for i, name in enumerate(sorted(set(rows.file)))}
    base = np.array([rank[name] for name in rows.file], np.int64) + state.files
    return replace(state, files=state.files + len(rank)), base * _FILE_STRIDE + rows.offset


def _ticks(rows: Rows, offset: Ints) -> list[tuple[Partition, int, Tick]]:
    found = [
        ((int(rows.source[i]), int(rows.partition[i])), int(offset[i]), fact)
        for i, fact in rows.facts.items()
        if isinstance(fact, Tick)
    ]
    return sorted(found, key=lambda tick: tick[:2])


def _due(rows: Rows, offset: Ints, advances: Advances) -> Ints:
    dated = np.isin(rows.kind, (SWEEP, BUNDLE))
    interval = np.where(dated, rows.interval, UNDUE)
    due = np.empty(len(rows), np.int64)
    for source, partition in set(zip(rows.source.tolist(), rows.partition.tolist(), strict=True)):
        here = (rows.source == source) & (rows.partition == partition)
        due[here] = advances.due((source, partition), offset[here], interval[here])
    return due


def _redue(state: ShardState, advances: Advances) -> ShardState:
    """Date what waited since earlier batches for its partition's next tick."""
    claims = state.claims
    due = claims.due.copy()
    for partition in advances.steps:
        here = (claims.source == partition[0]) & (claims.partition == partition[1]) & (due == UNDUE)
        due[here] = advances.first(partition)

    def dated(waiting: Header | WaitingFact) -> int:
        if waiting.due != UNDUE:
            return waiting.due
        return advances.first((waiting.source, waiting.partition))

    return replace(
        state,
        claims=replace(claims, due=due),
        headers=tuple(replace(h, due=dated(h)) for h in state.headers),
        facts=tuple(replace(f, due=dated(f)) for f in state.facts),
    )


# ---- taking rows in ----


def _with_claims(state: ShardState, rows: Rows, offset: Ints, due: Ints) -> ShardState:
    chosen = np.flatnonzero(np.isin(rows.kind, (BUNDLE, TOPIC, REPORT_BUNDLE)) & (due != LATE))
    if len(chosen) == 0:
        return state
    picked = chosen.tolist()
    bundles, moved = state.bundles.with_names(rows.bundle[i] for i in picked)
    row_of = {name: i for i, name in enumerate(bundles.names)}
    pool = list(state.pool)
    code_of = {name: i for i, name in enumerate(pool)}

    def code(name: str) -> int:
        if name not in code_of:
            code_of[name] = len(pool)
            pool.append(name)
        return code_of[name]

    topics = ragged(rows.detail_size, chosen)
    new = Claims(
        due=due[chosen],
        kind=rows.kind[chosen],
        source=rows.source[chosen],
        partition=rows.partition[chosen],
        offset=offset[chosen],
        broker=np.array([code(rows.broker[i]) for i in picked], np.int64),
        sweep=np.array([code(rows.sweep[i]) for i in picked], np.int64),
        chunk=rows.chunk[chosen],
        last_update=rows.last_update[chosen],
        bundle=np.array([row_of[rows.bundle[i]] for i in picked], np.int64),
        stats=rows.stats[chosen],
        topic=rows.topic[chosen],
        detail_size=rows.detail_size[chosen],
        detail_position=rows.detail_position[topics],
        detail_load=rows.detail_load[topics],
    )
    waiting = replace(state.claims, bundle=moved[state.claims.bundle])
    return replace(state, bundles=bundles, pool=pool, claims=Claims.concat([waiting, new]))


def _with_headers(state: ShardState, rows: Rows, offset: Ints, due: Ints) -> ShardState:
    new = tuple(
        Header(
            due=int(due[i]),
            source=int(rows.source[i]),
            partition=int(rows.partition[i]),
            offset=int(offset[i]),
            broker=rows.broker[i],
            sweep=rows.sweep[i],
            chunk=int(rows.chunk[i]),
            chunks=int(rows.chunks[i]),
            last_update=int(rows.last_update[i]),
            numbers=tuple(rows.numbers[i].tolist()) if state.shard == 0 else (),
        )
        for i in np.flatnonzero(np.isin(rows.kind, (SWEEP, REPORT)) & (due != LATE)).tolist()
    )
    return replace(state, headers=state.headers + new)


def _with_facts(state: ShardState, rows: Rows, offset: Ints, due: Ints) -> ShardState:
    new = tuple(
        WaitingFact(
            due=int(due[i]),
            source=int(rows.source[i]),
            partition=int(rows.partition[i]),
            offset=int(offset[i]),
            fact=fact,
        )
        for i, fact in sorted(rows.facts.items())
        if rows.kind[i] == FACT
    )
    return replace(state, facts=state.facts + new)


# ---- closing an interval ----


def _close(state: ShardState, interval: int, options: FoldOptions) -> tuple[ShardState, Snapshot]:
    roster = state.clock.rosters[interval].roster or ()
    active = {broker for broker, _ in roster}
    headers = [h for h in state.headers if 0 <= h.due <= interval and h.broker in active]
    state, results = _with_known_facts(state, interval)

    is_due = (state.claims.due >= 0) & (state.claims.due <= interval)
    unrostered = int(((state.claims.kind == BUNDLE) & is_due & (state.claims.due < interval)).sum())
    loads = _settled(state, is_due, interval, roster, headers)
    bundles = state.bundles.seeded(state.seeds).advanced(loads.bundle, loads.load, interval)
    snapshot = Snapshot(
        interval=interval,
        shard=state.shard,
        shards=state.shards,
        roster=tuple(broker for broker, _ in roster),
        unswept=tuple(broker for broker, sweep in roster if not sweep),
        brokers=tuple(_brokers(headers, roster, interval)) if state.shard == 0 else (),
        namespaces=tuple(state.namespaces[name] for name in sorted(state.namespaces)),
        broker_states=tuple(state.brokers[name] for name in sorted(state.brokers)),
        results=tuple(results),
        late=state.late,
        unrostered=state.unrostered + unrostered,
        names=[bundles.names[i] for i in loads.bundle.tolist()],
        owner=loads.owner,
        load=loads.load,
        short_samples=bundles.short_samples[loads.bundle],
        short_term=bundles.short_term[loads.bundle],
        long_samples=bundles.long_samples[loads.bundle],
        long_term=bundles.long_term[loads.bundle],
        topics=loads.topics,
        producers=loads.producers,
        consumers=loads.consumers,
        **_near_split(loads, bundles, options.detail),
    )
    seen = set(snapshot.names)
    state = replace(
        state,
        clock=state.clock.close(interval),
        bundles=bundles,
        claims=state.claims.take(~is_due),
        headers=tuple(h for h in state.headers if not 0 <= h.due <= interval),
        seeds={name: seed for name, seed in state.seeds.items() if name not in seen},
        unrostered=snapshot.unrostered,
    )
    return _forget(state, interval, options), snapshot


def _with_known_facts(state: ShardState, interval: int) -> tuple[ShardState, list[CommandResult]]:
    """Take in the facts due by *interval*: policies and seeds are kept, results are handed on."""
    due = [f for f in state.facts if 0 <= f.due <= interval]
    namespaces, brokers, seeds = dict(state.namespaces), dict(state.brokers), dict(state.seeds)
    results = []
    for waiting in sorted(due, key=lambda f: (f.due, f.source, f.partition, f.offset)):
        fact = waiting.fact
        if isinstance(fact, CommandResult):
            results.append(fact)
        elif isinstance(fact, BundleSeed):
            seeds[fact.bundle] = fact
        elif isinstance(fact, NamespaceState):
            held = namespaces.get(fact.namespace)
            if held is None or fact.version >= held.version:
                namespaces[fact.namespace] = fact
        elif isinstance(fact, BrokerState):
            known = brokers.get(fact.broker)
            if known is None or fact.version >= known.version:
                brokers[fact.broker] = fact
    rest = tuple(f for f in state.facts if not 0 <= f.due <= interval)
    return replace(state, namespaces=namespaces, brokers=brokers, seeds=seeds, facts=rest), results


def _settled(
    state: ShardState,
    is_due: Bools,
    interval: int,
    roster: tuple[tuple[str, str], ...],
    headers: list[Header],
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


def _position(header: Header) -> tuple[int, int, int, int]:
    return header.due, header.source, header.partition, header.offset


def _reports(headers: Iterable[Header]) -> list[Header]:
    return [h for h in headers if not h.sweep]


def _brokers(headers: list[Header], roster: tuple[tuple[str, str], ...], interval: int) -> Iterable[BrokerRow]:
    """What each broker says of itself: in the sweep that counts, if all its chunks came, or its last report."""
    sweeps: dict[tuple[str, str], dict[int, Header]] = {}
    reports: dict[str, Header] = {}
    for header in sorted(headers, key=_position):
        if not header.sweep:
            reports[header.broker] = header
        elif header.due == interval:
            sweeps.setdefault((header.broker, header.sweep), {}).setdefault(header.chunk, header)
    for broker, sweep in roster:
        chunks = sweeps.get((broker, sweep), {})
        said = reports.get(broker) if not sweep else chunks.get(0)
        if said is not None and (not sweep or len(chunks) == said.chunks):
            yield BrokerRow(broker=broker, last_update=said.last_update, numbers=said.numbers)


def _near_split(loads: Loads, bundles: KnownBundles, limits: DetailLimits) -> dict[str, np.ndarray]:
    """Keep the topics of bundles that are near a split by their counts or their long-term average."""
    average = bundles.long_term[loads.bundle]
    near = (
        (loads.topics >= limits.topics)
        | (loads.producers + loads.consumers >= limits.sessions)
        | (average[:, RATE_IN] + average[:, RATE_OUT] >= limits.msg_rate)
        | (average[:, THROUGHPUT_IN] + average[:, THROUGHPUT_OUT] >= limits.throughput)
    )
    kept = ragged(loads.detail_size, np.flatnonzero(near))
    return {
        "detail_size": np.where(near, loads.detail_size, 0),
        "detail_position": loads.detail_position[kept],
        "detail_load": loads.detail_load[kept],
    }


def _forget(state: ShardState, interval: int, options: FoldOptions) -> ShardState:
    """Drop bundles not seen for their time to live, and pool entries nothing refers to."""
    claims, bundles = state.claims, state.bundles
    used = np.unique(np.concatenate([claims.broker, claims.sweep]))
    pool = [state.pool[i] for i in used.tolist()]
    claims = replace(claims, broker=np.searchsorted(used, claims.broker), sweep=np.searchsorted(used, claims.sweep))
    gone = bundles.seen < interval - options.bundle_ttl_ms
    # One that records of later intervals name is new to them, as if they had not come yet.
    awaited = np.zeros(len(bundles), np.bool_)
    awaited[claims.bundle] = True
    bundles, gone = bundles.renewed(gone & awaited), gone & ~awaited
    if gone.any():
        moved = np.cumsum(~gone) - 1
        bundles, claims = bundles.keep(~gone), replace(claims, bundle=moved[claims.bundle])
    return replace(state, bundles=bundles, claims=claims, pool=pool)
