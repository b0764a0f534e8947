"""Place a bundle on any broker whose smoothed usage is well below the candidates' average, by the extensible manager.

The modular manager's class of the same name has the same rule, but another history: its history changes at every
placement, this one once an interval, as brokers keep it themselves and publish it with their load, and it begins anew
with a broker that got, gave or split a bundle.  A candidate whose load is unknown does not count in the average and is
never below it; where no candidate is below it, all are accepted.

Pulsar: org.apache.pulsar.broker.loadbalance.extensions.strategy.LeastResourceUsageWithWeight
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from controller.model.load import Bools, ClusterView, Floats, Ints
from controller.model.resource_usage import mean_usage
from controller.model.strategy_memory import Renaming, StrategyMemory, renamed
from controller.strategies.common import options, owned_bundles
from controller.strategies.common.broker_load_data import BrokerLoadFeatures
from controller.strategies.common.usage_history import UsageHistory, shifted


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalUsageHistory(StrategyMemory):
    """A usage history that is updated once in an interval, however often it is read."""

    kind: ClassVar[str] = "interval_usage_history"
    #: T of the last update, epoch ms; -1 before the first.
    as_of_ms: int = -1
    #: Broker -> smoothed resource usage (fraction, 1.0 = 100 %).
    usage: Mapping[str, float] = field(default_factory=dict)
    #: Broker -> digest of the bundles that it owned; older entries have none.
    bundles: Mapping[str, str] = field(default_factory=dict)

    def shift_usage(self, shares: Mapping[str, float]) -> Self:
        """The averages, off by *shares*."""
        return replace(self, usage=shifted(self.usage, shares))

    def with_names(self, names: Renaming) -> Self:
        """Other names of brokers, and no digests: those of other names are not known."""
        return replace(self, usage=renamed(self.usage, names), bundles={})


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtLeastResourceUsageWithWeight(BrokerLoadFeatures):
    """See the module docstring.  The short name of Pulsar's class is that of another strategy, so Ext precedes it."""

    difference_percent: int = options.difference_percent()

    def initial_memory(self) -> IntervalUsageHistory:
        """No history: the first usage of a broker initialises its average."""
        return IntervalUsageHistory()

    def observed(self, view: ClusterView, memory: IntervalUsageHistory) -> IntervalUsageHistory:
        """The memory after the interval of *view*, into which it counts once; brokers that left are forgotten.

        Pulsar: BrokerLoadData.updateWeightedMaxEMA, BrokerLoadDataReporter.handleEvent.
        """
        if memory.as_of_ms == view.as_of_ms:
            return memory
        brokers = view.brokers
        history = UsageHistory(usage=memory.usage).keep_brokers((*brokers.names, *view.missing))
        now = self.weighted_usage(brokers.usage, brokers.limit)
        owned = view.owned_digests
        anew = owned_bundles.changed(memory.bundles, owned)
        _, history = history.smoothed(brokers.names, now, self.history_fraction, restarted=anew)
        known = owned_bundles.remembered(memory.bundles, owned, view)
        return IntervalUsageHistory(as_of_ms=view.as_of_ms, usage=history.usage, bundles=known)

    def acceptable(
        self,
        view: ClusterView,
        bundle: int,  # noqa: ARG002  the same for every bundle
        candidates: Ints,
        memory: IntervalUsageHistory,
    ) -> tuple[Ints, IntervalUsageHistory]:
        """The *candidates* at or below average - difference; all of them where there is none."""
        memory = self.observed(view, memory)
        usage, known = UsageHistory(usage=memory.usage).of(view.brokers.names)
        return candidates[self.best(usage[candidates], known[candidates])], memory

    def best(self, usage: Floats, known: Bools) -> Bools:
        """Which of (n,) candidates are acceptable, by their smoothed *usage* (fractions) where it is *known*."""
        if not known.any():
            return np.ones(len(usage), np.bool_)
        is_below_mean = known & (usage + self.difference_percent / 100 <= mean_usage(usage[known]))
        return is_below_mean if is_below_mean.any() else np.ones(len(usage), np.bool_)
