"""The decision that waits in mode approve, as a proposal: the log has it, and the controllers alone make it."""

from controller.adapters.approvals.making import propose_decision
from controller.adapters.election.changes import choice_by, decision_approved, decision_rejected
from controller.adapters.election.proposals import ProposalStore
from controller.model.controls import OperatorControls
from controller.model.proposals import CONTROLLER, ProposalKind, ProposalState
from controller.model.proposed import ProposedDecision
from controller.web.control_desk import ANY_VERSION, ControlsWrite
from controller.web.site import ShownCluster
from controller.wire.answers.proposals import ProposalAnswer


def waiting_decision(cluster: ShownCluster) -> ProposedDecision | None:
    """The decision that waits, as of the last interval; None: none does."""
    state = cluster.data.latest()
    return None if state is None or state.controls.mode != "approve" else state.proposed


def decision_answer(decision: ProposedDecision, controls: OperatorControls | None, now_ms: int) -> ProposalAnswer:
    """*decision* as a proposal, where nothing is signed: approvals lie in *controls*; None: these are not known."""
    key = decision.hash
    approved = [] if controls is None else [each for each in controls.approvals if each.decision == key]
    rejected = [] if controls is None else [each for each in controls.rejections if each.decision == key]
    state = ProposalState.EXPIRED if decision.expires_at_ms <= now_ms else ProposalState.PENDING
    state = ProposalState.REJECTED if rejected else ProposalState.APPROVED if approved else state
    splits = sum(each.action == "split" for each in decision.commands)
    return ProposalAnswer(
        id=key,
        kind=ProposalKind.DECISION.value,
        state=state.value,
        title=decision.text,
        author=CONTROLLER,
        approved_by=sorted({name for each in approved for name in each.by}),
        required=1,
        rejected_by=rejected[0].by if rejected else "",
        moves=len(decision.commands) - splits,
        splits=splits,
        connections=decision.connections,
        proposed_at=decision.interval,
        expires_at=decision.expires_at_ms,
        flaws=[],
        step=0,
        wave=0,
        waves=0,
        moves_done=0,
        by="",
        detail="",
        at=0,
    )


def store_decision(store: ProposalStore, decision: ProposedDecision, now_ms: int) -> None:
    """Put *decision* where signed approvals of it lie."""
    splits = sum(each.action == "split" for each in decision.commands)
    propose_decision(
        store,
        decision.content,
        cluster=decision.cluster,
        now_ms=now_ms,
        expires_at_ms=decision.expires_at_ms,
        moves=len(decision.commands) - splits,
        splits=splits,
        connections=decision.connections,
        title=decision.text,
    )


def decide_unsigned(
    cluster: ShownCluster, decision: ProposedDecision, *, by: str, reason: str, now_ms: int, approves: bool
) -> None:
    """Approve or reject *decision* where nothing is signed.  RefusedError."""
    made = choice_by(by, reason, now_ms, decision.hash)
    cluster.desk.write(
        ControlsWrite(
            by=by,
            at_ms=now_ms,
            change=decision_approved(made) if approves else decision_rejected(made),
            versions=frozenset({ANY_VERSION}),
            key="",
            content="",
        )
    )
