"""`trimtab execute` as a process on real Kafka and real Pulsar, for the tests of it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from controller.adapters.kafka.writer import Producer
from controller.adapters.process.failpoints import VARIABLE
from controller.lab.pulsar_server import CLUSTER, PulsarCluster
from controller.model.decision import Command
from controller.settings.log import KafkaLogSettings
from controller.wire.commands import command_event, command_key, epoch_event
from controller.wire.results import Result, decode_result
from tests.kafka_log import PARTITIONS, as_toml, read_all


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def issue(log: KafkaLogSettings, commands: Sequence[Command], *, epoch: int = 1) -> None:
    """An epoch in every partition, then the *commands*, as a controller issues them."""
    producer = Producer(log.bootstrap)
    for partition in range(PARTITIONS):
        producer.send(log.commands_topic, epoch_event(CLUSTER, epoch, now_ms()), partition=partition)
    for command in commands:
        producer.send(log.commands_topic, command_event(command, epoch, now_ms()), key=command_key(command).encode())
    producer.flush()


def results(log: KafkaLogSettings) -> list[Result]:
    """Everything answered so far."""
    found = []
    for partition in range(PARTITIONS):
        for record in read_all(log.bootstrap, log.results_topic, partition):
            result = decode_result(record.value, cluster=CLUSTER, period_ms=60_000)
            assert isinstance(result, Result)
            found.append(result)
    return found


def wait_for_results(log: KafkaLogSettings, number: int, process: subprocess.Popen[bytes]) -> list[Result]:
    deadline = time.monotonic() + 60
    while len(found := results(log)) < number:
        assert process.poll() is None, "the executor has ended"
        assert time.monotonic() < deadline, f"{number} results are wanted, there are {found}"
        time.sleep(0.2)
    return found


def write_conf(folder: Path, cluster: PulsarCluster, log: KafkaLogSettings) -> Path:
    conf = folder / "trimtab.toml"
    conf.write_text(
        f"""
        cluster.name = "{CLUSTER}"
        election = {{ kind = "file", path = "election" }}
        checkpoint.path = "checkpoint"
        pulsar.admin_url = ["{cluster.admin_urls[0]}"]
        [log]
        kind = "kafka"
        [log.kafka]
        {as_toml(log)}
        [executor]
        group = "{log.commands_topic}"
        session_timeout_seconds = 6
        max_per_second = 50.0
        """,
        encoding="utf-8",
    )
    return conf


@contextmanager
def executing(conf: Path, *, dies_at: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """An executor for the length of a block; *dies_at* is the failpoint that kills it."""
    program = "from controller.cli.main import main; main()"
    environment: Mapping[str, str] = {**os.environ, VARIABLE: dies_at}
    command = [sys.executable, "-c", program, "execute", "--conf", str(conf)]
    with subprocess.Popen(command, env=environment) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.send_signal(signal.SIGTERM)
            process.wait(30)
