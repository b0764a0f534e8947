import pytest

from controller.model.errors import TrimtabError
from controller.model.names import can_split, default_boundaries, is_broker_own, is_system_owned, parse_bundle


@pytest.mark.parametrize(
    "namespace",
    [
        *("pulsar/broker-1:8080", "pulsar/cluster/broker-1:8080"),
        *("sla-monitor/cluster/broker-1:8080", "sla-monitor/broker-1:8080"),
        # IPv6, with and without brackets (apache/pulsar 14732, 12252).
        *("pulsar/2001:db8::1:8080", "pulsar/lab/2001:db8::1:8080", "pulsar/[2001:db8::1]:8080"),
        *("pulsar/lab/[::1]:8080", "sla-monitor/lab/::1:8080", "sla-monitor/[fe80::1%eth0]:8443"),
    ],
)
def test_heartbeat_and_sla_namespaces_belong_to_one_broker(namespace: str) -> None:
    assert is_broker_own(namespace)
    assert is_system_owned(namespace)


def test_a_brokers_own_namespace_is_what_pulsars_patterns_match_also_for_odd_names() -> None:
    # As Java's HEARTBEAT_NAMESPACE_PATTERN, HEARTBEAT_NAMESPACE_PATTERN_V2 and SLA_NAMESPACE_PATTERN answered, in 4.0.8
    # or in 4.2.4.
    own = ["pulsar/a:b/h:80", "pulsar/c/d/h:80", "pulsar/c//h:80", "sla-monitor/c/a/b:80", "sla-monitor/a:b/h:80"]
    own += ["sla-monitor/h:80"]
    others = ["pulsar/h:\u0668", "pulsar/:80", "pulsar/h:", "pulsar/c/:80"]
    assert [name for name in own + others if is_broker_own(name)] == own


def test_the_system_namespace_is_untouchable_but_belongs_to_no_broker() -> None:
    assert is_system_owned("pulsar/system")
    assert not is_broker_own("pulsar/system")


@pytest.mark.parametrize("namespace", ["public/default", "acme/host:8080", "pulsar/tenants", "sla-monitor/cluster"])
def test_other_namespaces_may_be_moved(namespace: str) -> None:
    assert not is_system_owned(namespace)


def test_a_new_namespace_has_equal_bundles_and_the_last_gets_the_remainder() -> None:
    assert default_boundaries(1) == (0, 0xFFFFFFFF)
    assert default_boundaries(4) == (0, 0x40000000, 0x80000000, 0xC0000000, 0xFFFFFFFF)
    assert default_boundaries(3) == (0, 0x55555555, 0xAAAAAAAA, 0xFFFFFFFF)


def test_a_range_of_one_cannot_be_split() -> None:
    assert not can_split(7, 8)
    assert can_split(7, 9)


@pytest.mark.parametrize("hashes", ["0x80000000_0x80000000", "0x80000001_0x80000000", "0x00000000_0x00000000"])
def test_a_bundle_without_a_hash_is_none(hashes: str) -> None:
    with pytest.raises(TrimtabError, match=f"{hashes}' is not a bundle name: .* with lower < upper"):
        parse_bundle(f"t/n/{hashes}")


def test_who_gives_a_topic_for_a_bundle_is_told_where_to_find_its_bundle() -> None:
    for topic in ("persistent://t/n/orders", "segment://t/n/orders/0000-3fff-0"):
        with pytest.raises(
            TrimtabError, match=r"is not a bundle name: .*; `trimtab lookup` finds the bundle of a topic"
        ):
            parse_bundle(topic)


def test_a_name_has_at_most_1024_characters() -> None:
    ending = "/0x00000000_0x80000000"
    longest = "t/" + "n" * (1024 - len(ending) - 2) + ending
    assert parse_bundle(longest).upper == 0x80000000
    with pytest.raises((TrimtabError, ValueError), match="a text of 1025 characters"):
        parse_bundle("n" + longest)
    with pytest.raises(TrimtabError, match=f"^'{'x' * 1024}' is not a bundle name"):
        parse_bundle("x" * 1024)
