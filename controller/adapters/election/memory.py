"""Proposals in memory, for tests and the simulation."""

from controller.adapters.election.proposals import Proposals, no_proposal, read_each, stored_bytes, to_remove
from controller.model.proposals import Proposal, ProposalRecord, StoredProposal
from controller.wire.proposals import (
    encode_proposal_record,
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
        head, packed, record = stored_bytes(proposal, content)
        for key in to_remove(self.read_all(), proposal, len(packed), now_ms):
            self.remove(key)
        self.entries[proposal.hash] = (head, packed, record, 0)

    def read_all(self) -> Proposals:
        """See ProposalStore."""
        return read_each(self.entries, self.read)

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
