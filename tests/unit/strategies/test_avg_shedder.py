from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from controller.model.decision import Reason, UnloadDecision
from controller.model.load import ClusterView
from controller.model.strategy_memory import NoMemory
from controller.strategies.common.candidates import Candidates
from controller.strategies.filters.modular_select_broker import ModularSelectBroker
from controller.strategies.placement.avg_shedder_placement import AvgShedder as AvgShedderPlacement
from controller.strategies.placement.least_long_term_message_rate import LeastLongTermMessageRate
from controller.strategies.shedding.avg_shedder import AvgShedder
from controller.strategies.shedding.avg_shedder.pairs import MAX_AWAY, BrokerHitCounts
from controller.strategies.view_builder import cluster_view as cluster_view_of
from tests.cluster import MB, Broker, broker, broker_table, bundle, bundle_table, cluster_view, view


def shedder(**options: Any) -> AvgShedder:
    """One that acts at once and moves half the difference."""
    at_once = {"low_threshold": 20, "high_threshold": 50, "hit_count_low": 1, "hit_count_high": 1}
    return AvgShedder(**{**at_once, "max_unload_share": 0.5, **options})


def decided(cluster: ClusterView, strategy: AvgShedder, rounds: int = 1) -> UnloadDecision:
    memory = strategy.initial_memory()
    for _ in range(rounds):
        decision, memory = strategy.decide(cluster, memory)
    return decision


def moves(cluster: ClusterView, strategy: AvgShedder | None = None) -> list[tuple[str, str, str]]:
    found = decided(cluster, shedder() if strategy is None else strategy)
    return [(one.bundle, one.source, one.destination) for one in found.unloads]


def two(hot: float, cold: float, **bundles: float) -> ClusterView:
    return view(broker("hot", usage=hot, **bundles), broker("cold", usage=cold, z=4))


@pytest.mark.parametrize(("away", "kept"), [(MAX_AWAY, MAX_AWAY), (MAX_AWAY + 1, 0)])
def test_brokers_that_are_away_are_forgotten_once_there_are_more_than_a_cluster_can_have(away: int, kept: int) -> None:
    gone = {f"gone-{number}": 1 for number in range(away)}
    before, strategy = (
        BrokerHitCounts(high={"cold": 1}, low={"cold": 3, **gone}),
        shedder(hit_count_low=9, hit_count_high=9),
    )
    _, memory = strategy.decide(two(0.9, 0.1, a=1), before)
    assert (len(memory.low), memory.low["cold"], memory.high) == (2 + kept, 4, {"hot": 1, "cold": 2})


def test_exactly_the_minimum_is_too_little() -> None:
    # (100 - 80) x 0.5 = 10 MB/s and msg/s
    cluster = view(broker("hot", usage=0.9, a=92, b=8), broker("cold", usage=0.1, z=80))
    assert moves(cluster, shedder(min_unload_throughput=10 * MB - 1)) == [("b", "hot", "cold")]
    decision = decided(cluster, shedder(min_unload_throughput=10 * MB))
    assert (decision.reason, decision.unloads) == (Reason.BELOW_MINIMUM, ())
    assert str(decision.verdicts[-1]) == "hot: BelowMinimum (10 vs 10 MB/s): and 10 vs 1000 msg/s"


def test_recently_unloaded_and_a_brokers_own_bundles_stay_and_are_named() -> None:
    own = "pulsar/hot:8080/0x00000000_0xffffffff"
    cluster = view(
        broker("hot", usage=0.9, **{own: 30, "recent": 29, "a": 28, "big": 100}),
        broker("cold", usage=0.1),
        recently_unloaded=("recent",),
    )
    decision = decided(cluster, shedder())
    assert [one.bundle for one in decision.unloads] == ["a"]
    assert {f"{own}: SystemNamespace", "recent: RecentlyUnloaded"} <= set(map(str, decision.verdicts))


def test_a_broker_whose_bundles_are_all_too_large_gives_nothing_and_the_verdict_says_so() -> None:
    decision = decided(two(0.9, 0.1, big=100), shedder())
    assert (decision.unloads, decision.reason) == ((), Reason.NO_BUNDLES)
    assert str(decision.verdicts[-1]) == "hot: NoBundles: no bundle with traffic is small enough for what is to move"


def test_verdicts_say_how_far_a_pair_is_apart_and_what_it_waits_for() -> None:
    strategy = shedder(hit_count_low=3, hit_count_high=2)
    cluster = two(0.9, 0.1, a=90, b=30)
    assert [str(one) for one in decided(cluster, strategy).verdicts] == [
        "hot: HitCount (1 vs 2 rounds): 80 points between cold and hot",
        "cold: HitCount (1 vs 2 rounds): 80 points between cold and hot",
    ]
    decision = decided(cluster, strategy, 2)
    assert [str(one) for one in decision.verdicts] == [
        "hot: Overloaded (80 vs 50 points): above cold",
        "cold: Underloaded (80 vs 50 points): below hot",
    ]
    assert decision.reason is Reason.OVERLOADED
    assert decision.unloads[0].why is decision.verdicts[0]
    assert decided(two(0.5, 0.25, a=90, b=30), strategy).verdicts[0].limit == 3
    assert [str(one) for one in decided(two(0.5, 0.4, a=90), strategy).verdicts] == [
        "hot: Balanced (10 vs 20 points): above cold",
        "cold: Balanced (10 vs 20 points): below hot",
    ]


def test_the_middle_broker_is_paired_with_itself_unless_fixed() -> None:
    cluster = view(*(broker(f"b{i}", usage=0.5, **{f"x{i}": 10, f"y{i}": 10}) for i in range(3)))
    counting = {"low_threshold": 0, "hit_count_low": 9, "hit_count_high": 9}
    _, memory = shedder(**counting).decide(cluster, BrokerHitCounts())
    assert memory.low == {"b0": 1, "b1": 2, "b2": 1}
    decision, memory = shedder(**counting, fixed=True).decide(cluster, BrokerHitCounts(low={"b1": 7}))
    assert memory.low == {"b0": 1, "b2": 1}
    assert "b1: Balanced (0 vs 0 points): above b1" in map(str, decision.verdicts)


def test_a_sole_bundle_may_go_unless_fixed() -> None:
    # Its traffic of late is far below what the broker has now.
    cluster = lonely(short_term=10)
    assert moves(cluster) == [("acme/a/0x00000000_0xffffffff", "hot", "cold")]
    decision = decided(cluster, shedder(fixed=True))
    assert (decision.unloads, decision.reason) == ((), Reason.SOLE_BUNDLE)


def lonely(short_term: float) -> ClusterView:
    load = np.array([[0, 0, 0, 0], [0, 0, 100 * MB, 0]], np.float64)
    usage = np.array([[10, 0, 0, 0, 0], [90, 0, 0, 0, 0]], np.float64)
    brokers = broker_table(
        ["cold", "hot"], usage=usage, limit=np.full((2, 5), 100.0), load=load, bundle_count=np.array([0, 1])
    )
    average = np.array([[0, 0, short_term * MB, 0]])
    return cluster_view(
        brokers, bundle_table(["acme/a/0x00000000_0xffffffff"], np.array([1]), short_term=average, long_term=average)
    )


def test_bundles_with_equal_data_go_where_the_last_of_them_is_meant_to_unless_each_has_its_own_plan() -> None:
    def full(name: str, usage: float) -> Broker:
        return broker(name, usage=usage, **{f"same-{name}": 10, f"other-{name}": 50 + usage})

    cluster = view(full("b1", 0.9), full("b2", 0.8), broker("b3", usage=0.1), broker("b4", usage=0.2))
    assert moves(cluster) == [("same-b1", "b1", "b4"), ("same-b2", "b2", "b4")]
    for option in ("fixed", "plans_by_bundle"):
        assert moves(cluster, shedder(**{option: True})) == [("same-b1", "b1", "b3"), ("same-b2", "b2", "b4")]


#: Four brokers of which nobody has a, b, c: a and b have equal data.
PLACED = cluster_view_of(
    *(Broker(f"b{i}", cpu=0.5) for i in range(1, 5)),
    unowned={"acme/t/a": bundle(10), "acme/t/b": bundle(10), "acme/t/c": bundle(20)},
)


def placed(cluster: ClusterView, of: str, *candidates: int, **options: Any) -> list[int]:
    """The rows that bundle *of* may go to."""
    placement, row = AvgShedderPlacement(**options), cluster.bundles.code_of[f"acme/t/{of}"]
    return [int(broker) for broker in placement.acceptable(cluster, row, np.array(candidates), NoMemory())[0]]


def sent_to(cluster: ClusterView, of: str, broker: int) -> ClusterView:
    return cluster.with_preallocated(cluster.bundles.code_of[f"acme/t/{of}"], broker)


def test_a_bundle_on_its_way_goes_where_it_was_sent_while_that_broker_is_a_candidate() -> None:
    # Java: selectBroker puts its choice into bundleBrokerMap, and returns it while the candidates contain it.
    once = sent_to(PLACED, "c", 2)
    assert placed(once, "c", 0, 1, 2) == [2]
    assert placed(once, "c", 0, 1) == [0, 1]
    assert placed(sent_to(once, "c", 1), "c", 0, 1, 2) == [1]


def test_bundles_of_equal_data_go_to_one_broker_as_in_pulsar_unless_that_is_fixed() -> None:
    # Java: bundleBrokerMap's key is the bundle's data, and BundleData.equals compares averages and topics.
    once = sent_to(PLACED, "a", 3)
    assert placed(once, "b", 0, 1, 2, 3) == [3]
    assert placed(once, "c", 0, 1, 2, 3) == [0, 1, 2, 3]
    assert placed(once, "b", 0, 1, 2, 3, fixed=True) == [0, 1, 2, 3]
    assert placed(once, "a", 0, 1, 2, 3, fixed=True) == [3]


def test_a_full_broker_that_was_chosen_is_kept_where_filters_leave_full_brokers_only() -> None:
    # Java: selectBroker of ModularLoadManagerImpl asks again without filters, and gets the remembered broker.
    cluster = cluster_view_of(
        Broker("b1", cpu=0.9), Broker("b2", cpu=0.9), Broker("b3", cpu=0.1), unowned={"x": bundle(1)}
    )
    select, rows = ModularSelectBroker(), np.array([0, 1])
    found = Candidates(allowed=np.arange(3), remaining=rows, steps=())
    for placement, left in ((AvgShedderPlacement(), [0, 1]), (LeastLongTermMessageRate(), [2])):
        assert select.acceptable(cluster, 0, found, placement, NoMemory())[0].tolist() == left


#: b1 owns x; b2 and b3 have room, b4 is above 85 %, b5 is exactly there.
_USED = {"b1": 0.95, "b2": 0.1, "b3": 0.2, "b4": 0.9, "b5": 0.85}
CROWDED = view(*(broker(name, usage=used, **({"x": 10} if name == "b1" else {})) for name, used in _USED.items()))


def by_plan(planned: str, *candidates: str, cluster: ClusterView = CROWDED) -> list[str]:
    """The brokers that x may go to, by a plan for it alone; "": there is no plan."""
    code_of, names = cluster.brokers.code_of, cluster.brokers.names
    cluster = replace(cluster, planned=code_of[planned]) if planned else cluster
    rows = np.array([code_of[name] for name in candidates])
    placement = AvgShedderPlacement(plans_by_bundle=True)
    return [names[row] for row in placement.acceptable(cluster, 0, rows, NoMemory())[0].tolist()]


@pytest.mark.parametrize(
    ("planned", "candidates", "accepted"),
    [
        ("b2", "b1 b2 b3 b4", "b2"),
        ("b5", "b1 b2 b5", "b5"),  # exactly at the limit is not above it
        ("b4", "b1 b2 b3 b4 b5", "b2 b3 b5"),
        ("b4", "b1 b4", "b4"),  # nothing else but its own broker
        ("b2", "b1 b3 b5", "b3 b5"),
        ("b2", "b1 b3 b4", "b3"),
        ("b2", "b1 b4", "b4"),
        ("b2", "b1", ""),  # without a plan it could stay
        ("", "b1 b4", "b1 b4"),
        ("", "b1", "b1"),
    ],
)
def test_a_plan_for_one_bundle_gives_way_where_its_broker_is_no_candidate_or_is_overloaded(
    planned: str, candidates: str, accepted: str
) -> None:
    # Java: AvgShedder.selectBrokerWithBundleName of Pulsar 5.0.
    assert by_plan(planned, *candidates.split()) == accepted.split()
