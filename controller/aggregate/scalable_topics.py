"""The scalable topics of a view (Pulsar 5.0): which brokers serve their segments, and how unevenly.

Topics and segments are columns; a segment without load is no part of it.  What is shown of them is bounded elsewhere.

Pulsar: PIP-460, PIP-483
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from controller.model.isolation import Governed
from controller.model.load import THROUGHPUT_IN, THROUGHPUT_OUT, Bools, BundleTable, ClusterView, Floats, Ints
from controller.model.policies import BrokerAddresses, Policies
from controller.model.segment_code import NO_SEGMENT, key_ranges_of, places_of
from controller.model.topic_kinds import PERSISTENT
from controller.model.topic_name import TopicName

#: Stands for a key where no cut is advised.
NO_CUT = -1
#: A cut is advised where one of two neighbours of the same width has this share of the load of both, or more.
_LOPSIDED = 0.75


@dataclass(frozen=True, kw_only=True, eq=False)
class ScalableTopics:
    """One row for each scalable topic, sorted by namespace and place.

    Topic t has the segments ``starts[t]:starts[t + 1]``.
    """

    #: (topics,) code of the namespace in the bundle table, and the position of topic://... on the hash ring.
    namespace: Ints
    place: Ints
    #: (topics + 1,)
    starts: Ints
    #: (segments,) in the order of their keys: rows of the bundle and of its owner; the first and last hash of its keys.
    bundle: Ints
    broker: Ints
    first: Ints
    last: Ints
    #: (segments, 4) msg/s and bytes/s.
    load: Floats

    @classmethod
    def of(cls, bundles: BundleTable) -> "ScalableTopics":
        """Those with a segment in *bundles* that a broker owns.  O(topics in detail log segments)."""
        detail = bundles.detail
        # A bundle near a split has all of its topics in detail, so also those that were split or merged.
        rows = np.flatnonzero((detail.segment != NO_SEGMENT) & detail.load.any(axis=1))
        bundle = np.searchsorted(detail.starts, rows, side="right") - 1
        rows, bundle = rows[bundles.owned[bundle]], bundle[bundles.owned[bundle]]
        code = detail.segment[rows]
        namespace, place, (first, last) = bundles.namespace[bundle], places_of(code), key_ranges_of(code)
        order = np.lexsort((last, first, place, namespace))
        key = np.stack([namespace, place], axis=1)[order]
        starts = np.flatnonzero(np.any(np.diff(key, axis=0, prepend=-1) != 0, axis=1))
        return cls(
            namespace=key[starts, 0],
            place=key[starts, 1],
            starts=np.append(starts, len(order)),
            bundle=bundle[order],
            broker=bundles.broker[bundle][order],
            first=first[order],
            last=last[order],
            load=detail.load[rows][order],
        )

    def __len__(self) -> int:
        return len(self.place)

    def row_of(self, topic: TopicName, namespaces: Sequence[str]) -> int | None:
        """The row of *topic*; None where it has no segment with load.  *namespaces*: those of the bundle table.

        Of topics of a namespace whose names have the same place on the hash ring all count as one.
        """
        here = [code for code, namespace in enumerate(namespaces) if namespace == topic.namespace]
        rows = np.flatnonzero((self.place == topic.position) & np.isin(self.namespace, here))
        return int(rows[0]) if len(rows) else None

    def bundles_of(self, row: int) -> Ints:
        """The rows of the bundles that hold segments of the topic at *row*, ascending."""
        return np.unique(self.bundle[self.starts[row] : self.starts[row + 1]])

    @property
    def topic(self) -> Ints:
        """(segments,) row of the topic."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    @property
    def traffic(self) -> Floats:
        """(segments,) bytes/s in and out, by which a topic's load is compared."""
        traffic: Floats = self.load[:, THROUGHPUT_IN] + self.load[:, THROUGHPUT_OUT]
        return traffic

    def total(self) -> Floats:
        """(topics, 4) load."""
        columns = [np.bincount(self.topic, column, len(self)) for column in self.load.T]
        return np.stack(columns, axis=1)

    def on_brokers(self) -> tuple[Ints, Ints, Floats]:
        """(m,) topic, broker, and bytes/s of the topic's segments there, sorted by topic and broker."""
        width = int(self.broker.max(initial=0)) + 1
        keys, at = np.unique(self.topic * width + self.broker, return_inverse=True)
        return keys // width, keys % width, np.bincount(at, self.traffic, len(keys)).astype(np.float64)

    def peaks(self) -> tuple[Floats, Ints, Ints]:
        """(topics,) bytes/s on the broker with most of each topic, the row of that broker, and how many serve it."""
        topic, broker, traffic = self.on_brokers()
        # The first of the largest, so the lower row where two are equal.
        order = np.lexsort((broker, -traffic, topic))
        first = order[np.flatnonzero(np.diff(topic[order], prepend=-1))]
        return traffic[first], broker[first], np.bincount(topic, minlength=len(self))

    def advised_cuts(self) -> Ints:
        """(topics,) a key hash that would divide a lopsided pair of segments evenly, or NO_CUT.

        A split cuts in the middle of the keys.  Of two neighbours of the same width, one of which has nearly all of
        their load, the cut in the middle was the wrong one; the load of each is taken to lie evenly on its keys.  Of a
        topic's pairs the busiest counts.
        """
        cuts = np.full(len(self), NO_CUT)
        topic, traffic, width = self.topic, self.traffic, self.last - self.first + 1
        pair = np.flatnonzero(
            (topic[:-1] == topic[1:]) & (self.last[:-1] + 1 == self.first[1:]) & (width[:-1] == width[1:])
        )
        both = traffic[pair] + traffic[pair + 1]
        more = np.maximum(traffic[pair], traffic[pair + 1])
        lopsided = (both > 0) & (more >= _LOPSIDED * both)
        pair, both, more = pair[lopsided], both[lopsided], more[lopsided]
        hot = np.where(traffic[pair] >= traffic[pair + 1], pair, pair + 1)
        # In front of the hot half lies either nothing of the pair, or the cold half.
        before = np.where(hot == pair, 0.0, both - more)
        key = self.first[hot] + np.floor((both / 2 - before) / more * width[hot]).astype(np.int64)
        busiest = np.argsort(both, kind="stable")
        inside = (key > self.first[hot]) & (key <= self.last[hot])
        busiest = busiest[inside[busiest]]
        cuts[topic[pair[busiest]]] = key[busiest]
        return cuts


def may_serve(view: ClusterView, topics: ScalableTopics) -> Ints:
    """(topics,) how many brokers of *view* may serve each topic by isolation policies and kinds of topics.

    All of them where a policy cannot be read.
    """
    namespaces, at = np.unique(topics.namespace, return_inverse=True)
    governed = view.policies.governed([view.bundles.namespaces[code] for code in namespaces.tolist()])
    serving = _Serving(view.policies, view.brokers.names)
    counts = {each: max(1, int(serving.brokers(each).sum())) for each in set(governed)}
    return np.array([counts[each] for each in governed], np.int64)[at]


def serving_brokers(policies: Policies, names: tuple[str, ...], namespace: str) -> Bools:
    """(brokers,) which of the brokers *names* may serve segments of *namespace*."""
    return _Serving(policies, names).brokers(policies.governed((namespace,))[0])


class _Serving:
    """Asked once for each policy, however many namespaces it governs."""

    def __init__(self, policies: Policies, names: tuple[str, ...]) -> None:
        self._policies = policies
        self._serving: Bools = policies.served_kinds(names) & PERSISTENT != 0
        # Segments are of 5.0, in which an expression may name a broker's port.
        self._addresses = BrokerAddresses.of(names, match_ids=True)

    def brokers(self, governed: Governed) -> Bools:
        """(brokers,) those that may serve segments of a namespace that is *governed* so."""
        policies, rules = self._policies, self._policies.rules
        if governed.why or not policies.isolation:
            return self._serving
        if governed.row is None:
            return self._serving & ~policies.reserved(self._addresses)
        policy = policies.isolation[governed.row]
        allowed = rules.of_brokers(policy.primary, self._addresses)
        if policy.auto_failover.fails_over(int(allowed.sum())):
            allowed = allowed | rules.of_brokers(policy.secondary, self._addresses)
        return self._serving & allowed


def unevenness(topics: ScalableTopics, brokers: Ints) -> Floats:
    """(topics,) bytes/s of the busiest broker of each topic over the mean of all that may serve it; 1 is even.

    *brokers*: (topics,) how many may.  0 of a topic without traffic.
    """
    peak, _, _ = topics.peaks()
    mean = np.bincount(topics.topic, topics.traffic, len(topics)) / brokers
    return np.divide(peak, mean, out=np.zeros(len(topics)), where=mean > 0)
