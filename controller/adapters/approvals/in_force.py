"""What a controller obeys under a policy: approved changes of the controls, and orders of approved plans."""

from dataclasses import dataclass, replace

from controller.adapters.approvals.approved import ApprovedProposals
from controller.adapters.approvals.background import Work
from controller.adapters.approvals.granted import GrantedControls, ObeyedControls
from controller.adapters.election.proposals import ProposalStore
from controller.model.controls import MAX_DECISIONS, Controls, DecisionApproval, DecisionRejection, OperatorControls
from controller.model.proposals import ProposalState
from controller.settings.trimtab_toml import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Approvals:
    """What a controller demands before it obeys the stored controls.  Used from one thread."""

    granted: GrantedControls
    proposals: ApprovedProposals
    #: Of the settings.
    mode: str

    def obeyed(self, stored: OperatorControls, before: Controls | None, now_ms: int) -> ObeyedControls:
        """What is in force at *now_ms* of the *stored* controls, after *before* was in force.

        Whether orders still hold is for the caller: all that are there are verified.
        """
        orders = stored.orders
        why = "" if orders is None else self.proposals.why_not(orders, now_ms)
        released = frozenset[str]() if orders is None or why else self.proposals.released_by(orders)
        obeyed = self.granted.obeyed(stored, before, now_ms, released)
        obeyed = replace(obeyed, controls=self._with_decisions(obeyed.controls, now_ms))
        if orders is None or not why:
            return obeyed
        text = f"plan {orders.plan[:12]}, handed over by {orders.by}, is not approved: {why}"
        return replace(
            obeyed, controls=replace(obeyed.controls, orders=None), not_approved=(*obeyed.not_approved, text)
        )

    def _with_decisions(self, controls: OperatorControls, now_ms: int) -> OperatorControls:
        """*controls* with the decisions that signed statements approve or reject, in place of unsigned ones."""
        approvals, rejections = list[DecisionApproval](), list[DecisionRejection]()
        decisions = self.proposals.decisions(now_ms) if controls.mode_in_force(self.mode) == "approve" else ()
        for stored, standing in decisions:
            key, at_ms = stored.proposal.hash, stored.proposal.at_ms
            if standing.rejected_by:
                reason = standing.rejected_for
                rejections.append(DecisionRejection(decision=key, by=standing.rejected_by, reason=reason, at_ms=at_ms))
            elif standing.state is ProposalState.APPROVED:
                approvals.append(DecisionApproval(decision=key, by=standing.approved_by, at_ms=at_ms))
        return replace(
            controls, approvals=tuple(approvals[-MAX_DECISIONS:]), rejections=tuple(rejections[-MAX_DECISIONS:])
        )


def approvals_of(settings: Settings, store: ProposalStore, work: Work | None = None) -> Approvals | None:
    """What the policy of *settings* demands; None: nothing."""
    policy, cluster = settings.approvals, settings.cluster.name
    if not policy.demanded:
        return None
    return Approvals(
        granted=GrantedControls(policy, cluster=cluster, mode=settings.decisions.mode),
        proposals=ApprovedProposals(policy, store, cluster=cluster, work=work),
        mode=settings.decisions.mode,
    )
