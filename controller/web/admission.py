"""Lets a request in, or refuses it: whoever may not look sees nothing but the login and the style of pages."""

from typing import Final

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from controller.settings.web import ViewerRole
from controller.web.access.gate import CERTIFICATE_NAME, AccessGate
from controller.web.access.viewer import RefusedError, Viewer, forbidden, unauthorised
from controller.web.limits import STATIC
from controller.web.refusals import LOGIN, refusal
from controller.web.site import site_of

#: The scope's state has the viewer under this key.
VIEWER: Final = "viewer"
#: A refusal from this status on says nothing about the viewer, as where too many wait.
_CANNOT_SAY: Final = 500


class Admission:
    """Checks who sends each request, and has the viewer in the request's state."""

    def __init__(self, app: ASGIApp, gate: AccessGate) -> None:
        self._app, self._gate = app, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        try:
            scope.setdefault("state", {})[VIEWER] = await self._admitted(request)
            await self._app(scope, receive, send)
        except RefusedError as error:
            await refusal(request, error)(scope, receive, send)

    async def _admitted(self, request: Request) -> Viewer | None:
        gate, headers, path = self._gate, request.headers, request.url.path
        gate.check_transport(_peer(request))
        gate.check_host(headers)
        if path.startswith(STATIC):
            return None
        viewer = await _viewer_now(request, gate)
        gate.check_origin(request.method, headers, viewer)
        if viewer is None and not _is_public(path):
            raise unauthorised("this needs a token, or a login")
        return viewer


async def _viewer_now(request: Request, gate: AccessGate) -> Viewer | None:
    peer, name = _peer(request), request.scope["state"].get(CERTIFICATE_NAME, "")
    # Reads files, and may ask the identity provider for its keys.
    return await site_of(request).admission_workers.run(lambda: gate.viewer(request.headers, peer, name))


def _peer(request: Request) -> str:
    return request.client.host if request.client else ""


async def is_still_admitted(request: Request) -> bool:
    """Whether whoever sent *request*, which was let in, would be let in now; True where that cannot be found out."""
    try:
        return await _viewer_now(request, site_of(request).gate) is not None
    except RefusedError as error:
        return error.status >= _CANNOT_SAY


def viewer_of(request: Request) -> Viewer:
    """Who sends *request*, which has been let in."""
    viewer: Viewer = request.scope["state"][VIEWER]
    return viewer


def require(viewer: Viewer, needed: ViewerRole) -> None:
    """RefusedError where *viewer* may not do what *needed* may."""
    if not viewer.role.may(needed):
        raise forbidden(f"{viewer.name} is a {viewer.role}, and this needs the role {needed}")


def _is_public(path: str) -> bool:
    return path == LOGIN or path.startswith(f"{LOGIN}/")
