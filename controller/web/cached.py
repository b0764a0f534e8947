"""A value that takes long to read: read anew now and then, by one thread, while everybody else has the earlier one."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from controller.adapters.network.deadline import Clock, Deadline
from controller.model.errors import TrimtabError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedReading(Generic[T]):
    """What was read last."""

    #: None: nothing could be read yet.
    value: T | None
    #: Why the last attempt failed; "": it did not.
    error: str = ""


class Cached(Generic[T]):
    """What *read* returns, read anew when somebody asks and it is older than *seconds*.

    A read that hangs keeps one thread and no more: until it ends, everybody has the earlier value.
    """

    def __init__(self, read: Callable[[], T], seconds: float, *, clock: Clock = time.monotonic) -> None:
        self._read, self._seconds, self._clock = read, seconds, clock
        self._turn = threading.Lock()
        self._reading: CachedReading[T] = CachedReading(value=None)
        self._old = Deadline(0.0, clock)
        #: How often ``forget`` was called, and how often before the last read began.
        self._forgotten = self._read_since = 0
        #: Set when the read that is under way has ended; None: none is under way.
        self._under_way: threading.Event | None = None

    def reading(
        self, wait_seconds: float, wait: Callable[[threading.Event, float], object] = threading.Event.wait
    ) -> CachedReading[T]:
        """The newest value; where it is old, after waiting up to *wait_seconds* for a new one, by *wait*."""
        with self._turn:
            generation = self._forgotten
        while True:  # twice, where what is being read was forgotten meanwhile
            with self._turn:
                if not self._old.passed:
                    return self._reading
                if self._under_way is None:
                    self._under_way = threading.Event()
                    threading.Thread(target=self._run, args=(self._under_way,), name="web-read", daemon=True).start()
                ended = self._under_way
            wait(ended, wait_seconds)
            with self._turn:
                if self._read_since >= generation or not ended.is_set():
                    return self._reading

    def forget(self) -> None:
        """Something has changed: whoever asks from now on gets what is read from now on."""
        with self._turn:
            self._forgotten += 1
            self._old = Deadline(0.0, self._clock)

    def _run(self, ended: threading.Event) -> None:
        with self._turn:
            forgotten = self._forgotten
        try:
            new_reading = CachedReading(value=self._read())
        except TrimtabError as error:
            new_reading = CachedReading(value=self._reading.value, error=str(error))
        except Exception as error:
            new_reading = CachedReading(value=self._reading.value, error=f"{type(error).__name__}: {error}")
        with self._turn:
            self._reading, self._under_way, self._read_since = new_reading, None, forgotten
            if forgotten == self._forgotten:
                self._old = Deadline.after(self._seconds, self._clock)
        ended.set()
