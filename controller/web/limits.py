"""What one request may cost: its size, its headers, its time; and how many a client may send."""

import asyncio
import logging
import re
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from controller.model.errors import TrimtabError
from controller.web.access.gate import AccessGate
from controller.web.access.rates import Rates, client_key
from controller.web.access.viewer import RefusedError
from controller.web.refusals import refusal
from controller.wire.plan import MAX_BYTES

log = logging.getLogger(__name__)

_LONGEST_TARGET: Final = 4096
_MOST_HEADERS: Final = 64
#: Of names and values together; the server itself reads no head above 64 KiB.
_LARGEST_HEAD: Final = 16 << 10
_LARGEST_BODY: Final = 64 << 10
#: Where files are uploaded, by who has been let in: the longest body, and the time until it is there.
UPLOADS: Final = ("/api/v1/plans", "/api/v1/proposals")
LARGEST_UPLOAD: Final = MAX_BYTES
_UPLOAD_SECONDS: Final = 300.0
#: Results of jobs may be as long, so they have as much time.
_RESULT: Final = re.compile(r"/api/v1/jobs/[^/]+/result")
#: From the head of a request to the last byte of its answer; streams of events have none.
_SECONDS: Final = 30.0
#: The scope's state has a function under this key that ends the connection at once; our own server puts it there.
ABORT: Final = "abort"
#: The scope's state has the client's address, as limits count it, under this key.
CLIENT: Final = "client"
EVENTS: Final = "/api/v1/events"
STATIC: Final = "/static/"


class RequestLimits:
    """Refuses what is too large, too much or too slow, before anything else looks at it."""

    def __init__(self, app: ASGIApp, gate: AccessGate, *, seconds: float = _SECONDS) -> None:
        self._app, self._gate, self._seconds = app, gate, seconds
        self._rates = Rates(gate.settings.requests_per_second)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # a WebSocket is refused
        request = Request(scope)
        try:
            self._check(scope, request.headers)
        except RefusedError as error:
            await refusal(request, error)(scope, receive, send)
            return
        has_begun = False
        is_long = _is_upload(scope) or _RESULT.fullmatch(scope["path"]) is not None
        seconds = None if scope["path"] == EVENTS else _UPLOAD_SECONDS if is_long else self._seconds

        async def noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            async with asyncio.timeout(seconds):
                await self._app(scope, _bounded(receive, _longest(scope)), noted)
        except TimeoutError:
            if has_begun:
                scope["state"].get(ABORT, _nothing)()
                return
            slow = RefusedError(503, "Too slow", f"there was no answer within {seconds:g} s; try again later")
            slow.headers["Retry-After"] = "10"
            await refusal(request, slow)(scope, receive, send)
        except Exception as error:
            if has_begun:
                log.error("%s %s broke off: %r", request.method, scope["path"], error)
                scope["state"].get(ABORT, _nothing)()
                return
            await refusal(request, _refused(request, error))(scope, receive, send)

    def _check(self, scope: Scope, headers: Headers) -> None:
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > _LONGEST_TARGET:
            raise RefusedError(414, "Address too long", f"allowed are {_LONGEST_TARGET} bytes")
        if len(scope["headers"]) > _MOST_HEADERS:
            raise RefusedError(431, "Too many headers", f"allowed are {_MOST_HEADERS}")
        if sum(len(name) + len(value) for name, value in scope["headers"]) > _LARGEST_HEAD:
            raise RefusedError(431, "Headers too large", f"allowed are {_LARGEST_HEAD >> 10} KiB together")
        if "content-length" in headers and "transfer-encoding" in headers:
            raise RefusedError(400, "Ambiguous length", "a request has Content-Length or Transfer-Encoding, never both")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length[:20]) > _longest(scope):
            raise _too_large(_longest(scope))
        client = scope.get("client")
        peer = str(client[0]) if client else ""
        address = peer
        if self._gate.proxy is not None and self._gate.proxy.is_peer(peer):
            address = self._gate.proxy.client_address(headers, peer)
        scope.setdefault("state", {})[CLIENT] = client_key(address)
        if not scope["path"].startswith(STATIC):
            wait = self._rates.wait_seconds(scope["state"][CLIENT])
            if wait:
                error = RefusedError(429, "Too many requests", f"try again in {wait:.1f} s")
                error.headers["Retry-After"] = str(int(wait) + 1)
                raise error


def _refused(request: Request, error: Exception) -> RefusedError:
    """What *error*, which ended *request*, is for whoever sent it: of a fault of ours, the log alone says which."""
    if isinstance(error, RefusedError):  # as of the body, while it was read
        return error
    if isinstance(error, TrimtabError):
        return RefusedError(503, "Not known now", str(error))
    log.error("%s %s failed: %r", request.method, request.url.path, error, exc_info=error)
    return RefusedError(500, "Internal error", "this is a fault of trimtab: its log says more")


def _is_upload(scope: Scope) -> bool:
    return bool(scope["method"] == "POST" and scope["path"] in UPLOADS)


def _longest(scope: Scope) -> int:
    """Bytes of the body, at most."""
    return LARGEST_UPLOAD if _is_upload(scope) else _LARGEST_BODY


def _bounded(receive: Receive, longest: int) -> Receive:
    """*receive*, which raises once the body is longer than allowed: its length need not be given in front."""
    size = 0

    async def received() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > longest:
            raise _too_large(longest)
        return message

    return received


def _too_large(longest: int) -> RefusedError:
    return RefusedError(413, "Too large", f"allowed are {longest >> 10} KiB")


def _nothing() -> None:
    pass
