"""Connections to brokers with two limits on an answer: the time for the whole of it, and its size.

A timeout of a socket is for one read.  Here it is for the whole answer, head and body.
"""

import http.client
import io
import socket
import ssl
from functools import partial
from typing import Any, Final, NamedTuple

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

from controller.adapters.deadline import Deadline

#: The largest answer that is read, unpacked: a broker with 100,000 topics sends some 100 MB.
LARGEST_ANSWER: Final = 256 << 20
#: So much of an error's answer is read, in bytes.
_LARGEST_ERROR: Final = 64 << 10
#: Read at once, as it is sent: packed data may hold a thousand times as much.
_PIECE: Final = 64 << 10


class HttpAnswer(NamedTuple):
    """A broker's answer."""

    status: int
    reason: str
    headers: Any
    data: bytes


class TooLargeError(urllib3.exceptions.HTTPError):
    """An answer was larger than is read."""


class _InTime(io.RawIOBase):
    """What a socket sends until the *deadline*."""

    def __init__(self, raw: Any, sock: socket.socket, deadline: Deadline) -> None:
        self._raw, self._sock, self._deadline = raw, sock, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._deadline.left
        if not left:
            raise TimeoutError("the answer took too long")
        self._sock.settimeout(left)
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
    *, hosts: int, connections: int, ssl_context: ssl.SSLContext | None, verify_host: bool
) -> urllib3.PoolManager:
    """Connections to *hosts* brokers are kept open, *connections* to each."""
    pool = urllib3.PoolManager(
        num_pools=hosts,
        maxsize=connections,
        retries=False,
        ssl_context=ssl_context,
        assert_hostname=None if verify_host else False,
    )
    pool.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}
    return pool


def read_answer(response: urllib3.BaseHTTPResponse, largest: int) -> HttpAnswer:
    """The whole of *response*, *largest* bytes; of an error its beginning alone.  Raises urllib3's HTTPError."""
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
    except BaseException:
        response.close()
        raise
    response.release_conn()
    return HttpAnswer(response.status, response.reason or "", response.headers, b"".join(pieces))
