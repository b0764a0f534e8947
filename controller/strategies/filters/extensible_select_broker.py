"""Find the brokers that a bundle may go to, as the extensible load manager does.

Filters are asked in order, each about the brokers that the one before left.  If a binding filter leaves no broker, the
bundle stays, however full its broker is.  If another one leaves none (broker versions that are unknown), it is ignored.

Not here: BrokerLoadManagerClassFilter.  trimtab balances no cluster whose brokers run two load managers.

Pulsar: ExtensibleLoadManagerImpl.selectAsync
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import numpy as np

from controller.model.load import ClusterView, Ints
from controller.model.strategy_memory import StrategyMemory
from controller.strategies.common.candidates import Candidates, left_by
from controller.strategies.protocols import Filter, Placement

M = TypeVar("M", bound=StrategyMemory)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensibleSelectBroker:
    """See the module docstring.  It has no options."""

    #: Whether a bundle counts at its destination before the next one of the round is placed: a bundle that is unloaded
    #: without a destination is assigned when it is looked up, and the look-up of the next one sees that.
    assigns_at_once: ClassVar[bool] = True

    def assigning(self, view: ClusterView, bundle: int) -> ClusterView:
        """The view in which a broker is chosen for *bundle* (a row): nobody owns it."""
        return replace(view, released=bundle)

    def candidates(self, view: ClusterView, bundle: int, filters: Sequence[Filter]) -> Candidates:
        """The brokers that *filters* leave for *bundle* (a row), perhaps none."""
        remaining = np.arange(len(view.brokers), dtype=np.int64)
        steps: list[tuple[Filter, Ints]] = []
        for step in filters:
            accepted = left_by(step, view, bundle, remaining)
            remaining = accepted if len(accepted) or step.binding else remaining
            steps.append((step, remaining))
        return Candidates(allowed=remaining, remaining=remaining, steps=tuple(steps))

    def acceptable(
        self, view: ClusterView, bundle: int, candidates: Candidates, placement: Placement[M], memory: M
    ) -> tuple[Ints, M]:
        """The rows that *bundle* (a row) may go to, all equally good; empty where none is left."""
        return placement.acceptable(view, bundle, candidates.remaining, memory)
