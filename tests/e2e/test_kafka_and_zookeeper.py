"""The whole of it: metrics published to a real Kafka, commands read back from it and obeyed, a real ZooKeeper between
two controllers of which one is killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.lab.servers import KafkaServer, ZooKeeperServer
from controller.log.factory import log_system
from controller.settings.trimtab_toml import Settings, read_settings
from controller.simulator.cluster import ClusterShape, ModelledCluster
from controller.simulator.demo.view import ImbalanceLine
from controller.simulator.lock_step import LockStep
from controller.wire.commands import EpochEvent, parse_event
from controller.wire.dead_letter import DeadLetter
from controller.wire.journal import encode_entry
from tests.kafka_log import PARTITIONS, as_toml, named_topics, read_all

pytestmark = pytest.mark.e2e

_START, _PERIOD = 1_735_689_600_000, 60_000
_BROKER_CONF = """
loadBalancerLoadPlacementStrategy=LeastResourceUsageWithWeight
loadBalancerBrokerThresholdShedderPercentage=5
loadBalancerHistoryResourcePercentage=0.2
"""
_BAD_RECORDS = {
    "not_json": b"{not json",
    "unknown_type": b'{"v":1,"type":"never_heard_of","cluster":"lab"}',
    "bad_value": b'{"v":1,"type":"topic_stats","cluster":"lab","broker":"b:1","bundle":"t/n/0x00000000_0xffffffff",'
    b'"topic":"persistent://t/n/x","msgRateIn":"NaN","msgRateOut":1.0,"msgThroughputIn":1.0,"msgThroughputOut":1.0,'
    b'"producerCount":1,"consumerCount":1,"storageSize":1,"backlogSize":1}',
    "too_large": b'{"v":1,"type":"tick","padding":"' + b"x" * 10_000_000 + b'"}',
}


class RunningController:
    """`trimtab run` in a process of its own."""

    def __init__(self, conf: Path, log: Path) -> None:
        self.log = log
        command = [sys.executable, "-c", "from controller.cli.main import main; main()", "run", "--conf", str(conf)]
        with log.open("ab") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, env=os.environ, start_new_session=True)

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def join(self, timeout: float | None = None) -> None:
        self.process.wait(timeout)

    def leads(self) -> bool:
        return "leads, epoch" in self.log.read_text(errors="replace")

    def kill(self) -> None:
        """The controller, its JVM and its Python workers, as a power cut would."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


class AnyOf:
    """Alive as long as one of them is."""

    def __init__(self, *controllers: RunningController) -> None:
        self.controllers = controllers

    def is_alive(self) -> bool:
        return any(controller.is_alive() for controller in self.controllers)

    def join(self, timeout: float | None = None) -> None:
        for controller in self.controllers:
            controller.join(timeout)


@pytest.fixture
def conf(tmp_path: Path, kafka: KafkaServer, zookeeper: ZooKeeperServer) -> Path:
    (tmp_path / "broker.conf").write_text(_BROKER_CONF)
    file = tmp_path / "trimtab.toml"
    file.write_text(
        f"""
        [cluster]
        name = "lab"
        [intervals]
        shards = 4
        stale_after_seconds = 3_153_600_000
        [log]
        kind = "kafka"
        [log.kafka]
        {as_toml(named_topics(kafka.bootstrap))}
        [election]
        kind = "zookeeper"
        hosts = "{zookeeper.hosts}"
        path = "/{tmp_path.name}"
        session_timeout_seconds = 4
        [checkpoint]
        path = "checkpoint"
        [spark]
        master = "local[2]"
        shuffle_partitions = 1
        # A short life: started quickly beats compiled well.
        conf = {{ "spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" }}
        [decisions]
        mode = "active"
        [guardrails]
        move_undescribed = true
        brokers_balance_unknown = "ignore"
        freeze_intervals = 0
        """
    )
    return file


@pytest.fixture
def controllers(conf: Path) -> Iterator[list[RunningController]]:
    started: list[RunningController] = []
    yield started
    for controller in started:
        if controller.is_alive():
            controller.kill()


def start(conf: Path, name: str, controllers: list[RunningController]) -> RunningController:
    controllers.append(RunningController(conf, conf.parent / f"{name}.log"))
    return controllers[-1]


def wait_until_leads(controller: RunningController) -> None:
    deadline = time.monotonic() + 60
    while not (controller.log.exists() and controller.leads()):
        assert controller.is_alive(), controller.log.read_text()[-3000:]
        assert time.monotonic() < deadline, controller.log.read_text()[-3000:]
        time.sleep(0.1)


def issued(settings: Settings) -> list[bytes]:
    kafka = settings.log.kafka
    assert kafka is not None
    return [
        record.value for part in range(PARTITIONS) for record in read_all(kafka.bootstrap, kafka.commands_topic, part)
    ]


def dead_letters(settings: Settings) -> list[DeadLetter]:
    kafka = settings.log.kafka
    assert kafka is not None
    records = read_all(kafka.bootstrap, kafka.dead_letters_topic, 0)
    return [DeadLetter.model_validate_json(record.value, by_alias=True) for record in records]


def test_commands_come_back_and_a_standby_takes_over_from_a_killed_leader(
    conf: Path, controllers: list[RunningController]
) -> None:
    settings = read_settings(conf)
    cluster = ModelledCluster(ClusterShape(brokers=4, bundles=32, topics=400), seed=1, name="lab")
    at_start = ImbalanceLine.of(cluster.broker_load()[:, 2:].sum(axis=1))
    lock_step = LockStep(cluster, settings)
    log_system(settings).metrics().publish(("bad", value) for value in _BAD_RECORDS.values())
    first = start(conf, "first", controllers)
    wait_until_leads(first)
    second = start(conf, "second", controllers)
    decided = []

    def play(numbers: range, controller: AnyOf) -> int:
        commands = 0
        for number in numbers:
            entry, answers = lock_step.play(_START + number * _PERIOD, controller)
            assert all(result.status == "done" for _, result in answers)
            decided.append(encode_entry(entry))
            commands += len(answers)
            cluster.advance()
        return commands

    assert play(range(1, 5), AnyOf(first)) > 0
    assert not second.leads()
    first.kill()
    wait_until_leads(second)
    play(range(5, 9), AnyOf(second))

    assert [encode_entry(entry) for entry in log_system(settings).decisions()] == decided
    assert ImbalanceLine.of(cluster.broker_load()[:, 2:].sum(axis=1)).max_over_mean < at_start.max_over_mean
    events = [parse_event(event) for event in issued(settings)]
    ids = [event.id for event in events if not isinstance(event, EpochEvent)]
    assert len(ids) == len(set(ids))
    assert sorted(event.epoch for event in events if isinstance(event, EpochEvent)) == [1] * 2 + [2] * 2
    assert sorted(letter.reason for letter in dead_letters(settings)) == sorted(_BAD_RECORDS)
    assert second.stop() == 0
