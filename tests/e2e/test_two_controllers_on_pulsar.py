"""Two controllers and two executors whose log is in a real Pulsar, without Kafka (tests/faults).

After every fault all that ever happened is looked at, as in test_two_controllers.
"""

from collections.abc import Iterator
from operator import attrgetter

import pytest

from controller.lab.pulsar_server import PulsarCluster
from tests.faults.audit import Findings
from tests.faults.faults import NOTHING_AROUND, QUICK_ON_PULSAR, Fault
from tests.faults.prove import prove
from tests.faults.site import Site, pulsar_site

pytestmark = [pytest.mark.e2e, pytest.mark.extended]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, pulsar: PulsarCluster) -> Iterator[Site]:
    with pulsar_site(tmp_path_factory.mktemp("on-pulsar"), pulsar) as site:
        yield site


@pytest.mark.parametrize("fault", QUICK_ON_PULSAR, ids=attrgetter("name"))
def test_nothing_is_lost_or_done_twice_or_wrong(site: Site, fault: Fault) -> None:
    outcome = prove(fault, site, NOTHING_AROUND, 1)
    assert outcome.findings == Findings()
    assert outcome.differences == []
    assert outcome.commands >= 1
