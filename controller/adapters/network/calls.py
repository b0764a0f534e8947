"""Calls made side by side in threads: so many at a time, an answer or an error for each, and nobody waits for ever.

The one thread runner.  ``concurrent.futures`` has no thread that the end of the process does not wait for; here a call
that never returns keeps neither the process nor those who asked for it.
"""

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from controller.adapters.network.deadline import Deadline

K = TypeVar("K")

#: Calls that ``side_by_side`` makes at a time.
_AT_ONCE: Final = 32


class NoAnswerError(TimeoutError):
    """A call took longer than it was waited for; it goes on in its thread."""


class FinishedCall(NamedTuple):
    """How a call ended: with its value, or with the error that it raised."""

    key: Any
    value: Any
    error: BaseException | None

    @property
    def late(self) -> bool:
        """Whether the call has not ended, and is not waited for any more."""
        return isinstance(self.error, NoAnswerError)

    def result(self) -> Any:
        """The value; raises the error."""
        if self.error is not None:
            raise self.error
        return self.value


_Waiting: TypeAlias = "SimpleQueue[tuple[Any, Callable[[], Any]] | None]"
_Finished: TypeAlias = "SimpleQueue[FinishedCall]"


class Calls:
    """Threads, *most_at_once*, that make the calls handed over.  All methods are for one thread.

    The threads are daemons: a call that never returns does not keep the process.
    """

    def __init__(self, most_at_once: int) -> None:
        self._most = most_at_once
        self._finished: _Finished = SimpleQueue()
        self._waiting: _Waiting = SimpleQueue()
        self._open: set[Any] = set()
        self._threads = 0

    def __del__(self) -> None:
        """End the threads that wait for work."""
        self.close()

    def submit(self, key: Any, call: Callable[[], Any]) -> bool:
        """Have *call* made; False where an earlier one of this *key* has not ended."""
        if key in self._open:
            return False
        self._open.add(key)
        self._waiting.put((key, call))
        if self._threads < self._most:
            self._threads += 1
            # Not a method of this object: a thread that waits would keep it for ever.
            Thread(target=_work, args=[self._waiting, self._finished], name="call", daemon=True).start()
        return True

    def finished(self) -> list[FinishedCall]:
        """The calls that have ended since this was last asked."""
        calls = []
        while not self._finished.empty():
            calls.append(self._finished.get())
            self._open.discard(calls[-1].key)
        return calls

    def together(self, work: Mapping[K, Callable[[], Any]], seconds: float = math.inf) -> dict[K, FinishedCall]:
        """How each of *work* ended; a NoAnswerError for what takes longer than *seconds*, and goes on by itself."""
        deadline = Deadline.after(seconds)
        late = NoAnswerError(f"no answer within {max(seconds, 0.0):.1f} s")
        found = {key: FinishedCall(key, None, late) for key in work}
        missing: set[Any] = {key for key, call in work.items() if self.submit(key, call)}
        while missing:
            try:
                call = self._finished.get(timeout=None if math.isinf(seconds) else deadline.left)
            except Empty:
                break
            self._open.discard(call.key)
            if call.key in missing:  # else one that was too late for those who asked
                missing.discard(call.key)
                found[call.key] = call
        return found

    def is_open(self, key: Any) -> bool:
        """Whether a call of this *key* has not ended."""
        return key in self._open

    def renew(self) -> None:
        """Give up the threads where any of them is at work, so that new calls find free ones."""
        if self._open:
            self.close()

    def close(self) -> None:
        """Drop the calls that have not begun; the threads end, each with the call that it makes."""
        old, self._waiting = self._waiting, SimpleQueue()
        with suppress(Empty):
            while True:
                dropped = old.get_nowait()
                if dropped is not None:
                    self._open.discard(dropped[0])
        for _ in range(self._threads):
            old.put(None)
        self._threads = 0


def side_by_side(
    work: Mapping[K, Callable[[], Any]], seconds: float = math.inf, *, at_once: int = _AT_ONCE
) -> dict[K, FinishedCall]:
    """How each of *work* ended, made now and *at_once* so many; a NoAnswerError for what takes longer than *seconds*.

    What has not begun by then is dropped, what has goes on by itself.
    """
    calls = Calls(at_once)
    try:
        return calls.together(work, seconds)
    finally:
        calls.close()


def _work(waiting: _Waiting, finished: _Finished) -> None:
    while (task := waiting.get()) is not None:
        key, call = task
        try:
            ended = FinishedCall(key, call(), None)
        except BaseException as error:
            ended = FinishedCall(key, None, error)
        finished.put(ended)
        del task, call, ended  # a thread that waits keeps nothing alive
