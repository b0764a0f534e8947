"""Concurrent calls in threads: a limited number at a time, a result or an error for each, and no unbounded waiting.

The one thread runner.  ``concurrent.futures`` has no thread that the end of the process does not wait for; here a call
that never returns blocks neither the process nor its callers.
"""

import math
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread
from traceback import clear_frames
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


@dataclass(slots=True, eq=False)
class _Workers:
    """What threads that take the same calls share.  Each part of it is used without a lock, and by one call at once."""

    waiting: "SimpleQueue[tuple[Any, Callable[[], Any]] | None]"
    #: Keys of calls that are being made, and of those whose threads are to end with them.
    at_work: set[Any] = field(default_factory=set)
    stuck: set[Any] = field(default_factory=set)


#: A call, and the crew whose thread has ended with it.
_Finished: TypeAlias = "SimpleQueue[tuple[FinishedCall, _Workers | None]]"


class Calls:
    """Threads, *most_at_once*, that make the calls handed over.  All methods are for one thread.

    The threads are daemons: a call that never returns does not keep the process.
    """

    def __init__(self, most_at_once: int) -> None:
        self._limit = most_at_once
        self._finished: _Finished = SimpleQueue()
        self._crew = _Workers(SimpleQueue())
        self._open: set[Any] = set()
        self._threads = 0
        #: Calls of the crew that are being made -> since when, by the clock of who calls ``add_workers_for_stuck``.
        self._since: dict[Any, float] = {}

    def __del__(self) -> None:
        """End the threads that wait for work."""
        self.close()

    def submit(self, key: Any, call: Callable[[], Any]) -> bool:
        """Have *call* made; False where an earlier one of this *key* has not ended."""
        if key in self._open:
            return False
        self._open.add(key)
        self._crew.waiting.put((key, call))
        if self._threads < self._limit:
            self._start_thread()
        return True

    @property
    def waiting(self) -> int:
        """How many calls have not begun."""
        return self._crew.waiting.qsize()

    @property
    def unfinished(self) -> int:
        """How many calls have not ended."""
        return len(self._open) - self._finished.qsize()

    def add_workers_for_stuck(self, now: float, patience: float, *, answering: Container[Any], limit: int) -> None:
        """Start threads beside those that have been at one call for longer than *patience* seconds, *limit* such ones.

        *now*: seconds of the caller's clock.  The calls of *answering* are left out.  A thread that was relieved ends
        with its call, so that no more than ``most_at_once`` others are at work.
        """
        crew, before = self._crew, self._since
        self._since = {key: before.get(key, now) for key in crew.at_work.copy()}
        crew.stuck.intersection_update(self._since)
        for key, since in self._since.items():
            if now - since > patience and key not in answering and len(crew.stuck) < limit:
                crew.stuck.add(key)
        with suppress(RuntimeError):  # the system has no more threads
            for _ in range(min(self._limit + len(crew.stuck) - self._threads, self.waiting)):
                self._start_thread()

    def _start_thread(self) -> None:
        # Not a method of this object: a thread that waits would keep it for ever.
        Thread(target=_work, args=[self._crew, self._finished], name="call", daemon=True).start()
        self._threads += 1

    def finished(self) -> list[FinishedCall]:
        """The calls that have ended since this was last asked."""
        calls = []
        while not self._finished.empty():
            calls.append(self._finish(*self._finished.get()))
        return calls

    def _finish(self, call: FinishedCall, crew: _Workers | None) -> FinishedCall:
        """*call*, which has ended; so has its thread, where it *crew* a crew."""
        self._open.discard(call.key)
        self._threads -= crew is self._crew
        return call

    def together(self, work: Mapping[K, Callable[[], Any]], seconds: float = math.inf) -> dict[K, FinishedCall]:
        """How each of *work* ended; a NoAnswerError for what takes longer than *seconds*, and goes on by itself."""
        deadline = Deadline.after(seconds)
        late = NoAnswerError(f"no answer within {max(seconds, 0.0):.1f} s")
        results = {key: FinishedCall(key, None, late) for key in work}
        missing: set[Any] = {key for key, call in work.items() if self.submit(key, call)}
        while missing:
            try:
                call = self._finish(*self._finished.get(timeout=None if math.isinf(seconds) else deadline.remaining))
            except Empty:
                break
            if call.key in missing:  # else one that was too late for those who asked
                missing.discard(call.key)
                results[call.key] = call
        return results

    def is_open(self, key: Any) -> bool:
        """Whether a call of this *key* has not ended."""
        return key in self._open

    def renew(self) -> None:
        """Give up the threads where any of them is at work, so that new calls find free ones."""
        if self._open:
            self.close()

    def close(self) -> None:
        """Drop the calls that have not begun; the threads end, each with the call that it makes."""
        old, self._crew, self._since = self._crew.waiting, _Workers(SimpleQueue()), {}
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


def _let_go(error: BaseException | None) -> None:
    """Forget the variables of the functions that *error* ended: until somebody takes it, they would live with it."""
    visited = set[int]()  # an error may be its own cause
    while error is not None and id(error) not in visited:
        visited.add(id(error))
        clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _work(crew: _Workers, finished: _Finished) -> None:
    while (task := crew.waiting.get()) is not None:
        key, call = task
        crew.at_work.add(key)
        try:
            ended = FinishedCall(key, call(), None)
        except BaseException as error:
            _let_go(error)
            ended = FinishedCall(key, None, error)
        is_relieved = key in crew.stuck
        crew.at_work.discard(key)
        finished.put((ended, crew if is_relieved else None))
        if is_relieved:
            return
        del task, call, ended  # a thread that waits keeps nothing alive
