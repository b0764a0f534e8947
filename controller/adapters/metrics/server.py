"""The small HTTP server that answers /metrics, /healthz and /readyz.

Anybody who can reach its address may send anything. So it reads one GET of a few kilobytes, answers it within seconds,
and closes the connection. One thread serves many connections and blocks on none, so a client that sends or reads
nothing delays no other, such as a liveness probe.
"""

import logging
import re
import selectors
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, NamedTuple, Self

from controller.adapters.metrics.declared import PAGE_TYPE
from controller.adapters.metrics.process import ProcessMetrics
from controller.adapters.network.deadline import Deadline

log = logging.getLogger(__name__)

#: Connections that are open at most: the oldest give way.
_MOST_OPEN: Final = 256
#: As many may wait to be taken on: the kernel lets whoever finds no place there try again after a second.
_QUEUE: Final = _MOST_OPEN
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


@dataclass(slots=True)
class _Exchange:
    """A connection: its request as far as it came, and what is left of the answer."""

    connection: socket.socket
    deadline: Deadline
    received: bytes = b""
    unsent: bytes | None = None


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
        self._thread = threading.Thread(target=self._serve, name="metrics", daemon=True)
        self._ended = False

    def __enter__(self) -> Self:
        self._listening.setblocking(False)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._thread.join(self._seconds)
        self._listening.close()

    def _serve(self) -> None:
        exchanges: dict[int, _Exchange] = {}  # by descriptor, the oldest first
        with selectors.DefaultSelector() as ready:
            ready.register(self._listening, selectors.EVENT_READ)
            while not self._ended:
                for key, _ in ready.select(
                    self._seconds if not exchanges else next(iter(exchanges.values())).deadline.remaining
                ):
                    if key.data is None:
                        self._accept(ready, exchanges)
                    elif key.fd in exchanges and self._go_on(ready, exchanges[key.fd]):
                        _hang_up(ready, exchanges, key.fd)
                for descriptor in [fd for fd, each in exchanges.items() if each.deadline.passed]:
                    _hang_up(ready, exchanges, descriptor)
            for descriptor in list(exchanges):
                _hang_up(ready, exchanges, descriptor)

    def _accept(self, ready: selectors.BaseSelector, exchanges: dict[int, _Exchange]) -> None:
        try:
            connection, _ = self._listening.accept()
        except BlockingIOError:
            return
        except OSError as error:
            if not self._ended:
                log.debug("no connection can be accepted: %s", error)
                time.sleep(_AGAIN_SECONDS)
            return
        connection.setblocking(False)
        if len(exchanges) >= _MOST_OPEN:
            _hang_up(ready, exchanges, next(iter(exchanges)))
        exchanges[connection.fileno()] = exchange = _Exchange(connection, Deadline.after(self._seconds))
        ready.register(connection, selectors.EVENT_READ, exchange)

    def _go_on(self, ready: selectors.BaseSelector, exchange: _Exchange) -> bool:
        """Read or write what can be without waiting; whether the exchange is over."""
        connection = exchange.connection
        try:
            if exchange.unsent is None:
                part = connection.recv(_LONGEST_REQUEST)
                exchange.received += part
                if _END not in exchange.received and len(exchange.received) <= _LONGEST_REQUEST:
                    return not part
                exchange.unsent = _encoded(self._response(exchange.received))
                ready.modify(connection, selectors.EVENT_WRITE, exchange)
            exchange.unsent = exchange.unsent[connection.send(exchange.unsent) :]
        except BlockingIOError:
            return False
        except OSError:  # the other end is gone
            return True
        return not exchange.unsent

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


def _hang_up(ready: selectors.BaseSelector, exchanges: dict[int, _Exchange], descriptor: int) -> None:
    with closing(exchanges.pop(descriptor).connection) as connection:
        ready.unregister(connection)


def _encoded(response: _Response) -> bytes:
    lines = (
        f"HTTP/1.1 {response.status.value} {response.status.phrase}",
        f"Content-Type: {response.media_type}",
        f"Content-Length: {len(response.body)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        *(["Allow: GET"] if response.status is HTTPStatus.METHOD_NOT_ALLOWED else []),
        "Connection: close",
    )
    return "\r\n".join(lines).encode() + _END + response.body


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
