"""The contract of controller.adapters.election.proposals.ProposalStore."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

import pytest

from controller.adapters.election.proposals import MAX_OF_AUTHOR, MAX_PROPOSALS, ProposalStore, change_record
from controller.model.errors import AnotherClusterError, NothingFoundError, ProposalRefusedError, WireError
from controller.model.proposals import ProposalProgress, ProposalRecord, ProposalState, StoredProposal
from controller.wire.proposals import MAX_PACKED_BYTES
from tests.proposals import HOUR, NOW, decision, decision_content, signed_by

#: One more process that uses the proposals of the same cluster; the fixture closes it at the end.
OpenProposals: TypeAlias = Callable[[], ProposalStore]

CONTENT = decision_content()
ONE = decision(CONTENT)
APPROVED = ProposalRecord(statements=(signed_by("ada", ONE.statement.statement),))


class ProposalStoreContract:
    """Inherited by the tests of each implementation, which give the fixtures ``store`` and ``of_another``."""

    def test_at_first_there_is_none(self, store: OpenProposals) -> None:
        one = store()
        assert one.read_all() == ((), {})
        assert one.read(ONE.hash) is None
        with pytest.raises(NothingFoundError, match="trimtab proposals list"):
            one.content(ONE.hash)
        one.remove(ONE.hash)

    def test_what_one_process_proposes_every_other_reads(self, store: OpenProposals) -> None:
        one, other = store(), store()
        one.add(ONE, CONTENT, now_ms=NOW)
        stored = other.read(ONE.hash)
        assert stored is not None
        assert (stored.proposal, stored.record) == (ONE, ProposalRecord())
        assert other.content(ONE.hash) == CONTENT
        assert other.read_all().proposals == (stored,)

    def test_a_content_of_several_parts_comes_back_whole(self, store: OpenProposals) -> None:
        content = decision_content(size=3_000_000)
        store().add(decision(content), content, now_ms=NOW)
        assert store().content(decision(content).hash) == content

    def test_a_record_is_replaced_by_who_knows_its_version(self, store: OpenProposals) -> None:
        one, other = store(), store()
        one.add(ONE, CONTENT, now_ms=NOW)
        before = one.read(ONE.hash)
        assert before is not None
        assert other.write(ONE.hash, APPROVED, before.version)
        assert not one.write(ONE.hash, ProposalRecord(), before.version)
        after = one.read(ONE.hash)
        assert after is not None
        assert (after.record, after.version != before.version) == (APPROVED, True)
        assert not one.write("0" * 64, APPROVED, 0)

    def test_two_that_change_a_record_at_once_lose_nothing(self, store: OpenProposals) -> None:
        one, other = store(), store()
        one.add(ONE, CONTENT, now_ms=NOW)
        statement, meanwhile = APPROVED.statements[0], [True]

        def with_one_more(now: StoredProposal) -> ProposalRecord:
            if meanwhile:
                meanwhile.clear()
                change_record(other, ONE.hash, with_one_more)
            return ProposalRecord(statements=(*now.record.statements, statement))

        assert change_record(one, ONE.hash, with_one_more).record.statements == (statement, statement)

    def test_what_waits_is_not_proposed_twice_and_what_has_ended_may_be(self, store: OpenProposals) -> None:
        one = store()
        one.add(ONE, CONTENT, now_ms=NOW)
        with pytest.raises(ProposalRefusedError, match="proposed already"):
            one.add(ONE, CONTENT, now_ms=NOW)
        again = decision(CONTENT, at_ms=NOW + 2 * HOUR)
        one.add(again, CONTENT, now_ms=NOW + 2 * HOUR)
        assert [each.proposal for each in one.read_all().proposals] == [again]

    def test_a_flood_of_one_author_is_refused(self, store: OpenProposals) -> None:
        one = store()
        contents = [decision_content(number) for number in range(MAX_OF_AUTHOR + 1)]
        for content in contents[:-1]:
            one.add(decision(content, author="mallory"), content, now_ms=NOW)
        with pytest.raises(ProposalRefusedError, match=f"mallory has {MAX_OF_AUTHOR} proposals that have not ended"):
            one.add(decision(contents[-1], author="mallory"), contents[-1], now_ms=NOW)
        one.add(decision(contents[-1], author="ada"), contents[-1], now_ms=NOW)

    def test_what_has_ended_gives_way_and_what_waits_does_not(self, store: OpenProposals) -> None:
        one = store()
        contents = [decision_content(number) for number in range(MAX_PROPOSALS + 1)]
        proposals = [
            decision(content, at_ms=NOW + number, author=f"person {number % 5}")
            for number, content in enumerate(contents)
        ]
        for proposal, content in zip(proposals[:-1], contents, strict=False):
            one.add(proposal, content, now_ms=NOW)
        with pytest.raises(ProposalRefusedError, match=f"{MAX_PROPOSALS} proposals of 0 MiB wait"):
            one.add(decision(contents[-1]), contents[-1], now_ms=NOW)
        done = ProposalRecord(progress=ProposalProgress(state=ProposalState.DONE))
        change_record(one, proposals[7].hash, lambda _: done)
        one.add(decision(contents[-1]), contents[-1], now_ms=NOW)
        hashes = {each.proposal.hash for each in one.read_all().proposals}
        assert proposals[7].hash not in hashes
        assert len(hashes) == MAX_PROPOSALS

    def test_one_that_is_too_large_is_refused(self, store: OpenProposals) -> None:
        content = decision_content(size=2 * MAX_PACKED_BYTES)
        with pytest.raises(WireError, match="too_large"):
            store().add(decision(content), content, now_ms=NOW)
        assert store().read_all().proposals == ()

    def test_a_proposal_that_is_removed_is_gone(self, store: OpenProposals) -> None:
        one, other = store(), store()
        one.add(ONE, CONTENT, now_ms=NOW)
        other.remove(ONE.hash)
        assert one.read(ONE.hash) is None
        one.add(ONE, CONTENT, now_ms=NOW)

    def test_those_of_one_cluster_are_no_others(self, store: OpenProposals, of_another: OpenProposals) -> None:
        store().add(ONE, CONTENT, now_ms=NOW)
        with suppress(AnotherClusterError):  # the place is one cluster's
            assert of_another().read_all().proposals == ()
