"""The whole loop on a real Pulsar cluster, with real Kafka and real ZooKeeper: skewed traffic by Pulsar's client,
`trimtab collect`, `run` and `execute` as processes, and not one message lost on the way."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest

from controller.adapters import pulsar_stage, transport
from controller.adapters.processes import Processes
from controller.adapters.pulsar_server import CLUSTER, PulsarCluster
from controller.adapters.pulsar_stage import Stage, StageAdmin, set_stage
from controller.adapters.pulsar_traffic import Traffic
from controller.adapters.recent import recent_results
from controller.adapters.servers import KafkaServer, ZooKeeperServer
from controller.model.load import Floats
from controller.settings.trimtab_toml import Settings, read_settings
from controller.simulator.pulsar_demo import COMMANDS, SCENARIO, answers_to, flowing, next_entry
from controller.wire.journal import JournalEntry
from controller.wire.results import Result

pytestmark = pytest.mark.e2e

#: So many that some twenty of them move.
BUNDLES = 48
RATES = tuple(rate / 2 for rate in pulsar_stage.RATES)
INTERVALS = 10
EVEN = 1.3


@pytest.fixture
def stage(pulsar: PulsarCluster) -> Iterator[Stage]:
    """A namespace of the test's own, all of it on one broker."""
    admin = StageAdmin(pulsar.admin_urls, cluster=CLUSTER)
    stage = set_stage(admin, f"e2e/ns-{uuid4().hex[:8]}", BUNDLES, RATES)
    stage.gather(pulsar.brokers[0])
    yield stage
    admin.close()


@pytest.fixture
def conf(tmp_path: Path, pulsar: PulsarCluster, kafka: KafkaServer, zookeeper: ZooKeeperServer) -> Path:
    rules = SCENARIO.with_name("pulsar.broker.conf").read_text()
    # All at once: the demo wants to be watched.
    assert "trimtabDeviationShedderMaxBundles=3" in rules
    (tmp_path / "broker.conf").write_text(f"{rules}\ntrimtabDeviationShedderMaxBundles=-1\n")
    name = uuid4().hex[:8]
    kinds = ("metrics", "results", "commands", "journal", "dead_letters")
    topics = "\n".join(f'{kind}_topic = "{kind}-{name}"' for kind in kinds)
    file = tmp_path / "trimtab.toml"
    file.write_text(
        f"""
        cluster.name = "{CLUSTER}"
        intervals = {{ period_seconds = 5, shards = 4 }}
        checkpoint.path = "checkpoint"
        decisions.mode = "active"
        pulsar.admin_url = {json.dumps(pulsar.admin_urls)}
        [log]
        kind = "kafka"
        [log.kafka]
        bootstrap = "{kafka.bootstrap}"
        partitions = 2
        {topics}
        [election]
        kind = "zookeeper"
        hosts = "{zookeeper.hosts}"
        path = "/on-pulsar-{name}"
        [spark]
        master = "local[2]"
        shuffle_partitions = 1
        conf = {{ "spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" }}
        [executor]
        group = "executors-{name}"
        session_timeout_seconds = 6
        max_per_second = 20.0
        """
    )
    return file


def max_over_mean(load: Floats) -> float:
    return float(load.max() / load.mean())


def play(stage: Stage, pulsar: PulsarCluster, settings: Settings, processes: Processes) -> list[JournalEntry]:
    """Interval by interval till the brokers are even, twice in a row and at rest; ten at most."""
    entries: list[JournalEntry] = []
    told: list[str] = []
    even = 0
    while len(entries) < INTERVALS and even < 2:
        entries.append(next_entry(settings, entries[-1].interval if entries else 0, processes))
        load = stage.msg_rates(pulsar.brokers)
        answers_to(entries[-1], settings, processes)
        even = 0 if max_over_mean(load) > EVEN or entries[-1].decision.commands else even + 1
        told.append(f"{entries[-1].interval}: {np.round(load)} msg/s; {entries[-1].decision.summary}")
    assert even == 2, "\n".join(told)
    return entries


def test_a_skewed_cluster_becomes_even_and_every_acknowledged_message_is_received(
    stage: Stage, pulsar: PulsarCluster, conf: Path
) -> None:
    settings = read_settings(conf)
    with Traffic(pulsar.service_url, stage.rates) as traffic:
        assert max_over_mean(flowing(stage, pulsar.brokers)) > 2.9, "one broker has it all"
        with Processes(conf, conf.parent) as processes:
            for command in COMMANDS:
                processes.start(command)
            entries = play(stage, pulsar, settings, processes)
            at_end = stage.msg_rates(pulsar.brokers)
            results = recent_results(settings, entries[0].interval)
            assert processes.stop() == dict.fromkeys(COMMANDS, 0)
        missing = traffic.drain(30)
    assert max_over_mean(at_end) <= EVEN

    moves = [command for entry in transport.read_journal(settings) for command in entry.decision.commands]
    assert {command.action for command in moves} == {"unload"}
    assert {command.bundle for command in moves} <= set(stage.bundles)
    assert len(moves) >= 8, "less than that does not make it even"
    arrived = [move for move in moves if ended_at(results[move.id]) == move.destination]
    assert len(arrived) >= 0.95 * len(moves), {move.bundle: results[move.id] for move in moves}
    assert all(results[move.id].status == "done" for move in arrived)
    assert all(results[move.id].detail for move in moves if move not in arrived)

    assert missing == {}
    assert traffic.total_acknowledged == sum(traffic.sent) > 0.8 * sum(stage.rates.values()) * 20
    log = "".join(processes.log(command).read_text() for command in COMMANDS)
    assert "Traceback" not in log


def ended_at(result: Result) -> str | None:
    return result.owner_after


def test_the_traffic_knows_of_a_message_that_never_came(pulsar: PulsarCluster, stage: Stage) -> None:
    with Traffic(pulsar.service_url, dict.fromkeys(stage.topics[:2], 50.0)) as traffic:
        deadline = time.monotonic() + 30
        while traffic.total_acknowledged < 20:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert traffic.drain(30) == {}
        traffic.received[1].discard(7)
        assert traffic.missing() == {stage.topics[1]: [7]}
