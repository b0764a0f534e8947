"""A server of the page (``trimtab serve``), as a client of its REST sees it."""

import json
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from ipaddress import ip_address
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, urlencode, urlsplit
from uuid import uuid4

from pydantic import ValidationError

from controller.adapters.network.deadline import Deadline
from controller.adapters.network.pool import HttpAnswer, HttpError, because, connection_pool, read_answer
from controller.adapters.network.tls import Tls
from controller.model.errors import AccessDeniedError, SettingsError, TrimtabError
from controller.web.rest.answers import JobAnswer
from controller.wire.answers.base import JsonAnswer
from controller.wire.base import printable

A = TypeVar("A", bound=JsonAnswer)

BASE: Final = "/api/v1"
#: The server ends a request after 30 seconds.
_ANSWER_SECONDS: Final = 40.0
#: The server bounds a job by ten minutes unless its settings say more, and others may go first.
_JOB_SECONDS: Final = 3_600.0
_FIRST_PAUSE: Final = 0.25
_LONGEST_PAUSE: Final = 2.0
#: The server asks for more patience than this at its own peril.
_LONGEST_RETRY: Final = 30.0
#: A refused request, and one that failed while a job ran, is tried again so often.
_TRIES: Final = 5
_LARGEST_ANSWER: Final = 64 << 20
#: The server makes no larger result.
LARGEST_RESULT: Final = 128 << 20
#: Characters of the server's words that an error repeats.
_LONGEST_DETAIL: Final = 1_000
_JOB: Final = re.compile(rf"{BASE}/jobs/[A-Za-z0-9_-]{{1,64}}")
_ACCEPTED: Final = 202
_BUSY: Final = (429, 503)
_DENIED: Final = (401, 403)
_NOT_KNOWN: Final = 404

_NO_HEADERS: Final[Mapping[str, str]] = {}

#: Takes in words how far a job is.
TellProgress = Callable[[str], None]


class ServerAddress(NamedTuple):
    """Where a server is, and who asks it."""

    #: http or https, host and port.
    url: str
    #: "": none is sent.
    token: str = ""
    #: A file with the authorities to trust in place of the system's; "": the system's.
    trust_certs: str = ""
    #: Which of its clusters; "": the first one.
    cluster: str = ""


class RestServer:
    """Asks one server, and no other: a redirect is an error, and the token goes nowhere else."""

    def __init__(self, address: ServerAddress, *, version: str) -> None:
        """SettingsError where *address* cannot be used."""
        self._url, self._cluster = _checked(address.url, has_token=bool(address.token)), address.cluster
        self._token = address.token
        context = Tls(trust_certs=address.trust_certs).context(to=self._url) if self._url.startswith("https") else None
        self._pool = connection_pool(hosts=1, connections=1, ssl_context=context, verify_host=True)
        # Packed answers could be larger than they look.
        self._headers = {
            "Accept": "*/*",
            "Accept-Encoding": "identity",
            "User-Agent": f"trimtab/{version}",
        }
        if self._token:
            self._headers["Authorization"] = f"Bearer {self._token}"

    def get(self, path: str, model: type[A], *, tell: TellProgress, **query: object) -> A:
        """The answer of *path* below /api/v1, also where a job works it out.  *query* is without what is None.

        TrimtabError: it cannot be had.
        """
        return self._parsed(self._worked_out(self._send("GET", path, query), tell), model)

    def order(self, path: str, body: Mapping[str, object], *, tell: TellProgress) -> bytes:
        """The result of the job that *path* begins.  TrimtabError."""
        return self._worked_out(self._send("POST", path, {}, json.dumps(body).encode()), tell)

    def ordered(self, path: str, body: Mapping[str, object], model: type[A], *, tell: TellProgress) -> A:
        """The same where it is JSON."""
        return self._parsed(self.order(path, body, tell=tell), model)

    def change(self, path: str, body: Mapping[str, object], model: type[A], *, version: str = "") -> A:
        """Change something once, however often the request has to be sent; what the server says of it.

        *version*: of what is changed, for If-Match; "*": any.  TrimtabError.
        """
        return self._parsed(self._changed(path, body, version).data, model)

    def change_by_job(self, path: str, body: Mapping[str, object], model: type[A], *, tell: TellProgress) -> A:
        """The result of the job that makes a change, which is begun once.  TrimtabError."""
        return self._parsed(self._worked_out(self._changed(path, body), tell), model)

    def _changed(self, path: str, body: Mapping[str, object], version: str = "") -> HttpAnswer:
        headers = {"Idempotency-Key": str(uuid4())} | ({"If-Match": version} if version else {})
        content = json.dumps(body).encode()
        for attempt in range(_TRIES):
            try:
                return self._send("POST", path, {}, content, headers=headers)
            except _AwayError:
                if attempt == _TRIES - 1:
                    raise
                time.sleep(_LONGEST_PAUSE)
        raise AssertionError

    def upload(self, path: str, content: bytes, model: type[A], *, tell: TellProgress, **query: object) -> A:
        """The result of the job that works on *content*, a file of JSON.  TrimtabError."""
        headers = {"Idempotency-Key": str(uuid4())}
        return self._parsed(self._worked_out(self._send("POST", path, query, content, headers=headers), tell), model)

    def _worked_out(self, answer: HttpAnswer, tell: TellProgress) -> bytes:
        if answer.status != _ACCEPTED:
            return answer.data
        location = str(answer.headers.get("Location", ""))
        if not _JOB.fullmatch(location):
            raise TrimtabError(f"{self._url} names no job: {printable(location)[:200]!r}")
        path, ends, pause = location.removeprefix(BASE), Deadline.after(_JOB_SECONDS), _FIRST_PAUSE
        while True:
            job = self._parsed(self._patiently("GET", path).data, JobAnswer)
            if job.state == "done":
                return self._patiently("GET", f"{path}/result", largest=LARGEST_RESULT).data
            if job.state in ("failed", "cancelled"):
                raise TrimtabError(printable(job.problem)[:_LONGEST_DETAIL] or f"the job was {job.state} at the server")
            if ends.passed:
                raise TrimtabError(f"{self._url} has not answered within {_JOB_SECONDS:g} s: {job.state}")
            tell(printable(job.progress)[:_LONGEST_DETAIL] or job.state)
            time.sleep(pause)
            pause = min(_LONGEST_PAUSE, 2 * pause)

    def _patiently(self, method: str, path: str, *, largest: int | None = None) -> HttpAnswer:
        """The answer about a job, which goes on while the server is away for a moment."""
        for _ in range(_TRIES - 1):
            try:
                return self._send(method, path, {}, largest=largest)
            except _AwayError:
                time.sleep(_LONGEST_PAUSE)
        return self._send(method, path, {}, largest=largest)

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, object],
        body: bytes | None = None,
        *,
        largest: int | None = None,
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> HttpAnswer:
        values = {key: _text(value) for key, value in query.items() if value is not None}
        values |= {"cluster": self._cluster} if self._cluster else {}
        target = f"{self._url}{BASE}{path}{'?' if values else ''}{urlencode(values)}"
        for attempt in range(_TRIES):
            answer = self._once(method, target, body, largest, headers)
            if answer.status < 300:
                return answer
            wait = _retry_seconds(answer)
            if answer.status != _BUSY[0] or wait is None or attempt == _TRIES - 1:
                raise _refusal(self._url, answer)
            time.sleep(wait)
        raise AssertionError

    def _once(
        self, method: str, target: str, body: bytes | None, largest: int | None, more: Mapping[str, str]
    ) -> HttpAnswer:
        headers = self._headers | ({} if body is None else {"Content-Type": "application/json"}) | dict(more)
        try:
            response = self._pool.request(
                method,
                target,
                body=body,
                headers=headers,
                timeout=_ANSWER_SECONDS,
                redirect=False,
                retries=False,
                preload_content=False,
            )
            return read_answer(response, largest or _LARGEST_ANSWER, self._token)
        except HttpError as error:
            hint = "; --server-ca names whom to trust" if "certificate" in str(error).lower() else ""
            raise _AwayError(f"{self._url} does not answer: {because(error)}{hint}") from error

    def _parsed(self, content: bytes, model: type[A]) -> A:
        try:
            return model.model_validate_json(content, by_alias=True, by_name=True)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            where = printable(".".join(map(str, first["loc"])))[:200]
            raise TrimtabError(
                f"{self._url}: its answer is not that of this release of trimtab ({where or 'JSON'}:"
                f" {printable(first['msg'])[:200]}): use the release that the server has"
            ) from None


def quoted(name: str) -> str:
    """*name* as a part of a path."""
    return quote(name, safe="/")


class _AwayError(TrimtabError):
    """The server cannot be reached, or is busy."""


def _checked(url: str, *, has_token: bool) -> str:
    """Scheme, host and port of *url*.  SettingsError where it has more, or would send a token in plain text."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise SettingsError(f"--server: not a URL: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError("--server: expected http://HOST:PORT or https://HOST[:PORT]")
    if parts.username is not None or parts.password is not None:
        raise SettingsError("--server: a URL has no user and no password here: --token-file, or TRIMTAB_TOKEN")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise SettingsError("--server: nothing may follow host and port: the page has a host name of its own")
    if parts.scheme == "http" and has_token and not _is_loopback(parts.hostname):
        raise SettingsError("--server: a token is sent to another machine over https only")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{'' if port is None else f':{port}'}"


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _retry_seconds(answer: HttpAnswer) -> float | None:
    """As the server asks; None where it does not, or for too long."""
    text = str(answer.headers.get("Retry-After", ""))
    return float(text) if text.isascii() and text.isdecimal() and float(text) <= _LONGEST_RETRY else None


def _refusal(url: str, answer: HttpAnswer) -> TrimtabError:
    """What a status above 299 means, in the server's words where it has some."""
    if answer.status < 400:
        target = printable(str(answer.headers.get("Location", "")))[:200]
        return TrimtabError(f"{url} redirects to {target!r}, which is not followed; if you trust it, use that URL")
    title, detail = _problem(answer)
    text = f"{url} answers {answer.status} {title}{f': {detail}' if detail else ''}"
    if answer.status in _DENIED:
        return AccessDeniedError(f"{text}; --token-file or TRIMTAB_TOKEN says who you are")
    if answer.status in _BUSY or answer.status >= 500:
        return _AwayError(text)
    return TrimtabError(text) if answer.status == _NOT_KNOWN else SettingsError(text)


def _problem(answer: HttpAnswer) -> tuple[str, str]:
    """Title and detail of RFC 9457."""
    values: Any = None
    with suppress(ValueError, RecursionError):
        values = json.loads(answer.data)
    if not isinstance(values, dict):
        values = {"title": answer.reason}
    title, detail = (printable(str(values.get(key, "")))[:_LONGEST_DETAIL] for key in ("title", "detail"))
    return title, detail
