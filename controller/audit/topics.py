"""How unevenly the segments of scalable topics (Pulsar 5.0) lay on brokers, over many intervals."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from controller.aggregate.scalable_topics import NO_CUT, ScalableTopics, may_serve, unevenness
from controller.model.load import ClusterView

#: Of an interval so many topics are looked at, those with the most traffic; and so many are followed.
_OF_INTERVAL: Final = 128
MAX_TOPICS: Final = 10_000


@dataclass(slots=True, kw_only=True)
class TopicSums:
    """A scalable topic over the intervals in which it had traffic."""

    namespace: str
    #: Of topic://... on the hash ring.
    place: int
    intervals: int = 0
    #: Sums over these: bytes/s in + out, and the busiest broker over the mean of all that may serve the topic.
    throughput: float = 0.0
    unevenness: float = 0.0
    #: The highest of these, and T of its interval, epoch ms.
    worst: float = 0.0
    worst_at: int = 0
    #: Segments with load: in the last interval, the fewest and the most; and in how many intervals other than before.
    segments: int = 0
    min_segments: int = 0
    max_segments: int = 0
    changed: int = 0
    #: The last key hash that would have divided a lopsided pair of segments evenly; NO_CUT: none.
    cut: int = NO_CUT

    def add(self, at: int, throughput: float, uneven: float, segments: int, cut: int) -> None:
        """The topic in the interval *at*, epoch ms."""
        if uneven > self.worst:
            self.worst, self.worst_at = uneven, at
        self.changed += self.intervals > 0 and segments != self.segments
        self.min_segments = min(self.min_segments or segments, segments)
        self.max_segments = max(self.max_segments, segments)
        self.intervals, self.segments, self.cut = self.intervals + 1, segments, cut
        self.throughput, self.unevenness = self.throughput + throughput, self.unevenness + uneven


class TopicAuditor:
    """See the module docstring."""

    def __init__(self, namespace: str) -> None:
        """*namespace*: whose topics; "": of all."""
        self._namespace = namespace
        self._topics: dict[tuple[str, int], TopicSums] = {}

    def take(self, view: ClusterView) -> None:
        """Go on with the next interval."""
        topics = ScalableTopics.of(view.bundles)
        if not len(topics):
            return
        traffic = np.bincount(topics.topic, topics.traffic, len(topics))
        uneven, cuts = unevenness(topics, may_serve(view, topics)), topics.advised_cuts()
        segments = np.diff(topics.starts)
        for row in np.argsort(-traffic, kind="stable")[:_OF_INTERVAL].tolist():
            namespace, place = view.bundles.namespaces[topics.namespace[row]], int(topics.place[row])
            if self._namespace not in ("", namespace) or not traffic[row]:
                continue
            key = (namespace, place)
            if key not in self._topics and len(self._topics) >= MAX_TOPICS:
                continue
            sums = self._topics.setdefault(key, TopicSums(namespace=namespace, place=place))
            sums.add(view.as_of_ms, float(traffic[row]), float(uneven[row]), int(segments[row]), int(cuts[row]))

    def found(self) -> list[TopicSums]:
        """All, those with the most traffic above their share first."""
        return sorted(
            self._topics.values(),
            key=lambda each: (-each.throughput * (each.unevenness / each.intervals - 1), each.namespace, each.place),
        )
