"""A replayed interval as the controller sees it: the recorded snapshot with the replay's owners, cuts and usage."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from controller.aggregate.columns.rows import NUMBER_BUNDLES, NUMBER_LOAD, NUMBER_TOPICS, NUMBER_USAGE
from controller.aggregate.shard.shard_state import DetailLimits
from controller.aggregate.snapshot import Snapshot
from controller.aggregate.state.states import States
from controller.aggregate.view import broker_limits
from controller.model.load import (
    BANDWIDTH_IN,
    BANDWIDTH_OUT,
    CPU,
    DEFAULT_LOAD,
    Bools,
    Floats,
    Ints,
    ragged,
)
from controller.model.records import NamespaceState
from controller.model.segment_code import NO_SEGMENT
from controller.offline.counterfactual.partition import BundlePart, Cuts, parts_of, rows_of
from controller.offline.counterfactual.usage_model import DRIVERS, UsageModel

#: Columns of what a bundle adds to its broker: the drivers of usage, then topics, and 1.
_TOPICS, _BUNDLES = len(DRIVERS), len(DRIVERS) + 1
#: Usage in the figures is the largest of these: heap and direct memory say little about load.
_COUNTED: Final = [CPU, BANDWIDTH_IN, BANDWIDTH_OUT]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CounterfactualInterval:
    """See the module docstring."""

    snapshot: Snapshot
    #: Broker with data -> its usage as the figures count it, percent of its limit; above 100 more is asked for.
    usage: Mapping[str, float]
    #: Broker whose bundles are not the recorded ones -> (5,) how far off its usage may be, in the units of reports.
    errors: Mapping[str, Floats]


def true_limits(snapshot: Snapshot) -> dict[str, Floats]:
    """Broker with data -> (5,) its limits: the reported ones, but for those that a broker_state replaces."""
    rows = {row.broker: row for row in snapshot.brokers}
    return dict(zip(rows, broker_limits(snapshot, rows), strict=True))


def counted_usage(usage: Floats, limit: Floats) -> float:
    """The largest of CPU and bandwidth, in percent of the limit; *usage* and *limit* are (5,)."""
    with np.errstate(all="ignore"):
        share = np.where(limit > 0, usage / limit, 0.0)[_COUNTED]
    return 100 * float(np.nanmax(share, initial=0.0))


def with_near_detail(snapshot: Snapshot, limits: DetailLimits) -> Snapshot:
    """*snapshot* with the topics of those bundles alone whose topics the controller has, and with all segments.

    They are near a split by the load of the interval, for sweeps of other bundles are read without their topics
    (controller.wire.rows), and by their averages (controller.aggregate.shard.closing).
    """
    sessions = snapshot.producers + snapshot.consumers
    now, average = (limits.near_split(snapshot.topics, sessions, load) for load in (snapshot.load, snapshot.long_term))
    near = now & average
    bundle = np.repeat(np.arange(len(near)), snapshot.detail_size)
    counts = near[bundle] | ((snapshot.detail_segment != NO_SEGMENT) & snapshot.detail_load.any(axis=1))
    return replace(
        snapshot,
        detail_size=np.bincount(bundle[counts], minlength=len(near)),
        detail_position=snapshot.detail_position[counts],
        detail_load=snapshot.detail_load[counts],
        detail_segment=snapshot.detail_segment[counts],
    )


def weights_of(snapshot: Snapshot) -> Floats:
    """(bundles, DRIVERS + 2) what each bundle adds to its broker: drivers of usage, topics, one bundle."""
    clients = (snapshot.producers + snapshot.consumers).astype(np.float64)
    one = np.ones(len(snapshot.names))
    return np.column_stack([snapshot.load, clients, snapshot.topics.astype(np.float64), one])


def other_parts(snapshot: Snapshot, cuts: Cuts) -> tuple[Bools, list[BundlePart]]:
    """(bundles,) the recorded bundles that the replay has too, and its other bundles, by *cuts*."""
    is_uncut, new_parts = np.ones(len(snapshot.names), np.bool_), list[BundlePart]()
    for namespace in sorted(cuts.of):
        rows = rows_of(snapshot, namespace)
        pieces = {str(bundle): bundle for bundle in cuts.bundles(namespace)}
        listed = {snapshot.names[row] for row in rows.tolist()}
        is_uncut[rows] = [snapshot.names[row] in pieces for row in rows.tolist()]
        new_parts += parts_of(snapshot, rows, [bundle for name, bundle in pieces.items() if name not in listed])
    return is_uncut, new_parts


def with_bundles(
    snapshot: Snapshot, is_uncut: Bools, owner: Ints, added: Sequence[BundlePart], owners: Ints
) -> Snapshot:
    """The bundles of *snapshot* that are *is_uncut*, with their *owner*, and those *added*, with their *owners*.

    The averages of those added are those of new bundles.
    """
    names = [name for name, stays in zip(snapshot.names, is_uncut.tolist(), strict=True) if stays]
    names += [part.bundle for part in added]
    order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
    n = len(added)
    columns: dict[str, tuple[Any, Any]] = {
        "owner": (owner[is_uncut], owners),
        "kinds": (snapshot.kinds[is_uncut], np.array([part.kinds for part in added], np.uint8)),
        "load": (snapshot.load[is_uncut], np.array([part.load for part in added]).reshape(n, 4)),
        "short_term": (snapshot.short_term[is_uncut], np.tile(DEFAULT_LOAD, (n, 1))),
        "long_term": (snapshot.long_term[is_uncut], np.tile(DEFAULT_LOAD, (n, 1))),
        "short_samples": (snapshot.short_samples[is_uncut], np.zeros(n, np.int64)),
        "long_samples": (snapshot.long_samples[is_uncut], np.zeros(n, np.int64)),
    }
    counts = np.array([part.counts for part in added], np.int64).reshape(n, 3)
    for column, name in enumerate(("topics", "producers", "consumers")):
        columns[name] = getattr(snapshot, name)[is_uncut], counts[:, column]
    of_kept = ragged(snapshot.detail_size, np.flatnonzero(is_uncut))
    size = np.append(snapshot.detail_size[is_uncut], [len(part.position) for part in added]).astype(np.int64)
    position = np.concatenate([snapshot.detail_position[of_kept], *(part.position for part in added)])
    load = np.concatenate([snapshot.detail_load[of_kept], *(part.topic_load for part in added)])
    segment = np.concatenate([snapshot.detail_segment[of_kept], *(part.segment for part in added)])
    topics = ragged(size, order)
    return replace(
        snapshot,
        names=[names[i] for i in order.tolist()],
        **dict[str, Any]((name, np.concatenate(pair)[order]) for name, pair in columns.items()),
        detail_size=size[order],
        detail_position=position[topics].astype(np.int64),
        detail_load=load[topics],
        detail_segment=segment[topics].astype(np.int64),
        contested=np.zeros(0, np.int64),
        claimant=np.zeros(0, np.int64),
    )


def with_cuts(snapshot: Snapshot, cuts: Cuts) -> Snapshot:
    """*snapshot* whose states of namespaces have the boundaries of *cuts*."""
    if not cuts.of or not len(snapshot.namespaces):
        return snapshot
    boundaries = (
        replace(state, boundaries=tuple(cuts.of[state.namespace])) if state.namespace in cuts.of else state
        for state in snapshot.namespaces
    )
    return replace(snapshot, namespaces=States[NamespaceState].of(boundaries).for_snapshot())


def added_to_brokers(recorded: Snapshot, replayed: Snapshot, is_same: Callable[[str], bool]) -> dict[str, Floats]:
    """Broker -> (DRIVERS + 2,) what the bundles of *replayed* add to it, less those of *recorded*.

    Only brokers of whose bundles some differ; *is_same* tells bundles that both have, with the same load and owner.
    """
    added: dict[str, Floats] = {}
    for snapshot, sign in ((recorded, -1.0), (replayed, 1.0)):
        rows = np.array([row for row, name in enumerate(snapshot.names) if not is_same(name)], np.int64)
        weights = sign * weights_of(snapshot)[rows]
        for broker, weight in zip(snapshot.owner[rows].tolist(), weights, strict=True):
            name = snapshot.roster[broker]
            added[name] = added[name] + weight if name in added else weight
    return added


def with_usage(snapshot: Snapshot, added: Mapping[str, Floats], model: UsageModel) -> CounterfactualInterval:
    """*snapshot* whose brokers carry what is *added*, or taken if it is negative, beside what they reported."""
    limits, rows, usages, errors = true_limits(snapshot), [], {}, {}
    for row in snapshot.brokers:
        limit, numbers = limits[row.broker], np.array(row.numbers, np.float64)
        used = numbers[NUMBER_USAGE].copy()
        if row.broker in added:
            more = added[row.broker]
            demand = np.maximum(used + model.added(row.broker, more[: len(DRIVERS)]) * limit, 0.0)
            # No machine reports more than all of it, however much is asked.
            numbers[NUMBER_USAGE] = np.minimum(demand, np.maximum(used, limit))
            numbers[NUMBER_LOAD] = np.maximum(numbers[NUMBER_LOAD] + more[:4], 0.0)
            for column, number in ((_TOPICS, NUMBER_TOPICS), (_BUNDLES, NUMBER_BUNDLES)):
                numbers[number] = max(0.0, numbers[number] + more[column])
            row, used = replace(row, numbers=tuple(numbers.tolist())), demand
            errors[row.broker] = model.error(row.broker) * limit
        rows.append(row)
        usages[row.broker] = counted_usage(used, limit)
    return CounterfactualInterval(snapshot=replace(snapshot, brokers=tuple(rows)), usage=usages, errors=errors)


def with_shifted_usage(snapshot: Snapshot, shift: Mapping[str, Floats]) -> Snapshot:
    """*snapshot* whose brokers report so much more, (5,) in the units of reports; not below 0."""
    rows = []
    for row in snapshot.brokers:
        if row.broker in shift:
            numbers = np.array(row.numbers, np.float64)
            numbers[NUMBER_USAGE] = np.maximum(numbers[NUMBER_USAGE] + shift[row.broker], 0.0)
            row = replace(row, numbers=tuple(numbers.tolist()))
        rows.append(row)
    return replace(snapshot, brokers=tuple(rows))
