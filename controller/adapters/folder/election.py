"""A file's lock as an election: no server at all."""

from contextlib import suppress
from pathlib import Path

from controller.adapters.disk.cluster_file import claim, refuse_another
from controller.adapters.folder.controls import ELECTION_PATH, FileControls
from controller.adapters.folder.group import FileGroup
from controller.adapters.folder.leadership import FileLeadership, leader_in
from controller.adapters.folder.notifications import FileNotifications
from controller.adapters.folder.proposals import FileProposals
from controller.adapters.folder.registry import FileRegistry
from controller.model.leadership import Leader


class FileElection:
    """ElectionSystem in *folder*, for the processes of one machine."""

    def __init__(self, folder: Path, *, cluster: str) -> None:
        """AnotherClusterError where *folder* is another's than *cluster*'s."""
        self._folder, self._cluster = folder, cluster
        with suppress(OSError):  # using it reports what is wrong
            refuse_another(folder, cluster, key=ELECTION_PATH)

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

    def proposals(self) -> FileProposals:
        """See ElectionSystem."""
        return FileProposals(self._folder, cluster=self._cluster)

    def registry(self) -> FileRegistry:
        """See ElectionSystem."""
        return FileRegistry(self._folder, cluster=self._cluster)

    def notifications(self) -> FileNotifications:
        """See ElectionSystem."""
        return FileNotifications(self._folder, cluster=self._cluster)
