"""The line of health at the top of `trimtab status`, and the processes below it."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
from rich.console import Console

from controller.adapters.metrics.executor import ExecutorMetrics
from controller.adapters.registration import RegisteredProcesses, processes_of, registered
from controller.cli.status import status
from controller.cli.texts.cluster_status import print_status, status_line
from controller.log.elections import election_system, registry_of
from controller.model.controls import Pause
from controller.model.memory import InFlight
from controller.settings.trimtab_toml import Settings, read_settings
from controller.status.cluster import cluster_status
from controller.status.health import Problem, problems
from controller.wire.base import encode
from controller.wire.process import RunningProcess
from tests.folders import journal_in, metrics_in
from tests.journal_entries import SPLIT, UNLOAD, entry
from tests.modelled_log import settings_in
from tests.records import CLUSTER, PERIOD, T, as_bytes, result, tick
from tests.unit.status.test_status_command import found, run

NOW = T + 2 * PERIOD


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    return settings_in(tmp_path, more='decisions.mode = "active"')


@pytest.fixture
def settings(conf: Path) -> Settings:
    return read_settings(conf)


def process(role: str, number: int = 1, **changed: Any) -> RunningProcess:
    values = {"host": "here", "process": number, "role": role, "version": "1.0", "started_at": NOW, "ready": True}
    return RunningProcess(**{**values, **changed})


@pytest.fixture
def runs(settings: Settings) -> Iterator[Any]:
    """Registers processes."""
    with ExitStack() as stack:

        def register(*processes: RunningProcess) -> None:
            for each in processes:
                registry = stack.enter_context(closing(election_system(settings).registry()))
                registry.write(f"{each.role}-{each.process}", encode(each))

        yield register


def journal(
    folder: Path, *answered: str, mode: Literal["active", "dry_run"] = "active", finished: int = T + 1_000
) -> None:
    """An unload in T and a split in the interval after it; those *answered* have results."""
    log = journal_in(folder / "log", cluster=CLUSTER)
    log.open()
    log.begin_epoch(3)
    for number, command in enumerate((UNLOAD, SPLIT)):
        issued = replace(command, interval=T + number * PERIOD, mode=mode)
        decided = entry(issued.interval, issued)
        decided = replace(decided, memory=replace(decided.memory, in_flight={}))
        log.append(decided, epoch=3, issued_at_ms=T, before_commit=lambda: None)
    results = folder / "log" / "results"
    results.mkdir(exist_ok=True)
    lines = [
        tick(T, roster=None),
        *(result(id=each, startedAt=finished - 1, finishedAt=finished) for each in answered),
        tick(T + PERIOD, roster=None),
    ]
    (results / "0.jsonl").write_bytes(b"\n".join(as_bytes(line) for line in lines))


def seen(settings: Settings, now_ms: float = NOW) -> dict[str, Problem]:
    return {each.code: each for each in problems(cluster_status(settings, None), settings, now_ms)}


def test_commands_that_nobody_executes_are_said_at_once(settings: Settings, conf: Path) -> None:
    journal(conf.parent)
    problem = seen(settings)["nobody-executes"]
    said = "2 commands without an answer since 2025-01-01T00:00:00Z; no executor is registered; start `trimtab execute`"
    assert problem.detail == said
    output = run(status, "--conf", conf).stdout
    assert f"           nobody executes: {said}" in output.splitlines()


def test_an_executor_that_runs_has_the_time_that_a_command_may_take(settings: Settings, conf: Path, runs: Any) -> None:
    journal(conf.parent)
    runs(process("executor"))
    assert "nobody-executes" not in seen(settings, T + PERIOD + 1_000)
    problem = seen(settings, T + 60 * PERIOD)["nobody-executes"]
    assert problem.detail.endswith("; 1 executor registered, look at the logs")


def test_an_executor_that_may_not_register_is_known_by_its_answers(settings: Settings, conf: Path) -> None:
    journal(conf.parent, UNLOAD.id, finished=T + 30_000)
    assert "nobody-executes" not in seen(settings, T + PERIOD + 1_000)
    # It has ended since.
    assert "1 command without an answer" in seen(settings, T + 60 * PERIOD)["nobody-executes"].detail


def test_one_lost_command_behind_which_others_were_answered_is_no_sign_that_nobody_executes(
    settings: Settings, conf: Path
) -> None:
    journal(conf.parent, SPLIT.id, finished=T + PERIOD + 5_000)
    assert "nobody-executes" not in seen(settings, T + 60 * PERIOD)


def test_dry_runs_without_an_answer_need_nobody(settings: Settings, conf: Path) -> None:
    journal(conf.parent, mode="dry_run")
    assert "nobody-executes" not in seen(settings, T + 60 * PERIOD)


def test_mode_dry_run_needs_no_executor(settings: Settings, conf: Path) -> None:
    journal(conf.parent)
    decisions = settings.decisions.model_copy(update={"mode": "dry_run"})
    assert "nobody-executes" not in seen(settings.model_copy(update={"decisions": decisions}), T + 60 * PERIOD)


def test_no_collector_is_a_problem_where_no_interval_ends(settings: Settings, conf: Path, runs: Any) -> None:
    journal(conf.parent)
    assert "no-collector" not in seen(settings)  # somebody writes ticks, registered or not
    late = seen(settings, T + 60 * PERIOD)["no-collector"]
    assert late.detail == "no interval has ended since 2025-01-01T00:01:00Z; start `trimtab collect`"
    runs(process("collector"))
    assert "no-collector" not in seen(settings, T + 60 * PERIOD)
    assert "1 collector registered" in seen(settings, T + 60 * PERIOD)["no-ticks"].detail


def test_versions_that_differ_are_named_with_the_processes_that_run_them(settings: Settings, runs: Any) -> None:
    runs(process("controller", version="1.1", commit="abc"), process("executor", 2), process("executor", 3))
    problem = seen(settings)["versions-differ"]
    assert problem.detail == "1.0: 2 executors; 1.1 (abc): 1 controller"


def test_the_same_version_of_different_commits_is_not_the_same(settings: Settings, runs: Any) -> None:
    runs(process("controller", commit="abc"), process("executor", 2, commit="abd"))
    assert "versions-differ" in seen(settings)


def test_where_a_commit_is_not_known_the_version_tells(settings: Settings, conf: Path, runs: Any) -> None:
    runs(process("controller", commit="abc"), process("executor", 2))
    assert "versions-differ" not in seen(settings)


def test_the_health_is_one_line_however_narrow_the_terminal_is(
    settings: Settings, conf: Path, runs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    journal(conf.parent)
    runs(process("controller", version="1.1"), process("executor", 2))
    [line, second, *_] = run(status, "--conf", conf).stdout.splitlines()
    assert line == "health     needs attention: no controller leads; nobody executes and 3 more"
    assert second.startswith("           no controller leads: ")


def test_a_process_whose_main_loop_stands_still_is_named(settings: Settings, runs: Any) -> None:
    runs(process("executor", 7, standstill_ms=3_600_000))
    problem = seen(settings)["process-hangs"]
    assert "executor here, process 7, for 1 h;" in problem.detail
    runs(process("executor", 8))
    assert "process 8" not in seen(settings)["process-hangs"].detail


def test_a_leader_that_decides_far_behind_the_ticks_is_named(settings: Settings, conf: Path) -> None:
    journal(conf.parent)
    log = metrics_in(conf.parent / "log", cluster=CLUSTER)
    leadership = election_system(settings).leadership()
    assert leadership.acquire(lambda: False)
    try:
        assert "decides-late" not in seen(settings)
        log.tick(T + 9 * PERIOD, {})
        problem = seen(settings, T + 10 * PERIOD)["decides-late"]
    finally:
        leadership.release()
    assert problem.detail.startswith("the last one is of 2025-01-01T00:01:00Z; 8 intervals ended since")


def test_no_standby_is_shown_and_no_problem(settings: Settings, conf: Path, runs: Any) -> None:
    runs(process("controller", leads=True))
    assert "standby    none: " in run(status, "--conf", conf).stdout
    assert not any("standby" in each.title for each in seen(settings).values())
    runs(process("controller", 2))
    assert "standby " not in run(status, "--conf", conf).stdout


def test_a_broken_entry_is_named_and_the_others_are_shown(settings: Settings, conf: Path, runs: Any) -> None:
    runs(process("executor"))
    place = Path(settings.election.path) / "processes"
    (place / "broken.json").write_bytes(b'{"role":"executor","host":"x')
    (place / "huge.json").write_bytes(b'{"role":"executor"' + b" " * 100_000 + b"}")
    (place / "steers.json").write_bytes(encode(process("executor")).replace(b"here", b"\\u001b[2J"))
    (place / "role.json").write_bytes(encode(process("executor")).replace(b'"executor"', b'"king"'))
    fields = found(status, "--conf", conf)["processes"]
    assert [each["host"] for each in fields["running"]] == ["here"]
    assert sorted(fields["unusable"]) == ["broken.json", "huge.json", "role.json", "steers.json"]
    output = run(status, "--conf", conf).stdout
    assert "\x1b" not in output
    assert "king" in output


def test_processes_are_shown_by_role_the_leader_first(settings: Settings, conf: Path, runs: Any) -> None:
    runs(
        process(
            "executor", 5, state="executes", group="trimtab-executor-demo", commands="trimtab-commands", partitions=3
        ),
        process("controller", 2, state="stands by"),
        process("controller", 9, leads=True, state="leads: it reads the log, epoch 3"),
        process("collector", 4, brokers=12, leads=True, state="collects"),
    )
    fields = found(status, "--conf", conf)["processes"]["running"]
    assert [(each["role"], each["process"]) for each in fields] == [
        ("controller", 9), ("controller", 2), ("collector", 4), ("executor", 5),
    ]  # fmt: skip
    output = run(status, "--conf", conf).stdout
    assert "processes  2 controllers, 1 collector, 1 executor" in output
    assert "executes; group trimtab-executor-demo; commands trimtab-commands" in output
    assert "collects; 12 brokers, ends the intervals" in output


def test_a_registry_that_cannot_be_read_is_no_failure_of_status(settings: Settings, conf: Path) -> None:
    election = Path(settings.election.path)
    election.mkdir(exist_ok=True)
    (election / "processes").write_text("no folder")
    assert found(status, "--conf", conf)["processes"]["unknown"]


def test_a_process_registers_itself_and_leaves(settings: Settings) -> None:
    metrics = ExecutorMetrics()
    with registered(settings, partial(registry_of, settings), metrics, "1.2.3"):
        processes = _eventually(settings)
        [one] = processes.running
        assert (one.process.role, one.process.version, one.process.process) == ("executor", "1.2.3", os.getpid())
        assert one.process.commands == settings.log.commands
    assert processes_of(partial(registry_of, settings)).running == ()


def _eventually(settings: Settings) -> RegisteredProcesses:
    for _ in range(500):
        processes = processes_of(partial(registry_of, settings))
        if processes.running:
            return processes
        time.sleep(0.01)
    raise AssertionError("it did not register")


def test_watch_is_of_the_whole_cluster(conf: Path) -> None:
    run(status, UNLOAD.bundle, "--watch", "--conf", conf, exit_code=2)


@pytest.mark.parametrize(
    ("mode", "paused", "is_problem"), [("active", False, True), ("active", True, False), ("dry_run", False, False)]
)
def test_brokers_that_balance_are_a_problem_only_while_trimtab_is_to_act(
    settings: Settings, conf: Path, mode: str, paused: bool, is_problem: bool
) -> None:
    journal(conf.parent)
    now = cluster_status(settings, None)
    balance = replace(now.guardrails, mode=mode, paused=paused, brokers_balance="shedding is on")
    codes = [each.code for each in problems(replace(now, guardrails=balance), settings, NOW)]
    assert ("brokers-balance" in codes) == is_problem


def test_the_line_of_watch_says_the_mode_and_who_paused(settings: Settings, conf: Path) -> None:
    journal(conf.parent)
    now = cluster_status(settings, None)
    assert "  mode active  " in status_line(now, [], NOW)
    pauses = (Pause(by="bob", reason="", at_ms=T), Pause(by="ada", reason="", at_ms=T))
    by_people = replace(now, guardrails=replace(now.guardrails, paused=True, pauses=pauses))
    assert "  mode active, paused by ada, bob  " in status_line(by_people, [], NOW)
    by_settings = replace(now, guardrails=replace(now.guardrails, paused=True))
    assert "  mode active, paused by the settings  " in status_line(by_settings, [], NOW)


@pytest.mark.parametrize("answered", [(), (UNLOAD.id,)])
def test_commands_of_a_dry_run_that_were_answered_after_the_decision_wait_for_nothing(
    settings: Settings, conf: Path, answered: tuple[str, ...]
) -> None:
    journal(conf.parent, *answered, mode="dry_run")
    now = cluster_status(settings, None)
    assert now.last is not None
    waiting = {
        UNLOAD.id: InFlight(
            action="unload",
            bundle=UNLOAD.bundle,
            source="broker-1:8080",
            destination="",
            interval=T,
            expires_at_ms=T + PERIOD,
            dry_run=True,
        )
    }
    now = replace(now, last=replace(now.last, memory=replace(now.last.memory, in_flight=waiting)))
    with (console := Console(width=100)).capture() as shown:
        print_status(console, now, [], NOW, conf)
    assert ("without an executor's answer" in shown.get()) == (not answered)
