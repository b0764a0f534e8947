"""Attempts to change something that were refused: the history has those of people with a name, a bounded number."""

from starlette.requests import Request

from controller.settings.web import ViewerRole
from controller.web.access.viewer import RefusedError
from controller.web.access.writers import why_not
from controller.web.admission import viewer_of
from controller.web.site import site_of

_FORBIDDEN = 403


async def note_refused(request: Request, action: str, error: RefusedError) -> None:
    """Have the history say that whoever sent *request* was not allowed *action*.

    What was too late, misspelt or not possible is no such attempt, nor is one of a person without a name.
    """
    site, viewer = site_of(request), viewer_of(request)
    # A person whom the history could not name, and a server that may not write there, leave nothing.
    if error.status != _FORBIDDEN or why_not(viewer, site.settings, ViewerRole.VIEWER):
        return
    cluster = site.cluster(request.query_params.get("cluster"))
    await site.workers.run(
        lambda: cluster.desk.refuse(by=viewer.name, action=action, why=error.detail, at_ms=site.now_ms())
    )
