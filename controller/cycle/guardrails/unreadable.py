"""Bundles stay whose namespaces have, or might have, an isolation policy that cannot be read."""

from typing import Final

import numpy as np

from controller.model.decision import CLUSTER, Decision, Reason, Verdict
from controller.model.load import Bools, ClusterView
from controller.model.reasons import CONFIGURATION, Meaning

MEANINGS: Final = {Reason.ISOLATION_POLICY: Meaning(CONFIGURATION, "an isolation policy excludes the broker")}
#: ``by`` of the verdicts on isolation policies that cannot be read, and on such a one that might mean any namespace.
UNREADABLE_POLICIES: Final = "isolation_policies"
UNREADABLE_ANY: Final = "isolation_policies.any_namespace"
#: Maximum number of policies that verdicts name.
_NAMED: Final = 5


def unreadable(view: ClusterView, *, filtered: bool) -> Bools:
    """(bundles,) whether a bundle must stay: an isolation policy that its namespace has, or might, cannot be read."""
    protected = _protected_namespaces(view, filtered=filtered)
    of_bundles: Bools = protected[view.bundles.namespace] if protected.any() else np.zeros(len(view.bundles), np.bool_)
    return of_bundles


def about_unreadable(view: ClusterView, *, filtered: bool) -> list[Verdict]:
    """How many isolation policies cannot be read; whether one might mean any namespace; and why, of the first ones."""
    if not filtered or not view.policies.isolation or not (flaws := view.policies.rules.flaws):
        return []
    protected, more = int(_protected_namespaces(view, filtered=filtered).sum()), len(flaws) - _NAMED

    def verdict(by: str, detail: str, policies: int | None = None) -> Verdict:
        observed, unit = (None, "") if policies is None else (float(policies), "policies")
        return Verdict(
            subject=CLUSTER, reason=Reason.ISOLATION_POLICY, observed=observed, unit=unit, by=by, detail=detail
        )

    namespaces = len(view.bundles.namespaces)
    stay = f"they cannot be read; {protected} of {namespaces} namespaces with bundles stay where they are"
    notices = [verdict(UNREADABLE_POLICIES, stay, len(flaws))]
    if view.policies.rules.holds_all:
        notices.append(verdict(UNREADABLE_ANY, "an expression might mean any namespace: correct or delete it"))
    notices += [verdict(UNREADABLE_POLICIES, f"{why}; what it names stays where it is") for _, why in flaws[:_NAMED]]
    return [*notices, verdict(UNREADABLE_POLICIES, f"and {more} more")] if more > 0 else notices


def unreadable_policies(decision: Decision) -> tuple[int, bool]:
    """How many isolation policies could not be read, and whether one of them might name any namespace."""
    notices = [each for each in decision.verdicts if each.by in (UNREADABLE_POLICIES, UNREADABLE_ANY)]
    policies = next((int(each.observed) for each in notices if each.observed is not None), 0)
    return policies, any(each.by == UNREADABLE_ANY for each in notices)


def _protected_namespaces(view: ClusterView, *, filtered: bool) -> Bools:
    """(namespaces,) whether a namespace has, or might have, an isolation policy that cannot be read."""
    names = view.bundles.namespaces
    if not filtered or not view.policies.isolation or not names:
        return np.zeros(len(names), np.bool_)
    return np.array([bool(each.why) for each in view.policies.governed(names)], np.bool_)
