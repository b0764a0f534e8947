"""Runs many tries in a few forks of this process; one that ends early costs its own try alone."""

from collections import deque
from collections.abc import Callable, Iterable
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, Final

_FORK: Final = get_context("fork")
#: How often it looks whether a fork has ended: what it started may hold the other end of its pipe open.
_LOOK_SECONDS: Final = 1.0


def in_forks(
    tries: Iterable[int],
    jobs: int,
    run: Callable[[int], Any],
    told: Callable[[int, Any], None],
    ended: Callable[[int, int], None],
) -> None:
    """Call *run* with each of *tries*, *jobs* at a time, and *told* with the try and its result, as they come.

    Where a fork ends without a result, *ended* gets the try and the exit code, and another fork takes the rest.
    """
    queue = list(tries)
    forks = [_Fork(run, todo) for part in range(jobs) if (todo := deque(queue[part::jobs]))]
    try:
        while forks:
            wait([fork.wire for fork in forks], _LOOK_SECONDS)
            forks = [left for fork in forks if (left := fork.heard(told, ended)) is not None]
    finally:
        for fork in forks:  # Ctrl-C
            fork.process.terminate()


class _Fork:
    def __init__(self, run: Callable[[int], Any], todo: deque[int]) -> None:
        self._run, self._todo = run, todo
        self.wire, its_end = _FORK.Pipe(duplex=False)
        self.process = _FORK.Process(target=self._work, args=(its_end,))
        self.process.start()
        its_end.close()

    def _work(self, wire: Connection) -> None:
        for each in self._todo:
            wire.send(self._run(each))

    def heard(self, told: Callable[[int, Any], None], ended: Callable[[int, int], None]) -> "_Fork | None":
        """Pass on what it says, if anything; the fork that has the rest of its tries, None when all are done."""
        ends = not self.process.is_alive()  # asked first: what it sent before is still in the pipe
        try:
            if self.wire.poll():
                told(self._todo[0], self.wire.recv())
            elif ends:
                raise EOFError
            else:
                return self
        except EOFError:
            self.process.join()
            ended(self._todo[0], self.process.exitcode or 0)
            self._todo.popleft()
            self.wire.close()
            return _Fork(self._run, self._todo) if self._todo else None
        self._todo.popleft()
        if self._todo:
            return self
        self.process.join()
        self.wire.close()
        return None
