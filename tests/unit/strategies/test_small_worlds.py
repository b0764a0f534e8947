"""What every strategy decides about small clusters, interval by interval, stays what it is.

An operator who installs a new release finds the same decisions for the same load; a journal of before is replayed to
the byte.  The numbers are tests.small_worlds.digits of all decisions and memories.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Any, Final

import numpy as np

from controller.model.load import TopicDetail
from controller.model.names import FULL_UPPER
from controller.strategies.catalogue import (
    ASSIGNMENTS,
    EXTENSIBLE_FILTERS,
    FILTERS,
    PLACEMENTS,
    SHEDDERS,
    SPLIT_ALGORITHMS,
    SPLIT_POLICIES,
)
from controller.strategies.common.candidates import first_against
from controller.strategies.common.cutting import cut
from controller.strategies.common.worker_group import ConfigSnapshot, ConnectorsAndTasks, ConnectorTaskId, Group
from controller.strategies.filters.extensible_select_broker import ExtensibleSelectBroker
from controller.strategies.filters.modular_select_broker import ModularSelectBroker
from controller.strategies.rebalance.eager import EagerAssignor
from controller.strategies.rebalance.incremental_cooperative import IncrementalCooperativeAssignor, Release
from controller.strategies.rebalance.membership import RebalanceOnMembershipChange
from tests.small_worlds import SmallWorld, digits, views, with_options

#: So many intervals of a world whose commands are carried out.
ROUNDS: Final = 8


def shed(kind: type[Any], seed: int) -> int:
    world = SmallWorld.of(seed)
    chance = Random(seed)
    shedder: Any = with_options(kind, chance) if seed % 2 else kind()
    if kind is RebalanceOnMembershipChange:
        shedder = replace(shedder, protocol=("eager", "cooperative", "cooperative")[seed % 3])
    if kind is SHEDDERS["PeakShedder"] and seed % 4:
        hasty = {"settle_minutes": 0.0, "load_settle_minutes": 0.0, "hold": 1, "hold_of": 1, "move_cost": 0.0}
        filters = tuple(each() for each in FILTERS.values()) if seed % 3 else ()
        shedder = replace(shedder, effort=20_000, filters=filters, **hasty)
    memory, told = shedder.initial_memory(), list[Any]()
    for _ in range(ROUNDS):
        view = world.view()
        decision, memory = shedder.decide(view, memory)
        told.append(digits(decision, memory))
        world.goes_on({unload.bundle: unload.destination for unload in decision.unloads})
    return digits(told)


def split(kind: type[Any], seed: int) -> int:
    policy = with_options(kind, Random(seed)) if seed % 2 else kind()
    memory, told = policy.initial_memory(), list[Any]()
    for view in views(seed):
        decision, memory = policy.decide(view, memory)
        told.append(digits(decision, memory))
    return digits(told)


def place(kind: type[Any], seed: int) -> int:
    chance = Random(seed)
    placement = with_options(kind, chance) if seed % 2 else kind()
    memory, told = placement.initial_memory(), list[Any]()
    for view in views(seed):
        for bundle in range(len(view.bundles)):
            rows = np.array([row for row in range(len(view.brokers)) if chance.random() < 0.7], np.int64)
            found, memory = placement.acceptable(view, bundle, rows, memory)
            told.append(found.tolist())
        if hasattr(placement, "observed"):
            memory = placement.observed(view, memory)
        told.append(digits(memory))
    return digits(told)


def keep(kind: type[Any], seed: int) -> int:
    chance, told = Random(seed), list[Any]()
    for view in views(seed):
        one = with_options(kind, chance) if seed % 2 else kind()
        for bundle in range(len(view.bundles)):
            rows = np.array([row for row in range(len(view.brokers)) if chance.random() < 0.8], np.int64)
            told.append(one.keep(view, bundle, rows).tolist())
            if hasattr(one, "may_leave"):
                told.append(bool(one.may_leave(view, bundle, rows)))
    return digits(told)


def select(kind: type[Any], seed: int) -> int:
    chance, told, extensible = Random(seed), list[Any](), kind is ExtensibleSelectBroker
    placement = PLACEMENTS["ExtLeastResourceUsageWithWeight" if extensible else "LeastLongTermMessageRate"]()
    memory = placement.initial_memory()
    for view in views(seed):
        one = with_options(kind, chance)
        filters = [with_options(each, chance) for each in (EXTENSIBLE_FILTERS if extensible else FILTERS).values()]
        for bundle in range(len(view.bundles)):
            found = one.candidates(view, bundle, filters)
            rows, memory = one.acceptable(view, bundle, found, placement, memory)
            told += [found.allowed.tolist(), found.kept.tolist(), rows.tolist()]
            for broker in range(len(view.brokers)):
                against = (found.excludes, found.confines, found.leaves_only)
                told += [type(each(broker)).__name__ for each in against]
                told.append(type(first_against(view, bundle, broker, filters)).__name__)
            told.append(type(found.anchored(view, bundle)).__name__)
    return digits(told)


def cuts(kind: type[Any], seed: int) -> int:
    chance, told = Random(seed), list[Any]()
    for view in views(seed):
        one = with_options(kind, chance)
        if kind is SPLIT_ALGORITHMS["specified_positions_divide"]:
            one = replace(one, at=tuple(chance.randrange(1 << 32) for _ in range(8)))
        sizes = [chance.choice((0, 1, 2, 3, 8)) for _ in view.bundles.names]
        ends = [int(name.rpartition("/")[2][:10], 16) for name in view.bundles.names]
        begins = [end for end, size in zip(ends, sizes, strict=True) for _ in range(size)]
        positions = [begin + chance.choice((0, 1, 2, 100, 1 << 28, 1 << 28)) for begin in begins]
        loads = [[chance.choice((0.0, 1.0, 5.0, 100.0, 30_000.0, 1e8)) for _ in range(4)] for _ in positions]
        detail = TopicDetail(
            starts=np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]),
            position=np.array(positions, np.int64),
            load=np.array(loads).reshape(-1, 4),
        )
        detailed = replace(view, bundles=replace(view.bundles, detail=detail))
        told += [cut(detailed, row, one) for row in range(len(view.bundles))]
    return digits(told)


def assign(kind: type[Any], seed: int) -> int:
    chance, one = Random(seed), kind()
    names = [f"persistent://acme/a/t{i}" for i in range(6)]
    topics = [f"{name}-partition-{i}" if name[-1] in "024" else name for name in names for i in range(4)]
    edges = sorted({0, FULL_UPPER, *(chance.randrange(1 << 32) for _ in range(chance.choice((0, 1, 3, 6))))})
    more = sorted({*edges, *(chance.randrange(1 << 32) for _ in range(chance.choice((0, 1, 2))))})
    assigned = one.assign(topics, edges)
    return digits(assigned, *one.on_bundle_split(topics, assigned, edges, more))


def rebalance(release: Release | None, seed: int) -> int:
    """Members that come, go, do as they are told or do not, and connectors that come and go."""
    chance = Random(seed)
    cooperative = IncrementalCooperativeAssignor(
        scheduled_rebalance_max_delay_ms=chance.choice((0, 60_000, 300_000)), release=release or Release.V2_6_0
    )
    memory, now_ms, told = cooperative.initial_memory(), 1_000_000, list[Any]()
    connectors = {f"c{i}": chance.choice((0, 1, 2, 5)) for i in range(chance.choice((1, 2, 4)))}
    members = {f"m{i}": ConnectorsAndTasks() for i in range(chance.choice((1, 2, 3)))}
    done = 0
    for turn in range(14):
        group = Group(
            members=members,
            configured=ConfigSnapshot(connectors=connectors, offset=turn),
            reread=ConfigSnapshot(connectors=connectors, offset=turn + 1) if chance.random() < 0.3 else None,
            config_offsets={name: turn + (chance.random() < 0.1) for name in members},
            generation=turn + 1,
            last_completed_generation=done or -1,
        )
        if release is None:
            found = EagerAssignor().assign(group)
        else:
            found, memory = cooperative.assign(group, memory, now_ms)
        told.append(digits(found, memory))
        if chance.random() < 0.85:
            done = turn + 1
            members = {
                name: held - found.assignments[name].stop + found.assignments[name].start
                for name, held in members.items()
            }
        if chance.random() < 0.3:
            members[f"m{chance.randrange(6)}"] = ConnectorsAndTasks()
        if chance.random() < 0.3 and len(members) > 1:
            del members[chance.choice(sorted(members))]
        if chance.random() < 0.1:  # it holds what another one holds, or what nobody knows
            name = chance.choice(sorted(members))
            members[name] += ConnectorsAndTasks(connectors=("c0",), tasks=(ConnectorTaskId("c0", chance.randrange(3)),))
        if chance.random() < 0.2:
            connectors = connectors | {f"c{chance.randrange(6)}": chance.choice((0, 1, 3))}
        elif chance.random() < 0.15 and len(connectors) > 1:
            connectors = {name: number for name, number in connectors.items() if name != min(connectors)}
        now_ms += chance.choice((0, 30_000, 60_000, 300_000))
    return digits(told)


def of_all(told: Callable[[Any, int], int], kinds: Mapping[str, Any], worlds: int) -> dict[str, int]:
    return {name: digits([told(kind, seed) for seed in range(worlds)]) for name, kind in kinds.items()}


SHED: Final = {
    "AvgShedder": 4_962_652,
    "MessageRateDeviationShedder": 83_255_443,
    "OverloadShedder": 272_260,
    "ThresholdShedder": 92_677_421,
    "ThroughputDeviationShedder": 8_780_788,
    "TransferShedder": 86_648_947,
    "UniformLoadShedder": 13_605_906,
}
PEAK: Final = {
    "PeakShedder": 19_355_942,
}
MEMBERSHIP: Final = {
    "membership": 55_163_728,
}
SPLIT: Final = {
    "BundleSplitterTask": 85_005_030,
    "DefaultNamespaceBundleSplitStrategyImpl": 77_624_203,
}
PLACE: Final = {
    "AvgShedder": 40_369_016,
    "ExtLeastResourceUsageWithWeight": 95_049_194,
    "LeastLongTermMessageRate": 34_483_082,
    "LeastResourceUsageWithWeight": 48_785_056,
    "RoundRobinBrokerSelector": 6_938_180,
}
KEEP: Final = {
    "IsolationPolicies": 16_652_318,
    "MaxTopics": 3_351_460,
    "AntiAffinity": 15_163_359,
    "FewestBundles": 79_481_342,
    "BrokerVersion": 48_657_111,
    "SheddingExcludedNamespaces": 30_954_845,
    "BundlesWithPolicies": 39_832_996,
    "ExtMaxTopics": 47_848_696,
    "ExtAntiAffinity": 6_791_756,
}
SELECT: Final = {
    "ModularSelectBroker": 57_247_977,
    "ExtensibleSelectBroker": 74_059_552,
}
CUTS: Final = {
    "flow_or_qps_equally_divide": 84_272_035,
    "range_equally_divide": 16_530_308,
    "specified_positions_divide": 97_909_725,
    "topic_count_equally_divide": 4_783_831,
}
ASSIGN: Final = {
    "ConsistentHashingTopicBundleAssigner": 11_963_379,
    "RoundRobinTopicBundleAssigner": 47_325_638,
}
REBALANCE: Final = {
    "eager": 56_937_496,
    "V2_6_0": 96_470_239,
    "V2_6_3": 60_967_201,
    "V3_9": 45_719_793,
    "TRIMTAB": 32_576_448,
}


def test_shedders_unload_the_same_bundles() -> None:
    quick = {name: kind for name, kind in SHEDDERS.items() if name != "PeakShedder"}
    assert of_all(shed, quick, 10) == SHED


def test_peak_shedder_unloads_the_same_bundles() -> None:
    assert of_all(shed, {"PeakShedder": SHEDDERS["PeakShedder"]}, 3) == PEAK


def test_the_same_bundles_move_where_brokers_come_and_go() -> None:
    assert of_all(shed, {"membership": RebalanceOnMembershipChange}, 20) == MEMBERSHIP


def test_split_policies_split_the_same_bundles() -> None:
    assert of_all(split, SPLIT_POLICIES, 14) == SPLIT


def test_placements_accept_the_same_brokers() -> None:
    assert of_all(place, PLACEMENTS, 6) == PLACE


def test_filters_keep_the_same_brokers() -> None:
    kinds = {each.__name__: each for each in (*FILTERS.values(), *EXTENSIBLE_FILTERS.values())}
    assert of_all(keep, kinds, 6) == KEEP


def test_both_load_managers_ask_filters_in_the_same_way() -> None:
    kinds = {each.__name__: each for each in (ModularSelectBroker, ExtensibleSelectBroker)}
    assert of_all(select, kinds, 2) == SELECT


def test_bundles_are_cut_at_the_same_places() -> None:
    assert of_all(cuts, SPLIT_ALGORITHMS, 12) == CUTS


def test_topics_lie_in_the_same_bundles() -> None:
    assert of_all(assign, ASSIGNMENTS, 40) == ASSIGN


def test_members_of_a_group_start_and_stop_the_same_work() -> None:
    protocols = {"eager": None, **{release.name: release for release in Release}}
    assert of_all(rebalance, protocols, 8) == REBALANCE
