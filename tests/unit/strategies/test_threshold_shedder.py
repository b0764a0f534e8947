import pytest

from controller.model.decision import Reason
from controller.model.load import ClusterView
from controller.strategies.shedding.threshold_shedder import ThresholdShedder
from tests.cluster import broker, view

SHEDDER = ThresholdShedder(threshold_percent=10, history_fraction=0, min_unload_mbytes=1)
#: Gives the busiest broker's bundles away for the sake of brokers below the lower boundary.
LOWER = ThresholdShedder(threshold_percent=10, history_fraction=0, min_unload_mbytes=1, lower_boundary=True)

HOT_AND_COLD = view(broker("hot", usage=0.9, big=60, small=40), broker("cold", usage=0.1, z=5))


def unloaded(cluster: ClusterView, shedder: ThresholdShedder = SHEDDER) -> tuple[Reason, list[str]]:
    decision, _ = shedder.decide(cluster, shedder.initial_memory())
    return decision.reason, [one.bundle for one in decision.unloads]


def verdicts(cluster: ClusterView, shedder: ThresholdShedder = SHEDDER) -> list[str]:
    decision, _ = shedder.decide(cluster, shedder.initial_memory())
    return [str(verdict) for verdict in decision.verdicts]


def test_recently_unloaded_bundle_stays_put_and_is_named() -> None:
    cluster = view(
        broker("hot", usage=0.90, big=60, small=40),
        broker("cold", usage=0.10, z=5),
        recently_unloaded=("big",),
    )
    assert unloaded(cluster) == (Reason.OVERLOADED, ["small"])
    assert "big: RecentlyUnloaded" in verdicts(cluster)


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


def test_less_than_the_minimum_throughput_is_not_worth_an_unload() -> None:
    shedder = ThresholdShedder(threshold_percent=10, history_fraction=0, min_unload_mbytes=36)
    assert unloaded(HOT_AND_COLD, shedder) == (Reason.BELOW_MINIMUM, [])
    assert "hot: BelowMinimum (35 vs 36 MB/s)" in verdicts(HOT_AND_COLD, shedder)


def test_the_verdict_says_which_limit_was_passed_and_by_how_much() -> None:
    assert verdicts(HOT_AND_COLD) == ["cold: Balanced (0.1 vs 0.6 usage)", "hot: Overloaded (0.9 vs 0.6 usage)"]
    decision, _ = SHEDDER.decide(HOT_AND_COLD, SHEDDER.initial_memory())
    assert [str(one.why) for one in decision.unloads] == ["hot: Overloaded (0.9 vs 0.6 usage)"]
    assert [one.source for one in decision.unloads] == ["hot"]


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
