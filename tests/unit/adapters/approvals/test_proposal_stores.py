"""Proposals in a folder and in memory, by the contract of all stores; and what is not a proposal there."""

from pathlib import Path

import pytest

from controller.adapters.election.memory import MemoryProposals
from controller.adapters.folder.proposals import FileProposals
from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.proposals import ZooKeeperProposals
from controller.model.errors import NothingFoundError, WireError
from tests.contracts.proposals import CONTENT, ONE, OpenProposals, ProposalStoreContract
from tests.proposals import NOW, decision, decision_content


class TestFileProposals(ProposalStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> OpenProposals:
        return lambda: FileProposals(tmp_path, cluster="standalone")

    @pytest.fixture
    def of_another(self, tmp_path: Path) -> OpenProposals:
        return lambda: FileProposals(tmp_path, cluster="other")


class TestMemoryProposals(ProposalStoreContract):
    @pytest.fixture
    def store(self) -> OpenProposals:
        one = MemoryProposals()
        return lambda: one

    @pytest.fixture
    def of_another(self) -> OpenProposals:
        return MemoryProposals


def test_what_is_no_proposal_is_named_and_gives_way(tmp_path: Path) -> None:
    store = FileProposals(tmp_path, cluster="standalone")
    store.add(ONE, CONTENT, now_ms=NOW)
    head = tmp_path / "proposals" / ONE.hash / "head.json"
    head.write_bytes(head.read_bytes().replace(b'"decision"', b'"decisionn"'))
    (tmp_path / "proposals" / "readme").mkdir()
    proposals, unreadable = store.read_all()
    assert (proposals, list(unreadable)) == ((), [ONE.hash])
    with pytest.raises(WireError, match="kind"):
        store.read(ONE.hash)
    other = decision_content(1)
    store.add(decision(other), other, now_ms=NOW)
    assert [each.proposal.hash for each in store.read_all().proposals] == [decision(other).hash]


def test_a_head_that_lies_under_another_hash_is_refused(tmp_path: Path) -> None:
    store = FileProposals(tmp_path, cluster="standalone")
    store.add(ONE, CONTENT, now_ms=NOW)
    (tmp_path / "proposals" / ONE.hash).rename(tmp_path / "proposals" / ("0" * 64))
    with pytest.raises(WireError, match="it lies at 000000000000, and says that it is"):
        store.read("0" * 64)


_NO_HASHES = ["..", ".", "x", "a\0b", "0" * 63]


@pytest.mark.parametrize("key", _NO_HASHES)
def test_a_name_that_is_no_hash_is_no_proposal_in_a_folder(tmp_path: Path, key: str) -> None:
    store = FileProposals(tmp_path, cluster="standalone")
    assert store.read(key) is None
    with pytest.raises(NothingFoundError):
        store.content(key)


@pytest.mark.parametrize("key", _NO_HASHES)
def test_a_name_that_is_no_hash_is_not_asked_for_in_zookeeper(key: str) -> None:
    access = ZooKeeperAccess(hosts="127.0.0.1:1")
    store = ZooKeeperProposals(access=access, path="/trimtab", cluster="lab", session_timeout_seconds=1.0)
    assert store.read(key) is None
    with pytest.raises(NothingFoundError):
        store.content(key)


def test_a_hash_that_leads_elsewhere_is_none(tmp_path: Path) -> None:
    store = FileProposals(tmp_path / "election", cluster="standalone")
    store.add(ONE, CONTENT, now_ms=NOW)
    (tmp_path / "outside").mkdir()
    with pytest.raises(NothingFoundError):
        store.remove("../../outside")
    assert (tmp_path / "outside").exists()
