"""The unloads of an interval: the membership rebalancer and the shedder choose bundles, the placement destinations."""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from controller.cycle.checked import CheckedPlacement, relieving_of, unloads_by
from controller.cycle.commands import Issuing
from controller.cycle.dispatch import Dispatcher
from controller.cycle.guardrails.grace import in_grace
from controller.cycle.ordered import ordered_unloads, plan_stale_reason
from controller.cycle.policy import Policy
from controller.cycle.protected import ProtectedBundles
from controller.cycle.refusals import switched_off, too_few_brokers
from controller.cycle.round_views import RoundViews
from controller.model.decision import (
    CLUSTER,
    Command,
    LazyVerdicts,
    Reason,
    Unload,
    UnloadDecision,
    UsageOutlook,
    Verdict,
)
from controller.model.load import Bools, ClusterView
from controller.model.memory import Memory
from controller.model.strategy_memory import StrategyMemory

#: How often a shedder is asked again without the brokers of which a budget would hold back half a swap; then once more
#: without all brokers that a budget holds something back of.
_RETRIES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Unloads:
    """The unloads of an interval."""

    #: The memory after the decision, as if all chosen unloads were issued.
    memory: Memory
    verdicts: tuple[Verdict, ...]
    commands: tuple[Command, ...] = ()
    #: The shedder's unloads that became commands, and those that a budget holds back for a later interval.
    issued: tuple[Unload, ...] = ()
    held_back: tuple[Unload, ...] = ()
    #: Whether a budget holds back a move of the membership rebalancer for a later interval.
    moves_held_back: bool = False
    #: The shedder's; None: it was not asked, or has none.
    outlook: UsageOutlook | None = None
    #: Whether the commands are those of a plan, and not of strategies.
    by_plan: bool = False


class _Shed(NamedTuple):
    """What a shedder decided, and the view by which it did."""

    decision: UnloadDecision
    memory: StrategyMemory
    shedder_view: ClusterView


def unloads_of(view: ClusterView, protected: ProtectedBundles, memory: Memory, issuing: Issuing) -> Unloads:
    """The unloads of the interval with their destinations, the memory after them, and why everything else stays.

    *protected* are the bundles that must not be moved, also those that are split in this interval.

    While a plan is being applied strategies are not asked, so that nothing disturbs it.  Where guardrails hold all of
    it back, or its check is stale, the shedder relieves brokers that cannot wait, and does nothing else.
    """
    views = RoundViews.of(view, protected, memory, issuing)
    orders, policy = issuing.controls.orders, issuing.policy
    if orders is None or not orders.hold_at(view.as_of_ms):
        return _Round(views, memory, issuing).by_strategies()
    ordered = _Round(views, memory, issuing).by_orders()
    is_idle = orders.held_back or plan_stale_reason(view.as_of_ms, memory, orders, policy.period_ms)
    urgent = None if ordered.commands or not is_idle else relieving_of(policy.shedder, view)
    if urgent is None:
        return ordered
    urgent_policy = replace(policy, shedder=urgent, membership=None)
    unloads = _Round(views, memory, issuing._replace(policy=urgent_policy)).by_strategies()
    return replace(unloads, verdicts=(*ordered.verdicts, *unloads.verdicts))


class _Round(NamedTuple):
    """One interval: who chooses its unloads."""

    views: RoundViews
    memory: Memory
    issuing: Issuing

    @property
    def dispatcher(self) -> Dispatcher:
        """Issues what was chosen."""
        return Dispatcher(cluster=self.views.cluster, memory=self.memory, issuing=self.issuing)

    def by_strategies(self) -> Unloads:
        """The unloads that strategies choose."""
        views, memory, policy = self.views, self.memory, self.issuing.policy
        none = _why_none(views.cluster.as_of_ms, len(views.cluster.brokers), policy)
        if none is not None:
            return Unloads(memory=memory, verdicts=(none,))
        moves, membership, about_brokers = self._membership_moves()
        movable, about_moves = _movable(moves, views.protected, respects_grace=True)
        shed = self._shed_without_partial_swaps(moves)
        verdicts = views.protected_from_shedder.explain(shed.decision.verdicts)
        if not shed.decision.unloads:
            reason = _whole_reason(shed.decision, verdicts)
            verdicts.append(Verdict(subject=CLUSTER, reason=reason, by=type(policy.shedder).__name__))
        moved = self.dispatcher.as_planned(movable)
        moving = {unload.bundle for unload in movable}
        sheddable, about_unloads = _movable(
            shed.decision.unloads, views.protected_from_shedder, respects_grace=True, moving=moving
        )
        placed = self.dispatcher.by_placement(sheddable, shed.shedder_view, after=moved)
        placement = CheckedPlacement(policy.placement).memory_checked(memory.placement, placed.placement)
        return Unloads(
            memory=replace(memory, shedder=shed.memory, membership=membership, placement=placement),
            verdicts=(*verdicts, *about_brokers, *about_moves, *moved.verdicts, *about_unloads, *placed.verdicts),
            commands=(*moved.commands, *placed.commands),
            issued=placed.issued,
            held_back=placed.held_back,
            moves_held_back=bool(moved.held_back),
            outlook=shed.decision.outlook,
        )

    def by_orders(self) -> Unloads:
        """The unloads of a plan that is being applied."""
        cluster, memory, controls = self.views.cluster, self.memory, self.issuing.controls
        ordered, verdicts = ordered_unloads(cluster, memory, controls, self.issuing.policy.period_ms)
        if len(cluster.brokers) < 2:
            return Unloads(memory=memory, verdicts=(*verdicts, too_few_brokers(len(cluster.brokers), "plan")))
        # A person's plan may move bundles within their grace period.
        movable, about_others = _movable(ordered, self.views.protected, respects_grace=False)
        placed = self.dispatcher.as_ordered(movable)
        return Unloads(
            memory=memory,
            verdicts=(*verdicts, *about_others, *placed.verdicts),
            commands=placed.commands,
            moves_held_back=bool(placed.held_back),
            by_plan=True,
        )

    def _membership_moves(self) -> tuple[tuple[Unload, ...], StrategyMemory, tuple[Verdict, ...]]:
        """The membership rebalancer's unloads, its next memory, and its verdicts."""
        rebalancer, memory = self.issuing.policy.membership, self.memory.membership
        if rebalancer is None:
            return (), memory, ()
        decision, next_memory = unloads_by(rebalancer, self.views.rebalancer, memory)
        return tuple(decision.unloads), next_memory, tuple(decision.verdicts)

    def _shed_without_partial_swaps(self, moves: Sequence[Unload]) -> _Shed:
        """What the shedder decides.

        A plan can swap bundles: a broker gives some and gets others.  Where a budget would hold back what such a broker
        gives, and issue what it gets, the broker would only get fuller.  Then the shedder is asked once more, with all
        bundles of that broker where they are.  *moves*, of the membership rebalancer, use budgets before the shedder.
        """
        shedder, memory, cluster = self.issuing.policy.shedder, self.memory.shedder, self.views.cluster
        shedder_view, limited = self.views.shedder(moves), set[str]()
        shed = _Shed(*unloads_by(shedder, shedder_view, memory), shedder_view)
        for every in (*([False] * _RETRIES), True):
            brokers = self._partially_swapped_brokers([*moves, *shed.decision.unloads], every=every)
            if not brokers:
                break
            limited |= brokers
            named = np.array([name in limited for name in cluster.brokers.names], np.bool_)
            held_back = named[cluster.bundles.broker] & cluster.bundles.owned & ~shedder_view.recently_unloaded
            masked_view = self.views.shedder(moves, held_back)
            decision, next_memory = unloads_by(shedder, masked_view, memory)
            decision = replace(decision, verdicts=_with_budgets(decision.verdicts, cluster, held_back))
            shed = _Shed(decision, next_memory, masked_view)
        return shed

    def _partially_swapped_brokers(self, unloads: Sequence[Unload], *, every: bool) -> set[str]:
        """Brokers that would get bundles by a plan while a budget holds back what they give by it.

        *every*: all brokers that something is held back of, if there is one that would get bundles.
        """
        if not any(unload.in_order for unload in unloads):
            return set()
        trial = self.dispatcher.on_trial().as_planned(unloads)
        givers = {unload.source for unload in trial.held_back if unload.in_order}
        partial = givers & {command.destination for command in trial.commands}
        return givers if partial and every else partial


def _with_budgets(verdicts: Sequence[Verdict], cluster: ClusterView, held_back: Bools) -> LazyVerdicts:
    """*verdicts*, in which a budget is the reason for bundles that are *held_back*, (bundles,)."""
    rows, names = cluster.bundles.code_of, cluster.brokers.names

    def with_budget(verdict: Verdict) -> Verdict:
        row = rows.get(verdict.subject) if verdict.reason is Reason.RECENTLY_UNLOADED else None
        if row is None or not held_back[row]:
            return verdict
        broker = names[int(cluster.bundles.broker[row])]
        detail = f"budgets let {broker} give less than was planned, so the plan was made without its bundles"
        return Verdict(subject=verdict.subject, reason=Reason.BUDGET, by="guardrails", detail=detail)

    return LazyVerdicts(lambda: map(with_budget, verdicts))


def _why_none(interval: int, brokers: int, policy: Policy) -> Verdict | None:
    """Why nothing is unloaded in this interval, whatever the load is; None if unloads are possible."""
    if not policy.shed:
        return switched_off("shed")
    if interval % policy.balancer.shedding_interval_ms:
        return Verdict(subject=CLUSTER, reason=Reason.NOT_THIS_INTERVAL, by=policy.balancer.shedding_interval_option)
    return too_few_brokers(brokers, "shed") if brokers < 2 else None


def _movable(
    unloads: Iterable[Unload],
    protected: ProtectedBundles,
    *,
    respects_grace: bool,
    moving: Set[str] = frozenset(),
) -> tuple[list[Unload], list[Verdict]]:
    """Those of *unloads* that may be issued, and why the others may not.

    *respects_grace*: bundles within their grace period may not.  *moving*: those that the membership rebalancer moves.
    """
    movable, verdicts = list[Unload](), list[Verdict]()
    for unload in unloads:
        against = protected.verdict(unload.bundle)
        if against is None and unload.bundle in moving:
            against = Verdict(subject=unload.bundle, reason=Reason.IN_FLIGHT, by="membership", detail="is being moved")
        if against is None and respects_grace and not unload.ignores_grace:
            against = in_grace(protected.view, unload.bundle)
        if against is None:
            movable.append(unload)
        else:
            verdicts.append(against)
    return movable, verdicts


def _whole_reason(decision: UnloadDecision, verdicts: Sequence[Verdict]) -> Reason:
    """Why nothing is unloaded.

    If the shedder said RecentlyUnloaded because of a guardrail, the reason is that guardrail's, as in *verdicts*.
    """
    if decision.reason is not Reason.RECENTLY_UNLOADED or any(v.reason is decision.reason for v in verdicts):
        return decision.reason
    pairs = zip(decision.verdicts, verdicts, strict=True)
    return next((after.reason for before, after in pairs if before.reason is decision.reason), decision.reason)
