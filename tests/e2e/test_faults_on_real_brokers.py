"""Two controllers and two executors whose log is in a real Pulsar, and whose commands its brokers carry out.

In test_two_controllers_on_pulsar the log alone is real.  Load is modelled here, too (tests/faults/real_pulsar.py).
"""

from collections.abc import Iterator
from operator import attrgetter

import pytest

from controller.lab.pulsar_server import PulsarCluster
from tests.faults.audit import Findings
from tests.faults.faults import NOTHING_AROUND, ON_REAL_BROKERS, Fault
from tests.faults.prove import prove
from tests.faults.site import Site, pulsar_site

pytestmark = [pytest.mark.e2e, pytest.mark.extended]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, pulsar: PulsarCluster) -> Iterator[Site]:
    with pulsar_site(tmp_path_factory.mktemp("on-real-brokers"), pulsar, pulsar) as site:
        yield site


@pytest.mark.parametrize("fault", ON_REAL_BROKERS, ids=attrgetter("name"))
def test_nothing_is_lost_or_done_twice_or_wrong(site: Site, fault: Fault) -> None:
    outcome = prove(fault, site, NOTHING_AROUND, 1)
    assert outcome.findings == Findings()
    assert outcome.differences == []
    assert outcome.commands >= 1
