"""Columnar load: the tables of brokers and bundles that strategies read.

A cluster can have 1,000 brokers, 100,000 bundles and 1,000,000 topics, so load is kept in NumPy columns.  Rows are
sorted by name.  A row number that refers to a broker or a namespace is called its code.  Tables are immutable: their
columns are read-only, so that no strategy changes what others see.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from controller.model.balancing import Balancing
from controller.model.names import is_broker_own
from controller.model.policies import Policies
from controller.model.topic_kinds import KindFlags

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

#: Samples in a bundle's averages.  Pulsar: ModularLoadManagerImpl.NUM_SHORT_SAMPLES and NUM_LONG_SAMPLES.
SHORT_TERM_SAMPLES: Final = 10
LONG_TERM_SAMPLES: Final = 1000

#: Columns of every (n, 4) load array: msg/s in and out, bytes/s in and out.
RATE_IN, RATE_OUT, THROUGHPUT_IN, THROUGHPUT_OUT = range(4)

#: Columns of every (n, 5) resource array, in the order of Pulsar's LocalBrokerData.
CPU, MEMORY, DIRECT_MEMORY, BANDWIDTH_IN, BANDWIDTH_OUT = range(5)
#: Their names, in this order: in records, as fields in Python, and in texts for people.
RESOURCES: Final = ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut")
RESOURCE_FIELDS: Final = ("cpu", "memory", "direct_memory", "bandwidth_in", "bandwidth_out")
RESOURCE_WORDS: Final = ("cpu", "memory", "direct memory", "bandwidth in", "bandwidth out")
#: Name in records -> column.
RESOURCE_OF: Final = {name: column for column, name in enumerate(RESOURCES)}

#: Owner code of a bundle that no broker of the table serves.
UNOWNED: Final = -1

#: Load assumed for a new bundle: msg/s in and out, bytes/s in and out.
#: Pulsar: LoadManagerShared / ModularLoadManagerImpl default stats.
DEFAULT_LOAD = np.array([50.0, 50.0, 50_000.0, 50_000.0])

#: Topics none of which is a segment.
_NO_SEGMENTS: Final = np.zeros(0, np.int64)
#: Of the names of a broker's bundles.  Two sets with the same digest would only leave averages as they are.
_DIGEST_BYTES: Final = 8

A = TypeVar("A", bound=NDArray[Any])


def read_only(array: A) -> A:
    """*array*, or a view of it, that cannot be written to; the array of whoever gave it stays as it is."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


class _ReadOnlyColumns:
    """Makes the columns of a table read-only."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray) and value.flags.writeable:
                object.__setattr__(self, name, read_only(value))


@dataclass(frozen=True, kw_only=True, eq=False)
class BrokerTable(_ReadOnlyColumns):
    """One row for each broker, sorted by name (``host:webPort``, as in ZooKeeper).

    Pulsar: LocalBrokerData and TimeAverageBrokerData.
    """

    names: tuple[str, ...]
    #: (n, 5) usage and limit as reported: percent, MiB, MiB, kbit/s, kbit/s.  Only usage / limit is used.
    usage: Floats
    limit: Floats
    #: (n, 4) the totals that the broker reports, msg/s and bytes/s.
    load: Floats
    #: (n, 4) sums of the long-term averages of its bundles.  Pulsar: TimeAverageBrokerData.
    long_term: Floats
    #: Long-term msg/s (in + out) of bundles that were sent to the broker and that it does not list yet.
    preallocated_rate: Floats
    #: Number of all bundles the broker lists, also heartbeat, SLA monitor and recently unloaded ones.
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
        """(n,) bytes/s in + out."""
        return read_only(self.load[:, THROUGHPUT_IN] + self.load[:, THROUGHPUT_OUT])


@dataclass(frozen=True, kw_only=True, eq=False)
class TopicDetail(_ReadOnlyColumns):
    """Topics of bundles near a split threshold, and segments of scalable topics of any bundle.

    Bundle b has the rows ``starts[b]:starts[b + 1]``.  Of a bundle that is far from a split and has segments, there are
    its segments alone.
    """

    #: (bundles + 1,) offsets into the columns below; an empty slice means that the topics were not kept.
    starts: Ints
    #: Position on the hash ring.
    position: Ints
    #: (topics, 4) load of each topic.
    load: Floats
    #: (topics,) codes of controller.model.segment_code; by default no topic is a segment.
    segment: Ints = field(default_factory=lambda: _NO_SEGMENTS)

    def __post_init__(self) -> None:
        if len(self.segment) < len(self.position):
            object.__setattr__(self, "segment", np.zeros(len(self.position), np.int64))
        super().__post_init__()

    @classmethod
    def of(cls, sizes: Ints, position: Ints, load: Floats, segment: Ints = _NO_SEGMENTS) -> "TopicDetail":
        """Bundles with *sizes*, (bundles,), topics each."""
        return cls(starts=np.append(0, np.cumsum(sizes)), position=position, load=load, segment=segment)

    @property
    def sizes(self) -> Ints:
        """(bundles,) number of topics of each."""
        return np.diff(self.starts)

    def take(self, rows: Ints) -> "TopicDetail":
        """The topics of the bundles at *rows*, in this order."""
        sizes = self.sizes
        topics = ragged(sizes, rows)
        return self.of(sizes[rows], self.position[topics], self.load[topics], self.segment[topics])


@dataclass(frozen=True, kw_only=True, eq=False)
class BundleTable(_ReadOnlyColumns):
    """One row for each bundle that a broker serves, sorted by name.

    Pulsar: BundleData (averages) and NamespaceBundleStats (last stats).
    """

    names: tuple[str, ...]
    namespaces: tuple[str, ...]
    #: Code into ``namespaces``.
    namespace: Ints
    #: Code of the owner in the BrokerTable.  UNOWNED: no broker of the table owns it; such a bundle is not moved, not
    #: split, and counts for no broker.
    broker: Ints
    #: (n, 4) this interval's load, and its averages over the last 10 and 1000 samples.
    load: Floats
    short_term: Floats
    long_term: Floats
    #: Number of samples in these averages, up to 10 and 1000.  Pulsar: TimeAverageMessageData.numSamples.
    short_samples: Ints
    long_samples: Ints
    topics: Ints
    producers: Ints
    consumers: Ints
    #: (n,) flags of topic_kinds without UNLISTED: the kinds of topics that it holds or may hold, and
    #: whether some of them are segments.
    kinds: KindFlags
    detail: TopicDetail

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def code_of(self) -> dict[str, int]:
        """Name -> row."""
        return {name: i for i, name in enumerate(self.names)}

    def is_idle(self, bundle: int) -> bool:
        """Whether *bundle* (a row) has neither clients nor traffic."""
        return not (self.producers[bundle] or self.consumers[bundle] or self.load[bundle].any())

    @cached_property
    def owned(self) -> Bools:
        """(n,) whether a broker of the table owns the bundle."""
        owned: Bools = self.broker != UNOWNED
        return read_only(owned)

    @cached_property
    def short_term_throughput(self) -> Floats:
        """(n,) bytes/s in + out by the short-term averages."""
        return read_only(self.short_term[:, THROUGHPUT_IN] + self.short_term[:, THROUGHPUT_OUT])

    @cached_property
    def _by_broker(self) -> tuple[Ints, Ints]:
        # NumPy sorts int16 by radix, in a tenth of the time.
        short = self.broker.max(initial=0) <= np.iinfo(np.int16).max
        order = np.argsort(self.broker.astype(np.int16) if short else self.broker, kind="stable")
        return read_only(order), read_only(self.broker[order])

    def of_broker(self, broker: int) -> Ints:
        """Rows of the bundles that *broker* owns, in name order.

        O(log n + result), after one O(n log n) sort for the table.
        """
        order, codes = self._by_broker
        lo, hi = np.searchsorted(codes, [broker, broker + 1])
        return order[lo:hi]

    @cached_property
    def ownership(self) -> "Ownership":
        """How many bundles of each namespace each broker owns; sorts the table once."""
        owned = np.flatnonzero(self.owned)
        width = int(self.broker.max(initial=0)) + 1
        keys, bundles = np.unique(self.namespace[owned] * width + self.broker[owned], return_counts=True)
        namespace = keys // width
        starts = np.searchsorted(namespace, np.arange(len(self.namespaces) + 1))
        return Ownership(starts=starts, namespace=namespace, broker=keys - namespace * width, bundles=bundles)


@dataclass(frozen=True, kw_only=True, eq=False)
class Ownership(_ReadOnlyColumns):
    """One row for each namespace and broker that owns bundles of it, sorted by both.  Pulsar: BundleRangeCache."""

    #: (namespaces + 1,) the first row of each namespace.
    starts: Ints
    namespace: Ints
    broker: Ints
    #: Number of bundles, at least 1.
    bundles: Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class Preallocated(_ReadOnlyColumns):
    """Bundles that were sent to a broker and that it does not list yet: rows of both, in the order of sending.

    Pulsar: BrokerData.preallocatedBundleData, preallocatedBundleToBroker.
    """

    bundle: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    broker: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.bundle)

    def with_bundle(self, bundle: int, broker: int) -> "Preallocated":
        """A copy with *bundle* sent to *broker* (both are rows)."""
        return Preallocated(bundle=np.append(self.bundle, bundle), broker=np.append(self.broker, broker))

    def pairs(self) -> list[tuple[int, int]]:
        """(bundle, broker) of each, in the order of sending."""
        return list(zip(self.bundle.tolist(), self.broker.tolist(), strict=True))

    def renumbered(self, row_of: Ints) -> "Preallocated":
        """A copy with the broker rows replaced by ``row_of``; without the bundles whose broker is UNOWNED there."""
        brokers = row_of[self.broker]
        known = brokers != UNOWNED
        return Preallocated(bundle=self.bundle[known], broker=brokers[known])


@dataclass(frozen=True, kw_only=True, eq=False)
class OtherClaims(_ReadOnlyColumns):
    """Bundles that a broker lists beside the one that owns them in the table: rows of both."""

    bundle: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    broker: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    @cached_property
    def pairs(self) -> frozenset[tuple[int, int]]:
        """(bundle, broker)."""
        return frozenset(zip(self.bundle.tolist(), self.broker.tolist(), strict=True))

    def renumbered(self, row_of: Ints) -> "OtherClaims":
        """A copy with the broker rows replaced by ``row_of``; without the claims of brokers that are UNOWNED there."""
        brokers = row_of[self.broker]
        known = brokers != UNOWNED
        return OtherClaims(bundle=self.bundle[known], broker=brokers[known])


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterView(_ReadOnlyColumns):
    """The cluster as of one closed interval: all that a strategy may read besides its memory."""

    #: The interval T that closed, epoch ms.
    as_of_ms: int
    #: Active brokers with complete data.
    brokers: BrokerTable
    #: Names of active brokers without complete data (OutDatedData); ``bundles`` has none of their bundles.
    #: For shedders also drained ones (see ``without_data``).
    missing: tuple[str, ...] = ()
    #: Of those: broker -> lastUpdate of its load report, epoch ms, where that is too old to count.
    outdated: Mapping[str, int] = field(default_factory=dict)
    bundles: BundleTable
    #: (bundles,) unloaded within the grace period, so it is not moved again.  Pulsar: recentlyUnloadedBundles.
    recently_unloaded: Bools
    #: (namespaces,) number of bundles of each of ``bundles.namespaces``; -1 where it is not known.
    namespace_bundle_count: Ints
    #: Namespace -> the newest boundaries of its bundles, where they are known.
    boundaries: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    #: Isolation policies, anti-affinity groups, failure domains, broker versions.
    policies: Policies = field(default_factory=Policies)
    #: Bundles sent to a broker that does not list them yet; ``brokers.preallocated_rate`` is their load.
    preallocated: Preallocated = field(default_factory=Preallocated)
    #: What several brokers list: the later report has the bundle in ``bundles``, the others are here.
    other_claims: OtherClaims = field(default_factory=OtherClaims)
    #: Destinations chosen earlier in this interval that are not preallocated.  Loads and filters do not count these
    #: bundles; a placement that keeps its choice looks them up.
    chosen: Preallocated = field(default_factory=Preallocated)
    #: The row of a bundle that nobody owns while a broker is chosen for it, though ``bundles`` has the one it leaves.
    released: int = UNOWNED
    #: The row of the broker that the shedder planned for the bundle that is placed; UNOWNED: none.
    planned: int = UNOWNED
    #: (bundles,) the part of ``recently_unloaded`` that guardrails set, not the grace period; None: no part.
    guarded: Bools | None = None
    #: Names of bundles whose split is in flight.  Pulsar: ServiceUnitState.Splitting.  For shedders: of those that are
    #: split in this interval and whose parts are looked up anew.
    splitting: frozenset[str] = frozenset()
    #: Active broker -> the switches of its own balancing, where they are known.
    balancing: Mapping[str, Balancing] = field(default_factory=dict)

    @cached_property
    def owned_digests(self) -> Mapping[str, str]:
        """Broker -> digest of its bundles' names, without its heartbeat and SLA monitor, which are always its own."""
        bundles = self.bundles
        shared = ~np.array([is_broker_own(name) for name in bundles.namespaces], np.bool_)
        digests = {}
        for broker, name in enumerate(self.brokers.names):
            rows = bundles.of_broker(broker)
            owned = "\n".join([bundles.names[row] for row in rows[shared[bundles.namespace[rows]]].tolist()])
            digests[name] = blake2b(owned.encode(), digest_size=_DIGEST_BYTES).hexdigest()
        return MappingProxyType(digests)

    def lists(self, broker: int, bundle: str) -> bool:
        """Whether *broker* (a row) lists *bundle*, whichever broker owns it in the table."""
        row = self.bundles.code_of.get(bundle)
        return row is not None and (int(self.bundles.broker[row]) == broker or (row, broker) in self.other_claims.pairs)

    def without_data(self, names: Set[str]) -> "ClusterView":
        """A copy in which the brokers *names* sent no data; the rows of their bundles stay, and nobody owns them."""
        brokers, bundles = self.brokers, self.bundles
        has_data = np.array([name not in names for name in brokers.names], np.bool_)
        # The last one is that of UNOWNED.
        row_of = np.append(np.where(has_data, np.cumsum(has_data) - 1, UNOWNED), UNOWNED)
        columns = {each.name: getattr(brokers, each.name)[has_data] for each in fields(brokers) if each.name != "names"}
        names_with_data = tuple(name for name, keeps in zip(brokers.names, has_data.tolist(), strict=True) if keeps)
        return replace(
            self,
            brokers=replace(brokers, names=names_with_data, **columns),
            missing=tuple(sorted({*self.missing, *brokers.names} - {*names_with_data})),
            bundles=replace(bundles, broker=row_of[bundles.broker]),
            preallocated=self.preallocated.renumbered(row_of),
            chosen=self.chosen.renumbered(row_of),
            other_claims=self.other_claims.renumbered(row_of),
        )

    def with_guarded(self, which: Bools) -> "ClusterView":
        """A copy in which shedders leave *which* bundles, (bundles,), where they are, whatever the grace period is."""
        guarded = which if self.guarded is None else self.guarded | which
        return replace(self, recently_unloaded=self.recently_unloaded | which, guarded=guarded)

    def with_preallocated(self, bundle: int, broker: int) -> "ClusterView":
        """A copy in which *bundle* (a row) is sent to *broker* (a row) and its load counts there.

        Pulsar: ModularLoadManagerImpl.preallocateBundle.
        """
        rate = self.brokers.preallocated_rate.copy()
        rate[broker] += self.bundles.long_term[bundle, RATE_IN] + self.bundles.long_term[bundle, RATE_OUT]
        brokers = replace(self.brokers, preallocated_rate=rate)
        # The names are the same; building the index again would take longer than a placement.
        brokers.__dict__["code_of"] = self.brokers.code_of
        return replace(self, brokers=brokers, preallocated=self.preallocated.with_bundle(bundle, broker))

    def with_chosen(self, bundle: int, broker: int) -> "ClusterView":
        """A copy in which *broker* (a row) was chosen for *bundle* (a row); its load does not count there yet.

        Pulsar: ModularLoadManagerImpl.doLoadShedding, which does not preallocate.
        """
        return replace(self, chosen=self.chosen.with_bundle(bundle, broker))


def busiest_first(load: Floats, rows: Ints) -> Ints:
    """*rows* in descending order of *load*; equal loads keep their (name) order."""
    return rows[np.argsort(-load[rows], kind="stable")]


def ragged(sizes: Ints, rows: Ints) -> Ints:
    """Positions of the elements of *rows* in a column that holds ``sizes[i]`` elements for each row i."""
    starts = np.cumsum(sizes) - sizes
    chosen_sizes = sizes[rows]
    ends = np.cumsum(chosen_sizes)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts[rows] - (ends - chosen_sizes), chosen_sizes) + np.arange(total)
