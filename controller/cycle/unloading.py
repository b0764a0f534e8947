"""The unloads of an interval: the membership rebalancer and the shedder choose bundles, the placement destinations."""

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from controller.cycle.checked import CheckedPlacement, relieving_of, unloads_by
from controller.cycle.commands import Issuing, charge, charge_for, command_for
from controller.cycle.guardrails.budgets import Rejection
from controller.cycle.guardrails.grace import in_grace
from controller.cycle.guardrails.protected import ProtectedBundles
from controller.cycle.ordered import mask_drained_brokers, ordered_unloads, plan_stale_reason
from controller.cycle.placing import counts_at_once, place, place_as_ordered, place_as_planned, sent
from controller.cycle.policy import Policy
from controller.cycle.refusals import switched_off, too_few_brokers
from controller.model.decision import CLUSTER, Command, LazyVerdicts, Reason, Unload, UnloadDecision, Verdict
from controller.model.load import Bools, ClusterView
from controller.model.memory import Memory
from controller.model.strategy_memory import StrategyMemory

#: How often a shedder is asked again without the brokers of which a budget would hold back half a swap; then once more
#: without all brokers that a budget holds something back of.
_RETRIES: Final = 3

#: (view, unload, the placement's memory) -> the unload's destination, or "" if it stays; the next memory; verdicts.
_Place: TypeAlias = Callable[[ClusterView, Unload, StrategyMemory], tuple[str, StrategyMemory, list[Verdict]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unloads:
    """The unloads of an interval."""

    #: The memory after the decision, as if all chosen unloads were issued.
    memory: Memory
    verdicts: tuple[Verdict, ...]
    commands: tuple[Command, ...] = ()
    #: The shedder's unloads that became commands, and those that a budget holds back for a later interval.
    taken: tuple[Unload, ...] = ()
    held: tuple[Unload, ...] = ()
    #: Whether a budget holds back a move of the membership rebalancer for a later interval.
    moves_held: bool = False


class _Inputs(NamedTuple):
    """What the unloads of an interval are decided by."""

    view: ClusterView
    #: The bundles that must not be moved, also those that are split in this interval.
    protected: ProtectedBundles
    memory: Memory
    issuing: Issuing


class _Shed(NamedTuple):
    """What a shedder decided, and the view by which it did."""

    decision: UnloadDecision
    memory: StrategyMemory
    shedder_view: ClusterView


class _Issued(NamedTuple):
    """Chosen unloads, issued or held back."""

    #: The view in which the issued bundles are on their way.
    next_view: ClusterView
    placement: StrategyMemory
    commands: tuple[Command, ...]
    verdicts: tuple[Verdict, ...]
    #: Unloads that became commands, and those that a budget holds back for a later interval.
    taken: tuple[Unload, ...]
    held: tuple[Unload, ...]


def unloads_of(
    view: ClusterView,
    protected: ProtectedBundles,
    splitting: set[str],
    memory: Memory,
    issuing: Issuing,
) -> Unloads:
    """The unloads of the interval with their destinations, the memory after them, and why everything else stays.

    While a plan is being applied strategies are not asked, so that nothing disturbs it.  Where guardrails hold all of
    it back, or its check is stale, the shedder relieves brokers that cannot wait, and does nothing else.
    """
    inputs = _Inputs(view, protected.and_split(splitting), memory, issuing)
    orders, policy = issuing.controls.orders, issuing.policy
    if orders is None or not orders.hold_at(view.as_of_ms):
        return _of_strategies(inputs)
    ordered = _ordered(inputs)
    is_idle = orders.held_back or plan_stale_reason(view, memory, orders, policy.period_ms)
    urgent = None if ordered.commands or not is_idle else relieving_of(policy.shedder, view)
    if urgent is None:
        return ordered
    urgent_policy = replace(policy, shedder=urgent, membership=None)
    unloads = _of_strategies(inputs._replace(issuing=issuing._replace(policy=urgent_policy)))
    return replace(unloads, verdicts=(*ordered.verdicts, *unloads.verdicts))


def _of_strategies(inputs: _Inputs) -> Unloads:
    """The unloads that strategies choose."""
    view, protected, memory, issuing = inputs
    policy = issuing.policy
    none = _why_none(view, policy)
    if none is not None:
        return Unloads(memory=memory, verdicts=(none,))
    # Shedders know one reason to leave a bundle where it is; the verdicts then say the guardrail's.
    shedder_view = view.with_guarded(protected.mask)
    moves, membership, about_brokers = _membership_moves(shedder_view, memory, policy)
    movable, about_moves = _movable(moves, protected, view)
    if moves:
        # The shedder must not choose them again.
        chosen = np.zeros(len(view.bundles), np.bool_)
        chosen[[view.bundles.code_of[unload.bundle] for unload in moves]] = True
        shedder_view = shedder_view.with_guarded(chosen)
    if policy.balancer.waits_for_results:
        protected = protected.and_bundles_of({c.source for c in memory.in_flight.values() if c.action == "unload"})
        shedder_view = shedder_view.with_guarded(protected.mask)
    shed = _shed_without_partial_swaps(inputs, mask_drained_brokers(shedder_view, issuing.controls), moves)
    verdicts = protected.explain(shed.decision.verdicts)
    if not shed.decision.unloads:
        reason = _whole_reason(shed.decision, verdicts)
        verdicts.append(Verdict(subject=CLUSTER, reason=reason, by=type(policy.shedder).__name__))
    moved = _issue(view, movable, _as_planned(policy), inputs, planned=True)
    chosen_unloads, about_unloads = _movable(shed.decision.unloads, protected, view, moving={u.bundle for u in movable})
    issued = _issue(moved.next_view, chosen_unloads, _by_placement(shed.shedder_view, inputs), inputs, planned=False)
    placement = CheckedPlacement(policy.placement).memory_checked(memory.placement, issued.placement)
    return Unloads(
        memory=replace(memory, shedder=shed.memory, membership=membership, placement=placement),
        verdicts=(*verdicts, *about_brokers, *about_moves, *moved.verdicts, *about_unloads, *issued.verdicts),
        commands=(*moved.commands, *issued.commands),
        taken=issued.taken,
        held=issued.held,
        moves_held=bool(moved.held),
    )


def _shed_without_partial_swaps(inputs: _Inputs, shedder_view: ClusterView, moves: Sequence[Unload]) -> _Shed:
    """What the shedder decides about *shedder_view*.

    A plan can swap bundles: a broker gives some and gets others.  Where a budget would hold back what such a broker
    gives, and issue what it gets, the broker would only get fuller.  Then the shedder is asked once more, with all
    bundles of that broker where they are.  *moves*, of the membership rebalancer, use budgets before the shedder.
    """
    view, memory, shedder = inputs.view, inputs.memory.shedder, inputs.issuing.policy.shedder
    shed, spent = _Shed(*unloads_by(shedder, shedder_view, memory), shedder_view), set[str]()
    for every in (*([False] * _RETRIES), True):
        brokers = _partially_swapped_brokers(inputs, [*moves, *shed.decision.unloads], every=every)
        if not brokers:
            break
        spent |= brokers
        named = np.array([name in spent for name in view.brokers.names], np.bool_)
        kept = named[view.bundles.broker] & view.bundles.owned & ~shedder_view.recently_unloaded
        masked_view = shedder_view.with_guarded(kept)
        decision, moved = unloads_by(shedder, masked_view, memory)
        decision = replace(decision, verdicts=_with_budgets(decision.verdicts, view, kept))
        shed = _Shed(decision, moved, masked_view)
    return shed


def _partially_swapped_brokers(inputs: _Inputs, unloads: Sequence[Unload], *, every: bool) -> set[str]:
    """Brokers that would get bundles by a plan while a budget holds back what they give by it.

    *every*: all brokers that something is held back of, if there is one that would get bundles.
    """
    if not any(unload.in_order for unload in unloads):
        return set()
    issuing = inputs.issuing
    trial = inputs._replace(issuing=issuing._replace(ledger=issuing.ledger.copy()))
    issued = _issue(inputs.view, unloads, _as_planned(issuing.policy), trial, planned=True)
    held = {unload.source for unload in issued.held if unload.in_order}
    partial = held & {command.destination for command in issued.commands}
    return held if partial and every else partial


def _with_budgets(verdicts: Sequence[Verdict], view: ClusterView, kept: Bools) -> LazyVerdicts:
    """*verdicts*, in which a budget is the reason for bundles that are *kept*, (bundles,), where they are."""
    rows, names = view.bundles.code_of, view.brokers.names

    def with_budget(verdict: Verdict) -> Verdict:
        row = rows.get(verdict.subject) if verdict.reason is Reason.RECENTLY_UNLOADED else None
        if row is None or not kept[row]:
            return verdict
        broker = names[int(view.bundles.broker[row])]
        detail = f"budgets let {broker} give less than was planned, so the plan was made without its bundles"
        return Verdict(subject=verdict.subject, reason=Reason.BUDGET, by="guardrails", detail=detail)

    return LazyVerdicts(lambda: map(with_budget, verdicts))


def _ordered(inputs: _Inputs) -> Unloads:
    """The unloads of a plan that is being applied."""
    view, protected, memory, issuing = inputs
    chosen, verdicts = ordered_unloads(view, memory, issuing.controls, issuing.policy.period_ms)
    if len(view.brokers) < 2:
        return Unloads(memory=memory, verdicts=(*verdicts, too_few_brokers(view, "plan")))
    # A person's plan may move bundles within their grace period.
    movable, against = _movable(chosen, protected, grace_view=None)
    drained = {*issuing.controls.drained}

    def where(view: ClusterView, unload: Unload, memory: StrategyMemory) -> tuple[str, StrategyMemory, list[Verdict]]:
        destination, found = place_as_ordered(view, unload, issuing.policy, must_leave=unload.source in drained)
        return destination, memory, found

    issued = _issue(view, movable, where, inputs, planned=True)
    return Unloads(
        memory=memory,
        verdicts=(*verdicts, *against, *issued.verdicts),
        commands=issued.commands,
        moves_held=bool(issued.held),
    )


def _why_none(view: ClusterView, policy: Policy) -> Verdict | None:
    """Why nothing is unloaded in this interval, whatever the load is; None if unloads are possible."""
    if not policy.shed:
        return switched_off("shed")
    if view.as_of_ms % policy.balancer.shedding_interval_ms:
        return Verdict(subject=CLUSTER, reason=Reason.NOT_THIS_INTERVAL, by=policy.balancer.shedding_interval_option)
    return too_few_brokers(view, "shed") if len(view.brokers) < 2 else None


def _movable(
    chosen: Iterable[Unload],
    protected: ProtectedBundles,
    grace_view: ClusterView | None,
    moving: Set[str] = frozenset(),
) -> tuple[list[Unload], list[Verdict]]:
    """Those of *chosen* that may be issued, and why the others may not.

    *grace_view* says which bundles are within their grace period; None: that does not matter.  *moving*: bundles that
    the membership rebalancer moves.
    """
    movable, verdicts = list[Unload](), list[Verdict]()
    for unload in chosen:
        against = protected.verdict(unload.bundle)
        if against is None and unload.bundle in moving:
            against = Verdict(subject=unload.bundle, reason=Reason.IN_FLIGHT, by="membership", detail="is being moved")
        if against is None and grace_view is not None and not unload.ignores_grace:
            against = in_grace(grace_view, unload.bundle)
        if against is None:
            movable.append(unload)
        else:
            verdicts.append(against)
    return movable, verdicts


def _as_planned(policy: Policy) -> _Place:
    """Unloads go where they say."""

    def where(view: ClusterView, unload: Unload, memory: StrategyMemory) -> tuple[str, StrategyMemory, list[Verdict]]:
        destination, verdicts = place_as_planned(view, unload, policy)
        return destination, memory, verdicts

    return where


def _by_placement(shedder_view: ClusterView, inputs: _Inputs) -> _Place:
    """The placement chooses where unloads go, but for final ones; *shedder_view* is what the shedder saw."""
    seed, policy = inputs.memory.seed, inputs.issuing.policy

    def where(view: ClusterView, unload: Unload, memory: StrategyMemory) -> tuple[str, StrategyMemory, list[Verdict]]:
        if not unload.final:
            return place(view, unload, memory, seed, policy)
        # TransferShedder, as in Pulsar, applied the filters to each bundle without the other unloads of this cycle.
        destination, verdicts = place_as_planned(view if unload.in_order else shedder_view, unload, policy)
        return destination, memory, verdicts

    return where


def _issue(view: ClusterView, chosen: Sequence[Unload], where: _Place, inputs: _Inputs, *, planned: bool) -> _Issued:
    """Place each of *chosen* by *where*, and issue those that budgets allow.

    *planned*: all of them are one plan, so each counts at its destination before the next one is placed.
    When the cluster's budget is used up, nothing more is placed: with 1,000 overloaded brokers that would take minutes.
    """
    next_view, placement, issuing = view, inputs.memory.placement, inputs.issuing
    ledger, policy = issuing.ledger, issuing.policy
    commands, verdicts, taken, held = list[Command](), list[Verdict](), list[Unload](), list[Unload]()
    for turn, unload in enumerate(chosen):
        if ledger.exhausted:
            ledger.hold_back([later.bundle for later in chosen[turn:]])
            held += chosen[turn:]
            break
        refused = ledger.rejects_any_destination(
            unload.bundle, charge_for(view, "unload", unload.bundle, unload.source)
        )
        if refused is None:
            destination, placement, found = where(next_view, unload, placement)
            verdicts += found
            if not destination:
                continue
            command = _command(view.as_of_ms, unload, destination, issuing)
            refused = ledger.try_charge(unload.bundle, charge(view, command))
            if refused is None:
                commands.append(command)
                taken.append(unload)
                counts = planned or counts_at_once(unload, policy)
                next_view = sent(next_view, unload.bundle, destination, counts=counts)
        if refused is Rejection.RETRY:
            held.append(unload)
    return _Issued(next_view, placement, tuple(commands), tuple(verdicts), tuple(taken), tuple(held))


def _command(interval: int, unload: Unload, destination: str, issuing: Issuing) -> Command:
    bundle, source, policy, controls = unload.bundle, unload.source, issuing.policy, issuing.controls
    return command_for("unload", bundle, source, unload.why, interval, policy, controls, destination=destination)


def _membership_moves(
    view: ClusterView, memory: Memory, policy: Policy
) -> tuple[tuple[Unload, ...], StrategyMemory, tuple[Verdict, ...]]:
    """The membership rebalancer's unloads, its next memory, and its verdicts."""
    if policy.membership is None:
        return (), memory.membership, ()
    found, membership = unloads_by(policy.membership, view, memory.membership)
    return tuple(found.unloads), membership, tuple(found.verdicts)


def _whole_reason(decision: UnloadDecision, verdicts: Sequence[Verdict]) -> Reason:
    """Why nothing is unloaded.

    If the shedder said RecentlyUnloaded because of a guardrail, the reason is that guardrail's, as in *verdicts*.
    """
    if decision.reason is not Reason.RECENTLY_UNLOADED or any(v.reason is decision.reason for v in verdicts):
        return decision.reason
    pairs = zip(decision.verdicts, verdicts, strict=True)
    return next((after.reason for before, after in pairs if before.reason is decision.reason), decision.reason)
