"""Endpoints that change the controls: each is one action of the table in control_actions.py."""

from controller.web.control_actions import ControlAction, ReasonBody, carry_out
from controller.web.rest.answers import ControlsWrittenAnswer
from controller.web.rest.endpoint import BASE, ApiRequest, Query, Reply


def changed(api: ApiRequest[Query, ReasonBody], action: ControlAction) -> Reply:
    """Do *action*."""
    written = carry_out(
        api.site,
        api.cluster,
        api.viewer,
        action,
        api.body,
        versions=api.precondition.needed_versions,
        key=api.precondition.key,
    )
    answer = ControlsWrittenAnswer(
        cluster=api.cluster.name,
        action=action.name,
        by=api.viewer.name,
        at_ms=written.at_ms,
        reason=api.body.reason,
        epoch=int(written.note) if written.note else None,
        proposal=written.proposal or None,
    )
    if written.proposal:
        return Reply(status=202, answer=answer, headers={"Location": f"{BASE}/proposals/{written.proposal}"})
    return Reply(answer=answer, version=written.version)
