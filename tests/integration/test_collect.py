"""`trimtab collect` as processes: a share each, one killed, one hung and resumed; real Kafka, real ZooKeeper.

The brokers are played on loopback by what real ones answered (tests/fake_pulsar.py).
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from kazoo.client import KazooClient

from controller.adapters.network.waiting import wait_for
from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.pulsar_metadata import PulsarMetadata
from controller.aggregate.columns.rows import METRICS, RESULTS
from controller.aggregate.shard.fold import ShardState, fold
from controller.aggregate.snapshot import Snapshot
from controller.lab.servers import KafkaServer, ZooKeeperServer
from controller.log.port import LogRecord
from controller.settings.log import KafkaLogSettings
from controller.wire.base import read_object
from controller.wire.metrics import TickRecord, decode_metric
from controller.wire.rows import Located, rows_from_records
from tests.fake_pulsar import CLUSTER, SAMPLES, FakePulsar, fake_pulsar
from tests.integration.execute import now_ms
from tests.integration.test_partitions_added import add_partitions
from tests.kafka_log import PARTITIONS, as_toml, own_topics, read_all
from tests.pure_controller import DETAIL, OPTIONS

pytestmark = pytest.mark.integration

PERIOD_MS = 2_000
SESSION_SECONDS = 1
PATIENCE_SECONDS = 40.0
BROKERS = 6


def records_of(log: KafkaLogSettings, topic: str, partitions: int = PARTITIONS) -> list[LogRecord]:
    return [record for each in range(partitions) for record in read_all(log.bootstrap, topic, each)]


def ticks_of(log: KafkaLogSettings, topic: str | None = None, partition: int = 0) -> list[TickRecord]:
    values = [record.value for record in read_all(log.bootstrap, topic or log.metrics_topic, partition)]
    read = [decode_metric(value, cluster=CLUSTER, period_ms=PERIOD_MS) for value in values]
    return [record for record in read if isinstance(record, TickRecord)]


def missing(tick: TickRecord) -> list[str]:
    return [entry.broker for entry in tick.roster or () if entry.sweep_id is None]


class Collectors:
    """Processes, and what they are to do."""

    def __init__(self, folder: Path, pulsar: FakePulsar, log: KafkaLogSettings, zookeeper: ZooKeeperServer) -> None:
        self.log, self.folder = log, folder
        self.root = f"/trimtab-{uuid4().hex[:8]}"
        self._hosts = zookeeper.hosts
        self.conf = folder / "trimtab.toml"
        self.conf.write_text(
            f"""
            cluster.name = "{CLUSTER}"
            intervals = {{period_seconds = {PERIOD_MS // 1000}}}
            checkpoint.path = "checkpoint"
            [log]
            kind = "kafka"
            [log.kafka]
            {as_toml(log)}
            [election]
            kind = "zookeeper"
            hosts = "{zookeeper.hosts}"
            path = "{self.root}"
            session_timeout_seconds = {SESSION_SECONDS}
            [pulsar]
            admin_url = {json.dumps(pulsar.urls)}
            """,
            encoding="utf-8",
        )

    def start(self) -> subprocess.Popen[bytes]:
        number = len(list(self.folder.glob("collector-*.log")))
        with (self.folder / f"collector-{number}.log").open("wb") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "controller.cli", "collect", "--conf", str(self.conf)],
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def members(self) -> list[int]:
        """Pids of the members, the one that leads first."""
        client = KazooClient(hosts=self._hosts)
        client.start(10)
        try:
            node = f"{self.root}/{CLUSTER}/collectors/members"
            names = client.get_children(node) if client.exists(node) else []
            return [int(name.rsplit("-", 3)[1]) for name in sorted(names, key=lambda name: name[-10:])]
        finally:
            client.stop()
            client.close()

    def wait_for(self, done: Callable[[], bool]) -> None:
        try:
            wait_for(done, PATIENCE_SECONDS, every=0.1)
        except TimeoutError:
            pytest.fail("\n".join(path.read_text(errors="replace") for path in self.folder.glob("collector-*.log")))

    def wait_for_complete(self, after_ms: int, number: int = 1) -> None:
        """Until *number* intervals later than *after_ms* have ended with every broker."""

        def done() -> bool:
            later = [tick for tick in ticks_of(self.log) if tick.interval > after_ms]
            return sum(len(tick.roster or ()) == BROKERS and not missing(tick) for tick in later) >= number

        self.wait_for(done)


@pytest.fixture
def collectors(tmp_path: Path, kafka: KafkaServer, zookeeper: ZooKeeperServer) -> Iterator[Collectors]:
    with fake_pulsar(BROKERS) as pulsar:
        yield Collectors(tmp_path, pulsar, own_topics(kafka.bootstrap), zookeeper)


@contextmanager
def running(collectors: Collectors, number: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    with ExitStack() as stack:
        processes = []
        for _ in range(number):
            process = stack.enter_context(collectors.start())
            stack.callback(process.kill)
            stack.callback(process.send_signal, signal.SIGCONT)
            processes.append(process)
        yield processes


def test_no_broker_is_missing_for_long_and_none_counts_twice_where_one_of_three_is_killed_and_one_hangs(
    collectors: Collectors,
) -> None:
    with running(collectors, 3) as processes:
        by_pid = {process.pid: process for process in processes}
        collectors.wait_for(lambda: len(collectors.members()) == 3)
        collectors.wait_for_complete(now_ms())

        follower = collectors.members()[-1]
        by_pid[follower].kill()
        killed_ms = now_ms()
        collectors.wait_for_complete(killed_ms + 2 * PERIOD_MS)

        leader = collectors.members()[0]
        assert leader != follower
        by_pid[leader].send_signal(signal.SIGSTOP)
        hung_ms = now_ms()
        collectors.wait_for_complete(hung_ms + 2 * PERIOD_MS)
        by_pid[leader].send_signal(signal.SIGCONT)
        resumed_ms = now_ms()
        collectors.wait_for_complete(resumed_ms + 2 * PERIOD_MS)
        ended_ms = now_ms()
        assert set(collectors.members()) == by_pid.keys() - {follower}
        for process in processes:
            process.send_signal(signal.SIGTERM)
        assert [process.wait(20) for process in processes if process.pid != follower] == [0, 0]

    log = collectors.log
    ticks = ticks_of(log)
    intervals = [tick.interval for tick in ticks]
    assert intervals == sorted(set(intervals)), "no interval is ticked twice"
    for topic in (log.metrics_topic, log.results_topic):
        for partition in range(PARTITIONS):
            assert [tick.interval for tick in ticks_of(log, topic, partition)] == intervals, "all partitions alike"
    for event, following in ((killed_ms, hung_ms), (hung_ms, resumed_ms), (resumed_ms, ended_ms)):
        late = [tick for tick in ticks if event + 2 * PERIOD_MS < tick.interval <= following]
        assert late
        assert [missing(tick) for tick in late] == [[]] * len(late)
    _every_sweep_counts_once(log, ticks)


def test_partitions_that_are_added_are_read_and_ticked_from_the_next_interval_on(collectors: Collectors) -> None:
    log, more = collectors.log, 4 * PARTITIONS
    with running(collectors, 2) as processes:
        collectors.wait_for(lambda: len(collectors.members()) == 2)
        collectors.wait_for_complete(now_ms())
        leader = collectors.members()[0]
        for topic in (log.metrics_topic, log.results_topic):
            add_partitions(log, topic, more)
        # One that starts now writes to all partitions; the one that leads goes on as it is.
        [follower] = [process for process in processes if process.pid != leader]
        follower.send_signal(signal.SIGTERM)
        assert follower.wait(20) == 0
        with running(collectors, 1):
            collectors.wait_for(lambda: len(collectors.members()) == 2)
            joined_ms = now_ms()
            collectors.wait_for_complete(joined_ms + 2 * PERIOD_MS, 2)
            ended_ms = now_ms()
            assert collectors.members()[0] == leader
    ticks = [tick for tick in ticks_of(log) if joined_ms + 2 * PERIOD_MS < tick.interval < ended_ms]
    assert ticks
    assert [missing(tick) for tick in ticks] == [[]] * len(ticks)
    assert {tick.partitions.metrics for tick in ticks} == {more}
    assert any(True for each in range(PARTITIONS, more) for record in read_all(log.bootstrap, log.metrics_topic, each))
    snapshots = {snapshot.interval: snapshot for snapshot in _folded(log, more)}
    for tick in ticks[:-1]:
        assert float(snapshots[tick.interval].load[:, 0].sum()) == pytest.approx(BROKERS * 100.011)


def _every_sweep_counts_once(log: KafkaLogSettings, ticks: Sequence[TickRecord]) -> None:
    """Fold the log as the controller does: each interval has each broker's load exactly once."""
    snapshots = {snapshot.interval: snapshot for snapshot in _folded(log)}
    full = [tick.interval for tick in ticks if len(tick.roster or ()) == BROKERS and not missing(tick)]
    assert full
    assert full[-1] in snapshots
    for interval in set(full) & snapshots.keys():
        snapshot = snapshots[interval]
        assert len(snapshot.brokers) == BROKERS
        assert len(snapshot.names) == 2 * BROKERS
        assert float(snapshot.load[:, 0].sum()) == pytest.approx(BROKERS * 100.011)


def _folded(log: KafkaLogSettings, partitions: int = PARTITIONS) -> list[Snapshot]:
    located = []
    for source, topic in ((METRICS, log.metrics_topic), (RESULTS, log.results_topic)):
        for record in records_of(log, topic, partitions):
            read = decode_metric(record.value, cluster=CLUSTER, period_ms=PERIOD_MS, append_time_ms=record.timestamp_ms)
            assert read is not None
            located.append(Located(source=source, partition=record.partition, offset=record.position, record=read))
    _, snapshots = fold(ShardState(shard=0, shards=1), rows_from_records(located, DETAIL), OPTIONS)
    return list(snapshots)


def test_once_ends_after_one_interval_and_states_lie_in_the_log(collectors: Collectors) -> None:
    conf = collectors.conf.read_text(encoding="utf-8")
    # Long enough for connections that are made for the first time.
    collectors.conf.write_text(
        conf.replace(f"= {PERIOD_MS // 1000}}}", f"= {3 * PERIOD_MS // 1000}}}"), encoding="utf-8"
    )
    command = [sys.executable, "-m", "controller.cli", "collect", "--conf", str(collectors.conf), "--once"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, env=os.environ)
    assert run.returncode == 0, run.stderr
    [tick] = ticks_of(collectors.log)
    assert [len(tick.roster or ()), missing(tick)] == [BROKERS, []]
    kinds = [read_object(record.value)["type"] for record in records_of(collectors.log, collectors.log.metrics_topic)]
    assert kinds.count("broker_sweep") == BROKERS


def test_the_averages_and_quotas_that_pulsar_keeps_are_read_and_averages_go_first(zookeeper: ZooKeeperServer) -> None:
    chroot = f"/pulsar-{uuid4().hex[:8]}"
    client = KazooClient(hosts=zookeeper.hosts)
    client.start(10)
    averages, quota = (SAMPLES / "bundle_data.json").read_bytes(), b'{"msgRateIn":1.0}'
    first, second = "lab/ns/0x00000000_0x80000000", "lab/ns/0x80000000_0xffffffff"
    client.create(f"{chroot}/loadbalance/bundle-data/{first}", averages, makepath=True)
    for bundle in (first, second):
        client.create(f"{chroot}/loadbalance/resource-quota/{bundle}", quota, makepath=True)
    metadata = PulsarMetadata(ZooKeeperAccess(hosts=f"{zookeeper.hosts}{chroot}"))
    found = metadata.of_namespace("lab/ns")
    assert found == {first: ("bundle_data", averages), second: ("resource_quota", quota)}
    assert metadata.of_namespace("lab/ns", {first}) == {second: ("resource_quota", quota)}
    assert metadata.of_namespace("lab/none") == {}
    metadata.close()
    client.stop()
    client.close()
