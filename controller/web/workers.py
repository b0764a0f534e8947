"""Threads for what waits: files, databases, servers.  A call that hangs keeps one thread, and never more than all."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from controller.web.access.viewer import RefusedError

T = TypeVar("T")

_THREADS: Final = 32
#: Calls that run or wait for a thread; more are refused.
_MOST_CALLS: Final = 128
#: Calls that wait for something slow, as a cluster that does not answer; the other threads are for those that do not.
_MOST_WAITING: Final = _THREADS // 2


class Workers:
    """Runs calls in a bounded number of threads."""

    def __init__(self, threads: int = _THREADS, calls: int = _MOST_CALLS, waiting: int = _MOST_WAITING) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="web")
        self._free = threading.BoundedSemaphore(calls)
        self._may_wait = threading.BoundedSemaphore(waiting)

    async def run(self, call: Callable[[], T]) -> T:
        """What *call* returns or raises.  RefusedError 503 where too many calls wait.

        Where the caller gives up, a call that runs goes on in its thread, and counts until it has ended.  One that
        waits is not made any more, but counts until a thread has come to it: it takes memory until then.
        """
        if not self._free.acquire(blocking=False):
            error = RefusedError(503, "Busy", "too many requests wait for an answer; try again in a moment")
            error.headers["Retry-After"] = "2"
            raise error
        given_up = threading.Event()

        def called() -> T:
            try:
                if given_up.is_set():
                    raise RefusedError(503, "Too slow", "the caller has given up")
                return call()
            finally:
                self._free.release()

        try:
            return await asyncio.shield(asyncio.wrap_future(self._pool.submit(called)))
        except asyncio.CancelledError:
            given_up.set()
            raise

    def wait(self, event: threading.Event, seconds: float) -> None:
        """Wait for *event*, up to *seconds*, in a call that runs here; not at all where too many wait already."""
        if self._may_wait.acquire(blocking=False):
            try:
                event.wait(seconds)
            finally:
                self._may_wait.release()
