"""Tokens for Pulsar by OAuth 2.0 client credentials (RFC 6749, section 4.4).

The provider publishes its token endpoint (RFC 8414); the endpoint gives a token for the client's id and secret.  The
token is renewed ahead of its end, beside the work that needs it.
"""

import json
import logging
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import urllib3

from controller.adapters.network.deadline import Clock, Deadline
from controller.adapters.network.pool import RenewedConnections, because, connection_pool, read_answer
from controller.adapters.network.tls import Tls
from controller.adapters.pulsar.tokens import end_of, is_sendable
from controller.model.errors import SettingsError, TrimtabError
from controller.settings.access import OAuth2Settings
from controller.settings.redaction import SECRETS, redacted
from controller.settings.small_file import read_small_file, why_not_read_again

log = logging.getLogger(__name__)

_DISCOVERY: Final = "/.well-known/openid-configuration"
#: Limit on each of the two requests, seconds.
_ANSWER_SECONDS: Final = 5.0
_LARGEST_ANSWER: Final = 256 << 10
#: After a request for a token failed, the next one waits for so long.
_RETRY_SECONDS: Final = 10.0
#: Life of a token for which the provider names none.
_DEFAULT_LIFE_SECONDS: Final = 300.0
#: A token is renewed when this share of its life is left.
_RENEWED_WITH: Final = 0.25
_SECONDS_OF_A_YEAR: Final = 365 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class _Client:
    """What the credentials file holds."""

    id: str
    secret: str

    def __repr__(self) -> str:
        return f"_Client({self.id})"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    text: str
    client: _Client
    renewed_from: Deadline
    ends: Deadline


class TokenProvider:
    """Gives the token that is valid now.  Calls come one at a time."""

    def __init__(self, settings: OAuth2Settings, section: str, *, clock: Clock = time.monotonic) -> None:
        self._settings, self._section, self._clock = settings, f"{section}.oauth2", clock
        self._token: _Token | None = None
        self._renewal: threading.Thread | None = None
        self._next_try, self._problem = Deadline(0.0, clock), ""
        tls = Tls(trust_certs=settings.trust_certs or "")
        self._connections = RenewedConnections(
            tls if settings.issuer_url.startswith("https:") else None,
            lambda ssl_context: connection_pool(hosts=2, connections=1, ssl_context=ssl_context, verify_host=True),
        )

    def __call__(self) -> str:
        """A valid token.

        Raises SettingsError where the credentials file or the provider's answer to it is wrong, TrimtabError where the
        provider does not answer and no valid token is left.
        """
        client, token = self._client(), self._token
        if token is None or token.ends.passed or token.client != client:
            if not self._next_try.passed:
                raise TrimtabError(self._problem)
            return self._renew(client).text
        if (
            token.renewed_from.passed
            and self._next_try.passed
            and (self._renewal is None or not self._renewal.is_alive())
        ):
            self._renewal = threading.Thread(target=self._renew_beside, args=(client,), name="oauth2", daemon=True)
            self._renewal.start()
        return token.text

    def _renew_beside(self, client: _Client) -> None:
        try:
            self._renew(client)
        except TrimtabError as error:
            log.warning("%s; using the current token until it expires", error)

    def _renew(self, client: _Client) -> _Token:
        try:
            self._token = self._requested(client)
        except TrimtabError as error:
            self._next_try, self._problem = Deadline.after(_RETRY_SECONDS, self._clock), str(error)
            raise
        return self._token

    def _client(self) -> _Client:
        key, file = f"{self._section}.credentials_file", Path(self._settings.credentials_file)
        problem = why_not_read_again(file)
        try:
            values = {} if problem else json.loads(read_small_file(file))
            client = _Client(id=values["client_id"], secret=values["client_secret"])
        except OSError as error:
            problem = error.strerror or str(error)
        except (ValueError, TypeError, KeyError, RecursionError):
            problem = problem or "expected a JSON object with the strings client_id and client_secret"
        else:
            if all(isinstance(text, str) and text for text in (client.id, client.secret)):
                SECRETS.register(key, client.secret)
                return client
            problem = "client_id and client_secret must be strings that are not empty"
        raise SettingsError(f"{key}: the file that it names cannot be used: {problem}")

    def _requested(self, client: _Client) -> _Token:
        """A new token.  SettingsError where the provider refuses the client, TrimtabError without a usable answer."""
        form = {"grant_type": "client_credentials", "client_id": client.id, "client_secret": client.secret}
        optional = {"audience": self._settings.audience, "scope": self._settings.scope}
        form |= {key: value for key, value in optional.items() if value}
        endpoint = self._endpoint()
        answer = self._object("POST", endpoint, urlencode(form).encode())
        text, kind = answer.get("access_token"), answer.get("token_type", "Bearer")
        if not isinstance(text, str) or not text or not is_sendable(text) or str(kind).lower() != "bearer":
            raise self._unusable(f"POST {endpoint}: no bearer token in the answer")
        SECRETS.register(self._section, text)
        life = _life(answer.get("expires_in"), text)
        return _Token(
            text=text,
            client=client,
            renewed_from=Deadline.after(life * (1 - _RENEWED_WITH), self._clock),
            ends=Deadline.after(life, self._clock),
        )

    def _endpoint(self) -> str:
        """The address of the token endpoint; the secret goes to no address without TLS but to the issuer's own."""
        issuer = self._settings.issuer_url
        endpoint = self._object("GET", issuer + _DISCOVERY).get("token_endpoint")
        parts = urlsplit(endpoint) if isinstance(endpoint, str) else urlsplit("")
        if parts.scheme == "https" or (parts.scheme, parts.netloc) == ("http", urlsplit(issuer).netloc):
            return str(endpoint)
        raise self._unusable(f"GET {issuer}{_DISCOVERY}: token_endpoint = {endpoint!r:.200}: expected an https address")

    def _object(self, method: str, url: str, form: bytes | None = None) -> dict[str, Any]:
        headers = {"Accept": "application/json", "Accept-Encoding": "gzip"}
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        timeout = urllib3.Timeout(connect=_ANSWER_SECONDS, read=_ANSWER_SECONDS)
        try:
            response = self._connections.pool.request(
                method, url, body=form, headers=headers, redirect=False, timeout=timeout, preload_content=False
            )
            answer = read_answer(response, _LARGEST_ANSWER)
        except urllib3.exceptions.HTTPError as error:
            raise self._unusable(f"{method} {url}: no answer: {because(error)}") from error
        try:
            answer_json = json.loads(answer.data)
        except (ValueError, RecursionError):
            answer_json = None
        if answer.status in (400, 401, 403) and form is not None:
            raise SettingsError(
                f"[{self._section}] {method} {url}: the client is refused: {_reason(answer_json, answer.status)}"
            )
        if answer.status != 200 or not isinstance(answer_json, dict):
            raise self._unusable(f"{method} {url}: status {answer.status}, expected a JSON object")
        return answer_json

    def _unusable(self, what: str) -> TrimtabError:
        return TrimtabError(f"[{self._section}] {what}")


def _reason(answer: object, status: int) -> str:
    """RFC 6749, section 5.2."""
    if not isinstance(answer, dict):
        return f"status {status}"
    words = [str(answer[key]) for key in ("error", "error_description") if answer.get(key)]
    return redacted(": ".join(words) or f"status {status}")[:300]


def _life(expires_in: object, token: str) -> float:
    """Seconds until *token* ends: as the provider says, else as the token itself says."""
    if isinstance(expires_in, str) and expires_in.isdecimal() and len(expires_in) < 12:
        expires_in = int(expires_in)
    if isinstance(expires_in, int | float) and not isinstance(expires_in, bool) and expires_in > 0:
        return min(float(expires_in), _SECONDS_OF_A_YEAR)
    end = end_of(token)
    return max(end - time.time(), 1.0) if end is not None else _DEFAULT_LIFE_SECONDS
