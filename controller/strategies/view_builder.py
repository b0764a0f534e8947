"""Build a small ClusterView by hand: to try a strategy out, and to test it.

    view = cluster_view(
        Broker("hot:8080", cpu=0.9, bundles={
            "acme/orders/0x00000000_0x80000000": Bundle(mbytes_in=60, msg_rate_in=5000),
            "acme/orders/0x80000000_0xffffffff": Bundle(mbytes_in=40),
        }),
        Broker("warm:8080", cpu=0.5),
        Broker("cold:8080", cpu=0.1, bundles={"acme/users/0x00000000_0xffffffff": Bundle(mbytes_in=5)}),
    )
    decision, memory = ThresholdShedder().decide(view, ThresholdShedder().initial_memory())

What is not given has a default: load and usage are 0, averages are full and equal to the load of now, a broker's
totals are the sums of its bundles, and a namespace has no bundles but those given.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from itertools import pairwise
from typing import Final

import numpy as np

from controller.model.errors import ViewError
from controller.model.load import (
    LONG_TERM_SAMPLES,
    RESOURCE_FIELDS,
    SHORT_TERM_SAMPLES,
    UNOWNED,
    BrokerTable,
    BundleTable,
    ClusterView,
    Floats,
    Ints,
    Preallocated,
    TopicDetail,
)
from controller.model.names import is_name, namespace_of
from controller.model.policies import Policies
from controller.model.topic_kinds import BOTH, PERSISTENT

#: T of a view, unless another one is given, epoch ms.
INTERVAL: Final = 1_700_000_040_000
_MB: Final = 1024 * 1024
#: The limit of every resource: usages are given as shares of it.
_LIMIT: Final = 100.0
#: A usage above this was most likely meant as percent.
_MAX_USAGE: Final = 10.0
_COUNTS: Final = ("topics", "producers", "consumers", "short_samples", "long_samples")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """What a bundle carries and holds.  Its short-term and long-term averages are the load of now."""

    #: Messages/s.
    msg_rate_in: float = 0.0
    msg_rate_out: float = 0.0
    #: MB/s; 1 MB is 1024 * 1024 bytes.
    mbytes_in: float = 0.0
    mbytes_out: float = 0.0
    topics: int = 10
    producers: int = 0
    consumers: int = 0
    #: Whether it holds persistent topics, non-persistent ones, or both: flags of controller.model.topic_kinds.
    kinds: int = PERSISTENT
    #: How many samples are in the averages.
    short_samples: int = SHORT_TERM_SAMPLES
    long_samples: int = LONG_TERM_SAMPLES


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker with its bundles by name."""

    #: As Pulsar names brokers: host:port.
    name: str
    _: KW_ONLY
    #: Usage of each resource as a share of its limit: 0.9 is 90 %.
    cpu: float = 0.0
    memory: float = 0.0
    direct_memory: float = 0.0
    bandwidth_in: float = 0.0
    bandwidth_out: float = 0.0
    #: Messages/s of bundles on their way to it that are not in the view.
    on_its_way: float = 0.0
    bundles: Mapping[str, Bundle] = field(default_factory=dict)


def cluster_view(
    *brokers: Broker,
    unowned: Mapping[str, Bundle] | None = None,
    missing: Collection[str] = (),
    recently_unloaded: Collection[str] = (),
    splitting: Collection[str] = (),
    on_their_way: Mapping[str, str] | None = None,
    bundle_count: Mapping[str, int] | None = None,
    policies: Policies | None = None,
    as_of_ms: int = INTERVAL,
    namespace: str = "public/default",
) -> ClusterView:
    """The cluster of *brokers*, which may be given in any order.

    *unowned*: bundles that no broker serves.  *missing*: active brokers without data.  *recently_unloaded* and
    *splitting*: bundles that stay, and whose split is under way.  *on_their_way*: bundle -> the broker that it is
    being moved to.  *bundle_count*: how many bundles a namespace has, where that is not the number given; -1: unknown.
    *namespace*: of bundles whose name has none.  Raises ViewError naming what contradicts itself.
    """
    by_name = sorted(brokers, key=lambda broker: broker.name)
    rows = _rows(by_name, unowned or {})
    _refuse_unusable([broker.name for broker in by_name], rows, missing)
    for what, named in (("recently_unloaded", recently_unloaded), ("splitting", splitting)):
        _refuse_unknown(what, named, rows, "bundles")
    table = _bundle_table(rows, namespace)
    view = ClusterView(
        as_of_ms=as_of_ms,
        brokers=_broker_table(by_name, table),
        missing=tuple(sorted(missing)),
        bundles=table,
        recently_unloaded=np.array([name in recently_unloaded for name in table.names], np.bool_),
        namespace_bundle_count=_bundle_counts(table, bundle_count or {}),
        policies=policies or Policies(),
        preallocated=Preallocated(),
        splitting=frozenset(splitting),
    )
    for bundle, broker in sorted((on_their_way or {}).items()):
        _refuse_unknown("on_their_way", [bundle], rows, "bundles")
        _refuse_unknown(f"on_their_way: bundle {bundle}", [broker], view.brokers.code_of, "brokers")
        view = view.with_preallocated(table.code_of[bundle], view.brokers.code_of[broker])
    return view


def _rows(brokers: Iterable[Broker], unowned: Mapping[str, Bundle]) -> dict[str, tuple[int, Bundle]]:
    """Bundle -> the row of its broker, and what it carries; by name."""
    where: dict[str, str] = {}
    rows: dict[str, tuple[int, Bundle]] = {}
    owned = [(code, broker.name, broker.bundles) for code, broker in enumerate(brokers)]
    for code, owner, bundles in [*owned, (UNOWNED, "unowned", unowned)]:
        for name, bundle in bundles.items():
            if name in where:
                raise ViewError(f"bundle {name} is given twice: by {where[name]} and by {owner}")
            where[name], rows[name] = owner, (code, bundle)
    return dict(sorted(rows.items()))


def _refuse_unusable(brokers: list[str], bundles: Iterable[str], missing: Collection[str]) -> None:
    """Raise ViewError on names that are no names, and on brokers given twice."""
    for kind, names in (("broker", [*brokers, *missing]), ("bundle", bundles)):
        for name in names:
            if not is_name(name):
                raise ViewError(f"{name!r} is not the name of a {kind}: a printable text is expected")
    for one, other in pairwise(brokers):
        if one == other:
            raise ViewError(f"broker {one} is given twice")
    both = sorted(set(brokers) & set(missing))
    if both:
        raise ViewError(f"missing: broker {both[0]} is also given with data")


def _refuse_unknown(what: str, named: Iterable[str], known: Collection[str], kind: str) -> None:
    for name in named:
        if name not in known:
            raise ViewError(f"{what}: {name} is not among the {kind}: {', '.join(known) or 'there are none'}")


def _number(of: str, name: str, value: float, *, limit: float = math.inf, hint: str = "") -> float:
    """*value* if it is a number from 0 to *limit*, or ViewError."""
    if not (math.isfinite(value) and 0 <= value <= limit):
        upper = "up" if limit == math.inf else f"to {limit:g}"
        raise ViewError(f"{of}: {name} is {value}: a number from 0 {upper} is expected{hint}")
    return value


def _bundle_table(rows: Mapping[str, tuple[int, Bundle]], bare: str) -> BundleTable:
    load, bundles = np.zeros((len(rows), 4)), [bundle for _, bundle in rows.values()]
    for row, (name, bundle) in enumerate(zip(rows, bundles, strict=True)):
        for one in fields(bundle):
            _number(f"bundle {name}", one.name, getattr(bundle, one.name))
        load[row] = bundle.msg_rate_in, bundle.msg_rate_out, bundle.mbytes_in * _MB, bundle.mbytes_out * _MB
    of_bundle = [namespace_of(name) or bare for name in rows]
    namespaces = sorted(set(of_bundle))
    code_of = {name: code for code, name in enumerate(namespaces)}
    topics, producers, consumers, short_samples, long_samples = (
        np.array([getattr(bundle, name) for bundle in bundles], np.int64) for name in _COUNTS
    )
    return BundleTable(
        names=tuple(rows),
        namespaces=tuple(namespaces),
        namespace=np.array([code_of[name] for name in of_bundle], np.int64),
        broker=np.array([code for code, _ in rows.values()], np.int64),
        load=load,
        short_term=load,
        long_term=load,
        short_samples=short_samples,
        long_samples=long_samples,
        topics=topics,
        producers=producers,
        consumers=consumers,
        kinds=np.array([bundle.kinds & BOTH for bundle in bundles], np.uint8),
        detail=TopicDetail(
            starts=np.zeros(len(rows) + 1, np.int64), position=np.zeros(0, np.int64), load=np.zeros((0, 4))
        ),
    )


def _broker_table(brokers: list[Broker], bundles: BundleTable) -> BrokerTable:
    usage = np.zeros((len(brokers), len(RESOURCE_FIELDS)))
    for row, broker in enumerate(brokers):
        of, hint = f"broker {broker.name}", ": a share of the limit, 0.9 for 90 %"
        usage[row] = [_number(of, name, getattr(broker, name), limit=_MAX_USAGE, hint=hint) for name in RESOURCE_FIELDS]
        _number(of, "on_its_way", broker.on_its_way)
    owned, width = bundles.owned, len(brokers)
    total: Floats = np.zeros((width, 4))
    np.add.at(total, bundles.broker[owned], bundles.load[owned])
    topics: Ints = np.zeros(width, np.int64)
    np.add.at(topics, bundles.broker[owned], bundles.topics[owned])
    return BrokerTable(
        names=tuple(broker.name for broker in brokers),
        usage=usage * _LIMIT,
        limit=np.full_like(usage, _LIMIT),
        load=total,
        long_term=total,
        preallocated_rate=np.array([broker.on_its_way for broker in brokers], np.float64),
        bundle_count=np.bincount(bundles.broker[owned], minlength=width),
        topic_count=topics,
    )


def _bundle_counts(bundles: BundleTable, counts_of: Mapping[str, int]) -> Ints:
    """(namespaces,) how many bundles each has."""
    _refuse_unknown("bundle_count", counts_of, bundles.namespaces, "namespaces")
    owned = np.bincount(bundles.namespace, minlength=len(bundles.namespaces)).tolist()
    return np.array([counts_of.get(name, n) for name, n in zip(bundles.namespaces, owned, strict=True)], np.int64)
