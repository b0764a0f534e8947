"""The application that a server runs: routes and what surrounds them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from controller.web.access.viewer import RefusedError, bad_request
from controller.web.admission import Admission, is_still_admitted, viewer_of
from controller.web.events import EventStream, share_of
from controller.web.limits import CLIENT, EVENTS, RequestLimits
from controller.web.login import login_routes
from controller.web.pages.table import PAGES
from controller.web.refusals import refusal
from controller.web.rest.endpoint import BASE, routes
from controller.web.rest.openapi import document_text
from controller.web.rest.table import ENDPOINTS
from controller.web.security_headers import SecurityHeaders
from controller.web.site import Site, site_of


def create_app(site: Site) -> Starlette:
    """The application that shows *site*."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with site.running():
            yield

    app = Starlette(
        routes=[
            Route("/static/{path:path}", site.assets.serve, methods=["GET"]),
            *login_routes(),
            Route(EVENTS, _events, methods=["GET"]),
            Route(f"{BASE}/openapi.json", _openapi, methods=["GET"]),
            *routes(ENDPOINTS),
            *(page.route() for page in PAGES),
        ],
        middleware=[
            Middleware(SecurityHeaders, answered=site.metrics.answered),
            Middleware(RequestLimits, gate=site.gate),
            Middleware(Admission, gate=site.gate),
        ],
        exception_handlers={HTTPException: _refused, RefusedError: _refused},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.site = site
    return app


async def _events(request: Request) -> Response:
    site = site_of(request)
    if set(request.query_params) - {"cluster"}:
        raise bad_request("the only parameter is cluster")
    news = site.cluster(request.query_params.get("cluster")).news
    messages = news.stream(partial(is_still_admitted, request))
    return EventStream(messages, site.places, share_of(viewer_of(request), request.scope["state"][CLIENT]))


async def _openapi(_: Request) -> Response:
    return Response(document_text(), media_type="application/json")


async def _refused(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        title = HTTPStatus(error.status_code).phrase
        # The router says no more than the phrase of the status.
        detail = "there is nothing at this address" if error.detail == "Not Found" else str(error.detail)
        refused = RefusedError(error.status_code, title, detail)
        refused.headers |= dict(error.headers or {})
        return refusal(request, refused)
    assert isinstance(error, RefusedError)
    return refusal(request, error)
