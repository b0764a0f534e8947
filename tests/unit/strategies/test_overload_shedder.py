from dataclasses import replace

import numpy as np
import pytest

from controller.model.decision import Reason
from controller.model.load import BANDWIDTH_OUT, ClusterView
from controller.strategies.shedding.overload_shedder import OverloadShedder
from tests.cluster import broker, view

SHEDDER = OverloadShedder(overloaded_percent=85)


def unloaded(cluster: ClusterView, shedder: OverloadShedder = SHEDDER) -> tuple[Reason, list[str]]:
    decision, _ = shedder.decide(cluster, shedder.initial_memory())
    return decision.reason, [one.bundle for one in decision.unloads]


def verdicts(cluster: ClusterView, shedder: OverloadShedder = SHEDDER) -> list[str]:
    decision, _ = shedder.decide(cluster, shedder.initial_memory())
    return [str(verdict) for verdict in decision.verdicts]


def test_what_is_above_the_threshold_goes_with_a_margin() -> None:
    # (0.95 - 0.85 + 0.05) x 100 MB/s = 15 MB/s: 14 are too few.
    cluster = view(broker("hot", usage=0.95, a=14, b=12, c=74), broker("cold", usage=0.1, z=5))
    assert unloaded(cluster) == (Reason.OVERLOADED, ["c"])
    cluster = view(broker("hot", usage=0.95, **{f"b{i:02}": 5 for i in range(20)}))
    assert unloaded(cluster) == (Reason.OVERLOADED, ["b00", "b01", "b02"])


def test_the_busiest_bundles_go_first() -> None:
    cluster = view(broker("hot", usage=1.19, a=30, b=40, c=20, d=10))  # 39 MB/s
    assert unloaded(cluster) == (Reason.OVERLOADED, ["b"])
    cluster = view(broker("hot", usage=1.25, a=30, b=40, c=20, d=10))  # 45 MB/s
    assert unloaded(cluster) == (Reason.OVERLOADED, ["b", "a"])


def test_one_bundle_goes_even_if_it_is_far_more_than_needed() -> None:
    assert unloaded(view(broker("hot", usage=0.9, big=1000, small=0.1))) == (Reason.OVERLOADED, ["big"])


def test_a_broker_exactly_at_the_threshold_is_overloaded() -> None:
    cluster = view(broker("at", usage=0.5, a=60, b=40), broker("below", usage=0.49, c=60, d=40))
    assert unloaded(cluster, OverloadShedder(overloaded_percent=50)) == (Reason.OVERLOADED, ["a"])


def test_a_busy_broker_gives_even_if_all_are_as_busy() -> None:
    cluster = view(broker("b", usage=0.9, b1=60, b2=40), broker("a", usage=0.9, a1=60, a2=40))
    assert unloaded(cluster) == (Reason.OVERLOADED, ["a1", "b1"])


def test_an_idle_cluster_is_balanced_however_uneven() -> None:
    cluster = view(broker("hot", usage=0.84, a=60, b=40), broker("cold", usage=0.0))
    assert unloaded(cluster) == (Reason.BALANCED, [])
    assert verdicts(cluster) == ["cold: Balanced (0 vs 0.85 usage)", "hot: Balanced (0.84 vs 0.85 usage)"]


def test_usage_is_that_of_the_fullest_resource_by_its_weight() -> None:
    cluster = view(broker("hot", usage=0.2, a=60, b=40))
    usage = cluster.brokers.usage.copy()
    usage[0, BANDWIDTH_OUT] = 90
    cluster = replace(cluster, brokers=replace(cluster.brokers, usage=usage))
    assert unloaded(cluster) == (Reason.OVERLOADED, ["a"])
    assert unloaded(cluster, OverloadShedder(bandwidth_out_weight=0.5)) == (Reason.BALANCED, [])


def test_recently_unloaded_bundle_stays_put_and_is_named() -> None:
    cluster = view(broker("hot", usage=0.9, big=60, small=40), recently_unloaded=("big",))
    assert unloaded(cluster) == (Reason.OVERLOADED, ["small"])
    assert verdicts(cluster) == ["hot: Overloaded (0.9 vs 0.85 usage)", "big: RecentlyUnloaded"]
    assert unloaded(replace(cluster, recently_unloaded=np.array([True, True]))) == (Reason.RECENTLY_UNLOADED, [])


@pytest.mark.parametrize("namespace", ["pulsar/hot:8080", "sla-monitor/cluster/hot:8080"])
def test_heartbeat_and_sla_bundles_stay_but_count_as_bundles(namespace: str) -> None:
    own = f"{namespace}/0x00000000_0xffffffff"
    cluster = view(broker("hot", usage=0.9, **{own: 90, "only": 10}))
    assert unloaded(cluster) == (Reason.OVERLOADED, ["only"])
    assert f"{own}: SystemNamespace" in verdicts(cluster)


def test_a_sole_bundle_stays_and_the_verdict_says_so() -> None:
    cluster = view(broker("hot", usage=0.9, sole=100))
    assert unloaded(cluster) == (Reason.SOLE_BUNDLE, [])
    assert verdicts(cluster)[1] == "hot: SoleBundle: its only bundle would overload any other broker"


def test_without_bundles_or_brokers_there_is_nothing_to_give() -> None:
    assert unloaded(view(broker("hot", usage=0.9))) == (Reason.NO_BUNDLES, [])
    assert unloaded(view()) == (Reason.NO_BROKERS, [])
