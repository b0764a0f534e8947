"""Proposals in a real ZooKeeper, by the contract of all stores; and what a process leaves that ended while it wrote."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from uuid import uuid4

import pytest

from controller.adapters.election.proposals import ProposalStore
from controller.adapters.zookeeper import proposals as zookeeper_proposals
from controller.lab.servers import ZooKeeperServer
from controller.log.elections import election_system
from controller.model.errors import ProposalRefusedError, WireError
from controller.settings.trimtab_toml import Settings
from tests.contracts.proposals import CONTENT, ONE, OpenProposals, ProposalStoreContract
from tests.integration.test_controls_in_zookeeper import settings
from tests.integration.test_zookeeper_leadership import client
from tests.proposals import NOW

pytestmark = pytest.mark.integration


def opener(found: Settings, stores: ExitStack) -> OpenProposals:
    def opened() -> ProposalStore:
        return stores.enter_context(closing(election_system(found).proposals()))

    return opened


class TestZooKeeperProposals(ProposalStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path, zookeeper: ZooKeeperServer) -> Iterator[OpenProposals]:
        with ExitStack() as stores:
            yield opener(settings(tmp_path, zookeeper.hosts, uuid4().hex), stores)

    @pytest.fixture
    def of_another(self, tmp_path: Path, zookeeper: ZooKeeperServer) -> Iterator[OpenProposals]:
        with ExitStack() as stores:
            yield opener(settings(tmp_path, zookeeper.hosts, uuid4().hex), stores)


def test_what_a_process_left_unfinished_is_no_proposal_and_gives_way_in_time(
    tmp_path: Path, zookeeper: ZooKeeperServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = settings(tmp_path, zookeeper.hosts, uuid4().hex)
    node = f"/trimtab/{found.cluster.name}/proposals/{ONE.hash}"
    with client(zookeeper.hosts) as kazoo, closing(election_system(found).proposals()) as store:
        kazoo.create(f"{node}/0000", b"?", makepath=True)
        assert store.read_all() == ((), {})
        assert store.read(ONE.hash) is None
        with pytest.raises(ProposalRefusedError, match="just being proposed by another process"):
            store.add(ONE, CONTENT, now_ms=NOW)
        monkeypatch.setattr(zookeeper_proposals, "_UNFINISHED_MS", -1)
        assert list(store.read_all().unreadable) == [ONE.hash]
        store.add(ONE, CONTENT, now_ms=NOW)
        assert store.content(ONE.hash) == CONTENT


def test_junk_in_its_place_is_named_and_read_to_a_bound(tmp_path: Path, zookeeper: ZooKeeperServer) -> None:
    found = settings(tmp_path, zookeeper.hosts, uuid4().hex)
    root = f"/trimtab/{found.cluster.name}/proposals"
    with client(zookeeper.hosts) as kazoo, closing(election_system(found).proposals()) as store:
        kazoo.create(f"{root}/{'0' * 64}", b"x" * 900_000, makepath=True)
        kazoo.create(f"{root}/{'1' * 64}", b"{}")
        kazoo.create(f"{root}/readme", b"?")
        proposals, unreadable = store.read_all()
        assert (proposals, sorted(unreadable)) == ((), ["0" * 64, "1" * 64])
        with pytest.raises(WireError, match="too_large"):
            store.read("0" * 64)
        store.add(ONE, CONTENT, now_ms=NOW)
        kazoo.set(f"{root}/{ONE.hash}/0000", b"")
        with pytest.raises(WireError, match="bytes of content, and its head says"):
            store.content(ONE.hash)
