"""Changes of the controls that allow more, where the policy of [approvals] wants other people to approve them."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from controller.adapters.approvals.control_changes import (
    enact_approved,
    needs_approval,
    propose_include,
    propose_mode,
    propose_release,
    propose_resume,
)
from controller.adapters.election.changes import SETTINGS_MODE, ControlsChange, ended_pauses
from controller.model.controls import Choice, ControlChange
from controller.model.errors import TrimtabError
from controller.model.proposals import StoredProposal
from controller.web.access.viewer import RefusedError, Viewer
from controller.web.control_desk import ControlsWrite
from controller.web.desk import as_refusals
from controller.web.signing import signer_of_viewer
from controller.web.site import ShownCluster, Site


def proposer(
    cluster: ShownCluster, action: str, made: Choice, change: ControlsChange
) -> Callable[..., StoredProposal] | None:
    """What proposes *change*, by an *action* that may allow more, as *made* says; None where it is made at once.

    RefusedError: 409 it cannot be made, 503 the controls cannot be read.
    """
    policy, settings_mode = cluster.settings.approvals, cluster.settings.decisions.mode
    if not policy.demanded:
        return None
    with as_refusals():
        before = cluster.desk.read().controls
    try:
        after = change(before)
    except TrimtabError as error:
        raise RefusedError(409, "Not possible now", str(error)) from error
    if action == "mode":
        mode = settings_mode if made.value == SETTINGS_MODE else made.value
        return partial(propose_mode, mode=mode) if needs_approval(policy, before, mode, settings_mode) else None
    if action == "resume":
        return partial(propose_resume, pauses=tuple(ended_pauses(before, after, made.at_ms)))
    if action == "include":
        return partial(
            propose_include, names=tuple(each.name for each in before.excluded if each not in after.excluded)
        )
    remaining = {each.broker for each in after.drained}
    return partial(
        propose_release, brokers=tuple(each.broker for each in before.drained if each.broker not in remaining)
    )


def propose(
    site: Site,
    cluster: ShownCluster,
    viewer: Viewer,
    write: ControlsWrite,
    how: Callable[..., StoredProposal],
    reason: str,
) -> str:
    """Propose the change of *write* by *how*, once; the proposal's hash.  RefusedError."""
    desk, settings = cluster.desk, cluster.settings
    with desk.answered(by=write.by, key=write.key, content=write.content, now_ms=write.at_ms) as before:
        if before is not None:
            return before
        desk.refuse_outdated(write)
        signer = signer_of_viewer(site, cluster, viewer)
        with as_refusals(), cluster.proposals.store() as store:
            stored = how(store, signer, now_ms=write.at_ms, reason=reason)
            if not settings.approvals.required:
                with desk.store() as controls:
                    name, policy = settings.cluster.name, settings.approvals
                    enact_approved(store, controls, stored.proposal.hash, policy, name, now_ms=write.at_ms)
        cluster.proposals.cached.forget()
        title = stored.proposal.title[:500]
        entry = ControlChange(at_ms=write.at_ms, by=write.by, action="propose", detail=title, reason=reason)
        noted = replace(write, change=lambda now: now.with_change(entry), may_replace=False)
        desk.write_after(noted, stored.proposal.hash)
        return stored.proposal.hash
