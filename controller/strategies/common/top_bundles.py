"""The bundles that a broker of the extensible load manager reports: those with most traffic, and no others.

Traffic is compared roughly, so that bundles that are nearly alike tie: throughput in by 100,000 bytes/s, throughput
out likewise, then msg/s by 100, then topics and connections by 500.  Which of those that tie make it into the report,
and in which order, follows from the selection by partition that Pulsar uses, and so from the order it starts with: a
hash map's there, by name here.

Pulsar: org.apache.pulsar.broker.loadbalance.extensions.models.TopKBundles, NamespaceBundleStats.compareTo
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from controller.model.load import THROUGHPUT_IN, THROUGHPUT_OUT, Bools, BundleTable, Floats, Ints
from controller.model.names import is_system_owned
from controller.model.option import option
from controller.strategies.common.bundle_stats_order import ascending, stats_keys

#: The partition can take as many rounds as there are bundles.  After so many the rest is sorted: the report holds
#: bundles of the same ranks then, but among equal ones perhaps others than Pulsar's.
_MAX_ROUNDS: Final = 64


@dataclass(frozen=True, kw_only=True)  # without slots: strategies that have another base with slots derive from it
class TopBundles:
    """Base of every strategy that knows the bundles by the brokers' reports: what such a report is limited to."""

    max_bundles: int = option(
        "loadBalancerMaxNumberOfBundlesInBundleLoadReport",
        default=10,
        unit="bundles",
        meaning="number of bundles with the most traffic that are considered on each broker",
    )
    with_policies: bool = option(
        "loadBalancerSheddingBundlesWithPoliciesEnabled",
        default=False,
        meaning="also move bundles of namespaces with isolation or anti-affinity policies",
    )
    excluded_namespaces: frozenset[str] = option(
        "loadBalancerSheddingExcludedNamespaces",
        default=frozenset(),
        meaning="bundles of these namespaces, separated by commas, are never unloaded; they are split all the same",
    )

    def reportable(
        self, bundles: BundleTable, has_policies: Bools | None = None, rows: Ints | slice = slice(None)
    ) -> Bools:
        """(rows,) which *bundles* a report may hold: with traffic, and neither Pulsar's own, nor excluded, nor bound by
        policies.

        ``has_policies``: (rows,) whether a bundle's namespace has an isolation or anti-affinity policy.
        """
        spaces, place = np.unique(bundles.namespace[rows], return_inverse=True)
        names = [bundles.namespaces[space] for space in spaces.tolist()]
        stays = np.array([is_system_owned(name) or name in self.excluded_namespaces for name in names], np.bool_)
        load = bundles.load[rows]
        may: Bools = load[:, THROUGHPUT_IN] + load[:, THROUGHPUT_OUT] != 0
        may &= ~stays[place]
        if has_policies is not None and not self.with_policies:
            may &= ~has_policies
        return may

    def of(self, bundles: BundleTable, rows: Ints) -> Ints:
        """The rows that are reported of *rows*, in ascending order of their traffic."""
        connections = bundles.topics[rows] + bundles.producers[rows] + bundles.consumers[rows]
        return rows[top(rank(bundles.load[rows], connections), self.max_bundles)][::-1]


def rank(load: Floats, connections: Ints) -> Ints:
    """(n,) places in ascending order of (n, 4) *load* and (n,) topics + connections; who ties has the same place."""
    keys = stats_keys(load, connections, np.zeros(len(load), np.int64))
    order = ascending(keys)
    differs = (keys[order][1:] != keys[order][:-1]).any(axis=1)
    places = np.zeros(len(order), np.int64)
    places[order[1:]] = differs.cumsum()
    return places


def top(ranks: Ints, k: int) -> Ints:
    """Positions of the *k* largest *ranks*, largest first; of equal ones those that the partition leaves in front.

    A three-way partition around the last of what is left, until the k-th place is settled; then all are sorted, stably.
    Pulsar: TopKBundles.partitionSort, which sorts the part in front of that place: what lies behind it is smaller.
    """
    k = max(min(k, len(ranks)), 0)
    largest_first = np.argsort(-ranks, kind="stable")[: k + 1]
    if np.diff(ranks[largest_first]).all():  # nobody ties for a place
        return largest_first[:k]
    rank_of = ranks.tolist()
    order = list(range(len(rank_of)))
    first, last, target = 0, len(order) - 1, k - 1
    for _ in range(_MAX_ROUNDS):
        above, below = _partition(order, rank_of, first, last)
        if target < above:
            last = above - 1
        elif target < below:
            break
        else:
            first = below
    return np.array(sorted(order, key=rank_of.__getitem__, reverse=True)[:k], np.int64)


def _partition(order: list[int], rank_of: list[int], first: int, last: int) -> tuple[int, int]:
    """Move larger ranks before, smaller ones behind those that equal the last one's; return where these begin, end."""
    pivot = rank_of[order[last]]
    at = first
    while at <= last:
        here = order[at]
        if rank_of[here] > pivot:
            order[first], order[at] = here, order[first]
            first += 1
            at += 1
        elif rank_of[here] < pivot:
            order[at], order[last] = order[last], here
            last -= 1
        else:
            at += 1
    return first, at
