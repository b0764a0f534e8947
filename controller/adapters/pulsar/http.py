"""Calls of Pulsar's REST API.

A read continues with the next admin URL if one does not answer. A call that acts does so only if no broker can have
received it.

Redirects are followed here: brokers send callers on to each other with 307, and clients that follow by themselves
drop the credentials when the host changes.  One client serves all threads.

Every request goes through ``_send``, and that sends nothing to an address that is neither an admin URL of the settings
nor an active broker (see trusted.py).
"""

import copy
import logging
import math
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final, Self
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import urllib3

from controller.adapters.network.deadline import Deadline
from controller.adapters.network.pool import (
    LARGEST_ANSWER,
    HttpAnswer,
    RenewedConnections,
    TooLargeError,
    because,
    connection_pool,
    read_answer,
)
from controller.adapters.network.tls import Tls, is_refusal, refusal
from controller.adapters.network.unreachable import LOOK_SECONDS, NO_ANSWER, why_no_connection
from controller.adapters.pulsar.answers import (
    TOO_MANY,
    LargeAnswerError,
    NotListedError,
    PulsarError,
    as_object,
    excerpt,
    location,
    refuse_many,
    refused,
    retry_after,
    value_of,
)
from controller.adapters.pulsar.credentials import Credentials
from controller.adapters.pulsar.server_clocks import ServerClocks
from controller.adapters.pulsar.trusted import Origin, TrustedAddresses, origin
from controller.model.errors import TrimtabError
from controller.model.names import is_name
from controller.settings.redaction import redacted
from controller.wire.metrics import MAX_BROKERS

__all__ = ["NO_QUERY", "LargeAnswerError", "NotListedError", "PulsarError", "PulsarHttp"]

log = logging.getLogger(__name__)

_MOST_REDIRECTS: Final = 5
#: For the list of active brokers, from each admin URL.
_LIST_SECONDS: Final = 5.0
#: A tick lists no more; a longer list is an error.
_MOST_BROKERS: Final = MAX_BROKERS
NO_QUERY: Final[Mapping[str, str]] = {}
_USUAL_PORTS: Final = {"http": 80, "https": 443}
_REDIRECTED: Final = frozenset({301, 302, 303, 307, 308})
#: A question is asked again for so long where there are too many; the pause doubles, and is never shorter than told.
_TOO_MANY_SECONDS: Final = 30.0
_TOO_MANY_PAUSE_SECONDS: Final = 0.5
#: An act does not go on, to another address or by a redirect, once it is so old: whether it may still be done was asked
#: before that.
_ACT_SECONDS: Final = 5.0
#: Of the query of a call that brokers send on: whether the sender leads Pulsar's load manager, which it adds, and the
#: destination of an unload, which the leader keeps for itself.
_ADDED, _DROPPED = "authoritative", "destinationBroker"
#: No name of a tenant, a namespace or a broker.
_DOTS: Final = frozenset({".", ".."})
#: An admin URL that did not answer is asked after the others for so long.
_SILENT_SECONDS: Final = 30.0
#: In an answer that is as long as allowed, on average at least: brokers' own statistics have about twenty.
_BYTES_OF_A_VALUE: Final = 16


class PulsarHttp:
    """The REST API behind *urls*, http(s)://host:port of one or more brokers of *cluster*, tried in this order.

    Every call raises PulsarError, naming method, URL, status and the broker's reason.
    """

    #: Of the settings, where *urls* are from.
    section: ClassVar[str] = "[pulsar]"
    #: Bytes of an answer that are read, unpacked; a longer one is an error.
    largest_answer: int = LARGEST_ANSWER
    #: Values of JSON in an answer at most.  They are made in one go, in which no other thread runs, and three bytes may
    #: become a hundred.  Brokers' own statistics have one in about twenty bytes.
    most_values: int = LARGEST_ANSWER // _BYTES_OF_A_VALUE

    def __init__(
        self,
        urls: Sequence[str],
        *,
        cluster: str,
        credentials: Credentials | Callable[[], Credentials] | None = None,
        tls: Tls | None = None,
        connect_seconds: float = 5.0,
        read_seconds: float = 60.0,
        connections: int = 16,
        hosts: int = 64,
        sleep: Callable[[float], None] = lambda seconds: time.sleep(seconds),
        pool: Callable[..., urllib3.PoolManager] = connection_pool,
    ) -> None:
        """*pool* makes the connections, as ``connection_pool`` does."""
        if not urls:
            raise TrimtabError("no admin URL of Pulsar is configured")
        self._urls, self._cluster = tuple(url.rstrip("/") for url in urls), cluster
        fixed = Credentials() if credentials is None or callable(credentials) else credentials
        #: Asked before each request.
        self._credentials = credentials if callable(credentials) else lambda: fixed
        self._connect_seconds, self._read_seconds, self._sleep = connect_seconds, read_seconds, sleep
        #: Called when an answer has begun.
        self._answering: Callable[[], object] = lambda: None
        #: From then on every call fails.
        self._deadline = Deadline(math.inf)
        self._trusted = TrustedAddresses(self._urls)
        #: Those that did not answer lately -> until when they are asked last.  Shared by all that ``within`` returns.
        self._silent: dict[Origin | None, Deadline] = {}
        #: What all servers say with their answers, shared likewise.
        self.clocks = ServerClocks()
        #: False on a copy that is about to read the list of active brokers itself.
        self._may_list = True
        #: With https: active broker -> where it answers.
        self._addresses: dict[str, str] = {}
        #: Shared by all that ``within`` returns.
        self._connections = RenewedConnections(
            (tls or Tls()) if any(url.startswith("https:") for url in urls) else None,
            partial(pool, hosts=hosts, connections=connections, verify_host=tls is None or tls.verify_host),
        )

    def close(self) -> None:
        """End all connections."""
        self._connections.close()

    def within(self, seconds: float, answering: Callable[[], object] | None = None) -> Self:
        """The same API on the same connections, whose calls all end within *seconds* from now, or a little after.

        *answering* is called whenever a server has begun to answer such a call.
        """
        limited = copy.copy(self)
        limited._deadline = self._deadline.within(seconds)
        limited._answering = answering or self._answering
        return limited

    def reading_at_most(self, largest_answer: int) -> Self:
        """The same API on the same connections; LargeAnswerError where an answer is longer, or has too many values."""
        limited = copy.copy(self)
        limited.largest_answer = min(largest_answer, self.largest_answer)
        limited.most_values = min(largest_answer // _BYTES_OF_A_VALUE, self.most_values)
        return limited

    def why_unreachable(self) -> str:
        """Why none of the admin URLs answers; "" if one does, even with a refusal."""
        reasons = {url: self._why_unreachable(url) for url in self._urls}
        if not all(reasons.values()):
            return ""
        return next(iter(reasons.values())) if len(reasons) == 1 else "; ".join(map(": ".join, reasons.items()))

    def _why_unreachable(self, url: str) -> str:
        parts = urlsplit(url)
        refused = why_no_connection(parts.hostname or "", parts.port or _USUAL_PORTS[parts.scheme])
        if refused:
            return refused
        try:
            self.within(LOOK_SECONDS)._send("GET", f"{url}/admin/v2/brokers/version", None)
        except PulsarError as error:
            # With TLS somebody answers: whoever calls says what is wrong.
            return "" if isinstance(error.__cause__, urllib3.exceptions.SSLError) else NO_ANSWER
        return ""

    @property
    def seconds_left(self) -> float:
        """Until all calls fail; infinite where there is no such limit."""
        return self._deadline.remaining

    def brokers(self) -> tuple[str, ...]:
        """The active brokers as host:port of HTTP, in order of their names, asked anew."""
        # Asked at the admin URLs alone: this list decides who else gets the credentials.
        asking = self.within(_LIST_SECONDS, lambda: None)
        asking._may_list = False
        path = f"/admin/v2/brokers/{self._cluster}"
        urls = self._starts()
        for last, url in zip(_is_last(len(urls)), urls, strict=True):
            try:
                names = asking._names(path, url)
                break
            except PulsarError as error:
                if last or not _goes_on("GET", error):
                    self._trusted.failed(str(error), away=error.away)
                    raise
                asking._deadline = self.within(_LIST_SECONDS)._deadline
        self._learn(names)
        return names

    def active_brokers(self) -> tuple[str, ...]:
        """As ``brokers``, of whichever cluster it is that the URLs lead to."""
        names = self._names("/admin/v2/brokers")
        self._learn(names)
        return names

    def is_active(self, broker: str) -> bool:
        """Whether *broker* is an active one; its credentials go to no other.  PulsarError: that is not known."""
        is_listed = self._in_fresh_list(lambda: broker in self._trusted.names)
        if not is_listed and not self._trusted.is_known:
            raise PulsarError(
                f"cannot determine the active brokers: {self._trusted.problem}", sent=False, away=self._trusted.away
            )
        return is_listed

    def _names(self, path: str, url: str = "", query: Mapping[str, str] = NO_QUERY) -> tuple[str, ...]:
        """A list of names, sorted; asked at the admin URL *url*, or with *query* at any."""
        answer = self._follow("GET", url + quote(path), None) if url else self._call("GET", path, query)
        names = self._json(answer, path)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise PulsarError(f"GET {path}: expected a list of names, found {excerpt(answer)}", status=200)
        return tuple(sorted(names))

    def _learn(self, brokers: Sequence[str]) -> None:
        if len(brokers) > _MOST_BROKERS:
            raise PulsarError(f"{len(brokers)} active brokers are listed, allowed: {_MOST_BROKERS}", status=200)
        odd = next((name for name in brokers if not is_name(name)), None)
        if odd is not None:
            name = redacted(repr(odd))
            raise PulsarError(
                f"an active broker is listed as {name:.100}, which is not a valid broker name", status=200
            )
        self._trusted.learn(brokers)
        for removed in [name for name in list(self._addresses) if name not in self._trusted.names]:
            self._addresses.pop(removed, None)

    def _in_fresh_list(self, is_listed: Callable[[], bool]) -> bool:
        """Whether *is_listed*; the list is read anew before where it is old, or does not have it, and is due."""
        trusted = self._trusted
        if self._may_list and trusted.is_due(is_listed=is_listed()):
            with trusted.reading:
                if trusted.is_due(is_listed=is_listed()):
                    try:
                        self.brokers()
                    except PulsarError as error:
                        log.warning("cannot list the active brokers; using the last list: %s", error)
        return is_listed()

    def _require(self, method: str, url: str) -> None:
        """Raise NotListedError unless *url* leads to an admin URL or to an active broker."""
        trusted = self._trusted
        if not trusted.is_own(url) and not self._in_fresh_list(lambda: trusted.admits(url)):
            raise self._not_listed(f"{method} {url}")

    def _not_listed(self, call: str) -> NotListedError:
        problem, cluster = self._trusted.problem, f" of {self._cluster}" if self._cluster else ""
        return NotListedError(
            f"{call:.300}: request not sent: the address is neither an active broker{cluster} nor an "
            f"admin_url in {self.section}" + (f"; the active brokers could not be listed: {problem}" if problem else "")
        )

    def _get(self, path: str, at: str = "", query: Mapping[str, str] = NO_QUERY) -> Any:
        return self._json(self._call("GET", path, query, at=at), path)

    def _json(self, body: bytes, path: str) -> Any:
        refuse_many(body, self.most_values, path)
        return value_of(body, path)

    def _object(self, path: str, at: str = "", query: Mapping[str, str] = NO_QUERY) -> dict[str, Any]:
        return as_object(self._get(path, at, query), path)

    def _object_there(self, path: str, at: str, query: Mapping[str, str]) -> dict[str, Any]:
        """As ``_object``, from *at* itself: empty where that sends callers on."""
        url = self._address(at) + _target(path, query)
        answer = self._send("GET", url, None)
        if answer.status in _REDIRECTED:
            return {}
        if answer.status >= 300:
            raise refused("GET", url, answer)
        return as_object(self._json(answer.data, path), path)

    def _call(
        self, method: str, path: str, query: Mapping[str, str], *, body: bytes | None = None, at: str = ""
    ) -> bytes:
        starts = [self._address(at)] if at else self._starts()
        target, fresh = _target(path, query), _fresh(method)
        for nth, start in enumerate(starts):
            to_ask = len(starts) - nth
            # One that does not answer leaves time for those that are asked after it.
            asking = self.within(self.seconds_left / to_ask) if method == "GET" else self
            try:
                return asking._follow(method, start + target, body, fresh)
            except PulsarError as error:
                if to_ask == 1 or not _goes_on(method, error) or fresh.passed:
                    raise
        raise AssertionError("the last URL returns or raises")

    def _starts(self) -> list[str]:
        """The admin URLs, those last that did not answer lately."""
        return sorted(self._urls, key=self._is_silent)

    def _is_silent(self, url: str) -> bool:
        until = self._silent.get(origin(url))  # once: another thread may take it out
        return until is not None and not until.passed

    def _address(self, broker: str) -> str:
        """Where *broker* answers.  Its name holds its port for http; with https the others know where to send us.

        NotListedError where it is no active broker.
        """
        if not self._in_fresh_list(lambda: broker in self._trusted.names):
            raise self._not_listed(f"call of {broker}")
        if not self._urls[0].startswith("https:"):
            return f"http://{broker}"
        known = self._addresses.get(broker)  # once: another thread may take it out
        if known is None:
            known = self._addresses[broker] = self._secure_address(broker)
        return known

    def _secure_address(self, broker: str) -> str:
        """Where *broker* answers with https: where the others send callers of it to, or where it answers itself."""
        path = f"/admin/v2/brokers/{self._cluster}/{quote(broker, safe=':')}/ownedNamespaces"
        urls = self._starts()
        for last, url in zip(_is_last(len(urls)), urls, strict=True):
            try:
                answer = self._send("GET", url + path, None)
            except PulsarError as error:
                if last or not _goes_on("GET", error):
                    raise
                continue
            there = url
            if answer.status in _REDIRECTED:
                there = location(url, answer)
            elif answer.status >= 300:
                raise refused("GET", url + path, answer)
            if not there.startswith("https:"):
                raise PulsarError(f"{broker} does not speak https: it is at {redacted(there)}")
            self._require("GET", there)
            return f"https://{urlsplit(there).netloc}"
        raise AssertionError("the last URL returns or raises")

    def _follow(self, method: str, url: str, body: bytes | None, fresh: Deadline | None = None) -> bytes:
        first, fresh = url, fresh or _fresh(method)
        for hop in range(_MOST_REDIRECTS + 1):
            try:
                answer = self._send(method, url, body)
            except PulsarError as error:
                # A broker that redirects may have acted on the call all the same, as the leader does with destinations.
                error.sent = error.sent or (hop > 0 and method != "GET")
                raise
            if answer.status not in _REDIRECTED:
                break
            url = location(url, answer)
            if urlsplit(url).scheme != urlsplit(first).scheme:
                # Credentials are not carried from https to http.
                why = f"redirected to {redacted(url)}, which is not {urlsplit(first).scheme}"
                raise PulsarError(f"{method} {first}: {why}")
            if fresh.passed:
                why = f"redirected to {redacted(url)} after more than {_ACT_SECONDS:g} s: too late"
                # Its status says that nothing is under way there: it may be tried again once it is checked anew.
                raise PulsarError(f"{method} {first}: {why}", status=answer.status)
            if method != "GET" and not _is_same_call(first, url):
                raise PulsarError(f"{method} {first}: redirected to {redacted(url)}, which is another call")
        else:
            raise PulsarError(f"{method} {first}: redirected {_MOST_REDIRECTS + 1} times, last to {redacted(url)}")
        if answer.status >= 300:
            raise refused(method, url, answer)
        return answer.data

    def _send(self, method: str, url: str, body: bytes | None) -> HttpAnswer:
        """One request, without redirects; a question is sent again for a while where the broker has too many requests.

        An act is not: its caller has to ask first whether it may still be done.
        """
        until, pause = self._deadline.within(_TOO_MANY_SECONDS), _TOO_MANY_PAUSE_SECONDS
        while True:
            answer = self._send_once(method, url, body)
            wait = max(pause, retry_after(answer))
            if answer.status != TOO_MANY or method != "GET" or wait >= until.remaining:
                return answer
            self._sleep(wait)
            pause *= 2

    def _send_once(self, method: str, url: str, body: bytes | None) -> HttpAnswer:
        """One request; the only place that credentials leave from."""
        self._require(method, url)
        remaining = self.seconds_left
        if remaining <= 0:
            raise PulsarError(f"{method} {url}: not sent: its time limit has passed", sent=False, away=True)
        timeout = urllib3.Timeout(
            connect=min(self._connect_seconds, remaining), read=min(self._read_seconds, remaining)
        )
        credentials = self._credentials()
        headers = {**credentials.headers(), "Accept": "application/json", "Accept-Encoding": "gzip"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        began = self.clocks.began()
        try:
            response = self._connections.pool.request(
                method, url, body=body, headers=headers, redirect=False, timeout=timeout, preload_content=False
            )
            self._answering()
            answer = read_answer(response, self.largest_answer, credentials.credential)
            self._silent.pop(origin(url), None)
            self.clocks.hear(origin(url), answer.headers.get("Date"), began)
            return answer
        except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError) as error:
            self._silent[origin(url)] = Deadline.after(_SILENT_SECONDS)
            raise PulsarError(f"{method} {url}: no connection: {because(error)}", sent=False, away=True) from error
        except urllib3.exceptions.SSLError as error:
            raise PulsarError(f"{method} {url}: {self._why_no_tls(error)}") from error
        except TooLargeError as error:
            raise LargeAnswerError(f"{method} {url}: {error}", away=True) from error
        except urllib3.exceptions.HTTPError as error:
            self._silent[origin(url)] = Deadline.after(_SILENT_SECONDS)
            raise PulsarError(f"{method} {url}: no answer: {_named(error)}", away=True) from error

    def _why_no_tls(self, error: urllib3.exceptions.SSLError) -> str:
        """Which certificate is refused, by whom, and the setting that it is about."""
        cause = error.args[0] if error.args and isinstance(error.args[0], ssl.SSLError) else error.__cause__
        if isinstance(cause, ssl.SSLError) and is_refusal(cause):
            return refusal(cause, f"{self.section.strip('[]')}.tls")
        return f"no answer: {_named(error)}"


def _named(error: Exception) -> str:
    """*error*, which may quote what the server sent, without our secrets."""
    return f"{type(error).__name__}: {redacted(str(error))}"


def _target(path: str, query: Mapping[str, str]) -> str:
    if not _DOTS.isdisjoint(path.split("/")):
        # The HTTP client would make another path of it.
        raise PulsarError(f"{path}: not sent: . and .. are not valid names", sent=False)
    return quote(path, safe="/:") + (f"?{urlencode(query)}" if query else "")


def _fresh(method: str) -> Deadline:
    """Until when a call by *method* may go on to where it was not sent first."""
    return Deadline.after(math.inf if method == "GET" else _ACT_SECONDS)


def _is_same_call(first: str, there: str) -> bool:
    """Whether both URLs have the same path and query, but for what brokers change in the query.

    The path of *first* may begin with a proxy's own part.
    """
    requested, path = (unquote(urlsplit(url).path) for url in (first, there))
    same_query = _query(there) in (_query(first), _query(first, _DROPPED))
    return path.startswith("/admin/") and requested.endswith(path) and same_query


def _query(url: str, *but: str) -> list[tuple[str, str]]:
    """What *url* asks for, in whichever order; without *but*, and without what brokers add to what they send on."""
    query = parse_qsl(urlsplit(url).query, keep_blank_values=True)
    return sorted((key, value) for key, value in query if key not in (_ADDED, *but))


def _goes_on(method: str, error: PulsarError) -> bool:
    """Whether another admin URL is asked after *error*: it cannot have received the call, or asking changes nothing."""
    return not error.sent or (method == "GET" and (error.away or error.status >= 500))


def _is_last(number: int) -> list[bool]:
    return [nth == number - 1 for nth in range(number)]
