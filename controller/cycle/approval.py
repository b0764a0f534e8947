"""Mode approve: what strategies decide waits for persons, as one proposed decision in the memory.

    strategies decide -> check -> proposed -> approved -> check again -> issued

One decision waits at a time.  It expires when its time is over, when something that it depends on changed, and when the
mode does; a person can reject it.  It is issued once, whole or not at all: what it says was approved as one thing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

import numpy as np

from controller.cycle.approval_check import Checked, DecisionCheck
from controller.cycle.commands import Issuing, charge
from controller.cycle.limits import Limits
from controller.model.controls import Controls, DecisionApproval
from controller.model.decision import CLUSTER, Command, Reason, UsageOutlook, Verdict
from controller.model.memory import Memory
from controller.model.proposed import MOST_PROPOSED, ProposedDecision, digest_of, needs_no_approval
from controller.model.reasons import CONFIGURATION, IMPOSSIBLE, NORMAL, Meaning

#: Who gives the verdicts.
BY_APPROVAL: Final = "approvals"
MEANINGS: Final = {
    Reason.AWAITS_APPROVAL: Meaning(
        CONFIGURATION, "the mode is approve: what strategies decided waits until persons approve it"
    ),
    Reason.APPROVED: Meaning(NORMAL, "persons approved the decision: it is issued once guardrails allow it"),
    Reason.REJECTED: Meaning(
        CONFIGURATION, "a person rejected a decision about it; strategies leave it alone until that would have expired"
    ),
    Reason.EXPIRED: Meaning(NORMAL, "the decision that waited is void: its time is over, or the cluster changed"),
    Reason.CHECK_FAILED: Meaning(
        IMPOSSIBLE, "the check of mode approve refuses what the strategy decided: see docs/mode_approve.md"
    ),
}
#: Rejected bundles that are remembered at most; the first to be free again are forgotten.
_MOST_REJECTED: Final = 4096
#: How often commands are left out that the check refuses, before nothing is proposed.
_MOST_ROUNDS: Final = 10
#: So many flaws of a decision are told.
_MOST_FLAWS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Approving:
    """What becomes of the decision that waits, in one interval."""

    #: With the decision that still waits; without one, a new one may be proposed.
    memory: Memory
    #: Those of an approved decision, issued now.
    commands: tuple[Command, ...] = ()
    verdicts: tuple[Verdict, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What strategies chose in one interval."""

    commands: tuple[Command, ...]
    outlook: UsageOutlook | None


def reviewable(limits: Limits, controls: Controls) -> Limits:
    """*limits*; in mode approve those under which no decision has more commands than a person can review."""
    if controls.mode != "approve":
        return limits
    unloads, splits = (
        MOST_PROPOSED if limit is None else min(limit, MOST_PROPOSED)
        for limit in (limits.interval.unloads, limits.interval.splits)
    )
    return replace(limits, interval=replace(limits.interval, unloads=unloads, splits=splits))


def ruled_on(memory: Memory, controls: Controls, interval: int) -> tuple[Memory, list[Verdict]]:
    """*memory* after what time and persons made of the decision that waits in it, and verdicts on that.

    Outside of mode approve nothing waits, and nothing is rejected.
    """
    decision, now = memory.proposed, controls.decided_at(interval)
    if controls.mode != "approve":
        if decision is None and not memory.rejected:
            return memory, []
        expired = [] if decision is None else [_expired(decision, f"the mode is {controls.mode}")]
        return replace(memory, proposed=None, rejected={}), expired
    rejected = {bundle: until for bundle, until in memory.rejected.items() if now <= until}
    memory = replace(memory, rejected=rejected)
    if decision is None:
        return memory, []
    rejection = next((each for each in controls.rejected if each.decision == decision.hash), None)
    if rejection is not None:
        reason = f": {rejection.reason}" if rejection.reason else ""
        about = _about(decision, Reason.REJECTED, f"by {rejection.by}{reason}")
        return _without_rejected(memory, decision), [about]
    if now > decision.expires_at_ms:
        return replace(memory, proposed=None), [_expired(decision, "nobody approved it in time")]
    return memory, []


def approved_commands(check: DecisionCheck, refusal: Verdict | None) -> Approving:
    """What is issued of the decision that waits in the memory of *check*, and what becomes of it.

    *refusal*: why nothing may be issued in this interval.
    """
    memory, issuing = check.memory, check.issuing
    decision, controls = memory.proposed, issuing.controls
    if decision is None:
        return Approving(memory=memory)
    checked = check.check(decision)
    changed = _changed(decision, memory, checked)
    if changed:
        return Approving(memory=replace(memory, proposed=None), verdicts=(_expired(decision, changed),))
    approval = next((each for each in controls.approved if each.decision == decision.hash), None)
    if approval is None:
        return Approving(memory=memory, verdicts=(about_waiting(decision),))
    by = f"by {', '.join(approval.by)}"
    waits = _waits(checked, controls, check.view.as_of_ms, refusal)
    if waits:
        return Approving(memory=memory, verdicts=(_about(decision, Reason.APPROVED, f"{by}; it waits: {waits}"),))
    commands = tuple(_approved(each, decision, approval) for each in checked.commands)
    for each in commands:
        issuing.ledger.try_charge(each.bundle, charge(check.view, each))
    issued = _about(decision, Reason.APPROVED, by)
    return Approving(memory=replace(memory, proposed=None), commands=commands, verdicts=(issued,))


def proposed(check: DecisionCheck, chosen: Chosen) -> tuple[ProposedDecision | None, list[Verdict]]:
    """The decision that *chosen* makes, without what the check refuses, and verdicts on that; None: nothing is left."""
    policy, controls, interval = check.issuing.policy, check.issuing.controls, check.view.as_of_ms
    decision = ProposedDecision(
        cluster=policy.cluster,
        interval=interval,
        expires_at_ms=controls.decided_at(interval) + policy.decision_ttl_ms,
        commands=chosen.commands,
        limit=None if chosen.outlook is None else chosen.outlook.limit,
        brokers=digest_of(check.memory.roster.brokers),
    )
    verdicts = list[Verdict]()
    for _ in range(_MOST_ROUNDS):
        checked = check.check(decision)
        verdicts += [
            Verdict(subject=bundle, reason=Reason.CHECK_FAILED, by=BY_APPROVAL, detail=flaw)
            for bundle, flaw in checked.flaws.items()
        ]
        sound = tuple(each for each in decision.commands if each.bundle not in checked.flaws)
        decision = replace(decision, commands=sound, usage=checked.usage)
        if not sound or (not checked.flaws and checked.waits):
            break
        if not checked.flaws:
            connections = sum(charge(check.view, each).connections for each in sound)
            return replace(decision, connections=connections), verdicts
    return None, verdicts


def is_free(decision: ProposedDecision, chosen: Chosen, issuing: Issuing) -> bool:
    """Whether *decision*, all that strategies chose, needs no approval."""
    policy, moves = issuing.policy, len(decision.commands)
    return moves == len(chosen.commands) and needs_no_approval(
        moves, decision.connections, free_moves=policy.free_moves, free_connections=policy.free_connections
    )


def about_waiting(decision: ProposedDecision) -> Verdict:
    """The verdict that *decision* waits."""
    until = np.datetime64(decision.expires_at_ms // 1000, "s")
    return _about(decision, Reason.AWAITS_APPROVAL, f"until {until}Z")


def summary_of_approval(verdicts: Sequence[Verdict]) -> list[str]:
    """Sentences on the decisions of *verdicts*, for the summary of an interval."""
    return [each.detail for each in verdicts if each.subject == CLUSTER and each.by == BY_APPROVAL]


def _changed(decision: ProposedDecision, memory: Memory, checked: Checked) -> str:
    """Why *decision* is void: what changed since it was made; "": nothing did."""
    if decision.brokers != digest_of(memory.roster.brokers):
        return "a broker joined or left since"
    flaws = [f"{bundle}: {flaw}" for bundle, flaw in islice(checked.flaws.items(), _MOST_FLAWS)]
    more = len(checked.flaws) - len(flaws)
    return "; ".join([*flaws, *([f"and {more} more"] if more else [])])


def _waits(checked: Checked, controls: Controls, interval: int, refusal: Verdict | None) -> str:
    if refusal is not None:
        return str(refusal.reason)
    if controls.orders is not None and controls.orders.hold_at(interval):
        return "a plan is being applied"
    return checked.waits


def _approved(command: Command, decision: ProposedDecision, approval: DecisionApproval) -> Command:
    detail = f"decision {decision.short_hash}, approved by {', '.join(approval.by)}"
    why = command.why
    return replace(command, why=replace(why, detail=f"{detail}; {why.detail}" if why.detail else detail))


def _without_rejected(memory: Memory, decision: ProposedDecision) -> Memory:
    until = {**memory.rejected, **{each.bundle: decision.expires_at_ms for each in decision.commands}}
    last = sorted(until.items(), key=lambda item: (-item[1], item[0]))[:_MOST_REJECTED]
    return replace(memory, proposed=None, rejected=dict(sorted(last)))


def _expired(decision: ProposedDecision, why: str) -> Verdict:
    return _about(decision, Reason.EXPIRED, why)


def _about(decision: ProposedDecision, reason: Reason, detail: str) -> Verdict:
    words = {
        Reason.AWAITS_APPROVAL: "waits for approval",
        Reason.APPROVED: "is approved",
        Reason.REJECTED: "is rejected",
        Reason.EXPIRED: "is expired",
    }
    text = f"decision {decision.short_hash} ({decision.text}) {words[reason]}: {detail}"
    return Verdict(subject=CLUSTER, reason=reason, by=BY_APPROVAL, detail=text)
