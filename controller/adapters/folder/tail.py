"""The end of a log in a folder, newest first."""

from collections.abc import Iterator
from pathlib import Path

from controller.adapters.folder.backwards import lines_backwards
from controller.adapters.folder.disk_errors import content_of, file_in
from controller.adapters.folder.journal import newest_decision, newest_epoch
from controller.adapters.folder.names import decision_files, is_ahead, record_files
from controller.model.decision import Decision
from controller.model.errors import JournalError
from controller.model.journal import JournalEntry
from controller.ports.systems import JournalTail, ReadTopic
from controller.wire.journal import DecisionEntry, DeltaEntry, to_decision
from controller.wire.journal_records import record_at


class FolderTail:
    """LogTail of the log in *folder*, which is one cluster's.  Files are named by time: the last is the newest."""

    endless = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def where(self) -> str:
        """See LogTail."""
        return str(self._folder)

    def backwards(self, topic: ReadTopic, wanted: tuple[bytes, ...]) -> Iterator[bytes]:
        """See LogTail.  A folder without files has no records."""
        for path in reversed([path for path in record_files(self._folder / topic) if not is_ahead(path)]):
            yield from lines_backwards(file_in(path), wanted)

    def journal_backwards(self, cluster: str) -> Iterator[bytes]:  # noqa: ARG002 -- see FolderSystem
        """See LogTail.  An entry is a file."""
        for path in reversed(decision_files(self._folder)):
            yield _entry_in(path)

    def last_entry(self, cluster: str, *, far: bool = True) -> JournalEntry | None:  # noqa: ARG002 -- see FolderSystem
        """See LogTail."""
        newest = newest_decision(self._folder)
        return None if newest is None else newest.entry

    def journal_tail(self, cluster: str, most: int, about: bytes) -> JournalTail:  # noqa: ARG002 -- see FolderSystem
        """See LogTail."""
        return JournalTail(tuple(self._newest(most, about)), newest_epoch(self._folder))

    def _newest(self, most: int, about: bytes) -> Iterator[Decision]:
        for path in decision_files(self._folder)[: -most - 1 : -1]:
            value = _entry_in(path)
            record = record_at(value, path) if about in value else None
            if isinstance(record, DecisionEntry | DeltaEntry):
                yield to_decision(record)


def _entry_in(path: Path) -> bytes:
    try:
        return content_of(path)
    except OSError as error:
        raise JournalError(f"{path}: cannot be read: {error.strerror}") from error
