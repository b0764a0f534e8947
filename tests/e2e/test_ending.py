"""Commands that are told to end: SIGTERM to every process of a service, Ctrl-C, and kill -9, at any moment.

A signal goes to the whole process group and to every process below it, as a service manager sends it.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from controller.adapters.folder.leadership import FileLeadership
from controller.adapters.network.waiting import wait_for
from controller.adapters.process.process_tree import descendants
from controller.lab.servers import free_port
from controller.log.factory import log_system
from controller.settings.trimtab_toml import read_settings
from controller.simulator.cluster import ClusterShape, ModelledCluster
from controller.simulator.encode import json_records

pytestmark = pytest.mark.e2e

#: What Python and Java print of an error that nobody handled.
_TRACE = re.compile(r"Traceback|Exception|Error\b|^\tat ", re.MULTILINE)
#: A line of the log: time and level.
_OUR_LINE = re.compile(r"\d{4}-\d\d-\d\d\S* ?\S* (INFO|WARNING|ERROR|CRITICAL) ")
_START_MS = 1_735_689_600_000
_FOLDER = 'kind = "folder"\nfolder.path = "log"'
_KAFKA_AWAY = 'kind = "kafka"\nkafka.bootstrap = "127.0.0.1:{port}"'
_FILE = 'kind = "file"\npath = "election"'
_ZOOKEEPER_AWAY = 'kind = "zookeeper"\nhosts = "127.0.0.1:{port}"\npath = "/trimtab"\nsession_timeout_seconds = 30'
_PULSAR_AWAY = '[pulsar]\nadmin_url = ["http://127.0.0.1:1"]'
#: The aim is 3 s; the rest is for a busy machine.
_SOON = 15.0


class Running:
    """A command in a process group of its own."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.log = folder / "output"
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "controller.cli", *words],
                cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
                env=os.environ | {"TMPDIR": str(folder)},
            )  # fmt: skip

    @property
    def output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait_until(self, condition: Callable[[], bool], seconds: float = 300.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            time.sleep(0.01)

    def catches_signals(self) -> bool:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        [caught] = re.findall(r"SigCgt:\s*([0-9a-f]+)", status)
        return bool(int(caught, 16) & 1 << signal.SIGTERM - 1)

    def tell(self, number: signal.Signals) -> None:
        """To all of its processes."""
        below = descendants(self.process.pid)
        os.killpg(self.process.pid, number)
        for pid in below:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue

    def left(self) -> list[int]:
        """Processes that it has left behind: those of its session."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                state, _, _, session = stat.read_text(errors="replace").rpartition(")")[2].split()[:4]
            except OSError:
                continue
            if int(session) == self.process.pid and state not in "ZX":
                found.append(int(stat.parent.name))
        return found

    def ends(self, number: signal.Signals, within_seconds: float, exit_code: int = 0) -> None:
        """Tell all of it to end: it does, with *exit_code*, and without a trace of Python or Java."""
        began = time.monotonic()
        self.tell(number)
        code = self.process.wait(60)
        seconds = time.monotonic() - began
        assert code == exit_code, self.output
        assert self.output.count(": stopping") == 1, self.output
        assert not _TRACE.search(self.output), self.output
        assert self.output.count("ended: SIG") == 1, self.output
        assert not self.left(), f"{self.left()} run on\n{self.output}"
        assert seconds < within_seconds, f"{number.name}: it took {seconds:.1f} s\n{self.output}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a command finds its settings."""
    write_conf(tmp_path)
    return tmp_path


def write_conf(folder: Path, *, log: str = _FOLDER, election: str = _FILE, pulsar: str = "") -> None:
    (folder / "trimtab.toml").write_text(
        f"""
        [cluster]
        name = "lab"
        broker_conf = "broker.conf"
        [intervals]
        shards = 4
        stale_after_seconds = 3_153_600_000
        [log]
        {log}
        [election]
        {election}
        [checkpoint]
        path = "checkpoint"
        {pulsar}
        [spark]
        master = "local[2]"
        shuffle_partitions = 2
        # A short life: started quickly beats compiled well.
        conf = {{ "spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" }}
        [decisions]
        mode = "active"
        """
    )
    (folder / "broker.conf").touch()


@contextmanager
def running(folder: Path, command: str) -> Iterator[Running]:
    """*command* with its settings in *folder*; nothing of it runs on behind the block."""
    process = Running(folder, *command.split(), *(() if command.startswith("demo") else ("--conf", "trimtab.toml")))
    try:
        yield process
    finally:
        for pid in process.left():
            os.kill(pid, signal.SIGKILL)
        process.process.wait(30)


@pytest.mark.parametrize("command", ["doctor", "status", "lookup public/default/orders", "pause"])
@pytest.mark.parametrize("later_seconds", [0.0, pytest.param(0.8, marks=pytest.mark.extended)])
def test_a_command_that_answers_a_person(folder: Path, command: str, later_seconds: float) -> None:
    """It waits for servers that accept connections and say nothing; after two seconds it would end by itself."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        write_conf(folder, log=_KAFKA_AWAY.format(port=port), election=_ZOOKEEPER_AWAY.format(port=port))
        with running(folder, command) as process:
            process.wait_until(process.catches_signals)
            time.sleep(later_seconds)
            process.ends(signal.SIGINT, _SOON, exit_code=130)


def temporary_files(folder: Path) -> list[Path]:
    return list(folder.glob("trimtab-*/"))


@pytest.mark.parametrize("later_seconds", [0.4, pytest.param(0.0, marks=pytest.mark.extended)])
@pytest.mark.parametrize("command", ["run", "execute", "collect", "demo"])
def test_while_it_is_loaded(folder: Path, command: str, later_seconds: float) -> None:
    with running(folder, command) as process:
        process.wait_until(process.catches_signals)
        time.sleep(later_seconds)
        process.ends(signal.SIGTERM if later_seconds else signal.SIGINT, _SOON)


@pytest.mark.parametrize("later_seconds", [1.5, pytest.param(0.0, marks=pytest.mark.extended)])
@pytest.mark.parametrize("command", ["run", "demo"])
def test_while_spark_starts(folder: Path, command: str, later_seconds: float) -> None:
    with running(folder, command) as process:
        process.wait_until(lambda: bool(descendants(process.process.pid)))
        time.sleep(later_seconds)
        process.ends(signal.SIGTERM, _SOON)
    assert not temporary_files(folder)


def test_a_process_that_is_killed_leaves_no_jvm(folder: Path) -> None:
    with running(folder, "run") as process:
        process.wait_until(lambda: bool(descendants(process.process.pid)))
        process.process.kill()
        process.process.wait(30)
        wait_for(lambda: not process.left(), 60, every=0.1)


def test_while_it_rehearses(folder: Path) -> None:
    with leading_elsewhere(folder), running(folder, "run") as process:
        process.wait_until(lambda: bool(list(folder.glob("trimtab-*/trimtab-rehearsal-*/checkpoint/*/offsets/0"))))
        process.ends(signal.SIGTERM, _SOON)
    assert not temporary_files(folder)


def test_while_it_stands_by(folder: Path) -> None:
    with leading_elsewhere(folder), running(folder, "run") as process:
        process.wait_until(lambda: "stands by" in process.output)
        process.ends(signal.SIGINT, _SOON)
    # On a machine with so much else to do Spark's session may take longer to stop than anybody waits for it.
    assert "in order" in process.output or os.getloadavg()[0] > 4 * (os.cpu_count() or 1)
    assert not temporary_files(folder)
    assert_that_the_log_is_ours(process.output.splitlines())
    [file] = (folder / "checkpoint" / "spark-logs").iterdir()
    assert str(process.process.pid) in file.name


def assert_that_the_log_is_ours(lines: list[str]) -> None:
    """From the first line to the last, and nothing of Spark or of the JVM."""
    assert "starts as controller of cluster lab, mode active" in lines[0]
    assert "ended: SIGINT" in lines[-1]
    assert [line for line in lines if not _OUR_LINE.match(line)] == []
    assert not any(chatter in line for line in lines for chatter in ("hadoop", "incubator", "loopback", "py4j"))


def test_in_a_micro_batch(folder: Path) -> None:
    settings = read_settings(folder / "trimtab.toml")
    shape = ClusterShape(brokers=4, namespaces=4, bundles=500, topics=5_000)
    metrics, cluster = log_system(settings).metrics(), ModelledCluster(shape, seed=1, name="lab")
    sweeps = list(cluster.sweeps(_START_MS))
    metrics.publish(record for sweep in sweeps for record in json_records(sweep))
    metrics.tick(_START_MS, {sweep.broker: sweep.sweep_id for sweep in sweeps})
    with running(folder, "run") as process:
        process.wait_until(lambda: bool(list(folder.glob("checkpoint/*/offsets/0"))))
        assert not list(folder.glob("checkpoint/decisions*/commits/0"))
        process.ends(signal.SIGTERM, _SOON)
    assert not temporary_files(folder)


def test_while_the_demo_plays(folder: Path) -> None:
    with running(folder, "demo") as process:
        process.wait_until(lambda: "[ 1/20]" in process.output)
        process.ends(signal.SIGTERM, _SOON)
    assert "Stopped: " in process.output


def test_while_the_demo_on_pulsar_starts(folder: Path) -> None:
    with running(folder, "demo --pulsar") as process:
        process.wait_until(lambda: bool(descendants(process.process.pid)))
        time.sleep(2)
        process.ends(signal.SIGTERM, _SOON)


def test_a_collector_that_waits_for_zookeeper(folder: Path) -> None:
    write_conf(folder, election=_ZOOKEEPER_AWAY.format(port=free_port()), pulsar=_PULSAR_AWAY)
    with running(folder, "collect") as process:
        process.wait_until(lambda: "connection refused" in process.output)
        process.ends(signal.SIGTERM, _SOON)


@pytest.mark.parametrize("command", ["collect", "execute"])
def test_a_command_that_waits_for_kafka(folder: Path, command: str) -> None:
    write_conf(folder, log=_KAFKA_AWAY.format(port=free_port()), pulsar=_PULSAR_AWAY)
    with running(folder, command) as process:
        process.wait_until(lambda: "connection refused" in process.output)
        process.ends(signal.SIGTERM, _SOON)
    told = [line for line in process.output.splitlines() if "Kafka at 127.0.0.1" in line]
    assert sum("cannot be reached" in line for line in told) == 1, told


@contextmanager
def leading_elsewhere(folder: Path) -> Iterator[None]:
    leader = FileLeadership(folder / "election")
    assert leader.acquire(lambda: False)
    try:
        yield
    finally:
        leader.release()
