"""An election system whose leader is elected by a Lease of Kubernetes; all else lies where it would lie without."""

from dataclasses import dataclass

from controller.adapters.election.collectors import CollectorGroup
from controller.adapters.election.controls import ControlStore
from controller.adapters.election.notifications import NotificationStore
from controller.adapters.election.proposals import ProposalStore
from controller.adapters.election.registry import Registry
from controller.adapters.election.systems import ElectionSystem
from controller.adapters.kubernetes.api import LeaseApi, lease_place
from controller.adapters.kubernetes.leadership import LeaseLeadership, leader_of
from controller.model.leadership import Leader
from controller.settings.election import LeaseSettings

#: An answer takes at most this part of the Lease's duration: several renewals fit into the time that a leader has.
_PART: float = 1 / 4


def lease_api(lease: LeaseSettings) -> LeaseApi:
    """The Lease that the settings name.  SettingsError where they leave out what no pod tells."""
    return LeaseApi(lease_place(lease), answer_seconds=lease.seconds * _PART)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseElection:
    """ElectionSystem: leadership by *lease*, everything else in *stores*."""

    stores: ElectionSystem
    lease: LeaseSettings
    cluster: str

    def leadership(self) -> LeaseLeadership:
        """See ElectionSystem."""
        return LeaseLeadership(
            lease_api(self.lease), cluster=self.cluster, seconds=self.lease.seconds, epochs=self.stores.controls()
        )

    def leader(self) -> Leader | None:
        """See ElectionSystem."""
        api = lease_api(self.lease)
        try:
            return leader_of(api, self.cluster)
        finally:
            api.close()

    def collectors(self) -> CollectorGroup:
        """See ElectionSystem."""
        return self.stores.collectors()

    def controls(self) -> ControlStore:
        """See ElectionSystem."""
        return self.stores.controls()

    def proposals(self) -> ProposalStore:
        """See ElectionSystem."""
        return self.stores.proposals()

    def registry(self) -> Registry:
        """See ElectionSystem."""
        return self.stores.registry()

    def notifications(self) -> NotificationStore:
        """See ElectionSystem."""
        return self.stores.notifications()
