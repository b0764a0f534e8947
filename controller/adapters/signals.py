"""How all commands that run until they are told to end handle SIGTERM and Ctrl-C (SIGINT).

The first signal asks the command to finish what it has begun.  A second one, or the end of the command's patience, ends
the process at once, with every process that it has started.  Either way the exit code is 0: whoever sent the signal
wanted the end.  Nothing is lost where the process ends at once; it is like a crash, which every command survives.

Only the standard library is imported here: signals are handled before the rest is loaded.
"""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from types import FrameType
from typing import Final, NoReturn, TypeAlias

from controller.adapters.process_tree import kill_descendants

log = logging.getLogger(__name__)

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
#: How long a command may take to end that has begun nothing of importance.
_PATIENCE_SECONDS: Final = 2.0
_POLL_SECONDS: Final = 0.1
_CLEAN_UPS: Final[list[Callable[[], None]]] = []

#: See :meth:`Ending.may_take`.
MayTake: TypeAlias = Callable[[float], AbstractContextManager[None]]


def without_limit(_: float) -> AbstractContextManager[None]:
    """A MayTake for callers that no signal ends."""
    return nullcontext()


class Ending(threading.Event):
    """Set once this process is told to end."""

    def __init__(self) -> None:
        super().__init__()
        self._patience = _PATIENCE_SECONDS

    @property
    def patience_seconds(self) -> float:
        """How long the command may take to end from the signal on."""
        return self._patience

    @contextmanager
    def may_take(self, seconds: float) -> Iterator[None]:
        """Within the block the command may take *seconds* to end: it finishes what it has begun."""
        before, self._patience = self._patience, seconds
        try:
            yield
        finally:
            self._patience = before


def end_at_once() -> None:
    """From now on the first signal ends the process: for the time in which the command is loaded."""
    for number in _SIGNALS:
        signal.signal(number, lambda number, _: _end(f"{_name(number)} before the start was complete"))


def run_until_told(work: Callable[[Ending], None]) -> None:
    """Run *work*, which is to return soon after its argument is set, in a thread; only from the main thread.

    Returns when the work has returned, raises what it raises.  Does not return where a signal ended it: the process
    ends with exit code 0.  The work is never waited for longer than its patience, whatever call it waits in.
    """
    ending, told = Ending(), list[int]()
    worker = _Worker(work, ending)
    with _handled_by(lambda number, _: told.append(number)):
        worker.start()
        while worker.is_alive() and not told:
            worker.join(_POLL_SECONDS)
        if told:
            _finish(worker, ending, told)
    if worker.failure is not None:
        raise worker.failure


@contextmanager
def interrupts(exit_code: int = 0) -> Iterator[None]:
    """Within the block the first signal raises KeyboardInterrupt, which the block may catch; only in the main thread.

    When the block ends after a signal, however it ends, the process ends with *exit_code*.  A second signal ends it at
    once.
    """
    told: list[int] = []

    def handle(number: int, _: FrameType | None) -> None:
        told.append(number)
        if len(told) > 1:
            _end(f"{_name(told[0])}, {_name(number)} again", exit_code)
        raise KeyboardInterrupt

    with _handled_by(handle):
        try:
            yield
        except BaseException as error:
            if not told:
                raise
            if not isinstance(error, KeyboardInterrupt):
                _say(f"while stopping: {error}")
        if told:
            _end(f"{_name(told[0])}, in order", exit_code)


def clean_up_at_end(clean_up: Callable[[], None]) -> None:
    """Have *clean_up* called where a signal ends this process, when all that it started has ended."""
    _CLEAN_UPS.append(clean_up)


def be_silent() -> None:
    """Print nothing from now on: at the end, threads whose connections close would print errors."""
    with suppress(OSError):  # nobody may read them any more
        sys.stdout.flush()
        sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)


class _Worker(threading.Thread):
    """Does the work; remembers the error that ended it."""

    def __init__(self, work: Callable[[Ending], None], ending: Ending) -> None:
        super().__init__(name="work", daemon=True)
        self._work, self._ending = work, ending
        self.failure: BaseException | None = None

    def run(self) -> None:
        """Until the work returns or raises."""
        try:
            self._work(self._ending)
        except BaseException as error:
            self.failure = error


def _finish(worker: _Worker, ending: Ending, told: Sequence[int]) -> NoReturn:
    """Wait for *worker* as long as its patience lasts, and no second signal comes."""
    why, since = _name(told[0]), time.monotonic()
    log.info("%s: stopping", why)
    ending.set()
    while worker.is_alive() and len(told) == 1 and time.monotonic() - since < ending.patience_seconds:
        worker.join(_POLL_SECONDS)
    if worker.is_alive():
        again = f", {_name(told[-1])} again" if len(told) > 1 else ""
        _end(f"{why}{again}, after {time.monotonic() - since:.1f} s; what was under way is broken off, as by a crash")
    if worker.failure is not None:
        log.warning("while stopping: %s", worker.failure)
    _end(f"{why}, in order, after {time.monotonic() - since:.1f} s")


@contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


def _name(number: int) -> str:
    return signal.Signals(number).name


def _end(why: str, exit_code: int = 0) -> NoReturn:
    """End now, without the interpreter's own end, which waits for threads and connections."""
    _say(f"ended: {why}")
    be_silent()
    kill_descendants(os.getpid())
    for clean_up in _CLEAN_UPS:
        clean_up()
    os._exit(exit_code)


def _say(text: str) -> None:
    if logging.getLogger().hasHandlers():
        log.info("%s", text)
    else:  # while the command is loaded, nothing is set up
        with suppress(OSError):
            os.write(2, f"trimtab: {text}\n".encode())
