"""What a controller obeys under a policy: approved changes of the controls, and orders of approved plans."""

from dataclasses import dataclass, replace

from controller.adapters.approvals.approved import ApprovedProposals
from controller.adapters.approvals.background import Work
from controller.adapters.approvals.granted import GrantedControls, ObeyedControls
from controller.adapters.election.proposals import ProposalStore
from controller.model.controls import Controls, OperatorControls
from controller.settings.trimtab_toml import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Approvals:
    """What a controller demands before it obeys the stored controls.  Used from one thread."""

    granted: GrantedControls
    proposals: ApprovedProposals

    def obeyed(self, stored: OperatorControls, before: Controls | None, now_ms: int) -> ObeyedControls:
        """What is in force at *now_ms* of the *stored* controls, after *before* was in force."""
        obeyed, orders = self.granted.obeyed(stored, before, now_ms), stored.orders
        if orders is None or not orders.hold_at(now_ms):
            return obeyed
        why = self.proposals.why_not(orders, now_ms)
        if not why:
            return obeyed
        text = f"plan {orders.plan[:12]}, handed over by {orders.by}, is not approved: {why}"
        return replace(
            obeyed, controls=replace(obeyed.controls, orders=None), not_approved=(*obeyed.not_approved, text)
        )


def approvals_of(settings: Settings, store: ProposalStore, work: Work | None = None) -> Approvals | None:
    """What the policy of *settings* demands; None: nothing."""
    policy, cluster = settings.approvals, settings.cluster.name
    if not policy.demanded:
        return None
    return Approvals(
        granted=GrantedControls(policy, cluster=cluster, mode=settings.decisions.mode),
        proposals=ApprovedProposals(policy, store, cluster=cluster, work=work),
    )
