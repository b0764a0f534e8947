"""Chooses the destination of a bundle that is unloaded."""

import zlib
from dataclasses import replace
from typing import Final

from controller.cycle.checked import CheckedPlacement
from controller.cycle.policy import Policy
from controller.model.decision import Reason, Unload, Verdict
from controller.model.load import UNOWNED, ClusterView
from controller.model.strategy_memory import StrategyMemory
from controller.strategies.common.candidates import first_against
from controller.strategies.common.capabilities import capability
from controller.strategies.protocols import Filter, PairedShedder, PlanAwarePlacement

_NO_OTHER: Final = "no other broker may take it"


def place(
    view: ClusterView, unload: Unload, memory: StrategyMemory, seed: int, policy: Policy
) -> tuple[str, list[Verdict], StrategyMemory]:
    """The destination of a bundle, or "" if it has none; verdicts; the placement's memory.

    The destination is the planned broker, else one of the acceptable brokers, chosen by the seed (Pulsar: at random).
    A plan-aware placement is asked about the planned broker, too.
    It is never the bundle's own broker, and never one that a binding filter excludes.  The modular load manager ignores
    the other filters if all brokers that they leave are overloaded.
    Pulsar: ModularLoadManagerImpl.doLoadShedding, ExtensibleLoadManagerImpl.selectAsync.
    """
    row, source = view.bundles.code_of[unload.bundle], view.brokers.code_of[unload.source]
    unload = unload if _holds_plans(policy) else replace(unload, destination="")
    planned = view.brokers.code_of[unload.destination] if unload.destination else UNOWNED
    view = replace(view, planned=planned) if unload.destination else policy.selection.assigning(view, row)
    candidates = policy.selection.candidates(view, row, policy.filters)

    def rejection(by: Filter, detail: str) -> Verdict:
        return Verdict(subject=unload.bundle, reason=by.reason, by=type(by).__name__, detail=detail)

    against = candidates.confines(source)
    if against is not None:
        return "", [rejection(against, _NO_OTHER)], memory
    against = candidates.anchored(view, row)
    if against is not None:
        return "", [rejection(against, "the filter keeps it on its broker")], memory
    verdicts: list[Verdict] = []
    if unload.destination:
        against = candidates.excludes(planned)
        if against is None and not _is_plan_aware(policy.placement):
            return unload.destination, [], memory
        verdicts = [_not_as_planned(unload, against, policy)]
    acceptable, memory = policy.selection.acceptable(view, row, candidates, CheckedPlacement(policy.placement), memory)
    others = acceptable[acceptable != source]
    if len(others) == 0:
        against, by = candidates.leaves_only(source), type(policy.placement).__name__
        if against is not None:
            return "", [*verdicts, rejection(against, _NO_OTHER)], memory
        same = Verdict(
            subject=unload.bundle, reason=Reason.SAME_BROKER, by=by, detail="no broker is better than its own"
        )
        return "", [*verdicts, same], memory
    chance = zlib.crc32(f"{seed}/{view.as_of_ms}/{unload.bundle}".encode())
    destination = view.brokers.names[int(others[chance % len(others)])]
    return destination, [] if destination == unload.destination else verdicts, memory


def _holds_plans(policy: Policy) -> bool:
    """Whether the placement is one with which the shedder's planned destinations hold."""
    paired: PairedShedder | None = capability(policy.shedder, PairedShedder)
    return paired is None or paired.paired_placement == type(policy.placement).__name__


def _is_plan_aware(placement: object) -> bool:
    aware: PlanAwarePlacement | None = capability(placement, PlanAwarePlacement)
    return aware is not None and aware.plan_aware


def _not_as_planned(unload: Unload, against: Filter | None, policy: Policy) -> Verdict:
    """Why *unload* is placed anew: the filter *against* excludes the planned destination, or that is overloaded."""
    planned = f"the planned destination {unload.destination}"
    if against is None:
        by, detail = type(policy.placement).__name__, f"{planned} is overloaded: placed anew"
        return Verdict(subject=unload.bundle, reason=Reason.OVERLOADED, by=by, detail=detail)
    by, detail = type(against).__name__, f"the filter excludes {planned}: placed anew"
    return Verdict(subject=unload.bundle, reason=against.reason, by=by, detail=detail)


def counts_at_once(unload: Unload, policy: Policy) -> bool:
    """Whether *unload* of a shedder counts at its destination when the next one of the round is placed.

    Pulsar: ModularLoadManagerImpl.doLoadShedding, ExtensibleLoadManagerImpl.selectAsync.
    """
    return unload.in_order or policy.balancer.preallocates or policy.selection.assigns_at_once


def sent(view: ClusterView, bundle: str, destination: str, *, counts: bool) -> ClusterView:
    """The view for the next placement of a cycle that sends *bundle* to *destination*; *counts*: it counts there."""
    row, broker = view.bundles.code_of[bundle], view.brokers.code_of[destination]
    return view.with_preallocated(row, broker) if counts else view.with_chosen(row, broker)


def place_as_planned(view: ClusterView, unload: Unload, policy: Policy) -> tuple[str, list[Verdict]]:
    """The planned destination of a bundle that moves there or stays; "" with a verdict if a filter is against it."""
    row = view.bundles.code_of[unload.bundle]
    candidates = policy.selection.candidates(view, row, policy.filters)
    against = candidates.anchored(view, row) or candidates.excludes(view.brokers.code_of[unload.destination])
    return _unless(against, unload)


def place_as_ordered(
    view: ClusterView, unload: Unload, policy: Policy, *, must_leave: bool
) -> tuple[str, list[Verdict]]:
    """The destination that a person's plan names; "" with a verdict if a filter excludes it.

    No filter keeps the bundle on its broker: a person has it leave.  *must_leave*: its broker is drained.  Then only
    binding filters are asked.  The others prefer some brokers, and the plan sends the bundle elsewhere only where
    these have no room, which is not known here.
    """
    row, to = view.bundles.code_of[unload.bundle], view.brokers.code_of[unload.destination]
    if must_leave:
        against = first_against(view, row, to, [each for each in policy.filters if each.binding])
    else:
        against = policy.selection.candidates(view, row, policy.filters).excludes(to)
    return _unless(against, unload)


def _unless(against: Filter | None, unload: Unload) -> tuple[str, list[Verdict]]:
    """The destination of *unload*, unless the filter *against* excludes it."""
    if against is None:
        return unload.destination, []
    by, detail = type(against).__name__, f"the filter excludes the destination {unload.destination}: it stays"
    return "", [Verdict(subject=unload.bundle, reason=against.reason, by=by, detail=detail)]
