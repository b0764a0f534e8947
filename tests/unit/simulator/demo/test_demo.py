"""The demo's half of the exchange, against a controller that is a thread of twenty lines instead of Spark."""

import io
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from controller.model.controls import Controls
from controller.model.decision import Command, Decision, Reason, Verdict
from controller.model.errors import SettingsError, TrimtabError
from controller.model.journal import JournalEntry
from controller.model.memory import Memory
from controller.model.records import CommandResult
from controller.settings.log import KafkaLogSettings, LogInKafka
from controller.settings.trimtab_toml import Settings, read_settings
from controller.simulator.cluster import ClusterShape
from controller.simulator.demo.demo import DemoOutcome, command_line, run_demo
from controller.simulator.demo.settings import demo_conf
from controller.wire.metrics import NamespaceStateRecord, TickRecord, decode_metric
from controller.wire.results import Result, decode_result
from controller.wire.sweep import BrokerSweep
from tests.folders import entries_in, journal_in

SHAPE = ClusterShape(brokers=3, namespaces=2, bundles=12, topics=120)


class StubController(threading.Thread):
    """Decides each interval it finds ticked: the busiest broker's first bundle goes to the idlest broker."""

    def __init__(self, settings: Settings, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        assert settings.log.folder is not None
        self.folder = Path(settings.log.folder.path)
        self.journal = journal_in(self.folder, cluster="demo")
        self.stop = stop

    def run(self) -> None:
        self.journal.open()
        self.journal.begin_epoch(1)
        decided = 0
        while not self.stop.is_set():
            ticked = [r.interval for r in metrics(self.folder) if isinstance(r, TickRecord)]
            for interval in ticked[decided:]:
                decided += 1
                self.decide(interval)
            time.sleep(0.005)

    def decide(self, interval: int) -> None:
        sweeps = [r for r in metrics(self.folder) if isinstance(r, BrokerSweep) and r.interval == interval]
        idlest, *_, busiest = sorted(sweeps, key=lambda s: s.msg_throughput_in + s.msg_throughput_out)
        command = Command(
            id=f"command-{interval}",
            action="unload",
            cluster="demo",
            bundle=busiest.bundle_stats[0].bundle,
            interval=interval,
            expires_at_ms=interval + 1,
            mode="active",
            source=busiest.broker,
            destination=idlest.broker,
            why=Verdict(subject=busiest.broker, reason=Reason.OVERLOADED, observed=0.9, limit=0.5),
        )
        decision = Decision(interval=interval, commands=(command,), summary="1 unload")
        entry = JournalEntry(cluster="demo", decision=decision, memory=Memory(), controls=Controls(mode="active"))
        self.journal.append(entry, epoch=1, issued_at_ms=interval, before_commit=lambda: None)


def lines(folder: Path) -> list[bytes]:
    return [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_bytes().splitlines()]


def metrics(folder: Path) -> list[object]:
    return [decode_metric(line, cluster="demo", period_ms=60_000) for line in lines(folder / "metrics")]


def results(folder: Path) -> list[object]:
    return [decode_result(line, cluster="demo", period_ms=60_000) for line in lines(folder / "results")]


def run(
    base: Path,
    *,
    start: Callable[[Settings, threading.Event], StubController] = StubController,
    intervals: int = 3,
    seed: int = 1,
) -> tuple[DemoOutcome, Path, str]:
    """The outcome, the run's folder and what was printed."""
    settings, out = read_settings(demo_conf(base)), io.StringIO()
    assert settings.log.folder is not None
    outcome = run_demo(
        settings,
        start_controller=_started(start),
        console=Console(file=out, width=200),
        seed=seed,
        intervals=intervals,
        shape=SHAPE,
    )
    return outcome, Path(settings.log.folder.path), out.getvalue()


def _started(
    make: Callable[[Settings, threading.Event], StubController],
) -> Callable[[Settings, threading.Event], StubController]:
    def start(settings: Settings, stop: threading.Event) -> StubController:
        controller = make(settings, stop)
        controller.start()
        return controller

    return start


def test_every_interval_is_published_whole_decided_and_obeyed_before_the_next(tmp_path: Path) -> None:
    outcome, folder, _ = run(tmp_path)
    entries = list(entries_in(folder))
    intervals = [entry.interval for entry in entries]
    assert intervals == [intervals[0] + i * 60_000 for i in range(3)]
    kinds = [type(record) for record in metrics(folder)]
    per_interval = [BrokerSweep] * 3 + [TickRecord]
    assert kinds == [NamespaceStateRecord] * 2 + per_interval * 3
    answered = results(folder)
    assert [type(r) for r in answered] == [TickRecord, Result] * 3
    assert [r.id for r in answered if isinstance(r, Result)] == [
        command.id for entry in entries for command in entry.decision.commands
    ]
    assert (outcome.finished, outcome.intervals, outcome.commands) == (True, 3, 3)


def test_the_next_sweep_shows_the_bundle_at_its_destination(tmp_path: Path) -> None:
    _, folder, _ = run(tmp_path)
    first = next(entries_in(folder))
    (command,) = first.decision.commands
    owners = {
        (sweep.interval, stats.bundle): sweep.broker
        for sweep in metrics(folder)
        if isinstance(sweep, BrokerSweep)
        for stats in sweep.bundle_stats
    }
    assert owners[first.interval, command.bundle] == command.source
    assert owners[first.interval + 60_000, command.bundle] == command.destination != command.source


def test_the_tick_names_the_sweep_of_every_broker(tmp_path: Path) -> None:
    _, folder, _ = run(tmp_path, intervals=1)
    (tick,) = [r for r in metrics(folder) if isinstance(r, TickRecord)]
    sweeps = [r for r in metrics(folder) if isinstance(r, BrokerSweep)]
    assert tick.roster is not None
    assert [(e.broker, e.sweep_id) for e in tick.roster] == [(s.broker, s.sweep_id) for s in sweeps]


@pytest.mark.slow
def test_moving_bundles_off_the_busiest_broker_lowers_the_imbalance(tmp_path: Path) -> None:
    outcome, _, _ = run(tmp_path, intervals=5)
    assert outcome.at_end.max_over_mean < outcome.at_start.max_over_mean
    assert outcome.at_end.deviation < outcome.at_start.deviation


@pytest.mark.slow
def test_the_same_seed_gives_the_same_records_and_another_seed_others(tmp_path: Path) -> None:
    folders = [run(tmp_path, seed=seed)[1] for seed in (1, 1, 2)]
    assert len(set(folders)) == 3
    for part in ("metrics", "results"):
        one, again, other = (lines(folder / part) for folder in folders)
        assert one == again
    one, again, other = (lines(folder / "metrics") for folder in folders)
    assert one != other
    assert [e.decision for e in entries_in(folders[0])] == [e.decision for e in entries_in(folders[1])]


def test_the_log_shows_each_interval_with_its_commands_and_says_at_the_end_what_lies_where(
    tmp_path: Path,
) -> None:
    outcome, folder, printed = run(tmp_path)
    text = printed.splitlines()
    assert [line[:5] for line in text if line.startswith("[")] == ["[1/3]", "[2/3]", "[3/3]"]
    commands = [line for line in text if line.startswith("    unload tenant/ns-")]
    assert len(commands) == 3
    assert all("Overloaded (0.9 against 0.5)" in line for line in commands)
    assert text[-6:] == [
        "Done: 3 intervals, 3 commands",
        f"  at the start  {outcome.at_start}",
        f"  at the end    {outcome.at_end}",
        f"  journal       {folder / 'journal'}",
        f"  commands      {folder / 'commands'}",
        f"  metrics       {folder / 'metrics'}",
    ]
    assert (folder / "journal").is_dir()
    assert (folder / "commands").is_dir()


def test_the_controller_is_told_to_stop_and_waited_for(tmp_path: Path) -> None:
    started: list[StubController] = []

    def remembered(settings: Settings, stop: threading.Event) -> StubController:
        started.append(StubController(settings, stop))
        return started[0]

    run(tmp_path, start=remembered, intervals=1)
    assert started[0].stop.is_set()
    assert not started[0].is_alive()


def test_ctrl_c_stops_the_controller_and_still_says_what_lies_where(tmp_path: Path) -> None:
    started: list[StubController] = []
    pressed: list[bool] = []

    class Interrupted(StubController):
        """Decides one interval; while the demo waits for the second, the user presses Ctrl-C."""

        def decide(self, interval: int) -> None:
            if not list(entries_in(self.folder)):
                super().decide(interval)

        def is_alive(self) -> bool:
            if not pressed and len(results(self.folder)) > 2:
                pressed.append(True)
                raise KeyboardInterrupt
            return super().is_alive()

        def start(self) -> None:
            started.append(self)
            super().start()

    outcome, folder, printed = run(tmp_path, start=Interrupted)
    assert (outcome.finished, outcome.intervals, outcome.commands) == (False, 1, 1)
    assert "Stopped: 1 interval, 1 command" in printed
    assert str(folder / "journal") in printed
    assert pressed
    assert not started[0].is_alive()


def test_a_controller_that_dies_ends_the_demo_with_an_error_instead_of_a_wait(tmp_path: Path) -> None:
    class Dying(StubController):
        def run(self) -> None:
            pass

    with pytest.raises(TrimtabError, match="ended before it decided"):
        run(tmp_path, start=Dying)


def test_every_run_has_a_folder_of_its_own_with_log_election_and_checkpoint_in_it(tmp_path: Path) -> None:
    first, second = read_settings(demo_conf(tmp_path)), read_settings(demo_conf(tmp_path))
    folders = []
    for settings in (first, second):
        assert settings.log.folder is not None
        folder = Path(settings.log.folder.path)
        assert folder.parent == tmp_path.resolve()
        assert settings.election.path.startswith(f"{folder}/")
        assert settings.checkpoint.path.startswith(f"{folder}/")
        folders.append(folder)
    assert folders[0] != folders[1]
    assert (first.cluster.name, first.decisions.mode) == ("demo", "active")


def test_settings_without_a_folder_are_refused(tmp_path: Path) -> None:
    log = LogInKafka(kind="kafka", kafka=KafkaLogSettings(bootstrap="127.0.0.1:1"))
    kafka = read_settings(demo_conf(tmp_path)).model_copy(update={"log": log})
    with pytest.raises(SettingsError, match="'kafka': the demo needs 'folder'"):
        run_demo(kafka, start_controller=StubController, console=Console(file=io.StringIO()))


def test_a_commands_line_says_what_where_to_why_and_the_status_unless_done() -> None:
    why = Verdict(subject="broker-1:8080", reason=Reason.OVERLOADED, observed=0.8, limit=0.5, unit="usage")
    unload = Command(
        id="x", action="unload", cluster="demo", bundle="t/n/0x0_0x1", interval=0, expires_at_ms=1, mode="active",
        source="broker-1:8080", destination="broker-6:8080", why=why,
    )  # fmt: skip
    done, late = (CommandResult(id="x", status=status, detail="gone") for status in ("done", "obsolete"))
    overloaded = "Overloaded (usage 80 % against 50 %)"
    assert command_line(unload, done) == f"unload t/n/0x0_0x1  broker-1 -> broker-6  {overloaded}"
    assert command_line(unload, late).endswith("  [obsolete: gone]")
    elsewhere = replace(unload, why=replace(why, subject="broker-6:8080"))
    assert command_line(elsewhere, done).endswith(f"  broker-6:8080: {overloaded}")
