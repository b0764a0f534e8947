"""What operators laid down about where bundles may go: isolation policies, anti-affinity, domains, versions.

Facts only; what follows from them is the business of controller.strategies.filters.

Pulsar: org.apache.pulsar.common.policies.impl.{NamespaceIsolationPolicies, NamespaceIsolationPolicyImpl,
MinAvailablePolicy}, LocalPolicies.namespaceAntiAffinityGroup, FailureDomain.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from controller.model.java_regex import java_pattern, matches, matching

T = TypeVar("T")


@dataclass(frozen=True, slots=True, order=True)
class BrokerStatus:
    """A broker as a fail-over policy sees it; the less loaded, then the lower name, comes first."""

    #: Percent.
    load_factor: int
    address: str
    active: bool = field(compare=False, kw_only=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class MinAvailable:
    """Secondary brokers serve while fewer than so many primary ones are there.  The default never fails over."""

    min_limit: int = 0
    #: Percent; a broker at or above it is not available.  100 asks nothing of a broker's load.
    usage_threshold: int = 100

    def is_available(self, status: BrokerStatus) -> bool:
        """Whether a broker can take anything."""
        return status.active and (status.load_factor < self.usage_threshold or self.usage_threshold >= 100)

    def fails_over(self, primaries: int) -> bool:
        """Whether *primaries* are too few."""
        return primaries < self.min_limit


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationPolicy:
    """Namespaces and the brokers that are theirs: Java regular expressions for whole names, host without port."""

    namespaces: tuple[str, ...]
    primary: tuple[str, ...]
    secondary: tuple[str, ...] = ()
    auto_failover: MinAvailable = field(default_factory=MinAvailable)

    def applies_to(self, namespace: str) -> bool:
        """Whether *namespace* is one of its own."""
        return matches(self.namespaces, namespace)

    def is_primary(self, host: str) -> bool:
        """Whether *host* is there for these namespaces, and for no other."""
        return matches(self.primary, host)

    def is_secondary(self, host: str) -> bool:
        """Whether *host* steps in where primary brokers are too few."""
        return matches(self.secondary, host)

    def is_available_primary(self, status: BrokerStatus) -> bool:
        """Whether a broker is primary, and can take anything."""
        return self.is_primary(status.address) and self.auto_failover.is_available(status)

    def fails_over(self, statuses: tuple[BrokerStatus, ...]) -> bool:
        """Whether those of *statuses* that are available are too few."""
        return self.auto_failover.fails_over(sum(self.auto_failover.is_available(status) for status in statuses))

    def not_understood(self) -> tuple[str, ...]:
        """Those of its expressions that Python cannot read; see controller.model.java_regex."""
        return tuple(regex for regex in (*self.namespaces, *self.primary, *self.secondary) if not java_pattern(regex))


@dataclass(frozen=True, kw_only=True)
class Policies:
    """All that is laid down in a cluster as of one interval; the default lays down nothing.

    An expression that is not understood must not let anything through.  A policy whose *namespaces* cannot be read
    applies to the namespaces in whose records it stands; brokers that cannot be read are nobody's primary or secondary
    broker, and nobody else's either: see :meth:`reserved`.
    """

    #: In Pulsar's order: the first that matches a namespace is its own.
    isolation: tuple[IsolationPolicy, ...] = ()
    #: Namespace -> the policies that stand in its own record, which come first; rows of ``isolation``.
    listed: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    #: Namespace -> group.  Groups whose names differ in case only are one.
    anti_affinity_group: Mapping[str, str] = field(default_factory=dict)
    #: Broker -> failure domain.
    failure_domain: Mapping[str, str] = field(default_factory=dict)
    #: Broker -> version of its software, as it says it.
    broker_version: Mapping[str, str] = field(default_factory=dict)
    #: Brokers that do not serve persistent topics, and those that do not serve non-persistent ones.
    without_persistent: frozenset[str] = frozenset()
    without_non_persistent: frozenset[str] = frozenset()
    #: Bundles wanted for a non-persistent topic.  None as read from the log: a Pulsar that sheds knows of none either.
    non_persistent: frozenset[str] = frozenset()

    def isolation_of(self, namespace: str) -> IsolationPolicy | None:
        """The isolation policy of *namespace*.  Pulsar: NamespaceIsolationPolicies.getPolicyByNamespace."""
        if not self.isolation:
            return None
        return self.derived(("isolation", namespace), lambda: self._find(namespace))

    def _find(self, namespace: str) -> IsolationPolicy | None:
        for policy in (self.isolation[i] for i in self.listed.get(namespace, ())):
            if policy.applies_to(namespace) or any(java_pattern(regex) is None for regex in policy.namespaces):
                return policy
        return next((policy for policy in self.isolation if policy.applies_to(namespace)), None)

    def reserved(self, hosts: tuple[str, ...]) -> NDArray[np.bool_]:
        """(hosts,) which are primary in any policy and so closed to other namespaces.

        All of them, where a primary broker cannot be read: it might be any.  Pulsar: isSharedBroker, turned round.
        """

        def find() -> NDArray[np.bool_]:
            mask = np.zeros(len(hosts), np.bool_)
            for policy in self.isolation:
                mask |= matching(policy.primary, hosts) | any(java_pattern(regex) is None for regex in policy.primary)
            return mask

        return self.derived(("reserved", hosts), find)

    def group_of(self, namespace: str) -> str | None:
        """The anti-affinity group of *namespace*, in lower case; a blank one is none."""
        group = self.anti_affinity_group.get(namespace, "")
        return group.lower() if group.strip() else None

    def governs(self, namespace: str) -> bool:
        """Whether *namespace* has an isolation policy or an anti-affinity group.  Pulsar: TopKBundles.hasPolicies."""
        return self.group_of(namespace) is not None or self.isolation_of(namespace) is not None

    @cached_property
    def not_understood(self) -> tuple[str, ...]:
        """Expressions in isolation policies that cannot be read, each once."""
        return tuple(dict.fromkeys(regex for policy in self.isolation for regex in policy.not_understood()))

    def derived(self, key: Hashable, find: Callable[[], T]) -> T:
        """What *find* finds, looked for once in the life of these policies, which is one interval."""
        if key not in self._derived:
            self._derived[key] = find()
        found: T = self._derived[key]
        return found

    @cached_property
    def _derived(self) -> dict[Hashable, Any]:
        return {}
