"""A small cluster on one line, for tests of strategies.

    view(broker("hot", usage=0.9, big=60, small=40), broker("cold", usage=0.1, z=5), recently_unloaded=("big",))

Bundles are given in MB/s, or as ``bundle(...)`` where more than their traffic matters.  What is said here is short for
controller.strategies.view_builder.  For vectors, which come in columns and hold what no cluster has (NaN), there are
tables by columns.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from controller.model.load import (
    LONG_TERM_SAMPLES,
    SHORT_TERM_SAMPLES,
    BrokerTable,
    BundleTable,
    ClusterView,
    Floats,
    Ints,
    TopicDetail,
)
from controller.model.names import namespace_of
from controller.model.policies import Policies
from controller.model.topic_kinds import PERSISTENT, KindFlags
from controller.strategies import view_builder
from controller.strategies.view_builder import INTERVAL, Broker, Bundle

__all__ = ["INTERVAL", "MB", "NAMESPACE", "Broker", "Bundle", "broker", "broker_table", "bundle", "bundle_table"]
__all__ += ["cluster_view", "view"]

MB = 1024 * 1024
#: Namespace of bundles with a bare name.
NAMESPACE = "acme/test"


def bundle(
    mbytes: float = 0.0,
    *,
    msg_rate: float | None = None,
    topics: int = 10,
    producers: int = 0,
    consumers: int = 0,
    kinds: int = PERSISTENT,
    short_samples: int = SHORT_TERM_SAMPLES,
    long_samples: int = LONG_TERM_SAMPLES,
) -> Bundle:
    """A bundle of *mbytes* MB/s in; of messages of 1 MB, unless the *msg_rate* is given."""
    return Bundle(
        mbytes_in=mbytes,
        msg_rate_in=mbytes if msg_rate is None else msg_rate,
        topics=topics,
        producers=producers,
        consumers=consumers,
        kinds=kinds,
        short_samples=short_samples,
        long_samples=long_samples,
    )


def broker(name: str, *, usage: float = 0.0, on_its_way: float = 0.0, **bundles: float | Bundle) -> Broker:
    """A broker at *usage* (CPU, a share) with *bundles*, and msg/s of others on their way to it."""
    made = {key: value if isinstance(value, Bundle) else bundle(value) for key, value in bundles.items()}
    return Broker(name, cpu=usage, on_its_way=on_its_way, bundles=made)


def view(
    *brokers: Broker, recently_unloaded: Collection[str] = (), bundle_count: Mapping[str, int] | None = None
) -> ClusterView:
    """The cluster of *brokers*; a namespace has the bundles seen, unless *bundle_count* says otherwise."""
    return view_builder.cluster_view(
        *brokers, recently_unloaded=recently_unloaded, bundle_count=bundle_count, namespace=NAMESPACE
    )


def cluster_view(
    brokers: BrokerTable,
    bundles: BundleTable,
    *,
    recently_unloaded: Collection[str] = (),
    bundle_count: Mapping[str, int] | None = None,
    policies: Policies | None = None,
) -> ClusterView:
    """The view of two tables."""
    seen = np.bincount(bundles.namespace, minlength=len(bundles.namespaces))
    counts = dict(zip(bundles.namespaces, seen.tolist(), strict=True)) | dict(bundle_count or {})
    return ClusterView(
        as_of_ms=INTERVAL,
        brokers=brokers,
        bundles=bundles,
        recently_unloaded=np.array([name in recently_unloaded for name in bundles.names], np.bool_),
        namespace_bundle_count=np.array([counts[name] for name in bundles.namespaces], np.int64),
        policies=policies or Policies(),
    )


def broker_table(
    names: Sequence[str],
    *,
    usage: Floats,
    limit: Floats,
    load: Floats | None = None,
    long_term: Floats | None = None,
    preallocated_rate: Floats | None = None,
    bundle_count: Ints | None = None,
) -> BrokerTable:
    """Brokers by columns; what is not given is 0."""
    n = len(names)
    assert list(names) == sorted(names)
    return BrokerTable(
        names=tuple(names),
        usage=usage,
        limit=limit,
        load=np.zeros((n, 4)) if load is None else load,
        long_term=np.zeros((n, 4)) if long_term is None else long_term,
        preallocated_rate=np.zeros(n) if preallocated_rate is None else preallocated_rate,
        bundle_count=np.zeros(n, np.int64) if bundle_count is None else bundle_count,
        topic_count=np.zeros(n, np.int64),
    )


def bundle_table(
    names: Sequence[str],
    owner: Ints,
    *,
    load: Floats | None = None,
    short_term: Floats | None = None,
    long_term: Floats | None = None,
    short_samples: Ints | None = None,
    long_samples: Ints | None = None,
    topics: Ints | None = None,
    producers: Ints | None = None,
    consumers: Ints | None = None,
    kinds: KindFlags | None = None,
) -> BundleTable:
    """Bundles of persistent topics by columns, without detail; what is not given is 0, and of samples there are all."""
    n = len(names)
    assert list(names) == sorted(names)
    spaces = [namespace_of(name) or NAMESPACE for name in names]
    namespaces = sorted(set(spaces))
    code_of = {name: code for code, name in enumerate(namespaces)}
    return BundleTable(
        names=tuple(names),
        namespaces=tuple(namespaces),
        namespace=np.array([code_of[name] for name in spaces], np.int64),
        broker=owner,
        load=np.zeros((n, 4)) if load is None else load,
        short_term=np.zeros((n, 4)) if short_term is None else short_term,
        long_term=np.zeros((n, 4)) if long_term is None else long_term,
        short_samples=np.full(n, SHORT_TERM_SAMPLES) if short_samples is None else short_samples,
        long_samples=np.full(n, LONG_TERM_SAMPLES) if long_samples is None else long_samples,
        topics=np.zeros(n, np.int64) if topics is None else topics,
        producers=np.zeros(n, np.int64) if producers is None else producers,
        consumers=np.zeros(n, np.int64) if consumers is None else consumers,
        kinds=np.full(n, PERSISTENT, np.uint8) if kinds is None else kinds,
        detail=TopicDetail(starts=np.zeros(n + 1, np.int64), position=np.zeros(0, np.int64), load=np.zeros((0, 4))),
    )
