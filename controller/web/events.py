"""Server-sent events: one message for each change, to any number of streams that is allowed."""

import asyncio
import json
import logging
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Final

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from controller.web.access.viewer import RefusedError, Viewer
from controller.web.store.queries import PageData
from controller.wire.base import harmless_json

log = logging.getLogger(__name__)

#: A stream says so often that it is alive, since proxies end connections that say nothing, and sees whether its viewer
#: is still admitted: a session ends, and a token is deleted.
_ALIVE_SECONDS: Final = 15.0
#: The thread that waits for news looks so often whether it is to end.
_LOOK_SECONDS: Final = 1.0
#: Characters of the summary in a message: a message has 4 KB at most.
_LONGEST_SUMMARY: Final = 500
_ALIVE: Final = b": alive\n\n"
#: Milliseconds after which a browser connects again.
_BEGINS: Final = b"retry: 3000\n\n"


class StreamPlaces:
    """How many streams may be open, of one client and in all.  For one thread."""

    def __init__(self, of_one: int, of_all: int) -> None:
        self._of_one, self._of_all = of_one, of_all
        self._open: Counter[str] = Counter()

    def take(self, client: str) -> None:
        """Take a place for *client*.  RefusedError where none is free."""
        if self._open[client] >= self._of_one:
            raise RefusedError(
                429,
                "Too many streams",
                f"one client may have {self._of_one} streams of events (streams_per_client in [web])",
            )
        if self._open.total() >= self._of_all:
            error = RefusedError(
                503, "Too many streams", "no more streams of events can be served now (streams in [web])"
            )
            error.headers["Retry-After"] = "30"
            raise error
        self._open[client] += 1

    def give_back(self, client: str) -> None:
        """The stream has ended."""
        self._open[client] -= 1
        if not self._open[client]:
            del self._open[client]

    @property
    def open(self) -> int:
        """Streams that are open."""
        return self._open.total()


def share_of(viewer: Viewer | None, address: str) -> str:
    """Who has a share of the places: a person from whatever addresses, and an address of people without a name."""
    return address if viewer is None or viewer.login == "anonymous" else f"user {viewer.name}"


class EventStream(StreamingResponse):
    """The *messages* of a stream to *client*.  RefusedError where *places* has none for it.

    It has its place while it is sent: of a client that has gone before the first message *messages* never begins, so
    nothing in there could give the place back.
    """

    def __init__(self, messages: AsyncIterator[bytes], places: StreamPlaces, client: str) -> None:
        super().__init__(messages, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        self._places, self._client = places, client

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        self._places.take(self._client)
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._places.give_back(self._client)


async def _always() -> bool:
    return True


class EventSource:
    """The newest message about one cluster.  A stream that is slow misses what is out of date, and nothing piles up."""

    def __init__(self, data: PageData) -> None:
        self._data = data
        self._message = _message(data)
        self._changed = asyncio.Event()

    async def stream(self, is_admitted: Callable[[], Awaitable[bool]] = _always) -> AsyncIterator[bytes]:
        """The newest message now, and after each change; it ends where *is_admitted* says no, now and then."""
        yield _BEGINS
        loop = asyncio.get_running_loop()
        # By each stream's own time, not by that of the changes: a change does not have all streams look at once.
        sent, look = b"", loop.time() + _ALIVE_SECONDS
        while True:
            changed = self._changed
            if self._message != sent:
                sent = self._message
                yield sent
            try:
                await asyncio.wait_for(changed.wait(), look - loop.time())
            except TimeoutError:
                if not await is_admitted():
                    return
                look = loop.time() + _ALIVE_SECONDS
                yield _ALIVE

    def follow(self, loop: asyncio.AbstractEventLoop, ended: threading.Event) -> None:
        """Wait for changes, in a thread, until *ended*."""
        version = self._data.version()
        while not ended.is_set():
            try:
                newer = self._data.wait(version, _LOOK_SECONDS)
                if newer == version:
                    continue
                version, message = newer, _message(self._data)
            except Exception as error:
                log.warning("the news cannot be read: %r", error)
                ended.wait(_LOOK_SECONDS)
                continue
            _call(loop, partial(self._tell, message))

    def _tell(self, message: bytes) -> None:
        self._message = message
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def _call(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:  # the loop has ended
        log.debug("news came after the end")


def _message(data: PageData) -> bytes:
    version, latest = data.version(), data.latest()
    values = {
        "version": version,
        "interval": None if latest is None else latest.interval,
        "mode": "" if latest is None else latest.controls.mode,
        "summary": "" if latest is None else latest.summary[:_LONGEST_SUMMARY],
    }
    text = harmless_json(json.dumps(values))
    return f"id: {version}\nevent: interval\ndata: {text}\n\n".encode()
