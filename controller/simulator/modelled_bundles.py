"""The bundles of a scenario: who owns each, what it carries, and its averages.  One row a bundle, sorted by name."""

import heapq
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from controller.aggregate.shard.shard_state import DetailLimits
from controller.aggregate.state.bundles import KnownBundles
from controller.model.load import RATE_IN, RATE_OUT, UNOWNED, Bools, Floats, Ints, TopicDetail, ragged
from controller.model.names import BundleName, default_boundaries, parse_bundle, topic_hash
from controller.settings.scenario_parts import ModelledNamespace
from controller.simulator.cluster import sum_by
from controller.simulator.demand import Demand
from controller.strategies.protocols import TopicBundleAssignment


class ModelledBundles:
    """See the module docstring."""

    def __init__(
        self, spaces: Sequence[ModelledNamespace], demand: Demand, weights: Floats, assignment: TopicBundleAssignment
    ) -> None:
        """Cut the namespaces evenly, and deal out the bundles.

        *weights* (namespaces, brokers): what each broker carries of a namespace, against the other brokers.
        Namespaces with the same weights are dealt out together.
        """
        self._spaces, self._demand, self._assignment = spaces, demand, assignment
        names = [
            str(BundleName(space.name, *ends))
            for space in spaces
            for ends in pairwise(default_boundaries(space.bundles))
        ]
        #: Averages, by row.
        self.known = KnownBundles.of(sorted(names))
        self._topics = [_topic_names(space) for space in spaces]
        self._position: Ints = np.fromiter(
            (topic_hash(topic) for topics in self._topics for topic in topics), np.int64, len(demand)
        )
        self._read_names()
        self.owner: Ints = np.full(len(names), UNOWNED)
        self._assign_topics()
        mean = sum_by(self.of_topic, demand.mean_load(), len(names))
        rate = mean[:, RATE_IN] + mean[:, RATE_OUT]
        for alike in np.unique(weights, axis=0):
            rows = np.flatnonzero((weights[self.space] == alike).all(axis=1))
            self.owner[rows] = _dealt(rate[rows], alike)
        #: (bundles, 4) load of this interval.
        self.load: Floats = np.zeros((len(names), 4))
        self._topic_load: Floats = np.zeros((len(demand), 4))

    def __len__(self) -> int:
        return len(self.known)

    @property
    def names(self) -> list[str]:
        """Sorted."""
        return self.known.names

    def boundaries(self, space: int) -> tuple[int, ...]:
        """The boundaries of namespace *space*, a row of the scenario; both ends of the ring included."""
        rows = np.flatnonzero(self.space == space)
        return (*np.sort(self._lower[rows]).tolist(), int(self._upper[rows].max()))

    def carry(self, load: Floats) -> None:
        """Take the load of all topics, (topics, 4)."""
        # Rounded as the statistics of brokers are; it also keeps the last bits of exp() out of decisions.
        self._topic_load = np.round(load, 1)
        self.load = np.round(sum_by(self.of_topic, self._topic_load, len(self)), 1)

    def advance(self, rows: Ints, interval_ms: int) -> None:
        """Add this interval's load to the averages of *rows*."""
        self.known = self.known.advanced(rows, self.load[rows], interval_ms)

    def detail(self, rows: Ints, limits: DetailLimits) -> TopicDetail:
        """Topics of those *rows* that are near a split, and the segments of the others."""
        sessions = self.producers[rows] + self.consumers[rows]
        near = limits.near_split(self.topics[rows], sessions, self.known.long_term[rows])
        topics = self._by_bundle[ragged(self.topics, rows[near])]
        return TopicDetail.of(np.where(near, self.topics[rows], 0), self._position[topics], self._topic_load[topics])

    def split(self, bundle: str, cuts: Sequence[int]) -> list[int]:
        """Put a bundle on each side of *cuts* in the place of *bundle*, with the same owner; returns their rows."""
        namespace, lower, upper = parse_bundle(bundle)
        children = [str(BundleName(namespace, *ends)) for ends in pairwise((lower, *cuts, upper))]
        parent = self.row_of[bundle]
        rest = np.arange(len(self)) != parent
        owner, of_parent = self.owner[rest], self.owner[parent]
        self.known, moved = self.known.keep(rest).with_names(children)
        self.owner = np.full(len(self.known), of_parent)
        self.owner[moved] = owner
        self._read_names()
        self._assign_topics()
        self.carry(self._topic_load)
        return [self.row_of[child] for child in children]

    def _read_names(self) -> None:
        """What follows from the names alone."""
        code_of = {space.name: code for code, space in enumerate(self._spaces)}
        parsed = [parse_bundle(name) for name in self.names]
        #: Name -> row.
        self.row_of = {name: row for row, name in enumerate(self.names)}
        #: (bundles,) row of the namespace in the scenario.
        self.space: Ints = np.array([code_of[each.namespace] for each in parsed], np.int64)
        self._lower: Ints = np.array([each.lower for each in parsed], np.int64)
        self._upper: Ints = np.array([each.upper for each in parsed], np.int64)

    def _assign_topics(self) -> None:
        """Which bundle each topic is in, and what follows from it."""
        parts = []
        for code, topics in enumerate(self._topics):
            rows = np.flatnonzero(self.space == code)
            rows = rows[np.argsort(self._lower[rows], kind="stable")]
            # Pulsar has no bundle for the very last position of the ring: here such a topic lies in the last one.
            parts.append(rows[self._assignment.assign(topics, self.boundaries(code))])
        #: (topics,) row of the bundle.
        self.of_topic: Ints = np.concatenate(parts)
        n = len(self)
        #: (bundles,) topics and clients.
        self.topics: Ints = np.bincount(self.of_topic, minlength=n)
        self.producers: Ints = np.bincount(self.of_topic, self._demand.producers, n).astype(np.int64)
        self.consumers: Ints = np.bincount(self.of_topic, self._demand.consumers, n).astype(np.int64)
        self._by_bundle: Ints = np.lexsort((self._position, self.of_topic))

    def sums(self, brokers: int) -> tuple[Floats, Ints, Ints]:
        """Of each of so many brokers: (brokers, 4) load, number of topics and of bundles."""
        mine: Bools = self.owner != UNOWNED
        owner = self.owner[mine]
        topics = np.bincount(owner, self.topics[mine], brokers).astype(np.int64)
        return sum_by(owner, self.load[mine], brokers), topics, np.bincount(owner, minlength=brokers).astype(np.int64)


def _topic_names(space: ModelledNamespace) -> list[str]:
    name = f"persistent://{space.name}/topic-"
    if not space.partitions:
        return [f"{name}{number:07d}" for number in range(space.topics)]
    return [f"{name}{n // space.partitions:07d}-partition-{n % space.partitions}" for n in range(space.topics)]


def _dealt(rate: Floats, weights: Floats) -> Ints:
    """(bundles,) owners: the largest bundle first, each to the broker that is furthest below its weight."""
    owner = np.empty(len(rate), np.int64)
    brokers = [(0.0, broker) for broker in np.flatnonzero(weights > 0).tolist()]
    load = np.zeros(len(weights))
    heapq.heapify(brokers)
    for row in np.argsort(-rate, kind="stable").tolist():
        _, broker = heapq.heappop(brokers)
        owner[row] = broker
        # Bundles without load are spread too.
        load[broker] += max(float(rate[row]), 1e-6)
        heapq.heappush(brokers, (float(load[broker] / weights[broker]), broker))
    return owner
