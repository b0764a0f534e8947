"""Two controllers and two executors with their log and their election in a real Kafka: no ZooKeeper runs.

As tests/e2e/test_two_controllers.py, for what a takeover depends on.
"""

from collections.abc import Iterator

import pytest

from controller.lab.servers import ZooKeeperServer, kafka_server
from tests.faults.audit import Findings
from tests.faults.faults import FAULTS, Around
from tests.faults.kafka_brokers import SecondBroker
from tests.faults.prove import prove
from tests.faults.site import Site, kafka_site

pytestmark = [pytest.mark.e2e, pytest.mark.extended]

WANTED = ("kill", "hang", "pause-takeover", "executor-killed", "kafka-away")


@pytest.fixture(scope="module")
def around(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Around]:
    folder = tmp_path_factory.mktemp("around")
    with kafka_server(folder / "kafka") as kafka:
        second = SecondBroker(folder / "second-broker", kafka)
        yield Around(kafka, ZooKeeperServer(folder / "not-started"), second, kafka_away_seconds=10.0)
        second.stop()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, around: Around) -> Iterator[Site]:
    with kafka_site(tmp_path_factory.mktemp("without-zookeeper"), [around.kafka], None) as site:
        yield site


@pytest.mark.parametrize("name", WANTED)
def test_nothing_is_lost_or_done_twice_or_wrong(site: Site, around: Around, name: str) -> None:
    [fault] = [fault for fault in FAULTS if fault.name == name]
    outcome = prove(fault, site, around, 1)
    assert outcome.findings == Findings()
    assert outcome.differences == []
    assert outcome.commands >= 1
