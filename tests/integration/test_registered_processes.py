"""`trimtab run`, `collect` and `execute` as processes on a real Kafka and ZooKeeper: `status` and `doctor` see them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from controller.adapters.registration import RegisteredProcesses, processes_of
from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.controls import ZooKeeperControls
from controller.doctor.checks import judge
from controller.doctor.finding import Finding
from controller.doctor.gather import gather
from controller.lab.servers import KafkaServer, ZooKeeperServer
from controller.log.elections import registry_of
from controller.settings.trimtab_toml import Settings, read_settings
from tests.fake_pulsar import fake_pulsar
from tests.integration.test_collect import Collectors
from tests.kafka_log import own_topics

pytestmark = pytest.mark.integration

_PATIENCE_SECONDS = 120.0


class Site:
    """One cluster's processes."""

    def __init__(self, conf: Path, folder: Path, stack: ExitStack) -> None:
        self.conf, self._folder, self._stack = conf, folder, stack
        self.settings: Settings = read_settings(conf)
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, command: str, conf: Path | None = None) -> "subprocess.Popen[bytes]":
        output = self._stack.enter_context((self._folder / f"{command}-{time.time_ns()}.log").open("wb"))
        words = [sys.executable, "-m", "controller.cli", command, "--conf", str(conf or self.conf)]
        process = self._stack.enter_context(subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT))
        self._started.append(process)
        self._stack.callback(process.kill)
        self._stack.callback(process.send_signal, signal.SIGCONT)
        return process

    def wait_for(self, done: Callable[[RegisteredProcesses], bool]) -> RegisteredProcesses:
        until = time.monotonic() + _PATIENCE_SECONDS
        while True:
            found = processes_of(partial(registry_of, self.settings))
            if done(found):
                return found
            # A process that has ended by itself never does it.
            if time.monotonic() > until or any((each.poll() or 0) > 0 for each in self._started):
                logs = "\n".join(path.read_text(errors="replace")[-3000:] for path in self._folder.glob("*.log"))
                pytest.fail(f"{found}\n{logs}")
            time.sleep(0.2)

    def status(self) -> dict[str, Any]:
        words = [sys.executable, "-m", "controller.cli", "status", "--json", "--conf", str(self.conf)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
        fields: dict[str, Any] = json.loads(done.stdout)
        return fields

    def findings(self) -> dict[str, Finding]:
        return {each.code: each for each in judge(gather(self.settings))}


@pytest.fixture
def site(tmp_path: Path, kafka: KafkaServer, zookeeper: ZooKeeperServer) -> Iterator[Site]:
    with fake_pulsar(3) as pulsar, ExitStack() as stack:
        conf = Collectors(tmp_path, pulsar, own_topics(kafka.bootstrap), zookeeper).conf
        (tmp_path / "broker.conf").touch()
        text = conf.read_text().replace("[log]", 'cluster.broker_conf = "broker.conf"\n[log]', 1)
        conf.write_text(text)
        made = Site(conf, tmp_path, stack)
        election = made.settings.election
        with closing(
            ZooKeeperControls(  # as once a controller or collector has run here
                access=ZooKeeperAccess(hosts=election.hosts),
                path=election.path,
                cluster=made.settings.cluster.name,
                session_timeout_seconds=4,
            )
        ) as controls:
            controls.raise_epoch(1)
        yield made


def pids(found: RegisteredProcesses, role: str) -> set[int]:
    return {each.process for each in found.of(role)}


def test_status_names_the_processes_that_run_with_what_they_do(site: Site) -> None:
    started = {command: site.start(command) for command in ("run", "collect", "execute")}
    site.wait_for(lambda found: any(each.leads for each in found.of("controller")) and any(
        each.brokers == 3 for each in found.of("collector")
    ) and any(each.partitions == 2 for each in found.of("executor")))  # fmt: skip
    asked = time.time() * 1000
    fields = site.status()
    running = {each["role"]: each for each in fields["processes"]["running"]}
    assert {role: each["process"] for role, each in running.items()} == {
        "controller": started["run"].pid,
        "collector": started["collect"].pid,
        "executor": started["execute"].pid,
    }
    assert running["executor"]["group"].endswith(f"-{site.settings.cluster.name}")
    assert running["executor"]["commands"] == site.settings.log.commands
    assert len({(each["version"], each["commit"]) for each in running.values()}) == 1
    assert all(asked - each["seenAt"] < 30_000 and each["startedAt"] < asked for each in running.values())
    codes = {each["code"] for each in fields["problems"]}
    assert not codes & {"no-leader", "no-collector", "nobody-executes", "versions-differ", "process-hangs"}
    started["collect"].send_signal(signal.SIGTERM)
    assert started["collect"].wait(10) == 0
    site.wait_for(lambda found: not found.of("collector") and len(found.of("controller")) == 1)
    os.kill(started["execute"].pid, signal.SIGKILL)
    site.wait_for(lambda found: not found.of("executor"))


def test_an_executor_that_stood_still_beyond_its_session_registers_again(site: Site) -> None:
    executor = site.start("execute")
    site.wait_for(lambda found: pids(found, "executor") == {executor.pid})
    executor.send_signal(signal.SIGSTOP)
    site.wait_for(lambda found: not found.running)
    executor.send_signal(signal.SIGCONT)
    site.wait_for(lambda found: pids(found, "executor") == {executor.pid})


def test_executors_of_different_groups_are_found_in_the_registry_and_in_kafka(site: Site) -> None:
    other = site.conf.with_name("other.toml")
    other.write_text(site.conf.read_text() + '[executor]\ngroup = "blue"\n')
    site.start("execute")
    site.start("execute", other)
    site.wait_for(lambda found: sum(each.partitions == 2 for each in found.of("executor")) == 2)
    found = site.findings()["executor-groups-differ"]
    cluster = site.settings.cluster.name
    assert (found.severity, found.objects) == ("error", (f"blue-{cluster}", f"trimtab-executor-{cluster}"))
    # Also where they may not write to the registry.
    elsewhere = site.settings.election.model_copy(update={"path": "/elsewhere"})
    groups = gather(site.settings.model_copy(update={"election": elsewhere}))
    assert groups.execution.processes.running == ()
    assert set(groups.execution.command_groups) == {f"blue-{cluster}", f"trimtab-executor-{cluster}"}
    assert "executor-groups-differ" in {each.code for each in judge(groups)}


def test_a_zookeeper_that_cannot_be_reached_does_not_keep_an_executor_from_its_work(site: Site) -> None:
    away = site.conf.with_name("away.toml")
    away.write_text(site.conf.read_text().replace(site.settings.election.hosts, "127.0.0.1:9"))
    site.start("execute", away)
    until = time.monotonic() + _PATIENCE_SECONDS
    group = f"trimtab-executor-{site.settings.cluster.name}"
    [log] = site.conf.parent.glob("execute-*.log")
    said = "cannot register this process, so `trimtab status` does not show it"
    while group not in gather(site.settings).execution.command_groups or said not in log.read_text():
        assert time.monotonic() < until
    assert log.read_text().count(said) == 1
