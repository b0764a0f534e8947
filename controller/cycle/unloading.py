"""The unloads of an interval: what the membership rebalancer and the shedder choose, and where it goes."""

from collections.abc import Sequence
from dataclasses import replace

from controller.cycle.commands import command_for
from controller.cycle.guardrails import CLUSTER, switched_off, too_few_brokers
from controller.cycle.placing import place, place_as_planned
from controller.cycle.policy import Policy
from controller.cycle.untouchable import Untouchable
from controller.model.controls import Controls
from controller.model.decision import Command, Reason, Unload, UnloadDecision, Verdict
from controller.model.load import ClusterView
from controller.model.memory import Memory, StrategyMemory


def unloads_of(
    view: ClusterView,
    untouchable: Untouchable,
    splitting: set[str],
    memory: Memory,
    policy: Policy,
    controls: Controls,
) -> tuple[list[Command], Memory, list[Verdict]]:
    """The unloads of the interval with their destinations, the memory after them, and why everything else stays."""
    if not policy.shed:
        return [], memory, [switched_off("shed")]
    if view.as_of_ms % policy.balancer.shedding_interval_ms:
        why = Verdict(subject=CLUSTER, reason=Reason.NOT_THIS_INTERVAL, by=policy.balancer.shedding_interval_option)
        return [], memory, [why]
    if len(view.brokers) < 2:
        return [], memory, [too_few_brokers(view, "shed")]
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
        verdicts.append(Verdict(subject=CLUSTER, reason=reason, by=type(policy.shedder).__name__))
    if policy.filters and view.policies.not_understood:
        detail = f"cannot read {', '.join(view.policies.not_understood)}: what they concern stays where it is"
        verdicts.append(Verdict(subject=CLUSTER, reason=Reason.ISOLATION_POLICY, by="policies", detail=detail))
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
            destination, more = place_as_planned(view, unload, policy)
        elif unload.final:
            # The shedder asked the filters about the interval as it is, for each bundle by itself, as Pulsar does.
            destination, more = place_as_planned(staying, unload, policy)
        else:
            destination, placing, more = place(view, unload, placing, memory.seed, policy)
        verdicts += more
        if not destination:
            continue
        # So that the next placement of this cycle sees the bundle where it is going.
        view = view.with_preallocated(view.bundles.code_of[unload.bundle], view.brokers.code_of[destination])
        commands.append(
            command_for(
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


def _whole_reason(found: UnloadDecision, verdicts: Sequence[Verdict]) -> Reason:
    """Why nothing is unloaded, where that was RecentlyUnloaded and *verdicts* now know better."""
    if found.reason is not Reason.RECENTLY_UNLOADED or any(v.reason is found.reason for v in verdicts):
        return found.reason
    pairs = zip(found.verdicts, verdicts, strict=True)
    return next((now.reason for before, now in pairs if before.reason is found.reason), found.reason)
