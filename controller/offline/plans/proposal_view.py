"""Proposals as people see them: their state, what is in them, and whether the cluster is still as they say."""

from collections.abc import Callable
from typing import Final

from controller.adapters.approvals.contents import VerifiedContent
from controller.adapters.approvals.making import verified
from controller.adapters.approvals.standing import ProposalSubject, standing_of
from controller.adapters.election.proposals import ProposalStore
from controller.model.controls import OperatorControls
from controller.model.errors import ProposalRefusedError, TrimtabError
from controller.model.proposals import ENDED, ProposalState, StoredProposal
from controller.model.proposed import ProposedDecision
from controller.offline.plans.answer import plan_answer
from controller.offline.plans.drift import drift_of
from controller.offline.plans.plan_file import described_plan
from controller.offline.plans.proposal_hold import step_to_do
from controller.offline.plans.source import PlanSource
from controller.offline.plans.waiting_decision import as_proposal, decision_lines
from controller.planning.plans.plan import Plan
from controller.settings.trimtab_toml import Settings
from controller.wire.answers.plan import PlanAnswer
from controller.wire.answers.proposals import (
    DriftAnswer,
    ProposalAnswer,
    ProposalDetailAnswer,
    proposal_fields,
    statement_answers,
)
from controller.wire.readable import utc

#: A bundle's load may differ by this share of what the plan says: the default of `trimtab apply`.
TOLERANCE: Final = 0.25


def proposal_answer(
    stored: StoredProposal, settings: Settings, now_ms: int, subject: ProposalSubject | None = None
) -> ProposalAnswer:
    """*stored*, by the policy of *settings*; *subject*: what it is about, where its content was verified."""
    standing = standing_of(stored, settings.approvals, cluster=settings.cluster.name, now_ms=now_ms, subject=subject)
    return ProposalAnswer.model_validate(proposal_fields(stored, standing), by_name=True)


def decision_answer(
    decision: ProposedDecision, settings: Settings, controls: OperatorControls | None, now_ms: int
) -> ProposalAnswer:
    """*decision*, which waits and is in no store.

    Where nothing is signed its one approval, or its rejection, lies in *controls*; None: these are not known.
    """
    answer = proposal_answer(as_proposal(decision), settings, now_ms)
    if settings.approvals.demanded:
        return answer
    now, key = controls or OperatorControls(), decision.hash
    approved_by = sorted({name for each in now.approvals if each.decision == key for name in each.by})
    rejected_by = next((each.by for each in now.rejections if each.decision == key), "")
    state = ProposalState.EXPIRED if decision.expires_at_ms <= now_ms else ProposalState.PENDING
    state = ProposalState.REJECTED if rejected_by else ProposalState.APPROVED if approved_by else state
    return answer.model_copy(
        update={"state": state.value, "approved_by": approved_by, "required": 1, "rejected_by": rejected_by}
    )


def proposal_detail(
    store: ProposalStore,
    stored: StoredProposal,
    settings: Settings,
    now_ms: int,
    source: Callable[[], PlanSource] | None = None,
) -> ProposalDetailAnswer:
    """*stored* with its content, verified, and how that stands in the cluster of *source*; None: nobody looks.

    A proposal whose content is not what its hash says is shown as rejected, with the reason.
    """
    try:
        content = verified(store, stored)
    except ProposalRefusedError as error:
        answer = proposal_answer(stored, settings, now_ms)
        flaws = [str(error), *answer.flaws]
        return _detail(stored, answer.model_copy(update={"state": ProposalState.REJECTED.value, "flaws": flaws}))
    answer = proposal_answer(stored, settings, now_ms, content.subject)
    if content.plan is None:
        return _detail(stored, answer, content=_lines(content, store.content(stored.proposal.hash)))
    described = plan_answer(described_plan(content.plan, settings), file="", now_ms=0, deadline_ms=None)
    has_ended = stored.record.progress.state in ENDED or source is None
    drift = None if has_ended else _drift(content.plan, stored, source)
    return _detail(stored, answer, plan=described, drift=drift)


def _detail(
    stored: StoredProposal,
    answer: ProposalAnswer,
    *,
    plan: PlanAnswer | None = None,
    drift: DriftAnswer | None = None,
    content: list[str] | None = None,
) -> ProposalDetailAnswer:
    return ProposalDetailAnswer(
        **answer.model_dump(by_alias=False),
        statements=statement_answers(stored),
        plan=plan,
        drift=drift,
        content=content or [],
    )


def _lines(content: VerifiedContent, raw: bytes) -> list[str]:
    request = content.request
    if request is None:
        return decision_lines(raw)
    return [" ".join((request.action, *request.values)), f"asked for at {utc(request.at_ms)}"]


def _drift(plan: Plan, stored: StoredProposal, source: Callable[[], PlanSource] | None) -> DriftAnswer | None:
    if source is None or not plan.steps:
        return None
    step = step_to_do(stored.record.progress, len(plan.steps), None)
    try:
        drift = drift_of(plan, step - 1, source(), tolerance=TOLERANCE)
    except TrimtabError as error:
        return DriftAnswer(
            verdict="unknown", step=step, interval=0, moves_done=0, moves_left=0, changed=[], notes=[str(error)]
        )
    return DriftAnswer(
        verdict=drift.verdict.value,
        step=step,
        interval=drift.interval,
        moves_done=drift.moves_done,
        moves_left=drift.moves_left,
        changed=list(drift.changed),
        notes=list(drift.notes),
    )
