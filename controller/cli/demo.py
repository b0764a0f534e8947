"""``trimtab demo``: the real controller on a modelled cluster, or on a real Pulsar on this machine."""

import threading
from pathlib import Path
from typing import Annotated

import typer

from controller.adapters.disk.files import why_not_writable
from controller.adapters.process import signals
from controller.cli.shared.console import console
from controller.cli.shared.failures import needs_checkout
from controller.model.errors import TrimtabError
from controller.settings.trimtab_toml import Settings


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
        int | None, typer.Option(min=1, help="Number of intervals to play.", show_default="20; 12 with --pulsar")
    ] = None,
    folder: Annotated[Path, typer.Option(help="Each run keeps its log in a new folder here.")] = Path(".trimtab/demo"),
    pulsar: Annotated[
        bool,
        typer.Option(
            "--pulsar", help="Start a real Pulsar cluster on this machine, with traffic, a collector and an executor."
        ),
    ] = False,
) -> None:
    """Balance a modelled cluster with the real controller.  No server is needed; it takes about a minute."""
    problem = why_not_writable(folder)
    if problem:
        raise TrimtabError(f"{problem}; choose another folder with --folder")
    if version and not pulsar:
        raise typer.BadParameter(f"{version!r} names a release of Pulsar: say --pulsar {version}")
    with signals.interrupts():
        if pulsar:
            _pulsar_demo(folder, intervals, version)
        else:
            _modelled_demo(folder, seed, intervals)


def _pulsar_demo(folder: Path, intervals: int | None, version: str) -> None:
    with needs_checkout("trimtab demo --pulsar"):
        from controller.lab.pulsar_demo import PULSAR_INTERVALS, run_pulsar_demo
        from controller.lab.pulsar_release import USUAL, find_release

    run_pulsar_demo(
        folder,
        console=console(),
        intervals=intervals or PULSAR_INTERVALS,
        release=find_release(version) if version else USUAL,
    )


def _modelled_demo(folder: Path, seed: int, intervals: int | None) -> None:
    from controller.simulator.demo.settings import demo_settings
    from streaming import early

    settings = demo_settings(folder)
    early.start_jvm(settings)
    from controller.simulator.demo.demo import INTERVALS, run_demo

    controllers: list[_ControllerThread] = []

    def start(settings: Settings, stop: threading.Event) -> _ControllerThread:
        controllers.append(_ControllerThread(settings, stop))
        controllers[0].start()
        return controllers[0]

    try:
        run_demo(
            settings,
            start_controller=start,
            console=console(),
            seed=seed,
            intervals=intervals or INTERVALS,
        )
    except TrimtabError as error:
        raise (controllers[0].failure if controllers else None) or error from error


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
