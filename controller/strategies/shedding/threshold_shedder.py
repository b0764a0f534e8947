"""Unload brokers whose usage is above the cluster's average by a threshold.

A broker's usage is that of its fullest resource, weighted and smoothed over the rounds.  Of each broker at or above
average + threshold the busiest bundles go, until the load above that and a small margin is offloaded.  With
lower-boundary shedding, when nothing goes and some broker is below average - threshold, the busiest broker gives.

Pulsar: org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from controller.model.decision import LazyVerdicts, Reason, Unload, UnloadDecision, UsageOutlook, Verdict
from controller.model.load import ClusterView, Floats
from controller.model.option import option
from controller.model.resource_usage import ResourceWeights, mean_usage
from controller.strategies.common import options
from controller.strategies.common.movable import busiest_unloads
from controller.strategies.common.usage_history import UsageHistory

_MB: Final = 1024 * 1024
#: Offloaded in addition, so that the broker ends below the threshold and not right at it.
_MARGIN: Final = 0.05
#: Share of the threshold that the busiest broker offloads for the sake of brokers below the lower boundary.
_LOWER_BOUNDARY_SHARE: Final = 0.5
_BY: Final = "ThresholdShedder"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdShedder(ResourceWeights):
    """See the module docstring; every option keeps broker.conf's unit."""

    threshold_percent: int = option(
        "loadBalancerBrokerThresholdShedderPercentage",
        default=10,
        unit="%",
        meaning="how far above the average usage a broker is overloaded",
    )
    history_fraction: float = options.history_fraction()
    min_unload_mbytes: float = option(
        "loadBalancerBundleUnloadMinThroughputThreshold",
        default=10.0,
        unit="MB/s",
        meaning="a broker that would offload less than this is left alone",
    )
    lower_boundary: bool = option(
        "lowerBoundarySheddingEnabled",
        default=False,
        meaning="when no broker is overloaded but one is far below the average, unload the busiest broker",
    )

    def initial_memory(self) -> UsageHistory:
        """No history: the first usage of a broker initialises its average."""
        return UsageHistory()

    def decide(self, view: ClusterView, memory: UsageHistory) -> tuple[UnloadDecision, UsageHistory]:
        """Unload the busiest bundles of every broker at or above average + threshold, brokers by name."""
        brokers, threshold = view.brokers, self.threshold_percent / 100
        if not len(brokers):
            return UnloadDecision(reason=Reason.NO_BROKERS), memory
        now = self.weighted_usage(brokers.usage, brokers.limit)
        usage, memory = memory.smoothed(brokers.names, now, self.history_fraction)
        average = mean_usage(usage)
        if average == 0:
            return UnloadDecision(reason=Reason.NO_LOAD_DATA), memory

        limit = average + threshold
        unloads, about = self._shed_overloaded(view, usage, average, limit)
        reason = next((refused[0].reason for _, refused in about.values() if refused), Reason.BALANCED)
        more: list[Verdict] = []

        def tell() -> Iterator[Verdict]:
            for broker, of_broker in enumerate(usage.tolist()):
                if broker in about:
                    why, refused = about[broker]
                    yield from (why, *refused)
                else:
                    yield _about(view, broker, Reason.BALANCED, of_broker, limit)
            yield from more

        if unloads:
            reason = Reason.OVERLOADED
        elif self.lower_boundary:
            # Pulsar averages again here, so in such a round the history changes twice.
            smoothed_again, memory = memory.smoothed(brokers.names, now, self.history_fraction)
            giver = _busiest_for_underloaded(view, smoothed_again, threshold)
            if giver is not None:
                unloads, refused = self._shed_for_underloaded(view, giver, threshold)
                more += [giver, *refused]
                reason = Reason.UNDERLOADED if unloads else refused[0].reason
        # No goal: the points above the limit are taken as a share of the throughput, so no usage is aimed at.
        outlook = UsageOutlook(limit=limit) if np.isfinite(limit) else None
        return UnloadDecision(
            unloads=tuple(unloads), verdicts=LazyVerdicts(tell), reason=reason, outlook=outlook
        ), memory

    def _shed_overloaded(
        self, view: ClusterView, usage: Floats, average: float, limit: float
    ) -> tuple[list[Unload], dict[int, tuple[Verdict, list[Verdict]]]]:
        """The unloads, and overloaded broker -> its verdict and those on what is refused."""
        with np.errstate(invalid="ignore"):
            to_offload = view.brokers.throughput * (usage - average - self.threshold_percent / 100 + _MARGIN)
            # Not ">=": where the average is not a number, Pulsar counts every broker as overloaded.
            overloaded = np.flatnonzero(~(usage < limit))
        unloads: list[Unload] = []
        about: dict[int, tuple[Verdict, list[Verdict]]] = {}
        for broker in overloaded.tolist():
            why = _about(view, broker, Reason.OVERLOADED, float(usage[broker]), limit)
            chosen, refused = self._shed(view, broker, float(to_offload[broker]), why)
            unloads += chosen
            about[broker] = why, refused
        return unloads, about

    def _shed_for_underloaded(
        self, view: ClusterView, giver: Verdict, threshold: float
    ) -> tuple[list[Unload], list[Verdict]]:
        """What the broker of the verdict *giver* sheds for the sake of brokers below the lower boundary."""
        broker = view.brokers.code_of[giver.subject]
        return self._shed(
            view, broker, float(view.brokers.throughput[broker]) * threshold * _LOWER_BOUNDARY_SHARE, giver
        )

    def _shed(
        self, view: ClusterView, broker: int, to_offload: float, why: Verdict
    ) -> tuple[list[Unload], list[Verdict]]:
        """The bundles that take *to_offload* bytes/s off *broker*, busiest first, and a verdict for all refused."""
        if to_offload < self.min_unload_mbytes * _MB:
            observed, limit = to_offload / _MB, self.min_unload_mbytes
            low = Verdict(
                subject=why.subject, reason=Reason.BELOW_MINIMUM, observed=observed, limit=limit, unit="MB/s", by=_BY
            )
            return [], [low]
        return busiest_unloads(view, broker, to_offload, why)


def _busiest_for_underloaded(view: ClusterView, usage: Floats, threshold: float) -> Verdict | None:
    """A verdict on the busiest broker with two bundles or more, if any broker is below average - threshold."""
    limit = mean_usage(usage) - threshold
    underloaded = np.flatnonzero(usage < limit)
    able = np.flatnonzero((usage > limit) & (view.brokers.bundle_count > 1))
    if not len(underloaded) or not len(able):
        return None
    lowest = int(underloaded[usage[underloaded].argmin()])
    detail = f"{view.brokers.names[lowest]} is below the lower boundary, this broker is the busiest"
    busiest = int(able[usage[able].argmax()])
    return _about(view, busiest, Reason.UNDERLOADED, float(usage[lowest]), limit, detail)


def _about(view: ClusterView, broker: int, reason: Reason, usage: float, limit: float, detail: str = "") -> Verdict:
    name = view.brokers.names[broker]
    return Verdict(subject=name, reason=reason, observed=usage, limit=limit, unit="usage", by=_BY, detail=detail)
