"""The limits above which a bundle is split; Pulsar's split policies and algorithms share them.

Pulsar: ServiceConfiguration.loadBalancerNamespaceBundleMax..., loadBalancerNamespaceMaximumBundles
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from controller.model.decision import Reason, Verdict
from controller.model.load import (
    RATE_IN,
    RATE_OUT,
    THROUGHPUT_IN,
    THROUGHPUT_OUT,
    Bools,
    BundleTable,
    Floats,
    Ints,
)
from controller.model.option import option
from controller.strategies.protocols import SplitThresholds

MB: Final = 1024 * 1024
#: The values that are compared with limits, in Pulsar's order, and their units; the first one above its limit is the
#: reason.
_LOOKED_AT: Final = (
    (Reason.TOPICS, "topics"),
    (Reason.SESSIONS, "sessions"),
    (Reason.MSG_RATE, "msg/s"),
    (Reason.BANDWIDTH, "MB/s"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficLimits:
    """The limits on a bundle's load; a value must be above its limit, not equal to it."""

    max_msg_rate: int = option(
        "loadBalancerNamespaceBundleMaxMsgRate",
        default=30_000,
        unit="msg/s",
        meaning="messages in + out of a bundle: long-term average, of the interval for the extensible load manager",
    )
    max_bandwidth_mbytes: int = option(
        "loadBalancerNamespaceBundleMaxBandwidthMbytes",
        default=100,
        unit="MB/s",
        meaning="throughput in + out of a bundle, averaged likewise; from 2048 on it overflows, as in Pulsar",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleLimits(TrafficLimits):
    """All limits of a bundle, and the limit of its namespace."""

    max_topics: int = option(
        "loadBalancerNamespaceBundleMaxTopics", default=1000, unit="topics", meaning="topics in a bundle"
    )
    max_sessions: int = option(
        "loadBalancerNamespaceBundleMaxSessions",
        default=1000,
        unit="sessions",
        meaning="producers + consumers in a bundle; 0 or -1 for no limit",
    )
    max_bundles: int = option(
        "loadBalancerNamespaceMaximumBundles",
        default=128,
        unit="bundles",
        meaning="bundles in a namespace; one that has them is not split further",
    )
    fixed_bandwidth: bool = option(
        "trimtabBundleMaxBandwidthFixed",
        default=False,
        meaning="loadBalancerNamespaceBundleMaxBandwidthMbytes holds from 2048 on too, where in Pulsar it overflows"
        " and every bundle is split",
    )

    @property
    def max_throughput(self) -> int:
        """Bytes/s.  Pulsar multiplies two ints: 2048 MB/s become -2**31, 4096 become 0."""
        limit = self.max_bandwidth_mbytes * MB
        return limit if self.fixed_bandwidth else (limit + 2**31) % 2**32 - 2**31

    @property
    def thresholds(self) -> SplitThresholds:
        """See SplitPolicy."""
        sessions = self.max_sessions if self.max_sessions > 0 else float("inf")
        return SplitThresholds(self.max_topics, sessions, self.max_msg_rate, max(0, self.max_throughput))

    def passed_by(self, bundles: BundleTable, load: Floats) -> "Passed":
        """Which *bundles* are over which limit, by their *load*: (bundles, 4)."""
        sessions = bundles.producers + bundles.consumers
        rate = load[:, RATE_IN] + load[:, RATE_OUT]
        throughput = load[:, THROUGHPUT_IN] + load[:, THROUGHPUT_OUT]
        return Passed(
            names=bundles.names,
            over=np.stack(
                [
                    bundles.topics > self.max_topics,
                    (self.max_sessions > 0) & (sessions > self.max_sessions),
                    rate > self.max_msg_rate,
                    throughput > self.max_throughput,
                ]
            ),
            observed=(bundles.topics, sessions, rate, throughput / MB),
            limit=(self.max_topics, self.max_sessions, self.max_msg_rate, self.max_throughput / MB),
        )

    def too_few_topics(self, bundle: str, topics: int, by: str) -> Verdict | None:
        """The verdict that *bundle* has too few *topics* to be split, or None."""
        if topics >= 2:
            return None
        return Verdict(subject=bundle, reason=Reason.TOO_FEW_TOPICS, observed=topics, limit=2, unit="topics", by=by)

    def no_room(self, bundle: str, count: int, by: str) -> Verdict | None:
        """Why the namespace of *bundle*, which has *count* bundles (-1: unknown), can have no more, or None."""
        if count < 0:
            return Verdict(subject=bundle, reason=Reason.BUNDLE_COUNT_UNKNOWN, by=by)
        if count < self.max_bundles:
            return None
        return Verdict(
            subject=bundle, reason=Reason.NAMESPACE_FULL, observed=count, limit=self.max_bundles, unit="bundles", by=by
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Passed:
    """Bundles and the limits that they pass, in the order of _LOOKED_AT."""

    names: tuple[str, ...]
    #: (4, bundles)
    over: Bools
    observed: tuple[Ints | Floats, ...]
    limit: tuple[float, ...]

    @property
    def any(self) -> Bools:
        """(bundles,) which pass some limit."""
        mask: Bools = np.any(self.over, axis=0)
        return mask

    def verdict(self, row: int, by: str) -> Verdict:
        """The first limit that the bundle at *row* passes."""
        which = int(self.over[:, row].argmax())
        reason, unit = _LOOKED_AT[which]
        return Verdict(
            subject=self.names[row],
            reason=reason,
            observed=float(self.observed[which][row]),
            limit=float(self.limit[which]),
            unit=unit,
            by=by,
        )
