"""Makes the ClusterView that strategies read from the snapshots of all shards."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller.aggregate.columns.rows import (
    METRICS,
    NUMBER_BUNDLES,
    NUMBER_KINDS_OFF,
    NUMBER_LIMIT,
    NUMBER_LOAD,
    NUMBER_TOPICS,
    NUMBER_USAGE,
    NUMBERS,
)
from controller.aggregate.policies import policies_of
from controller.aggregate.snapshot import BrokerRow, Snapshot
from controller.model.balancing import Balancing
from controller.model.errors import StateError
from controller.model.load import (
    RATE_IN,
    RATE_OUT,
    RESOURCE_OF,
    BrokerTable,
    BundleTable,
    ClusterView,
    Floats,
    Ints,
    OtherClaims,
    Preallocated,
    TopicDetail,
)
from controller.model.names import namespace_of
from controller.model.policies import Policies
from controller.model.topic_kinds import NON_PERSISTENT, PERSISTENT, kinds_of_bundles

_UNKNOWN = -1


def assemble(
    snapshots: Sequence[Snapshot],
    recently_unloaded: Mapping[str, int],
    preallocated: Mapping[str, str],
    *,
    oldest_report: int = 0,
) -> ClusterView:
    """The view of the interval of *snapshots*, one from each shard, in any order.

    ``recently_unloaded``: bundle -> T, as in the memory.  ``preallocated``: bundle -> the broker that it was sent to
    and that may not list it yet.  A broker whose report is from before ``oldest_report`` (epoch ms) has no data.  The
    result does not depend on the number of shards.  O(bundles log shards).
    Raises StateError if a shard is missing.
    """
    first = check_complete(snapshots)
    zero = next(s for s in snapshots if s.shard == 0)
    known, rank = known_brokers(zero, snapshots, oldest_report=oldest_report)
    policies = _with_reported_kinds(policies_of(zero.namespaces, zero.broker_states), known)
    bundles, other_claims = _bundles(snapshots, rank, tuple(known), policies)
    counts = {n.namespace: len(n.boundaries) - 1 for n in zero.namespaces}
    on_their_way = _preallocated(known, bundles, preallocated)
    return ClusterView(
        as_of_ms=first.interval,
        brokers=_brokers(zero, known, bundles, on_their_way),
        missing=tuple(name for name in first.roster if name not in known),
        outdated={row.broker: row.last_update for row in zero.brokers if _is_outdated(row, oldest_report)},
        bundles=bundles,
        recently_unloaded=np.array([name in recently_unloaded for name in bundles.names], np.bool_),
        namespace_bundle_count=np.array([counts.get(name, _UNKNOWN) for name in bundles.namespaces], np.int64),
        boundaries={n.namespace: n.boundaries for n in zero.namespaces},
        policies=policies,
        preallocated=on_their_way,
        other_claims=other_claims,
        balancing=_balancing(zero),
    )


def _with_reported_kinds(policies: Policies, known: Mapping[str, BrokerRow]) -> Policies:
    """*policies* with the kinds of topics that the brokers *known* do not serve by their own load reports."""
    off = {name: int(row.numbers[NUMBER_KINDS_OFF]) for name, row in known.items() if row.numbers[NUMBER_KINDS_OFF]}
    if not off:
        return policies
    return replace(
        policies,
        without_persistent=policies.without_persistent | {name for name in off if off[name] & PERSISTENT},
        without_non_persistent=policies.without_non_persistent | {name for name in off if off[name] & NON_PERSISTENT},
    )


def _balancing(zero: Snapshot) -> dict[str, Balancing]:
    active = frozenset(zero.roster)
    return {
        state.broker: state.balancing
        for state in zero.broker_states
        if state.balancing is not None and state.broker in active
    }


def check_complete(snapshots: Sequence[Snapshot]) -> Snapshot:
    """The first of *snapshots*; raises StateError unless they are all shards of one interval, each once."""
    first = snapshots[0]
    shards = sorted(s.shard for s in snapshots)
    if shards != list(range(first.shards)) or any(s.interval != first.interval for s in snapshots):
        raise StateError(f"interval {first.interval}: expected shards 0..{first.shards - 1} once each, got {shards}")
    return first


def known_brokers(
    zero: Snapshot, snapshots: Sequence[Snapshot], *, oldest_report: int = 0
) -> tuple[dict[str, BrokerRow], Ints]:
    """The brokers with data; and (roster,) the row of each roster broker among them, or -1.

    A broker has no data if its report is from before *oldest_report* (epoch ms), however new the sweep is that has it,
    or if a number in it is none.
    A broker without a sweep and without a report has data if topic stats named it.  A broker has no data if parts of
    sweeps were dropped in a partition of its sweep.  If any part was dropped anywhere, brokers without a sweep have no
    data: their stats may lie in any partition.
    """
    torn = {(source, partition) for s in snapshots for source, partition in s.torn if source == METRICS}
    loose = set(zero.unswept)
    rows = {
        row.broker: row
        for row in zero.brokers
        if not _is_outdated(row, oldest_report)
        and isfinite(sum(row.numbers))
        and (not torn or not (row.broker in loose or torn.intersection(row.places)))
    }
    loose -= {row.broker for row in zero.brokers if row.broker not in rows}
    for row in np.unique(np.concatenate([s.owner for s in snapshots])).tolist():
        name = zero.roster[row]
        if name in loose and name not in rows and not torn:
            rows[name] = BrokerRow(broker=name, last_update=0, numbers=(0.0,) * NUMBERS)
    known = {name: rows[name] for name in zero.roster if name in rows}
    code_of = {name: i for i, name in enumerate(known)}
    return known, np.array([code_of.get(name, -1) for name in zero.roster], np.int64)


def _is_outdated(row: BrokerRow, oldest_report: int) -> bool:
    """Whether the report of *row* is too old; one without a time, or whose time is not believed, counts."""
    return 0 < row.last_update < oldest_report


#: Columns that snapshots and BundleTable both have.
_COLUMNS = (
    "load", "short_term", "long_term", "short_samples", "long_samples", "topics", "producers", "consumers",
)  # fmt: skip

#: Those of topics that are known one by one.
_DETAIL = ("detail_size", "detail_position", "detail_load", "detail_segment")


def _bundles(
    snapshots: Sequence[Snapshot], rank: Ints, known: tuple[str, ...], policies: Policies
) -> tuple[BundleTable, OtherClaims]:
    """All bundles that the *known* brokers list, sorted by name, and what else they list.

    Where the latest of several claims is that of a broker without data, the latest of the others' counts.
    """
    names = [name for s in snapshots for name in s.names]
    owner = rank[np.concatenate([s.owner for s in snapshots])]
    contested, claimant = _claims(snapshots, rank)
    orphaned = owner[contested] < 0
    owner[contested[orphaned]] = claimant[orphaned]
    # Each snapshot is sorted, so this sort merges sorted runs.
    order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
    order = order[owner[order] >= 0]
    beside = claimant != owner[contested]
    row_of = np.zeros(len(owner), np.int64)
    row_of[order] = np.arange(len(order))
    rows, brokers = row_of[contested[beside]], claimant[beside]
    by_name = np.lexsort((brokers, rows))
    others = OtherClaims(bundle=rows[by_name], broker=brokers[by_name])
    names = [names[i] for i in order.tolist()]
    spaces = [namespace_of(name) for name in names]
    namespaces = sorted(set(spaces))
    code_of = {name: i for i, name in enumerate(namespaces)}

    def column(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(s, name) for s in snapshots])

    table = BundleTable(
        names=tuple(names),
        namespaces=tuple(namespaces),
        namespace=np.array([code_of[name] for name in spaces], np.int64),
        broker=owner[order],
        **{name: column(name)[order] for name in _COLUMNS},
        kinds=kinds_of_bundles(column("kinds")[order], policies.served_kinds(known)[owner[order]]),
        detail=TopicDetail.of(*map(column, _DETAIL)).take(order),
    )
    return table, others


def _claims(snapshots: Sequence[Snapshot], rank: Ints) -> tuple[Ints, Ints]:
    """The claims of known brokers beside the latest of each bundle: rows of all snapshots' bundles, and of brokers."""
    starts = np.cumsum([0, *(len(s.names) for s in snapshots)])[:-1]
    contested = np.concatenate([s.contested + start for s, start in zip(snapshots, starts, strict=True)])
    claimant = rank[np.concatenate([s.claimant for s in snapshots])]
    known = claimant >= 0
    return contested[known], claimant[known]


def _brokers(
    zero: Snapshot, known: Mapping[str, BrokerRow], bundles: BundleTable, on_their_way: Preallocated
) -> BrokerTable:
    names = tuple(known)
    numbers = broker_numbers(known)
    long_term = np.zeros((len(names), 4))
    for column in range(4):
        weights = bundles.long_term[:, column]
        long_term[:, column] = np.bincount(bundles.broker, weights=weights, minlength=len(names))
    return BrokerTable(
        names=names,
        usage=numbers[:, NUMBER_USAGE],
        limit=broker_limits(zero, known),
        load=numbers[:, NUMBER_LOAD],
        long_term=long_term,
        preallocated_rate=_preallocated_rate(len(names), bundles, on_their_way),
        bundle_count=numbers[:, NUMBER_BUNDLES].astype(np.int64),
        topic_count=numbers[:, NUMBER_TOPICS].astype(np.int64),
    )


def broker_numbers(known: Mapping[str, BrokerRow]) -> Floats:
    """(brokers, NUMBERS) what the brokers *known* report."""
    return np.array([row.numbers for row in known.values()], np.float64).reshape(len(known), NUMBERS)


def broker_limits(zero: Snapshot, known: Mapping[str, BrokerRow]) -> Floats:
    """(brokers, 5) limits of the brokers *known*: the reported ones, but for those that a broker_state replaces."""
    limit, code_of = broker_numbers(known)[:, NUMBER_LIMIT].copy(), {name: code for code, name in enumerate(known)}
    for state in zero.broker_states:
        if state.broker in code_of:
            for resource, capacity in state.capacity:
                limit[code_of[state.broker], RESOURCE_OF[resource]] = capacity
    return limit


def _preallocated(known: Mapping[str, BrokerRow], bundles: BundleTable, sent: Mapping[str, str]) -> Preallocated:
    """Bundles that were sent to a known broker that does not list them yet, in name order."""
    code_of = {name: i for i, name in enumerate(known)}
    rows = sorted((bundles.code_of.get(bundle, -1), code_of.get(broker, -1)) for bundle, broker in sent.items())
    pairs = [(row, to) for row, to in rows if row >= 0 and to >= 0 and bundles.broker[row] != to]
    return Preallocated(
        bundle=np.array([row for row, _ in pairs], np.int64), broker=np.array([to for _, to in pairs], np.int64)
    )


def _preallocated_rate(brokers: int, bundles: BundleTable, on_their_way: Preallocated) -> Floats:
    """(brokers,) long-term msg/s of the bundles sent to each broker, added in name order."""
    rate = np.zeros(brokers)
    load = bundles.long_term[on_their_way.bundle]
    np.add.at(rate, on_their_way.broker, load[:, RATE_IN] + load[:, RATE_OUT])
    return rate
