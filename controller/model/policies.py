"""The rules that operators set about where bundles may go: isolation policies, anti-affinity groups, failure domains.

Data only; controller.strategies.filters applies it.

Pulsar: org.apache.pulsar.common.policies.impl.{NamespaceIsolationPolicies, NamespaceIsolationPolicyImpl,
MinAvailablePolicy}, LocalPolicies.namespaceAntiAffinityGroup, FailureDomain.
"""

import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from controller.model.java_regex import expressions, matching

T = TypeVar("T")


@dataclass(frozen=True, slots=True, order=True)
class BrokerStatus:
    """A broker as a fail-over policy sees it; sorted by load, then by name."""

    #: Percent.
    load_factor: int
    address: str
    active: bool = field(compare=False, kw_only=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class MinAvailable:
    """Fail-over policy: secondary brokers serve too while fewer than ``min_limit`` primary brokers are available.

    The default never fails over.
    """

    min_limit: int = 0
    #: Percent; a broker at or above it is not available.  100: the load does not matter.
    usage_threshold: int = 100

    def is_available(self, status: BrokerStatus) -> bool:
        """Whether a broker can take bundles."""
        return status.active and (status.load_factor < self.usage_threshold or self.usage_threshold >= 100)

    def fails_over(self, primaries: int) -> bool:
        """Whether *primaries*, a number of available primary brokers, is below the limit."""
        return primaries < self.min_limit


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationPolicy:
    """Binds namespaces to brokers, both given as Java regular expressions of whole names (brokers: host, no port)."""

    namespaces: tuple[str, ...]
    #: Brokers that serve these namespaces and no others.
    primary: tuple[str, ...]
    #: Brokers that also take them while too few primary ones are available.
    secondary: tuple[str, ...] = ()
    auto_failover: MinAvailable = field(default_factory=MinAvailable)

    def applies_to(self, namespace: str) -> bool:
        """Whether this policy governs *namespace*."""
        return expressions(self.namespaces).match(namespace)

    def may_apply_to(self, namespace: str) -> bool:
        """As ``applies_to``; one with an expression for namespaces that is not understood might apply to any."""
        found = expressions(self.namespaces)
        return not found.understood or found.match(namespace)

    def fails_over(self, statuses: tuple[BrokerStatus, ...]) -> bool:
        """Whether too few of *statuses*, the primary brokers, are available."""
        return self.auto_failover.fails_over(sum(self.auto_failover.is_available(status) for status in statuses))

    def not_understood(self) -> tuple[str, ...]:
        """The expressions that cannot be translated to Python; see controller.model.java_regex."""
        listed = (self.namespaces, self.primary, self.secondary)
        return tuple(regex for regexes in listed for regex in expressions(regexes).not_understood)


@dataclass(frozen=True, kw_only=True)
class Policies:
    """All policies of a cluster as of one interval; the default has none.

    An expression that is not understood must never permit a move.  So a policy with such an expression among its
    *namespaces* applies to the namespaces whose records list it.  A broker expression that is not understood makes no
    broker primary or secondary, and keeps other namespaces off all brokers it might mean: see :meth:`reserved`.
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
    #: Brokers that do not serve persistent topics, and brokers that do not serve non-persistent topics.
    without_persistent: frozenset[str] = frozenset()
    without_non_persistent: frozenset[str] = frozenset()
    #: Bundles that are placed for a non-persistent topic.  Empty as read from the log, as when Pulsar sheds.
    non_persistent: frozenset[str] = frozenset()

    def isolation_of(self, namespace: str) -> IsolationPolicy | None:
        """The isolation policy of *namespace*.  Pulsar: NamespaceIsolationPolicies.getPolicyByNamespace."""
        if not self.isolation:
            return None
        return self.derived(("isolation", namespace), lambda: self._find(namespace))

    def _find(self, namespace: str) -> IsolationPolicy | None:
        for policy in (self.isolation[i] for i in self.listed.get(namespace, ())):
            if policy.may_apply_to(namespace):
                return policy
        texts, patterns = self._by_namespace
        first = texts.get(namespace, len(self.isolation))
        for row, pattern in patterns:
            if row >= first:
                break
            if pattern.fullmatch(namespace) is not None:
                return self.isolation[row]
        return self.isolation[first] if first < len(self.isolation) else None

    @cached_property
    def _by_namespace(self) -> tuple[dict[str, int], list[tuple[int, re.Pattern[str]]]]:
        """Name of a namespace -> the first policy that lists it as it is; and the patterns that have to be tried."""
        texts, patterns = dict[str, int](), list[tuple[int, re.Pattern[str]]]()
        for row, policy in enumerate(self.isolation):
            found = expressions(policy.namespaces)
            for text in found.texts:
                texts.setdefault(text, row)
            patterns += [(row, pattern) for pattern in found.patterns]
        return texts, patterns

    def reserved(self, hosts: tuple[str, ...]) -> NDArray[np.bool_]:
        """(hosts,) whether each is a primary broker of some policy, and so not open to other namespaces.

        All are, if an expression for primary brokers is not understood: it could match any host.
        Pulsar: the opposite of isSharedBroker.
        """

        def find() -> NDArray[np.bool_]:
            mask = np.zeros(len(hosts), np.bool_)
            for policy in self.isolation:
                mask |= matching(policy.primary, hosts) | (not expressions(policy.primary).understood)
            return mask

        return self.derived(("reserved", hosts), find)

    def group_of(self, namespace: str) -> str | None:
        """The anti-affinity group of *namespace*, in lower case; None if there is none or its name is blank."""
        group = self.anti_affinity_group.get(namespace, "")
        return group.lower() if group.strip() else None

    def governs(self, namespace: str) -> bool:
        """Whether *namespace* has an isolation policy or an anti-affinity group.  Pulsar: TopKBundles.hasPolicies."""
        return self.group_of(namespace) is not None or self.isolation_of(namespace) is not None

    @cached_property
    def not_understood(self) -> tuple[str, ...]:
        """The expressions of isolation policies that are not understood, each once."""
        return tuple(dict.fromkeys(regex for policy in self.isolation for regex in policy.not_understood()))

    def derived(self, key: Hashable, find: Callable[[], T]) -> T:
        """The result of *find*, computed once for each *key*.  The cache lives as long as this object: one interval."""
        if key not in self._derived:
            self._derived[key] = made = find()
            # All strategies of the interval share it.
            for each in made if isinstance(made, tuple) else (made,):
                if isinstance(each, np.ndarray):
                    each.flags.writeable = False
        found: T = self._derived[key]
        return found

    @cached_property
    def _derived(self) -> dict[Hashable, Any]:
        return {}
