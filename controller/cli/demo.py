"""``trimtab demo``: the real controller on a modelled cluster, or on a real Pulsar on this machine."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from controller.adapters.disk.files import why_not_writable
from controller.adapters.process import signals
from controller.cli.shared.arguments import now_ms
from controller.cli.shared.console import console
from controller.cli.shared.failures import needs_checkout
from controller.model.errors import TrimtabError
from controller.settings.trimtab_toml import Settings, read_settings

#: With --page: intervals are so short, and there are so many, that somebody who looks sees them pass.
_PAGE_PERIOD_SECONDS: Final = 10
_PAGE_INTERVALS: Final = 90


def demo(
    version: Annotated[
        str,
        typer.Argument(
            metavar="VERSION",
            help="With --pulsar: the release of Pulsar, 4.0 or 5.0; its first number is enough.",
            show_default="4.0",
        ),
    ] = "",
    seed: Annotated[
        int, typer.Option(help="Seed of the modelled cluster.  The same seed gives the same decisions.")
    ] = 1,
    intervals: Annotated[
        int | None,
        typer.Option(min=1, help="Number of intervals to play.", show_default="20; 12 with --pulsar; 90 with --page"),
    ] = None,
    folder: Annotated[Path, typer.Option(help="Each run keeps its log in a new folder here.")] = Path(".trimtab/demo"),
    pulsar: Annotated[
        bool,
        typer.Option(
            "--pulsar", help="Start a real Pulsar cluster on this machine, with traffic, a collector and an executor."
        ),
    ] = False,
    page: Annotated[
        bool,
        typer.Option("--page", help="Show it in a browser, too: the page stays until Ctrl-C.  Its address is printed."),
    ] = False,
) -> None:
    """Balance a modelled cluster with the real controller.  No server is needed; it takes about a minute."""
    problem = why_not_writable(folder)
    if problem:
        raise TrimtabError(f"{problem}; choose another folder with --folder")
    if version and not pulsar:
        raise typer.BadParameter(f"{version!r} names a release of Pulsar: give --pulsar {version}")
    with signals.interrupts():
        if pulsar:
            _pulsar_demo(folder, intervals, version, page=page)
        else:
            _modelled_demo(folder, seed, intervals, page=page)


@contextmanager
def _page_of(conf: Path) -> Iterator[Callable[[], None]]:
    """Within the block the page of *conf* is served; yields what waits until Ctrl-C."""
    with needs_checkout("trimtab demo --page"):
        from controller.web.beside import page_beside

    def stay() -> None:
        typer.echo(f"The page stays at {where} until Ctrl-C.", err=True)
        threading.Event().wait()

    with page_beside(conf) as where:
        typer.echo(f"The page is at {where}", err=True)
        yield stay


@contextmanager
def _no_page(_: Path) -> Iterator[Callable[[], None]]:
    yield lambda: None


def _pulsar_demo(folder: Path, intervals: int | None, version: str, *, page: bool) -> None:
    with needs_checkout("trimtab demo --pulsar"):
        from controller.lab.pulsar_demo import PULSAR_INTERVALS, run_pulsar_demo
        from controller.lab.pulsar_release import USUAL, find_release

    run_pulsar_demo(
        folder,
        console=console(),
        intervals=intervals or PULSAR_INTERVALS,
        release=find_release(version) if version else USUAL,
        beside=_page_of if page else _no_page,
    )


def _modelled_demo(folder: Path, seed: int, intervals: int | None, *, page: bool) -> None:
    from controller.simulator.demo.settings import demo_conf
    from streaming import early

    conf = demo_conf(folder, period_seconds=_PAGE_PERIOD_SECONDS if page else None)
    settings = read_settings(conf)
    early.start_jvm(settings)
    from controller.simulator.demo.demo import INTERVALS, run_demo

    controllers: list[_ControllerThread] = []

    def start(settings: Settings, stop: threading.Event) -> _ControllerThread:
        controllers.append(_ControllerThread(settings, stop))
        controllers[0].start()
        return controllers[0]

    # On the page a time is compared with now, so the modelled cluster lives by the wall clock, and quickly.
    times = wall_clock(settings.intervals.period_ms) if page else None
    number = intervals or (_PAGE_INTERVALS if page else INTERVALS)
    try:
        with (_page_of if page else _no_page)(conf) as stay:
            played = run_demo(
                settings, start_controller=start, console=console(), seed=seed, intervals=number, times=times
            )
            if played.finished:
                stay()
    except TrimtabError as error:
        raise (controllers[0].failure if controllers else None) or error from error


def wall_clock(period_ms: int) -> Iterator[int]:
    """T of each interval, epoch ms, once it has come.  None is left out: what Spark's start took is made up for."""
    next_ms = now_ms() // period_ms * period_ms
    while True:
        yield next_ms
        next_ms += period_ms
        time.sleep(max(0, next_ms - now_ms()) / 1000)


class _ControllerThread(threading.Thread):
    """Runs the controller beside the modelled cluster; keeps the error that ended it."""

    def __init__(self, settings: Settings, stop: threading.Event) -> None:
        super().__init__(name="controller", daemon=True)
        self._settings, self._until = settings, stop
        self.failure: Exception | None = None

    def run(self) -> None:
        """Decide until told to stop."""
        from streaming import supervisor  # here, because importing Spark takes seconds

        try:
            supervisor.run(self._settings, self._until.is_set)
        except Exception as error:
            self.failure = error
