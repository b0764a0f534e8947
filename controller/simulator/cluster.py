"""A modelled Pulsar cluster: it has load, can be swept, and executes unloads and splits.

The demo, the benchmark and the tests of the whole loop run against it.  Everything follows from a shape and
a seed: no clock, no IO, no global randomness.  Topics are columns, so a million of them is a few arrays.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from controller.model.decision import Command
from controller.model.errors import SettingsError
from controller.model.load import THROUGHPUT_IN, THROUGHPUT_OUT, Floats, Ints
from controller.model.names import FULL_UPPER, BundleName, parse_bundle, topic_hash
from controller.model.records import CommandResult, NamespaceState

#: Columns of a (topics, 4) count array.
PRODUCERS, CONSUMERS, STORAGE_SIZE, BACKLOG_SIZE = range(4)

#: A topic's mean publish rate, msg/s, and its typical message, bytes.
_MEAN_MSG_RATE, _TYPICAL_MESSAGE = 100.0, 1000.0
#: Spread of message sizes over topics: standard deviation of the logarithm.
_MESSAGE_SPREAD = 0.5
#: Load drifts as a random walk that is drawn back: what is kept of it, and a step's size, both of the log.
_DRIFT_KEPT, _DRIFT_STEP = 0.97, 0.1

#: Resource usage as fractions of the limit, in the order of model.load's resource columns: of an idle broker,
#: and what a mean share of the cluster's load adds.  Outgoing bandwidth is what runs out first.
_IDLE_USAGE = np.array([0.05, 0.20, 0.05, 0.01, 0.01])
_MEAN_LOAD_USAGE = np.array([0.30, 0.10, 0.15, 0.35, 0.45])
#: CPU percent of 8 cores, memory and direct memory in MiB; the bandwidths follow from the load.
_CPU_LIMIT, _MEMORY_LIMIT, _DIRECT_MEMORY_LIMIT = 800.0, 8192.0, 16384.0
_KBIT = 8 / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterShape:
    """How big the modelled cluster is, and how uneven its load; the default is the demo's."""

    brokers: int = 6
    #: So many of the brokers (the last ones) have just been restarted and own nothing.
    empty_brokers: int = 1
    namespaces: int = 3
    bundles: int = 96
    topics: int = 2_000
    #: Standard deviation of the logarithm of a topic's message rate; 0 makes all topics alike.
    skew: float = 1.0
    #: At first the first broker has this much more than its share of the bundles, and the last one with any
    #: this much less; 0 deals them evenly.
    placement_skew: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.empty_brokers < self.brokers:
            raise SettingsError(f"{self.brokers} brokers of which {self.empty_brokers} are empty: own nothing")
        if not 1 <= self.namespaces <= self.bundles or self.topics < 1:
            raise SettingsError(
                f"{self.namespaces} namespaces, {self.bundles} bundles, {self.topics} topics:"
                " every namespace needs a bundle, and the cluster a topic"
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelledSweep:
    """What a collector reads from one broker in one interval, columnar.

    Pulsar: LocalBrokerData and the admin API's broker-stats.
    """

    cluster: str
    broker: str
    #: T, epoch ms.
    interval: int
    #: (5,) usage and limit: percent, MiB, MiB, kbit/s, kbit/s.
    usage: Floats
    limit: Floats
    bundles: list[str]
    #: (bundles + 1,) the topics of bundle b are ``starts[b]:starts[b + 1]`` of the columns below.
    starts: Ints
    topics: list[str]
    #: (topics, 4) msg/s and bytes/s, and (topics, 2) producers and consumers.
    load: Floats
    counts: Ints

    @property
    def sweep_id(self) -> str:
        """Names this sweep; the tick's roster refers to it."""
        return f"{self.broker}@{self.interval}"


class ModelledCluster:
    """Brokers, bundles and topics with a load that drifts; see the module docstring.

    Same shape, seed and commands: same sweeps, to the bit.
    """

    def __init__(self, shape: ClusterShape, *, seed: int, name: str = "demo") -> None:
        self.name = name
        self.brokers = _numbered("broker-{}:8080", shape.brokers)
        self.namespaces = _numbered("tenant/ns-{}", shape.namespaces)
        self._rng = np.random.Generator(np.random.PCG64(seed))
        self._make_bundles(shape)
        self._make_topics(shape)
        self._limit = self._broker_limit()
        self._version = np.ones(shape.namespaces, dtype=np.int64)
        self._changed = set(range(shape.namespaces))

    def _make_bundles(self, shape: ClusterShape) -> None:
        """Cut the namespaces evenly and deal out their bundles.  Pulsar: PoliciesUtil.getBundles."""
        share = np.arange(shape.bundles) * shape.namespaces // shape.bundles
        of_namespace = np.bincount(share, minlength=shape.namespaces)
        first = np.cumsum(of_namespace) - of_namespace
        nth = np.arange(shape.bundles) - first[share]
        self._namespace: Ints = share
        self._lower: Ints = nth * ((1 << 32) // of_namespace[share])
        upper = np.append(self._lower[1:], 0)
        upper[first + of_namespace - 1] = FULL_UPPER
        shares = np.linspace(1 + shape.placement_skew, 1 - shape.placement_skew, shape.brokers - shape.empty_brokers)
        deal = (self._rng.permutation(shape.bundles) + 0.5) / shape.bundles
        self._owner: Ints = np.searchsorted(np.cumsum(shares) / shares.sum(), deal)
        self._bundle_names = [
            str(BundleName(self.namespaces[code], *ends))
            for code, *ends in zip(share.tolist(), self._lower.tolist(), upper.tolist(), strict=True)
        ]
        self._row_of = {name: row for row, name in enumerate(self._bundle_names)}

    def _make_topics(self, shape: ClusterShape) -> None:
        """Name the topics, let their hashes place them as Pulsar would, and give each its share of load."""
        n, rng = shape.topics, self._rng
        namespace = np.arange(n) % shape.namespaces
        names = [f"persistent://{self.namespaces[code]}/topic-{i:07d}" for i, code in enumerate(namespace.tolist())]
        self._topics = np.array(names, dtype=object)
        # Pulsar has no bundle for the very last position of the ring; a model may move such a topic by one.
        self._position: Ints = np.minimum(np.fromiter(map(topic_hash, names), np.int64, n), FULL_UPPER - 1)
        ring = (self._namespace << 32) + self._lower
        self._bundle: Ints = np.searchsorted(ring, (namespace << 32) + self._position, side="right") - 1

        subscriptions = rng.integers(1, 4, n)
        rate = _MEAN_MSG_RATE * rng.lognormal(-(shape.skew**2) / 2, shape.skew, n)
        message = _TYPICAL_MESSAGE * rng.lognormal(0, _MESSAGE_SPREAD, n)
        rates = np.stack([rate, rate * subscriptions], axis=1)
        self._mean_load: Floats = np.hstack([rates, rates * message[:, None]])
        self.counts: Ints = np.stack([rng.integers(1, 5, n), subscriptions * rng.integers(1, 4, n)], axis=1)
        rng.exponential(10.0, n)  # a seed goes on to mean the same drift
        self._drift: Floats = np.zeros(n)
        self.load: Floats = np.round(self._mean_load, 1)

    def advance(self) -> None:
        """Let the load drift on to the next interval."""
        self._drift = _DRIFT_KEPT * self._drift + _DRIFT_STEP * self._rng.standard_normal(len(self._drift))
        # Rounded as a broker's own statistics are; it also keeps the last bits of exp() out of the records.
        self.load = np.round(self._mean_load * np.exp(self._drift)[:, None], 1)

    def owner(self, bundle: str) -> str:
        """The broker that owns *bundle*, or "" when there is no such bundle (any more)."""
        row = self._row_of.get(bundle)
        return "" if row is None else self.brokers[self._owner[row]]

    def bundle_loads(self) -> dict[str, Floats]:
        """(4,) load of every bundle, by name."""
        return dict(zip(self._bundle_names, self._bundle_load(), strict=True))

    def broker_load(self) -> Floats:
        """(brokers, 4) load, msg/s and bytes/s, in the order of ``brokers``."""
        return sum_by(self._owner, self._bundle_load(), len(self.brokers))

    def boundaries(self, namespace: str) -> tuple[int, ...]:
        """The boundaries of *namespace*'s bundles, 0 and 0xffffffff included."""
        lower = self._lower[self._namespace == self.namespaces.index(namespace)]
        return (*np.sort(lower).tolist(), FULL_UPPER)

    def changed_namespaces(self) -> list[NamespaceState]:
        """The namespaces whose boundaries changed since this was last asked; the first time, all of them."""
        codes, self._changed = sorted(self._changed), set()
        return [
            NamespaceState(
                namespace=self.namespaces[code],
                version=int(self._version[code]),
                boundaries=self.boundaries(self.namespaces[code]),
            )
            for code in codes
        ]

    def sweeps(self, interval: int) -> Iterator[ModelledSweep]:
        """What a collector would read from each broker at *interval*, in name order.

        One sort of the topics by owner and bundle for the whole cluster; then a broker is a slice.
        """
        bundle_order = np.argsort(self._owner, kind="stable")
        rank = np.empty_like(bundle_order)
        rank[bundle_order] = np.arange(len(rank))
        order = np.argsort(rank[self._bundle], kind="stable")
        topics, load, counts = self._topics[order], self.load[order], self.counts[order]
        starts = np.append(0, np.cumsum(np.bincount(rank[self._bundle], minlength=len(rank))))
        of_broker = np.searchsorted(self._owner[bundle_order], np.arange(len(self.brokers) + 1))
        usage = self._broker_usage()
        for code, broker in enumerate(self.brokers):
            lo, hi = of_broker[code : code + 2]
            rows = slice(starts[lo], starts[hi])
            yield ModelledSweep(
                cluster=self.name,
                broker=broker,
                interval=interval,
                usage=usage[code],
                limit=self._limit,
                bundles=[self._bundle_names[row] for row in bundle_order[lo:hi]],
                starts=starts[lo : hi + 1] - starts[lo],
                topics=topics[rows].tolist(),
                load=load[rows],
                counts=counts[rows],
            )

    def apply(self, command: Command, *, now_ms: int) -> CommandResult:
        """Execute *command* as an executor would: compare its preconditions with the cluster, then act.

        Applying a command twice has no further effect: the preconditions show that it was executed.
        """
        before = self.owner(command.bundle)
        if now_ms >= command.expires_at_ms:
            status, detail = "expired", f"at {command.expires_at_ms}"
        else:
            status, detail = {"unload": self._unload, "split": self._split}[command.action](command, before)
        after = self.owner(command.bundle)
        return CommandResult(id=command.id, status=status, detail=detail, owner_before=before, owner_after=after)

    def _unload(self, command: Command, owner: str) -> tuple[str, str]:
        destination = command.destination
        if not owner:
            return "obsolete", "no such bundle"
        if destination and destination not in self.brokers:
            return "failed", f"no such broker: {destination}"
        if owner != command.source:
            return "already_done" if owner == destination else "obsolete", f"owned by {owner}"
        if command.mode == "dry_run":
            return "dry_run", ""
        row = self._row_of[command.bundle]
        self._owner[row] = self.brokers.index(destination) if destination else self._least_loaded()
        return "done", ""

    def _split(self, command: Command, owner: str) -> tuple[str, str]:
        namespace, lower, upper = parse_bundle(command.bundle)
        boundaries = command.boundaries
        if not boundaries and command.algorithm == "range_equally_divide":
            boundaries = (lower + (upper - lower) // 2,)
        # Pulsar answers 204 to a boundary outside of the bundle, and splits nothing.
        cuts = sorted({cut for cut in boundaries if lower < cut < upper})
        children = [BundleName(namespace, *ends) for ends in pairwise([lower, *cuts, upper])]
        if not cuts:
            return "failed", f"{command.algorithm}: no boundary inside the bundle"
        if not owner:
            done = all(str(child) in self._row_of for child in children)
            return "already_done" if done else "obsolete", "no such bundle"
        if owner != command.source:
            return "obsolete", f"owned by {owner}"
        if command.mode == "dry_run":
            return "dry_run", ""
        for row in self._divide(self._row_of[command.bundle], cuts, children):
            if command.unload_after_split:
                self._owner[row] = self._least_loaded()
        return "done", f"into {', '.join(child.range for child in children)}"

    def _divide(self, row: int, cuts: list[int], children: list[BundleName]) -> list[int]:
        """Put *children* in the place of bundle *row*: the first takes its row, the others are appended."""
        rows = [row, *range(len(self._owner), len(self._owner) + len(cuts))]
        topics = np.flatnonzero(self._bundle == row)
        nth = np.searchsorted(cuts, self._position[topics], side="right")
        self._bundle[topics] = np.array(rows)[nth]
        self._namespace = np.append(self._namespace, np.repeat(self._namespace[row], len(cuts)))
        self._owner = np.append(self._owner, np.repeat(self._owner[row], len(cuts)))
        self._lower = np.append(self._lower, cuts)
        del self._row_of[self._bundle_names[row]]
        self._bundle_names[row] = str(children[0])
        self._bundle_names += map(str, children[1:])
        self._row_of |= {str(child): at for child, at in zip(children, rows, strict=True)}
        self._version[self._namespace[row]] += 1
        self._changed.add(int(self._namespace[row]))
        return rows

    def _least_loaded(self) -> int:
        """The broker that a lookup would give an unloaded bundle to: the least throughput, then the name."""
        load = self.broker_load()
        return int(np.argmin(load[:, THROUGHPUT_IN] + load[:, THROUGHPUT_OUT]))

    def _bundle_load(self) -> Floats:
        return sum_by(self._bundle, self.load, len(self._owner))

    def _drivers(self, load: Floats) -> Floats:
        """(brokers, 5) what drives each resource: messages, topics, bytes, bytes in, bytes out."""
        in_and_out = load[:, 0::2] + load[:, 1::2]
        topics = np.bincount(self._owner[self._bundle], minlength=len(self.brokers))
        return np.column_stack(
            [in_and_out[:, 0], topics, in_and_out[:, 1], load[:, THROUGHPUT_IN], load[:, THROUGHPUT_OUT]]
        )

    def _broker_limit(self) -> Floats:
        """(5,) limits, alike for all brokers: as wide as the load of the start wants them."""
        self._mean_drivers = self._drivers(self.broker_load()).mean(axis=0)
        bandwidth = self._mean_drivers[3:] * _KBIT / _MEAN_LOAD_USAGE[3:]
        return np.round([_CPU_LIMIT, _MEMORY_LIMIT, _DIRECT_MEMORY_LIMIT, *bandwidth], 1)

    def _broker_usage(self) -> Floats:
        share = self._drivers(self.broker_load()) / self._mean_drivers
        usage: Floats = np.round((_IDLE_USAGE + _MEAN_LOAD_USAGE * share) * self._limit, 2)
        return usage


def _numbered(form: str, n: int) -> tuple[str, ...]:
    """*form* with 1 .. n, zero-padded: the order of the names is the order of the rows."""
    return tuple(form.format(f"{i:0{len(str(n))}d}") for i in range(1, n + 1))


def sum_by(group: Ints, load: Floats, groups: int) -> Floats:
    """(groups, 4) sums of the rows of *load*."""
    columns = [np.bincount(group, weights=column, minlength=groups) for column in load.T]
    return np.stack(columns, axis=1)
