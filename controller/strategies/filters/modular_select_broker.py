"""Find the brokers that a bundle may go to, as the modular load manager does: filters in order, then the placement.

Binding filters come first: what they leave is *allowed*, and no other broker is ever taken.  The other filters reduce
that further.  They are ignored where they leave no broker, or where all that the placement accepts are overloaded, but
for placements that keep their choice (AvgShedder before Pulsar 5.0).  So anti-affinity, topic counts and even spreading
do not keep a bundle on a full broker; isolation does.

Not here: BrokerLoadManagerClassFilter.  trimtab balances no cluster whose brokers run two load managers.

Pulsar: ModularLoadManagerImpl.selectBroker, selectBrokerForAssignment
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from controller.model.load import Bools, ClusterView, Ints
from controller.model.option import option
from controller.model.resource_usage import ResourceWeights
from controller.model.strategy_memory import StrategyMemory
from controller.strategies.common import options
from controller.strategies.common.candidates import Candidates, left_by
from controller.strategies.common.capabilities import capability
from controller.strategies.protocols import Filter, Placement, StickyPlacement

M = TypeVar("M", bound=StrategyMemory)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModularSelectBroker(ResourceWeights):
    """See the module docstring."""

    #: Whether a bundle counts at its destination before the next one of the round is placed.  Pulsar: doLoadShedding
    #: places by selectBroker; only selectBrokerForAssignment preallocates.
    assigns_at_once: ClassVar[bool] = False

    overloaded_percent: int = options.overloaded_percent(
        "a broker above this usage gets no bundle while another one can"
    )
    keep_filters: bool = option(
        "trimtabOverloadedBrokersKeepFilters",
        default=False,
        meaning="true: filters hold even where all brokers that they leave are overloaded; Pulsar drops them then",
    )

    def assigning(self, view: ClusterView, bundle: int) -> ClusterView:  # noqa: ARG002  it is owned until it is there
        """The view in which a broker is chosen for *bundle* (a row)."""
        return view

    def candidates(self, view: ClusterView, bundle: int, filters: Sequence[Filter]) -> Candidates:
        """All brokers that *filters* leave for *bundle* (a row): binding ones are asked first."""
        allowed = remaining = np.arange(len(view.brokers), dtype=np.int64)
        steps: list[tuple[Filter, Ints]] = []
        for binding in (True, False):
            for step in filters:
                if step.binding is binding:
                    remaining = left_by(step, view, bundle, remaining)
                    steps.append((step, remaining))
            allowed = remaining if binding else allowed
        return Candidates(allowed=allowed, remaining=remaining if len(remaining) else allowed, steps=tuple(steps))

    def acceptable(
        self, view: ClusterView, bundle: int, candidates: Candidates, placement: Placement[M], memory: M
    ) -> tuple[Ints, M]:
        """The rows that *bundle* (a row) may go to, all equally good; empty where none is allowed.

        Pulsar takes one of the best at random, and chooses again when that one is overloaded.  Here it is one of the
        best that are not overloaded, if there is one: this is always one of the answers that Pulsar may give.
        """
        best, memory = placement.acceptable(view, bundle, candidates.remaining, memory)
        free = best[~self._overloaded(view)[best]]
        if len(free) or not len(best) or self.keep_filters or _keeps_its_choice(placement):
            return (free if len(free) else best), memory
        return placement.acceptable(view, bundle, candidates.allowed, memory)

    def _overloaded(self, view: ClusterView) -> Bools:
        """(brokers,) which are above the threshold."""
        return self.usage_of_all(view) > self.overloaded_percent / 100


def _keeps_its_choice(placement: object) -> bool:
    keeping: StickyPlacement | None = capability(placement, StickyPlacement)
    return keeping is not None and keeping.keeps_its_choice
