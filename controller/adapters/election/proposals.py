"""The store of proposals, the same for every process of the cluster; and what bounds it."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from controller.adapters.election.retries import retried
from controller.model.errors import NothingFoundError, ProposalRefusedError, WireError
from controller.model.proposals import ENDED, Proposal, ProposalRecord, StoredProposal
from controller.wire.proposals import encode_head, encode_proposal_record, pack

#: Proposals that are stored at most, and of one author those that have not ended.
MAX_PROPOSALS: Final = 100
MAX_OF_AUTHOR: Final = 25
#: Bytes of all contents together, as they lie there: ZooKeeper has them in memory.
MAX_TOTAL_BYTES: Final = 64 * 1024 * 1024
#: Maximum number of entries of a store that are read, whatever lies there.
_MAX_READ: Final = 1000
_HASH: Final = re.compile("[0-9a-f]{64}")


class Proposals(NamedTuple):
    """All that is stored, the oldest first."""

    proposals: tuple[StoredProposal, ...]
    #: Hash -> why what lies there cannot be read.
    unreadable: Mapping[str, str]


class ProposalStore(Protocol):
    """The proposals of one cluster.  Nothing in it is trusted: signatures and hashes are checked by who uses it.

    Every method waits a few seconds at most for an answer, ``add`` and ``content`` for each part of a large content.
    ControlsUnreachableError where nothing answers.
    """

    def add(self, proposal: Proposal, content: bytes, *, now_ms: int) -> None:
        """Store *proposal* with *content*; one of the same hash that has ended is replaced.

        What has expired or ended gives way where there is no room.  ProposalRefusedError where it is stored already, or
        there are too many; WireError where it is too large.
        """
        ...

    def read_all(self) -> Proposals:
        """All proposals."""
        ...

    def read(self, key: str) -> StoredProposal | None:
        """The proposal with the hash *key*; None where there is none.  WireError where it cannot be read."""
        ...

    def content(self, key: str) -> bytes:
        """Its content.  NothingFoundError where there is none; WireError where it cannot be read."""
        ...

    def write(self, key: str, record: ProposalRecord, version: int) -> bool:
        """Replace its record if that still has *version*; otherwise change nothing and return False."""
        ...

    def remove(self, key: str) -> None:
        """Remove it, if it is there."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class StoredBytes(NamedTuple):
    """What a store holds of one proposal."""

    head: bytes
    content: bytes
    record: bytes


def stored_bytes(proposal: Proposal, content: bytes) -> StoredBytes:
    """*proposal* with *content* as it is stored before anybody decides on it; WireError where it is too large."""
    packed = pack(content)
    return StoredBytes(encode_head(proposal, len(packed)), packed, encode_proposal_record(ProposalRecord()))


def read_each(names: Iterable[str], read: Callable[[str], StoredProposal | None]) -> Proposals:
    """The proposals that *read* finds under those of *names* that are hashes."""
    proposals, unreadable = list[StoredProposal](), dict[str, str]()
    for key in sorted(filter(is_hash, names))[:_MAX_READ]:
        try:
            stored = read(key)
        except WireError as error:
            unreadable[key] = str(error)
            continue
        if stored is not None:
            proposals.append(stored)
    proposals.sort(key=lambda each: (each.proposal.at_ms, each.proposal.hash))
    return Proposals(tuple(proposals), unreadable)


def is_hash(name: str) -> bool:
    """Whether *name* can be the hash of a proposal: an address on the page may name anything, also ".."."""
    return _HASH.fullmatch(name) is not None


def has_ended(stored: StoredProposal, now_ms: int) -> bool:
    """Whether nothing happens to it any more, as it says itself."""
    return stored.record.progress.state in ENDED or (
        stored.proposal.expires_at_ms <= now_ms and stored.record.progress.holds_until_ms <= now_ms
    )


def to_remove(store: Proposals, new: Proposal, size: int, now_ms: int) -> Sequence[str]:
    """The hashes that give way for *new*, whose content takes *size* bytes; ProposalRefusedError where it has no room.

    What cannot be read goes first, then what has ended, the oldest first.
    """
    same = [each for each in store.proposals if each.proposal.hash == new.hash]
    if any(not has_ended(each, now_ms) for each in same):
        raise ProposalRefusedError(f"this is proposed already, by {same[0].proposal.author}: {new.hash[:12]}")
    ended = [each for each in store.proposals if has_ended(each, now_ms) and each not in same]
    waiting = [each for each in store.proposals if not has_ended(each, now_ms)]
    of_author = [each for each in waiting if each.proposal.author == new.author]
    if len(of_author) >= MAX_OF_AUTHOR:
        raise ProposalRefusedError(
            f"{new.author} has {len(of_author)} proposals that have not ended, allowed: {MAX_OF_AUTHOR}: reject some"
            " with `trimtab proposals reject`, or wait until they expire"
        )
    removed = [*store.unreadable, *(each.proposal.hash for each in same)]
    total = size + sum(each.size for each in (*waiting, *ended))
    number = 1 + len(waiting) + len(ended)
    for each in ended:
        if number <= MAX_PROPOSALS and total <= MAX_TOTAL_BYTES:
            break
        removed.append(each.proposal.hash)
        number, total = number - 1, total - each.size
    if number > MAX_PROPOSALS or total > MAX_TOTAL_BYTES:
        raise ProposalRefusedError(
            f"{len(waiting)} proposals of {total - size >> 20} MiB wait, allowed: {MAX_PROPOSALS} of"
            f" {MAX_TOTAL_BYTES >> 20} MiB: reject some with `trimtab proposals reject`, or wait until they expire"
        )
    return removed


def change_record(store: ProposalStore, key: str, how: Callable[[StoredProposal], ProposalRecord]) -> StoredProposal:
    """Replace the record of the proposal *key* by *how* of it; again where it changed meanwhile.

    NothingFoundError where there is none; TrimtabError where others were faster each time.
    """

    def attempt() -> StoredProposal | None:
        stored = require(store, key)
        return stored if store.write(key, how(stored), stored.version) else None

    retried(f"the proposal {key[:12]}", attempt)
    return require(store, key)


def require(store: ProposalStore, key: str) -> StoredProposal:
    """The proposal with the hash *key*, or NothingFoundError."""
    stored = store.read(key)
    if stored is None:
        raise no_proposal(key)
    return stored


def no_proposal(key: str) -> NothingFoundError:
    """That no proposal has the hash *key*."""
    return NothingFoundError(f"there is no proposal {key[:12]}: `trimtab proposals list` shows those that are stored")
