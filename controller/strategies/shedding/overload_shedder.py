"""Unload brokers whose usage is above a fixed threshold, whatever the other brokers do.

A broker's usage is that of its fullest resource, weighted, as of now.  Of each broker at or above the threshold the
busiest bundles go, until the load above the threshold and a small margin is offloaded; one bundle always goes.  Where
all brokers are that busy, bundles move from one to another without end: ThresholdShedder uses the average instead.

Pulsar: org.apache.pulsar.broker.loadbalance.impl.OverloadShedder
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from controller.model.decision import LazyVerdicts, Reason, Unload, UnloadDecision, UsageOutlook, Verdict
from controller.model.load import ClusterView
from controller.model.resource_usage import ResourceWeights
from controller.model.strategy_memory import NoMemory
from controller.strategies.common import options
from controller.strategies.common.movable import busiest_unloads

#: Offloaded in addition, so that the broker ends below the threshold and not right at it.
_MARGIN: Final = 0.05
_BY: Final = "OverloadShedder"


@dataclass(frozen=True, slots=True, kw_only=True)
class OverloadShedder(ResourceWeights):
    """See the module docstring."""

    overloaded_percent: int = options.overloaded_percent("a broker at or above this usage is overloaded")

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
        unloads: list[Unload] = []
        #: Overloaded broker -> its verdict, and the verdicts on what is refused.
        about: dict[int, tuple[Verdict, list[Verdict]]] = {}

        def on_broker(broker: int, reason: Reason) -> Verdict:
            name, observed = brokers.names[broker], float(usage[broker])
            return Verdict(subject=name, reason=reason, observed=observed, limit=limit, unit="usage", by=_BY)

        for broker in np.flatnonzero(usage >= limit).tolist():
            why = on_broker(broker, Reason.OVERLOADED)
            chosen, refused = busiest_unloads(view, broker, float(to_offload[broker]), why)
            unloads += chosen
            about[broker] = why, refused
        reason = next((refused[0].reason for _, refused in about.values() if refused), Reason.BALANCED)
        if unloads:
            reason = Reason.OVERLOADED

        def tell() -> Iterator[Verdict]:
            for broker in range(len(brokers)):
                why, refused = about.get(broker) or (on_broker(broker, Reason.BALANCED), [])
                yield from (why, *refused)

        # No goal: the points above the limit are taken as a share of the throughput, so no usage is aimed at.
        outlook = UsageOutlook(limit=limit)
        return UnloadDecision(
            unloads=tuple(unloads), verdicts=LazyVerdicts(tell), reason=reason, outlook=outlook
        ), memory
