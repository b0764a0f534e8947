"""Says who sends a request, by all ways that are set up, and refuses what another site makes a browser send."""

import time
from collections.abc import Callable
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from controller.model.lookalikes import misleads
from controller.settings.addresses import host_and_port
from controller.settings.web import WebSettings
from controller.web.access.jwt_tokens import JwtTokens
from controller.web.access.provider import Provider
from controller.web.access.proxy import TrustedProxy
from controller.web.access.sessions import Session, Sessions
from controller.web.access.tokens import Tokens
from controller.web.access.viewer import ANONYMOUS, RefusedError, Viewer, forbidden, unauthorised

#: The scope's state holds the common name of a client certificate under this key; only our own server sets it.
CERTIFICATE_NAME: Final = "client_certificate_name"
_SAFE: Final = ("GET", "HEAD", "OPTIONS")
_SCHEME: Final = "bearer "
_OWN_NAMES: Final = ("localhost",)


class AccessGate:
    """Who may come in, by *settings*."""

    def __init__(self, settings: WebSettings, *, now: Callable[[], float] = time.time) -> None:
        self.settings, self._now = settings, now
        self.tokens = Tokens(settings.tokens_file) if settings.tokens_file else None
        self.provider = Provider(settings.oidc) if settings.oidc else None
        self.jwt = JwtTokens(settings.oidc, self.provider) if settings.oidc and self.provider else None
        self.proxy = TrustedProxy(settings.proxy) if settings.proxy else None
        self.sessions = Sessions(settings.session_key_file)
        self._hosts = {host.lower() for host in (*settings.hosts, *_OWN_NAMES, host_and_port(settings.listen)[0])}

    @property
    def cookie_name(self) -> str:
        """Of a session.  With TLS browsers let no other host, and nobody without TLS, set a cookie of this name."""
        return "__Host-trimtab" if self.is_secure else "trimtab-session"

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach the page by TLS, of its own or a proxy's."""
        return self.settings.tls is not None or not self.settings.is_loopback

    def check_host(self, headers: Headers) -> None:
        """RefusedError where the browser believes to talk to another site, as after that site's name was rebound."""
        hosts = headers.getlist("host")
        if len(hosts) != 1:
            raise RefusedError(400, "Bad request", "a request has one header Host")
        name = _host_of(hosts[0])
        if name not in self._hosts and not _is_address(name):
            raise RefusedError(
                421,
                "Another host",
                "the page is not served under this name; [web] hosts lists those it is served under",
            )

    def check_transport(self, peer: str) -> None:
        """RefusedError where the request came in plain text from somewhere that is no proxy of ours."""
        if self.settings.tls is None and not self.settings.is_loopback:
            trusted = self.proxy is not None and self.proxy.is_peer(peer)
            if not trusted:
                raise forbidden("without TLS only the proxies in [web.proxy] are answered")

    def check_origin(self, method: str, headers: Headers, viewer: Viewer | None) -> None:
        """RefusedError where another site made the browser send a request that changes something.

        Browsers say where a request comes from.  A program that says nothing is believed, unless it has a session.
        """
        if method in _SAFE or (viewer is not None and not viewer.is_ambient):
            return
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None:
            is_own = site in ("same-origin", "none")
        elif origin is not None:
            is_own = urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
        else:
            is_own = viewer is None or viewer.login != "session"
        if not is_own:
            raise forbidden("another site may not send this request")

    def viewer(self, headers: Headers, peer: str, certificate_name: str = "") -> Viewer | None:
        """Who sends the request; None where it does not say so.  RefusedError where what it says is wrong, or where the
        name would be taken for another one: it is in the history, and counts as a second person."""
        viewer = self._viewer(headers, peer, certificate_name)
        if viewer is not None and misleads(viewer.name):
            raise forbidden(f"the name {viewer.name!a} looks like another one that is written in plain letters")
        return viewer

    def _viewer(self, headers: Headers, peer: str, certificate_name: str) -> Viewer | None:
        named = self.proxy.viewer(headers, peer) if self.proxy else None
        credentials = headers.getlist("authorization")
        if len(credentials) > 1:
            raise RefusedError(400, "Ambiguous user", "a request has one header Authorization at most")
        if credentials:
            return self._by_credential(credentials[0])
        viewer = self._by_certificate(certificate_name) or named or self._by_session(headers)
        if viewer is None and self.settings.anonymous is not None:
            return Viewer(name=ANONYMOUS, role=self.settings.anonymous, login="anonymous")
        return viewer

    def by_token(self, token: str) -> Viewer:
        """Whose *token* is, of the file or of the provider.  RefusedError where it is not valid."""
        viewer = self.tokens.viewer(token, self._now()) if self.tokens else None
        if viewer is None and self.jwt is not None and token.count(".") == 2:
            return self.jwt.viewer(self.jwt.claims(token))
        if viewer is None:
            raise unauthorised("the token is not known, or has expired")
        return viewer

    def session_of(self, viewer: Viewer, *, token: str = "") -> Session:
        """A session for *viewer*, who has just logged in; *token*: the hash of the token in the file."""
        ends = self._now() + self.settings.session_hours * 3600
        return Session(name=viewer.name, role=viewer.role, ends=ends, token=token)

    def _by_credential(self, credential: str) -> Viewer:
        if credential[: len(_SCHEME)].lower() != _SCHEME:
            raise unauthorised("Authorization has to be: Bearer TOKEN")
        return self.by_token(credential[len(_SCHEME) :].strip())

    def _by_certificate(self, name: str) -> Viewer | None:
        if not name or self.settings.tls is None:
            return None
        role = self.settings.tls.users.get(name)
        return None if role is None else Viewer(name=name, role=role, login="certificate")

    def _by_session(self, headers: Headers) -> Viewer | None:
        """Whose session it is; None where it is over, or was made with another key."""
        session = self.sessions.session(_cookie(headers, self.cookie_name), self._now())
        if session is None:
            return None
        if not session.token:
            return Viewer(name=session.name, role=session.role, login="session")
        holder = self.tokens.viewer_by_hash(session.token, self._now()) if self.tokens else None
        return None if holder is None else Viewer(name=holder.name, role=holder.role, login="session")


def _cookie(headers: Headers, name: str) -> str:
    return cookie_parser("; ".join(headers.getlist("cookie"))).get(name, "")


def _host_of(host: str) -> str:
    """The name or the address in a header Host."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    return name.strip("[]").lower()


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
