"""The commands of ``trimtab``; controller.cli.main is the entry point."""

import logging
import threading
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from controller.adapters import signals
from controller.cli import bench as bench_cli
from controller.cli import collect as collect_cli
from controller.cli import commands as commands_cli
from controller.cli import controls as controls_cli
from controller.cli import decide as decide_cli
from controller.cli import doctor as doctor_cli
from controller.cli import execute as execute_cli
from controller.cli import lookup as lookup_cli
from controller.cli import rebalance as rebalance_cli
from controller.cli import status as status_cli
from controller.cli import ticks as ticks_cli
from controller.lab.demo import INTERVALS, demo_settings, run_demo
from controller.lab.pulsar_demo import PULSAR_INTERVALS, run_pulsar_demo
from controller.model.errors import TrimtabError
from controller.settings.policy import options_table
from controller.settings.trimtab_toml import Settings, read_settings

app = typer.Typer(help="trimtab: an external load-balance controller for Apache Pulsar.", no_args_is_help=True)
app.add_typer(commands_cli.app, name="commands")
app.add_typer(bench_cli.app, name="bench")
app.command()(lookup_cli.lookup)
app.command()(collect_cli.collect)
app.command()(decide_cli.decide)
app.command()(doctor_cli.doctor)
app.command()(execute_cli.execute)
app.command()(rebalance_cli.rebalance)
app.command()(status_cli.status)
app.command()(controls_cli.pause)
app.command()(controls_cli.resume)
app.command()(controls_cli.mode)
app.command()(controls_cli.stop_all)
app.command()(ticks_cli.ticks)


class _ControllerThread(threading.Thread):
    """The controller beside the modelled cluster; remembers what ended it."""

    def __init__(self, settings: Settings, stop: threading.Event) -> None:
        super().__init__(name="controller", daemon=True)
        self._settings, self._until = settings, stop
        self.failure: Exception | None = None

    def run(self) -> None:
        """Until told to stop."""
        from streaming import supervisor  # only where Spark runs: it takes seconds to load

        try:
            supervisor.run(self._settings, self._until.is_set)
        except Exception as error:
            self.failure = error


@app.command()
def demo(
    seed: Annotated[int, typer.Option(help="Of the modelled cluster; the same seed, the same decisions.")] = 1,
    intervals: Annotated[
        int | None, typer.Option(min=1, help="How many intervals to play.", show_default="20; 12 with --pulsar")
    ] = None,
    folder: Annotated[Path, typer.Option(help="Where runs keep their logs, a folder each.")] = Path(".trimtab/demo"),
    pulsar: Annotated[
        bool,
        typer.Option(
            "--pulsar", help="A real Pulsar cluster on this machine, with real traffic, collector and executor."
        ),
    ] = False,
) -> None:
    """Balance a modelled cluster with the real controller: no server, some minutes at most."""
    if pulsar:
        with signals.interrupts():
            run_pulsar_demo(folder, console=Console(), intervals=intervals or PULSAR_INTERVALS)
        return
    with signals.interrupts():
        _demo(folder, seed, intervals or INTERVALS)


def _demo(folder: Path, seed: int, intervals: int) -> None:
    settings = demo_settings(folder)
    controllers: list[_ControllerThread] = []

    def start(settings: Settings, stop: threading.Event) -> _ControllerThread:
        controllers.append(_ControllerThread(settings, stop))
        controllers[0].start()
        return controllers[0]

    try:
        run_demo(settings, start_controller=start, console=Console(), seed=seed, intervals=intervals)
    except TrimtabError as error:
        raise (controllers[0].failure if controllers else None) or error from error


@app.command()
def run(
    conf: Annotated[Path, typer.Option(help="The settings.")] = Path("conf/trimtab.toml"),
) -> None:
    """Run the controller until SIGTERM or Ctrl-C."""
    from streaming import supervisor

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    settings = read_settings(conf)
    signals.run_until_told(lambda ending: supervisor.run(settings, ending.is_set, ending.may_take))


@app.command()
def options() -> None:
    """Print every option of broker.conf and trimtab.toml that trimtab reads."""
    table = Table("key", "default", "unit", "meaning")
    for row in options_table():
        # Brackets in them are text, no markup.
        table.add_row(*map(escape, (row.key, row.default, row.unit, row.meaning)))
    Console().print(table)


def main() -> None:
    """Run the command that the arguments name: an error raised on purpose is one line, and its exit code."""
    try:
        app()
    except TrimtabError as error:
        Console(stderr=True).print(f"trimtab: {error}", markup=False, highlight=False, soft_wrap=True)
        raise SystemExit(error.exit_code) from error
