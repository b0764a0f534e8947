"""What the demo on real Pulsar shows and stops, with stubs for brokers, traffic and trimtab's processes."""

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pytest
from rich.console import Console

from controller.lab import pulsar_demo
from controller.lab.pulsar_demo import PulsarDemoOutcome, run_pulsar_demo
from controller.lab.pulsar_release import PulsarRelease
from controller.model.controls import Controls
from controller.model.decision import Command, Decision
from controller.model.errors import TrimtabError
from controller.model.journal import JournalEntry
from controller.model.memory import Memory
from controller.model.records import CommandResult
from controller.settings.trimtab_toml import read_settings
from controller.simulator.lock_step import result_record
from tests.commands import T, unload
from tests.folders import journal_in, metrics_in

BROKERS = ("127.0.0.1:20001", "127.0.0.1:20002", "127.0.0.1:20003")
PERIOD = 5_000


class StubStage:
    rates: Mapping[str, float] = {"one": 10.0, "two": 20.0}

    def __init__(self, told: list[Any]) -> None:
        self.told = told
        self.loads = [[60.0, 0.0, 0.0], [60.0, 0.0, 0.0]]

    def gather(self, broker: str) -> None:
        self.told.append(f"all on {broker}")

    def msg_rates(self, _: tuple[str, ...]) -> Any:
        return np.array(self.loads.pop(0) if self.loads else [20.0, 20.0, 20.0])


class StubTraffic:
    total_acknowledged = 1234

    def __init__(self, told: list[Any]) -> None:
        self.told = told

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.told.append("traffic stopped")

    def drain(self, _: float) -> dict[str, list[int]]:
        return {"one": [17]}


class StubProcesses:
    """`run` decides three intervals at once; the first has two commands, one of which is never answered."""

    failure: BaseException | None = None

    def __init__(self, told: list[Any], conf: Path, logs: Path) -> None:
        self.told, self.conf, self.logs = told, conf, logs

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.told.append("processes stopped")

    def start(self, command: str) -> None:
        self.told.append(command)
        if command == "run" and self.failure is None:
            settings = read_settings(self.conf)
            assert settings.log.folder is not None
            decide(Path(settings.log.folder.path))

    def wait_for(self, command: str, _: str) -> None:
        self.told.append(f"{command} is ready")

    def check(self) -> None:
        if self.failure is not None:
            raise self.failure

    def log(self, command: str) -> Path:
        return self.logs / f"{command}.log"


def decide(folder: Path) -> None:
    journal = journal_in(folder, cluster="standalone")
    journal.open()
    journal.begin_epoch(1)
    commands = [moved(1), moved(2)]
    for number in range(3):
        decision = Decision(
            interval=T + number * PERIOD, commands=tuple(commands[: 2 * (not number)]), summary=f"decision {number}"
        )
        entry = JournalEntry(cluster="standalone", decision=decision, memory=Memory(), controls=Controls(mode="active"))
        journal.append(entry, epoch=1, issued_at_ms=T, before_commit=lambda: None)
    results = metrics_in(folder, cluster="standalone")
    results.results([result_record(commands[0], CommandResult(id=commands[0].id, status="done"), now_ms=T)])


def moved(number: int) -> Command:
    return unload(f"demo/orders/0x0000000{number}_0x00000010", source=BROKERS[0], destination=BROKERS[number])


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    told: list[Any] = []

    @contextmanager
    def cluster(folder: Path, *, release: PulsarRelease) -> Iterator[Any]:
        told.append("pulsar")
        try:
            yield SimpleNamespace(
                brokers=BROKERS,
                admin_urls=tuple(f"http://{each}" for each in BROKERS),
                service_url="pulsar://nowhere:1",
            )
        finally:
            told.append("pulsar stopped")

    write_conf = pulsar_demo.write_conf

    def in_a_folder(folder: Path, cluster: Any) -> Path:
        conf = write_conf(folder, cluster)
        text = conf.read_text().replace('kind = "pulsar"', 'kind = "folder"\nfolder.path = "log"')
        conf.write_text(text)
        return conf

    monkeypatch.setattr(pulsar_demo, "write_conf", in_a_folder)
    monkeypatch.setattr(pulsar_demo, "pulsar_cluster", cluster)
    monkeypatch.setattr(pulsar_demo, "set_stage", lambda *_: StubStage(told))
    monkeypatch.setattr(pulsar_demo, "Traffic", lambda *_: StubTraffic(told))
    monkeypatch.setattr(pulsar_demo, "Processes", lambda conf, logs: StubProcesses(told, conf, logs))
    monkeypatch.setattr(pulsar_demo, "_PATIENCE_OF_ANSWERS", 0)
    return told


def watch(folder: Path, intervals: int = 3) -> tuple[PulsarDemoOutcome, str]:
    out = io.StringIO()
    outcome = run_pulsar_demo(folder, console=Console(file=out), intervals=intervals)
    return outcome, out.getvalue()


def test_intervals_are_shown_with_their_commands_and_what_became_of_them(told: list[Any], tmp_path: Path) -> None:
    outcome, printed = watch(tmp_path)
    lines = printed.splitlines()
    assert [line for line in lines if line.startswith("[")] == [
        "[1/3] 00:00:00  max/mean 3.00, standard deviation 28.3 msg/s  decision 0",
        "[2/3] 00:00:05  max/mean 1.00, standard deviation 0.0 msg/s  decision 1",
        "[3/3] 00:00:10  max/mean 1.00, standard deviation 0.0 msg/s  decision 2",
    ]
    moves = [line for line in lines if line.startswith("    unload")]
    assert f"{BROKERS[0]} -> {BROKERS[1]}  Overloaded" in moves[0]
    assert "[" not in moves[0]
    assert moves[1].endswith("[no answer yet: it goes on]")
    assert (outcome.finished, outcome.intervals, outcome.statuses) == (True, 3, ("done", None))
    assert "Done: 3 intervals, 2 commands, 1 of them done" in lines
    assert "  messages      1234 acknowledged, 1 of them not received" in lines
    assert "  at the start  max/mean 3.00, standard deviation 28.3 msg/s" in lines
    assert str(tmp_path.resolve() / "0001" / "*.log") in printed


def test_what_was_started_is_stopped_in_reverse_and_nothing_is_collected_before_the_controller_reads(
    told: list[Any], tmp_path: Path
) -> None:
    watch(tmp_path)
    stopped = ["processes stopped", "traffic stopped", "pulsar stopped"]
    started = ["pulsar", f"all on {BROKERS[0]}", "execute", "run", "run is ready", "collect"]
    assert told == [*started, *stopped]


def test_ctrl_c_stops_everything_and_still_says_where_the_logs_lie(
    told: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StubProcesses, "failure", KeyboardInterrupt())
    outcome, printed = watch(tmp_path)
    assert told[-3:] == ["processes stopped", "traffic stopped", "pulsar stopped"]
    assert (outcome.finished, outcome.intervals) == (False, 0)
    assert "Stopped: 0 intervals" in printed
    assert "server.log" in printed


def test_a_process_that_ends_stops_the_demo_and_its_last_lines_are_shown(
    told: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StubProcesses, "failure", TrimtabError("trimtab run has ended"))
    with pytest.raises(TrimtabError, match="trimtab run has ended"):
        watch(tmp_path)
    assert told[-3:] == ["processes stopped", "traffic stopped", "pulsar stopped"]


def test_missing_traffic_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulsar_demo, "_PATIENCE_SECONDS", 0)
    stage: Any = StubStage([])
    stage.loads = [[1.0, 0.0, 0.0]]
    with pytest.raises(TrimtabError, match="1 msg/s flow after 0 s: expected 48"):
        pulsar_demo.flowing(stage, BROKERS)
