"""Keep the brokers that the bundle's isolation policy names; for a bundle without one, those that no policy names.

Primary brokers take the namespace; secondary ones, too, while there are fewer primary ones than the policy wants.
Brokers are matched by host.  The answer may be no broker at all.  A primary broker that does not serve the bundle's
kinds of topics counts as one of those, as in Pulsar, so that no secondary one takes its place.

A policy that cannot be read leaves its namespaces no broker.  Of which brokers it is not known whether they are its
primary ones, these are closed to other namespaces; where that would be all brokers, those that serve its namespaces
are.

Pulsar: LoadManagerShared.applyNamespacePolicies, SimpleResourceAllocationPolicies
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from controller.model.decision import Reason
from controller.model.load import Bools, ClusterView, Ints
from controller.model.policies import IsolationPolicy
from controller.strategies.common.served_kinds import without_its_kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationPolicies:
    """See the module docstring.  A broker whose name has no port takes nothing, as in Pulsar."""

    reason: ClassVar[Reason] = Reason.ISOLATION_POLICY
    binding: ClassVar[bool] = True

    def keep(self, view: ClusterView, bundle: int, candidates: Ints) -> Ints:
        """The primary and perhaps the secondary *candidates*, or the shared ones where no policy applies."""
        policies, names = view.policies, view.brokers.names
        hosts, named = _hosts(names)
        if not named.all():
            candidates = candidates[named[candidates]]
        if policies.isolation:
            governed = policies.governed((view.bundles.namespaces[view.bundles.namespace[bundle]],))[0]
            if governed.why:
                return candidates[:0]
            if governed.row is not None:
                return _of_policy(view, bundle, policies.isolation[governed.row], hosts, candidates)
            closed = policies.derived(("closed", hosts), lambda: _closed(view, hosts))
            candidates = candidates[~closed[candidates]]
        return candidates


def _of_policy(
    view: ClusterView, bundle: int, policy: IsolationPolicy, hosts: tuple[str, ...], candidates: Ints
) -> Ints:
    rules, unfit = view.policies.rules, without_its_kinds(view, bundle)
    is_primary = rules.of_brokers(policy.primary, hosts)
    primary = is_primary[candidates]
    count = int(primary.sum())
    if unfit is not None:
        excluded = is_primary & unfit
        excluded[candidates] = False
        count += int(excluded.sum())
    if not policy.auto_failover.fails_over(count):
        return candidates[primary]
    return candidates[primary | rules.of_brokers(policy.secondary, hosts)[candidates]]


def _closed(view: ClusterView, hosts: tuple[str, ...]) -> Bools:
    """(brokers,) those that are closed to namespaces without a policy."""
    policies, table = view.policies, view.bundles
    closed = policies.reserved(hosts).copy()
    unclear = set(policies.rules.open_ended(hosts))
    if unclear:
        theirs = np.array([each.row in unclear for each in policies.governed(table.namespaces)], np.bool_)
        closed[table.broker[theirs[table.namespace] & table.owned]] = True
    return closed


@lru_cache(maxsize=4)
def _hosts(names: tuple[str, ...]) -> tuple[tuple[str, ...], Bools]:
    """The host of each broker, with the brackets of IPv6, and whether its name has a port."""
    cut = [name.rpartition(":") for name in names]
    return tuple(host for host, _, _ in cut), np.array([bool(colon) for _, colon, _ in cut], np.bool_)
