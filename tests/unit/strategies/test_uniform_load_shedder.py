from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from controller.model.decision import Reason
from controller.model.load import ClusterView
from controller.strategies.shedding.uniform_load_shedder import UniformLoadShedder
from tests.cluster import MB, Broker, Bundle, broker, bundle, view

SHEDDER = UniformLoadShedder(share_to_unload=0.5)


def unloaded(cluster: ClusterView, shedder: UniformLoadShedder = SHEDDER) -> tuple[Reason, list[str]]:
    decision, _ = shedder.decide(cluster, shedder.initial_memory())
    return decision.reason, [one.bundle for one in decision.unloads]


def verdicts(cluster: ClusterView, shedder: UniformLoadShedder = SHEDDER) -> list[str]:
    decision, _ = shedder.decide(cluster, shedder.initial_memory())
    return [str(verdict) for verdict in decision.verdicts]


def serving(name: str, bundles: Mapping[str, Bundle]) -> Broker:
    """A broker with bundles of any name."""
    return Broker(name, cpu=0, bundles=bundles)


def messages(rate: float) -> Bundle:
    """A bundle of *rate* msg/s, no bytes."""
    return bundle(0, msg_rate=rate)


def by_throughput(**options: Any) -> UniformLoadShedder:
    return UniformLoadShedder(rate_difference_percent=0, share_to_unload=0.5, **options)


@pytest.mark.parametrize(
    ("percent", "told"),
    [(1, "(1 vs 1 % above the lowest message rate)"), (0, "(0 vs 4 times the lowest throughput)")],
)
def test_a_rate_that_may_differ_by_1_percent_is_told_of_and_one_of_0_is_not(percent: int, told: str) -> None:
    cluster = view(broker("a", x=messages(10_100)), broker("b", z=messages(10_000)))
    assert verdicts(cluster, replace(SHEDDER, rate_difference_percent=percent))[0] == f"a: Balanced {told}"


def test_bundles_all_too_large_stay_and_the_verdict_says_by_how_much() -> None:
    cluster = view(broker("busy", a=messages(30_000), b=messages(30_000)), broker("idle", z=messages(10_000)))
    assert unloaded(cluster) == (Reason.TOO_LARGE, [])
    assert verdicts(cluster)[-1] == "busy: TooLarge (30000 vs 26000 msg/s)"
    bundles = {name: messages(rate) for name, rate in (("a", 40_000), ("b", 30_000), ("c", 20_000))}
    several = view(serving("busy", bundles), broker("idle", z=messages(10_000)))
    assert verdicts(several, UniformLoadShedder(share_to_unload=0.2))[-1] == "busy: TooLarge (20000 vs 17000 msg/s)"


def test_recently_unloaded_and_own_bundles_stay_and_are_named() -> None:
    own = "pulsar/busy:8080/0x00000000_0xffffffff"
    busy = serving("busy", {own: messages(9_000), "a": messages(9_000), "b": messages(9_000)})
    cluster = view(busy, broker("idle", z=messages(100)), recently_unloaded=("a",))
    assert unloaded(cluster) == (Reason.OVERLOADED, ["b"])
    assert verdicts(cluster)[2:] == ["a: RecentlyUnloaded", f"{own}: SystemNamespace"]
    cluster = view(busy, broker("idle", z=messages(100)), recently_unloaded=("a", "b"))
    assert unloaded(cluster) == (Reason.RECENTLY_UNLOADED, [])


def test_a_sole_bundle_stays_and_no_brokers_say_so() -> None:
    assert unloaded(view(broker("busy", a=messages(9_000)), broker("idle"))) == (Reason.SOLE_BUNDLE, [])
    assert unloaded(view()) == (Reason.NO_BROKERS, [])


# What goes wrong in Pulsar above the range of int, and what the option mends.


def test_the_one_message_of_an_idle_broker_is_missing_from_the_amount_unless_fixed() -> None:
    cluster = view(broker("busy", a=messages(1_500), b=messages(500)), broker("idle"))
    for fixed, reason in ((False, Reason.BELOW_MINIMUM), (True, Reason.OVERLOADED)):
        shedder = UniformLoadShedder(share_to_unload=1.0, min_unload_rate=2_000, fixed_extremes=fixed)
        assert unloaded(cluster, shedder)[0] == reason


@pytest.mark.parametrize(("fixed", "expected"), [(False, ["a", "b", "c"]), (True, ["a", "b"])])
def test_fractions_of_what_was_taken_are_lost_unless_fixed(fixed: bool, expected: list[str]) -> None:
    # Required are 1,000 msg/s: two bundles of 999.9 leave 2 in int and else -999.8, with the slack of 1,000.
    busy = broker("busy", a=messages(999.9), b=messages(999.9), c=messages(0.5))
    cluster = view(busy, broker("idle", z=messages(0.3)))
    shedder = UniformLoadShedder(share_to_unload=0.5, min_unload_rate=0, fixed_extremes=fixed)
    assert unloaded(cluster, shedder)[1] == expected


def test_megabytes_are_bytes_here() -> None:
    cluster = view(broker("busy", a=1, b=1.5), broker("idle", z=0.5))
    assert unloaded(cluster, by_throughput(min_unload_throughput=MB)) == (Reason.OVERLOADED, ["a"])
    assert unloaded(cluster, by_throughput(min_unload_throughput=MB + 1)) == (Reason.BELOW_MINIMUM, [])
