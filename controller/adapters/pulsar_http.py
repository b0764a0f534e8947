"""Calls of Pulsar's REST API.

Redirects are followed here: brokers send callers on to each other with 307, and clients that follow by themselves
drop the credentials when the host changes.  One client serves all threads.
"""

import base64
import copy
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import quote, urlencode, urljoin, urlsplit

import urllib3

from controller.adapters.tls import Tls
from controller.model.errors import TrimtabError

_MOST_REDIRECTS: Final = 5
_SHOWN: Final = 300
_REDIRECTED: Final = frozenset({301, 302, 303, 307, 308})


class PulsarError(TrimtabError):
    """A call of the admin API failed.  ``status`` is HTTP's, 0 where no answer came.

    ``sent`` is False where no broker can have received the call: nothing has happened then.
    """

    def __init__(self, message: str, *, status: int = 0, sent: bool = True) -> None:
        super().__init__(message)
        self.status, self.sent = status, sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """How brokers know who calls: a token, or a user with a password; none is allowed."""

    token: str = ""
    user: str = ""
    password: str = ""

    def headers(self) -> dict[str, str]:
        """What every request carries."""
        if self.token:
            return {"Authorization": f"Bearer {self.token}"}
        if self.user:
            pair = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            return {"Authorization": f"Basic {pair}"}
        return {}

    def __repr__(self) -> str:
        """Without the secrets: errors and logs show it."""
        return f"Credentials({'token' if self.token else self.user or 'none'})"


class PulsarHttp:
    """The REST API behind *urls*, http(s)://host:port of one or more brokers of *cluster*, tried in this order.

    Every call raises PulsarError, naming method, URL, status and the broker's reason.
    """

    def __init__(
        self,
        urls: Sequence[str],
        *,
        cluster: str,
        credentials: Credentials | None = None,
        tls: Tls | None = None,
        connect_seconds: float = 5.0,
        read_seconds: float = 60.0,
        connections: int = 16,
        hosts: int = 64,
    ) -> None:
        if not urls:
            raise TrimtabError("no admin URL of Pulsar is given")
        self._urls, self._cluster = tuple(url.rstrip("/") for url in urls), cluster
        self._headers = (credentials or Credentials()).headers()
        self._connect_seconds, self._read_seconds = connect_seconds, read_seconds
        #: Of the monotonic clock: from then on every call fails.
        self._deadline = math.inf
        #: With https: broker -> where it answers.
        self._addresses: dict[str, str] = {}
        self._pool = urllib3.PoolManager(
            num_pools=hosts,
            maxsize=connections,
            retries=False,
            ssl_context=(tls or Tls()).context() if any(url.startswith("https:") for url in urls) else None,
            assert_hostname=None if tls is None or tls.verify_host else False,
        )

    def close(self) -> None:
        """End all connections."""
        self._pool.clear()

    def within(self, seconds: float) -> Self:
        """The same API on the same connections, whose calls all end within *seconds* from now, or a little after."""
        limited = copy.copy(self)
        limited._deadline = min(self._deadline, time.monotonic() + seconds)
        return limited

    @property
    def seconds_left(self) -> float:
        """Until all calls fail; infinite where there is no such limit."""
        return self._deadline - time.monotonic()

    def _get(self, path: str, at: str = "") -> Any:
        body = self._call("GET", path, {}, at=at)
        try:
            return json.loads(body)
        except ValueError as error:
            raise PulsarError(f"GET {path}: no JSON: {_shown(body)}", status=200) from error

    def _call(
        self, method: str, path: str, query: Mapping[str, str], *, body: bytes | None = None, at: str = ""
    ) -> bytes:
        target = quote(path, safe="/:") + (f"?{urlencode(query)}" if query else "")
        starts = [self._address(at)] if at else self._urls
        for last, start in zip(_is_last(len(starts)), starts, strict=True):
            try:
                return self._follow(method, start + target, body)
            except PulsarError as error:
                # Another broker may be asked where this one cannot have heard anything.
                if error.sent or last:
                    raise
        raise AssertionError("the last URL returns or raises")

    def _address(self, broker: str) -> str:
        """Where *broker* answers.  Its name holds its port for http; with https the others know where to send us."""
        if not self._urls[0].startswith("https:"):
            return f"http://{broker}"
        if broker not in self._addresses:
            asked = f"/admin/v2/brokers/{self._cluster}/{quote(broker, safe=':')}/ownedNamespaces"
            for last, url in zip(_is_last(len(self._urls)), self._urls, strict=True):
                try:
                    answer = self._send("GET", url + asked, None)
                except PulsarError as error:
                    if error.sent or last:
                        raise
                    continue
                if answer.status in _REDIRECTED:
                    url = urljoin(url, answer.headers.get("Location", ""))
                elif answer.status == 404:
                    url = f"https://{broker}"  # not a name that brokers know: an address already
                elif answer.status >= 300:
                    raise PulsarError(
                        f"GET {url}{asked}: {answer.status} {answer.reason}: {_reason(answer.data)}",
                        status=answer.status,
                    )
                if not url.startswith("https:"):
                    raise PulsarError(f"{broker} does not speak https: it is at {url}")
                self._addresses[broker] = f"https://{urlsplit(url).netloc}"
                break
        return self._addresses[broker]

    def _follow(self, method: str, url: str, body: bytes | None) -> bytes:
        first = url
        for hop in range(_MOST_REDIRECTS + 1):
            try:
                answer = self._send(method, url, body)
            except PulsarError as error:
                # Who sends callers on may have taken the call in all the same, as the leader does with destinations.
                error.sent = error.sent or (hop > 0 and method != "GET")
                raise
            if answer.status not in _REDIRECTED:
                break
            url = urljoin(url, answer.headers.get("Location", ""))
            if urlsplit(url).scheme != urlsplit(first).scheme:
                # Credentials are not carried from https to http.
                raise PulsarError(f"{method} {first}: redirected to {url}, which is not {urlsplit(first).scheme}")
        else:
            raise PulsarError(f"{method} {first}: redirected {_MOST_REDIRECTS + 1} times, last to {url}")
        if answer.status >= 300:
            raise PulsarError(
                f"{method} {url}: {answer.status} {answer.reason}: {_reason(answer.data)}", status=answer.status
            )
        return answer.data

    def _send(self, method: str, url: str, body: bytes | None) -> urllib3.BaseHTTPResponse:
        left = self.seconds_left
        if left <= 0:
            raise PulsarError(f"{method} {url}: no time is left for it", sent=False)
        timeout = urllib3.Timeout(connect=min(self._connect_seconds, left), read=min(self._read_seconds, left))
        headers = {**self._headers, "Accept": "application/json", "Accept-Encoding": "gzip"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            return self._pool.request(method, url, body=body, headers=headers, redirect=False, timeout=timeout)
        except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError) as error:
            raise PulsarError(f"{method} {url}: no connection: {error}", sent=False) from error
        except urllib3.exceptions.HTTPError as error:
            raise PulsarError(f"{method} {url}: no answer: {type(error).__name__}: {error}") from error


def _is_last(number: int) -> list[bool]:
    return [nth == number - 1 for nth in range(number)]


def _reason(body: bytes) -> str:
    """What the broker says: the reason of its JSON, else what there is."""
    try:
        fields = json.loads(body)
    except ValueError:
        return _shown(body)
    return str(fields.get("reason", fields))[:_SHOWN] if isinstance(fields, dict) else _shown(body)


def _shown(body: bytes) -> str:
    return body[:_SHOWN].decode(errors="replace").strip()
