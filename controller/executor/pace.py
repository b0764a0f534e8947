"""What is checked before every act: the rate limit, and that this process has not stood still."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from controller.adapters.process.awake import seconds_awake_or_not

_BEAT_SECONDS: Final = 0.2


class Pace:
    """A rate limit: at most *per_second* begin, evenly spaced, for all threads together."""

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
        """Return when it is this caller's turn."""
        with self._lock:
            turn = max(self._next, self._clock())
            self._next = turn + self._step
        while (missing := turn - self._clock()) > 0:
            self._sleep(missing)


class Pulse:
    """Knows whether this process stood still (stopped, swapped out, asleep) for longer than *limit_seconds*.

    While it did, others may have taken its work over.  Whoever runs first afterwards, the watching thread or a
    worker, finds the gap; once found it stays found, until the pulse is taken anew.
    """

    def __init__(self, limit_seconds: float, *, clock: Callable[[], float] = seconds_awake_or_not) -> None:
        self._limit, self._clock = limit_seconds, clock
        self._last, self._stopped = clock(), False
        self._lock = threading.Lock()

    def steady(self) -> bool:
        """True while there was no such gap; counts as a beat."""
        with self._lock:
            now = self._clock()
            self._stopped = self._stopped or now - self._last > self._limit
            self._last = now
            return not self._stopped

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Watch from now on, until the end of the block; earlier gaps do not count."""
        with self._lock:
            self._last, self._stopped = self._clock(), False
        until = threading.Event()
        watch = threading.Thread(target=self._beat, args=[until], name="pulse", daemon=True)
        watch.start()
        try:
            yield
        finally:
            until.set()
            watch.join()

    def _beat(self, until: threading.Event) -> None:
        while not until.wait(_BEAT_SECONDS):
            self.steady()
