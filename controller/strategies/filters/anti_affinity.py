"""Spread the namespaces of an anti-affinity group over failure domains, and within those over brokers.

What a broker owns of the group is counted, also of the bundle's own namespace, unless an option of trimtab's excludes
that: the modular load manager counts the namespaces of which the broker owns a bundle, each once; the extensible one
counts the bundles.  The domains with the
lowest count are kept, and of their brokers those with the lowest count; so at least one is left.
Only candidates add to their domain's count.  Brokers without a domain form one domain together.

The modular load manager also leaves a bundle alone where no other broker would own fewer namespaces of its group.

Pulsar: LoadManagerShared.filterAntiAffinityGroupOwnedBrokers, shouldAntiAffinityNamespaceUnload;
extensions.filter.AntiAffinityGroupPolicyFilter
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from controller.model.decision import Reason
from controller.model.load import UNOWNED, Bools, BundleTable, ClusterView, Ints
from controller.model.option import option
from controller.model.policies import Policies

#: The domain of brokers that are in none.  A domain to which an operator gave that name is the same one, as in Pulsar.
_DEFAULT_DOMAIN = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtAntiAffinity:
    """That of the extensible load manager: it decides where a bundle goes, not whether it goes."""

    reason: ClassVar[Reason] = Reason.ANTI_AFFINITY
    binding: ClassVar[bool] = False

    failure_domains: bool = option(
        "failureDomainsEnabled",
        default=False,
        meaning="spread anti-affinity groups over failure domains first, then over brokers",
    )
    counts_own_namespace: bool = option(
        "trimtabAntiAffinityCountsOwnNamespace",
        default=True,
        meaning="false: other bundles of a bundle's own namespace do not keep it from a broker, only other namespaces"
        " of its group do; Pulsar counts both",
    )

    def keep(self, view: ClusterView, bundle: int, candidates: Ints) -> Ints:
        """The *candidates* that own the least of the bundle's group; all of them where it has none."""
        counts = self.counts(view, bundle)
        if counts is None or not len(candidates):
            return candidates
        if self.failure_domains and view.policies.failure_domain:
            candidates = _of_emptiest_domains(view, counts, candidates)
        owned = counts[candidates]
        fewest: Ints = candidates[owned == owned.min()]
        return fewest

    def counts(self, view: ClusterView, bundle: int) -> Ints | None:
        """(brokers,) how much of the bundle's group each broker owns, or None when it is in no group."""
        return owned_bundles(view, bundle, with_own=self.counts_own_namespace)


@dataclass(frozen=True, slots=True, kw_only=True)
class AntiAffinity(ExtAntiAffinity):
    """That of the modular load manager: see the module docstring."""

    def counts(self, view: ClusterView, bundle: int) -> Ints | None:
        """(brokers,) how many namespaces of the bundle's group each broker owns, or None when it is in no group."""
        return owned_counts(view, bundle, with_own=self.counts_own_namespace)

    def may_leave(self, view: ClusterView, bundle: int, candidates: Ints) -> bool:
        """False where all *candidates* own equally many namespaces of the group, so a move would change nothing."""
        counts = self.counts(view, bundle)
        return counts is None or should_unload(counts, candidates, int(view.bundles.broker[bundle]))


def should_unload(counts: Ints, candidates: Ints, current: int) -> bool:
    """Whether some candidate can own fewer namespaces of the group than *current*; *counts* as of owned_counts."""
    if not counts.any():
        return True
    owned = counts[candidates]
    if not len(owned):
        return False
    least = int(owned.min())
    # A current broker that is no candidate counts as 0.
    return least == 0 or int(owned[candidates == current].sum()) > least or bool((owned != least).any())


def owned_counts(view: ClusterView, bundle: int, *, with_own: bool = True) -> Ints | None:
    """(brokers,) how many namespaces of the bundle's group each broker owns, or None when it is in no group.

    *with_own*: whether the bundle's own namespace counts.
    """
    bundles, policies, width = view.bundles, view.policies, len(view.brokers)
    group = policies.group_of(bundles.namespaces[bundles.namespace[bundle]])
    if group is None:
        return None
    member, pairs, counts = policies.derived(
        ("anti-affinity", group, bundles, width), lambda: _owned(policies, bundles, group, width)
    )
    own = int(bundles.namespace[bundle])
    if not with_own:
        first, last = np.searchsorted(pairs, [own * width, (own + 1) * width])
        counts = counts - np.bincount(pairs[first:last] % width, minlength=width)
    sent = view.preallocated
    if len(sent):
        namespace = bundles.namespace[sent.bundle]
        member = member if with_own else member & (np.arange(len(member)) != own)
        coming = np.unique((namespace * width + sent.broker)[member[namespace]])
        at = np.searchsorted(pairs, coming)
        owned = (at < len(pairs)) & (pairs[np.minimum(at, len(pairs) - 1)] == coming) if len(pairs) else at < 0
        counts = counts + np.bincount(coming[~owned] % width, minlength=width)
    return counts


def owned_bundles(view: ClusterView, bundle: int, *, with_own: bool = True) -> Ints | None:
    """(brokers,) how many bundles of the bundle's group each broker owns, or None when it is in no group.

    *with_own*: whether bundles of its own namespace count.  A bundle on its way counts where it goes, and no longer
    where it was; a released one does not count.
    """
    bundles, policies, width = view.bundles, view.policies, len(view.brokers)
    group = policies.group_of(bundles.namespaces[bundles.namespace[bundle]])
    if group is None:
        return None

    def count() -> tuple[Bools, Ints]:
        member = _members(policies, bundles, group)[bundles.namespace]
        return member, np.bincount(bundles.broker[member & bundles.owned], minlength=width)

    member, counts = policies.derived(("anti-affinity bundles", group, bundles, width), count)
    if not with_own:
        own = bundles.namespace == bundles.namespace[bundle]
        counts = counts - np.bincount(bundles.broker[own & member & bundles.owned], minlength=width)
        member = member & ~own
    sent, released = view.preallocated, view.released
    if len(sent) or released != UNOWNED:
        counts = counts.copy()
        if released != UNOWNED and member[released] and bundles.owned[released]:
            counts[bundles.broker[released]] -= 1
        # Of a bundle that was sent twice, the last time counts.
        where = dict(zip(sent.bundle.tolist(), sent.broker.tolist(), strict=True))
        for row, broker in where.items():
            if member[row]:
                counts[broker] += 1
                if bundles.owned[row]:
                    counts[bundles.broker[row]] -= 1
    return counts


def _members(policies: Policies, bundles: BundleTable, group: str) -> Bools:
    """(namespaces,) which are in *group*."""

    def rows() -> dict[str, list[int]]:
        members: dict[str, list[int]] = {}
        for row, name in enumerate(bundles.namespaces):
            of = policies.group_of(name)
            if of is not None:
                members.setdefault(of, []).append(row)
        return members

    # Once for all groups: thousands of them may be asked for.
    member = np.zeros(len(bundles.namespaces), np.bool_)
    member[policies.derived(("anti-affinity namespaces", bundles), rows)[group]] = True
    return member


def _owned(policies: Policies, bundles: BundleTable, group: str, width: int) -> tuple[Bools, Ints, Ints]:
    """(namespaces,) which are in *group*; every namespace * *width* + broker that go together; (width,) their count."""
    member = _members(policies, bundles, group)
    owned = bundles.ownership
    rows = member[owned.namespace]
    broker = owned.broker[rows]
    return member, owned.namespace[rows] * width + broker, np.bincount(broker, minlength=width)


def _of_emptiest_domains(view: ClusterView, counts: Ints, candidates: Ints) -> Ints:
    policies, names = view.policies, view.brokers.names
    code = policies.derived(("domains", names), lambda: _domain_codes(policies, names))[candidates]
    total = np.bincount(code, weights=counts[candidates])[code]
    emptiest: Ints = candidates[total == total.min()]
    return emptiest


def _domain_codes(policies: Policies, names: tuple[str, ...]) -> Ints:
    """(brokers,) a number for each broker's failure domain."""
    domains = [policies.failure_domain.get(name, _DEFAULT_DOMAIN) for name in names]
    number = {domain: i for i, domain in enumerate(sorted(set(domains)))}
    return np.array([number[domain] for domain in domains], np.int64)
