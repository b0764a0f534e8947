"""The demo: the real controller balances a modelled cluster while a user watches.

Cluster and controller run in lock step: the cluster publishes its sweeps and the tick of T, waits until the journal
holds the decision on T, executes its commands, publishes the results, and goes on to the next interval.  Its clock
advances one minute per interval on any machine, so the same seed gives the same decisions.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from rich.console import Console

from controller.adapters.long_work import long_work, shown_by
from controller.model.decision import Command
from controller.model.errors import SettingsError
from controller.model.load import THROUGHPUT_IN, THROUGHPUT_OUT, Floats
from controller.model.records import CommandResult
from controller.settings.log import LogInFolder
from controller.settings.trimtab_toml import Settings
from controller.simulator.cluster import ClusterShape, ModelledCluster
from controller.simulator.demo.view import Frame, ImbalanceLine, view_on
from controller.simulator.lock_step import PATIENCE_SECONDS, Controller, LockStep
from controller.wire.decision_texts import because
from controller.wire.readable import counted, in_number

T = TypeVar("T")

#: Enough to show the cluster become balanced.
INTERVALS: Final = 20

#: The cluster's clock begins on 2025-01-01, 00:00 UTC.
_START_MS: Final = 1_735_689_600_000

#: How long the controller may take to stop after the user has interrupted the demo.
_STOP_SECONDS: Final = 1.0

#: Starts the controller that settings describe; it ends soon after the event is set.
StartController: TypeAlias = Callable[[Settings, threading.Event], Controller]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOutcome:
    """The result of a demo."""

    #: False: interrupted by the user.
    finished: bool
    intervals: int
    commands: int
    at_start: ImbalanceLine
    at_end: ImbalanceLine


def run_demo(
    settings: Settings,
    *,
    start_controller: StartController,
    console: Console,
    seed: int = 1,
    intervals: int = INTERVALS,
    shape: ClusterShape | None = None,
    times: Iterator[int] | None = None,
) -> DemoOutcome:
    """Play *intervals* intervals and show them on *console*; Ctrl-C ends it early, and cleanly.

    *times*: T of each interval, epoch ms; without it a clock of the modelled cluster's own.

    Raises TrimtabError when the controller ends, or takes too long, before it has decided.
    """
    if not isinstance(settings.log, LogInFolder):
        raise SettingsError(f"log.kind = {settings.log.kind!r}: the demo needs 'folder'")
    folder, period_ms = Path(settings.log.folder.path), settings.intervals.period_ms
    cluster = ModelledCluster(shape or ClusterShape(), seed=seed, name=settings.cluster.name)
    times = times or count(_START_MS + period_ms, period_ms)
    stop = threading.Event()
    at_start = ImbalanceLine.of(_throughput(cluster))
    last: Frame | None = None
    with view_on(console) as view, shown_by(view.waiting):
        lock_step = LockStep(cluster, settings)  # makes the folders that the controller reads
        view.waiting("Starting Spark, which takes some seconds ...")
        controller, patience = start_controller(settings, stop), PATIENCE_SECONDS
        try:
            for last in _frames(cluster, lock_step, controller, times, intervals):
                view.show(last)
        except KeyboardInterrupt:
            view.waiting("Stopping ...")
            patience = _STOP_SECONDS
        finally:
            stop.set()
            controller.join(patience)
    outcome = DemoOutcome(
        finished=last is not None and last.number == intervals,
        intervals=last.number if last else 0,
        commands=len(last.history) if last else 0,
        at_start=at_start,
        at_end=last.imbalance if last else at_start,
    )
    console.print(_summary(outcome, folder), markup=False, highlight=False, soft_wrap=True)
    return outcome


def _frames(
    cluster: ModelledCluster,
    lock_step: LockStep,
    controller: Controller,
    times: Iterator[int],
    intervals: int,
) -> Iterator[Frame]:
    """Play the intervals, and yield a frame for each when its commands have been carried out."""
    at_start = ImbalanceLine.of(_throughput(cluster))
    history: tuple[str, ...] = ()
    for number in range(1, intervals + 1):
        interval, throughput = next(times), _throughput(cluster)
        with long_work(f"deciding interval {number}"):
            entry, answers = lock_step.play(interval, controller)
        commands = tuple(command_line(*answer) for answer in answers)
        history = (*history, *commands)
        yield Frame(
            number=number,
            intervals=intervals,
            interval=interval,
            brokers=cluster.brokers,
            load=throughput,
            at_start=at_start,
            summary=in_number(entry.decision.summary),
            commands=commands,
            history=history,
        )
        cluster.advance()


def command_line(command: Command, result: CommandResult, *, ports: bool = False) -> str:
    """A command on one line: action, destination and reason; also its status where that is not ``done``.

    *ports*: brokers differ only in their ports, so ports are shown.
    """
    source, destination = (name if ports else name.partition(":")[0] for name in (command.source, command.destination))
    move = f"  {source} -> {destination or 'any'}" if command.action == "unload" else ""
    why = because(command)
    status = "" if result.status == "done" else f"  [{result.status}: {result.detail}]"
    return f"{command.action} {command.bundle}{move}  {why}{status}"


def _throughput(cluster: ModelledCluster) -> Floats:
    load = cluster.broker_load()
    throughput: Floats = load[:, THROUGHPUT_IN] + load[:, THROUGHPUT_OUT]
    return throughput


def _summary(outcome: DemoOutcome, folder: Path) -> str:
    done = "Done" if outcome.finished else "Stopped"
    return "\n".join(
        [
            f"{done}: {counted(outcome.intervals, 'interval')}, {counted(outcome.commands, 'command')}",
            f"  at the start  {outcome.at_start}",
            f"  at the end    {outcome.at_end}",
            f"  journal       {folder / 'journal'}",
            f"  commands      {folder / 'commands'}",
            f"  metrics       {folder / 'metrics'}",
        ]
    )
