"""Shows the progress of long work: a bar on a terminal, otherwise an occasional line; nothing with ``--quiet``.

Only the standard library is imported here at first: controller.adapters.disk.jars runs before anything is installed.
"""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Final, TypeAlias

log = logging.getLogger(__name__)

#: Seconds before the first line.
_FIRST_SECONDS: Final = 3.0
#: The shortest time between two lines.
_EVERY_SECONDS: Final = 4.5
#: Of the time that the work has taken: the longest time between two lines of a log.
_EVERY_SHARE: Final = 0.25
#: Between two looks, for a bar.
_BAR_SECONDS: Final = 0.5
#: Of the total: with less done, an estimate would be a guess.
_REDRAW_SHARE: Final = 0.02
_MINUTE: Final = 60
_HOUR: Final = 3600
#: So many of a unit are told in the smaller one.
_FEWEST_STEPS: Final = 2

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


def percent(amount: float) -> str:
    """A part of a hundred."""
    return f"{amount:.0f} %"


@contextmanager
def long_work(
    what: str,
    total: float = 0.0,
    written: Written = pieces,
    *,
    look: Callable[[], float] | None = None,
    usual_seconds: float = 0.0,
) -> Iterator[Done]:
    """Within the block, show that *what* is being done.  Yields the function that takes how much of *total* is done.

    *total* 0: not known; *usual_seconds* then says how long it mostly takes.  *look*, if given, says how much is done.
    Within long work there may be other long work: the innermost is shown.
    """
    work = _Work(what, total, written, look, usual_seconds)
    _UNDER_WAY.append(work)
    try:
        with _display() if len(_UNDER_WAY) == 1 else nullcontext():
            yield work.done
    finally:
        _UNDER_WAY.remove(work)


def work_line(what: str, total: float, done: float, written: Written, seconds: float, usual: float = 0.0) -> str:
    """How far *what* is after so many *seconds*: how much of it is done, and how long the rest will take."""
    if not total and done:
        return f"{what}: {written(done)} in {duration(seconds)}"
    if not total:
        return f"{what}: {duration(seconds)} so far{f', usually {duration(usual)}' if usual else ''}"
    if done < _REDRAW_SHARE * total:
        return f"{what}: {written(done)} of {written(total)}, {duration(seconds)} so far"
    return (
        f"{what}: {written(done)} of {written(total)}, about {duration(max(0.0, seconds * (total - done) / done))} left"
    )


def duration(seconds: float) -> str:
    """Seconds in the unit that suits them."""
    if seconds < _FEWEST_STEPS * _MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds / _MINUTE:.0f} min" if seconds < _FEWEST_STEPS * _HOUR else f"{seconds / _HOUR:.1f} h"


class _Work:
    """What is being done, and how much of it is."""

    def __init__(
        self, what: str, total: float, written: Written, look: Callable[[], float] | None, usual: float
    ) -> None:
        self.what, self.total, self.amount = what, total, 0.0
        self._written, self._look, self._usual = written, look, usual
        self._began = time.monotonic()

    def done(self, amount: float) -> None:
        """Take that *amount* is done."""
        self.amount = amount

    def line(self) -> str:
        """How far it is."""
        if self._look is not None:
            self.amount = self._look()
        seconds = time.monotonic() - self._began
        return work_line(self.what, self.total, self.amount, self._written, seconds, self._usual)


#: The outermost first.
_UNDER_WAY: Final[list[_Work]] = []


def _display() -> AbstractContextManager[None]:
    """Within the block the innermost work is shown, in the way that suits."""
    if _Verbosity.quiet:
        return nullcontext()
    if _Verbosity.say is None and sys.stderr.isatty() and not logging.getLogger().hasHandlers():
        return _bar()
    # A log is kept for long: in it the lines become rarer.
    return _every(_say, _EVERY_SECONDS, _EVERY_SHARE if logging.getLogger().hasHandlers() else 0.0)


def _say() -> None:
    """Say how far it is: to the live view, to the log, or to standard error where nothing is logged."""
    line = _UNDER_WAY[-1].line()
    if _Verbosity.say is not None:
        _Verbosity.say(line)
    elif logging.getLogger().hasHandlers():
        log.info("%s", line)
    else:
        print(f"trimtab: {line}", file=sys.stderr, flush=True)  # noqa: T201


@contextmanager
def _every(tell: Callable[[], None], seconds: float, share: float) -> Iterator[None]:
    """Within the block call *tell* again and again: after *seconds*, or a *share* of the time that has gone by."""
    began, ended = time.monotonic(), threading.Event()

    def run() -> None:
        wait = min(_FIRST_SECONDS, seconds)
        while not ended.wait(wait):
            wait = max(seconds, share * (time.monotonic() - began))
            with suppress(Exception):  # whatever is said, the work goes on
                tell()

    teller = threading.Thread(target=run, name="long-work", daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()


@contextmanager
def _bar() -> Iterator[None]:
    from rich.console import Console  # here, because it may not be installed yet
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=20))
    # Rich would print to standard error what is printed meanwhile; results in a pipe must stay there.
    console, both = Console(stderr=True), sys.stdout.isatty()
    with Progress(*columns, console=console, transient=True, redirect_stdout=both) as progress:
        task = progress.add_task(_UNDER_WAY[-1].line(), total=_UNDER_WAY[-1].total or None)

        def tell() -> None:
            work = _UNDER_WAY[-1]
            progress.update(task, description=work.line(), total=work.total or None, completed=work.amount)

        with _every(tell, _BAR_SECONDS, 0.0):
            yield
