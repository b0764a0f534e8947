"""Checks before every act: the rate limit, and that this process has not stood still."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from controller.adapters.process.awake import seconds_awake_or_not

_BEAT_SECONDS: Final = 0.2


class RateLimiter:
    """Limits all threads together to *per_second* starts, evenly spaced."""

    def __init__(
        self,
        per_second: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._step, self._clock, self._sleep = 1 / per_second, clock, sleep
        self._next = clock()
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Block until the caller may start."""
        with self._lock:
            turn = max(self._next, self._clock())
            self._next = turn + self._step
        while (missing := turn - self._clock()) > 0:
            self._sleep(missing)


class StandstillWatch:
    """Detects that this process stood still (stopped, swapped out, asleep) for longer than *limit_seconds*.

    Others may have taken over its work meanwhile.  The thread that runs first afterwards detects the gap, and the
    result lasts until the next ``watching``.
    """

    def __init__(self, limit_seconds: float, *, clock: Callable[[], float] = seconds_awake_or_not) -> None:
        self._limit, self._clock = limit_seconds, clock
        self._last, self._stopped = clock(), False
        self._lock = threading.Lock()

    def is_steady(self) -> bool:
        """True if there was no such gap; counts as a beat."""
        with self._lock:
            now = self._clock()
            self._stopped = self._stopped or now - self._last > self._limit
            self._last = now
            return not self._stopped

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch during the block; earlier gaps do not count."""
        with self._lock:
            self._last, self._stopped = self._clock(), False
        until = threading.Event()
        watch = threading.Thread(target=self._beat, args=[until], name="standstill", daemon=True)
        watch.start()
        try:
            yield
        finally:
            until.set()
            watch.join()

    def _beat(self, until: threading.Event) -> None:
        while not until.wait(_BEAT_SECONDS):
            self.is_steady()
