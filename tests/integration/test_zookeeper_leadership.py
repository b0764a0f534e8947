"""The election, on a real ZooKeeper."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from kazoo.client import KazooClient

from controller.adapters.network.waiting import wait_for
from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.leader import leader_of
from controller.adapters.zookeeper.leadership import ZooKeeperLeadership
from controller.lab.servers import ZooKeeperServer, zookeeper_server
from controller.model.errors import LeadershipLostError, StateError, TrimtabError
from controller.model.leadership import Leader
from tests.contracts.leadership import Contender, LeadershipContract, patience

pytestmark = pytest.mark.integration

SESSION_SECONDS = 4.0
PATIENCE_SECONDS = 30.0


def eventually(condition: Callable[[], bool]) -> None:
    wait_for(condition, PATIENCE_SECONDS, every=0.02)


@contextmanager
def contender(hosts: str, cluster: str) -> Iterator[ZooKeeperLeadership]:
    leadership = ZooKeeperLeadership(
        access=ZooKeeperAccess(hosts=hosts), path="/trimtab", cluster=cluster, session_timeout_seconds=SESSION_SECONDS
    )
    try:
        yield leadership
    finally:
        leadership.release()


@contextmanager
def client(hosts: str, **options: object) -> Iterator[KazooClient]:
    kazoo = KazooClient(hosts=hosts, **options)
    kazoo.start(PATIENCE_SECONDS)
    try:
        yield kazoo
    finally:
        kazoo.stop()
        kazoo.close()


class Waiting(threading.Thread):
    """An ``acquire`` under way."""

    def __init__(self, leadership: ZooKeeperLeadership) -> None:
        super().__init__(daemon=True)
        self.leads = False
        self.give_up = threading.Event()
        self._leadership = leadership
        self.start()

    def run(self) -> None:
        self.leads = self._leadership.acquire(self.give_up.is_set)


def expire(leadership: ZooKeeperLeadership, hosts: str) -> None:
    """End the session in ZooKeeper, as its timeout would: who closes a session that moved to him ends it."""
    with client(hosts, client_id=leadership._client.client_id):
        pass


@pytest.fixture
def cluster() -> str:
    return f"cluster-{uuid4().hex}"


@pytest.fixture
def first(zookeeper: ZooKeeperServer, cluster: str) -> Iterator[ZooKeeperLeadership]:
    with contender(zookeeper.hosts, cluster) as leadership:
        yield leadership


@pytest.fixture
def second(zookeeper: ZooKeeperServer, cluster: str) -> Iterator[ZooKeeperLeadership]:
    with contender(zookeeper.hosts, cluster) as leadership:
        yield leadership


class TestZooKeeperLeadership(LeadershipContract):
    @pytest.fixture
    def contender(self, zookeeper: ZooKeeperServer, cluster: str) -> Iterator[Contender]:
        with ExitStack() as open_contenders:
            yield lambda: open_contenders.enter_context(contender(zookeeper.hosts, cluster))

    @pytest.fixture
    def leader(self, zookeeper: ZooKeeperServer, cluster: str) -> Callable[[], Leader | None]:
        access = ZooKeeperAccess(hosts=zookeeper.hosts)
        return lambda: leader_of(access, "/trimtab", cluster, answer_seconds=PATIENCE_SECONDS)


def test_the_second_leads_once_the_first_has_released(first: ZooKeeperLeadership, second: ZooKeeperLeadership) -> None:
    assert first.acquire(patience())
    waiting = Waiting(second)
    time.sleep(0.5)
    assert waiting.is_alive()
    assert second.lost()
    first.release()
    waiting.join(PATIENCE_SECONDS)
    assert waiting.leads
    second.check()


def test_clusters_have_leaders_of_their_own(zookeeper: ZooKeeperServer, first: ZooKeeperLeadership) -> None:
    assert first.acquire(patience())
    with contender(zookeeper.hosts, "another") as other:
        assert other.acquire(patience())
        other.check()
    first.check()


def test_an_expired_leader_is_replaced_and_finds_out(
    zookeeper: ZooKeeperServer, first: ZooKeeperLeadership, second: ZooKeeperLeadership
) -> None:
    assert first.acquire(patience())
    assert first.claim(0) == 1
    waiting = Waiting(second)
    expire(first, zookeeper.hosts)
    waiting.join(PATIENCE_SECONDS)
    assert waiting.leads
    with pytest.raises(LeadershipLostError):
        first.check()
    assert second.claim(0) == 2
    second.check()
    eventually(first.session_lost)
    assert first.lost()
    with pytest.raises(LeadershipLostError, match="session"):
        first.acquire(patience())


def test_zookeeper_refuses_a_leader_that_has_not_noticed_yet(
    zookeeper: ZooKeeperServer, first: ZooKeeperLeadership, cluster: str
) -> None:
    assert first.acquire(patience())
    with client(zookeeper.hosts) as operator:
        contenders = f"/trimtab/{cluster}/contenders"
        (node,) = operator.get_children(contenders)
        operator.delete(f"{contenders}/{node}")
        assert not first.lost()
        with pytest.raises(LeadershipLostError, match="no longer takes part in the election"):
            first.check()
        assert first.lost()


def test_zookeeper_refuses_a_leader_whose_epoch_has_passed(
    zookeeper: ZooKeeperServer, first: ZooKeeperLeadership, cluster: str
) -> None:
    assert first.acquire(patience())
    first.claim(0)
    with client(zookeeper.hosts) as operator:
        operator.set(f"/trimtab/{cluster}/epoch", b"2")
    with pytest.raises(LeadershipLostError, match="a newer epoch has begun"):
        first.check()
    assert first.acquire(patience())
    assert first.claim(0) == 3


def test_an_epoch_that_is_no_number_is_refused(
    zookeeper: ZooKeeperServer, first: ZooKeeperLeadership, cluster: str
) -> None:
    assert first.acquire(patience())
    with client(zookeeper.hosts) as operator:
        operator.set(f"/trimtab/{cluster}/epoch", b"three")
    with pytest.raises(StateError, match="three"):
        first.claim(0)


def test_an_outage_raises_the_flag_and_the_same_session_goes_on_after_asking_again(tmp_path: Path) -> None:
    with zookeeper_server(tmp_path) as server, contender(server.hosts, "outage") as leader:
        assert leader.acquire(patience())
        assert leader.claim(0) == 1
        session = leader._client.client_id
        server.stop()
        eventually(leader.lost)
        with pytest.raises(LeadershipLostError):
            leader.check()
        assert not leader.session_lost()
        server.start()
        eventually(lambda: leader._client.connected)
        assert leader.lost(), "only acquire settles a doubt"
        assert leader.acquire(patience())
        assert leader._client.client_id == session
        assert leader.claim(0) == 2
        leader.check()


def test_waiting_for_a_server_that_is_down_can_be_given_up(tmp_path: Path) -> None:
    with zookeeper_server(tmp_path) as server, contender(server.hosts, "outage") as leader:
        assert leader.acquire(patience())
        server.stop()
        eventually(leader.lost)
        waiting = Waiting(leader)
        time.sleep(0.3)
        assert waiting.is_alive()
        waiting.give_up.set()
        waiting.join(PATIENCE_SECONDS)
        assert not waiting.is_alive()
        assert not waiting.leads
        server.start()


def test_no_server_at_all_is_said_with_its_address() -> None:
    with (
        contender("127.0.0.1:1", "nowhere") as leader,
        pytest.raises(TrimtabError, match=r"127\.0\.0\.1:1 did not answer"),
    ):
        leader.acquire(patience())


_LEADER = """
import sys
from controller.adapters.zookeeper.leadership import ZooKeeperLeadership
from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.model.errors import LeadershipLostError

hosts, cluster, seconds = sys.argv[1:]
access = ZooKeeperAccess(hosts=hosts)
leadership = ZooKeeperLeadership(
    access=access, path="/trimtab", cluster=cluster, session_timeout_seconds=float(seconds)
)
assert leadership.acquire(lambda: False)
print("leads", leadership.claim(0), flush=True)
sys.stdin.readline()
try:
    leadership.check()
except LeadershipLostError:
    print("leads no longer", flush=True)
else:
    print("leads", flush=True)
"""


def test_a_leader_that_slept_through_its_timeout_is_refused_when_it_wakes_up(
    zookeeper: ZooKeeperServer, second: ZooKeeperLeadership, cluster: str
) -> None:
    command = [sys.executable, "-c", _LEADER, zookeeper.hosts, cluster, str(SESSION_SECONDS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ) as sleeper:
        assert sleeper.stdin is not None
        assert sleeper.stdout is not None
        try:
            assert sleeper.stdout.readline() == "leads 1\n"
            waiting = Waiting(second)
            sleeper.send_signal(signal.SIGSTOP)
            waiting.join(PATIENCE_SECONDS)
            assert waiting.leads
            assert second.claim(0) == 2
            sleeper.stdin.write("check\n")
            sleeper.stdin.flush()
            sleeper.send_signal(signal.SIGCONT)
            assert sleeper.stdout.readline() == "leads no longer\n"
        finally:
            sleeper.kill()
    second.check()
