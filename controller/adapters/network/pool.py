"""The one HTTP client, with limits on the size of an answer and on its total time.

A socket's timeout applies to one read; here the timeout applies to the whole answer, head and body.
"""

import http.client
import io
import logging
import socket
import ssl
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import urllib3
from urllib3 import HTTPHeaderDict
from urllib3.connection import HTTPConnection, HTTPSConnection

from controller.adapters.network.deadline import Deadline
from controller.adapters.network.tls import Tls
from controller.adapters.network.unreachable import words
from controller.model.errors import TrimtabError
from controller.settings.redaction import HIDDEN, redacted, redacted_bytes

#: The largest answer that is read, unpacked: a broker with 100,000 topics sends some 100 MB.
LARGEST_ANSWER: Final = 256 << 20
#: How much of an error response is read, in bytes.
_LARGEST_ERROR: Final = 64 << 10
#: Read at once, as it is sent: packed data may hold a thousand times as much.
_PIECE: Final = 64 << 10
#: How often files of certificates are checked.
_LOOK_AGAIN_SECONDS: Final = 5.0

log = logging.getLogger(__name__)

#: No answer, or an unusable one.
HttpError: TypeAlias = urllib3.exceptions.HTTPError


class HttpAnswer(NamedTuple):
    """A server's answer; the reason and the body of an error are without our secrets."""

    status: int
    reason: str
    headers: Any
    data: bytes


class TooLargeError(HttpError):
    """An answer was larger than is read."""


class GarbledError(HttpError):
    """An answer breaks HTTP's own form where the library does not expect it."""


class RefusedAddressError(HttpError):
    """A name leads to an address to which nothing may be sent."""


class _InTime(io.RawIOBase):
    """What a socket sends until the *deadline*."""

    def __init__(self, raw: Any, sock: socket.socket, deadline: Deadline) -> None:
        self._raw, self._sock, self._deadline = raw, sock, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        remaining = self._deadline.remaining
        if not remaining:
            raise TimeoutError("the answer took too long")
        self._sock.settimeout(remaining)
        count: int | None = self._raw.readinto(buffer)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, deadline: Deadline, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(_InTime(self.fp.detach(), sock, deadline))


class _Connection(HTTPConnection):
    #: Of a host and its address: why nothing may be sent there, "" where it may.
    why_refused: Callable[[str, str], str] | None = None

    def _new_conn(self) -> socket.socket:
        connected = super()._new_conn()
        # The address that is connected, not one that was looked up before: the next look-up may say something else.
        problem = "" if self.why_refused is None else self.why_refused(self.host, connected.getpeername()[0])
        if problem:
            connected.close()
            raise RefusedAddressError(problem)
        return connected

    def getresponse(self) -> Any:
        # urllib3 has set the time for reading by now.
        assert self.timeout is not None, "every request has a timeout"
        self.response_class = partial(_Response, deadline=Deadline.after(self.timeout))  # type: ignore[assignment]
        return super().getresponse()


class _TlsConnection(_Connection, HTTPSConnection):
    pass


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


def connection_pool(
    *,
    hosts: int,
    connections: int,
    ssl_context: ssl.SSLContext | None,
    verify_host: bool,
    why_refused: Callable[[str, str], str] | None = None,
) -> urllib3.PoolManager:
    """Connections to *hosts* servers are kept open, *connections* to each.  Every request needs a timeout.

    *why_refused* says of a host and the address that it leads to why nothing may be sent there, "" where it may.
    """
    pool = urllib3.PoolManager(
        num_pools=hosts,
        maxsize=connections,
        retries=False,
        ssl_context=ssl_context,
        assert_hostname=None if verify_host else False,
    )
    pool.pool_classes_by_scheme = {"http": _asking(_Pool, why_refused), "https": _asking(_TlsPool, why_refused)}
    return pool


def _asking(kind: type[_Pool | _TlsPool], why_refused: Callable[[str, str], str] | None) -> type[_Pool | _TlsPool]:
    """*kind*, whose connections ask *why_refused*."""
    if why_refused is None:
        return kind
    connection = type("_AskingConnection", (kind.ConnectionCls,), {"why_refused": staticmethod(why_refused)})
    return type("_AskingPool", (kind,), {"ConnectionCls": connection})


class RenewedConnections:
    """A pool whose certificates are read anew when their files change: they are renewed while a process runs.

    Connections that are open stay; new ones use the new files.  Where those cannot be used the log says so, and the
    earlier ones hold.  Threads may share it.
    """

    def __init__(self, tls: Tls | None, make: Callable[..., urllib3.PoolManager]) -> None:
        """*make* makes a pool with an ``ssl_context``.  *tls* is None where none is needed.  TrimtabError."""
        self._tls, self._make, self._look = tls, make, threading.Lock()
        self._next_look = Deadline.after(_LOOK_AGAIN_SECONDS)
        self._state = () if tls is None else tls.state()
        self._pool = make(ssl_context=None if tls is None else tls.context())

    @property
    def pool(self) -> urllib3.PoolManager:
        """For the next request."""
        if self._tls is not None:
            with self._look:  # a concurrent request waits, rather than use credentials that may have expired
                self._look_again(self._tls)
        return self._pool

    def _look_again(self, tls: Tls) -> None:
        if not self._next_look.passed:
            return
        self._next_look = Deadline.after(_LOOK_AGAIN_SECONDS)
        state = tls.state()
        if state != self._state:
            self._state = state
            self._renew(tls)

    def close(self) -> None:
        """End all connections."""
        self._pool.clear()

    def _renew(self, tls: Tls) -> None:
        try:
            self._pool = self._make(ssl_context=tls.context())
            log.info("the files of TLS have changed: new connections use them")
        except TrimtabError as error:
            log.warning("%s; connections continue to use the files that were read before", error)


def read_answer(response: urllib3.BaseHTTPResponse, largest: int, credential: str = "") -> HttpAnswer:
    """The whole of *response*, *largest* bytes; of an error its beginning alone.  Raises urllib3's HTTPError.

    *credential*, as the request had it, is removed from headers and data, too: no name or number repeats it by chance.
    """
    is_error = response.status >= 300
    pieces, size = [], 0
    try:
        while piece := response.read(_PIECE):
            pieces.append(piece)
            size += len(piece)
            if is_error and size > _LARGEST_ERROR:
                response.close()
                break
            if size > largest:
                raise TooLargeError(f"the answer is larger than {largest} bytes")
    except (ValueError, http.client.HTTPException) as error:  # as of a chunk with a length below 0
        response.close()
        raise GarbledError(redacted(f"the answer is not HTTP: {error}")) from error
    except BaseException:
        response.close()
        raise
    response.release_conn()
    body, headers = b"".join(pieces), response.headers
    if credential:
        body = body.replace(credential.encode(), HIDDEN.encode())
        headers = HTTPHeaderDict((name, value.replace(credential, HIDDEN)) for name, value in headers.items())
    reason = redacted(response.reason or "")
    return HttpAnswer(response.status, reason, headers, redacted_bytes(body) if is_error else body)


def because(error: HttpError) -> str:
    """Why no answer came, in words where it is known; the error may quote what the server sent."""
    return redacted(words(error.__cause__) if isinstance(error.__cause__, OSError) else str(error))
