from collections.abc import Mapping
from dataclasses import replace

from controller.model.load import ClusterView
from controller.strategies.common import owned_bundles
from controller.strategies.common.owned_bundles import changed
from tests.cluster import broker, view


def digests(seen: ClusterView) -> Mapping[str, str]:
    return seen.owned_digests


BEFORE = digests(view(broker("a", x=1, y=2), broker("b", z=3), broker("c", w=4), broker("idle")))


def other(*brokers: str) -> list[bool]:
    return [name in brokers for name in BEFORE]


def test_who_gave_and_who_got_a_bundle_have_other_bundles_and_nobody_else_has() -> None:
    moved = digests(view(broker("a", x=1), broker("b", y=2, z=3), broker("c", w=4), broker("idle")))
    assert changed(BEFORE, moved).tolist() == other("a", "b")


def test_who_split_a_bundle_has_other_bundles() -> None:
    whole, left, right = (f"acme/test/0x{lower:08x}_0x{upper:08x}" for lower, upper in ((0, 8), (0, 4), (4, 8)))
    before = digests(view(broker("a", **{whole: 4}), broker("b", x=1)))
    assert changed(before, digests(view(broker("a", **{left: 2, right: 2}), broker("b", x=1)))).tolist() == [
        True,
        False,
    ]


def test_a_broker_that_is_seen_for_the_first_time_has_no_other_bundles_than_before() -> None:
    assert changed({}, BEFORE).tolist() == other()


def test_a_brokers_heartbeat_and_sla_monitor_come_and_go_unnoticed() -> None:
    own = {"pulsar/a:8080/0x00000000_0xffffffff": 1, "sla-monitor/lab/a:8080/0x00000000_0xffffffff": 1}
    assert digests(view(broker("a", x=1, **own))) == digests(view(broker("a", x=1)))


def test_brokers_without_data_are_remembered_as_they_were_and_those_that_left_are_forgotten() -> None:
    now = replace(view(broker("a", x=1)), missing=("b", "never seen"))
    held = owned_bundles.remembered(BEFORE, digests(now), now)
    assert held == {"a": digests(now)["a"], "b": BEFORE["b"]}
