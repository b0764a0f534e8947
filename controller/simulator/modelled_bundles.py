"""The bundles of a scenario: who owns each, what it carries, and its averages.  One row a bundle, sorted by name."""

import heapq
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from controller.aggregate.shard.shard_state import DetailLimits
from controller.aggregate.state.bundles import KnownBundles
from controller.model.load import RATE_IN, RATE_OUT, UNOWNED, Bools, Floats, Ints, TopicDetail, ragged
from controller.model.names import BundleName, default_boundaries, parse_bundle, topic_hash
from controller.model.segment_code import NO_SEGMENT, segment_code
from controller.model.topic_kinds import PERSISTENT, SEGMENTS, KindFlags
from controller.settings.scenario_parts import ModelledNamespace
from controller.simulator.cluster import sum_by
from controller.simulator.demand import Demand
from controller.simulator.segments import ModelledTopic
from controller.strategies.common.auto_scale import AutoScale
from controller.strategies.protocols import TopicBundleAssignment


class ModelledBundles:
    """See the module docstring."""

    def __init__(
        self,
        spaces: Sequence[ModelledNamespace],
        demand: Demand,
        weights: Floats,
        assignment: TopicBundleAssignment,
        scale: AutoScale,
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
        #: Row of the namespace -> its scalable topic, and the first of its parts among all topics.
        self._scalable = {
            row: ModelledTopic(f"{space.name}/topic", space.topics, space.segments, scale)
            for row, space in enumerate(spaces)
            if space.segments
        }
        self._first: Ints = np.cumsum([0, *(space.topics for space in spaces)])
        self._name_topics()
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

    def scale(self, now_ms: int) -> None:
        """Let brokers split and merge segments of scalable topics by the load that they carry."""
        scaled = False
        for row, topic in self._scalable.items():
            scaled |= topic.scale_to(self._topic_load[self._first[row] : self._first[row + 1]], now_ms)
        if scaled:
            self._name_topics()
            self._assign_topics()
            self.carry(self._topic_load)

    def unevenness(self, brokers: int) -> float:
        """Bytes/s of the broker with most of a scalable topic over the mean of so many *brokers*; of the worst topic.

        NaN where none has traffic.
        """
        worst = np.nan
        for row in self._scalable:
            parts = slice(int(self._first[row]), int(self._first[row + 1]))
            owner, load = self.owner[self.of_topic[parts]], self._topic_load[parts, 2:].sum(axis=1)
            there = owner != UNOWNED
            on_broker = np.bincount(owner[there], load[there])
            total = float(on_broker.sum())
            worst = np.fmax(worst, on_broker.max() / total * brokers) if total else worst
        return float(worst)

    def advance(self, rows: Ints, interval_ms: int) -> None:
        """Add this interval's load to the averages of *rows*."""
        self.known = self.known.advanced(rows, self.load[rows], interval_ms)

    def detail(self, rows: Ints, limits: DetailLimits) -> TopicDetail:
        """Topics of those *rows* that are near a split, and the segments of the others."""
        sessions = self.producers[rows] + self.consumers[rows]
        near = limits.near_split(self.topics[rows], sessions, self.known.long_term[rows])
        topics = self._by_bundle[ragged(self.topics, rows)]
        row = np.repeat(np.arange(len(rows)), self.topics[rows])
        retained = near[row] | ((self._segment[topics] != NO_SEGMENT) & self._unit_load[topics].any(axis=1))
        topics, sizes = topics[retained], np.bincount(row[retained], minlength=len(rows))
        return TopicDetail.of(sizes, self._position[topics], self._unit_load[topics], self._segment[topics])

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

    @property
    def _unit_load(self) -> Floats:
        """(topics, 4) load; that of a segment is in the row of its first part."""
        return sum_by(self._unit, self._topic_load, len(self._unit)) if self._scalable else self._topic_load

    def _name_topics(self) -> None:
        """Names, and what follows from them: where topics lie on the ring, and which rows are parts of one segment."""
        unit = np.arange(int(self._first[-1]))
        for row, topic in self._scalable.items():
            self._topics[row], first = topic.names(), int(self._first[row])
            starts = topic.starts()
            sizes = np.diff(np.append(starts, topic.parts))
            unit[first : first + topic.parts] = first + np.repeat(starts, sizes)
        names = [topic for topics in self._topics for topic in topics]
        #: (topics,) position on the ring, code of segment_code, and the row that counts for it.
        self._position: Ints = np.fromiter(map(topic_hash, names), np.int64, len(names))
        self._segment: Ints = np.zeros(len(names), np.int64)
        for row in self._scalable:
            parts = slice(int(self._first[row]), int(self._first[row + 1]))
            self._segment[parts] = [segment_code(name) for name in names[parts]]
        self._unit: Ints = unit

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
        n, units = len(self), np.unique(self._unit)
        bundle = self.of_topic[units]
        #: (bundles,) topics and clients; a segment is one topic, of however many parts.
        self.topics: Ints = np.bincount(bundle, minlength=n)
        self.producers: Ints = np.bincount(bundle, self._demand.producers[units], n).astype(np.int64)
        self.consumers: Ints = np.bincount(bundle, self._demand.consumers[units], n).astype(np.int64)
        self._by_bundle: Ints = units[np.lexsort((self._position[units], bundle))]
        #: (bundles,) flags of topic_kinds.
        has_segments = np.bincount(bundle, self._segment[units] != NO_SEGMENT, n) > 0
        self.kinds: KindFlags = np.where(has_segments, PERSISTENT | SEGMENTS, PERSISTENT).astype(np.uint8)

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
