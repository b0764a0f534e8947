"""Pulsar's admin and lookup REST API, as little of it as trimtab needs.

Redirects are followed here: brokers send callers on to each other with 307, and clients that follow by themselves
drop the credentials when the host changes.  Nothing is repeated here: no call of the API is idempotent, and only the
caller knows what may be done twice.  One client serves all threads.
"""

import base64
import json
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, Final
from urllib.parse import quote, urlencode, urljoin, urlsplit

import urllib3

from controller.model.errors import TrimtabError
from controller.model.names import BundleName, parse_bundle, topic_hash

_MOST_REDIRECTS: Final = 5
_SHOWN: Final = 300
#: Names tried for a topic in a bundle: enough for one in a million of the ring.
_PROBES: Final = 10_000_000
_TEMPORARY_REDIRECT: Final = frozenset({301, 302, 303, 307, 308})


class PulsarError(TrimtabError):
    """A call of the admin API failed.  ``status`` is HTTP's, 0 where no answer came.

    ``sent`` is False where the broker cannot have received the call: nothing has happened then.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Files in PEM: whom to trust instead of the system's authorities, and who we are."""

    trust_certs: str = ""
    certificate: str = ""
    key: str = ""
    #: False accepts certificates of other host names, as Pulsar's own clients do by default.
    verify_host: bool = True

    def context(self) -> ssl.SSLContext:
        """For every https connection.  TrimtabError where a file cannot be used."""
        try:
            context = ssl.create_default_context(cafile=self.trust_certs or None)
            if self.certificate:
                context.load_cert_chain(self.certificate, self.key or None)
        except (OSError, ssl.SSLError) as error:
            raise TrimtabError(f"TLS to Pulsar: {self.trust_certs} {self.certificate} {self.key}: {error}") from error
        context.check_hostname = self.verify_host
        return context


class PulsarAdmin:
    """The admin API behind *urls*, http(s)://host:port of one or more brokers of *cluster*, tried in this order.

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
    ) -> None:
        if not urls:
            raise TrimtabError("no admin URL of Pulsar is given")
        self._urls, self._cluster = tuple(url.rstrip("/") for url in urls), cluster
        self._headers = (credentials or Credentials()).headers()
        self._pool = urllib3.PoolManager(
            num_pools=64,
            maxsize=connections,
            retries=False,
            timeout=urllib3.Timeout(connect=connect_seconds, read=read_seconds),
            ssl_context=(tls or Tls()).context() if any(url.startswith("https:") for url in urls) else None,
            assert_hostname=None if tls is None or tls.verify_host else False,
        )

    def close(self) -> None:
        """End all connections."""
        self._pool.clear()

    def brokers(self) -> tuple[str, ...]:
        """The active brokers as host:port of HTTP, in order of their names."""
        return tuple(sorted(self._get(f"/admin/v2/brokers/{self._cluster}")))

    def leader(self) -> str:
        """The broker that leads Pulsar's own load manager."""
        return str(self._get("/admin/v2/brokers/leaderBroker")["brokerId"])

    def configuration(self) -> dict[str, str]:
        """A broker's settings as it runs with them, under broker.conf's names."""
        return dict(self._get("/admin/v2/brokers/configuration/runtime"))

    def load_report(self, broker: str) -> dict[str, Any]:
        """*broker*'s LocalBrokerData; with the extensible load manager: PulsarError, status 500."""
        return dict(self._get("/admin/v2/broker-stats/load-report", at=broker))

    def topic_stats(self, broker: str) -> dict[str, Any]:
        """*broker*'s topics: namespace -> bundle range -> persistent or non-persistent -> topic -> statistics."""
        return dict(self._get("/admin/v2/broker-stats/topics", at=broker))

    def boundaries(self, namespace: str) -> tuple[int, ...]:
        """The boundaries of *namespace*'s bundles, ascending."""
        answer = self._get(f"/admin/v2/namespaces/{namespace}/bundles")
        return tuple(int(boundary, 16) for boundary in answer["boundaries"])

    def policies(self, namespace: str) -> dict[str, Any]:
        """The policies of *namespace*."""
        return dict(self._get(f"/admin/v2/namespaces/{namespace}"))

    def owned(self, broker: str) -> frozenset[str]:
        """The bundles that *broker* says are its own; asking changes nothing."""
        answer = self._get(f"/admin/v2/brokers/{self._cluster}/{broker}/ownedNamespaces", at=broker)
        return frozenset(bundle for bundle, state in answer.items() if state.get("is_active", True))

    def owner(self, bundle: str, brokers: Sequence[str] = ()) -> str:
        """Who has *bundle*, "" when nobody has: the *brokers* are asked first, then all others; changes nothing."""
        first = [broker for broker in dict.fromkeys(brokers) if broker]
        for broker in first:
            if self._has(broker, bundle):
                return broker
        return next((each for each in self.brokers() if each not in first and bundle in self.owned(each)), "")

    def lookup(self, bundle: str) -> str:
        """The broker that serves *bundle*; one that nobody has gets its owner by this, as at a client's lookup."""
        topic = probe_topic(parse_bundle(bundle))
        answer = self._get(f"/lookup/v2/topic/{topic.replace('://', '/')}")
        url = answer.get("httpUrl") or answer.get("httpUrlTls") or answer.get("brokerUrl") or ""
        return urlsplit(url).netloc

    def unload(self, bundle: str, destination: str = "") -> None:
        """Take *bundle* off its owner; *destination* is only a wish, and never to be given for an unowned bundle.

        Pulsar keeps the wish by the range alone, without the namespace: unused, it steers somebody else's bundle.
        """
        self._call("PUT", f"{_path(bundle)}/unload", {"destinationBroker": destination} if destination else {})

    def split(self, bundle: str, *, algorithm: str = "", boundaries: Sequence[int] = (), unload: bool = False) -> None:
        """Cut *bundle* at *boundaries*, or wherever *algorithm* wants to; no error does not mean that it was cut."""
        name = "specified_positions_divide" if boundaries else algorithm
        query = {"unload": str(unload).lower()} | ({"splitAlgorithmName": name} if name else {})
        body = json.dumps(list(boundaries)).encode() if boundaries else None
        self._call("PUT", f"{_path(bundle)}/split", query, body=body)

    def _has(self, broker: str, bundle: str) -> bool:
        """False also for a broker that is gone: another one has its bundles, or nobody."""
        try:
            return bundle in self.owned(broker)
        except PulsarError as error:
            if error.status == 404 or not error.sent:
                return False
            raise

    def _get(self, path: str, at: str = "") -> Any:
        body = self._call("GET", path, {}, at=at)
        try:
            return json.loads(body)
        except ValueError as error:
            raise PulsarError(f"GET {path}: no JSON: {_shown(body)}") from error

    def _call(
        self, method: str, path: str, query: Mapping[str, str], *, body: bytes | None = None, at: str = ""
    ) -> bytes:
        target = quote(path, safe="/:") + (f"?{urlencode(query)}" if query else "")
        scheme = urlsplit(self._urls[0]).scheme
        starts = [f"{scheme}://{at}"] if at else self._urls
        for last, start in zip(_is_last(len(starts)), starts, strict=True):
            try:
                return self._follow(method, start + target, body)
            except PulsarError as error:
                # Another broker may be asked where this one cannot have heard anything.
                if error.sent or last:
                    raise
        raise AssertionError("the last URL returns or raises")

    def _follow(self, method: str, url: str, body: bytes | None) -> bytes:
        first = url
        for _ in range(_MOST_REDIRECTS + 1):
            answer = self._send(method, url, body)
            if answer.status not in _TEMPORARY_REDIRECT:
                break
            url = urljoin(url, answer.headers.get("Location", ""))
            if urlsplit(url).scheme != urlsplit(first).scheme:
                # Credentials are not carried from https to http, nor anywhere else but to a broker's own address.
                raise PulsarError(f"{method} {first}: redirected to {url}, which is not {urlsplit(first).scheme}")
        else:
            raise PulsarError(f"{method} {first}: redirected {_MOST_REDIRECTS + 1} times, last to {url}")
        if answer.status >= 300:
            raise PulsarError(
                f"{method} {url}: {answer.status} {answer.reason}: {_reason(answer.data)}", status=answer.status
            )
        return answer.data

    def _send(self, method: str, url: str, body: bytes | None) -> urllib3.BaseHTTPResponse:
        headers = {**self._headers, "Accept": "application/json", "Accept-Encoding": "gzip"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            return self._pool.request(method, url, body=body, headers=headers, redirect=False)
        except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError) as error:
            raise PulsarError(f"{method} {url}: no connection: {error}", sent=False) from error
        except urllib3.exceptions.HTTPError as error:
            raise PulsarError(f"{method} {url}: no answer: {type(error).__name__}: {error}") from error


def probe_topic(bundle: BundleName) -> str:
    """The name of a topic that would lie in *bundle*; looking it up creates nothing.  TrimtabError: none was found."""
    for name in _names(bundle.namespace):
        if bundle.lower <= topic_hash(name) < bundle.upper:
            return name
    raise TrimtabError(f"{bundle}: too narrow to find the name of a topic in it")


def _names(namespace: str) -> Iterator[str]:
    return (f"non-persistent://{namespace}/trimtab-{number}" for number in islice(count(), _PROBES))


def _path(bundle: str) -> str:
    name = parse_bundle(bundle)
    return f"/admin/v2/namespaces/{name.namespace}/{name.range}"


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
