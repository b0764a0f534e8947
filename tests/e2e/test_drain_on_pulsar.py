"""A broker of a real Pulsar cluster is drained under traffic: `trimtab plan`, `apply` and `release`.

Kafka and ZooKeeper are real, too.  Every bundle leaves in time, and every acknowledged message is received."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from controller.adapters.kafka.specs import create_topics
from controller.cli.controls import release
from controller.lab import pulsar_stage
from controller.lab.processes import Processes
from controller.lab.pulsar_demo import flowing, start_all
from controller.lab.pulsar_server import CLUSTER, PulsarCluster
from controller.lab.pulsar_stage import Stage, StageAdmin, set_stage
from controller.lab.pulsar_traffic import Traffic
from controller.lab.servers import KafkaServer, ZooKeeperServer
from controller.log.elections import election_system
from controller.settings.trimtab_toml import read_settings
from tests.maintenance import carried_out, decided, planned, run, write_settings

pytestmark = [pytest.mark.e2e, pytest.mark.extended]

BUNDLES: Final = 24
RATES: Final = tuple(rate / 4 for rate in pulsar_stage.RATES)


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
    return write_settings(tmp_path, pulsar, kafka, zookeeper)


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
            halted = carried_out(conf, said)
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
