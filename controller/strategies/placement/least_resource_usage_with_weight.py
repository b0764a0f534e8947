"""Place a bundle on any broker whose smoothed usage is well below the candidates' average.

Pulsar: org.apache.pulsar.broker.loadbalance.impl.LeastResourceUsageWithWeight
"""

from dataclasses import dataclass

from controller.aggregate.resource_usage import ResourceWeights, mean_usage
from controller.model.load import RATE_IN, RATE_OUT, ClusterView, Ints
from controller.model.memory import UsageHistory
from controller.model.option import option


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastResourceUsageWithWeight(ResourceWeights):
    """See the module docstring.  As in Pulsar the history moves at every placement, not once a period."""

    difference_percent: int = option(
        "loadBalancerAverageResourceUsageDifferenceThresholdPercentage",
        default=10,
        unit="%",
        meaning="how far below the average usage a broker must be to be among the best",
    )
    history_fraction: float = option(
        "loadBalancerHistoryResourcePercentage",
        default=0.9,
        meaning="share of a broker's past usage in its smoothed usage, 0 to 1",
    )

    def initial_memory(self) -> UsageHistory:
        """No history: a broker's first usage stands for itself."""
        return UsageHistory()

    def acceptable(
        self,
        view: ClusterView,
        bundle: int,  # noqa: ARG002  every bundle goes to the emptiest brokers
        candidates: Ints,
        memory: UsageHistory,
    ) -> tuple[Ints, UsageHistory]:
        """The *candidates* at or below average - difference; all of them where there is none."""
        if not len(candidates):
            return candidates, memory
        brokers = view.brokers
        # Nearly always every broker is a candidate, and then nothing needs to be picked.
        rows = slice(None) if len(candidates) == len(brokers) else candidates
        load = brokers.load[rows]
        # A broker that serves nothing has just started: what it used before says nothing.
        idle = (brokers.bundle_count[rows] == 0) | ((load[:, RATE_IN] == 0) & (load[:, RATE_OUT] == 0))
        now = self.usage_of_all(view)[rows]
        usage, memory = memory.smoothed(brokers.names, now, self.history_fraction, rows=rows, restarted=idle)
        best = candidates[usage + self.difference_percent / 100 <= mean_usage(usage)]
        return best if len(best) else candidates, memory
