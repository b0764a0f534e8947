"""Whether a process is alive and ready: the answers of /healthz and /readyz."""

import math
import time
from collections.abc import Callable
from typing import Final

from controller.adapters.network.deadline import Clock

#: Until the process says something else.
_STARTING: Final = "it is starting"


class ProcessHealth:
    """What a process says of itself.  One thread says it, others read it."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._beat_at, self._limit_seconds = clock(), math.inf
        #: Whether the process does its part; and which, or why not.  One value: another thread reads it.
        self._now = (False, _STARTING)

    def limit_standstill(self, seconds: float) -> None:
        """Report the process as dead if its main loop makes no progress for *seconds*."""
        self._limit_seconds = seconds

    def beat(self) -> None:
        """The main loop has made progress."""
        self._beat_at = self._clock()

    def beating(self, stop: Callable[[], bool]) -> Callable[[], bool]:
        """*stop*, which every main loop calls repeatedly; each call counts as progress."""

        def beat_and_ask() -> bool:
            self.beat()
            return stop()

        return beat_and_ask

    def ready(self, state: str) -> None:
        """From now on the process is ready; *state* says what it does."""
        self._now = (True, state)

    def not_ready(self, why: str) -> None:
        """From now on the process is not ready."""
        self._now = (False, why)

    @property
    def now(self) -> tuple[bool, str]:
        """Whether the process does its part; and what it does, or why it does not."""
        return self._now

    @property
    def since_beat_seconds(self) -> float:
        """Seconds since the main loop last made progress."""
        return self._clock() - self._beat_at

    @property
    def standstill(self) -> str:
        """Why the process counts as dead; "" if it is alive."""
        seconds = self.since_beat_seconds
        if seconds < self._limit_seconds:
            return ""
        return f"the main loop has not completed a round for {seconds:.0f} s, the limit is {self._limit_seconds:g} s"
