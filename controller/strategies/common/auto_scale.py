"""What Pulsar 5.0 is about to do with the segments of scalable topics: which it will split, and which it will merge.

The thresholds are the brokers' own, of broker.conf, with what the policy of a namespace says instead; that of a single
topic is not known here, for no record has it.  Brokers decide on the load that a segment's owner reported last, which
may differ from that of now by scalableTopicLoadReportRateChangeThreshold (25 %).  Room for that at each threshold would
hold back segments that stay just below one for good; here the load of now counts.

Splits by the number of consumers are not foreseen: no record tells stream consumers from others.  Nor is it known when
a topic was split or merged last, since when a segment is cold, and of how many merges it comes: what any of these puts
off stays where it is, too.

Pulsar: AutoScalePolicyEvaluator, AutoScaleConfig, SegmentLoadReporter (PIP-483)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from controller.aggregate.scalable_topics import ScalableTopics
from controller.model.load import Bools, Floats, Ints
from controller.model.option import option

_SPLIT = "a segment with more than this is split"
_MERGE = "neighbouring segments with less than this of each are merged"
#: Of a policy, by Pulsar's names of its fields: thresholds, in the order of load arrays.
_RATES: Final = ("MsgRateIn", "MsgRateOut", "BytesRateIn", "BytesRateOut")
_SPLITS: Final = ("split_msg_rate_in", "split_msg_rate_out", "split_bytes_in", "split_bytes_out")
_MERGES: Final = ("merge_msg_rate_in", "merge_msg_rate_out", "merge_bytes_in", "merge_bytes_out")
_NONE: Final[Mapping[str, Mapping[str, Any]]] = {}


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

    def with_policy(self, policy: Mapping[str, Any]) -> "AutoScale":
        """These options with what *policy* of a namespace says instead, by the names of AutoScalePolicyOverride.

        Without a name, or with None for it, the option stays.
        """
        fields = {
            "enabled": "enabled",
            "maxSegments": "max_segments",
            "minSegments": "min_segments",
            **{f"split{rate}Threshold": name for rate, name in zip(_RATES, _SPLITS, strict=True)},
            **{f"merge{rate}Threshold": name for rate, name in zip(_RATES, _MERGES, strict=True)},
        }
        changed = {name: policy[key] for key, name in fields.items() if policy.get(key) is not None}
        return replace(self, **changed)

    @property
    def acts(self) -> bool:
        """Whether brokers split and merge with these options: not with those that they refuse.

        Pulsar: AutoScaleConfig.validated, disabledFallback.
        """
        split, merge = self.split_thresholds, self.merge_thresholds
        thresholds = (split > 0).all() and (merge >= 0).all() and (split > merge).all()
        return bool(self.enabled and 1 <= self.min_segments <= self.max_segments and thresholds)

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

    def changing(
        self, topics: ScalableTopics, namespaces: Sequence[str] = (), policies: Mapping[str, Mapping[str, Any]] = _NONE
    ) -> Bools:
        """(segments,) those that brokers will split, and the pair of each topic that they will merge next.

        *policies*: of namespaces, by their names, which are *namespaces* by their codes.

        All that are above a threshold to split count: brokers split the hottest of a topic first, and the others when
        its cool-down is over.  They put the halves into other bundles, so that a move before is in vain.  A pair is
        merged that was cold for some minutes; here it is taken to be if it is now.
        """
        changing = self._changing(topics)
        own = {
            code for code in set(topics.namespace.tolist()) if code < len(namespaces) and namespaces[code] in policies
        }
        for code in own:
            here = topics.namespace[topics.topic] == code
            changing[here] = self.with_policy(policies[namespaces[code]])._changing(topics)[here]
        return changing

    def _changing(self, topics: ScalableTopics) -> Bools:
        changing = np.zeros(len(topics.load), np.bool_)
        if not self.acts:
            return changing
        topic, active = topics.topic, np.diff(topics.starts)
        changing |= (self.pressure(topics.load) > 1.0) & (active < self.max_segments)[topic]
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
