"""The whole way from all brokers to those a bundle may go to: filters in order, then the placement.

Binding filters come first: what they leave is *allowed*, and nothing else is ever taken.  The others narrow that down;
where they leave no broker, or all that the placement finds there are overloaded, they are ignored.  So anti-affinity,
topic counts and even spreading give way to relief, and isolation never does.

Not here: BrokerLoadManagerClassFilter.  Brokers of two load managers at once are no cluster that trimtab balances.

Pulsar: ModularLoadManagerImpl.selectBroker, selectBrokerForAssignment
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from controller.aggregate.resource_usage import ResourceWeights
from controller.model.load import Bools, ClusterView, Floats, Ints
from controller.model.memory import StrategyMemory
from controller.model.option import option
from controller.strategies.common.candidates import Candidates
from controller.strategies.protocols import Filter, Placement

M = TypeVar("M", bound=StrategyMemory)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModularSelectBroker(ResourceWeights):
    """See the module docstring."""

    overloaded_percent: int = option(
        "loadBalancerBrokerOverloadedThresholdPercentage",
        default=85,
        unit="%",
        meaning="a broker above this usage gets no bundle while another one can",
    )
    keep_filters: bool = option(
        "trimtabOverloadedBrokersKeepFilters",
        default=False,
        meaning="true: filters hold even where all brokers that they leave are overloaded; Pulsar drops them then",
    )

    def candidates(self, view: ClusterView, bundle: int, filters: Sequence[Filter]) -> Candidates:
        """All brokers that *filters* leave for *bundle* (a row): binding ones are asked first."""
        allowed = kept = np.arange(len(view.brokers), dtype=np.int64)
        steps: list[tuple[Filter, Ints]] = []
        for binding in (True, False):
            for step in filters:
                if step.binding is binding:
                    kept = step.keep(view, bundle, kept)
                    steps.append((step, kept))
            allowed = kept if binding else allowed
        return Candidates(allowed=allowed, kept=kept if len(kept) else allowed, steps=tuple(steps))

    def acceptable(
        self, view: ClusterView, bundle: int, found: Candidates, placement: Placement[M], memory: M
    ) -> tuple[Ints, M]:
        """The rows that *bundle* (a row) may go to, all equally good; empty where none is allowed.

        Pulsar takes one of the best at random and chooses anew when that one is overloaded.  Here it is one of the
        best that are not overloaded, while there is one: one of Pulsar's answers, and never the worse one.
        """
        best, memory = placement.acceptable(view, bundle, found.kept, memory)
        free = best[~self._overloaded(view)[best]]
        if len(free) or not len(best) or self.keep_filters:
            return (free if len(free) else best), memory
        return placement.acceptable(view, bundle, found.allowed, memory)

    def _overloaded(self, view: ClusterView) -> Bools:
        """(brokers,) which are above the threshold; weighed once in a cycle, in which usages do not change."""
        usage, limit = view.brokers.usage, view.brokers.limit

        def find() -> tuple[Floats, Floats, Bools]:
            # With the arrays, which so outlive the key that names them.
            return usage, limit, self.weighted_usage(usage, limit) > self.overloaded_percent / 100

        return view.policies.derived(("overloaded", self, id(usage), id(limit)), find)[2]

    def for_assignment(
        self, view: ClusterView, bundle: int, filters: Sequence[Filter], placement: Placement[M], memory: M
    ) -> tuple[Ints, M]:
        """As :meth:`acceptable`, but a bundle that is on its way stays on it.  Pulsar: selectBrokerForAssignment."""
        sent = view.preallocated.broker[view.preallocated.bundle == bundle]
        if len(sent):
            return sent[-1:], memory
        return self.acceptable(view, bundle, self.candidates(view, bundle, filters), placement, memory)
