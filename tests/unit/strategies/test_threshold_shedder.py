import pytest

from controller.model.decision import Reason
from controller.model.load import ClusterView
from controller.strategies.common.usage_history import UsageHistory
from controller.strategies.shedding.threshold_shedder import ThresholdShedder
from tests.cluster import MB, broker, view

SHEDDER = ThresholdShedder(threshold_percent=10, history_fraction=0, min_unload_mbytes=1)
#: Gives the busiest broker's bundles away for the sake of brokers below the lower boundary.
LOWER = ThresholdShedder(threshold_percent=10, history_fraction=0, min_unload_mbytes=1, lower_boundary=True)
GB = 1024

HOT_AND_COLD = view(broker("hot", usage=0.9, big=60, small=40), broker("cold", usage=0.1, z=5))


def unloaded(cluster: ClusterView, shedder: ThresholdShedder = SHEDDER) -> tuple[Reason, list[str]]:
    decision, _ = shedder.decide(cluster, shedder.initial_memory())
    return decision.reason, [one.bundle for one in decision.unloads]


def verdicts(cluster: ClusterView, shedder: ThresholdShedder = SHEDDER) -> list[str]:
    decision, _ = shedder.decide(cluster, shedder.initial_memory())
    return [str(verdict) for verdict in decision.verdicts]


def test_what_is_above_average_and_threshold_goes_with_a_margin() -> None:
    # (0.8 - 0.6 - 0.1 + 0.05) x 10 GB/s = 1.5 GB/s: three bundles are too few, the fourth completes it.
    bundles = {f"b{i:02}": 0.4 * GB for i in range(25)}
    cluster = view(broker("hot", usage=0.8, **bundles), broker("other", usage=0.4, z=1))
    assert unloaded(cluster) == (Reason.OVERLOADED, ["b00", "b01", "b02", "b03"])


def test_the_busiest_bundles_go_first() -> None:
    # (0.9 - 0.5 - 0.1 + 0.05) x 100 MB/s = 35 MB/s
    cluster = view(broker("hot", usage=0.9, a=20, b=25, c=40, d=15), broker("cold", usage=0.1, z=5))
    assert unloaded(cluster) == (Reason.OVERLOADED, ["c"])
    assert unloaded(view(broker("hot", usage=0.9, a=30, b=32, c=38), broker("cold", usage=0.1, z=5)))[1] == ["c"]
    assert unloaded(view(broker("hot", usage=0.9, a=31, b=34, c=35, d=0.1), broker("cold", usage=0.1, z=5)))[1] == [
        "c",
        "b",
    ]


def test_one_bundle_goes_even_if_it_is_far_more_than_needed() -> None:
    cluster = view(broker("hot", usage=0.9, big=1000, small=0.1), broker("cold", usage=0.1, z=5))
    assert unloaded(cluster) == (Reason.OVERLOADED, ["big"])


def test_a_broker_exactly_at_the_limit_is_overloaded() -> None:
    shedder = ThresholdShedder(threshold_percent=25, history_fraction=0, min_unload_mbytes=1)
    cluster = view(broker("hot", usage=0.75, a=60, b=40), broker("cold", usage=0.25, z=5))
    assert unloaded(cluster, shedder) == (Reason.OVERLOADED, ["a"])


def test_brokers_near_the_average_are_balanced() -> None:
    cluster = view(broker("a", usage=0.55, x=60, y=40), broker("b", usage=0.45, z=90))
    assert unloaded(cluster) == (Reason.BALANCED, [])
    assert verdicts(cluster) == ["a: Balanced (0.55 vs 0.6 usage)", "b: Balanced (0.45 vs 0.6 usage)"]


def test_every_overloaded_broker_is_unloaded_in_the_order_of_their_names() -> None:
    cluster = view(
        broker("c", usage=0.9, c1=60, c2=40),
        broker("a", usage=0.9, a1=60, a2=40),
        broker("b", usage=0.0, z=5),
    )
    assert unloaded(cluster) == (Reason.OVERLOADED, ["a1", "c1"])


def test_recently_unloaded_bundle_stays_put_and_is_named() -> None:
    cluster = view(
        broker("hot", usage=0.90, big=60, small=40),
        broker("cold", usage=0.10, z=5),
        recently_unloaded=("big",),
    )
    assert unloaded(cluster) == (Reason.OVERLOADED, ["small"])
    assert "big: RecentlyUnloaded" in verdicts(cluster)


def test_nothing_is_left_to_unload_when_all_bundles_were_unloaded_recently() -> None:
    cluster = view(
        broker("hot", usage=0.9, big=60, small=40), broker("cold", usage=0.1, z=5), recently_unloaded=("big", "small")
    )
    assert unloaded(cluster) == (Reason.RECENTLY_UNLOADED, [])


@pytest.mark.parametrize("namespace", ["pulsar/hot:8080", "pulsar/cluster/hot:8080", "sla-monitor/cluster/hot:8080"])
def test_heartbeat_and_sla_bundles_stay_but_count_as_bundles(namespace: str) -> None:
    own = f"{namespace}/0x00000000_0xffffffff"
    cluster = view(broker("hot", usage=0.9, **{own: 90, "only": 10}), broker("cold", usage=0.1, z=5))
    assert unloaded(cluster) == (Reason.OVERLOADED, ["only"])
    assert f"{own}: SystemNamespace" in verdicts(cluster)


def test_a_sole_bundle_stays_and_the_verdict_says_so() -> None:
    cluster = view(broker("hot", usage=0.9, sole=100), broker("cold", usage=0.1, z=5))
    assert unloaded(cluster) == (Reason.SOLE_BUNDLE, [])
    assert verdicts(cluster)[1:] == [
        "hot: Overloaded (0.9 vs 0.6 usage)",
        "hot: SoleBundle: its only bundle would overload any other broker",
    ]


def test_an_overloaded_broker_without_bundles_has_nothing_to_give() -> None:
    shedder = ThresholdShedder(threshold_percent=10, history_fraction=0, min_unload_mbytes=0)
    assert unloaded(view(broker("hot", usage=0.9), broker("cold", usage=0.1, z=5)), shedder) == (Reason.NO_BUNDLES, [])


def test_less_than_the_minimum_throughput_is_not_worth_an_unload() -> None:
    shedder = ThresholdShedder(threshold_percent=10, history_fraction=0, min_unload_mbytes=36)
    assert unloaded(HOT_AND_COLD, shedder) == (Reason.BELOW_MINIMUM, [])
    assert "hot: BelowMinimum (35 vs 36 MB/s)" in verdicts(HOT_AND_COLD, shedder)


def test_the_verdict_says_which_limit_was_passed_and_by_how_much() -> None:
    assert verdicts(HOT_AND_COLD) == ["cold: Balanced (0.1 vs 0.6 usage)", "hot: Overloaded (0.9 vs 0.6 usage)"]
    decision, _ = SHEDDER.decide(HOT_AND_COLD, SHEDDER.initial_memory())
    assert [str(one.why) for one in decision.unloads] == ["hot: Overloaded (0.9 vs 0.6 usage)"]
    assert [one.source for one in decision.unloads] == ["hot"]


def test_usage_is_smoothed_by_its_history() -> None:
    shedder = ThresholdShedder(history_fraction=0.9)
    _, memory = shedder.decide(view(broker("a", usage=0.8, x=1)), shedder.initial_memory())
    _, memory = shedder.decide(view(broker("a", usage=0.5, x=1)), memory)
    assert memory.usage == pytest.approx({"a": 0.77})


def test_a_broker_that_is_away_for_a_round_keeps_its_history() -> None:
    shedder = ThresholdShedder(history_fraction=0.5)
    _, memory = shedder.decide(view(broker("b", usage=0.4, x=1)), UsageHistory(usage={"a": 0.25}))
    assert memory.usage == pytest.approx({"a": 0.25, "b": 0.4})


def test_an_unused_cluster_gives_no_load_data_and_no_brokers_say_so() -> None:
    assert unloaded(view(broker("a", x=10, y=10), broker("b", z=10))) == (Reason.NO_LOAD_DATA, [])
    assert unloaded(view()) == (Reason.NO_BROKERS, [])


def test_the_busiest_broker_gives_when_one_is_far_below_the_average() -> None:
    # Ten brokers at 80 % and one at 5 %: the average is 73 %, so none is above 83 %, but one is below 63 %.
    # What goes is 1000 MB/s x 10 % x 0.5 = 50 MB/s.
    full = [broker(f"b{i}", usage=0.80, **{f"x{i}": 970, f"y{i}": 30}) for i in range(9)]
    busiest = broker("busiest", usage=0.81, big=45, bigger=46, rest=454, more=455)
    cluster = view(*full, busiest, broker("restarted", usage=0.05))
    assert unloaded(cluster) == (Reason.BALANCED, [])
    assert unloaded(cluster, LOWER) == (Reason.UNDERLOADED, ["more"])
    assert verdicts(cluster, LOWER)[-1] == (
        "busiest: Underloaded (0.05 vs 0.632727 usage):"
        " restarted is below the lower boundary, this broker is the busiest"
    )


def test_lower_boundary_shedding_takes_half_the_threshold() -> None:
    # 1005 MB/s x 10 % x 0.5 = 50.25 MB/s: fifty bundles of 1 MB/s are too few.
    bundles = {f"b{i:04}": 1 for i in range(1005)}
    cluster = view(*(broker(f"full{i}", usage=0.5, **{f"x{i}": 1, f"y{i}": 1}) for i in range(9)),
                   broker("busiest", usage=0.55, **bundles), broker("empty", usage=0.05))  # fmt: skip
    assert unloaded(cluster, LOWER) == (Reason.UNDERLOADED, [f"b{i:04}" for i in range(51)])


def test_lower_boundary_shedding_moves_the_history_twice() -> None:
    shedder = ThresholdShedder(history_fraction=0.5, lower_boundary=True)
    now = view(broker("a", usage=0.5, x=1, y=1), broker("b", usage=0.5, z=1, w=1))
    _, memory = shedder.decide(now, UsageHistory(usage={"a": 0.1, "b": 0.1}))
    assert memory.usage == pytest.approx({"a": 0.4, "b": 0.4})


def test_lower_boundary_shedding_passes_over_a_broker_with_one_bundle() -> None:
    cluster = view(
        *(broker(f"full{i}", usage=0.5, **{f"x{i}": 600, f"y{i}": 400}) for i in range(9)),
        broker("sole", usage=0.55, only=1000),
        broker("empty", usage=0.05),
    )
    assert unloaded(cluster, LOWER) == (Reason.UNDERLOADED, ["x0"])


def test_throughput_is_counted_in_and_out_by_the_short_term_average() -> None:
    decision, _ = SHEDDER.decide(HOT_AND_COLD, SHEDDER.initial_memory())
    assert HOT_AND_COLD.brokers.throughput.tolist() == [5 * MB, 100 * MB]
    assert [one.bundle for one in decision.unloads] == ["big"]
