"""Place a bundle on the broker with the lowest long-term message rate that is not overloaded.

Pulsar: org.apache.pulsar.broker.loadbalance.impl.LeastLongTermMessageRate
"""

from dataclasses import dataclass

import numpy as np

from controller.model.load import RATE_IN, RATE_OUT, ClusterView, Ints
from controller.model.resource_usage import ResourceWeights
from controller.model.strategy_memory import NoMemory
from controller.strategies.common import options


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastLongTermMessageRate(ResourceWeights):
    """See the module docstring.  Bundles on their way to a broker count as if they were there."""

    overloaded_percent: int = options.overloaded_percent(
        "a broker above this usage gets no bundle while another one can"
    )

    def initial_memory(self) -> NoMemory:
        """Nothing is remembered."""
        return NoMemory()

    def acceptable(
        self,
        view: ClusterView,
        bundle: int,  # noqa: ARG002  the same for every bundle
        candidates: Ints,
        memory: NoMemory,
    ) -> tuple[Ints, NoMemory]:
        """The *candidates* with the lowest rate, which is never NaN; all of them where all are overloaded."""
        if not len(candidates):
            return candidates, memory
        brokers = view.brokers
        rate = brokers.preallocated_rate + (brokers.long_term[:, RATE_IN] + brokers.long_term[:, RATE_OUT])
        overloaded = self.usage_of_all(view) > self.overloaded_percent / 100
        score = np.where(overloaded, np.inf, rate)[candidates]
        best = candidates[score == np.fmin.reduce(score)]
        return best if len(best) else candidates, memory
