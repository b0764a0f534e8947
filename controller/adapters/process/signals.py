"""How all commands handle SIGTERM, Ctrl-C (SIGINT) and the end of their terminal (SIGHUP).

They say "stopping", and end within three seconds.  SIGHUP alone may be ignored: whoever starts a command by ``nohup``
wants it to go on.

A command that runs until it is told to end is asked to finish what it has begun, for a moment; then the process ends at
once, with every process that it has started.  A second signal ends it at once, too, unless it is the same one within a
second: GNU timeout, terminals and container runtimes send one to the process and one to its group.  Nothing is lost
where the process ends at once; it is like a crash, which every command survives.  The exit code says whether the end
was wanted: 0 for commands that run until they are told to end, 130 for the others.

Only the standard library is imported here: signals are handled before the rest is loaded.
"""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final, NoReturn

from controller.adapters.process.process_tree import kill_descendants

log = logging.getLogger(__name__)

#: Exit code of a command that a signal broke off: 128 + SIGINT, as shells report Ctrl-C.
INTERRUPTED: Final = 130

#: As Python ends where it cannot write the last of what was printed.
_NOT_WRITTEN: Final = 120

_SIGNALS: Final = (
    signal.SIGTERM,
    signal.SIGINT,
    *([] if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [signal.SIGHUP]),
)
#: How long a command may take to finish what it has begun.
_PATIENCE_SECONDS: Final = 1.5
#: The same signal that comes again so soon was sent twice at once, and is no sign of impatience.
_TWICE_SECONDS: Final = 1.0
#: After this long the process ends, whatever it does.
_LIMIT_SECONDS: Final = 2.2
#: A main thread that has not run its handler by then is in a call that blocks: nobody waits for that.
_HANDLED_SECONDS: Final = 0.5
#: How long the end itself may take, where it is forced, since output may block; and the end without any output.
_LAST_SECONDS: Final = 0.4
_POLL_SECONDS: Final = 0.1
_SHOW_CURSOR: Final = b"\x1b[?25h"
_CLEAN_UPS: Final[list[Callable[[], object]]] = []
#: Held by the thread that ends this process.
_ENDING: Final = threading.Lock()
#: Set when a handler of this module has run.
_HANDLED: Final = threading.Event()


class Ending(threading.Event):
    """Set once this process is told to end."""


def end_at_once(exit_code: int = 0) -> None:
    """From now on the first signal ends the process with *exit_code*, unless one of the functions below handles it.

    Also from now on every signal ends the process within three seconds, whatever the process does by then: a thread of
    its own sees to it, because a main thread in a call that blocks handles no signal.
    """
    for number in _SIGNALS:
        signal.signal(number, _handler(lambda number: _end_now(number, exit_code)))
    _limit_every_end(exit_code)


def run_until_told(work: Callable[[Ending], None]) -> None:
    """Run *work*, which is to return soon after its argument is set, in a thread; only from the main thread.

    Returns when the work has returned, raises what it raises.  Does not return where a signal ended it: the process
    ends with exit code 0.  The work is not waited for longer than a moment, whatever call it waits in.
    """
    ending, received = Ending(), _Signals()
    worker = _Worker(work, ending)
    with _handled_by(_handler(received.counts)):
        worker.start()
        while worker.is_alive() and not received.numbers:
            worker.join(_POLL_SECONDS)
        if received.numbers:
            _finish(worker, ending, received.numbers)
    if worker.failure is not None:
        raise worker.failure


@contextmanager
def interrupts(exit_code: int = 0) -> Iterator[None]:
    """Within the block the first signal raises KeyboardInterrupt, which the block may catch; only in the main thread.

    When the block ends after a signal, however it ends, the process ends with *exit_code*.  A second signal ends it at
    once.
    """
    signals = _Signals()
    received = signals.numbers

    def handle(number: int) -> None:
        if not signals.counts(number):
            return
        if len(received) > 1:
            _end(f"{_name(received[0])}, {_name(number)} again", exit_code)
        _say(f"{_name(number)}: stopping")
        raise KeyboardInterrupt

    with _handled_by(_handler(handle)):
        try:
            yield
        except BaseException as error:
            if not received:
                raise
            if not isinstance(error, KeyboardInterrupt):
                _say(f"while stopping: {error}")
        if received:
            _end(f"{_name(received[0])}, in order", exit_code)


def clean_up_at_end(clean_up: Callable[[], object]) -> None:
    """Have *clean_up* called where a signal ends this process, when all that it started has ended."""
    _CLEAN_UPS.append(clean_up)


@contextmanager
def cleaned_up_at_end(clean_up: Callable[[], object]) -> Iterator[None]:
    """Have *clean_up* called where a signal ends this process within the block."""
    clean_up_at_end(clean_up)
    try:
        yield
    finally:
        _CLEAN_UPS.remove(clean_up)


def leave(exit_code: int) -> NoReturn:
    """End now, with every process that this one has started, and without the interpreter's own end.

    That one waits for threads and connections, and takes away what threads still work with: pulsar-client then aborts
    the process, so that its exit code is another one.
    """
    _be_the_one_who_ends()
    try:
        sys.stdout.flush()
    except OSError:
        exit_code = exit_code or _NOT_WRITTEN
    _leave(exit_code)


def be_silent() -> None:
    """Print nothing from now on: at the end, threads whose connections close would print errors."""
    with suppress(OSError, ValueError, RuntimeError):  # nobody reads them any more, or a signal came in a flush
        sys.stdout.flush()
        sys.stderr.flush()
    with suppress(OSError):
        if os.isatty(1):
            os.write(1, _SHOW_CURSOR)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)


class _Signals:
    """The signals that came.  One that was sent twice at once, to the process and to its group, is one."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self._since = 0.0

    def counts(self, number: int) -> bool:
        """Take signal *number*; False where it is the first one once more."""
        now = time.monotonic()
        if self.numbers == [number] and now - self._since < _TWICE_SECONDS:
            return False
        if not self.numbers:
            self._since = now
        self.numbers.append(number)
        return True


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


def _finish(worker: _Worker, ending: Ending, received: Sequence[int]) -> NoReturn:
    """Wait for *worker* for a moment, while no second signal comes."""
    why, since = _name(received[0]), time.monotonic()
    log.info("%s: stopping", why)
    ending.set()
    while worker.is_alive() and len(received) == 1 and time.monotonic() - since < _PATIENCE_SECONDS:
        worker.join(_POLL_SECONDS)
    if worker.is_alive():
        again = f", {_name(received[-1])} again" if len(received) > 1 else ""
        _end(
            f"{why}{again}, after {time.monotonic() - since:.1f} s; unfinished work is repeated by the "
            f"next start or by another process"
        )
    if worker.failure is not None:
        log.warning("while stopping: %s", worker.failure)
    _end(f"{why}, in order, after {time.monotonic() - since:.1f} s")


def _limit_every_end(exit_code: int) -> None:
    """Start the thread that ends this process when a signal has come and the process does not end by itself."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    # Python writes the number of every signal there at once, whatever the main thread does.
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_force, args=[reader, exit_code], name="signals", daemon=True).start()


def _force(reader: int, exit_code: int) -> None:
    while (number := os.read(reader, 1)[0]) not in _SIGNALS:
        pass
    if _HANDLED.wait(_HANDLED_SECONDS):
        time.sleep(_LIMIT_SECONDS)
    last = threading.Thread(target=_end_now, args=[number, exit_code], daemon=True)
    last.start()
    last.join(_LAST_SECONDS)
    # Whoever ends this process may wait for output that nobody takes, or be slow on a busy machine: what this process
    # has started would go on without it.
    kill_descendants(os.getpid(), _LAST_SECONDS)
    os._exit(exit_code)


@contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


def _handler(handle: Callable[[int], object]) -> Callable[[int, FrameType | None], object]:
    """*handle* as a signal handler; it is not called once this process is ending."""

    def handler(number: int, _: FrameType | None) -> None:
        _HANDLED.set()
        if not _ENDING.locked():
            handle(number)

    return handler


def _name(number: int) -> str:
    return signal.Signals(number).name


def _end_now(number: int, exit_code: int) -> NoReturn:
    """End without waiting for anything; says "stopping" where nobody has said so."""
    if not _HANDLED.is_set() or threading.current_thread() is threading.main_thread():
        _say(f"{_name(number)}: stopping")
    _end(_name(number), exit_code)


def _end(why: str, exit_code: int = 0) -> NoReturn:
    _be_the_one_who_ends()
    _say(f"ended: {why}")
    _leave(exit_code)


def _be_the_one_who_ends() -> None:
    if not _ENDING.acquire(blocking=False):
        threading.Event().wait()  # another thread ends this process


def _leave(exit_code: int) -> NoReturn:
    be_silent()
    kill_descendants(os.getpid())
    for clean_up in _CLEAN_UPS:
        with suppress(Exception):
            clean_up()
    os._exit(exit_code)


def _say(text: str) -> None:
    if logging.getLogger().hasHandlers():
        log.info("%s", text)
    else:  # while the command is loaded, nothing is set up
        with suppress(OSError):
            os.write(2, f"trimtab: {text}\n".encode())
