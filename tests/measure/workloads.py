"""Seeded clusters whose namespaces are workloads that Twitter published: 3 to 300 brokers, also of unequal sizes.

Some clusters are divided into pools by isolation policies, and in some the namespaces are in anti-affinity groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from controller.bench.clusters import skewed
from controller.model.isolation import IsolationPolicy
from controller.model.load import BrokerTable, ClusterView, Floats, Ints
from controller.model.names import BundleName, default_boundaries
from controller.model.policies import Policies
from tests.measure.balance import with_load

#: Of 51 of 54 workloads: thousand requests/s, bytes of a key and its value, and the exponent of the popularity of keys
#: (github.com/twitter/cache-trace, stat/2020Mar.md, CC BY 4.0); of the other three the exponent is not known.
WORKLOADS: Final = (
    *((11.4, 347, 2.6774), (12.15, 89, 1.4908), (1.36, 139, 1.6414), (5.26, 2506, 1.1004), (12.61, 296, 1.882)),
    *((1.62, 1953, 1.0666), (2.11, 9520, 1.7366), (18.83, 71, 1.6796), (0.22, 2355, 0), (4.16, 194, 1.4891)),
    *((4.36, 1074, 0.3048), (1.34, 4310, 0.4565), (5.81, 510, 1.2959), (9.02, 120, 0.0242), (17.51, 133, 1.7862)),
    *((0.35, 231, 2.1106), (26.4, 55, 2.0994), (3.31, 143, 0.735), (5.63, 81, 1.3699), (2.18, 26, 0.0521)),
    *((3.24, 58, 0.7624), (8.69, 259, 0.274), (5.29, 731, 1.3726), (18.97, 77, 0.9929), (0.25, 1867, 0.6299)),
    *((24.55, 74, 1.065), (9.05, 130, 1.503), (10.73, 835, 1.2323), (3.85, 711, 1.4259), (2.52, 56, 0), (7.35, 179, 0)),
    *((10.53, 1142, 1.354), (3.4, 355, 1.1401), (3.06, 1815, 0), (9.08, 101, 1.2169), (4.15, 20206, 0.4251)),
    *((2.52, 226, 0), (2.52, 121, 0), (6.26, 199, 0.8551), (5.18, 215, 0.8542), (6.84, 4743, 1.5974)),
    *((9.41, 47, 1.4084), (0.33, 130, 0.6372), (9.54, 311, 2.0637), (1.84, 114, 0.8191), (1.25, 10702, 1.5095)),
    *((0.24, 67503, 1.2816), (10.4, 265, 1.9745), (24.25, 293, 1.2117), (1.38, 9249, 1.2061), (0.65, 265, 1.611)),
)
_FEWEST: Final = 3
LARGEST: Final = 300
_BUNDLES_OF_A_BROKER: Final = (4, 40)
_BUNDLES_OF_A_NAMESPACE: Final = (4, 8, 16, 32, 64)
_TOPICS_OF_A_BUNDLE: Final = 20
#: Every second broker is so large, as a multiple of the others.
_CAPACITIES: Final = (1.0, 1.0, 2.0, 4.0)
#: As often as they are here.
KINDS: Final = ("plain", "plain", "pools", "groups")
_MOST_POOLS: Final = 4
#: The load of a pool for its capacity, as a multiple of that of the cluster.
_POOL_LOAD: Final = (0.7, 1.3)
#: A group has as many namespaces as half of the brokers; so large a part of the namespaces is in one.
_GROUPED: Final = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A cluster of a seed."""

    view: ClusterView
    #: One of KINDS.
    kind: str
    #: Every second broker is so many times as large as the others.
    capacities: float
    #: (n,) the pool of each broker.
    pools: Ints


def drawn(seed: int, *, largest: int = LARGEST) -> Drawn:
    """The cluster of *seed*, of *largest* brokers at most."""
    chance = np.random.default_rng(seed)
    brokers = int(np.exp(chance.uniform(*np.log((_FEWEST, largest + 1)))))
    bundles = brokers * int(chance.integers(*_BUNDLES_OF_A_BROKER, endpoint=True))
    capacities, kind = float(chance.choice(_CAPACITIES)), str(chance.choice(KINDS))
    limit = np.where(np.arange(brokers) % 2, 100.0 * capacities, 100.0)
    sizes = _namespaces(chance, bundles)
    most = int(chance.integers(2, _MOST_POOLS, endpoint=True)) if kind == "pools" else 1
    number = min(most, len(sizes), brokers)
    pools = np.sort(np.arange(brokers) % number)
    of_bundle: Ints = np.repeat(np.arange(len(sizes)) * number // len(sizes), sizes)
    rate, size = _load(chance, sizes)
    view = skewed(brokers, len(rate), seed=seed)
    view = replace(
        view,
        brokers=replace(view.brokers, limit=np.repeat(limit[:, None], 5, axis=1)),
        bundles=replace(view.bundles, broker=_owners(view.bundles.broker, pools, of_bundle)),
    )
    view = _named(view, sizes, of_bundle)
    policies = _isolation(view.brokers, pools) if kind == "pools" else Policies()
    policies = _groups(chance, view.bundles.namespaces, brokers) if kind == "groups" else policies
    part = _pool_share(chance, pools, limit)[of_bundle]
    rate = rate * (part / np.bincount(of_bundle, weights=rate)[of_bundle])
    view = with_load(replace(view, policies=policies), rate / rate.mean(), size / size.mean())
    return Drawn(view=view, kind=kind, capacities=capacities, pools=pools)


def _namespaces(chance: np.random.Generator, bundles: int) -> list[int]:
    """The number of bundles of each namespace: *bundles* in all, or a few more."""
    sizes: list[int] = []
    while sum(sizes) < bundles:
        sizes.append(int(chance.choice(_BUNDLES_OF_A_NAMESPACE)))
    return sizes


def _load(chance: np.random.Generator, sizes: Sequence[int]) -> tuple[Floats, Floats]:
    """(bundles,) messages/s and bytes of each: a namespace is a workload, whose topics hashes deal to its bundles."""
    rates, lengths = list[Floats](), list[Floats]()
    for size, number in zip(sizes, chance.integers(0, len(WORKLOADS), len(sizes)).tolist(), strict=True):
        requests, length, exponent = WORKLOADS[number]
        topics = np.arange(1, _TOPICS_OF_A_BUNDLE * size + 1, dtype=np.float64) ** -exponent
        dealt = np.bincount(chance.integers(0, size, len(topics)), weights=topics, minlength=size)
        rates.append(requests * dealt / dealt.sum())
        lengths.append(np.full(size, float(length)))
    return np.concatenate(rates), np.concatenate(lengths)


def _owners(owner: Ints, pools: Ints, of_bundle: Ints) -> Ints:
    """*owner*, brought into the pool of each bundle."""
    members = [np.flatnonzero(pools == pool) for pool in range(int(of_bundle.max()) + 1)]
    return np.array(
        [members[pool][broker % len(members[pool])] for broker, pool in zip(owner, of_bundle, strict=True)], np.int64
    )


def _pool_share(chance: np.random.Generator, pools: Ints, limit: Floats) -> Floats:
    """(pools,) the load of each pool."""
    capacity = np.bincount(pools, weights=limit).astype(np.float64)
    share: Floats = capacity * chance.uniform(*_POOL_LOAD, len(capacity))
    return share


def _named(view: ClusterView, sizes: Sequence[int], of_bundle: Ints) -> ClusterView:
    """*view* with namespaces of *sizes* bundles, each of a tenant for its pool."""
    first = np.cumsum([0, *sizes[:-1]])
    spaces = [f"pool-{pool}/ns-{number:05d}" for number, pool in enumerate(of_bundle[first].tolist())]
    names = tuple(
        f"{space}/{BundleName('', lower, upper).range}"
        for space, size in zip(spaces, sizes, strict=True)
        for lower, upper in pairwise(default_boundaries(size))
    )
    namespace = np.repeat(np.arange(len(sizes)), sizes)
    bundles = replace(view.bundles, names=names, namespaces=tuple(spaces), namespace=namespace)
    return replace(view, bundles=bundles, namespace_bundle_count=np.array(sizes, np.int64))


def _isolation(brokers: BrokerTable, pools: Ints) -> Policies:
    """A policy for each pool."""
    hosts = [name.partition(":")[0] for name in brokers.names]
    return Policies(
        isolation=tuple(
            IsolationPolicy(
                namespaces=(f"pool-{pool}/.*",),
                primary=tuple(host for host, of in zip(hosts, pools.tolist(), strict=True) if of == pool),
            )
            for pool in range(int(pools.max()) + 1)
        )
    )


def _groups(chance: np.random.Generator, namespaces: Sequence[str], brokers: int) -> Policies:
    """A part of the namespaces in anti-affinity groups."""
    grouped = [name for name in namespaces if chance.random() < _GROUPED]
    each = max(2, brokers // 2)
    return Policies(anti_affinity_group={name: f"group-{nth // each}" for nth, name in enumerate(grouped)})
