"""Work beside the decisions: each waits a moment for its result, and takes it in a later interval otherwise."""

import threading
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

T = TypeVar("T")
_NOTHING: Final = object()


class Work(Protocol):
    """How work is done that must not hold up a decision."""

    def __call__(self, key: object, work: Callable[[], T]) -> T | None:
        """The result of *work*, which answers for *key*; None while it is not there.  Its errors are raised."""
        ...


class BackgroundWork:
    """One piece of work at a time, in a thread that ends with the process."""

    def __init__(self, patience_seconds: float = 1.0) -> None:
        self._patience = patience_seconds
        self._key: object = _NOTHING
        self._done = threading.Event()
        self._outcome: tuple[Any, BaseException | None] = (None, None)

    def __call__(self, key: object, work: Callable[[], T]) -> T | None:
        """See Work.  Work for another key begins once that of the last one has ended."""
        if self._key is not _NOTHING and self._key != key and self._done.is_set():
            self._key = _NOTHING  # nobody has fetched that result, and nobody will
        if self._key is _NOTHING:
            self._key, self._done = key, threading.Event()
            threading.Thread(target=self._run, args=(work, self._done), daemon=True).start()
        if not self._done.wait(self._patience) or self._key != key:
            return None
        self._key = _NOTHING
        result, error = self._outcome
        if error is not None:
            raise error
        answer: T = result
        return answer

    def _run(self, work: Callable[[], object], done: threading.Event) -> None:
        try:
            self._outcome = (work(), None)
        except BaseException as error:
            self._outcome = (None, error)
        done.set()


def at_once(key: object, work: Callable[[], T]) -> T | None:  # noqa: ARG001 see Work
    """See Work: for tests and the simulation, whose order is the same at each run."""
    return work()
