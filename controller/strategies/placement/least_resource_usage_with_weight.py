"""Place a bundle on any broker whose smoothed usage is well below the candidates' average.

Pulsar: org.apache.pulsar.broker.loadbalance.impl.LeastResourceUsageWithWeight
"""

from dataclasses import dataclass

from controller.model.load import RATE_IN, RATE_OUT, ClusterView, Ints
from controller.model.resource_usage import ResourceWeights, mean_usage
from controller.strategies.common import options
from controller.strategies.common.usage_history import UsageHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastResourceUsageWithWeight(ResourceWeights):
    """See the module docstring.  As in Pulsar the history changes at every placement, not once an interval."""

    difference_percent: int = options.difference_percent()
    history_fraction: float = options.history_fraction()

    def initial_memory(self) -> UsageHistory:
        """No history: the first usage of a broker initialises its average."""
        return UsageHistory()

    def acceptable(
        self,
        view: ClusterView,
        bundle: int,  # noqa: ARG002  the same for every bundle
        candidates: Ints,
        memory: UsageHistory,
    ) -> tuple[Ints, UsageHistory]:
        """The *candidates* at or below average - difference; all of them where there is none."""
        if not len(candidates):
            return candidates, memory
        brokers = view.brokers
        # Nearly always every broker is a candidate: a slice needs no copy.
        rows = slice(None) if len(candidates) == len(brokers) else candidates
        load = brokers.load[rows]
        # A broker without bundles or messages has just started: its history does not count.
        idle = (brokers.bundle_count[rows] == 0) | ((load[:, RATE_IN] == 0) & (load[:, RATE_OUT] == 0))
        now = self.usage_of_all(view)[rows]
        usage, memory = memory.smoothed(brokers.names, now, self.history_fraction, rows=rows, restarted=idle)
        best = candidates[usage + self.difference_percent / 100 <= mean_usage(usage)]
        return best if len(best) else candidates, memory
