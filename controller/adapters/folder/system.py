"""A folder as a log system, and a file's lock as an election: no server at all."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from controller.adapters.disk.cluster_file import claim, refuse_another
from controller.adapters.folder.collectors import FileGroup, FolderCollectorLog
from controller.adapters.folder.controls import ELECTION_PATH, FileControls
from controller.adapters.folder.inbox import FolderInbox
from controller.adapters.folder.journal import FolderJournal, read_journal, refuse_another_journal
from controller.adapters.folder.leadership import FileLeadership, leader_in
from controller.adapters.folder.log import FolderCommandLog, FolderDeadLetterLog, FolderMetricsLog
from controller.adapters.folder.records import FolderRecords
from controller.adapters.folder.registry import FileRegistry
from controller.adapters.folder.retention import FolderRetention
from controller.adapters.folder.tail import FolderTail
from controller.model.journal import JournalEntry
from controller.ports.leadership import Leader
from controller.settings.trimtab_toml import Settings


class FolderSystem:
    """LogSystem in *folder*, which is one cluster's."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        """AnotherClusterError where the journal in *folder* is another cluster's."""
        self._folder, self._cluster = folder, settings.cluster.name
        refuse_another_journal(folder, self._cluster)
        self._whole_every_ms, self._kept_ms = settings.whole_every_ms, settings.folder_kept_ms

    def server(self) -> None:
        """See LogSystem."""

    def metrics(self) -> FolderMetricsLog:
        """See LogSystem."""
        return FolderMetricsLog(self._folder, cluster=self._cluster)

    def commands(self) -> FolderCommandLog:
        """See LogSystem."""
        return FolderCommandLog(self._folder)

    def dead_letters(self) -> FolderDeadLetterLog:
        """See LogSystem."""
        return FolderDeadLetterLog(self._folder)

    def retention(self) -> FolderRetention:
        """See LogSystem."""
        return FolderRetention(self._folder, kept_ms=self._kept_ms)

    def journal(self) -> FolderJournal:
        """See LogSystem."""
        return FolderJournal(self._folder, cluster=self._cluster, whole_every_ms=self._whole_every_ms)

    def decisions(self) -> Iterator[JournalEntry]:
        """See LogSystem."""
        return read_journal(self._folder)

    def inbox(self) -> FolderInbox:
        """See LogSystem."""
        return FolderInbox(self._folder, cluster=self._cluster)

    def collectors(self) -> FolderCollectorLog:
        """See LogSystem."""
        return FolderCollectorLog(self._folder, cluster=self._cluster)

    def tail(self) -> FolderTail:
        """See LogSystem."""
        return FolderTail(self._folder)

    def records(self) -> FolderRecords:
        """See LogSystem."""
        return FolderRecords(self._folder)


class FileElection:
    """ElectionSystem in *folder*, for the processes of one machine."""

    def __init__(self, folder: Path, *, cluster: str) -> None:
        """AnotherClusterError where *folder* is another's than *cluster*'s."""
        self._folder, self._cluster = folder, cluster
        with suppress(OSError):  # whoever uses it says what is wrong
            refuse_another(folder, cluster, key=ELECTION_PATH)

    def server(self) -> None:
        """See ElectionSystem."""

    def leadership(self) -> FileLeadership:
        """See ElectionSystem."""
        claim(self._folder, self._cluster, key=ELECTION_PATH)
        return FileLeadership(self._folder)

    def leader(self) -> Leader | None:
        """See ElectionSystem."""
        return leader_in(self._folder)

    def collectors(self) -> FileGroup:
        """See ElectionSystem."""
        claim(self._folder, self._cluster, key=ELECTION_PATH)
        return FileGroup(self._folder / "collectors")

    def controls(self) -> FileControls:
        """See ElectionSystem."""
        return FileControls(self._folder, cluster=self._cluster)

    def registry(self) -> FileRegistry:
        """See ElectionSystem."""
        return FileRegistry(self._folder, cluster=self._cluster)
