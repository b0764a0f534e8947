"""The rules that operators set about where bundles may go: isolation policies, anti-affinity groups, failure domains.

Data only; controller.strategies.filters applies it.

Pulsar: org.apache.pulsar.common.policies.impl.{NamespaceIsolationPolicies, NamespaceIsolationPolicyImpl,
MinAvailablePolicy}, LocalPolicies.namespaceAntiAffinityGroup, FailureDomain.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from controller.model.isolation import (
    BrokerAddresses,
    BrokerStatus,
    Governed,
    Isolation,
    IsolationPolicy,
    MinAvailable,
    isolation_rules,
)
from controller.model.topic_kinds import NON_PERSISTENT, PERSISTENT, KindFlags

__all__ = ["BrokerAddresses", "BrokerStatus", "IsolationPolicy", "MinAvailable", "Policies"]

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Policies:
    """All policies of a cluster as of one interval; the default has none.

    What of a policy cannot be read never permits a move: see :class:`controller.model.isolation.Isolation`.
    """

    #: In Pulsar's order: the first one that matches a namespace applies to it.
    isolation: tuple[IsolationPolicy, ...] = ()
    #: Namespace -> the policies in its own record, which are tried first; rows of ``isolation``.
    listed: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    #: Namespace -> group.  Names of groups are compared without case.
    anti_affinity_group: Mapping[str, str] = field(default_factory=dict)
    #: Broker -> failure domain.
    failure_domain: Mapping[str, str] = field(default_factory=dict)
    #: Broker -> its version of Pulsar, as it reports it.
    broker_version: Mapping[str, str] = field(default_factory=dict)
    #: Namespace -> what its policy says of splits and merges of segments (Pulsar 5.0), by Pulsar's names.
    auto_scale: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: Brokers that do not serve persistent topics, and brokers that do not serve non-persistent topics.
    without_persistent: frozenset[str] = frozenset()
    without_non_persistent: frozenset[str] = frozenset()

    @cached_property
    def rules(self) -> Isolation:
        """The isolation policies, ready to be asked.  It outlives the interval: the same policies have the same."""
        return isolation_rules(self.isolation)

    def governed(self, namespaces: Sequence[str]) -> list[Governed]:
        """What governs each of *namespaces*."""
        return self.rules.governed(namespaces, self.listed)

    def isolation_of(self, namespace: str) -> IsolationPolicy | None:
        """The isolation policy of *namespace*.  Pulsar: NamespaceIsolationPolicies.getPolicyByNamespace."""
        row = self.governed((namespace,))[0].row if self.isolation else None
        return None if row is None else self.isolation[row]

    def reserved(self, brokers: BrokerAddresses) -> NDArray[np.bool_]:
        """(brokers,) whether each is a primary broker of some policy, and so not open to other namespaces.

        Pulsar: the opposite of isSharedBroker.
        """
        return self.derived(("reserved", brokers), lambda: self.rules.reserved(brokers))

    def served_kinds(self, brokers: tuple[str, ...]) -> KindFlags:
        """(brokers,) the kinds of topics that each of *brokers* serves, as flags of topic_kinds.

        A broker whose record does not say so serves both, which is Pulsar's default.
        """

        def find() -> KindFlags:
            off = {PERSISTENT: self.without_persistent, NON_PERSISTENT: self.without_non_persistent}
            served = (sum(kind for kind, names in off.items() if broker not in names) for broker in brokers)
            return np.fromiter(served, np.uint8, len(brokers))

        return self.derived(("topic kinds", brokers), find)

    def group_of(self, namespace: str) -> str | None:
        """The anti-affinity group of *namespace*, in lower case; None if there is none or its name is blank."""
        group = self.anti_affinity_group.get(namespace, "")
        return group.lower() if group.strip() else None

    def governs(self, namespace: str) -> bool:
        """Whether *namespace* has an isolation policy or an anti-affinity group.  Pulsar: TopKBundles.hasPolicies."""
        return self.group_of(namespace) is not None or self.isolation_of(namespace) is not None

    def derived(self, key: Hashable, find: Callable[[], T]) -> T:
        """The result of *find*, computed once for each *key*.  The cache lives as long as this object: one interval."""
        if key not in self._derived:
            self._derived[key] = made = find()
            # All strategies of the interval share it.
            for each in made if isinstance(made, tuple) else (made,):
                if isinstance(each, np.ndarray):
                    each.flags.writeable = False
        value: T = self._derived[key]
        return value

    @cached_property
    def _derived(self) -> dict[Hashable, Any]:
        return {}
