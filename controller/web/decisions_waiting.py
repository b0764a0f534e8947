"""The decision that waits in mode approve, as a proposal: the log has it, and the controllers alone make it."""

from controller.adapters.election.changes import choice_by, decision_approved, decision_rejected
from controller.model.proposed import ProposedDecision
from controller.web.control_desk import ANY_VERSION, ControlsWrite
from controller.web.site import ShownCluster


def waiting_decision(cluster: ShownCluster) -> ProposedDecision | None:
    """The decision that waits, as of the last interval; None: none does."""
    state = cluster.data.latest()
    return None if state is None or state.controls.mode != "approve" else state.proposed


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
