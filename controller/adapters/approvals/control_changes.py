"""Changes of the controls that allow more: proposed under a policy, and made once they are approved."""

from dataclasses import replace
from typing import Final

from controller.adapters.approvals.granted import INCLUDE, MODE, RELEASE, RESUME, allows_more, ended_pauses
from controller.adapters.approvals.making import Signer, enact, grant_of, propose_control
from controller.adapters.election.changes import (
    ControlsChange,
    choice_by,
    included,
    mode_set,
    released,
    resumed_by_request,
)
from controller.adapters.election.controls import ControlStore
from controller.adapters.election.proposals import ProposalStore, change_record, require
from controller.model.controls import OperatorControls, Pause
from controller.model.proposals import ControlRequest, ProposalRecord, ProposalState, StoredProposal
from controller.settings.approvals import ApprovalSettings

#: The mode in which nothing is issued, which everybody may set.
_LEAST: Final = "observe"


def needs_approval(policy: ApprovalSettings, controls: OperatorControls, mode: str, settings_mode: str) -> bool:
    """Whether setting *mode* needs approvals; *settings_mode* is that of the settings.

    The mode that is stored already does, too: the controllers may not obey it yet.
    """
    stored = controls.mode_in_force(settings_mode)
    return policy.demanded and mode != _LEAST and (allows_more(mode, stored) or mode == stored)


def propose_mode(store: ProposalStore, signer: Signer, *, mode: str, now_ms: int, reason: str) -> StoredProposal:
    """Propose to set *mode*."""
    return propose_control(store, signer, MODE, (mode,), now_ms=now_ms, reason=reason)


def propose_resume(
    store: ProposalStore, signer: Signer, *, pauses: tuple[Pause, ...], now_ms: int, reason: str
) -> StoredProposal:
    """Propose to end *pauses*, and to reset the breaker."""
    return propose_control(store, signer, RESUME, ended_pauses(pauses), now_ms=now_ms, reason=reason)


def propose_release(
    store: ProposalStore, signer: Signer, *, brokers: tuple[str, ...], now_ms: int, reason: str
) -> StoredProposal:
    """Propose to let drained *brokers* get bundles again."""
    return propose_control(store, signer, RELEASE, brokers, now_ms=now_ms, reason=reason)


def propose_include(
    store: ProposalStore, signer: Signer, *, names: tuple[str, ...], now_ms: int, reason: str
) -> StoredProposal:
    """Propose to let excluded bundles and namespaces, by their *names*, be moved again."""
    return propose_control(store, signer, INCLUDE, names, now_ms=now_ms, reason=reason)


def enact_approved(
    store: ProposalStore,
    controls: ControlStore,
    key: str,
    policy: ApprovalSettings,
    cluster: str,
    *,
    now_ms: int,
) -> OperatorControls:
    """Make the approved change of the controls with the hash *key*, by which the controllers obey it; once.

    ProposalRefusedError where it is not approved.
    """
    grant, proposal = grant_of(store, key, policy, cluster, now_ms), require(store, key).proposal
    statement = proposal.statement.statement
    change = change_of(grant.request, statement.author, statement.reason, now_ms)

    def once(now: OperatorControls) -> OperatorControls:
        # Of two approvals at once, on two servers, both may come here: what was set meanwhile is not overridden.
        return now if any(each.request == grant.request for each in now.grants) else change(now)

    def done(stored: StoredProposal) -> ProposalRecord:
        progress = replace(stored.record.progress, state=ProposalState.DONE, by=statement.author, at_ms=now_ms)
        return replace(stored.record, progress=progress)

    changed = enact(controls, grant, once)
    change_record(store, key, done)
    return changed


def change_of(request: ControlRequest, by: str, reason: str, now_ms: int) -> ControlsChange:
    """What *request* changes, as *by* asked for it."""
    made = choice_by(by, reason, now_ms, request.values[0] if request.values else "")
    match request.action:
        case "mode":
            return mode_set(made)
        case "release":
            return released(made, request.values)
        case "include":
            return included(made, request.values)
        case _:
            return resumed_by_request(made, request.values, request.at_ms)
