"""ZooKeeper as an election system."""

from typing import Final

from controller.adapters.election.systems import WatchedServer
from controller.adapters.zookeeper.access import election_access
from controller.adapters.zookeeper.collectors import ZooKeeperGroup
from controller.adapters.zookeeper.controls import ZooKeeperControls
from controller.adapters.zookeeper.leader import leader_of
from controller.adapters.zookeeper.leadership import ZooKeeperLeadership
from controller.adapters.zookeeper.notifications import ZooKeeperNotifications
from controller.adapters.zookeeper.proposals import ZooKeeperProposals
from controller.adapters.zookeeper.registry import ZooKeeperRegistry
from controller.adapters.zookeeper.unreachable import ZooKeeperLook
from controller.model.leadership import Leader
from controller.settings.election import ElectionInZooKeeper
from controller.settings.trimtab_toml import Settings

_ANSWER_SECONDS: Final = 5.0


class ZooKeeperElection:
    """ElectionSystem in the ZooKeeper that *election* names."""

    def __init__(self, election: ElectionInZooKeeper, settings: Settings) -> None:
        self._access, self._path = election_access(election), election.path
        self._cluster, self._timeout = settings.cluster.name, election.session_timeout_seconds

    def server(self) -> WatchedServer:
        """The server that it runs on."""
        look = ZooKeeperLook(self._access)
        return WatchedServer(
            name=f"ZooKeeper at {self._access.hosts}",
            advice="start ZooKeeper, or correct hosts in [election]",
            why=look.why,
            close=look.close,
        )

    def leadership(self) -> ZooKeeperLeadership:
        """See ElectionSystem."""
        return ZooKeeperLeadership(
            access=self._access, path=self._path, cluster=self._cluster, session_timeout_seconds=self._timeout
        )

    def leader(self) -> Leader | None:
        """See ElectionSystem."""
        return leader_of(self._access, self._path, self._cluster, answer_seconds=_ANSWER_SECONDS)

    def collectors(self) -> ZooKeeperGroup:
        """See ElectionSystem."""
        return ZooKeeperGroup(
            access=self._access, path=self._path, cluster=self._cluster, session_timeout_seconds=self._timeout
        )

    def controls(self) -> ZooKeeperControls:
        """See ElectionSystem."""
        return ZooKeeperControls(
            access=self._access, path=self._path, cluster=self._cluster, session_timeout_seconds=self._timeout
        )

    def proposals(self) -> ZooKeeperProposals:
        """See ElectionSystem."""
        return ZooKeeperProposals(
            access=self._access, path=self._path, cluster=self._cluster, session_timeout_seconds=self._timeout
        )

    def registry(self) -> ZooKeeperRegistry:
        """See ElectionSystem."""
        return ZooKeeperRegistry(
            access=self._access, path=self._path, cluster=self._cluster, session_timeout_seconds=self._timeout
        )

    def notifications(self) -> ZooKeeperNotifications:
        """See ElectionSystem."""
        return ZooKeeperNotifications(
            access=self._access, path=self._path, cluster=self._cluster, session_timeout_seconds=self._timeout
        )
