"""Proposals in memory, for tests and the simulation."""

from controller.adapters.election.proposals import Proposals, no_proposal, to_remove
from controller.model.errors import WireError
from controller.model.proposals import Proposal, ProposalRecord, StoredProposal
from controller.wire.proposals import (
    encode_head,
    encode_proposal_record,
    pack,
    parse_head,
    parse_proposal_record,
    unpack,
)


class MemoryProposals:
    """ProposalStore of this process alone, in bytes as others have them."""

    def __init__(self) -> None:
        #: Hash -> head, content, record and the record's version.  Tests forge them.
        self.entries: dict[str, tuple[bytes, bytes, bytes, int]] = {}

    def add(self, proposal: Proposal, content: bytes, *, now_ms: int) -> None:
        """See ProposalStore."""
        packed = pack(content)
        head, record = encode_head(proposal, len(packed)), encode_proposal_record(ProposalRecord())
        for key in to_remove(self.read_all(), proposal, len(packed), now_ms):
            self.remove(key)
        self.entries[proposal.hash] = (head, packed, record, 0)

    def read_all(self) -> Proposals:
        """See ProposalStore."""
        proposals, unreadable = list[StoredProposal](), dict[str, str]()
        for key in self.entries:
            try:
                stored = self.read(key)
            except WireError as error:
                unreadable[key] = str(error)
                continue
            if stored is not None:
                proposals.append(stored)
        proposals.sort(key=lambda each: (each.proposal.at_ms, each.proposal.hash))
        return Proposals(tuple(proposals), unreadable)

    def read(self, key: str) -> StoredProposal | None:
        """See ProposalStore."""
        if key not in self.entries:
            return None
        head, _, record, version = self.entries[key]
        proposal, size = parse_head(head, key)
        return StoredProposal(proposal=proposal, record=parse_proposal_record(record), version=version, size=size)

    def content(self, key: str) -> bytes:
        """See ProposalStore."""
        if key not in self.entries:
            raise no_proposal(key)
        return unpack(self.entries[key][1])

    def write(self, key: str, record: ProposalRecord, version: int) -> bool:
        """See ProposalStore."""
        value = encode_proposal_record(record)
        if key not in self.entries or self.entries[key][3] != version:
            return False
        head, packed, _, _ = self.entries[key]
        self.entries[key] = (head, packed, value, version + 1)
        return True

    def remove(self, key: str) -> None:
        """See ProposalStore."""
        self.entries.pop(key, None)

    def close(self) -> None:
        """See ProposalStore."""
