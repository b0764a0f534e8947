"""A policy by itself: which hosts are its own, which of them can take anything, and when secondary ones step in."""

from controller.model.java_regex import matches
from controller.model.policies import BrokerStatus, IsolationPolicy, MinAvailable
from tests.conformance.vectors import Case

COMPONENT = "namespace_isolation_policy"


def test_a_policy_sees_the_same_brokers_and_the_same_need(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    policy = IsolationPolicy(
        namespaces=(".*",),
        primary=tuple(given["primary"]),
        secondary=tuple(given["secondary"]),
        auto_failover=MinAvailable(min_limit=given["min_limit"], usage_threshold=given["usage_threshold"]),
    )
    statuses = {BrokerStatus(b["load_factor"], b["host"], active=b["active"]) for b in given["brokers"]}
    assert {
        status.address: {
            "primary": matches(policy.primary, status.address),
            "secondary": matches(policy.secondary, status.address),
            "primary_available": matches(policy.primary, status.address) and policy.auto_failover.is_available(status),
        }
        for status in statuses
    } == expected["brokers"]
    ordered = sorted(statuses)
    assert [status.address for status in ordered] == expected["sorted_statuses"]
    available = [status.address for status in ordered if policy.auto_failover.is_available(status)]
    assert available == expected["available_primaries"]
    assert policy.fails_over(tuple(ordered)) == expected["should_failover"]
