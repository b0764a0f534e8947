"""Place bundles on the candidates in turn, whatever their load.

As in Pulsar, turns are counted over the candidates of each placement, and the order of the brokers is renewed only when
their number changes, or when the broker whose turn it is is no longer a candidate.  So a broker that replaced another
one may get no bundle until then.

Pulsar: org.apache.pulsar.broker.loadbalance.impl.RoundRobinBrokerSelector
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from controller.model.load import ClusterView, Ints
from controller.model.strategy_memory import StrategyMemory

#: The largest Java int; then the count begins again at 0.
_LAST_COUNT: Final = (1 << 31) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRobinTurn(StrategyMemory):
    """The position of the round robin placement."""

    kind: ClassVar[str] = "round_robin_turn"
    #: Placements so far; after 2,147,483,647 the count starts again at 0.
    count: int = 0
    #: The brokers in round robin order.
    order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRobinBrokerSelector:
    """See the module docstring.  It has no options."""

    def initial_memory(self) -> RoundRobinTurn:
        """The first broker begins."""
        return RoundRobinTurn()

    def select(self, candidates: Sequence[str], memory: RoundRobinTurn) -> tuple[str | None, RoundRobinTurn]:
        """The one of *candidates* whose turn it is, in the order given; without any, None, and no turn has passed."""
        if not candidates:
            return None, memory
        turn, order = memory.count % len(candidates), memory.order
        if len(order) != len(candidates) or order[turn] not in candidates:
            order = tuple(candidates)
        count = 0 if memory.count == _LAST_COUNT else memory.count + 1
        return order[turn], RoundRobinTurn(count=count, order=order)

    def acceptable(
        self,
        view: ClusterView,
        bundle: int,  # noqa: ARG002  the same for every bundle
        candidates: Ints,
        memory: RoundRobinTurn,
    ) -> tuple[Ints, RoundRobinTurn]:
        """The one of *candidates* whose turn it is, by name."""
        brokers = view.brokers
        every = len(candidates) == len(brokers)
        names = brokers.names if every else tuple(brokers.names[row] for row in candidates.tolist())
        selected, memory = self.select(names, memory)
        if selected is None:
            return candidates, memory
        at = names.index(selected)
        return candidates[at : at + 1], memory
