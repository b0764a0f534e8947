"""The small HTTP server that answers /metrics, /healthz and /readyz.

Whoever can reach its address may send anything.  So it reads one GET of a few kilobytes, answers it within seconds, and
hangs up; a few threads do that and nothing else, each waiting in ``accept``.  While all of them are busy, connections
wait in the kernel's short queue.
"""

import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Final, NamedTuple, Self

from controller.adapters.metrics.declared import PAGE_TYPE
from controller.adapters.metrics.process import ProcessMetrics
from controller.adapters.network.deadline import Deadline

log = logging.getLogger(__name__)

#: Threads, and connections that wait for one.
_THREADS: Final = 4
_QUEUE: Final = 16
#: For a connection, from its begin to its end.
_SECONDS: Final = 5.0
#: Of a request, bytes.
_LONGEST_REQUEST: Final = 8192
_END: Final = b"\r\n\r\n"
_REQUEST: Final = re.compile(rb"([A-Za-z]{1,32}) (/[!-~]*) HTTP/1\.[01]\r\n")
#: After an error of ``accept``, as when no more files can be opened.
_AGAIN_SECONDS: Final = 1.0
_TEXT: Final = "text/plain; charset=utf-8"


class _Response(NamedTuple):
    status: HTTPStatus
    body: bytes
    media_type: str = _TEXT


class MetricsServer:
    """Serves *metrics* on an address, from the begin of the block to its end.  OSError: the address cannot be had."""

    def __init__(self, host: str, port: int, metrics: ProcessMetrics, *, seconds: float = _SECONDS) -> None:
        """*port* 0: any that is free.  *seconds*: a connection lasts no longer."""
        self._seconds = seconds
        self._paths: Mapping[bytes, Callable[[], _Response]] = {
            b"/metrics": lambda: _Response(HTTPStatus.OK, metrics.page(), PAGE_TYPE),
            b"/healthz": lambda: _healthz(metrics),
            b"/readyz": lambda: _readyz(metrics),
        }
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        self._listening = socket.create_server(address[:2], family=family, backlog=_QUEUE)
        #: The IP address and the port where it listens.
        self.host, self.port = (str(self._listening.getsockname()[0]), int(self._listening.getsockname()[1]))
        self._ended = False

    def __enter__(self) -> Self:
        for _ in range(_THREADS):
            threading.Thread(target=self._serve, name="metrics", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the threads that wait in accept
        self._listening.close()

    def _serve(self) -> None:
        while not self._ended:
            try:
                connection, _ = self._listening.accept()
            except OSError as error:
                if not self._ended:
                    log.debug("no connection can be accepted: %s", error)
                    time.sleep(_AGAIN_SECONDS)
                continue
            with connection, suppress(OSError):
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        """Read a request and answer it.  OSError: the other end is gone, or too slow."""
        deadline = Deadline.after(self._seconds)
        response = self._response(_head(connection, deadline))
        lines = (
            f"HTTP/1.1 {response.status.value} {response.status.phrase}",
            f"Content-Type: {response.media_type}",
            f"Content-Length: {len(response.body)}",
            "Cache-Control: no-store",
            "X-Content-Type-Options: nosniff",
            *(["Allow: GET"] if response.status is HTTPStatus.METHOD_NOT_ALLOWED else []),
            "Connection: close",
        )
        connection.settimeout(max(deadline.left, 0.001))
        connection.sendall("\r\n".join(lines).encode() + _END + response.body)

    def _response(self, head: bytes) -> _Response:
        if _END not in head:
            return _refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        request = _REQUEST.match(head)
        if request is None:
            return _refusal(HTTPStatus.BAD_REQUEST)
        method, target = request.groups()
        answer = self._paths.get(target.partition(b"?")[0])
        if answer is None:
            return _refusal(HTTPStatus.NOT_FOUND)
        if method != b"GET":
            return _refusal(HTTPStatus.METHOD_NOT_ALLOWED)
        try:
            return answer()
        except Exception as error:
            log.warning("%s cannot be answered: %r", target.decode(), error)
            return _refusal(HTTPStatus.INTERNAL_SERVER_ERROR)


def _head(connection: socket.socket, deadline: Deadline) -> bytes:
    """The request up to the end of its headers, or the first bytes of one that is too long."""
    read = b""
    while _END not in read and len(read) <= _LONGEST_REQUEST:
        if deadline.passed:
            raise TimeoutError("the request takes too long")
        connection.settimeout(max(deadline.left, 0.001))
        part = connection.recv(_LONGEST_REQUEST)
        if not part:
            raise ConnectionError("the request is not complete")
        read += part
    return read


def _refusal(status: HTTPStatus) -> _Response:
    return _Response(status, f"{status.phrase}. Here are /metrics, /healthz and /readyz, for GET.\n".encode())


def _healthz(metrics: ProcessMetrics) -> _Response:
    why = metrics.health.standstill
    if why:
        return _Response(HTTPStatus.SERVICE_UNAVAILABLE, f"stands still: {why}\n".encode())
    return _Response(HTTPStatus.OK, b"alive\n")


def _readyz(metrics: ProcessMetrics) -> _Response:
    is_ready, state = metrics.health.now
    if is_ready:
        return _Response(HTTPStatus.OK, f"ready: {metrics.role} {state}\n".encode())
    return _Response(HTTPStatus.SERVICE_UNAVAILABLE, f"not ready: {metrics.role}: {state}\n".encode())
