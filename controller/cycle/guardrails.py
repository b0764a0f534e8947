"""Rules that hold commands back, whatever the strategies want; each says so in a verdict."""

from typing import Final

from controller.cycle.policy import Policy
from controller.model.controls import Controls
from controller.model.decision import Reason, Verdict
from controller.model.load import ClusterView

#: The subject of verdicts on the whole cluster.
CLUSTER: Final = "cluster"


def refusal_of(view: ClusterView, controls: Controls, samples: int, *, gap: bool, policy: Policy) -> Verdict | None:
    """Why nothing at all may be issued now, or None."""
    if not policy.balancer.enabled:
        return Verdict(subject=CLUSTER, reason=Reason.DISABLED, by="loadBalancerEnabled")
    if controls.mode == "observe":
        return Verdict(subject=CLUSTER, reason=Reason.OBSERVE_ONLY, by="mode")
    if controls.paused:
        return Verdict(subject=CLUSTER, reason=Reason.PAUSED, by="operator")
    if controls.stale:
        return Verdict(subject=CLUSTER, reason=Reason.STALE, by="stale_after_seconds")
    if samples < policy.warm_up_samples:
        reason = Reason.GAP if gap else Reason.WARMING_UP
        limit = float(policy.warm_up_samples)
        return Verdict(
            subject=CLUSTER, reason=reason, observed=float(samples), limit=limit, unit="samples", by="warm_up_samples"
        )
    active = len(view.brokers) + len(view.missing)
    share = len(view.missing) / active if active else 0.0
    if share > policy.freeze_share:
        unit, limit = "of the brokers missing", policy.freeze_share
        return Verdict(subject=CLUSTER, reason=Reason.FROZEN, observed=share, limit=limit, unit=unit, by="roster")
    return None


def switched_off(what: str) -> Verdict:
    """*what* (shed or split) is switched off in the settings."""
    return Verdict(subject=CLUSTER, reason=Reason.DISABLED, by=what)


def too_few_brokers(view: ClusterView, by: str) -> Verdict:
    """With one broker there is nothing to move or split."""
    observed = float(len(view.brokers))
    return Verdict(subject=CLUSTER, reason=Reason.NO_BROKERS, observed=observed, limit=2.0, unit="brokers", by=by)
