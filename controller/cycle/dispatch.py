"""Places unloads one after the other, and issues those that budgets allow."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from controller.cycle.commands import Issuing, charge, charge_for
from controller.cycle.guardrails.budgets import Rejection
from controller.cycle.placing import counts_at_once, place, place_as_ordered, place_as_planned, sent
from controller.model.decision import Command, Unload, Verdict
from controller.model.load import ClusterView
from controller.model.memory import Memory
from controller.model.strategy_memory import StrategyMemory

#: (placement view, unload, the placement's memory) -> the unload's destination, or "" if it stays; verdicts; the next
#: memory.
_Place: TypeAlias = Callable[[ClusterView, Unload, StrategyMemory], tuple[str, list[Verdict], StrategyMemory]]


class Dispatched(NamedTuple):
    """Unloads, issued or held back."""

    #: For the next placement: in it the issued bundles are on their way.
    placement_view: ClusterView
    placement: StrategyMemory
    commands: tuple[Command, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    #: Unloads that became commands, and those that a budget holds back for a later interval.
    issued: tuple[Unload, ...] = ()
    held_back: tuple[Unload, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dispatcher:
    """Issues the unloads of one interval, and charges them to its budgets."""

    #: As the brokers report it: what moves count against budgets.
    cluster: ClusterView
    memory: Memory
    issuing: Issuing

    def on_trial(self) -> "Dispatcher":
        """One that leaves the budgets of the interval as they are."""
        return replace(self, issuing=self.issuing._replace(ledger=self.issuing.ledger.copy()))

    def as_planned(self, unloads: Sequence[Unload]) -> Dispatched:
        """Issue *unloads*, one plan, where they say."""
        policy = self.issuing.policy
        return self._each(
            unloads, lambda view, unload, memory: (*place_as_planned(view, unload, policy), memory), one_plan=True
        )

    def as_ordered(self, unloads: Sequence[Unload]) -> Dispatched:
        """Issue *unloads*, a person's plan, where they say."""
        policy, drained = self.issuing.policy, {*self.issuing.controls.drained}

        def where(
            view: ClusterView, unload: Unload, memory: StrategyMemory
        ) -> tuple[str, list[Verdict], StrategyMemory]:
            return *place_as_ordered(view, unload, policy, must_leave=unload.source in drained), memory

        return self._each(unloads, where, one_plan=True)

    def by_placement(self, unloads: Sequence[Unload], shedder_view: ClusterView, after: Dispatched) -> Dispatched:
        """Issue *unloads* where the placement sends them, but for final ones; *shedder_view* is what the shedder saw.

        *after*: the unloads that were issued before.
        """
        seed, policy = self.memory.seed, self.issuing.policy

        def where(
            view: ClusterView, unload: Unload, memory: StrategyMemory
        ) -> tuple[str, list[Verdict], StrategyMemory]:
            if not unload.final:
                return place(view, unload, memory, seed, policy)
            # TransferShedder, as in Pulsar, applied the filters to each bundle without the other unloads of this cycle.
            return *place_as_planned(view if unload.in_order else shedder_view, unload, policy), memory

        return self._each(unloads, where, one_plan=False, view=after.placement_view)

    def _each(
        self, unloads: Sequence[Unload], where: _Place, *, one_plan: bool, view: ClusterView | None = None
    ) -> Dispatched:
        """Place each of *unloads* by *where*, and issue those that budgets allow.

        *view*: the first one is placed in it; default: the cluster.  *one_plan*: each counts at its destination before
        the next one is placed.  When the cluster's budget is used up, nothing more is placed: with 1,000 overloaded
        brokers that would take minutes.
        """
        placement_view = self.cluster if view is None else view
        placement, ledger = self.memory.placement, self.issuing.ledger
        commands, verdicts, issued, held_back = list[Command](), list[Verdict](), list[Unload](), list[Unload]()
        for turn, unload in enumerate(unloads):
            if ledger.exhausted:
                ledger.hold_back([later.bundle for later in unloads[turn:]])
                held_back += unloads[turn:]
                break
            cost = charge_for(self.cluster, "unload", unload.bundle, unload.source)
            rejection = ledger.rejects_any_destination(unload.bundle, cost)
            if rejection is None:
                destination, about, placement = where(placement_view, unload, placement)
                verdicts += about
                if not destination:
                    continue
                command = self.issuing.command(
                    "unload", unload.bundle, unload.source, unload.why, self.cluster.as_of_ms, destination=destination
                )
                rejection = ledger.try_charge(unload.bundle, charge(self.cluster, command))
                if rejection is None:
                    commands.append(command)
                    issued.append(unload)
                    counts = one_plan or counts_at_once(unload, self.issuing.policy)
                    placement_view = sent(placement_view, unload.bundle, destination, counts=counts)
            if rejection is Rejection.RETRY:
                held_back.append(unload)
        return Dispatched(placement_view, placement, tuple(commands), tuple(verdicts), tuple(issued), tuple(held_back))
