"""The unloads of an interval: the membership rebalancer and the shedder choose bundles, the placement destinations."""

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from controller.cycle.checked import CheckedPlacement, relieving_of, unloads_by
from controller.cycle.commands import Issuing, charge, charge_for, command_for
from controller.cycle.guardrails.budgets import Rejection
from controller.cycle.guardrails.grace import in_grace
from controller.cycle.guardrails.protected import ProtectedBundles
from controller.cycle.ordered import ordered_unloads, why_void, without_drained
from controller.cycle.placing import counts_at_once, place, place_as_ordered, place_as_planned, sent
from controller.cycle.policy import Policy
from controller.cycle.refusals import switched_off, too_few_brokers
from controller.model.decision import CLUSTER, Command, LazyVerdicts, Reason, Unload, UnloadDecision, Verdict
from controller.model.load import Bools, ClusterView
from controller.model.memory import Memory
from controller.model.strategy_memory import StrategyMemory

#: So often a shedder is asked again without the bundles of brokers of which a budget would hold back half an exchange;
#: then once without the bundles of all brokers that a budget holds something back of.
_ASKED_AGAIN: Final = 3


#: (view, unload) -> its destination, "": it stays; and verdicts.
_Where: TypeAlias = Callable[[ClusterView, Unload], tuple[str, list[Verdict]]]


@dataclass(slots=True, kw_only=True)
class Unloads:
    """The unloads of an interval."""

    #: The memory after the decision, as if all chosen unloads were issued.
    memory: Memory
    verdicts: list[Verdict]
    commands: list[Command] = field(default_factory=list)
    #: The shedder's unloads that became commands, and those that a budget holds back for a later interval.
    taken: list[Unload] = field(default_factory=list)
    held: list[Unload] = field(default_factory=list)
    #: Whether a budget holds back a move of the membership rebalancer for a later interval.
    moves_held: bool = False


def unloads_of(
    view: ClusterView,
    untouchable: ProtectedBundles,
    splitting: set[str],
    memory: Memory,
    issuing: Issuing,
) -> Unloads:
    """The unloads of the interval with their destinations, the memory after them, and why everything else stays.

    While a plan is being applied strategies are not asked, so that nothing disturbs it.  Where guardrails hold all of
    it back, or its check is void, the shedder relieves brokers that cannot wait, and does nothing else.
    """
    orders = issuing.controls.orders
    if orders is None or not orders.hold_at(view.as_of_ms):
        return _of_strategies(view, untouchable, splitting, memory, issuing)
    ordered = _ordered(view, untouchable, splitting, memory, issuing)
    is_idle = orders.held_back or why_void(view, memory, orders, issuing.policy.period_ms)
    relieving = None if ordered.commands or not is_idle else _relieving(view, issuing.policy)
    if relieving is None:
        return ordered
    unloads = _of_strategies(view, untouchable, splitting, memory, issuing._replace(policy=relieving))
    unloads.verdicts = [*ordered.verdicts, *unloads.verdicts]
    return unloads


def _of_strategies(
    view: ClusterView,
    untouchable: ProtectedBundles,
    splitting: set[str],
    memory: Memory,
    issuing: Issuing,
) -> Unloads:
    """The unloads that strategies choose."""
    policy = issuing.policy
    none = _why_none(view, policy)
    if none is not None:
        return Unloads(memory=memory, verdicts=[none])
    # Shedders know one reason to leave a bundle where it is; the verdicts then tell the guardrail's.
    untouchable = untouchable.and_split(splitting)
    staying = view.with_guarded(untouchable.mask)
    moves, membership, about_brokers = _membership_moves(staying, memory, policy)
    if moves:
        # The shedder takes none of them once more.
        taken = np.zeros(len(view.bundles), np.bool_)
        taken[[view.bundles.code_of[unload.bundle] for unload in moves]] = True
        staying = staying.with_guarded(taken)
    told = untouchable
    if policy.balancer.waits_for_results:
        told = untouchable.and_bundles_of({c.source for c in memory.in_flight.values() if c.action == "unload"})
        staying = staying.with_guarded(told.mask)
    staying = without_drained(staying, issuing.controls)
    found, shedding, staying = _whole_exchanges(view, staying, moves, memory, issuing)
    verdicts = told.explain(found.verdicts)
    if not found.unloads:
        reason = _whole_reason(found, verdicts)
        verdicts.append(Verdict(subject=CLUSTER, reason=reason, by=type(policy.shedder).__name__))
    verdicts += about_brokers
    unloads = Unloads(memory=replace(memory, shedder=shedding, membership=membership), verdicts=verdicts)
    free = _Free(untouchable, splitting, verdicts, graced=view)
    moves = tuple(free.of(moves))
    free = _Free(told, splitting, verdicts, graced=view, moving={unload.bundle for unload in moves})
    view = _moved(view, moves, _as_planned(issuing.policy), unloads, issuing)
    chosen = free.of(found.unloads)
    _shed(view, staying, chosen, unloads, issuing)
    return unloads


def _whole_exchanges(
    view: ClusterView, staying: ClusterView, moves: Sequence[Unload], memory: Memory, issuing: Issuing
) -> tuple[UnloadDecision, StrategyMemory, ClusterView]:
    """What the shedder decides about *staying*, its next memory, and the view that it saw.

    A plan can exchange bundles: a broker gives some and gets others.  Where a budget would hold back what such a broker
    gives, and issue what it gets, the broker would only get fuller.  Then the shedder is asked once more, with all
    bundles of that broker where they are.  *moves*, of the membership rebalancer, use budgets before the shedder.
    """
    shedder, spent, asked = issuing.policy.shedder, set[str](), staying
    found, shedding = unloads_by(shedder, staying, memory.shedder)
    for every in (*([False] * _ASKED_AGAIN), True):
        halves = _halves(view, [*moves, *found.unloads], issuing, every=every)
        if not halves:
            break
        spent |= halves
        named = np.array([name in spent for name in view.brokers.names], np.bool_)
        kept = named[view.bundles.broker] & view.bundles.owned & ~staying.recently_unloaded
        asked = staying.with_guarded(kept)
        found, shedding = unloads_by(shedder, asked, memory.shedder)
        found = replace(found, verdicts=_with_budgets(found.verdicts, view, kept))
    return found, shedding, asked


def _halves(view: ClusterView, unloads: Sequence[Unload], issuing: Issuing, *, every: bool) -> set[str]:
    """Brokers that would get bundles by a plan while a budget holds back what they give by it.

    *every*: all brokers that something is held back of, if there is one that would get bundles.
    """
    if not any(unload.in_order for unload in unloads):
        return set()

    tried = _issue(
        view, unloads, _as_planned(issuing.policy), issuing._replace(ledger=issuing.ledger.copy()), planned=True
    )
    held = {unload.source for unload in tried.held if unload.in_order}
    halves = held & {command.destination for command in tried.commands}
    return held if halves and every else halves


def _as_planned(policy: Policy) -> _Where:
    def where(view: ClusterView, unload: Unload) -> tuple[str, list[Verdict]]:
        return place_as_planned(view, unload, policy)

    return where


def _with_budgets(verdicts: Sequence[Verdict], view: ClusterView, kept: Bools) -> LazyVerdicts:
    """*verdicts*, which tell of bundles that are *kept* (bundles,) where they are that a budget is the reason."""
    rows, names = view.bundles.code_of, view.brokers.names

    def told(verdict: Verdict) -> Verdict:
        row = rows.get(verdict.subject) if verdict.reason is Reason.RECENTLY_UNLOADED else None
        if row is None or not kept[row]:
            return verdict
        broker = names[int(view.bundles.broker[row])]
        detail = f"budgets let {broker} give less than was planned, so the plan was made without its bundles"
        return Verdict(subject=verdict.subject, reason=Reason.BUDGET, by="guardrails", detail=detail)

    return LazyVerdicts(lambda: map(told, verdicts))


def _ordered(
    view: ClusterView,
    untouchable: ProtectedBundles,
    splitting: set[str],
    memory: Memory,
    issuing: Issuing,
) -> Unloads:
    """The unloads of a plan that is being applied."""
    chosen, verdicts = ordered_unloads(view, memory, issuing.controls, issuing.policy.period_ms)
    unloads = Unloads(memory=memory, verdicts=verdicts)
    if len(view.brokers) < 2:
        unloads.verdicts.append(too_few_brokers(view, "plan"))
        return unloads
    free = _Free(untouchable, splitting, unloads.verdicts)
    drained = {*issuing.controls.drained}

    def where(view: ClusterView, unload: Unload) -> tuple[str, list[Verdict]]:
        return place_as_ordered(view, unload, issuing.policy, must_leave=unload.source in drained)

    _moved(view, free.of(chosen), where, unloads, issuing)
    return unloads


def _relieving(view: ClusterView, policy: Policy) -> Policy | None:
    """*policy*, of which no more is done than relieve brokers that cannot wait for a plan; None: there are none."""
    shedder = relieving_of(policy.shedder, view)
    return None if shedder is None else replace(policy, shedder=shedder, membership=None)


def _why_none(view: ClusterView, policy: Policy) -> Verdict | None:
    """Why nothing is unloaded in this interval, whatever the load is; None if unloads are possible."""
    if not policy.shed:
        return switched_off("shed")
    if view.as_of_ms % policy.balancer.shedding_interval_ms:
        return Verdict(subject=CLUSTER, reason=Reason.NOT_THIS_INTERVAL, by=policy.balancer.shedding_interval_option)
    return too_few_brokers(view, "shed") if len(view.brokers) < 2 else None


class _Free(NamedTuple):
    """Whether a chosen unload may be issued; if not, it adds a verdict."""

    untouchable: ProtectedBundles
    splitting: Set[str]
    verdicts: list[Verdict]
    #: Its ``recently_unloaded`` bundles are left alone; None: a person's plan may move them.
    graced: ClusterView | None = None
    #: Bundles that the membership rebalancer moves.
    moving: Set[str] = frozenset()

    def of(self, chosen: Iterable[Unload]) -> list[Unload]:
        """Those of *chosen* that may be issued."""
        return [unload for unload in chosen if self(unload)]

    def __call__(self, unload: Unload) -> bool:
        bundle = unload.bundle
        guarded = self.untouchable.verdict(bundle)
        if guarded is None and bundle in self.splitting:
            guarded = Verdict(subject=bundle, reason=Reason.IN_FLIGHT, by="split", detail="is being split")
        if guarded is None and bundle in self.moving:
            guarded = Verdict(subject=bundle, reason=Reason.IN_FLIGHT, by="membership", detail="is being moved")
        if guarded is None and self.graced is not None and not unload.ignores_grace:
            guarded = in_grace(self.graced, bundle)
        self.verdicts.extend([] if guarded is None else [guarded])
        return guarded is None


def _moved(
    view: ClusterView,
    moves: Sequence[Unload],
    where: _Where,
    unloads: Unloads,
    issuing: Issuing,
) -> ClusterView:
    """Issue those of *moves* that budgets and *where* allow, to the destinations that they name.

    Returns the view after them.
    """
    issued = _issue(view, moves, where, issuing, planned=True)
    unloads.commands += issued.commands
    unloads.verdicts += issued.verdicts
    unloads.moves_held = bool(issued.held)
    return issued.view


def _shed(
    view: ClusterView,
    seen: ClusterView,
    chosen: Sequence[Unload],
    unloads: Unloads,
    issuing: Issuing,
) -> None:
    """Place and issue the shedder's *chosen* unloads, in its order, as far as budgets allow; *seen* is its view."""
    placing, seed, policy = unloads.memory.placement, unloads.memory.seed, issuing.policy

    def where(view: ClusterView, unload: Unload) -> tuple[str, list[Verdict]]:
        nonlocal placing
        if unload.final:
            # TransferShedder, as in Pulsar, applied the filters to each bundle without the other unloads of this cycle.
            return place_as_planned(view if unload.in_order else seen, unload, policy)
        destination, placing, verdicts = place(view, unload, placing, seed, policy)
        return destination, verdicts

    issued = _issue(view, chosen, where, issuing, planned=False)
    unloads.commands += issued.commands
    unloads.verdicts += issued.verdicts
    unloads.taken, unloads.held = issued.taken, issued.held
    placing = CheckedPlacement(policy.placement).memory_checked(unloads.memory.placement, placing)
    unloads.memory = replace(unloads.memory, placement=placing)


@dataclass(slots=True, kw_only=True)
class _Issued:
    """Chosen unloads, issued or held back."""

    #: The view in which the issued bundles are on their way.
    view: ClusterView
    commands: list[Command] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    #: Unloads that became commands, and those that a budget holds back for a later interval.
    taken: list[Unload] = field(default_factory=list)
    held: list[Unload] = field(default_factory=list)


def _issue(
    view: ClusterView,
    chosen: Sequence[Unload],
    where: _Where,
    issuing: Issuing,
    *,
    planned: bool,
) -> _Issued:
    """Place each of *chosen* by *where*, and issue those that budgets allow.

    *planned*: all of them are one plan, so each counts at its destination before the next one is placed.
    When the cluster's budget is used up, nothing more is placed: with 1,000 overloaded brokers that would take minutes.
    """
    issued, ledger = _Issued(view=view), issuing.ledger
    for turn, unload in enumerate(chosen):
        if ledger.exhausted:
            ledger.hold_back([later.bundle for later in chosen[turn:]])
            issued.held += chosen[turn:]
            break
        held = ledger.rejects_any_destination(unload.bundle, charge_for(view, "unload", unload.bundle, unload.source))
        if held is None:
            destination, verdicts = where(issued.view, unload)
            issued.verdicts += verdicts
            if not destination:
                continue
            command = _command(view, unload, destination, issuing)
            held = ledger.try_charge(unload.bundle, charge(view, command))
            if held is None:
                issued.commands.append(command)
                issued.taken.append(unload)
                counts = planned or counts_at_once(unload, issuing.policy)
                issued.view = sent(issued.view, unload.bundle, destination, counts=counts)
        if held is Rejection.RETRY:
            issued.held.append(unload)
    return issued


def _command(view: ClusterView, unload: Unload, destination: str, issuing: Issuing) -> Command:
    bundle, source, at = unload.bundle, unload.source, view.as_of_ms
    policy, controls = issuing.policy, issuing.controls
    return command_for("unload", bundle, source, unload.why, at, policy, controls, destination=destination)


def _membership_moves(
    view: ClusterView, memory: Memory, policy: Policy
) -> tuple[tuple[Unload, ...], StrategyMemory, tuple[Verdict, ...]]:
    """The membership rebalancer's unloads, its next memory, and its verdicts."""
    if policy.membership is None:
        return (), memory.membership, ()
    found, membership = unloads_by(policy.membership, view, memory.membership)
    return tuple(found.unloads), membership, tuple(found.verdicts)


def _whole_reason(found: UnloadDecision, verdicts: Sequence[Verdict]) -> Reason:
    """Why nothing is unloaded.

    If the shedder said RecentlyUnloaded because of a guardrail, the reason is that guardrail's, as in *verdicts*.
    """
    if found.reason is not Reason.RECENTLY_UNLOADED or any(v.reason is found.reason for v in verdicts):
        return found.reason
    pairs = zip(found.verdicts, verdicts, strict=True)
    return next((now.reason for before, now in pairs if before.reason is found.reason), found.reason)
