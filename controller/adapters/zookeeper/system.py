"""ZooKeeper as an election system."""

from controller.adapters.zookeeper.access import election_access
from controller.adapters.zookeeper.collectors import ZooKeeperGroup
from controller.adapters.zookeeper.controls import ZooKeeperControls
from controller.adapters.zookeeper.leadership import ZooKeeperLeadership
from controller.settings.election import ElectionInZooKeeper
from controller.settings.trimtab_toml import Settings


class ZooKeeperElection:
    """ElectionSystem in the ZooKeeper that *election* names."""

    def __init__(self, election: ElectionInZooKeeper, settings: Settings) -> None:
        self._access, self._path = election_access(election), election.path
        self._cluster, self._timeout = settings.cluster.name, election.session_timeout_seconds

    def leadership(self) -> ZooKeeperLeadership:
        """See ElectionSystem."""
        return ZooKeeperLeadership(
            access=self._access, path=self._path, cluster=self._cluster, session_timeout_seconds=self._timeout
        )

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
