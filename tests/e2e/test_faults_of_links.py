"""Links that are cut, one way or both, or lose packets: nothing is lost, carried out twice or wrong (tests/faults).

scripts/faults has all of them; here is one of each link.
"""

from collections.abc import Iterator

import pytest

from tests.faults.audit import Findings
from tests.faults.faults import NOTHING_AROUND, Fault
from tests.faults.links import faults_of_links, site_on_network
from tests.faults.network import why_none
from tests.faults.prove import prove
from tests.faults.site import Site

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.extended,
    pytest.mark.skipif(bool(why_none()), reason=why_none()),
]

FAULTS = (
    "collector-log-cut",
    "leader-log-deaf",
    "leader-election-mute",
    "executor-log-lossy",
    "executor-broker-deaf",
    "between-brokers-cut",
)


@pytest.fixture(scope="module")
def on_network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, dict[str, Fault]]]:
    with site_on_network(tmp_path_factory.mktemp("network")) as (site, hosts):
        yield site, {fault.name: fault for fault in faults_of_links(hosts)}


@pytest.mark.parametrize("name", FAULTS)
def test_nothing_is_lost_or_done_twice_or_wrong(on_network: tuple[Site, dict[str, Fault]], name: str) -> None:
    site, faults = on_network
    outcome = prove(faults[name], site, NOTHING_AROUND, 1)
    assert outcome.findings == Findings()
    assert outcome.differences == []
    assert outcome.commands >= 1
