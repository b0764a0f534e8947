"""Clusters of any size to time decisions on: a strongly skewed one, and one that is balanced but for a few brokers."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

import numpy as np

from controller.model.load import (
    BANDWIDTH_IN,
    BANDWIDTH_OUT,
    CPU,
    LONG_TERM_SAMPLES,
    RATE_IN,
    RATE_OUT,
    SHORT_TERM_SAMPLES,
    THROUGHPUT_IN,
    THROUGHPUT_OUT,
    BrokerTable,
    BundleTable,
    ClusterView,
    Floats,
    Ints,
    TopicDetail,
)
from controller.model.names import BundleName, default_boundaries
from controller.model.topic_kinds import PERSISTENT

#: T of every cluster made here, epoch ms.
_INTERVAL: Final = 1_735_689_600_000
_BUNDLES_OF_NAMESPACE: Final = 100
_BYTES_OF_MESSAGE: Final = 1024.0


def skewed(brokers: int, bundles: int, *, seed: int = 1) -> ClusterView:
    """Few bundles have most of the traffic, and some brokers several times that of others."""
    chance = np.random.default_rng(seed)
    rate = chance.lognormal(5.0, 1.2, bundles)
    share = chance.gamma(4.0, size=brokers)
    owner = _at_least_two(chance.choice(brokers, bundles, p=share / share.sum()), brokers)
    return _view(chance, brokers, rate, owner)


def nearly_balanced(brokers: int, bundles: int, *, seed: int = 1) -> ClusterView:
    """Every broker has as many bundles, all of about the same traffic; one in a hundred has a third more."""
    return _even(brokers, bundles, seed, hot=max(1, brokers // 100))


def evenly_loaded(brokers: int, bundles: int, *, seed: int = 1) -> ClusterView:
    """Every broker has as many bundles, all of about the same traffic."""
    return _even(brokers, bundles, seed, hot=0)


#: By the name that the bench gives it.
CLUSTERS: Final[Mapping[str, Callable[..., ClusterView]]] = {"skewed": skewed, "nearly balanced": nearly_balanced}


def _even(brokers: int, bundles: int, seed: int, *, hot: int) -> ClusterView:
    """As many bundles for everybody; *hot* of the brokers have a third more traffic."""
    chance = np.random.default_rng(seed)
    owner = np.arange(bundles) % brokers
    rate = chance.normal(200.0, 10.0, bundles).clip(min=1.0)
    rate[np.isin(owner, chance.permutation(brokers)[:hot])] *= 4 / 3
    return _view(chance, brokers, rate, owner)


def _at_least_two(owner: Ints, brokers: int) -> Ints:
    """*owner*, with two bundles for everybody: a sole bundle is never moved."""
    owner = owner.copy()
    owner[: 2 * brokers] = np.arange(2 * brokers) % brokers
    return owner


def _view(chance: np.random.Generator, brokers: int, rate: Floats, owner: Ints) -> ClusterView:
    """A cluster of bundles with *rate* msg/s (n,) in, and as much out, owned by *owner* (n,)."""
    n = len(rate)
    names, namespace = _names(n)
    load = _load(rate)
    now = load * chance.uniform(0.9, 1.1, (n, 1))
    topics = chance.integers(2, 20, n)
    # Over the limit of topics or of messages: one bundle in a thousand, and those that the skew made so.
    topics[chance.random(n) < 0.001] = 2000
    total = np.zeros((brokers, 4))
    np.add.at(total, owner, now)
    spaces = n // _BUNDLES_OF_NAMESPACE + 1
    return ClusterView(
        as_of_ms=_INTERVAL,
        brokers=BrokerTable(
            names=tuple(f"broker-{i:05d}:8080" for i in range(brokers)),
            usage=_usage(total),
            limit=np.full((brokers, 5), 100.0),
            load=total,
            long_term=total,
            preallocated_rate=np.zeros(brokers),
            bundle_count=np.bincount(owner, minlength=brokers),
            topic_count=np.bincount(owner, weights=topics, minlength=brokers).astype(np.int64),
        ),
        bundles=BundleTable(
            names=names,
            namespaces=tuple(f"bench/ns-{i:05d}" for i in range(spaces)),
            namespace=namespace,
            broker=owner,
            load=now,
            short_term=load,
            long_term=load,
            short_samples=np.full(n, SHORT_TERM_SAMPLES),
            long_samples=np.full(n, LONG_TERM_SAMPLES),
            topics=topics,
            producers=topics,
            consumers=topics,
            kinds=np.full(n, PERSISTENT, np.uint8),
            detail=TopicDetail(starts=np.zeros(n + 1, np.int64), position=np.zeros(0, np.int64), load=np.zeros((0, 4))),
        ),
        recently_unloaded=np.zeros(n, np.bool_),
        namespace_bundle_count=np.bincount(namespace, minlength=spaces),
    )


def _load(rate: Floats) -> Floats:
    """(n, 4) load of bundles with *rate* msg/s (n,) in, and as much out."""
    load = np.empty((len(rate), 4))
    load[:, RATE_IN] = load[:, RATE_OUT] = rate
    load[:, THROUGHPUT_IN] = load[:, THROUGHPUT_OUT] = rate * _BYTES_OF_MESSAGE
    return load


def _usage(total: Floats) -> Floats:
    """(brokers, 5) usage, percent, of brokers with the load *total* (brokers, 4)."""
    usage = np.zeros((len(total), 5))
    busy = total[:, RATE_IN] / total[:, RATE_IN].mean()
    usage[:, CPU] = (40 * busy).clip(max=100)
    usage[:, BANDWIDTH_IN] = usage[:, BANDWIDTH_OUT] = (30 * busy).clip(max=100)
    return usage


def _names(n: int) -> tuple[tuple[str, ...], Ints]:
    """(n,) names of bundles in order, and the namespace of each."""
    edges = default_boundaries(_BUNDLES_OF_NAMESPACE)
    ranges = [BundleName("", lower, upper).range for lower, upper in pairwise(edges)]
    namespace = np.arange(n) // _BUNDLES_OF_NAMESPACE
    numbered = (divmod(i, _BUNDLES_OF_NAMESPACE) for i in range(n))
    return tuple(f"bench/ns-{space:05d}/{ranges[i]}" for space, i in numbered), namespace
