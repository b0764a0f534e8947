"""Proposals in the folder of a file election: a folder for each, ``proposals/<hash>``, beside ``controls.json``."""

import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from controller.adapters.disk import files
from controller.adapters.disk.cluster_file import claim, refuse_another
from controller.adapters.election.proposals import Proposals, is_hash, no_proposal, read_each, stored_bytes, to_remove
from controller.adapters.folder.changes_lock import changes_locked
from controller.adapters.folder.controls import ELECTION_PATH
from controller.model.errors import ControlsUnreachableError
from controller.model.proposals import Proposal, ProposalRecord, StoredProposal
from controller.settings.small_file import open_to_read
from controller.wire.proposals import (
    MAX_HEAD_BYTES,
    MAX_PACKED_BYTES,
    MAX_RECORD_BYTES,
    encode_proposal_record,
    parse_head,
    parse_proposal_record,
    unpack,
)


class FileProposals:
    """ProposalStore in *folder*, an election's.  AnotherClusterError where it is another cluster's."""

    def __init__(self, folder: Path, *, cluster: str) -> None:
        self._election, self._folder, self._cluster = folder, folder / "proposals", cluster

    def add(self, proposal: Proposal, content: bytes, *, now_ms: int) -> None:
        """See ProposalStore."""
        head, packed, record = stored_bytes(proposal, content)
        with self._locked():
            for key in to_remove(self.read_all(), proposal, len(packed), now_ms):
                self._delete(key)
            self._folder.mkdir(parents=True, exist_ok=True)
            # A folder that is renamed is complete; one that a killed process leaves is none of a hash.
            for unfinished in self._folder.glob(".*"):
                shutil.rmtree(unfinished, ignore_errors=True)
            unfinished = self._folder / f".{proposal.hash}.{uuid4().hex}"
            unfinished.mkdir()
            for name, value in (("head.json", head), ("content", packed), ("record.json", record)):
                files.create(unfinished / name, value)
            unfinished.rename(self._folder / proposal.hash)

    def read_all(self) -> Proposals:
        """See ProposalStore."""
        with self._errors():
            names = [path.name for path in self._paths()]
        return read_each(names, self.read)

    def read(self, key: str) -> StoredProposal | None:
        """See ProposalStore."""
        if not is_hash(key):
            return None
        with self._errors():
            try:
                proposal, size = parse_head(self._value(key, "head.json", MAX_HEAD_BYTES), key)
                value = self._value(key, "record.json", MAX_RECORD_BYTES)
            except (FileNotFoundError, NotADirectoryError):
                return None
        return StoredProposal(
            proposal=proposal, record=parse_proposal_record(value), version=zlib.crc32(value), size=size
        )

    def content(self, key: str) -> bytes:
        """See ProposalStore."""
        with self._errors():
            try:
                return unpack(self._value(key, "content", MAX_PACKED_BYTES))
            except (FileNotFoundError, NotADirectoryError) as error:
                raise no_proposal(key) from error

    def write(self, key: str, record: ProposalRecord, version: int) -> bool:
        """See ProposalStore."""
        value = encode_proposal_record(record)
        with self._locked():
            try:
                if zlib.crc32(self._value(key, "record.json", MAX_RECORD_BYTES)) != version:
                    return False
            except (FileNotFoundError, NotADirectoryError):
                return False
            files.replace(self._path(key) / "record.json", value)
            return True

    def remove(self, key: str) -> None:
        """See ProposalStore."""
        with self._locked():
            self._delete(key)

    def close(self) -> None:
        """See ProposalStore."""

    def _path(self, key: str) -> Path:
        if not is_hash(key):
            raise no_proposal(key)
        return self._folder / key

    def _paths(self) -> list[Path]:
        try:
            return list(self._folder.iterdir())
        except FileNotFoundError:
            return []

    def _delete(self, key: str) -> None:
        with self._errors():
            path = self._path(key)
            if path.exists():
                removed = path.with_name(f".{key}.{uuid4().hex}")
                path.rename(removed)  # from now on nobody reads it
                shutil.rmtree(removed, ignore_errors=True)

    def _value(self, key: str, name: str, max_bytes: int) -> bytes:
        """What the file *name* of *key* holds; at most one byte more than *max_bytes*, which its reader refuses."""
        with open_to_read(self._path(key) / name) as file:
            return file.read(max_bytes + 1)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._errors():
            self._election.mkdir(parents=True, exist_ok=True)
            claim(self._election, self._cluster, key=ELECTION_PATH)
            with changes_locked(self._election):
                yield

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            refuse_another(self._election, self._cluster, key=ELECTION_PATH)
            yield
        except OSError as error:
            raise ControlsUnreachableError(f"{error.filename or self._folder}: {error.strerror}") from error
