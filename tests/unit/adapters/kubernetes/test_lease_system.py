"""With [election.lease] the Lease elects the leader, and everything else stays where `kind` of [election] says."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from controller.adapters.kubernetes.leadership import LeaseLeadership
from controller.adapters.zookeeper.controls import ZooKeeperControls
from controller.adapters.zookeeper.leadership import ZooKeeperLeadership
from controller.adapters.zookeeper.registry import ZooKeeperRegistry
from controller.log.elections import election_system
from controller.model.leadership import Leader
from controller.settings.trimtab_toml import Settings, read_settings
from tests.fake_kubernetes import FakeKubernetes, fake_kubernetes

#: Nothing is connected before it is used.
_SETTINGS = """
cluster.name = "demo"
log.kind = "folder"
log.folder.path = "log"
checkpoint.path = "checkpoint"
[election]
kind = "zookeeper"
hosts = "127.0.0.1:9"
path = "/trimtab"
"""


@pytest.fixture
def api() -> Iterator[FakeKubernetes]:
    with fake_kubernetes() as server:
        yield server


def settings(folder: Path, lease: str = "") -> Settings:
    (folder / "trimtab.toml").write_text(_SETTINGS + lease, encoding="utf-8")
    return read_settings(folder / "trimtab.toml")


def test_the_lease_elects_the_leader_and_all_else_stays(tmp_path: Path, api: FakeKubernetes) -> None:
    lease = f'[election.lease]\nserver = "{api.url}"\nnamespace = "pulsar"\ntoken_file = ""\n'
    system = election_system(settings(tmp_path, lease))
    with closing(system.controls()) as controls:
        assert isinstance(controls, ZooKeeperControls)
    assert isinstance(system.registry(), ZooKeeperRegistry)
    leadership = system.leadership()
    assert isinstance(leadership, LeaseLeadership)
    leadership.release()
    assert system.leader() is None
    renewed = "2999-01-01T00:00:00.000000Z"
    spec = {"holderIdentity": "pod-1_7_x", "leaseDurationSeconds": 15, "renewTime": renewed, "acquireTime": renewed}
    api.store("trimtab", {"metadata": {}, "spec": spec})
    leader = system.leader()
    assert isinstance(leader, Leader)
    assert (leader.host, leader.process) == ("pod-1", 7)


def test_without_the_section_zookeeper_elects_it(tmp_path: Path) -> None:
    leadership = election_system(settings(tmp_path)).leadership()
    assert isinstance(leadership, ZooKeeperLeadership)
