"""The server: uvicorn, with an end for connections that are slow, idle or too many, and with client certificates."""

import asyncio
import logging
import os
import ssl
import threading
from collections.abc import Callable
from socket import socket
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from controller.model.errors import SettingsError
from controller.settings.web import WebTlsSettings
from controller.web.access.gate import CERTIFICATE_NAME
from controller.web.limits import ABORT

log = logging.getLogger(__name__)

#: A connection on which no request is complete or under way is ended after so many seconds.
_IDLE_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 1.0
#: Between two requests of a connection.
_KEPT_SECONDS: Final = 5
#: Of a request's head; more is refused.
_LARGEST_HEAD: Final = 32 << 10
#: Connections that the kernel keeps for us, and that may be open for a moment beyond the limit.
QUEUE: Final = 256
#: Requests that are under way when the process is told to end may take so long.
_END_SECONDS: Final = 1
#: Between two looks at the files of certificates, in looks of _LOOK_SECONDS.
_CERTIFICATE_LOOKS: Final = 10


class _Protocol(H11Protocol):
    """A connection that has an end: nobody keeps one by saying nothing, and the oldest idle one gives way."""

    def connection_made(self, transport: Any) -> None:
        """See asyncio.Protocol."""
        super().connection_made(transport)
        self.since = self.loop.time()
        limit = (self.config.limit_concurrency or 0) - QUEUE
        if len(self.connections) > limit:
            self._make_room(limit)
        self._timer = self.loop.call_later(_LOOK_SECONDS, self._look)
        name = _certificate_name(transport.get_extra_info("ssl_object"))
        app = self.app

        async def with_peer(scope: Scope, receive: Receive, send: Send) -> None:
            # Nothing that comes by the network can set these.
            scope["state"] |= {CERTIFICATE_NAME: name, ABORT: transport.abort}
            try:
                await app(scope, receive, send)
            finally:
                self.since = self.loop.time()

        self.app = with_peer

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._timer.cancel()
        super().connection_lost(exc)

    def _make_room(self, limit: int) -> None:
        """End the connection that is idle for longest, where more than *limit* are open."""
        alive = [each for each in self.connections if not each.transport.is_closing()]
        idle = [each for each in alive if isinstance(each, _Protocol) and each is not self and not each.is_busy]
        if len(alive) > limit and idle:
            min(idle, key=lambda each: each.since).transport.abort()

    @property
    def is_busy(self) -> bool:
        """Whether a request is under way; that has limits of its own."""
        return self.cycle is not None and not self.cycle.response_complete

    def _look(self) -> None:
        now = self.loop.time()
        if self.is_busy:
            self.since = now
        elif now - self.since > _IDLE_SECONDS:
            self.transport.abort()
            return
        self._timer = self.loop.call_later(_LOOK_SECONDS, self._look)


class PageServer:
    """Serves *app* on *listening* until it is told to end."""

    def __init__(self, app: Starlette, listening: socket, *, connections: int, tls: WebTlsSettings | None) -> None:
        """SettingsError where a file of *tls* cannot be used."""
        self._listening, self._tls = listening, tls
        self._context = None if tls is None else tls_context(tls)
        config = uvicorn.Config(
            app,
            http=_Protocol,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=connections + QUEUE,
            backlog=QUEUE,
            timeout_keep_alive=_KEPT_SECONDS,
            timeout_graceful_shutdown=_END_SECONDS,
            h11_max_incomplete_event_size=_LARGEST_HEAD,
            ssl_context_factory=self._tls_context if tls is not None else None,
        )
        # It warns of each request that is no HTTP: anybody could fill the log with these.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        self._server = uvicorn.Server(config)

    def run(self, until: threading.Event, beat: Callable[[], None]) -> None:
        """Serve, in this thread, until *until* is set; *beat* is called every second."""
        asyncio.run(self._run(until, beat))

    async def _run(self, until: threading.Event, beat: Callable[[], None]) -> None:
        serving = asyncio.create_task(self._server.serve(sockets=[self._listening]))
        state, looks = self._certificates(), 0
        while not serving.done():
            beat()
            looks += 1
            if looks % _CERTIFICATE_LOOKS == 0 and self._certificates() != state:
                state = self._certificates()
                self._renew()
            if until.is_set():
                self._server.should_exit = True
            await asyncio.wait([serving], timeout=_LOOK_SECONDS / 5)
        await serving

    def _tls_context(self, *_: object) -> ssl.SSLContext:
        assert self._context is not None
        return self._context

    def _certificates(self) -> object:
        """Another value once a file has changed."""
        files = () if self._tls is None else (self._tls.certificate, self._tls.key)
        versions = []
        for file in files:
            try:
                about = os.stat(file)
            except OSError as error:
                versions.append((error.errno or 0, 0, 0))
                continue
            versions.append((about.st_ino, about.st_size, about.st_mtime_ns))
        return versions

    def _renew(self) -> None:
        """New connections have the new certificate; where it cannot be used the earlier one holds."""
        assert self._tls is not None
        assert self._context is not None
        try:
            self._context.load_cert_chain(self._tls.certificate, self._tls.key)
        except (OSError, ssl.SSLError) as error:
            log.error("[web.tls] the new certificate cannot be used, the earlier one holds: %s", error)
        else:
            log.info("[web.tls] the certificate was read anew")


def tls_context(tls: WebTlsSettings) -> ssl.SSLContext:
    """TLS 1.2 and newer with the certificate of *tls*; clients may show theirs.  SettingsError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(tls.certificate, tls.key)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(f"web.tls.certificate = {tls.certificate!r}, key = {tls.key!r}: {error}") from error
    if tls.client_authorities is not None:
        try:
            context.load_verify_locations(tls.client_authorities)
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(f"web.tls.client_authorities = {tls.client_authorities!r}: {error}") from error
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _certificate_name(connection: Any) -> str:
    """The common name of the certificate that the client showed; "" where it showed none, or one with several."""
    certificate = connection.getpeercert() if connection is not None else None
    if not certificate:
        return ""
    names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return str(names[0]) if len(names) == 1 else ""
