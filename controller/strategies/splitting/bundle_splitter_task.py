"""Split a bundle that has too many topics or sessions, or too much traffic over the long term.

Pulsar: org.apache.pulsar.broker.loadbalance.impl.BundleSplitterTask
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from controller.model.decision import Reason, Split, SplitDecision, Verdict
from controller.model.load import RATE_IN, RATE_OUT, THROUGHPUT_IN, THROUGHPUT_OUT, ClusterView
from controller.model.memory import NoMemory
from controller.model.option import option

_MB: Final = 1024 * 1024
_BY: Final = "BundleSplitterTask"
#: What is looked at, in Pulsar's order; the first one over its limit is the reason.
_REASONS: Final = (Reason.TOPICS, Reason.SESSIONS, Reason.MSG_RATE, Reason.BANDWIDTH)
_UNITS: Final = ("topics", "sessions", "msg/s", "MB/s")


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleSplitterTask:
    """See the module docstring; a limit must be passed, reaching it is not enough."""

    max_topics: int = option(
        "loadBalancerNamespaceBundleMaxTopics", default=1000, unit="topics", meaning="topics in a bundle"
    )
    max_sessions: int = option(
        "loadBalancerNamespaceBundleMaxSessions",
        default=1000,
        unit="sessions",
        meaning="producers + consumers in a bundle; 0 or -1 for no limit",
    )
    max_msg_rate: int = option(
        "loadBalancerNamespaceBundleMaxMsgRate",
        default=30_000,
        unit="msg/s",
        meaning="messages in + out of a bundle, long-term average",
    )
    max_bandwidth_mbytes: int = option(
        "loadBalancerNamespaceBundleMaxBandwidthMbytes",
        default=100,
        unit="MB/s",
        meaning="throughput in + out of a bundle, long-term average; from 2048 on it overflows, as in Pulsar",
    )
    max_bundles: int = option(
        "loadBalancerNamespaceMaximumBundles",
        default=128,
        unit="bundles",
        meaning="bundles in a namespace; one that has them is not split further",
    )

    def initial_memory(self) -> NoMemory:
        """Nothing is remembered."""
        return NoMemory()

    def decide(self, view: ClusterView, memory: NoMemory) -> tuple[SplitDecision, NoMemory]:
        """Every bundle over a limit, in name order, as long as its namespace may have another bundle."""
        bundles = view.bundles
        sessions = bundles.producers + bundles.consumers
        rate = bundles.long_term[:, RATE_IN] + bundles.long_term[:, RATE_OUT]
        throughput = bundles.long_term[:, THROUGHPUT_IN] + bundles.long_term[:, THROUGHPUT_OUT]
        max_bandwidth = _java_int(self.max_bandwidth_mbytes * _MB)
        over = np.stack(
            [
                bundles.topics > self.max_topics,
                (self.max_sessions > 0) & (sessions > self.max_sessions),
                rate > self.max_msg_rate,
                throughput > max_bandwidth,
            ]
        )
        observed = (bundles.topics, sessions, rate, throughput / _MB)
        limit = (self.max_topics, self.max_sessions, self.max_msg_rate, max_bandwidth / _MB)

        count = view.namespace_bundle_count.tolist()
        splits, verdicts = [], []
        for row in np.flatnonzero(over.any(axis=0)).tolist():
            which, space = int(over[:, row].argmax()), int(bundles.namespace[row])
            why = Verdict(
                subject=bundles.names[row],
                reason=_REASONS[which],
                observed=float(observed[which][row]),
                limit=float(limit[which]),
                unit=_UNITS[which],
                by=_BY,
            )
            refusal = self._refusal(why.subject, int(bundles.topics[row]), count[space])
            verdicts.append(why)
            if refusal is not None:
                verdicts.append(refusal)
                continue
            count[space] += 1
            broker = view.brokers.names[int(bundles.broker[row])]
            splits.append(Split(bundle=why.subject, broker=broker, why=why))
        return SplitDecision(splits=tuple(splits), verdicts=tuple(verdicts)), memory

    def _refusal(self, bundle: str, topics: int, count: int) -> Verdict | None:
        """Why a bundle over a limit stays whole; *count* is that of its namespace's bundles, -1 if unknown."""
        if topics < 2:
            reason, observed, limit, unit = Reason.TOO_FEW_TOPICS, topics, 2, "topics"
        elif count < 0:
            return Verdict(subject=bundle, reason=Reason.BUNDLE_COUNT_UNKNOWN, by=_BY)
        elif count >= self.max_bundles:
            reason, observed, limit, unit = Reason.NAMESPACE_FULL, count, self.max_bundles, "bundles"
        else:
            return None
        return Verdict(subject=bundle, reason=reason, observed=observed, limit=limit, unit=unit, by=_BY)


def _java_int(value: int) -> int:
    """*value* as a Java int holds it.  Pulsar multiplies two ints: 2048 MB become -2**31, 4096 MB become 0."""
    return (value + 2**31) % 2**32 - 2**31
