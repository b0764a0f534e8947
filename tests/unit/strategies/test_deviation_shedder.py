import math
from dataclasses import replace

import numpy as np
import pytest

from controller.model.decision import Reason
from controller.model.load import RATE_IN, ClusterView
from controller.strategies.shedding.deviation_shedder import (
    DeviationShedder,
    MessageRateDeviationShedder,
    ThroughputDeviationShedder,
)
from tests.cluster import NAMESPACE, broker, broker_table, bundle, bundle_table, cluster_view, view

SHEDDER = ThroughputDeviationShedder(threshold=0.9)
#: Counts a moved bundle to its receiver.
FIXED = ThroughputDeviationShedder(threshold=0.9, fixed_receiver=True)
MB = 1024 * 1024


def unloaded(cluster: ClusterView, shedder: DeviationShedder = FIXED) -> tuple[Reason, list[str]]:
    decision, _ = shedder.decide(cluster, shedder.initial_memory())
    return decision.reason, [one.bundle for one in decision.unloads]


def verdicts(cluster: ClusterView, shedder: DeviationShedder = FIXED) -> list[str]:
    decision, _ = shedder.decide(cluster, shedder.initial_memory())
    return [str(verdict) for verdict in decision.verdicts]


def test_the_broker_that_stands_out_gives_until_it_no_longer_does() -> None:
    # 90 and 10 MB/s: 20 of it leaves 70 and 30, 40 % above the average, and 20 more makes them even.
    cluster = view(broker("hot", a=20, b=20, c=20, d=30), broker("cold", z=10))
    assert unloaded(cluster, replace(FIXED, min_above_percent=50)) == (Reason.OVERLOADED, ["d"])
    cluster = view(broker("hot", a=20, b=20, c=20, d=20, e=10), broker("cold", z=10))
    assert unloaded(cluster, replace(FIXED, min_above_percent=50)) == (Reason.OVERLOADED, ["d"])
    assert unloaded(cluster, replace(FIXED, min_above_percent=30)) == (Reason.OVERLOADED, ["d", "c"])


def test_of_little_load_a_broker_stands_out_as_of_much() -> None:
    for unit in (1.0, 0.001):
        cluster = view(broker("hot", a=20 * unit, b=20 * unit, c=50 * unit), broker("cold", z=10 * unit))
        assert unloaded(cluster, MessageRateDeviationShedder(threshold=0.9)) == (Reason.OVERLOADED, ["c"])


def test_a_bundle_that_would_make_the_receiver_as_busy_as_the_giver_stays() -> None:
    # 100 and 20 MB/s: with 80 the other one would have 100.
    cluster = view(broker("hot", a=80, b=20), broker("cold", z=20))
    assert unloaded(cluster) == (Reason.OVERLOADED, ["b"])
    cluster = view(broker("hot", a=79, b=21), broker("cold", z=20))
    assert unloaded(cluster)[1][0] == "a"


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


def test_a_broker_exactly_so_far_above_the_average_does_not_stand_out() -> None:
    # 150 and 50 MB/s: one deviation, and 50 %, above the average.
    cluster = view(broker("a", x=149, y=1), broker("b", z=50))
    assert unloaded(cluster, replace(FIXED, min_above_percent=50)) == (Reason.BALANCED, [])
    assert unloaded(cluster, replace(FIXED, min_above_percent=49)) == (Reason.OVERLOADED, ["y"])
    assert unloaded(cluster, replace(FIXED, min_above_percent=0, threshold=1)) == (Reason.BALANCED, [])


def test_brokers_all_alike_are_balanced_at_any_threshold() -> None:
    cluster = view(*(broker(f"b{i}", **{f"x{i}": 0.1, f"y{i}": 0.2}) for i in range(7)))
    zero = ThroughputDeviationShedder(threshold=0, min_above_percent=0, fixed_receiver=True)
    assert unloaded(cluster, zero) == (Reason.BALANCED, [])


def test_the_next_broker_has_its_turn_where_nothing_fits() -> None:
    cluster = view(broker("sole", a=100), broker("hot", b=60, c=20), broker("cold", z=1))
    assert unloaded(cluster, replace(FIXED, threshold=0.1)) == (Reason.OVERLOADED, ["b"])
    assert "sole: TooLarge" in " ".join(verdicts(cluster, replace(FIXED, threshold=0.1)))


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


def test_of_equal_brokers_and_bundles_the_last_by_name_gives_first() -> None:
    cluster = view(broker("a", a1=40, a2=40), broker("b", b1=40, b2=40), broker("c", c1=4))
    assert unloaded(cluster, ThroughputDeviationShedder(threshold=0.5, max_bundles=1))[1] == ["b2"]


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


def test_the_rounded_sum_decides_whether_a_bundle_fits_not_the_rounded_difference() -> None:
    # In doubles 7.7 - 1.1 is x, and x + 1.1 is less than 7.7.
    least, most = 1.1, 7.7
    x = most - least
    assert x + least < most
    brokers = broker_table(
        ["cold", "hot"],
        usage=np.zeros((2, 5)),
        limit=np.ones((2, 5)),
        load=np.array([[least, 0, 0, 0], [most, 0, 0, 0]]),
    )
    for loads, chosen in (([x], "b0"), ([x - 0.5, x], "b1"), ([x - 0.5, x, x + 0.5], "b1"), ([1.0, x, x], "b2")):
        names = [f"b{i}" for i in range(len(loads))]
        load = np.zeros((len(loads), 4))
        load[:, RATE_IN] = loads
        bundles = bundle_table(names, np.ones(len(loads), np.int64), load=load)
        one = MessageRateDeviationShedder(max_bundles=1, fixed_receiver=True)
        assert unloaded(cluster_view(brokers, bundles, bundle_count={NAMESPACE: 9}), one)[1] == [chosen]


def test_pulsar_takes_a_moved_bundle_off_its_receiver_too_and_so_stops_early() -> None:
    # 60 and 20: Pulsar thinks 55 and 15, 50 and 10, and then that there is no deviation from 40 left.
    cluster = view(broker("hot", **{f"b{i:02}": 5 for i in range(12)}), broker("cold", z=20))
    assert unloaded(cluster, replace(SHEDDER, min_above_percent=0)) == (Reason.OVERLOADED, ["b11", "b10"])
    assert unloaded(cluster, replace(FIXED, min_above_percent=0)) == (Reason.OVERLOADED, ["b11", "b10", "b09", "b08"])


def test_idle_bundles_stay_where_the_receiver_is_fixed() -> None:
    cluster = view(broker("hot", a=0, b=80), broker("cold"))
    assert unloaded(cluster, SHEDDER) == (Reason.OVERLOADED, ["a"])
    assert unloaded(cluster, FIXED) == (Reason.TOO_LARGE, [])


def test_no_brokers_say_so() -> None:
    assert unloaded(view()) == (Reason.NO_BROKERS, [])
