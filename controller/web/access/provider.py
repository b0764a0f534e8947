"""What an identity provider says over HTTP: its discovery document, its keys, and tokens for a code."""

import json
import threading
import time
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from controller.adapters.network.deadline import Clock, Deadline
from controller.adapters.network.pool import HttpError, RenewedConnections, because, connection_pool, read_answer
from controller.adapters.network.tls import Tls
from controller.model.errors import TrimtabError
from controller.settings.web import OidcSettings

_DISCOVERY: Final = "/.well-known/openid-configuration"
#: Limit on each request, seconds.
_ANSWER_SECONDS: Final = 5.0
_LARGEST_ANSWER: Final = 256 << 10
#: The discovery document and the keys are asked for again so often.
_KEPT_SECONDS: Final = 600.0
#: After an answer that was of no use, or for a key that is not among the known ones.
_AGAIN_SECONDS: Final = 30.0
#: While one asks, the others wait so long for what it hears: anybody can send a token that has to be asked about.
_WAIT_SECONDS: Final = 1.0


class ProviderError(TrimtabError):
    """The provider does not answer, or with something that cannot be used."""


class Provider:
    """The provider of *settings*.  For several threads: one asks, the others wait for what it hears, *wait_seconds*."""

    def __init__(
        self, settings: OidcSettings, *, clock: Clock = time.monotonic, wait_seconds: float = _WAIT_SECONDS
    ) -> None:
        self._settings, self._clock = settings, clock
        tls = Tls(trust_certs=settings.trust_certs or "")
        self._connections = RenewedConnections(
            tls if settings.issuer.startswith("https:") else None,
            lambda ssl_context: connection_pool(hosts=4, connections=2, ssl_context=ssl_context, verify_host=True),
        )
        self._discovery = _Remembered(self._discovered, clock, wait_seconds)
        self._keys = _Remembered(self._fetched_keys, clock, wait_seconds)

    def keys(self, *, anew: bool = False) -> dict[str, Any]:
        """The JWKS.  *anew*: ask again where that was not done just now.  ProviderError."""
        return self._keys.value(anew=anew)

    @property
    def authorization_endpoint(self) -> str:
        """Where browsers log in.  ProviderError."""
        return self._endpoint("authorization_endpoint")

    def id_token(self, code: str, verifier: str, redirect_uri: str, secret: str) -> str:
        """The ID token for the *code* of a login.  ProviderError."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "client_id": self._settings.client_id,
            "code_verifier": verifier,
        }
        if secret:
            form["client_secret"] = secret
        value = self._request("POST", self._endpoint("token_endpoint"), form).get("id_token")
        if not isinstance(value, str):
            raise ProviderError("[web.oidc] the provider gave no id_token for the code of a login")
        return value

    def _fetched_keys(self) -> dict[str, Any]:
        return self._request("GET", self._settings.jwks_url or self._endpoint("jwks_uri"))

    def _discovered(self) -> dict[str, Any]:
        value = self._request("GET", self._settings.issuer + _DISCOVERY)
        if str(value.get("issuer", "")).rstrip("/") != self._settings.issuer:
            raise ProviderError(
                f"[web.oidc] the provider calls itself {value.get('issuer')!r:.200}, not as issuer says"
            )
        return value

    def _endpoint(self, name: str) -> str:
        """An address of the discovery document; without TLS only on the issuer's own address."""
        value = self._discovery.value().get(name)
        parts = urlsplit(value) if isinstance(value, str) else urlsplit("")
        own = urlsplit(self._settings.issuer)
        if parts.scheme == "https" or (parts.scheme, parts.netloc) == ("http", own.netloc):
            return str(value)
        raise ProviderError(f"[web.oidc] {name} = {value!r:.200}: expected an https address")

    def _request(self, method: str, url: str, form: dict[str, str] | None = None) -> dict[str, Any]:
        headers = {"Accept": "application/json"}
        body = None if form is None else urlencode(form).encode()
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        try:
            response = self._connections.pool.request(
                method, url, body=body, headers=headers, redirect=False, timeout=_ANSWER_SECONDS, preload_content=False
            )
            answer = read_answer(response, _LARGEST_ANSWER)
        except HttpError as error:
            raise ProviderError(f"[web.oidc] {method} {url}: no answer: {because(error)}") from error
        try:
            value = json.loads(answer.data)
        except (ValueError, RecursionError):
            value = None
        if answer.status != 200 or not isinstance(value, dict):
            raise ProviderError(f"[web.oidc] {method} {url}: status {answer.status}, expected a JSON object")
        return value


class _Remembered:
    """An answer of the provider's that holds for a while.  An earlier one holds while no new one can be had."""

    def __init__(self, ask: Callable[[], dict[str, Any]], clock: Clock, wait_seconds: float) -> None:
        self._ask, self._clock, self._turn, self._wait_seconds = ask, clock, threading.Lock(), wait_seconds
        self._value: dict[str, Any] | None = None
        self._old, self._next_try = Deadline(0.0, clock), Deadline(0.0, clock)
        self._problem = "[web.oidc] the provider has not answered yet"

    def value(self, *, anew: bool = False) -> dict[str, Any]:
        if not self._turn.acquire(timeout=self._wait_seconds):
            return self._known()
        try:
            if (self._value is None or anew or self._old.passed) and self._next_try.passed:
                self._next_try = Deadline.after(_AGAIN_SECONDS, self._clock)
                try:
                    self._value = self._ask()
                    self._old = Deadline.after(_KEPT_SECONDS, self._clock)
                except ProviderError as error:
                    self._problem = str(error)
            return self._known()
        finally:
            self._turn.release()

    def _known(self) -> dict[str, Any]:
        if self._value is None:
            raise ProviderError(self._problem)
        return self._value
