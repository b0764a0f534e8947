"""The demo on real Pulsar: three real brokers, real traffic, and trimtab's own commands beside them.

All bundles begin on one broker.  `trimtab collect`, `run` and `execute` run as processes, as they would in production;
what the user sees comes from the brokers and from the log.
"""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from rich.console import Console

from controller.adapters.disk.places import SHIPPED
from controller.adapters.long_work import long_work, shown_by
from controller.adapters.network.deadline import Deadline
from controller.lab.processes import Processes
from controller.lab.pulsar_demo_traffic import BUNDLES, NAMESPACE
from controller.lab.pulsar_release import USUAL, PulsarRelease
from controller.lab.pulsar_server import CLUSTER, PulsarCluster, pulsar_cluster
from controller.lab.pulsar_stage import Stage, StageAdmin, set_stage
from controller.lab.pulsar_traffic import Traffic
from controller.log.factory import log_system
from controller.log.recent import recent_results
from controller.model.decision import Command
from controller.model.errors import TrimtabError
from controller.model.journal import JournalEntry
from controller.model.load import Floats
from controller.model.records import CommandResult
from controller.settings.trimtab_toml import Settings, read_settings
from controller.simulator.demo.demo import command_line
from controller.simulator.demo.settings import new_run
from controller.simulator.demo.view import MESSAGES, Frame, ImbalanceLine, View, view_on
from controller.wire.readable import counted, in_number
from controller.wire.results import Result

#: The settings, with a broker.conf beside them.
SCENARIO: Final = SHIPPED / "scenarios" / "pulsar.toml"
#: What `trimtab run` logs when it waits for its first interval.
_READY: Final = "this controller reads the log"
#: Enough to show the cluster become balanced.
PULSAR_INTERVALS: Final = 12
#: The texts in the scenario that the URLs of the run's brokers replace.
_ADMIN_URL: Final = '["http://127.0.0.1:8080"]'
_SERVICE_URL: Final = '"pulsar://127.0.0.1:6650"'
_POLL_SECONDS: Final = 0.2
#: How long trimtab's processes usually take to start.
_USUAL_SECONDS: Final = 20.0
#: Much longer than any start takes on a slow machine.
_PATIENCE_SECONDS: Final = 300.0
#: Intervals to wait for the results of commands.
_PATIENCE_OF_ANSWERS: Final = 2
#: The brokers report the whole traffic once their rates reach this share of it.
_ALL: Final = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class PulsarDemoOutcome:
    """The result of a demo."""

    #: False: interrupted by the user.
    finished: bool
    intervals: int
    #: Of every command, None where no answer came.
    statuses: tuple[str | None, ...]
    at_start: ImbalanceLine | None
    at_end: ImbalanceLine | None
    #: Messages that the brokers acknowledged, and how many of them were not received.
    acknowledged: int = 0
    lost: int = 0


def write_conf(folder: Path, cluster: PulsarCluster, scenario: Path = SCENARIO) -> Path:
    """The settings of *scenario* for *cluster*, with its broker.conf, written to *folder*."""
    text = scenario.read_text(encoding="utf-8")
    for place, url in ((_ADMIN_URL, json.dumps(cluster.admin_urls)), (_SERVICE_URL, json.dumps(cluster.service_url))):
        if place not in text:
            raise TrimtabError(f"{scenario}: expected the address {place}")
        text = text.replace(place, url)
    conf = folder / scenario.name
    conf.write_text(text, encoding="utf-8")
    rules = scenario.with_name(f"{scenario.stem}.broker.conf")
    conf.with_name(rules.name).write_text(rules.read_text(encoding="utf-8"), encoding="utf-8")
    return conf


def run_pulsar_demo(
    base: Path,
    *,
    console: Console,
    intervals: int = PULSAR_INTERVALS,
    release: PulsarRelease = USUAL,
    beside: Callable[[Path], AbstractContextManager[Callable[[], None]]] = lambda _: nullcontext(lambda: None),
) -> PulsarDemoOutcome:
    """Watch *intervals* intervals on *console*, in a folder of the run's own under *base*; Ctrl-C ends it early.

    *release*: of the brokers, the bookie and ZooKeeper.  *beside* runs something with the settings in a file, and
    yields what is called when all intervals were shown, and may wait.
    Everything that was started is stopped in the end.  Raises TrimtabError when a part of it ends, or does nothing.
    """
    folder = new_run(base)
    with ExitStack() as running:
        with view_on(console) as view, shown_by(view.waiting):
            show = _Show(view, running, folder, release, beside)
            try:
                show.play(intervals)
                show.stay()
                view.waiting("Waiting for the last messages ...")
                outcome = replace(show.outcome(intervals), lost=show.drain())
            except KeyboardInterrupt:
                outcome = show.outcome(intervals)
            view.waiting("Stopping ...")
        # Before everything is stopped: after a signal there are seconds for that.
        console.print(_summary(outcome, folder), markup=False, highlight=False, soft_wrap=True)
    return outcome


class _Show:
    """One run: what is started goes on *running*."""

    def __init__(
        self,
        view: View,
        running: ExitStack,
        folder: Path,
        release: PulsarRelease,
        beside: Callable[[Path], AbstractContextManager[Callable[[], None]]],
    ) -> None:
        self._view, self._running, self._folder, self._release = view, running, folder, release
        self._beside, self.stay = beside, _nothing
        self._traffic: Traffic | None = None
        self._last: Frame | None = None
        self._at_start: ImbalanceLine | None = None
        self._statuses: list[str | None] = []

    def play(self, intervals: int) -> None:
        """Start everything, and show *intervals* intervals."""
        view, running, release = self._view, self._running, self._release
        view.waiting(
            f"Starting Pulsar {release.version}: ZooKeeper, a bookie, three brokers"
            f" (the first time it fetches {release.megabytes} MB) ..."
        )
        cluster = running.enter_context(pulsar_cluster(self._folder / "pulsar", release=release))
        conf = write_conf(self._folder, cluster)
        settings = read_settings(conf)
        admin = StageAdmin(cluster.admin_urls, cluster=CLUSTER)
        running.callback(admin.close)
        view.waiting(f"Bringing {BUNDLES} bundles to one broker, and sending messages ...")
        with long_work("preparing the brokers"):
            stage = set_stage(admin, NAMESPACE, BUNDLES)
            stage.gather(cluster.brokers[0])
        self._traffic = running.enter_context(Traffic(cluster.service_url, stage.rates, self._folder / "traffic.log"))
        with long_work("sending messages until the brokers report them"):
            self._at_start = ImbalanceLine.of(flowing(stage, cluster.brokers), MESSAGES)
        view.waiting("Starting trimtab execute, run and collect: Spark takes some seconds ...")
        processes = running.enter_context(Processes(conf, self._folder))
        self.stay = running.enter_context(self._beside(conf))
        with long_work("starting trimtab", usual_seconds=_USUAL_SECONDS):
            start_all(processes)
        after = 0
        for number in range(1, intervals + 1):
            with long_work(f"waiting for interval {number}", usual_seconds=settings.intervals.period_seconds):
                entry = next_entry(settings, after, processes)
            load, after = stage.msg_rates(cluster.brokers), entry.interval
            answers = answers_to(entry, settings, processes)
            self._statuses += [None if answer is None else answer.status for answer in answers.values()]
            commands = tuple(_line(command, answers[command.id]) for command in entry.decision.commands)
            self._last = Frame(
                number=number,
                intervals=intervals,
                interval=entry.interval,
                brokers=cluster.brokers,
                load=load,
                at_start=self._at_start,
                summary=in_number(entry.decision.summary),
                commands=commands,
                history=(*self._last.history, *commands) if self._last else commands,
                with_seconds=True,
            )
            view.show(self._last)

    def drain(self) -> int:
        """Stop sending.  Returns how many acknowledged messages were not received."""
        assert self._traffic is not None, "it has been played"
        return sum(map(len, self._traffic.drain(_PATIENCE_SECONDS / 4).values()))

    def outcome(self, intervals: int) -> PulsarDemoOutcome:
        """The result so far."""
        last = self._last
        return PulsarDemoOutcome(
            finished=last is not None and last.number == intervals,
            intervals=last.number if last else 0,
            statuses=tuple(self._statuses),
            at_start=self._at_start,
            at_end=last.imbalance if last else self._at_start,
            acknowledged=self._traffic.total_acknowledged if self._traffic else 0,
        )


def _nothing() -> None:
    pass


def flowing(stage: Stage, brokers: tuple[str, ...]) -> Floats:
    """(brokers,) msg/s, once the brokers report nearly all that is sent and received."""
    expected, deadline = 2 * sum(stage.rates.values()) * _ALL, Deadline.after(_PATIENCE_SECONDS)
    while (load := stage.msg_rates(brokers)).sum() < expected:
        if deadline.passed:
            raise TrimtabError(f"{load.sum():.0f} msg/s flow after {_PATIENCE_SECONDS:g} s: expected {expected:.0f}")
        time.sleep(_POLL_SECONDS)
    return load


def start_all(processes: Processes) -> None:
    """Start executor, controller and collector; the collector last, so that every interval is decided at once."""
    processes.start("execute")
    processes.start("run")
    processes.wait_for("run", _READY)
    processes.start("collect")


def next_entry(settings: Settings, after: int, processes: Processes) -> JournalEntry:
    """The first decision after the interval *after*.  TrimtabError where none comes."""
    deadline = Deadline.after(_PATIENCE_SECONDS)
    while True:
        for entry in log_system(settings).decisions():
            if entry.interval > after:
                return entry
        processes.check()
        if deadline.passed:
            raise TrimtabError(f"nothing was decided for {_PATIENCE_SECONDS:g} s: see {processes.log('run')}")
        time.sleep(_POLL_SECONDS)


def answers_to(entry: JournalEntry, settings: Settings, processes: Processes) -> Mapping[str, Result | None]:
    """The result of each command of *entry*, by id; None where it takes longer than two intervals."""
    ids = [command.id for command in entry.decision.commands]
    deadline = Deadline.after(_PATIENCE_OF_ANSWERS * settings.intervals.period_seconds)
    results: Mapping[str, Result] = {}
    while ids:
        results = recent_results(settings, entry.interval)
        if all(each in results for each in ids) or deadline.passed:
            break
        processes.check()
        time.sleep(_POLL_SECONDS)
    return {each: results.get(each) for each in ids}


def _line(command: Command, answer: Result | None) -> str:
    result = CommandResult(id=command.id, status="no answer yet", detail="it goes on")
    if answer is not None:
        result = CommandResult(id=command.id, status=answer.status, detail=answer.detail)
    return command_line(command, result, ports=True)


def _summary(outcome: PulsarDemoOutcome, folder: Path) -> str:
    done = "Done" if outcome.finished else "Stopped"
    as_wished = sum(status == "done" for status in outcome.statuses)
    played, issued = counted(outcome.intervals, "interval"), counted(len(outcome.statuses), "command")
    lines = [f"{done}: {played}, {issued}, {as_wished} of them done"]
    if outcome.finished:
        lines.append(f"  messages      {outcome.acknowledged} acknowledged, {outcome.lost} of them not received")
    if outcome.at_start is not None:
        lines += [f"  at the start  {outcome.at_start}", f"  at the end    {outcome.at_end}"]
    lines += [f"  {what:<13} {folder / where}" for what, where in _PLACES.items()]
    return "\n".join(lines)


_PLACES: Final = {
    "logs": "*.log",
    "brokers' log": "pulsar/pulsar/server.log",
}
