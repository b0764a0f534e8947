"""The load of one interval as an audit needs it: where bundles are, and how full brokers are, now and after moves."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from controller.aggregate.columns.rows import NUMBER_USAGE
from controller.aggregate.snapshot import BrokerRow, Snapshot
from controller.aggregate.view import broker_limits, broker_numbers, check_complete, known_brokers
from controller.model.load import (
    BANDWIDTH_IN,
    BANDWIDTH_OUT,
    CPU,
    DIRECT_MEMORY,
    RATE_IN,
    RATE_OUT,
    THROUGHPUT_IN,
    THROUGHPUT_OUT,
    Floats,
    Ints,
)
from controller.model.names import BundleName, namespace_of, parse_bundle
from controller.model.resource_usage import ResourceWeights
from controller.planning.from_view import drivers, fitted_below_the_limit, weight
from controller.planning.units import of_one_unit

#: What usage is the largest of, as strategies weigh it.
_COUNTED: Final = (CPU, DIRECT_MEMORY, BANDWIDTH_IN, BANDWIDTH_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedLoad:
    """What a bundle took along: its load in the interval that was decided on."""

    #: msg/s, then bytes/s.
    rate_in: float
    rate_out: float
    throughput_in: float
    throughput_out: float
    topics: int
    producers: int
    consumers: int

    @property
    def rate(self) -> float:
        """msg/s, in and out."""
        return self.rate_in + self.rate_out

    @property
    def clients(self) -> int:
        """Producers and consumers, which have to reconnect when it moves."""
        return self.producers + self.consumers


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFigures:
    """How full a broker is."""

    #: The largest weighted share of its limits, as the shedder weighs resources: 1 is all; None where it is not known.
    usage: float | None
    #: Of its bundles, in and out: msg/s and bytes/s.
    rate: float
    throughput: float
    #: The resource that the usage is of; "" where that is not known.
    resource: str = ""


class Shift(NamedTuple):
    """A bundle that is to go from one broker to another; "" where nobody has said which."""

    #: (4,) its load.
    load: Floats
    source: str
    destination: str


@dataclass(frozen=True, kw_only=True, eq=False)
class BrokerColumns:
    """How full all brokers with data are; a row each."""

    code_of: dict[str, int]
    #: (n,) see BrokerFigures; NaN where it is not known.
    usage: Floats
    #: (n, 4) sums over the bundles.
    load: Floats
    #: (n,) the resource that the usage is of.
    resource: Sequence[str]

    def of(self, broker: str) -> BrokerFigures | None:
        """The figures of *broker*; None where it has no data."""
        code = self.code_of.get(broker)
        if code is None:
            return None
        usage, load = float(self.usage[code]), self.load[code]
        return BrokerFigures(
            usage=usage if np.isfinite(usage) else None,
            rate=float(load[RATE_IN] + load[RATE_OUT]),
            throughput=float(load[THROUGHPUT_IN] + load[THROUGHPUT_OUT]),
            resource=self.resource[code] if np.isfinite(usage) else "",
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class SeenLoad:
    """See the module docstring.  What nobody asks for is not worked out."""

    #: Those of all shards; the first one is shard 0.
    snapshots: tuple[Snapshot, ...]
    weights: ResourceWeights

    @classmethod
    def of(cls, snapshots: Sequence[Snapshot], weights: ResourceWeights) -> "SeenLoad":
        """Of *snapshots*, those of all shards in any order; StateError where one is missing."""
        check_complete(snapshots)
        return cls(snapshots=tuple(sorted(snapshots, key=lambda each: each.shard)), weights=weights)

    @property
    def interval(self) -> int:
        """T, epoch ms."""
        return self.snapshots[0].interval

    @cached_property
    def roster(self) -> frozenset[str]:
        """The active brokers, with data or without."""
        return frozenset(self.snapshots[0].roster)

    # ---- bundles ----

    def owner(self, bundle: str) -> str | None:
        """The broker that lists *bundle*; None where none does."""
        place = self._place(bundle)
        return None if place is None else place[0].roster[int(place[0].owner[place[1]])]

    def load_of(self, bundle: str) -> Floats | None:
        """(4,) the load of *bundle*; None where no broker lists it."""
        place = self._place(bundle)
        return None if place is None else place[0].load[place[1]]

    def carried(self, bundle: str) -> CarriedLoad | None:
        """What *bundle* carries; None where no broker lists it."""
        place = self._place(bundle)
        if place is None:
            return None
        snapshot, row = place
        load = snapshot.load[row].tolist()
        return CarriedLoad(
            rate_in=load[RATE_IN],
            rate_out=load[RATE_OUT],
            throughput_in=load[THROUGHPUT_IN],
            throughput_out=load[THROUGHPUT_OUT],
            topics=int(snapshot.topics[row]),
            producers=int(snapshot.producers[row]),
            consumers=int(snapshot.consumers[row]),
        )

    def became(self, bundle: str) -> str:
        """What a *bundle* that no broker lists has become: "split", "merged", or "unlisted" where that is not seen."""
        former = parse_bundle(bundle)
        there = self._of_namespace(former.namespace)
        if any(former.lower <= each.lower and each.upper <= former.upper for each in there):
            return "split"
        return (
            "merged" if any(each.lower <= former.lower and former.upper <= each.upper for each in there) else "unlisted"
        )

    def _place(self, bundle: str) -> tuple[Snapshot, int] | None:
        for snapshot in self.snapshots:
            row = bisect_left(snapshot.names, bundle)
            if row < len(snapshot.names) and snapshot.names[row] == bundle:
                return snapshot, row
        return None

    def _of_namespace(self, namespace: str) -> list[BundleName]:
        first, last = f"{namespace}/0x", f"{namespace}/0y"
        names = list[str]()
        for snapshot in self.snapshots:
            names += snapshot.names[bisect_left(snapshot.names, first) : bisect_left(snapshot.names, last)]
        # The name of another namespace, of three parts, may lie between them.
        return [parse_bundle(name) for name in names if namespace_of(name) == namespace]

    # ---- brokers ----

    @cached_property
    def _known(self) -> tuple[dict[str, BrokerRow], Ints]:
        return known_brokers(self.snapshots[0], self.snapshots)

    @cached_property
    def _reported(self) -> tuple[Floats, Floats]:
        known = self._known[0]
        return of_one_unit(broker_numbers(known)[:, NUMBER_USAGE], broker_limits(self.snapshots[0], known))

    @property
    def _amounts(self) -> Floats:
        return self._reported[0]

    @property
    def _limits(self) -> Floats:
        return self._reported[1]

    @cached_property
    def brokers(self) -> BrokerColumns:
        """How full the brokers are."""
        known, rank = self._known
        load, owner = (np.concatenate([getattr(each, name) for each in self.snapshots]) for name in ("load", "owner"))
        code_of = {name: code for code, name in enumerate(known)}
        return BrokerColumns(
            code_of=code_of,
            usage=self._usage(self._amounts),
            load=_summed(load, rank[owner], len(code_of)),
            resource=self.weights.fullest(self._amounts, self._limits),
        )

    def after(self, shifts: Sequence[Shift]) -> BrokerColumns:
        """How full the brokers are to be once *shifts* are done, by the load of this interval.

        Messages and bytes are added and taken off.  What a bundle takes of CPU, memory and bandwidth is estimated as
        PeakShedder estimates it: see controller.planning.shares.  Where a broker is at its limit, and the others' usage
        does not say why, nobody knows what bundles take: then the usage of all that *shifts* touch is not known.
        """
        now, n = self.brokers, len(self.brokers.code_of)
        moved = np.array([each.load for each in shifts], np.float64).reshape(len(shifts), 4)
        source, destination = (
            np.array([now.code_of.get(broker, -1) for broker in brokers], np.int64)
            for brokers in ([each.source for each in shifts], [each.destination for each in shifts])
        )
        comes, goes = _summed(moved, destination, n), _summed(moved, source, n)
        change, touched = drivers(comes) - drivers(goes), np.zeros(n, np.bool_)
        touched[[*source[source >= 0], *destination[destination >= 0]]] = True
        amounts, driven, unknown = self._amounts.copy(), drivers(now.load), False
        for resource in _COUNTED:
            limit, reported = self._limits[:, resource], self._amounts[:, resource]
            known = np.where(np.isfinite(limit) & (limit > 0), limit, np.inf)
            fit, demand, accounts = fitted_below_the_limit(reported, known, driven)
            unknown |= not accounts and self.weights.weight_of(resource) > 0
            amounts[:, resource] = np.where(touched, np.maximum(demand + fit.usage_of(change), 0.0), reported)
        load = np.where(touched[:, None], np.maximum(now.load + comes - goes, 0.0), now.load)
        usage = np.where(touched & unknown, np.nan, self._usage(amounts))
        fullest = self.weights.fullest(amounts, self._limits)
        return BrokerColumns(code_of=now.code_of, usage=usage, load=load, resource=fullest)

    def _usage(self, amounts: Floats) -> Floats:
        with np.errstate(all="ignore"):
            found = self.weights.weighted_usage(amounts, self._limits)
        return np.where(np.isfinite(found), found, np.nan)


def drift(then: BrokerColumns, now: BrokerColumns) -> float | None:
    """The traffic *now* over that *then*, of the brokers that have data both times; None where there was none.

    1 KiB/s counts as much as a message/s.
    """
    both = [name for name in then.code_of if name in now.code_of]
    before, after = (weight(each.load[[each.code_of[name] for name in both]]) for each in (then, now))
    total = float(before.sum())
    return float(after.sum()) / total if total > 0 else None


def _summed(load: Floats, broker: Ints, brokers: int) -> Floats:
    """(brokers, 4) sums of the rows of *load*; rows of broker -1 count nowhere."""
    there = broker >= 0
    sums = [np.bincount(broker[there], weights=column[there], minlength=brokers) for column in load.T]
    return np.stack(sums, axis=1).astype(np.float64)


def weights_of(shedder: object) -> ResourceWeights:
    """How *shedder* weighs the resources; Pulsar's default where it weighs none."""
    return shedder if isinstance(shedder, ResourceWeights) else ResourceWeights()
