"""Says how far long work has come: a bar on a terminal, else one line now and then; nothing after ``--quiet``.

Only the standard library is imported here at first: controller.adapters.jars runs before anything is installed.
"""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

log = logging.getLogger(__name__)

#: Seconds before the first line, and the shortest time between two.
_EVERY_SECONDS: Final = 5.0
#: Of the time that the work has taken: the longest time between two lines.
_EVERY_SHARE: Final = 0.25
_MINUTE: Final = 60
_HOUR: Final = 3600

#: Takes how much is done by now, in the unit of the total.
Done: TypeAlias = Callable[[float], None]
#: How an amount is written.
Written: TypeAlias = Callable[[float], str]


class _Verbosity:
    """What this process shows beside its results."""

    quiet = False
    #: Takes the lines while a live view has the terminal.
    say: Callable[[str], None] | None = None


def set_quiet(quiet: bool) -> None:
    """With *quiet*, show no progress from now on."""
    _Verbosity.quiet = quiet


def is_quiet() -> bool:
    """Whether only results, warnings and errors are to be shown."""
    return _Verbosity.quiet


@contextmanager
def shown_by(say: Callable[[str], None]) -> Iterator[None]:
    """Within the block hand each line to *say*: a live view has the terminal."""
    before, _Verbosity.say = _Verbosity.say, say
    try:
        yield
    finally:
        _Verbosity.say = before


def megabytes(amount: float) -> str:
    """Bytes, as people read them."""
    return f"{amount / 1e6:,.0f} MB"


def pieces(amount: float) -> str:
    """A count."""
    return f"{amount:,.0f}"


@contextmanager
def long_work(
    what: str, total: float = 0.0, written: Written = pieces, *, expected_seconds: float = 0.0
) -> Iterator[Done]:
    """Within the block, show that *what* is being done.  Yields the function that takes how much of *total* is done.

    *total* 0: not known.  *expected_seconds*: how long it usually takes, where there is no total.
    """
    if _Verbosity.quiet:
        yield _nowhere
    elif _Verbosity.say is None and sys.stderr.isatty() and not logging.getLogger().hasHandlers():
        with _bar(what, total, written, expected_seconds) as done:
            yield done
    else:
        with _lines(what, total, written, expected_seconds) as done:
            yield done


def work_line(what: str, total: float, done: float, written: Written, seconds: float, expected: float = 0.0) -> str:
    """How far *what* is after so many *seconds*: how much of it is done, and how long the rest will take."""
    if not total:
        usual = f", usually {duration(expected)}" if expected else ""
        return f"{what}: {duration(seconds)} so far{usual}"
    left = f", about {duration(seconds * (total - done) / done)} left" if done else ""
    return f"{what}: {written(done)} of {written(total)}{left}"


def duration(seconds: float) -> str:
    """Seconds in the unit that suits them."""
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds / _MINUTE:.0f} min" if seconds < _HOUR else f"{seconds / _HOUR:.1f} h"


def _nowhere(_: float) -> None:
    """Shows nothing."""


@contextmanager
def _lines(what: str, total: float, written: Written, expected: float) -> Iterator[Done]:
    began, amount, ended = time.monotonic(), [0.0], threading.Event()

    def tell() -> None:
        wait = _EVERY_SECONDS
        while not ended.wait(wait):
            seconds = time.monotonic() - began
            _say(work_line(what, total, amount[0], written, seconds, expected))
            wait = max(_EVERY_SECONDS, _EVERY_SHARE * seconds)

    def done(now: float) -> None:
        amount[0] = now

    teller = threading.Thread(target=tell, name="long-work", daemon=True)
    teller.start()
    try:
        yield done
    finally:
        ended.set()
        teller.join()


def _say(line: str) -> None:
    if _Verbosity.say is not None:
        _Verbosity.say(line)
    elif logging.getLogger().hasHandlers():
        log.info("%s", line)
    else:
        print(f"trimtab: {line}", file=sys.stderr, flush=True)  # noqa: T201


@contextmanager
def _bar(what: str, total: float, written: Written, expected: float) -> Iterator[Done]:
    from rich.console import Console  # here, because it may not be installed yet
    from rich.progress import BarColumn, Progress, TextColumn

    began = time.monotonic()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=20))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        shown = progress.add_task(what, total=total or None)

        def done(now: float) -> None:
            line = work_line(what, total, now, written, time.monotonic() - began, expected)
            progress.update(shown, completed=now, description=line)

        yield done
