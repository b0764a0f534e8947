"""Two controllers and two executors whose leader a Lease on a real API server elects; all else lies in a real Kafka.

The account has the rights of the Role that trimtab ships.  As tests/e2e/test_two_controllers.py, for what a takeover
depends on; a controller that lost a Lease stands for election again, and is not restarted.
"""

import time
from collections.abc import Iterator

import pytest

from controller.lab.servers import kafka_server
from tests.faults.audit import Findings
from tests.faults.clock import eventually
from tests.faults.faults import FAULTS, NOTHING_AROUND
from tests.faults.processes import Life
from tests.faults.prove import prove
from tests.faults.site import Site, kafka_site
from tests.integration.test_kubernetes_api import NAMESPACE, NAMESPACE_OBJECT, kustomized, token_of
from tests.kube_apiserver import ApiServer, api_server

pytestmark = [pytest.mark.e2e, pytest.mark.extended]

_STANDS_AGAIN = "stands for election again"
#: As short as the settings allow.
_SECONDS = 5
[_KILL] = (fault for fault in FAULTS if fault.name == "kill")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with api_server() as started:
        started.apply([NAMESPACE_OBJECT])
        folder = tmp_path_factory.mktemp("kustomize")
        started.apply(kustomized(started, folder, "components: [lease]\n", "ServiceAccount", "Role"))
        yield started


@pytest.fixture(scope="module")
def site(server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("with-a-lease")
    token = token_of(server, folder / "token", "trimtab")
    lease = f'server = "{server.url}"\nnamespace = "{NAMESPACE}"\nseconds = {_SECONDS}\n'
    lease += f'token_file = "{token}"\ntrust_certs = "{server.authority}"'
    with kafka_server(folder / "kafka") as kafka, kafka_site(folder / "site", [kafka], None, lease=lease) as site:
        yield site


def _work(site: Site) -> None:
    """An interval that needs commands, up to the last answer."""
    site.pile_up()
    site.publish()
    site.come_to_rest()


def _require_faultless(site: Site) -> None:
    assert site.audit() == Findings()
    assert site.differences() == []


def test_after_a_kill_of_the_leader_nothing_is_lost_or_done_twice_or_wrong(site: Site) -> None:
    outcome = prove(_KILL, site, NOTHING_AROUND, 2)
    assert outcome.findings == Findings()
    assert outcome.differences == []
    assert outcome.commands >= 2


def _hung(site: Site) -> Life:
    """The process that led, which was stopped until another one led, and then went on."""
    site.wait_for_standby()
    leader = site.leader()
    leader.hang()
    _work(site)
    leader.resume()
    eventually(lambda: leader.says(_STANDS_AGAIN), "who hung stands for election again")
    return leader


def test_a_leader_that_hangs_is_replaced_and_leads_again_when_the_other_one_is_killed(site: Site) -> None:
    hung = _hung(site)
    [other] = [each.life for each in site.controllers if each.life is not hung]
    other.kill()
    _work(site)
    assert site.leader() is hung
    _require_faultless(site)


def test_while_the_api_server_hangs_nobody_leads_and_nothing_is_decided(site: Site, server: ApiServer) -> None:
    site.wait_for_standby()
    leader, epoch = site.leader(), site.leaders_epoch()
    times = leader.log.read_text(encoding="utf-8").count(_STANDS_AGAIN)
    with server.hanging():
        eventually(lambda: leader.log.read_text(encoding="utf-8").count(_STANDS_AGAIN) > times, "the leader gives up")
        site.pile_up()
        interval = site.publish()
        time.sleep(2 * _SECONDS)
        assert site.decision(interval) is None
    site.wait_for_decision(interval)
    site.come_to_rest()
    assert site.leaders_epoch() > epoch
    _require_faultless(site)
