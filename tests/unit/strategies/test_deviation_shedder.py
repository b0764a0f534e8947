import math

import pytest

from controller.model.decision import Reason
from controller.model.load import ClusterView
from controller.strategies.shedding.deviation_shedder import (
    DeviationShedder,
    MessageRateDeviationShedder,
    ThroughputDeviationShedder,
)
from tests.cluster import broker, bundle, view

SHEDDER = ThroughputDeviationShedder(threshold=0.9)
#: Counts a moved bundle to its receiver.
FIXED = ThroughputDeviationShedder(threshold=0.9, fixed_receiver=True)


def unloaded(cluster: ClusterView, shedder: DeviationShedder = FIXED) -> tuple[Reason, list[str]]:
    decision, _ = shedder.decide(cluster, shedder.initial_memory())
    return decision.reason, [one.bundle for one in decision.unloads]


def verdicts(cluster: ClusterView, shedder: DeviationShedder = FIXED) -> list[str]:
    decision, _ = shedder.decide(cluster, shedder.initial_memory())
    return [str(verdict) for verdict in decision.verdicts]


def test_how_far_a_broker_stands_out_is_said_in_standard_deviations() -> None:
    # 10, 10, 10 and 50: the average is 20, the deviation sqrt(300).
    brokers = [broker(f"b{i}", **{f"x{i}": 10}) for i in range(3)]
    cluster = view(*brokers, broker("hot", a=25, b=25))
    said = ThroughputDeviationShedder(threshold=2).decide(cluster, SHEDDER.initial_memory())[0].verdicts
    assert [v.observed for v in said] == pytest.approx([-10 / math.sqrt(300)] * 3 + [math.sqrt(3)])
    assert {(v.reason, v.limit, v.unit) for v in said} == {
        (Reason.BALANCED, 2, "standard deviations above the average")
    }
    assert unloaded(cluster, ThroughputDeviationShedder(threshold=1.8)) == (Reason.BALANCED, [])
    assert unloaded(cluster, ThroughputDeviationShedder(threshold=1.7)) == (Reason.OVERLOADED, ["b"])


def test_a_broker_a_few_percent_above_the_average_never_stands_out() -> None:
    cluster = view(broker("a", x=54, y=1), broker("b", z=45))
    assert unloaded(cluster, ThroughputDeviationShedder(min_above_percent=10)) == (Reason.BALANCED, [])
    assert unloaded(cluster, ThroughputDeviationShedder(min_above_percent=9)) == (Reason.OVERLOADED, ["y"])


def test_where_nothing_fits_anywhere_the_verdict_says_why() -> None:
    cluster = view(broker("hot", a=100), broker("cold"))
    assert unloaded(cluster) == (Reason.TOO_LARGE, [])
    assert verdicts(cluster)[-1] == (
        "hot: TooLarge (1.04858e+08 vs 1.04858e+08 bytes/s): any bundle would make the idlest broker at least as busy"
    )


def test_the_measure_is_bytes_or_messages_of_this_interval() -> None:
    cluster = view(
        broker("chatty", a=bundle(10, msg_rate=500), b=bundle(10, msg_rate=200)),
        broker("heavy", c=bundle(50, msg_rate=10), d=bundle(20, msg_rate=10)),
    )
    assert unloaded(cluster, ThroughputDeviationShedder()) == (Reason.OVERLOADED, ["d"])
    assert unloaded(cluster, MessageRateDeviationShedder()) == (Reason.OVERLOADED, ["a"])


def test_at_most_so_many_bundles_go_at_once() -> None:
    cluster = view(broker("hot", **{f"b{i}": 10 for i in range(9)}), broker("cold"))
    assert unloaded(cluster, ThroughputDeviationShedder(max_bundles=2, fixed_receiver=True))[1] == ["b8", "b7"]
    assert len(unloaded(cluster)[1]) == 4
    assert unloaded(cluster, ThroughputDeviationShedder(max_bundles=0)) == (Reason.BALANCED, [])


def test_recently_unloaded_and_own_bundles_stay_and_are_named() -> None:
    own = "pulsar/hot:8080/0x00000000_0xffffffff"
    hot = broker("hot", **{own: 30, "a": 30, "b": 20})
    cluster = view(hot, broker("cold", z=5), recently_unloaded=("a",))
    assert unloaded(cluster) == (Reason.OVERLOADED, ["b"])
    assert {"a: RecentlyUnloaded", f"{own}: SystemNamespace"} <= set(verdicts(cluster))
    assert unloaded(view(hot, broker("cold", z=5), recently_unloaded=("a", "b"))) == (Reason.RECENTLY_UNLOADED, [])


def test_idle_bundles_stay_where_the_receiver_is_fixed() -> None:
    cluster = view(broker("hot", a=0, b=80), broker("cold"))
    assert unloaded(cluster, SHEDDER) == (Reason.OVERLOADED, ["a"])
    assert unloaded(cluster, FIXED) == (Reason.TOO_LARGE, [])


def test_no_brokers_say_so() -> None:
    assert unloaded(view()) == (Reason.NO_BROKERS, [])
