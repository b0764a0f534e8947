"""Two controllers and two executors on real Kafka and real ZooKeeper, and one fault after the other (tests/faults).

The tests share one set of processes, and servers of their own, which faults stop.  After every fault all
that ever happened is looked at: each interval decided once and as a run without faults would have, each command issued,
carried out and answered once, none of a dead epoch behind a newer one.  How long recovery takes is measured by
scripts/faults, on a machine that does nothing else.
"""

from collections.abc import Iterator
from operator import attrgetter

import pytest

from controller.lab.servers import kafka_server, zookeeper_server
from tests.faults.audit import Findings
from tests.faults.faults import FAULTS, Around, Fault
from tests.faults.kafka_brokers import SecondBroker
from tests.faults.prove import prove
from tests.faults.site import Site, kafka_site

pytestmark = pytest.mark.e2e

#: Faults that are enough for each commit, once each.  Poison takes a minute of processor time, and each reader of it is
#: tested by itself: tests/integration/test_poison_in_the_query.py and test_bombs_in_kafka.py.
QUICK = ("kill", "hang", "executor-killed", "forged-records", "forged-command", "pause-takeover")
#: A minute on demand (scripts/faults).
KAFKA_AWAY_SECONDS = 10.0
#: A day on demand.
BACKLOG_INTERVALS = 120


NAME = attrgetter("name")


@pytest.fixture(scope="module")
def around(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Around]:
    folder = tmp_path_factory.mktemp("around")
    with kafka_server(folder / "kafka") as kafka, zookeeper_server(folder / "zookeeper") as zookeeper:
        second = SecondBroker(folder / "second-broker", kafka)
        yield Around(
            kafka, zookeeper, second, kafka_away_seconds=KAFKA_AWAY_SECONDS, backlog_intervals=BACKLOG_INTERVALS
        )
        second.stop()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, around: Around) -> Iterator[Site]:
    with kafka_site(tmp_path_factory.mktemp("two-controllers"), [around.kafka], around.zookeeper) as site:
        yield site


def prove_faultless(fault: Fault, site: Site, around: Around, runs: int) -> None:
    outcome = prove(fault, site, around, runs)
    assert outcome.findings == Findings()
    assert outcome.differences == []
    assert outcome.commands >= runs


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.name in QUICK], ids=NAME)
def test_nothing_is_lost_or_done_twice_or_wrong(site: Site, around: Around, fault: Fault) -> None:
    prove_faultless(fault, site, around, 1)


@pytest.mark.extended
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.name not in QUICK], ids=NAME)
def test_the_same_after_faults_that_take_longer(site: Site, around: Around, fault: Fault) -> None:
    prove_faultless(fault, site, around, 1)


@pytest.mark.extended
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.depends_on_the_moment], ids=NAME)
def test_the_same_at_another_moment(site: Site, around: Around, fault: Fault) -> None:
    prove_faultless(fault, site, around, 2)
