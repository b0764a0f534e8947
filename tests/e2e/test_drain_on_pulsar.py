"""A broker of a real Pulsar cluster is drained under traffic: `trimtab plan`, `apply` and `release`.

Kafka and ZooKeeper are real, too.  Every bundle leaves in time, and every acknowledged message is received."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
import typer
from typer.testing import CliRunner, Result

from controller.adapters.kafka.log import create_topics
from controller.adapters.opened import election_system
from controller.cli.apply import apply
from controller.cli.controls import release
from controller.cli.plan import plan
from controller.lab import pulsar_stage
from controller.lab.processes import Processes
from controller.lab.pulsar_demo import SCENARIO, flowing, next_entry, start_all
from controller.lab.pulsar_server import CLUSTER, PulsarCluster
from controller.lab.pulsar_stage import Stage, StageAdmin, set_stage
from controller.lab.pulsar_traffic import Traffic
from controller.lab.servers import KafkaServer, ZooKeeperServer
from controller.settings.trimtab_toml import Settings, read_settings

pytestmark = pytest.mark.e2e

BUNDLES: Final = 24
RATES: Final = tuple(rate / 4 for rate in pulsar_stage.RATES)
#: Pulsar's own lookups take a bundle now and then; what is left is planned anew so often.
REPAIRS: Final = 5
#: The brokers share one machine, so only message rates count; the controller itself moves nothing.
RULES: Final = """
loadBalancerLoadSheddingStrategy=PeakShedder
trimtabPeakShedderMinGainPercentage=95
loadBalancerCPUResourceWeight=0
loadBalancerBandwidthInResourceWeight=0
loadBalancerBandwidthOutResourceWeight=0
trimtabPeakShedderBrokerMsgRate=10000
"""


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
    kept = [
        line
        for line in SCENARIO.with_name("pulsar.broker.conf").read_text().splitlines()
        if line.startswith("loadBalancer") and "Deviation" not in line
    ]
    (tmp_path / "broker.conf").write_text("\n".join([*kept, RULES]))
    name = uuid4().hex[:8]
    kinds = ("metrics", "results", "commands", "journal", "dead_letters")
    topics = "\n".join(f'{kind}_topic = "{kind}-{name}"' for kind in kinds)
    file = tmp_path / "trimtab.toml"
    file.write_text(
        f"""
        cluster.name = "{CLUSTER}"
        intervals = {{ period_seconds = 10, shards = 4 }}
        checkpoint.path = "checkpoint"
        decisions = {{ mode = "active", retry_failed_after_seconds = 10 }}
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
        path = "/drain-{name}"
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


def run(command: Any, conf: Path, *arguments: object) -> Result:
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, [*map(str, arguments), "--conf", str(conf)])


def planned(conf: Path, *arguments: object) -> dict[str, Any]:
    result = run(plan, conf, *arguments, "--wave-moves", "16", "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    said: dict[str, Any] = json.loads(result.stdout)
    return said


def decided(settings: Settings, processes: Processes, samples: int) -> None:
    """Wait until the controller has seen so many intervals in a row."""
    entry = next_entry(settings, 0, processes)
    while entry.memory.samples < samples:
        entry = next_entry(settings, entry.interval, processes)


def drained(conf: Path, said: dict[str, Any]) -> list[str]:
    """Carry out the plan of *said*, and what is left of it; what was said when a run ended early."""
    halted = list[str]()
    file, sha256 = Path(said["file"]), said["sha256"]
    for number in range(REPAIRS + 1):
        result = run(apply, conf, file, "--hash", sha256)
        if result.exit_code == 0:
            return halted
        halted.append(f"{result.output} {result.exception}")
        assert number < REPAIRS, halted
        new = file.with_name(f"repaired-{number}.json")
        # A bundle that was unloaded is seen on its broker in an interval or two; one that came back rests before that.
        time.sleep(30)
        repair = run(apply, conf, file, "--hash", sha256, "--repair", "-o", new, "--json")
        assert repair.exit_code in (0, 1), (repair.output, repair.exception, halted)
        assert new.exists(), (repair.output, repair.exception, halted)
        file, sha256 = new, json.loads(repair.stdout)["sha256"]
    return halted


def test_a_broker_is_drained_under_traffic_before_its_deadline_and_no_message_is_lost(
    stage: Stage, pulsar: PulsarCluster, conf: Path
) -> None:
    settings, broker = read_settings(conf), pulsar.brokers[0]
    assert settings.log.kafka is not None
    create_topics(settings.log.kafka)
    with Traffic(pulsar.service_url, stage.rates, conf.with_name("traffic.log")) as traffic:
        flowing(stage, pulsar.brokers)
        with Processes(conf, conf.parent) as processes:
            start_all(processes)
            decided(settings, processes, 3)
            deadline = datetime.now(UTC) + timedelta(minutes=10)
            by = deadline.strftime("%Y-%m-%dT%H:%M:%SZ")
            said = planned(conf, "--drain", broker, "--by", by, "-o", conf.with_name("plan.json"))
            assert said["inTime"]
            assert said["moves"] >= BUNDLES
            halted = drained(conf, said)
            assert datetime.now(UTC) < deadline
            assert stage.admin.owned(broker).isdisjoint(stage.bundles), halted
            store = election_system(settings).controls()
            controls, _ = store.read()
            store.close()
            assert [each.broker for each in controls.drained] == [broker]
            assert controls.orders is None
            assert run(release, conf, broker).exit_code == 0
            assert processes.stop() == {"collect": 0, "run": 0, "execute": 0}
        missing = traffic.drain(30)
    assert missing == {}
    assert traffic.total_acknowledged > 0.95 * sum(traffic.sent)
