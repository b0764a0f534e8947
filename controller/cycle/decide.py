"""One cycle, a pure function: the view at T and the memory in; the decision and the next memory out.

    settle results -> split -> shed -> place, within budgets -> guardrails

Strategies always run and their averages are always updated; guardrails then decide whether anything is issued.  So a
controller that is paused, stale or warming up explains what it would have done, and does it as soon as it may.

Pulsar: ModularLoadManagerImpl.doLoadShedding and checkNamespaceBundleSplit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from controller.aggregate.snapshot import Snapshot
from controller.aggregate.view import assemble
from controller.cycle.approval import reviewable, ruled_on, summary_of_approval
from controller.cycle.approval_check import DecisionCheck
from controller.cycle.checked import observed_by, remembered
from controller.cycle.choosing import made_of
from controller.cycle.commands import Issuing, charge
from controller.cycle.dry_run import of_dry_run, without_dry_run
from controller.cycle.guardrails.breaker import watched, with_failed_predictions
from controller.cycle.guardrails.budgets import Ledger
from controller.cycle.guardrails.catching_up import shares_budget, within_window
from controller.cycle.guardrails.fatal_bundles import summary_of_fatal, watched_deaths
from controller.cycle.guardrails.freeze import watched_roster
from controller.cycle.guardrails.listing import Rooms, about_unconfirmed, followed, summary_of
from controller.cycle.guardrails.own_balancing import BalancingRule, watched_balancing
from controller.cycle.ordered import not_approved, with_controls
from controller.cycle.outcomes import on_their_way, settle
from controller.cycle.policy import MINUTE_MS, Policy
from controller.cycle.protected import ProtectedBundles
from controller.cycle.refusals import refusal_of
from controller.cycle.stored_memory import of_strategies
from controller.model.controls import Controls
from controller.model.decision import Command, Decision, Reason, Unload, Verdict
from controller.model.errors import StrategyError
from controller.model.load import ClusterView
from controller.model.memory import InFlight, Memory
from controller.model.records import CommandResult


def view_of(snapshots: Sequence[Snapshot], memory: Memory, policy: Policy) -> ClusterView:
    """The view of the interval of *snapshots*; *memory* adds recently unloaded bundles and those sent to brokers."""
    interval = snapshots[0].interval
    sent = on_their_way(memory.in_flight, [result for snapshot in snapshots for result in snapshot.results])
    oldest = interval - policy.balancer.report_ttl_ms
    return assemble(snapshots, _unloaded_within_grace(memory, interval, policy), sent, oldest_report=oldest)


def decide(
    view: ClusterView, results: Sequence[CommandResult], memory: Memory, controls: Controls, policy: Policy
) -> tuple[Decision, Memory]:
    """Decide interval ``view.as_of_ms``.  Same inputs, same decision, on any machine.

    *view* is made of *memory* ``without_dry_run``.  Raises StrategyError, which names the strategy and the interval,
    where a strategy fails.
    """
    try:
        return _decided(view, results, memory, controls, policy)
    except StrategyError as error:
        interval = f"{np.datetime64(view.as_of_ms // 1000, 's')}Z"
        raise StrategyError(error.strategy, error.flaw, interval) from error


def _decided(
    view: ClusterView, results: Sequence[CommandResult], memory: Memory, controls: Controls, policy: Policy
) -> tuple[Decision, Memory]:
    interval, policy = view.as_of_ms, with_controls(policy, controls)
    memory = without_dry_run(memory, controls)
    memory = followed(
        memory, results, view, resumed_ms=controls.resumed_ms, limits=policy.limits, patience=policy.patience
    )
    memory, verdicts = settle(memory, results, interval, policy.patience)
    memory, restarted = of_strategies(memory, policy)
    memory, ruled = ruled_on(memory, controls, interval)
    verdicts += [*restarted, *ruled, *_about_missing(view, policy), *not_approved(controls)]
    memory = watched_deaths(memory, view, policy.limits, policy.period_ms, controls.resumed_ms)
    view, rooms, unconfirmed = _without_blocked(view, memory, policy)
    verdicts += unconfirmed
    memory = _of_active_brokers(memory, view, policy)
    gap = memory.last_interval is not None and interval - memory.last_interval > policy.period_ms
    memory = replace(memory, samples=1 if gap else memory.samples + 1)
    protected = ProtectedBundles.of(view, memory, policy)
    verdicts += protected.notices
    memory, tripped = watched(memory, interval, controls, policy.limits)
    orders = controls.orders if controls.orders is not None and controls.orders.hold_at(interval) else None
    balancing, brokers_balance = watched_balancing(memory, view, _balancing_rule(policy))
    roster, unsettled = watched_roster(memory.roster, view, policy.period_ms, policy.limits, orders)
    decided_at, window_ms = controls.decided_at(interval), policy.limits.window_ms
    issued = {k: each for k, each in memory.issued.items() if within_window(each, interval, decided_at, window_ms)}
    memory = replace(memory, roster=roster, balancing=balancing, issued=issued)

    shared = shares_budget(issued.values(), interval, decided_at, policy.period_ms)
    limits = reviewable(policy.limits, controls)
    ledger = Ledger(limits, issued.values(), memory.in_flight.values(), shared, rooms)
    issuing = Issuing(policy, controls, ledger)
    forbidden = refusal_of(view, memory, issuing, gap=gap, brokers_balance=brokers_balance)
    refusal = forbidden or unsettled or tripped
    made = made_of(DecisionCheck(view, protected, memory, issuing), refusal)
    verdicts = of_dry_run([*verdicts, *made.verdicts], memory) + made.ledger.verdicts()
    if refusal is not None:
        verdicts.append(refusal)
    memory = with_failed_predictions(_without_void_predictions(made.memory, made.commands, made.own), interval)
    memory = replace(memory, last_interval=interval, decided_at_ms=controls.decided_at_ms)
    memory = _with_commands(memory, view, made.commands, issuing)
    notes = [*_notes(memory, tripped, unconfirmed), *(verdict.detail for verdict in restarted)]
    notes += [*summary_of_approval(verdicts), *controls.not_approved]
    summary = "; ".join([_summary(view, made.commands, made.held_back, refusal, waits=bool(memory.proposed)), *notes])
    decision = Decision(
        interval=interval, commands=made.commands, verdicts=tuple(verdicts), summary=summary, outlook=made.outlook
    )
    return decision, memory


def _balancing_rule(policy: Policy) -> BalancingRule:
    return BalancingRule(shed=policy.shed, split=policy.split, period_ms=policy.period_ms, limits=policy.limits)


def _without_blocked(view: ClusterView, memory: Memory, policy: Policy) -> tuple[ClusterView, Rooms, list[Verdict]]:
    """*view*, in which brokers that list nothing of what they got sent no data; what each may get; and verdicts."""
    rooms = Rooms(memory.destinations, memory.in_flight.values(), policy.limits, view.as_of_ms)
    blocked = rooms.blocked()
    unblocked_view = view.without_data({*blocked}) if blocked else view
    return unblocked_view, rooms, about_unconfirmed(memory, blocked, policy.limits)


def _about_missing(view: ClusterView, policy: Policy) -> list[Verdict]:
    """A verdict on each broker without data."""
    verdicts = []
    for name in view.missing:
        detail = "no complete sweep of this interval"
        if (last := view.outdated.get(name)) is not None:
            age, ttl = (view.as_of_ms - last) / MINUTE_MS, policy.balancer.report_ttl_ms / MINUTE_MS
            detail = f"its load report is {age:.0f} min old and stands still; reports count for {ttl:.0f} min"
        verdicts.append(Verdict(subject=name, reason=Reason.OUTDATED_DATA, by="roster", detail=detail))
    return verdicts


def _without_void_predictions(memory: Memory, commands: Sequence[Command], own: Sequence[Unload]) -> Memory:
    """*memory* without what the shedder expects where moves of others are under way; *own*: those that it chose.

    Others are an operator's plan and the membership rebalancer.
    """
    chosen = {unload.bundle for unload in own}
    others = [each for each in commands if each.action == "unload" and each.bundle not in chosen]
    if not others:
        return memory
    brokers = {name for each in others for name in (each.source, each.destination)}
    bundles = {each.bundle for each in others}
    return replace(memory, shedder=remembered(memory.shedder, "invalidate_predictions", bundles, brokers))


def _with_commands(memory: Memory, view: ClusterView, commands: Sequence[Command], issuing: Issuing) -> Memory:
    """*memory* with *commands* issued: in flight, counted by budgets, and their bundles in the grace period."""
    at_ms = issuing.controls.decided_at_ms
    interval, policy, table = view.as_of_ms, issuing.policy, view.bundles
    unloaded = {
        mode: {each.bundle: interval for each in commands if each.action == "unload" and each.mode == mode}
        for mode in ("active", "dry_run")
    }
    in_flight = {each.id: InFlight.of(each, idle=table.is_idle(table.code_of[each.bundle])) for each in commands}
    return replace(
        memory,
        recently_unloaded=_within_grace(memory.recently_unloaded, interval, policy) | unloaded["active"],
        dry_run_unloaded=_within_grace(memory.dry_run_unloaded, interval, policy) | unloaded["dry_run"],
        in_flight={**memory.in_flight, **in_flight},
        issued={**memory.issued, **{command.id: replace(charge(view, command), at_ms=at_ms) for command in commands}},
    )


def _of_active_brokers(memory: Memory, view: ClusterView, policy: Policy) -> Memory:
    """Let memories forget brokers that left, and let shedder and placement see the view if they observe.

    Pulsar: onActiveBrokersChange.
    """
    active = (*view.brokers.names, *view.missing)
    memory = replace(
        memory,
        shedder=remembered(memory.shedder, "keep_brokers", active),
        placement=remembered(memory.placement, "keep_brokers", active),
    )
    return replace(
        memory,
        shedder=observed_by(policy.shedder, view, memory.shedder),
        placement=observed_by(policy.placement, view, memory.placement),
    )


def _unloaded_within_grace(memory: Memory, interval: int, policy: Policy) -> dict[str, int]:
    real, dry_run = (
        _within_grace(each, interval, policy) for each in (memory.recently_unloaded, memory.dry_run_unloaded)
    )
    return dry_run | real


def _within_grace(unloaded: Mapping[str, int], interval: int, policy: Policy) -> dict[str, int]:
    since = interval - policy.balancer.grace_period_minutes * MINUTE_MS
    return {bundle: t for bundle, t in unloaded.items() if t >= since}


def _notes(memory: Memory, tripped: Verdict | None, unconfirmed: Sequence[Verdict]) -> list[str]:
    breaker = "" if tripped is None else f"{tripped.reason}: {tripped.detail}"
    return [*filter(None, [breaker, summary_of(unconfirmed), summary_of_fatal(memory)])]


def _summary(
    view: ClusterView, commands: Sequence[Command], held_back: int, refusal: Verdict | None, *, waits: bool
) -> str:
    scope = f"{len(view.bundles)} bundles on {len(view.brokers)} brokers"
    if refusal is not None:
        return f"{scope}: {refusal.reason}, {held_back} commands held back"
    counts: Mapping[str, int] = {a: sum(c.action == a for c in commands) for a in ("split", "unload")}
    done = ", ".join(f"{n} {action}s" for action, n in counts.items() if n)
    if held_back:
        return f"{scope}: {done or 'nothing issued'}, {held_back} held back by budgets"
    return f"{scope}: {done or ('nothing issued' if waits else 'nothing to do')}"
