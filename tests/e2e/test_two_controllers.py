"""Two controllers and two executors on real Kafka and real ZooKeeper, and one fault after the other (tests/faults).

They share one set of processes.  After every fault all that ever happened is looked at: each interval decided once and
as a run without faults would have, each command issued, carried out and answered once, none of a dead epoch behind a
newer one.
"""

from collections.abc import Iterator

import pytest

from controller.adapters.servers import KafkaServer, ZooKeeperServer
from tests.faults.audit import Findings
from tests.faults.faults import FAULTS, Around, Fault
from tests.faults.prove import Outcome, p95, prove
from tests.faults.site import Site, kafka_site

pytestmark = pytest.mark.e2e

RUNS = 2
#: A minute on demand (scripts/faults).
KAFKA_AWAY_SECONDS = 10.0
MOST_P95_SECONDS = 30.0


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


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return []


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_nothing_is_lost_or_done_twice_or_wrong(
    site: Site, around: Around, outcomes: list[Outcome], fault: Fault
) -> None:
    outcome = prove(fault, site, around, RUNS)
    outcomes.append(outcome)
    assert outcome.findings == Findings()
    assert outcome.differences == []
    assert outcome.commands >= RUNS


def test_recovery_takes_thirty_seconds_at_most(outcomes: list[Outcome]) -> None:
    assert {outcome.fault for outcome in outcomes} == {fault.name for fault in FAULTS}
    recoveries = [each for outcome in outcomes for each in outcome.recoveries]
    assert p95(recoveries) <= MOST_P95_SECONDS, {each.fault: each.recoveries for each in outcomes}
