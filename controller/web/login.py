"""The login page: it makes a session of a token, or of a login at the identity provider (code flow with PKCE)."""

import base64
import hashlib
import secrets
from typing import Any, Final
from urllib.parse import parse_qs, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from controller.settings.redaction import read_secret
from controller.web.access.provider import ProviderError
from controller.web.access.sessions import SessionSigner
from controller.web.access.tokens import token_hash
from controller.web.access.viewer import RefusedError, Viewer, unauthorised
from controller.web.refusals import LOGIN
from controller.web.site import Site, site_of

_BACK: Final = f"{LOGIN}/callback"
_LOGOUT: Final = f"{LOGIN}/out"
#: A login at the provider has to be done within this time.
_FLOW_SECONDS: Final = 600
_FORM: Final = "application/x-www-form-urlencoded"


def login_routes() -> list[Route]:
    """All routes of the login."""
    return [
        Route(LOGIN, _show, methods=["GET"]),
        Route(LOGIN, _log_in, methods=["POST"]),
        Route(_LOGOUT, _log_out, methods=["POST"]),
        Route(f"{LOGIN}/provider", _begin, methods=["GET"]),
        Route(_BACK, _come_back, methods=["GET"]),
    ]


async def _show(request: Request) -> Response:
    return _page(request, request.query_params.get("next", "/"))


async def _log_in(request: Request) -> Response:
    site = site_of(request)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise RefusedError(415, "Not a form", f"the body has to be {_FORM}")
    form = parse_qs((await request.body()).decode(errors="replace"), max_num_fields=8)
    token, target = form.get("token", [""])[0].strip(), form.get("next", ["/"])[0]
    try:
        viewer = await site.workers.run(lambda: site.gate.by_token(token))
    except RefusedError as error:
        return _page(request, target, error=error)
    # A token of the provider's has an end of its own, which the session must not outlive.
    digest = token_hash(token) if viewer.login == "token" else ""
    if not digest:
        return _page(request, target, error=unauthorised("log in at the identity provider, or use the token as Bearer"))
    return _logged_in(site, viewer, target, digest)


async def _log_out(request: Request) -> Response:
    response = RedirectResponse(LOGIN, 303)
    response.delete_cookie(site_of(request).gate.cookie_name, path="/", secure=site_of(request).gate.is_secure)
    return response


async def _begin(request: Request) -> Response:
    """Send the browser to the provider.  What is needed when it comes back lies in a signed cookie."""
    site = site_of(request)
    provider, oidc = site.gate.provider, site.settings.oidc
    if provider is None or oidc is None or not oidc.client_id:
        raise RefusedError(404, "No provider", "no identity provider is set up for logins: [web.oidc] client_id")
    verifier = secrets.token_urlsafe(48)
    flow = {
        "state": secrets.token_urlsafe(24),
        "nonce": secrets.token_urlsafe(24),
        "verifier": verifier,
        "next": _own_path(request.query_params.get("next", "/")),
        "ends": site.now_ms() / 1000 + _FLOW_SECONDS,
    }
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    query = {
        "response_type": "code",
        "client_id": oidc.client_id,
        "redirect_uri": _redirect_uri(request),
        "scope": oidc.scope,
        "state": flow["state"],
        "nonce": flow["nonce"],
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    try:
        endpoint = await site.workers.run(lambda: provider.authorization_endpoint)
    except ProviderError as error:
        raise RefusedError(503, "Identity provider away", str(error)) from error
    response = RedirectResponse(f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}", 303)
    _set_cookie(site, response, f"{site.gate.cookie_name}-flow", _flows(site).signed(flow), _FLOW_SECONDS)
    return response


async def _come_back(request: Request) -> Response:
    """The browser comes from the provider with a code: get the ID token for it, and make a session."""
    site = site_of(request)
    flow = _flows(site).checked(request.cookies.get(f"{site.gate.cookie_name}-flow", ""))
    parameters = request.query_params
    if flow is None or flow["ends"] < site.now_ms() / 1000:
        raise RefusedError(400, "Login again", "the login took too long, or began in another browser")
    if not secrets.compare_digest(parameters.get("state", "").encode(), flow["state"].encode()):
        raise RefusedError(400, "Login again", "the answer of the identity provider belongs to another login")
    if "code" not in parameters:
        raise unauthorised(f"the identity provider refuses the login: {parameters.get('error', 'no code')[:200]}")
    uri = _redirect_uri(request)
    viewer = await site.workers.run(lambda: _identified(site, parameters["code"], flow, uri))
    response = _logged_in(site, viewer, flow["next"], "")
    response.delete_cookie(f"{site.gate.cookie_name}-flow", path="/", secure=site.gate.is_secure)
    return response


def _identified(site: Site, code: str, flow: dict[str, Any], redirect_uri: str) -> Viewer:
    oidc, provider, jwt = site.settings.oidc, site.gate.provider, site.gate.jwt
    if oidc is None or provider is None or jwt is None:
        raise RefusedError(404, "No provider", "no identity provider is set up")
    secret = read_secret(oidc.client_secret_file, "web.oidc.client_secret_file") if oidc.client_secret_file else ""
    try:
        token = provider.id_token(code, flow["verifier"], redirect_uri, secret)
    except ProviderError as error:
        raise RefusedError(503, "Identity provider away", str(error)) from error
    claims = jwt.claims(token)
    if claims.get("nonce") != flow["nonce"]:
        raise unauthorised("the token of the identity provider belongs to another login")
    return jwt.viewer(claims)


def _logged_in(site: Site, viewer: Viewer, target: str, digest: str) -> Response:
    response = RedirectResponse(_own_path(target), 303)
    seconds = int(site.settings.session_hours * 3600)
    cookie = site.gate.sessions.cookie(site.gate.session_of(viewer, token=digest))
    _set_cookie(site, response, site.gate.cookie_name, cookie, seconds)
    return response


def _set_cookie(site: Site, response: Response, name: str, value: str, seconds: int) -> None:
    response.set_cookie(
        name, value, max_age=seconds, path="/", secure=site.gate.is_secure, httponly=True, samesite="lax"
    )


def _page(request: Request, target: str, error: RefusedError | None = None) -> Response:
    site, oidc = site_of(request), site_of(request).settings.oidc
    own = _own_path(target)
    providers = []
    if oidc is not None and oidc.client_id:
        providers = [{"name": oidc.issuer, "href": f"{LOGIN}/provider?{urlencode({'next': own})}"}]
    page = site.templates.get_template("login.html")
    html = page.render(
        action=LOGIN,
        next=own,
        error="" if error is None else error.detail,
        providers=providers,
        tokens=site.gate.tokens is not None,
    )
    return HTMLResponse(html, 200 if error is None else error.status)


def _own_path(target: str) -> str:
    r"""*target* where it is a path of this site, else "/": browsers take //host and /\host for other sites."""
    is_own = target.startswith("/") and target[1:2] not in ("/", "\\") and target.isprintable()
    return target if is_own and not target.startswith(LOGIN) else "/"


def _redirect_uri(request: Request) -> str:
    scheme = "https" if site_of(request).gate.is_secure else "http"
    return f"{scheme}://{request.headers['host']}{_BACK}"


def _flows(site: Site) -> SessionSigner:
    return SessionSigner(site.gate.sessions.key, "login")
