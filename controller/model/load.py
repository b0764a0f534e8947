"""Columnar load: what the strategies see of brokers and bundles.

A cluster can have 1,000 brokers, 100,000 bundles and 1,000,000 topics, so load lies in NumPy columns.
Rows are sorted by name; brokers and namespaces are referred to by row number ("code").  Tables are
frozen: an array is never written to after the table was made.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from controller.model.policies import Policies

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

#: Columns of every (n, 4) load array: msg/s in and out, bytes/s in and out.
RATE_IN, RATE_OUT, THROUGHPUT_IN, THROUGHPUT_OUT = range(4)

#: Columns of every (n, 5) resource array, in the order of Pulsar's LocalBrokerData.
CPU, MEMORY, DIRECT_MEMORY, BANDWIDTH_IN, BANDWIDTH_OUT = range(5)

#: Code of the owner of a bundle that no broker of the table serves.
UNOWNED: Final = -1

#: A bundle of which nothing is known: msg/s in and out, bytes/s in and out.
#: Pulsar: LoadManagerShared / ModularLoadManagerImpl default stats.
DEFAULT_LOAD = np.array([50.0, 50.0, 50_000.0, 50_000.0])


@dataclass(frozen=True, kw_only=True, eq=False)
class BrokerTable:
    """One row a broker, sorted by name (``host:webPort``, as brokers are named in ZooKeeper).

    Pulsar: LocalBrokerData and TimeAverageBrokerData.
    """

    names: tuple[str, ...]
    #: (n, 5) usage and limit as reported: percent, MiB, MiB, kbit/s, kbit/s.  Only the quotient matters.
    usage: Floats
    limit: Floats
    #: (n, 4) the broker's own totals, msg/s and bytes/s.
    load: Floats
    #: (n, 4) sums of the long-term averages of its bundles.  Pulsar: TimeAverageBrokerData.
    long_term: Floats
    #: Long-term msg/s (in + out) of bundles on their way to the broker that it does not list yet.
    preallocated_rate: Floats
    #: Bundles the broker lists, all of them: also heartbeat, SLA and recently unloaded ones.
    bundle_count: Ints
    topic_count: Ints

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def code_of(self) -> dict[str, int]:
        """Name -> row."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def throughput(self) -> Floats:
        """Bytes/s in + out, one a broker."""
        return self.load[:, THROUGHPUT_IN] + self.load[:, THROUGHPUT_OUT]


@dataclass(frozen=True, kw_only=True, eq=False)
class TopicDetail:
    """Topics of bundles near a split threshold, ragged: those of bundle b are ``starts[b]:starts[b + 1]``."""

    #: (bundles + 1,) offsets into the columns below; an empty slice means no detail.
    starts: Ints
    #: Position on the hash ring.
    position: Ints
    #: (topics, 4) load of each topic.
    load: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class BundleTable:
    """One row a bundle that some broker serves, sorted by name.

    Pulsar: BundleData (averages) and NamespaceBundleStats (last stats).
    """

    names: tuple[str, ...]
    namespaces: tuple[str, ...]
    #: Code into ``namespaces``.
    namespace: Ints
    #: Code of the owner in the BrokerTable.  UNOWNED: none of its brokers; such a bundle is neither moved nor split,
    #: and counts for no broker.
    broker: Ints
    #: (n, 4) this interval's load, and its averages over the last 10 and 1000 samples.
    load: Floats
    short_term: Floats
    long_term: Floats
    #: How many samples are in these averages, up to 10 and 1000.  Pulsar: TimeAverageMessageData.numSamples.
    short_samples: Ints
    long_samples: Ints
    topics: Ints
    producers: Ints
    consumers: Ints
    detail: TopicDetail

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def code_of(self) -> dict[str, int]:
        """Name -> row."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def owned(self) -> Bools:
        """(n,) whether a broker of the table serves it."""
        found: Bools = self.broker != UNOWNED
        return found

    @cached_property
    def short_term_throughput(self) -> Floats:
        """Bytes/s in + out by the short-term averages, one a bundle."""
        return self.short_term[:, THROUGHPUT_IN] + self.short_term[:, THROUGHPUT_OUT]

    @cached_property
    def _by_broker(self) -> tuple[Ints, Ints]:
        # Short numbers are sorted by their digits, in a tenth of the time.
        short = self.broker.max(initial=0) <= np.iinfo(np.int16).max
        order = np.argsort(self.broker.astype(np.int16) if short else self.broker, kind="stable")
        return order, self.broker[order]

    def of_broker(self, broker: int) -> Ints:
        """Rows of the bundles that *broker* owns, in name order.

        O(log n + result), after one O(n log n) sort for the table.
        """
        order, codes = self._by_broker
        lo, hi = np.searchsorted(codes, [broker, broker + 1])
        return order[lo:hi]

    @cached_property
    def ownership(self) -> "Ownership":
        """Who owns how much of each namespace; sorts the table once."""
        owned = np.flatnonzero(self.owned)
        width = int(self.broker.max(initial=-1)) + 1
        keys, bundles = np.unique(self.namespace[owned] * width + self.broker[owned], return_counts=True)
        namespace = keys // max(width, 1)
        starts = np.searchsorted(namespace, np.arange(len(self.namespaces) + 1))
        return Ownership(starts=starts, namespace=namespace, broker=keys - namespace * width, bundles=bundles)


@dataclass(frozen=True, kw_only=True, eq=False)
class Ownership:
    """A row for each namespace and broker that owns some of it, sorted by both.  Pulsar: BundleRangeCache."""

    #: (namespaces + 1,) where the rows of each namespace begin.
    starts: Ints
    namespace: Ints
    broker: Ints
    #: How many bundles, at least 1.
    bundles: Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class Preallocated:
    """Bundles on their way to a broker that does not list them yet: rows of both, in the order they were sent.

    Pulsar: BrokerData.preallocatedBundleData, preallocatedBundleToBroker.
    """

    bundle: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    broker: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.bundle)

    def with_bundle(self, bundle: int, broker: int) -> "Preallocated":
        """These, and *bundle* on its way to *broker*."""
        return Preallocated(bundle=np.append(self.bundle, bundle), broker=np.append(self.broker, broker))


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterView:
    """The cluster as of one closed interval: everything a strategy may look at besides its memory."""

    #: The interval T that closed, epoch ms.
    as_of_ms: int
    #: Active brokers with complete data.
    brokers: BrokerTable
    #: Active brokers without (OutDatedData), by name; none of their bundles is in ``bundles``.
    missing: tuple[str, ...] = ()
    bundles: BundleTable
    #: Per bundle: unloaded within the grace period, so it stays put.  Pulsar: recentlyUnloadedBundles.
    recently_unloaded: Bools
    #: Bundles of each namespace of ``bundles.namespaces``; -1 where the count is not known.
    namespace_bundle_count: Ints
    #: What operators laid down about where bundles may go.
    policies: Policies = field(default_factory=Policies)
    #: Where bundles that were sent away will turn up; ``brokers.preallocated_rate`` is their load.
    preallocated: Preallocated = field(default_factory=Preallocated)
    #: Bundles, by name, whose split is under way.  Pulsar: ServiceUnitState.Splitting.
    splitting: frozenset[str] = frozenset()

    def with_preallocated(self, bundle: int, broker: int) -> "ClusterView":
        """The view with *bundle* (a row) counted to *broker* (a row), where it is being sent.

        Pulsar: ModularLoadManagerImpl.preallocateBundle.
        """
        rate = self.brokers.preallocated_rate.copy()
        rate[broker] += self.bundles.long_term[bundle, RATE_IN] + self.bundles.long_term[bundle, RATE_OUT]
        brokers = replace(self.brokers, preallocated_rate=rate)
        # The names are the same ones; to number them again would take longer than a placement.
        brokers.__dict__["code_of"] = self.brokers.code_of
        return replace(self, brokers=brokers, preallocated=self.preallocated.with_bundle(bundle, broker))


def busiest_first(load: Floats, rows: Ints) -> Ints:
    """*rows* in descending order of *load*; equal loads keep their (name) order."""
    return rows[np.argsort(-load[rows], kind="stable")]
