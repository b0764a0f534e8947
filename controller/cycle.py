"""One cycle, pure: what the cluster looks like at T, and what is remembered, in; what to do, and why, out.

    settle results -> split -> shed -> place -> guardrails

Strategies always run and their memory always moves; guardrails then decide whether anything is issued.  So a paused,
stale or warming-up controller explains what it would have done.

Pulsar: ModularLoadManagerImpl.doLoadShedding and checkNamespaceBundleSplit.
"""

import uuid
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from controller.aggregate.outcomes import Patience, on_their_way, resting, settle
from controller.aggregate.snapshot import Snapshot
from controller.aggregate.untouchable import Untouchable
from controller.aggregate.view import assemble
from controller.model.bundle_ranges import equal_cuts
from controller.model.controls import Controls
from controller.model.decision import Command, Decision, Reason, Split, Unload, UnloadDecision, Verdict
from controller.model.load import ClusterView
from controller.model.memory import InFlight, Memory, NoMemory, StrategyMemory, UsageHistory
from controller.model.names import parse_bundle
from controller.model.option import option
from controller.model.records import CommandResult
from controller.strategies.filters.modular_select_broker import ModularSelectBroker, candidates
from controller.strategies.protocols import Filter, Observer, Placement, Shedder, SplitAlgorithm, SplitPolicy
from controller.strategies.splitting.cutting import cut
from controller.strategies.splitting.range_equally_divide import RangeEquallyDivide
from controller.strategies.splitting.specified_positions_divide import SpecifiedPositionsDivide

#: Commands are named in a space of their own: uuid5 of cluster / interval / action / bundle.
_COMMANDS = uuid.UUID("6f3f9d1e-6d0b-5c5e-9f62-7b1f6f2f4f10")
_MINUTE_MS = 60_000
_CLUSTER = "cluster"


@dataclass(frozen=True, kw_only=True)
class BalancerOptions:
    """What broker.conf says about balancing as a whole."""

    enabled: bool = option(
        "loadBalancerEnabled", default=True, meaning="false: observe, decide and explain, but issue nothing"
    )
    shedding_interval_minutes: int = option(
        "loadBalancerSheddingIntervalMinutes", default=1, unit="min", meaning="bundles are unloaded this often"
    )
    shedding_interval_seconds: int = option(
        "trimtabSheddingIntervalSeconds",
        default=0,
        unit="s",
        meaning="if not 0, bundles are unloaded this often instead: for intervals shorter than a minute",
    )
    waits_for_results: bool = option(
        "trimtabSheddingWaitsForResults",
        default=False,
        meaning="true: a broker gives no more while unloads off it have no result, for its load still counts them",
    )
    grace_period_minutes: int = option(
        "loadBalancerSheddingGracePeriodMinutes",
        default=30,
        unit="min",
        meaning="a bundle that was unloaded stays put for so long",
    )
    unload_split_bundles: bool = option(
        "loadBalancerAutoUnloadSplitBundlesEnabled", default=True, meaning="unload the halves of a split bundle"
    )

    @property
    def shedding_interval_ms(self) -> int:
        """Bundles are unloaded at the T that are multiples of this."""
        return self.shedding_interval_seconds * 1000 or self.shedding_interval_minutes * _MINUTE_MS

    @property
    def shedding_interval_option(self) -> str:
        """The option that this comes from."""
        seconds = self.shedding_interval_seconds
        return "trimtabSheddingIntervalSeconds" if seconds else "loadBalancerSheddingIntervalMinutes"


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Everything a cycle needs besides its inputs: the strategies, and what the operator allows."""

    cluster: str
    period_ms: int
    shedder: Shedder[Any]
    placement: Placement[Any]
    split_policy: SplitPolicy[Any]
    split_algorithm: SplitAlgorithm
    #: What brokers that join or leave set off, before the shedder; None: nothing.
    membership: Shedder[Any] | None = None
    #: Which brokers a bundle may go to at all, in order; none: to every one.
    filters: tuple[Filter, ...] = ()
    selection: ModularSelectBroker = field(default_factory=ModularSelectBroker)
    balancer: BalancerOptions = field(default_factory=BalancerOptions)
    shed: bool = True
    split: bool = True
    warm_up_samples: int = 2
    command_ttl_ms: int = 300_000
    executor_timeout_ms: int = 60_000
    retry_failed_after_ms: int = 300_000
    #: With more of the brokers missing than this share nothing moves: it is the data, or the network, that is broken.
    freeze_share: float = 0.4
    #: Namespaces and bundles that are never touched.
    excluded: frozenset[str] = frozenset()

    @property
    def patience(self) -> Patience:
        """How long results are waited for, and failures are."""
        return Patience(
            lost_after_ms=self.executor_timeout_ms + 2 * self.period_ms, retry_after_ms=self.retry_failed_after_ms
        )

    def initial_memory(self, seed: int) -> Memory:
        """The memory before the first interval."""
        return Memory(
            seed=seed,
            shedder=self.shedder.initial_memory(),
            placement=self.placement.initial_memory(),
            split=self.split_policy.initial_memory(),
            membership=NoMemory() if self.membership is None else self.membership.initial_memory(),
        )


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

    splits, memory, more = _splits(view, untouchable, memory, policy, controls)
    verdicts += more
    membership = memory.membership
    unloads, memory, more = _unloads(view, untouchable, {c.bundle for c in splits}, memory, policy, controls)
    verdicts += more

    commands = (*splits, *unloads)
    refusal = _refusal(view, controls, samples, gap=gap, policy=policy)
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
        in_flight={**memory.in_flight, **{c.id: _in_flight(c) for c in commands}},
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
            verdicts.append(Verdict(subject=_CLUSTER, reason=Reason.STARTED_ANEW, by=by, detail=detail))
    return replace(memory, **begins), verdicts


def _of_active_brokers(memory: Memory, active: tuple[str, ...]) -> Memory:
    """Forget the history of brokers that left.  Pulsar: onActiveBrokersChange."""
    shedder, placement = memory.shedder, memory.placement
    return replace(
        memory,
        shedder=shedder.only(active) if isinstance(shedder, UsageHistory) else shedder,
        placement=placement.only(active) if isinstance(placement, UsageHistory) else placement,
    )


# ---- what is remembered ----


def _in_flight(command: Command) -> InFlight:
    return InFlight(
        action=command.action,
        bundle=command.bundle,
        source=command.source,
        destination=command.destination,
        interval=command.interval,
        expires_at_ms=command.expires_at_ms,
    )


def _within_grace(memory: Memory, interval: int, policy: Policy) -> dict[str, int]:
    since = interval - policy.balancer.grace_period_minutes * _MINUTE_MS
    return {bundle: t for bundle, t in memory.recently_unloaded.items() if t >= since}


# ---- split ----


def _splits(
    view: ClusterView, untouchable: Untouchable, memory: Memory, policy: Policy, controls: Controls
) -> tuple[list[Command], Memory, list[Verdict]]:
    if not policy.split:
        return [], memory, [_off("split")]
    if len(view.brokers) < 2:
        return [], memory, [_too_few_brokers(view, "split")]
    # The policy does not even see guarded bundles: one that it chose would use up its namespace's room.
    under_way = frozenset(c.bundle for c in memory.in_flight.values() if c.action == "split")
    found, moved = policy.split_policy.decide(replace(untouchable.rest(), splitting=under_way), memory.split)
    commands, verdicts = [], [*untouchable.counts("split"), *found.verdicts]
    for split in found.splits:
        command = _split_command(view, view.bundles.code_of[split.bundle], split, policy, controls)
        if isinstance(command, Verdict):
            verdicts.append(command)
        else:
            commands.append(command)
    return commands, replace(memory, split=moved), verdicts


def _split_command(view: ClusterView, row: int, split: Split, policy: Policy, controls: Controls) -> Command | Verdict:
    cuts = split.boundaries[1:-1] or cut(view, row, policy.split_algorithm)
    if isinstance(cuts, Verdict):
        return cuts
    name = parse_bundle(split.bundle)
    # Brokers compute range_equally_divide themselves; everything else is sent as positions.
    halved = policy.split_algorithm.name == RangeEquallyDivide.name and cuts == equal_cuts(name.lower, name.upper, 2)
    return _command(
        "split", split.bundle, split.broker, split.why, view.as_of_ms, policy, controls,
        algorithm=RangeEquallyDivide.name if halved else SpecifiedPositionsDivide.name,
        boundaries=() if halved else cuts,
        unload_after_split=policy.balancer.unload_split_bundles and _may_leave(view, row, policy),
    )  # fmt: skip


def _may_leave(view: ClusterView, row: int, policy: Policy) -> bool:
    """Whether the filters let the bundle at *row* leave its broker.

    Pulsar: shouldNamespacePoliciesUnload, shouldAntiAffinityNamespaceUnload.
    """
    found = candidates(view, row, policy.filters)
    return found.leaves_only(int(view.bundles.broker[row])) is None and found.anchored(view, row) is None


# ---- shed and place ----


def _unloads(
    view: ClusterView,
    untouchable: Untouchable,
    splitting: set[str],
    memory: Memory,
    policy: Policy,
    controls: Controls,
) -> tuple[list[Command], Memory, list[Verdict]]:
    if not policy.shed:
        return [], memory, [_off("shed")]
    if view.as_of_ms % policy.balancer.shedding_interval_ms:
        why = Verdict(subject=_CLUSTER, reason=Reason.NOT_THIS_INTERVAL, by=policy.balancer.shedding_interval_option)
        return [], memory, [why]
    if len(view.brokers) < 2:
        return [], memory, [_too_few_brokers(view, "shed")]
    # Shedders know one reason to leave a bundle where it is; the verdicts then tell the guardrail's.
    staying = replace(view, recently_unloaded=view.recently_unloaded | untouchable.mask)
    moves, membership, about_brokers = _membership_moves(staying, memory, policy)
    if moves:
        # The shedder takes none of them once more.
        taken = staying.recently_unloaded.copy()
        taken[[view.bundles.code_of[unload.bundle] for unload in moves]] = True
        staying = replace(staying, recently_unloaded=taken)
    told = untouchable
    if policy.balancer.waits_for_results:
        told = untouchable.and_bundles_of({c.source for c in memory.in_flight.values() if c.action == "unload"})
        staying = replace(staying, recently_unloaded=staying.recently_unloaded | told.mask)
    found, shedding = policy.shedder.decide(staying, memory.shedder)
    verdicts = told.explain(found.verdicts)
    if not found.unloads:
        reason = _whole_reason(found, verdicts)
        verdicts.append(Verdict(subject=_CLUSTER, reason=reason, by=type(policy.shedder).__name__))
    if policy.filters and view.policies.not_understood:
        detail = f"cannot read {', '.join(view.policies.not_understood)}: what they concern stays where it is"
        verdicts.append(Verdict(subject=_CLUSTER, reason=Reason.ISOLATION_POLICY, by="policies", detail=detail))
    verdicts += about_brokers
    commands, placing = [], memory.placement
    for turn, unload in enumerate((*moves, *found.unloads)):
        guarded = untouchable.verdict(unload.bundle)
        if guarded is not None:
            verdicts.append(guarded)
            continue
        if unload.bundle in splitting:
            verdicts.append(
                Verdict(subject=unload.bundle, reason=Reason.IN_FLIGHT, by="split", detail="is being split")
            )
            continue
        if turn < len(moves):
            destination, more = _as_planned(view, unload, policy)
        else:
            destination, placing, more = _place(view, unload, placing, memory.seed, policy)
        verdicts += more
        if not destination:
            continue
        # So that the next placement of this cycle sees the bundle where it is going.
        view = view.with_preallocated(view.bundles.code_of[unload.bundle], view.brokers.code_of[destination])
        commands.append(
            _command(
                "unload",
                unload.bundle,
                unload.source,
                unload.why,
                view.as_of_ms,
                policy,
                controls,
                destination=destination,
            )
        )
    return commands, replace(memory, shedder=shedding, placement=placing, membership=membership), verdicts


def _membership_moves(
    view: ClusterView, memory: Memory, policy: Policy
) -> tuple[tuple[Unload, ...], StrategyMemory, tuple[Verdict, ...]]:
    """What brokers that joined or left set off, and what is to be said about them."""
    if policy.membership is None:
        return (), memory.membership, ()
    found, membership = policy.membership.decide(view, memory.membership)
    return found.unloads, membership, tuple(found.verdicts)


def _as_planned(view: ClusterView, unload: Unload, policy: Policy) -> tuple[str, list[Verdict]]:
    """The planned broker for a bundle that goes there or nowhere; "" with a verdict where a filter is against it."""
    row = view.bundles.code_of[unload.bundle]
    found = candidates(view, row, policy.filters)
    against = found.anchored(view, row) or found.excludes(view.brokers.code_of[unload.destination])
    if against is None:
        return unload.destination, []
    by, detail = type(against).__name__, f"not to {unload.destination}, so it stays"
    return "", [Verdict(subject=unload.bundle, reason=against.reason, by=by, detail=detail)]


def _whole_reason(found: UnloadDecision, verdicts: Sequence[Verdict]) -> Reason:
    """Why nothing is unloaded, where that was RecentlyUnloaded and *verdicts* now know better."""
    if found.reason is not Reason.RECENTLY_UNLOADED or any(v.reason is found.reason for v in verdicts):
        return found.reason
    pairs = zip(found.verdicts, verdicts, strict=True)
    return next((now.reason for before, now in pairs if before.reason is found.reason), found.reason)


def _place(
    view: ClusterView, unload: Unload, memory: StrategyMemory, seed: int, policy: Policy
) -> tuple[str, StrategyMemory, list[Verdict]]:
    """The broker for a bundle, or "": the planned one, else any acceptable one by the seed (Pulsar: at random).

    Never one that the filters exclude, and never its own.
    """
    row, source = view.bundles.code_of[unload.bundle], view.brokers.code_of[unload.source]
    found = candidates(view, row, policy.filters)

    def refused(by: Filter, detail: str) -> Verdict:
        return Verdict(subject=unload.bundle, reason=by.reason, by=type(by).__name__, detail=detail)

    against = found.leaves_only(source)
    if against is not None:
        return "", memory, [refused(against, "no other broker may take it")]
    against = found.anchored(view, row)
    if against is not None:
        return "", memory, [refused(against, "it had better stay")]
    verdicts = []
    if unload.destination:
        against = found.excludes(view.brokers.code_of[unload.destination])
        if against is None:
            return unload.destination, memory, []
        verdicts.append(refused(against, f"not to {unload.destination}, as was planned: placed anew"))
    acceptable, memory = policy.selection.acceptable(view, row, found, policy.placement, memory)
    others = acceptable[acceptable != source]
    if len(others) == 0:
        by = type(policy.placement).__name__
        detail = "no broker is better than its own"
        return "", memory, [*verdicts, Verdict(subject=unload.bundle, reason=Reason.SAME_BROKER, by=by, detail=detail)]
    chance = zlib.crc32(f"{seed}/{view.as_of_ms}/{unload.bundle}".encode())
    return view.brokers.names[int(others[chance % len(others)])], memory, verdicts


# ---- guardrails ----


def _refusal(view: ClusterView, controls: Controls, samples: int, *, gap: bool, policy: Policy) -> Verdict | None:
    """Why nothing at all may be issued now, or None."""
    if not policy.balancer.enabled:
        return Verdict(subject=_CLUSTER, reason=Reason.DISABLED, by="loadBalancerEnabled")
    if controls.mode == "observe":
        return Verdict(subject=_CLUSTER, reason=Reason.OBSERVE_ONLY, by="mode")
    if controls.paused:
        return Verdict(subject=_CLUSTER, reason=Reason.PAUSED, by="operator")
    if controls.stale:
        return Verdict(subject=_CLUSTER, reason=Reason.STALE, by="stale_after_seconds")
    if samples < policy.warm_up_samples:
        reason = Reason.GAP if gap else Reason.WARMING_UP
        limit = float(policy.warm_up_samples)
        return Verdict(
            subject=_CLUSTER, reason=reason, observed=float(samples), limit=limit, unit="samples", by="warm_up_samples"
        )
    active = len(view.brokers) + len(view.missing)
    share = len(view.missing) / active if active else 0.0
    if share > policy.freeze_share:
        unit, limit = "of the brokers missing", policy.freeze_share
        return Verdict(subject=_CLUSTER, reason=Reason.FROZEN, observed=share, limit=limit, unit=unit, by="roster")
    return None


def _off(what: str) -> Verdict:
    return Verdict(subject=_CLUSTER, reason=Reason.DISABLED, by=what)


def _too_few_brokers(view: ClusterView, by: str) -> Verdict:
    observed = float(len(view.brokers))
    return Verdict(subject=_CLUSTER, reason=Reason.NO_BROKERS, observed=observed, limit=2.0, unit="brokers", by=by)


# ---- words ----


def _command(
    action: str,
    bundle: str,
    source: str,
    why: Verdict,
    interval: int,
    policy: Policy,
    controls: Controls,
    **extra: Any,
) -> Command:
    return Command(
        id=str(uuid.uuid5(_COMMANDS, f"{policy.cluster}/{interval}/{action}/{bundle}")),
        action=action,
        cluster=policy.cluster,
        bundle=bundle,
        interval=interval,
        expires_at_ms=interval + policy.command_ttl_ms,
        mode="dry_run" if controls.mode == "dry_run" else "active",
        source=source,
        why=why,
        **extra,
    )


def _summary(view: ClusterView, commands: Sequence[Command], wished: int, refusal: Verdict | None) -> str:
    looked = f"{len(view.bundles)} bundles on {len(view.brokers)} brokers"
    if refusal is not None:
        return f"{looked}: {refusal.reason}, {wished} commands held back"
    counts: Mapping[str, int] = {a: sum(c.action == a for c in commands) for a in ("split", "unload")}
    done = ", ".join(f"{n} {action}s" for action, n in counts.items() if n)
    return f"{looked}: {done or 'nothing to do'}"
