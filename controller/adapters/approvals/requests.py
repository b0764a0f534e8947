"""Pause, resume and stop a proposal that is being carried out: what the command line and the page do.

The record comes first: `trimtab apply` reads it whenever it hands moves over.  Then the orders that are in force are
taken back, so that nothing waits for that process.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from controller.adapters.election.changes import change_controls
from controller.adapters.election.controls import ControlStore
from controller.adapters.election.proposals import ProposalStore, change_record
from controller.model.controls import ControlChange, OperatorControls
from controller.model.errors import ProposalRefusedError
from controller.model.proposals import ENDED, Proposal, ProposalRecord, ProposalState, StoredProposal
from controller.wire.base import printable
from controller.wire.controls import MAX_NAME, MAX_REASON
from controller.wire.proposals import MAX_SENTENCE

_RUNNING: Final = (ProposalState.APPLYING, ProposalState.PAUSED)


def pause_proposal(
    proposals: ProposalStore, controls: ControlStore, key: str, *, by: str, reason: str, now_ms: int
) -> StoredProposal:
    """Hand over no more moves of the proposal *key* until it is resumed; what was issued is finished.

    ProposalRefusedError where nobody is carrying it out.
    """
    stored = _set(proposals, key, ProposalState.PAUSED, _RUNNING, by=by, reason=reason, now_ms=now_ms)
    _withdraw(controls, stored.proposal, "pause-plan", by, reason, now_ms, ends=False)
    return stored


def resume_proposal(
    proposals: ProposalStore, controls: ControlStore, key: str, *, by: str, reason: str, now_ms: int
) -> StoredProposal:
    """Go on with the proposal *key*.  ProposalRefusedError where it is not paused."""
    stored = _set(proposals, key, ProposalState.APPLYING, (ProposalState.PAUSED,), by=by, reason=reason, now_ms=now_ms)
    entry = _entry("resume-plan", stored.proposal, by, reason, now_ms)
    change_controls(controls, lambda now: now.with_change(entry))
    return stored


def stop_proposal(
    proposals: ProposalStore, controls: ControlStore, key: str, *, by: str, reason: str, now_ms: int
) -> StoredProposal:
    """End the proposal *key* for good; what was issued is finished.

    ProposalRefusedError where nobody has begun to carry it out: such a one is rejected.
    """
    stored = _set(proposals, key, ProposalState.STOPPED, _RUNNING, by=by, reason=reason, now_ms=now_ms)
    _withdraw(controls, stored.proposal, "stop-plan", by, reason, now_ms, ends=True)
    return stored


def _set(
    store: ProposalStore,
    key: str,
    state: ProposalState,
    before: tuple[ProposalState, ...],
    *,
    by: str,
    reason: str,
    now_ms: int,
) -> StoredProposal:
    def changed(stored: StoredProposal) -> ProposalRecord:
        progress = stored.record.progress
        if progress.state == state:
            return stored.record  # somebody did it already; what follows is done again
        if progress.state not in before:
            raise ProposalRefusedError(_why_not(stored, state))
        detail = printable(reason)[:MAX_SENTENCE]
        return replace(
            stored.record,
            progress=replace(progress, state=state, detail=detail, by=printable(by)[:MAX_NAME], at_ms=now_ms),
        )

    return change_record(store, key, changed)


def _why_not(stored: StoredProposal, state: ProposalState) -> str:
    progress, name = stored.record.progress, stored.proposal.hash[:12]
    if progress.state in ENDED:
        return f"proposal {name} is {progress.state} already, so it cannot become {state}"
    if progress.state is None:
        return f"nobody has begun to carry out proposal {name}; `trimtab proposals reject` ends it before that"
    return f"proposal {name} is {progress.state}, so it cannot become {state}"


def _withdraw(
    controls: ControlStore, proposal: Proposal, action: str, by: str, reason: str, now_ms: int, *, ends: bool
) -> None:
    """Take back the moves of *proposal* that are in force; *ends*: and what keeps strategies from going on."""
    entry = _entry(action, proposal, by, reason, now_ms)

    def withdrawn(now: OperatorControls) -> OperatorControls:
        orders = now.orders
        if orders is None or orders.plan != proposal.hash:
            return now.with_change(entry)
        return replace(now, orders=None if ends else replace(orders, moves=())).with_change(entry)

    change_controls(controls, withdrawn)


def _entry(action: str, proposal: Proposal, by: str, reason: str, now_ms: int) -> ControlChange:
    detail = f"proposal {proposal.hash[:12]} of {proposal.author}"
    return ControlChange(
        at_ms=now_ms,
        by=printable(by)[:MAX_NAME],
        action=action,
        detail=printable(detail)[:MAX_REASON],
        reason=printable(reason)[:MAX_REASON],
    )


#: Changes a proposal that is being carried out: one of the three functions above.
ProposalRequest = Callable[..., StoredProposal]
