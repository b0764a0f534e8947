"""What Pulsar 5.0 is about to do with the segments of scalable topics: which it will split, and which it will merge.

The thresholds are the brokers' own, of broker.conf; overrides of a namespace or a topic are not known here.  Splits by
the number of consumers are not foreseen: no record tells stream consumers from others.

Pulsar: AutoScalePolicyEvaluator, AutoScaleConfig (PIP-483)
"""

from dataclasses import dataclass

import numpy as np

from controller.aggregate.scalable_topics import ScalableTopics
from controller.model.load import Bools, Floats, Ints
from controller.model.option import option

_SPLIT = "a segment with more than this is split"
_MERGE = "neighbouring segments with less than this of each are merged"


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoScale:
    """The options of the brokers that say when segments are split and merged."""

    enabled: bool = option(
        "scalableTopicAutoScaleEnabled", default=True, meaning="whether brokers split and merge segments by themselves"
    )
    max_segments: int = option(
        "scalableTopicMaxSegments", default=64, meaning="a topic with so many active segments is split no more"
    )
    min_segments: int = option(
        "scalableTopicMinSegments", default=1, meaning="a topic with so few active segments is merged no more"
    )
    split_cooldown_seconds: int = option(
        "scalableTopicSplitCooldownSeconds",
        default=60,
        unit="s",
        meaning="between two splits of a topic; for `trimtab simulate` alone",
    )
    merge_cooldown_seconds: int = option(
        "scalableTopicMergeCooldownSeconds",
        default=300,
        unit="s",
        meaning="between two merges of a topic; for `trimtab simulate` alone",
    )
    merge_window_seconds: int = option(
        "scalableTopicMergeWindowSeconds",
        default=300,
        unit="s",
        meaning="so long segments are idle before they are merged; for `trimtab simulate` alone",
    )
    split_msg_rate_in: float = option(
        "scalableTopicSplitMsgRateInThreshold", default=10_000.0, unit="msg/s in", meaning=_SPLIT
    )
    split_msg_rate_out: float = option(
        "scalableTopicSplitMsgRateOutThreshold", default=50_000.0, unit="msg/s out", meaning=_SPLIT
    )
    split_bytes_in: float = option(
        "scalableTopicSplitBytesRateInThreshold", default=50_000_000.0, unit="bytes/s in", meaning=_SPLIT
    )
    split_bytes_out: float = option(
        "scalableTopicSplitBytesRateOutThreshold", default=250_000_000.0, unit="bytes/s out", meaning=_SPLIT
    )
    merge_msg_rate_in: float = option(
        "scalableTopicMergeMsgRateInThreshold", default=1_000.0, unit="msg/s in", meaning=_MERGE
    )
    merge_msg_rate_out: float = option(
        "scalableTopicMergeMsgRateOutThreshold", default=5_000.0, unit="msg/s out", meaning=_MERGE
    )
    merge_bytes_in: float = option(
        "scalableTopicMergeBytesRateInThreshold", default=5_000_000.0, unit="bytes/s in", meaning=_MERGE
    )
    merge_bytes_out: float = option(
        "scalableTopicMergeBytesRateOutThreshold", default=25_000_000.0, unit="bytes/s out", meaning=_MERGE
    )

    @property
    def split_thresholds(self) -> Floats:
        """(4,) in the order of load arrays."""
        return np.array(
            [self.split_msg_rate_in, self.split_msg_rate_out, self.split_bytes_in, self.split_bytes_out], np.float64
        )

    @property
    def merge_thresholds(self) -> Floats:
        """(4,) in the order of load arrays."""
        return np.array(
            [self.merge_msg_rate_in, self.merge_msg_rate_out, self.merge_bytes_in, self.merge_bytes_out], np.float64
        )

    def pressure(self, load: Floats) -> Floats:
        """(n,) the largest share that each *load* (n, 4) has of a threshold to split; above 1 it is split."""
        with np.errstate(divide="ignore", invalid="ignore"):
            pressure: Floats = np.nan_to_num(load / self.split_thresholds, posinf=np.inf).max(axis=1, initial=0.0)
        return pressure

    def is_cold(self, load: Floats) -> Bools:
        """(n,) whether each *load* (n, 4) is below all thresholds to merge."""
        cold: Bools = np.all(load < self.merge_thresholds, axis=1)
        return cold

    def changing(self, topics: ScalableTopics) -> Bools:
        """(segments,) those that brokers will split, and the pair of each topic that they will merge next.

        All that are above a threshold to split count: brokers split the hottest of a topic first, and the others when
        its cool-down is over.  They put the halves into other bundles, so that a move before is in vain.  A pair is
        merged that was cold for some minutes; here it is taken to be if it is now.
        """
        if not self.enabled:
            return np.zeros(len(topics.load), np.bool_)
        topic, active = topics.topic, np.diff(topics.starts)
        changing = (self.pressure(topics.load) > 1.0) & (active < self.max_segments)[topic]
        pairs = self._merged(topics, topic, active)
        changing[pairs] = changing[pairs + 1] = True
        return changing

    def _merged(self, topics: ScalableTopics, topic: Ints, active: Ints) -> Ints:
        """The left ones of the pairs that are merged next, one of each topic at most: the coldest."""
        cold = self.is_cold(topics.load)
        left = np.flatnonzero(
            (topic[:-1] == topic[1:]) & (topics.last[:-1] + 1 == topics.first[1:]) & cold[:-1] & cold[1:]
        )
        left = left[(active > self.min_segments)[topic[left]]]
        both = topics.load[left].sum(axis=1) + topics.load[left + 1].sum(axis=1)
        left = left[np.lexsort((left, both, topic[left]))]
        return left[np.flatnonzero(np.diff(topic[left], prepend=-1))]
