"""Calls that take as long as they take: some at a time, none of which holds up whoever asks for it."""

import threading
import time
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple


class Outcome(NamedTuple):
    """What a call came to: its value, or the error that it raised."""

    key: Any
    value: Any
    error: Exception | None


class Calls:
    """Threads that work off calls.  ``submit`` and ``finished`` are for one thread.

    The threads are daemons: a call that never returns does not keep the process.
    """

    def __init__(self, most_at_once: int) -> None:
        self._most = most_at_once
        self._outcomes: SimpleQueue[Outcome] = SimpleQueue()
        self._waiting: SimpleQueue[tuple[Any, Callable[[], Any]] | None] = SimpleQueue()
        self._open: set[Any] = set()
        self._threads = 0

    def submit(self, key: Any, call: Callable[[], Any]) -> bool:
        """Have *call* made; False where one of this *key* is open still."""
        if key in self._open:
            return False
        self._open.add(key)
        self._waiting.put((key, call))
        if self._threads < self._most:
            self._threads += 1
            threading.Thread(target=self._work, args=[self._waiting], name="call", daemon=True).start()
        return True

    def finished(self) -> list[Outcome]:
        """The calls that came to an end since this was last asked."""
        outcomes = []
        while not self._outcomes.empty():
            outcomes.append(self._outcomes.get())
            self._open.discard(outcomes[-1].key)
        return outcomes

    def together(self, work: Mapping[Any, Callable[[], Any]], seconds: float) -> dict[Any, Outcome]:
        """What each of *work* comes to; a TimeoutError for what takes longer than *seconds*, and goes on by itself."""
        until = time.monotonic() + seconds
        late = TimeoutError(f"no answer within {max(seconds, 0.0):.1f} s")
        found = {key: Outcome(key, None, late) for key in work}
        missing = {key for key, call in work.items() if self.submit(key, call)}
        while missing:
            try:
                outcome = self._outcomes.get(timeout=max(until - time.monotonic(), 0.0))
            except Empty:
                break
            self._open.discard(outcome.key)
            if outcome.key in missing:  # else one that was too late for those who asked
                missing.discard(outcome.key)
                found[outcome.key] = outcome
        return found

    def is_open(self, key: Any) -> bool:
        """Whether a call of this *key* has not ended."""
        return key in self._open

    def renew(self) -> None:
        """Give up on the threads that are at work, so that new calls find free ones; those end when their call does.

        Calls that were not begun yet are dropped.
        """
        if not self._open:
            return
        old, self._waiting = self._waiting, SimpleQueue()
        while not old.empty():
            dropped = old.get()
            if dropped is not None:
                self._open.discard(dropped[0])
        for _ in range(self._threads):
            old.put(None)
        self._threads = 0

    def _work(self, waiting: "SimpleQueue[tuple[Any, Callable[[], Any]] | None]") -> None:
        while (task := waiting.get()) is not None:
            key, call = task
            try:
                outcome = Outcome(key, call(), None)
            except Exception as error:
                outcome = Outcome(key, None, error)
            self._outcomes.put(outcome)
