"""Proposals in ZooKeeper, beside the election.

<path>/<cluster>/proposals/<hash>             the head; empty until everything below is there
<path>/<cluster>/proposals/<hash>/record      approvals, rejections and progress, replaced by version
<path>/<cluster>/proposals/<hash>/0000 ...    the content, compressed, in parts of 512 KiB
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError, NotEmptyError

from controller.adapters.election.proposals import Proposals, is_hash, no_proposal, read_each, stored_bytes, to_remove
from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.node_client import NodeClient
from controller.model.errors import ControlsUnreachableError, ProposalRefusedError, WireError
from controller.model.proposals import Proposal, ProposalRecord, StoredProposal
from controller.wire.proposals import (
    MAX_HEAD_BYTES,
    encode_proposal_record,
    parse_head,
    parse_proposal_record,
    unpack,
)

#: ZooKeeper takes no more than 1 MiB in a node.
_PART_BYTES: Final = 512 * 1024
#: After this, what is not complete was left behind by a process that ended.
_UNFINISHED_MS: Final = 120_000


class ZooKeeperProposals:
    """ProposalStore in the node ``<path>/<cluster>/proposals``; connects when it is first used."""

    def __init__(self, *, access: ZooKeeperAccess, path: str, cluster: str, session_timeout_seconds: float) -> None:
        self._root = f"{path.rstrip('/')}/{cluster}/proposals"
        self._nodes = NodeClient(access, session_timeout_seconds)

    def add(self, proposal: Proposal, content: bytes, *, now_ms: int) -> None:
        """See ProposalStore."""
        head, packed, record = stored_bytes(proposal, content)
        node = f"{self._root}/{proposal.hash}"
        for key in to_remove(self.read_all(), proposal, len(packed), now_ms):
            self.remove(key)
        self._ask("ensure_path_async", self._root)
        try:
            self._ask("create_async", node, b"")
            for number, part in enumerate(_parts(packed)):
                self._ask("create_async", f"{node}/{number:04d}", part)
            self._ask("create_async", f"{node}/record", record)
            self._ask("set_async", node, head)
        except NodeExistsError as error:
            raise ProposalRefusedError(
                f"{proposal.hash[:12]} is just being proposed by another process: look again in two minutes"
            ) from error
        except NoNodeError as error:
            raise ControlsUnreachableError(
                f"{self._nodes.where(node)} was removed while it was written: try again"
            ) from error

    def read_all(self) -> Proposals:
        """See ProposalStore."""
        try:
            self._ask("sync_async", self._root)
            names = self._ask("get_children_async", self._root)
        except NoNodeError:
            return Proposals((), {})
        return read_each(names, self._look)

    def read(self, key: str) -> StoredProposal | None:
        """See ProposalStore."""
        if not is_hash(key):
            return None
        try:
            self._ask("sync_async", f"{self._root}/{key}")
            return self._look(key)
        except NoNodeError:
            return None

    def content(self, key: str) -> bytes:
        """See ProposalStore."""
        stored = self.read(key)
        if stored is None:
            raise no_proposal(key)
        packed = b"".join(self._content_parts(key, stored.size))
        if len(packed) != stored.size:
            raise WireError("bad_value", f"{len(packed)} bytes of content, and its head says {stored.size}")
        return unpack(packed)

    def write(self, key: str, record: ProposalRecord, version: int) -> bool:
        """See ProposalStore."""
        try:
            self._ask("set_async", f"{self._root}/{key}/record", encode_proposal_record(record), version=version)
        except (BadVersionError, NoNodeError):
            return False
        return True

    def remove(self, key: str) -> None:
        """See ProposalStore."""
        node = f"{self._root}/{key}"
        with suppress(NoNodeError):
            self._ask("set_async", node, b"")  # from now on nobody reads it
            for name in self._ask("get_children_async", node):
                with suppress(NoNodeError):
                    self._ask("delete_async", f"{node}/{name}")
            with suppress(NotEmptyError):  # somebody has begun it anew
                self._ask("delete_async", node)

    def close(self) -> None:
        """See ProposalStore."""
        self._nodes.close()

    def _look(self, key: str) -> StoredProposal | None:
        """The proposal *key*; None while it is not complete.  WireError where it cannot be read."""
        node = f"{self._root}/{key}"
        about = self._ask("exists_async", node)
        if about is None:
            return None
        if about.data_length > MAX_HEAD_BYTES:
            raise WireError("too_large", f"its head has {about.data_length} bytes, allowed: {MAX_HEAD_BYTES}")
        try:
            head, about = self._ask("get_async", node)
            if not head:
                if time.time() * 1000 - about.mtime > _UNFINISHED_MS:
                    raise WireError("bad_value", "a process ended while it was written")
                return None
            proposal, size = parse_head(bytes(head), key)
            value, about = self._ask("get_async", f"{node}/record")
        except NoNodeError:
            return None
        return StoredProposal(
            proposal=proposal, record=parse_proposal_record(bytes(value)), version=int(about.version), size=size
        )

    def _content_parts(self, key: str, size: int) -> Iterator[bytes]:
        for number in range(-(-size // _PART_BYTES)):
            try:
                value, _ = self._ask("get_async", f"{self._root}/{key}/{number:04d}")
            except NoNodeError as error:
                raise WireError("bad_value", f"part {number} of its content is gone") from error
            yield bytes(value)

    def _ask(self, request: str, node: str, *arguments: Any, **more: Any) -> Any:
        return self._nodes.ask(node, request, node, *arguments, **more)


def _parts(packed: bytes) -> Iterator[bytes]:
    return (packed[start : start + _PART_BYTES] for start in range(0, len(packed), _PART_BYTES))
