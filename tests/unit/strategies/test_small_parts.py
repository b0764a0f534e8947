"""What the parts of strategies find in small random clusters stays what it is, also where whole decisions seldom ask.

The numbers are tests.small_worlds.digits.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random
from typing import Any, Final

import numpy as np

from controller.model.decision import Reason, Verdict
from controller.model.load import ClusterView, TopicDetail
from controller.strategies.catalogue import SPLIT_ALGORITHMS, SPLIT_POLICIES
from controller.strategies.common.movable import busiest_unloads
from controller.strategies.common.resource_usage import max_usage, percent_usage
from controller.strategies.common.top_bundles import TopBundles, rank, top
from controller.strategies.filters.anti_affinity import owned_bundles, owned_counts, should_unload
from controller.strategies.shedding.transfer_shedder.exchange import Gate, GiverAndTaker, TopBundle
from controller.strategies.shedding.transfer_shedder.load_stats import BrokerLoads, LoadStats, readiness
from controller.strategies.splitting.default_namespace_bundle_split_strategy import (
    DefaultNamespaceBundleSplitStrategyImpl,
)
from controller.strategies.splitting.hot_topic_isolation import HotTopic, isolating
from controller.strategies.splitting.large_partition import LargePartition, WithPartitionAdvice
from tests.small_worlds import SmallWorld, digits, with_options


def world(chance: Random, seed: int) -> ClusterView:
    """A cluster in which some bundles are sent elsewhere, some are being split, and some serve a broker alone."""
    view = SmallWorld.of(seed).view()
    if chance.random() < 0.5:
        names = list(view.bundles.namespaces)
        names[-1] = f"pulsar/lab/{view.brokers.names[0]}"
        view = replace(view, bundles=replace(view.bundles, namespaces=tuple(names)))
    for _ in range(chance.choice((0, 0, 1, 2, 3))):
        view = view.with_preallocated(chance.randrange(len(view.bundles)), chance.randrange(len(view.brokers)))
    if chance.random() < 0.5:
        view = replace(view, splitting=frozenset(chance.sample(view.bundles.names, 1)))
    return view


def detailed(chance: Random, view: ClusterView) -> ClusterView:
    """*view* with topics in some of its bundles, of which some lie at the same place, and some are hot."""
    sizes = [chance.choice((0, 1, 2, 3, 5)) for _ in view.bundles.names]
    ends = [[int(end, 16) for end in name.rpartition("/")[2].split("_")] for name in view.bundles.names]
    positions = [
        chance.choice((lower, lower + 1, lower + 2, lower + (upper - lower) // 2, upper - 1))
        for (lower, upper), size in zip(ends, sizes, strict=True)
        for _ in range(size)
    ]
    loads = [[chance.choice((0.0, 1.0, 5.0, 30_000.0, 2e7, 3e7)) for _ in range(4)] for _ in positions]
    detail = TopicDetail(
        starts=np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]),
        position=np.array(positions, np.int64),
        load=np.array(loads).reshape(-1, 4),
    )
    return replace(view, bundles=replace(view.bundles, detail=detail))


def reported(seed: int) -> int:
    """The bundles that a report holds, and those that a shedder may take."""
    chance = Random(seed)
    told = list[Any]()
    for _ in range(6):
        ranks = np.array([chance.randrange(chance.choice((2, 4, 30))) for _ in range(chance.choice((1, 2, 5, 9, 30)))])
        told += [top(ranks, k) for k in (0, 1, 2, 5, 10)]
    view = world(chance, seed)
    bundles, options = view.bundles, with_options(TopBundles, chance)
    policies = np.array([chance.random() < 0.3 for _ in bundles.names], np.bool_)
    told += [options.reportable(bundles, policies), rank(bundles.load, bundles.topics)]
    for broker in range(len(view.brokers)):
        told.append(options.of(bundles, bundles.of_broker(broker)))
        why = Verdict(subject=view.brokers.names[broker], reason=Reason.OVERLOADED, by="a test")
        told.append(busiest_unloads(view, broker, chance.choice((0.0, 1e6, 1e7, 1e9)), why))
    return digits(told)


def exchanged(seed: int) -> int:
    """What two brokers exchange, and which two are next."""
    chance, told = Random(seed), list[Any]()
    for _ in range(4):
        given, taken = (
            sorted(
                (
                    TopBundle(f"{side}{nth}", chance.choice((1.0, 2.0, 3.0, 5.0, 10.0)))
                    for nth in range(chance.randrange(7))
                ),
                key=lambda one: one.throughput,
            )
            for side in "gt"
        )
        barred = {name: chance.random() < 0.2 for side in "gt" for name in (f"{side}{nth}" for nth in range(7))}
        pair = GiverAndTaker(
            giver="one", taker="other",
            giver_throughput=chance.choice((10.0, 20.0, 30.0)), taker_throughput=chance.choice((0.0, 5.0, 10.0)),
            to_offload=chance.choice((0.0, 1.0, 3.0, 6.0, 10.0)),
            transfer=chance.random() < 0.8, counts_gain=chance.random() < 0.5,
        )  # fmt: skip
        gate = Gate(
            stays=lambda name, _: Reason.RECENTLY_UNLOADED if name in ("g1", "t2") else None,
            barred=lambda name, to, barred=barred: Reason.ISOLATION_POLICY if barred[name] and to != name else None,  # type: ignore[misc]
        )
        told.append(pair.exchange(given, taken, gate))
    n = chance.choice((0, 1, 2, 3, 5))
    loads = BrokerLoads(
        names=tuple(f"b-{row}" for row in range(n)),
        load=np.array([chance.choice((0.1, 0.2, 0.5, 0.8, 0.9)) for _ in range(n)]),
        throughput_ema=np.array([chance.choice((0.0, 1.0, 5.0, 100.0)) for _ in range(n)]),
        throughput=np.array([chance.choice((0.0, 1.0, 5.0, 100.0)) for _ in range(n)]),
        updated_at_ms=np.array([chance.choice((0, 50, 100)) for _ in range(n)], np.int64),
    )
    unloaded = {f"b-{chance.randrange(6)}": chance.choice((0, 10, 50)) for _ in range(chance.choice((0, 1, 2)))}
    limits = {"now_ms": 100, "ttl_ms": chance.choice((0, 50, 100)), "delay_ms": chance.choice((0, 40, 50, 90))}
    ready = readiness(loads, [*loads.names, *chance.choice(((), ("z",)))], unloaded, **limits)
    told.append(ready)
    if ready.counted.any():
        order = np.argsort(loads.load, kind="stable")
        target = chance.choice((0.0, 0.1, 0.25, 0.9, 1.2))
        stats = LoadStats(loads, ready.counted, order, target_std=target, overloaded=chance.choice((0.5, 0.8, 0.85)))
        told.append([stats.average, stats.std])
        while stats.has_pair:
            told += [stats.imbalance(), stats.fullest, stats.emptiest]
            giver = stats.poll_fullest()
            if chance.random() < 0.7 and stats.has_pair:
                stats.offload(giver, stats.emptiest, np.float64(chance.choice((0.05, 0.2, 0.95))))
                told += [stats.std, stats.sheddings]
    return digits(told)


def cut_up(seed: int) -> int:
    """Where bundles with hot topics are cut, and what is advised."""
    chance = Random(seed)
    view = detailed(chance, world(chance, seed))
    kind = chance.choice([each for name, each in SPLIT_ALGORITHMS.items() if not name.startswith("specified")])
    algorithm = isolating(HotTopic(percent=chance.choice((0, 20, 50, 51, 100))), with_options(kind, chance))
    told, detail = list[Any]([algorithm.needs_topic_detail, algorithm.name]), view.bundles.detail
    for row, name in enumerate(view.bundles.names):
        lower, upper = (int(end, 16) for end in name.rpartition("/")[2].split("_"))
        here = slice(int(detail.starts[row]), int(detail.starts[row + 1]))
        told.append(algorithm.cuts(lower, upper, detail.position[here], detail.load[here]))
    policies: list[Any] = [with_options(each, chance) for each in SPLIT_POLICIES.values()]
    policies[1] = replace(policies[1], algorithm=algorithm, hit_count=chance.choice((0, 1, 3)))
    assert isinstance(policies[1], DefaultNamespaceBundleSplitStrategyImpl)
    for policy in policies:
        advised = WithPartitionAdvice(policy=policy, large=LargePartition(max_mbytes=chance.choice((0, 1, 20, 40, 57))))
        told += [policy.thresholds, advised.thresholds]
        memory = advised.initial_memory()
        for _ in range(3):
            decision, memory = advised.decide(view, memory)
            told.append([decision, memory])
    return digits(told)


def grouped(seed: int) -> int:
    """How many namespaces and bundles of a group brokers own, and whether it pays that one leaves; usage of brokers."""
    chance = Random(seed)
    view = world(chance, seed)
    told = list[Any]()
    for bundle in range(len(view.bundles)):
        counts = owned_counts(view, bundle)
        told += [counts, owned_bundles(view, bundle)]
        rows = np.array([row for row in range(len(view.brokers)) if chance.random() < 0.6], np.int64)
        if counts is not None:
            told += [should_unload(counts, rows, row) for row in range(len(view.brokers))]
    for _ in range(3):
        usage, limit = (
            np.array([[chance.choice(of) for _ in range(5)] for _ in range(3)])
            for of in ((0.0, 0.25, 1.0, 50.0, 120.0), (0.0, 0.5, 1.0, 100.0, np.inf, -1.0))
        )
        told += [percent_usage(usage, limit), max_usage(usage, limit)]
    return digits(told)


REPORTED: Final = 76_790_590
EXCHANGED: Final = 81_079_729
CUT_UP: Final = 95_236_323
GROUPED: Final = 5_540_864


def of_all(told: Callable[[int], int], seeds: Iterable[int]) -> int:
    return digits([told(seed) for seed in seeds])


def test_reports_hold_the_same_bundles_and_the_same_may_be_taken() -> None:
    assert of_all(reported, range(40)) == REPORTED


def test_two_brokers_exchange_the_same_bundles() -> None:
    assert of_all(exchanged, range(150)) == EXCHANGED


def test_hot_topics_are_cut_off_and_large_partitions_advised_in_the_same_way() -> None:
    assert of_all(cut_up, range(40)) == CUT_UP


def test_brokers_own_the_same_of_each_group_and_are_used_as_much() -> None:
    assert of_all(grouped, range(40)) == GROUPED
