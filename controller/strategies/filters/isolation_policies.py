"""Keep the brokers that the bundle's isolation policy names; for a bundle without one, those that no policy names.

Primary brokers take the namespace; secondary ones, too, while there are fewer primary ones than the policy wants.
Brokers are matched by host; with ``match_ids``, as in Pulsar 5.0, an expression with a colon in it also matches a
broker's ``host:port``, so that brokers of one host are told apart.  The answer may be no broker at all.  A primary
broker that does not serve the bundle's kinds of topics counts as one of those, as in Pulsar, so that no secondary one
takes its place.

A policy that cannot be read leaves its namespaces no broker.  Of which brokers it is not known whether they are its
primary ones, these are closed to other namespaces; where that would be all brokers, those that serve its namespaces
are.

Pulsar: LoadManagerShared.applyNamespacePolicies, SimpleResourceAllocationPolicies, NamespaceIsolationPolicyImpl
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final

import numpy as np

from controller.model.decision import Reason
from controller.model.load import Bools, ClusterView, Ints
from controller.model.option import option
from controller.model.policies import BrokerAddresses, IsolationPolicy
from controller.strategies.common.served_kinds import without_its_kinds

#: The option that lets expressions match the port of a broker.
MATCH_IDS: Final = "trimtabIsolationPoliciesMatchBrokerIds"


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationPolicies:
    """See the module docstring.  A broker whose name has no port takes nothing, as in Pulsar."""

    reason: ClassVar[Reason] = Reason.ISOLATION_POLICY
    binding: ClassVar[bool] = True

    match_ids: bool = option(
        MATCH_IDS,
        default=False,
        meaning="true: an expression of an isolation policy with a colon in it also matches a broker's host:port, as in"
        " Pulsar 5.0; false: brokers are matched by host alone",
    )

    def keep(self, view: ClusterView, bundle: int, candidates: Ints) -> Ints:
        """The primary and perhaps the secondary *candidates*, or the shared ones where no policy applies."""
        policies, names = view.policies, view.brokers.names
        addresses, named = _addresses(names, self.match_ids)
        if not named.all():
            candidates = candidates[named[candidates]]
        if policies.isolation:
            governed = policies.governed((view.bundles.namespaces[view.bundles.namespace[bundle]],))[0]
            if governed.why:
                return candidates[:0]
            if governed.row is not None:
                return _of_policy(view, bundle, policies.isolation[governed.row], addresses, candidates)
            closed = policies.derived(("closed", addresses), lambda: _closed(view, addresses))
            candidates = candidates[~closed[candidates]]
        return candidates


def _of_policy(
    view: ClusterView, bundle: int, policy: IsolationPolicy, brokers: BrokerAddresses, candidates: Ints
) -> Ints:
    rules, unfit = view.policies.rules, without_its_kinds(view, bundle)
    is_primary = rules.of_brokers(policy.primary, brokers)
    primary = is_primary[candidates]
    count = int(primary.sum())
    if unfit is not None:
        excluded = is_primary & unfit
        excluded[candidates] = False
        count += int(excluded.sum())
    if not policy.auto_failover.fails_over(count):
        return candidates[primary]
    return candidates[primary | rules.of_brokers(policy.secondary, brokers)[candidates]]


def _closed(view: ClusterView, brokers: BrokerAddresses) -> Bools:
    """(brokers,) those that are closed to namespaces without a policy."""
    policies, table = view.policies, view.bundles
    closed = policies.reserved(brokers).copy()
    unclear = set(policies.rules.open_ended(brokers))
    if unclear:
        theirs = np.array([each.row in unclear for each in policies.governed(table.namespaces)], np.bool_)
        closed[table.broker[theirs[table.namespace] & table.owned]] = True
    return closed


@lru_cache(maxsize=4)
def _addresses(names: tuple[str, ...], match_ids: bool) -> tuple[BrokerAddresses, Bools]:
    """What the brokers *names* are matched by, and whether each name has a port."""
    return BrokerAddresses.of(names, match_ids=match_ids), np.array([":" in name for name in names], np.bool_)
