"""Unload brokers that run above a fixed usage, whatever the others do.

A broker's usage is that of its fullest resource, weighted, as of now.  Of each broker at or above the threshold the
busiest bundles go, until what is above it, and a small margin, is on its way; one bundle always goes.  Where all
brokers are that busy, bundles are moved round and round: ThresholdShedder looks at the average instead.

Pulsar: org.apache.pulsar.broker.loadbalance.impl.OverloadShedder
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from controller.aggregate.movable import broker_own, movable, too_few_bundles
from controller.aggregate.resource_usage import ResourceWeights
from controller.model.decision import Reason, Unload, UnloadDecision, Verdict
from controller.model.load import Bools, ClusterView, busiest_first
from controller.model.memory import NoMemory
from controller.model.option import option

#: Offloaded beyond what is above the threshold, so that the broker does not stop right at it.
_MARGIN: Final = 0.05
_BY: Final = "OverloadShedder"


@dataclass(frozen=True, slots=True, kw_only=True)
class OverloadShedder(ResourceWeights):
    """See the module docstring."""

    overloaded_percent: int = option(
        "loadBalancerBrokerOverloadedThresholdPercentage",
        default=85,
        unit="%",
        meaning="a broker at or above this usage is overloaded",
    )

    def initial_memory(self) -> NoMemory:
        """Nothing is remembered."""
        return NoMemory()

    def decide(self, view: ClusterView, memory: NoMemory) -> tuple[UnloadDecision, NoMemory]:
        """Unload the busiest bundles of every broker at or above the threshold, brokers by name."""
        brokers, limit = view.brokers, self.overloaded_percent / 100
        if not len(brokers):
            return UnloadDecision(reason=Reason.NO_BROKERS), memory
        usage = self.weighted_usage(brokers.usage, brokers.limit)
        with np.errstate(invalid="ignore"):
            to_offload = brokers.throughput * (usage - limit + _MARGIN)
        own = broker_own(view)
        unloads: list[Unload] = []
        verdicts: list[Verdict] = []
        refusals: list[Verdict] = []
        for broker, of_broker in enumerate(usage.tolist()):
            overloaded = of_broker >= limit
            why = Verdict(
                subject=brokers.names[broker],
                reason=Reason.OVERLOADED if overloaded else Reason.BALANCED,
                observed=of_broker,
                limit=limit,
                unit="usage",
                by=_BY,
            )
            verdicts.append(why)
            if overloaded:
                chosen, refused = _shed(view, own, broker, float(to_offload[broker]), why)
                unloads += chosen
                verdicts += refused
                refusals += refused
        reason = refusals[0].reason if refusals else Reason.BALANCED
        if unloads:
            reason = Reason.OVERLOADED
        return UnloadDecision(unloads=tuple(unloads), verdicts=tuple(verdicts), reason=reason), memory


def _shed(
    view: ClusterView, own: Bools, broker: int, to_offload: float, why: Verdict
) -> tuple[list[Unload], list[Verdict]]:
    """The bundles that take *to_offload* bytes/s off *broker*, busiest first, and a verdict for all refused."""
    too_few = too_few_bundles(view, broker, _BY)
    if too_few is not None:
        return [], [too_few]
    bundles = view.bundles
    rows, refused = movable(view, own, broker, _BY)
    candidates = busiest_first(bundles.short_term_throughput, rows)
    marked = np.cumsum(bundles.short_term_throughput[candidates])
    # A bundle goes while those before it do not suffice; the first one always goes.
    count = 1 + np.count_nonzero(marked[:-1] < to_offload)
    chosen = candidates[:count].tolist()
    return [Unload(bundle=bundles.names[row], source=why.subject, why=why) for row in chosen], refused
