"""Proposals on cells.

proposals/<hash>            the head; empty until everything below is there
proposals/<hash>/record     approvals, rejections and progress, replaced by version
proposals/<hash>/0000 ...   the content, compressed, in parts of 512 KiB

The head owns the others, so they end together.
"""

import time
from typing import Final

from controller.adapters.election.proposals import Proposals, is_hash, no_proposal, read_each, stored_bytes, to_remove
from controller.log.election.cells import ABSENT, PROPOSALS
from controller.log.election.shared import unreachable
from controller.log.election.store import ElectionCells, end, has, put
from controller.model.errors import ControlsUnreachableError, ProposalRefusedError, WireError
from controller.model.proposals import Proposal, ProposalRecord, StoredProposal
from controller.wire.proposals import (
    MAX_HEAD_BYTES,
    encode_proposal_record,
    parse_head,
    parse_proposal_record,
    unpack,
)

_PART_BYTES: Final = 512 * 1024
#: After this, what is not complete was left behind by a process that ended.
_UNFINISHED_MS: Final = 120_000


class LogProposals:
    """ProposalStore on *cells*."""

    def __init__(self, cells: ElectionCells) -> None:
        self._cells = cells

    def add(self, proposal: Proposal, content: bytes, *, now_ms: int) -> None:
        """See ProposalStore."""
        head, packed, record = stored_bytes(proposal, content)
        root = f"{PROPOSALS}{proposal.hash}"
        for key in to_remove(self.read_all(), proposal, len(packed), now_ms):
            self.remove(key)
        with unreachable():
            started = self._cells.commit([has(root, ABSENT)], [put(root, b"")])
            if started is None:
                raise ProposalRefusedError(
                    f"{proposal.hash[:12]} is just being proposed by another process, or there is no room for it: look"
                    " again in two minutes"
                )
            for number, start in enumerate(range(0, len(packed), _PART_BYTES)):
                part = put(f"{root}/{number:04d}", packed[start : start + _PART_BYTES], root)
                self._require(self._cells.commit([has(root, started)], [part]))
            complete = [put(f"{root}/record", record, root), put(root, head)]
            self._require(self._cells.commit([has(root, started)], complete))

    def read_all(self) -> Proposals:
        """See ProposalStore."""
        with unreachable():
            self._cells.refresh()
        return read_each((key.removeprefix(PROPOSALS) for key, _ in self._cells.below(PROPOSALS)), self._look)

    def read(self, key: str) -> StoredProposal | None:
        """See ProposalStore."""
        if not is_hash(key):
            return None
        with unreachable():
            self._cells.refresh()
        return self._look(key)

    def content(self, key: str) -> bytes:
        """See ProposalStore."""
        stored = self.read(key)
        if stored is None:
            raise no_proposal(key)
        names = (f"{PROPOSALS}{key}/{number:04d}" for number in range(-(-stored.size // _PART_BYTES)))
        packed = b"".join(cell.value for name in names if (cell := self._cells.get(name)) is not None)
        if len(packed) != stored.size:
            raise WireError("bad_value", f"{len(packed)} bytes of content, and its head says {stored.size}")
        return unpack(packed)

    def write(self, key: str, record: ProposalRecord, version: int) -> bool:
        """See ProposalStore."""
        root = f"{PROPOSALS}{key}"
        name = f"{root}/record"
        change = put(name, encode_proposal_record(record), root)
        with unreachable():
            return self._cells.commit([has(name, version)], [change]) is not None

    def remove(self, key: str) -> None:
        """See ProposalStore."""
        with unreachable():
            self._cells.commit([], [end(f"{PROPOSALS}{key}")])

    def close(self) -> None:
        """See ProposalStore."""
        self._cells.close()

    def _look(self, key: str) -> StoredProposal | None:
        """The proposal *key*; None while it is not complete.  WireError where it cannot be read."""
        head = self._cells.get(f"{PROPOSALS}{key}")
        if head is None:
            return None
        if len(head.value) > MAX_HEAD_BYTES:
            raise WireError("too_large", f"its head has {len(head.value)} bytes, allowed: {MAX_HEAD_BYTES}")
        record = self._cells.get(f"{PROPOSALS}{key}/record")
        if record is None:
            if time.time() * 1000 - head.changed_ms > _UNFINISHED_MS:
                raise WireError("bad_value", "a process ended while it was written")
            return None
        proposal, size = parse_head(head.value, key)
        return StoredProposal(
            proposal=proposal, record=parse_proposal_record(record.value), version=record.version, size=size
        )

    def _require(self, written: int | None) -> None:
        if written is None:
            raise ControlsUnreachableError(
                "the proposal was removed while it was written, or there is no room for it: try again"
            )
