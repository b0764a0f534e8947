"""Two controllers and two executors on real Kafka and real ZooKeeper, and one fault after the other (tests/faults).

They share one set of processes.  After every fault all that ever happened is looked at: each interval decided once and
as a run without faults would have, each command issued, carried out and answered once, none of a dead epoch behind a
newer one.  How long recovery takes is measured by scripts/faults, on a machine that does nothing else.
"""

from collections.abc import Iterator

import pytest

from controller.adapters.servers import KafkaServer, ZooKeeperServer
from tests.faults.audit import Findings
from tests.faults.faults import FAULTS, Around, Fault
from tests.faults.prove import prove
from tests.faults.site import Site, kafka_site

pytestmark = pytest.mark.e2e

RUNS = 2
#: A minute on demand (scripts/faults).
KAFKA_AWAY_SECONDS = 10.0


@pytest.fixture(scope="module")
def around(kafka: KafkaServer, zookeeper: ZooKeeperServer) -> Iterator[Around]:
    yield Around(kafka, zookeeper, kafka_away_seconds=KAFKA_AWAY_SECONDS)
    for server in (kafka, zookeeper):
        if server.pid() is None:
            server.start()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, around: Around) -> Iterator[Site]:
    with kafka_site(tmp_path_factory.mktemp("two-controllers"), around.kafka, around.zookeeper) as site:
        yield site


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_nothing_is_lost_or_done_twice_or_wrong(site: Site, around: Around, fault: Fault) -> None:
    outcome = prove(fault, site, around, RUNS)
    assert outcome.findings == Findings()
    assert outcome.differences == []
    assert outcome.commands >= RUNS
