"""What a refused request is answered: a page for people, problem+json (RFC 9457) for programs."""

from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from controller.settings.redaction import redacted
from controller.web.access.viewer import RefusedError
from controller.web.site import site_of
from controller.wire.answers.base import JsonAnswer
from controller.wire.base import printable

#: Below it programs ask; everything else is for people.
API: Final = "/api/"
PROBLEM_TYPE: Final = "application/problem+json"
LOGIN: Final = "/login"


class RefusalAnswer(JsonAnswer):
    """Why a request is refused or has failed (RFC 9457)."""

    type: str
    """Always "about:blank": the status says what kind of problem it is."""
    title: str
    status: int
    detail: str
    """One sentence: what is wrong, and what to do."""


def refusal(request: Request, error: RefusedError) -> Response:
    """The answer to *request*, which is refused."""
    detail = printable(redacted(error.detail))
    if request.url.path.startswith(API):
        problem = RefusalAnswer(type="about:blank", title=error.title, status=error.status, detail=detail)
        return Response(problem.as_line(), error.status, dict(error.headers), PROBLEM_TYPE)
    if error.status == 401 and request.method in ("GET", "HEAD") and request.url.path != LOGIN:
        return RedirectResponse(f"{LOGIN}?{urlencode({'next': _here(request)})}", 303)
    page = site_of(request).templates.get_template("error.html")
    html = page.render(status=error.status, title=error.title, detail=detail)
    return HTMLResponse(html, error.status, dict(error.headers))


def _here(request: Request) -> str:
    """The path that was asked for: where a login leads back to."""
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")
