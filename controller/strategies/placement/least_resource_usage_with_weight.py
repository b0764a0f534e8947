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
    """See the module docstring.  As in Pulsar the history changes at every placement, not once an interval."""

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
