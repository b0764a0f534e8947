"""What an operator's plan and drains ask of a cycle: moves to issue, and brokers that get nothing.

The moves pass through everything that other unloads pass through: filters, budgets, bundles that must not be touched,
the breaker, pause.
"""

import re
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np

from controller.cycle.guardrails.freeze import changed_since
from controller.cycle.policy import Policy
from controller.model.controls import Controls, OrderedMove, Orders
from controller.model.decision import CLUSTER, Reason, Unload, Verdict
from controller.model.load import BANDWIDTH_IN, BANDWIDTH_OUT, CPU, DIRECT_MEMORY, BrokerTable, ClusterView, Ints
from controller.model.memory import Memory

#: Who gives these verdicts, and the ``by`` of a command's reason that a plan asked for.
BY_PLAN: Final = "plan"
#: Who refuses what is not approved.
BY_POLICY: Final = "policy"
#: Orders hold for so many intervals and so many ms after the last word of `trimtab apply`, and as long after the check
#: of their moves.
HOLD_INTERVALS: Final = 4
HOLD_MS: Final = 60_000
#: What brokers run out of; much of their heap is garbage.
_SCARCE: Final = [CPU, DIRECT_MEMORY, BANDWIDTH_IN, BANDWIDTH_OUT]
#: So much of a plan's hash is told.
_HASH_CHARACTERS: Final = 12
_PART: Final = re.compile(r"plan [0-9a-f]+, step (\d{1,9}), wave (\d{1,9}) of \d{1,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotDrained:
    """A filter: drained brokers get no bundles, whatever that means for the others."""

    reason: ClassVar[Reason] = Reason.DRAINED
    binding: ClassVar[bool] = True
    names: frozenset[str]

    def keep(self, view: ClusterView, bundle: int, candidates: Ints) -> Ints:  # noqa: ARG002 as in Filter
        """The rows of *candidates* that are not drained."""
        rows = [row for name in self.names if (row := view.brokers.code_of.get(name)) is not None]
        undrained: Ints = candidates[~np.isin(candidates, rows)]
        return undrained


def with_controls(policy: Policy, controls: Controls) -> Policy:
    """*policy*, in which nothing goes to brokers that are drained, whatever chooses the destination, and nothing is
    done to bundles that a person excluded."""
    if controls.excluded:
        policy = replace(policy, excluded_by_people=frozenset(controls.excluded))
    if not controls.drained or any(isinstance(step, NotDrained) for step in policy.filters):
        return policy
    step, shedder = NotDrained(names=frozenset(controls.drained)), policy.shedder
    if _asks_filters(shedder):
        asking: Any = shedder
        shedder = replace(asking, filters=(step, *asking.filters))
    return replace(policy, filters=(step, *policy.filters), shedder=shedder)


def drained_below_the_mean(brokers: BrokerTable, controls: Controls) -> frozenset[str]:
    """The drained of *brokers* that use no more than the others do on average: shedders see no data of them.

    Shedders do not know about drains.  They would fill the drained broker again.
    """
    names, drained = brokers.names, {*controls.drained}
    is_drained = np.array([name in drained for name in names], np.bool_)
    if not is_drained.any() or is_drained.all():
        return frozenset()
    usage, limit = (column[:, _SCARCE] for column in (brokers.usage, brokers.limit))
    full = np.divide(usage, limit, out=np.zeros_like(usage), where=limit > 0).max(axis=1)
    return frozenset(names[row] for row in np.flatnonzero(is_drained & (full <= full[~is_drained].mean())).tolist())


def _asks_filters(shedder: object) -> bool:
    """Whether *shedder* chooses destinations itself, by filters of its own."""
    return is_dataclass(shedder) and any(each.name == "filters" for each in fields(shedder))


def plan_named(plan: str) -> str:
    """How verdicts name *plan*, a hash: ``trimtab apply`` finds its commands by it."""
    return f"plan {plan[:_HASH_CHARACTERS]}"


def told_of(orders: Orders) -> str:
    """Which part of which plan *orders* are, for verdicts."""
    return f"{plan_named(orders.plan)}, step {orders.step}, wave {orders.wave} of {orders.waves}"


def told_step_and_wave(detail: str) -> tuple[int, int] | None:
    """Step and wave, from 1, in what ``told_of`` says; None where *detail* is something else."""
    part = _PART.fullmatch(detail)
    return None if part is None else (int(part[1]), int(part[2]))


def not_approved(controls: Controls) -> list[Verdict]:
    """What was not obeyed of the operator's controls, since the policy demands approvals."""
    return [
        Verdict(subject=CLUSTER, reason=Reason.NOT_APPROVED, by=BY_POLICY, detail=each)
        for each in controls.not_approved
    ]


def ordered_unloads(
    view: ClusterView, memory: Memory, controls: Controls, period_ms: int
) -> tuple[list[Unload], list[Verdict]]:
    """The unloads that the plan in *controls* asks for and that are still to be issued, and why others are not.

    *period_ms*: length of the intervals.
    """
    orders = controls.orders
    if orders is None:
        return [], []
    wave = told_of(orders)
    unloads = list[Unload]()
    verdicts = [Verdict(subject=CLUSTER, reason=Reason.PLAN_IN_FORCE, by=BY_PLAN, detail=f"{wave}, by {orders.by}")]
    bundles, stale = set[str](), plan_stale_reason(view.as_of_ms, memory, orders, period_ms)
    for move in orders.moves:
        against = _against(view, memory, orders, move) or (_outdated(move, stale) if stale else None)
        if move.bundle in bundles:
            continue  # each bundle once, whoever wrote the orders
        bundles.add(move.bundle)
        if against is None:
            why = Verdict(subject=move.source, reason=Reason.PLANNED, by=BY_PLAN, detail=wave)
            unload = Unload(
                bundle=move.bundle, source=move.source, why=why, destination=move.destination, final=True, in_order=True
            )
            unloads.append(unload)
        else:
            verdicts.append(against)
    return unloads, verdicts


def plan_stale_reason(interval: int, memory: Memory, orders: Orders, period_ms: int) -> str:
    """Why no move of *orders* is issued before `trimtab apply` has checked them again; "" while their check holds.

    That of an earlier release checks nothing again while a wave waits, and its orders hold as they did.
    """
    if orders.held_back is None:
        return ""
    changed = changed_since(memory.roster, orders.checked_at)
    if changed:
        return f"brokers changed after it was checked ({changed}): it has to be checked again"
    age = interval - orders.checked_at
    if age > HOLD_INTERVALS * period_ms + HOLD_MS:
        return f"it was checked {age // 1000} s ago, so it has to be checked again"
    return ""


def _outdated(move: OrderedMove, detail: str) -> Verdict:
    return Verdict(subject=move.bundle, reason=Reason.PLAN_OUTDATED, by=BY_PLAN, detail=detail)


def _against(view: ClusterView, memory: Memory, orders: Orders, move: OrderedMove) -> Verdict | None:
    """Why *move* is not issued; None where it is to be."""
    row = view.bundles.code_of.get(move.bundle)
    if row is None or not view.bundles.owned[row]:
        return _outdated(move, "no broker with data owns it")
    for unloaded, reason, detail in (
        (memory.recently_unloaded, Reason.RECENTLY_UNLOADED, "unloaded since the plan was checked"),
        (memory.dry_run_unloaded, Reason.DRY_RUN, "a dry run has issued it since the plan was checked"),
    ):
        if unloaded.get(move.bundle, -1) >= orders.checked_at:
            return Verdict(subject=move.bundle, reason=reason, by=BY_PLAN, detail=detail)
    owner = view.brokers.names[int(view.bundles.broker[row])]
    if owner != move.source:
        return _outdated(move, f"it is on {owner}, and the plan moves it off {move.source}")
    if move.destination not in view.brokers.code_of or move.destination == move.source:
        return _outdated(move, f"{move.destination} has no data, or is where it is")
    return None
