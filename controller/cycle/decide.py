"""One cycle, pure: what the cluster looks like at T, and what is remembered, in; what to do, and why, out.

    settle results -> split -> shed -> place -> guardrails

Strategies always run and their memory always moves; guardrails then decide whether anything is issued.  So a paused,
stale or warming-up controller explains what it would have done.

Pulsar: ModularLoadManagerImpl.doLoadShedding and checkNamespaceBundleSplit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from controller.aggregate.snapshot import Snapshot
from controller.aggregate.view import assemble
from controller.cycle.commands import in_flight_entry
from controller.cycle.guardrails import CLUSTER, refusal_of
from controller.cycle.outcomes import on_their_way, resting, settle
from controller.cycle.policy import MINUTE_MS, Policy
from controller.cycle.splitting import splits_of
from controller.cycle.unloading import unloads_of
from controller.cycle.untouchable import Untouchable
from controller.model.controls import Controls
from controller.model.decision import Command, Decision, Reason, Verdict
from controller.model.load import ClusterView
from controller.model.memory import Memory, UsageHistory
from controller.model.records import CommandResult
from controller.strategies.protocols import Observer


def view_of(snapshots: Sequence[Snapshot], memory: Memory, policy: Policy) -> ClusterView:
    """What the *snapshots* of one interval come to, seen with *memory*: what stays put, what is on its way."""
    interval = snapshots[0].interval
    sent = on_their_way(memory.in_flight, [result for snapshot in snapshots for result in snapshot.results])
    return assemble(snapshots, _within_grace(memory, interval, policy), sent)


def decide(
    view: ClusterView, results: Sequence[CommandResult], memory: Memory, controls: Controls, policy: Policy
) -> tuple[Decision, Memory]:
    """Decide interval ``view.as_of_ms``.  Same inputs, same decision, on any machine."""
    interval = view.as_of_ms
    memory, verdicts = settle(memory, results, interval, policy.patience)
    memory, anew = _of_these_strategies(memory, policy)
    verdicts += anew
    memory = _of_active_brokers(memory, (*view.brokers.names, *view.missing))
    if isinstance(policy.placement, Observer):
        memory = replace(memory, placement=policy.placement.observed(view, memory.placement))
    gap = memory.last_interval is not None and interval - memory.last_interval > policy.period_ms
    samples = 1 if gap else memory.samples + 1
    verdicts += [
        Verdict(subject=name, reason=Reason.OUTDATED_DATA, by="roster", detail="no complete sweep of this interval")
        for name in view.missing
    ]
    in_flight = (command.bundle for command in memory.in_flight.values())
    untouchable = Untouchable.of(view, in_flight, policy.excluded, resting(memory.failed, interval, policy.patience))

    splits, memory, more = splits_of(view, untouchable, memory, policy, controls)
    verdicts += more
    membership = memory.membership
    unloads, memory, more = unloads_of(view, untouchable, {c.bundle for c in splits}, memory, policy, controls)
    verdicts += more

    commands = (*splits, *unloads)
    refusal = refusal_of(view, controls, samples, gap=gap, policy=policy)
    if refusal is not None:
        verdicts.append(refusal)
        commands = ()
        # Who came and went is looked at again when something may be done about it.
        memory = replace(memory, membership=membership)
    memory = replace(
        memory,
        last_interval=interval,
        samples=samples,
        recently_unloaded=_within_grace(memory, interval, policy)
        | {c.bundle: interval for c in commands if c.action == "unload"},
        in_flight={**memory.in_flight, **{c.id: in_flight_entry(c) for c in commands}},
    )
    summary = "; ".join(
        [_summary(view, commands, len(splits) + len(unloads), refusal), *(verdict.detail for verdict in anew)]
    )
    return Decision(interval=interval, commands=commands, verdicts=tuple(verdicts), summary=summary), memory


def _of_these_strategies(memory: Memory, policy: Policy) -> tuple[Memory, list[Verdict]]:
    """Start a strategy's memory anew where the journal holds another strategy's: the operator changed it."""
    new = policy.initial_memory(memory.seed)
    begins, verdicts = {}, []
    for role, strategy in (
        ("shedder", policy.shedder),
        ("placement", policy.placement),
        ("split", policy.split_policy),
        ("membership", policy.membership),
    ):
        held, initial = getattr(memory, role), getattr(new, role)
        if held.kind != initial.kind:
            begins[role] = initial
            detail = f"{role}: memory begins anew, the journal's is another strategy's ({held.kind})"
            by = role if strategy is None else type(strategy).__name__
            verdicts.append(Verdict(subject=CLUSTER, reason=Reason.STARTED_ANEW, by=by, detail=detail))
    return replace(memory, **begins), verdicts


def _of_active_brokers(memory: Memory, active: tuple[str, ...]) -> Memory:
    """Forget the history of brokers that left.  Pulsar: onActiveBrokersChange."""
    shedder, placement = memory.shedder, memory.placement
    return replace(
        memory,
        shedder=shedder.only(active) if isinstance(shedder, UsageHistory) else shedder,
        placement=placement.only(active) if isinstance(placement, UsageHistory) else placement,
    )


def _within_grace(memory: Memory, interval: int, policy: Policy) -> dict[str, int]:
    since = interval - policy.balancer.grace_period_minutes * MINUTE_MS
    return {bundle: t for bundle, t in memory.recently_unloaded.items() if t >= since}


def _summary(view: ClusterView, commands: Sequence[Command], wished: int, refusal: Verdict | None) -> str:
    looked = f"{len(view.bundles)} bundles on {len(view.brokers)} brokers"
    if refusal is not None:
        return f"{looked}: {refusal.reason}, {wished} commands held back"
    counts: Mapping[str, int] = {a: sum(c.action == a for c in commands) for a in ("split", "unload")}
    done = ", ".join(f"{n} {action}s" for action, n in counts.items() if n)
    return f"{looked}: {done or 'nothing to do'}"
