"""Rules that hold commands back, whatever the strategies chose; each gives a verdict."""

from typing import Final

import numpy as np

from controller.cycle.own_balancing import BY_BROKERS, BY_UNKNOWN
from controller.cycle.pace import CATCHING_UP, catching_up
from controller.cycle.policy import Policy
from controller.model.controls import Controls
from controller.model.decision import CLUSTER, Decision, Reason, Verdict
from controller.model.load import Bools, ClusterView
from controller.model.memory import Memory
from controller.model.names import is_untouchable
from controller.model.some_of import some_of

#: ``by`` of each verdict that holds back all commands of an interval, in the order in which the rules are asked: those
#: of this module, then those of decide.py.  ``trimtab explain`` shows them.
REFUSALS: Final = (
    "loadBalancerEnabled", "controls", "mode", "operator", "guardrails.maintenance", "stale_after_seconds",
    BY_BROKERS, BY_UNKNOWN, CATCHING_UP, "warm_up_samples", "roster", "guardrails.freeze_intervals",
    "guardrails.breaker",
)  # fmt: skip
#: ``by`` of the verdict on a bundle that was unloaded a short while ago.
GRACE_PERIOD: Final = "loadBalancerSheddingGracePeriodMinutes"
#: ``by`` of the verdicts on isolation policies that cannot be read, and on such a one that might mean any namespace.
UNREADABLE_POLICIES: Final = "isolation_policies"
UNREADABLE_ANY: Final = "isolation_policies.any_namespace"
#: Maximum number of namespaces, or of policies, that verdicts name.
_TOLD: Final = 5


def refusal_of(
    view: ClusterView,
    controls: Controls,
    memory: Memory,
    samples: int,
    *,
    gap: bool,
    policy: Policy,
    brokers_balance: Verdict | None = None,
) -> Verdict | None:
    """Why no command may be issued now, or None.  *memory*: that before this interval.

    *brokers_balance* forbids commands in mode active.
    """
    rivals = brokers_balance if controls.mode == "active" else None
    forbidden = _forbidden(controls, policy) or rivals or catching_up(view.as_of_ms, controls, memory, policy.period_ms)
    if forbidden is not None:
        return forbidden
    if samples < policy.warm_up_samples:
        reason = Reason.GAP if gap else Reason.WARMING_UP
        limit = float(policy.warm_up_samples)
        return Verdict(
            subject=CLUSTER, reason=reason, observed=float(samples), limit=limit, unit="samples", by="warm_up_samples"
        )
    active = len(view.brokers) + len(view.missing)
    share = len(view.missing) / active if active else 0.0
    if share > policy.limits.freeze_share:
        unit, limit = "of the brokers missing", policy.limits.freeze_share
        return Verdict(subject=CLUSTER, reason=Reason.FROZEN, observed=share, limit=limit, unit=unit, by="roster")
    return None


def _forbidden(controls: Controls, policy: Policy) -> Verdict | None:
    """Why the operator, a maintenance window or the age of the data forbids commands, or None."""
    if not policy.balancer.enabled:
        return Verdict(subject=CLUSTER, reason=Reason.DISABLED, by="loadBalancerEnabled")
    if controls.unknown:
        return Verdict(subject=CLUSTER, reason=Reason.CONTROLS_UNKNOWN, by="controls", detail=controls.unknown)
    who = f"{controls.by}: {controls.reason}" if controls.by else ""
    if controls.mode == "observe":
        return Verdict(subject=CLUSTER, reason=Reason.OBSERVE_ONLY, by="mode", detail=who)
    if controls.paused:
        detail = "; ".join(map(str, controls.pauses)) or who
        return Verdict(subject=CLUSTER, reason=Reason.PAUSED, by="operator", detail=detail)
    if controls.maintenance:
        by = "guardrails.maintenance"
        return Verdict(subject=CLUSTER, reason=Reason.MAINTENANCE, by=by, detail=controls.maintenance)
    if controls.stale:
        return Verdict(subject=CLUSTER, reason=Reason.STALE, by="stale_after_seconds")
    return None


def in_grace(view: ClusterView, bundle: str) -> Verdict | None:
    """Why *bundle* is left alone if it was unloaded within the grace period, whichever strategy chose it; else None.

    A person's plan may move it.
    """
    row = view.bundles.code_of.get(bundle)
    if row is None or not view.recently_unloaded[row]:
        return None
    detail = "chosen by a strategy within its grace period: it stays"
    return Verdict(subject=bundle, reason=Reason.RECENTLY_UNLOADED, by=GRACE_PERIOD, detail=detail)


def undescribed(view: ClusterView, policy: Policy) -> Bools:
    """(bundles,) whether a bundle must stay because no namespace_state record describes its namespace.

    Its isolation policy and anti-affinity group are not known then, so a move might violate them.
    """
    unknown = (view.namespace_bundle_count < 0) & (not policy.limits.move_undescribed)
    of_bundles: Bools = unknown[view.bundles.namespace] if len(view.bundles) else np.zeros(0, np.bool_)
    return of_bundles


def about_undescribed(view: ClusterView, mask: Bools) -> list[Verdict]:
    """One verdict on the namespaces of the bundles in *mask*, without Pulsar's own; none if there are no others."""
    names = [view.bundles.namespaces[row] for row in np.unique(view.bundles.namespace[mask]).tolist()]
    names = [name for name in names if not is_untouchable(name)]
    if not names:
        return []
    return [
        Verdict(
            subject=CLUSTER,
            reason=Reason.NAMESPACE_UNKNOWN,
            observed=float(len(names)),
            unit="namespaces",
            by="guardrails.move_undescribed",
            detail=f"no namespace_state of {some_of(names, _TOLD)}: their bundles stay where they are",
        )
    ]


def unreadable(view: ClusterView, policy: Policy) -> Bools:
    """(bundles,) whether a bundle must stay: an isolation policy that its namespace has, or might, cannot be read."""
    held = _held(view, policy)
    of_bundles: Bools = held[view.bundles.namespace] if held.any() else np.zeros(len(view.bundles), np.bool_)
    return of_bundles


def about_unreadable(view: ClusterView, policy: Policy) -> list[Verdict]:
    """How many isolation policies cannot be read; whether one might mean any namespace; and why, of the first ones."""
    if not policy.filters or not view.policies.isolation or not (flaws := view.policies.rules.flaws):
        return []
    held, more = int(_held(view, policy).sum()), len(flaws) - _TOLD

    def verdict(by: str, detail: str, policies: int | None = None) -> Verdict:
        observed, unit = (None, "") if policies is None else (float(policies), "policies")
        return Verdict(
            subject=CLUSTER, reason=Reason.ISOLATION_POLICY, observed=observed, unit=unit, by=by, detail=detail
        )

    stay = f"they cannot be read; {held} of {len(view.bundles.namespaces)} namespaces with bundles stay where they are"
    found = [verdict(UNREADABLE_POLICIES, stay, len(flaws))]
    if view.policies.rules.holds_all:
        found.append(verdict(UNREADABLE_ANY, "an expression might mean any namespace: correct or delete it"))
    found += [verdict(UNREADABLE_POLICIES, f"{why}; what it names stays where it is") for _, why in flaws[:_TOLD]]
    return [*found, verdict(UNREADABLE_POLICIES, f"and {more} more")] if more > 0 else found


def unreadable_policies(decision: Decision) -> tuple[int, bool]:
    """How many isolation policies could not be read, and whether one of them might name any namespace."""
    found = [each for each in decision.verdicts if each.by in (UNREADABLE_POLICIES, UNREADABLE_ANY)]
    policies = next((int(each.observed) for each in found if each.observed is not None), 0)
    return policies, any(each.by == UNREADABLE_ANY for each in found)


def _held(view: ClusterView, policy: Policy) -> Bools:
    """(namespaces,) whether a namespace has, or might have, an isolation policy that cannot be read."""
    names = view.bundles.namespaces
    if not policy.filters or not view.policies.isolation or not names:
        return np.zeros(len(names), np.bool_)
    return np.array([bool(each.why) for each in view.policies.governed(names)], np.bool_)


def switched_off(what: str) -> Verdict:
    """Verdict: *what* (shed or split) is switched off in the settings."""
    return Verdict(subject=CLUSTER, reason=Reason.DISABLED, by=what)


def too_few_brokers(view: ClusterView, by: str) -> Verdict:
    """Verdict: with fewer than two brokers there is nothing to move or split."""
    observed = float(len(view.brokers))
    return Verdict(subject=CLUSTER, reason=Reason.NO_BROKERS, observed=observed, limit=2.0, unit="brokers", by=by)
