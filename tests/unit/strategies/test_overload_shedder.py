from dataclasses import replace

import numpy as np
import pytest

from controller.model.decision import Reason
from controller.model.load import ClusterView
from controller.strategies.shedding.overload_shedder import OverloadShedder
from tests.cluster import broker, view

SHEDDER = OverloadShedder(overloaded_percent=85)


def unloaded(cluster: ClusterView, shedder: OverloadShedder = SHEDDER) -> tuple[Reason, list[str]]:
    decision, _ = shedder.decide(cluster, shedder.initial_memory())
    return decision.reason, [one.bundle for one in decision.unloads]


def verdicts(cluster: ClusterView, shedder: OverloadShedder = SHEDDER) -> list[str]:
    decision, _ = shedder.decide(cluster, shedder.initial_memory())
    return [str(verdict) for verdict in decision.verdicts]


def test_an_idle_cluster_is_balanced_however_uneven() -> None:
    cluster = view(broker("hot", usage=0.84, a=60, b=40), broker("cold", usage=0.0))
    assert unloaded(cluster) == (Reason.BALANCED, [])
    assert verdicts(cluster) == ["cold: Balanced (0 vs 0.85 usage)", "hot: Balanced (0.84 vs 0.85 usage)"]


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
