"""The contents of namespace_state and broker_state records reach the view that filters read."""

from typing import Any

import pytest

from controller.aggregate.policies import policies_of
from controller.model.isolation_policies import isolation_policy
from controller.model.policies import IsolationPolicy, MinAvailable
from controller.model.records import BrokerState, NamespaceState
from tests.folds import view_of
from tests.records import LEFT, T, broker_state, broker_sweep, namespace_state, tick

#: As the admin API returns it.
GIVEN = {
    "namespaces": ["tenant/.*"],
    "primary": ["broker-1"],
    "secondary": ["broker-2"],
    "auto_failover_policy": {"policy_type": "min_available", "parameters": {"min_limit": "2", "usage_threshold": "80"}},
    "unload_scope": "none",
}
POLICY = IsolationPolicy(
    namespaces=("tenant/.*",),
    primary=("broker-1",),
    secondary=("broker-2",),
    auto_failover=MinAvailable(min_limit=2, usage_threshold=80),
)
BROKERS = ("broker-1:8080", "broker-2:8080")
#: Two brokers' sweeps, and the tick that follows them.
SWEPT = [
    broker_sweep(BROKERS[0]),
    broker_sweep(BROKERS[1], bundleStats=[]),
    tick(
        roster=[{"broker": name, "sweepId": f"{name}@{T}"} for name in BROKERS],
        partitions={"metrics": 1, "results": 0},
    ),
]


def test_an_isolation_policy_reaches_the_view() -> None:
    policies = view_of([namespace_state(isolationPolicies=[GIVEN]), *SWEPT]).policies
    assert policies.isolation == (POLICY,)
    assert policies.isolation_of("tenant/ns") == POLICY


def test_a_group_a_domain_a_version_and_topic_modes_reach_the_view() -> None:
    policies = view_of(
        [
            namespace_state(antiAffinityGroup="red"),
            broker_state(brokerVersionString="4.0.8", persistentTopicsEnabled=False, nonPersistentTopicsEnabled=True),
            broker_state(broker="broker-2:8080", failureDomain=None, nonPersistentTopicsEnabled=False),
            *SWEPT,
        ]
    ).policies
    assert policies.anti_affinity_group == {"tenant/ns": "red"}
    assert policies.failure_domain == {"broker-1:8080": "rack-1"}
    assert policies.broker_version == {"broker-1:8080": "4.0.8"}
    assert policies.without_persistent == {"broker-1:8080"}
    assert policies.without_non_persistent == {"broker-2:8080"}


def test_a_later_version_replaces_the_policies() -> None:
    policies = view_of([namespace_state(isolationPolicies=[GIVEN]), namespace_state(version=4), *SWEPT]).policies
    assert policies.isolation == ()


def test_bundles_sent_to_a_broker_are_in_the_view_until_they_arrive() -> None:
    going = view_of(SWEPT, sent={LEFT: "broker-2:8080", "tenant/ns/gone": "broker-2:8080"})
    assert [going.bundles.names[row] for row in going.preallocated.bundle.tolist()] == [LEFT]
    assert [going.brokers.names[row] for row in going.preallocated.broker.tolist()] == ["broker-2:8080"]
    assert going.brokers.preallocated_rate.tolist() == [0.0, going.bundles.long_term[0, :2].sum()]
    assert not len(view_of(SWEPT, sent={LEFT: "broker-1:8080"}).preallocated)


def test_a_policy_listed_by_several_namespaces_is_kept_once() -> None:
    other = GIVEN | {"namespaces": ["tenant/b"]}
    listing = {"tenant/a": [GIVEN], "tenant/b": [other, GIVEN], "tenant/c": []}
    policies = policies_of(
        [
            NamespaceState(namespace=name, version=1, boundaries=(), isolation_policies=tuple(given))
            for name, given in listing.items()
        ],
        [],
    )
    assert policies.isolation == (POLICY, isolation_policy(other))
    assert policies.listed == {"tenant/a": (0,), "tenant/b": (1, 0)}
    assert policies.isolation_of("tenant/b") == isolation_policy(other)


def test_keys_may_be_camel_case_and_a_missing_fail_over_policy_never_fails_over() -> None:
    camel = {"namespaces": ["a"], "autoFailoverPolicy": {"parameters": {"minLimit": 2, "usageThreshold": "80"}}}
    assert isolation_policy(camel).auto_failover == MinAvailable(min_limit=2, usage_threshold=80)
    assert isolation_policy({"namespaces": ["a"]}) == IsolationPolicy(namespaces=("a",), primary=())


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"namespaces": []}, "namespaces must list regular expressions"),
        ({"primary": "broker-1"}, "primary must be a list of regular expressions, got 'broker-1'"),
        ({"secondary": [1]}, "secondary must be a list of regular expressions, got [1]"),
        ({"auto_failover_policy": {"policy_type": "max"}}, "policy_type 'max' is unknown: min_available"),
        ({"auto_failover_policy": []}, "expected an object with policy_type, got []"),
        ({"auto_failover_policy": {"parameters": {"min_limit": 1.5}}}, "min_limit must be a whole number, got 1.5"),
        ({"auto_failover_policy": {"parameters": {"min_limit": "few"}}}, "min_limit must be a whole number"),
        (
            {"auto_failover_policy": {"parameters": {"usage_threshold": "80%"}}},
            "usage_threshold must be a whole number",
        ),
        (
            {"auto_failover_policy": {"parameters": {"usage_threshold": " 80"}}},
            "usage_threshold must be a whole number",
        ),
        ({"primary": [r"(a)\1"]}, r"expression (a)\1 of primary cannot be read: a backreference"),
    ],
)
def test_a_policy_that_cannot_be_read_holds_its_namespaces_and_says_why(changed: dict[str, Any], told: str) -> None:
    policies = view_of([namespace_state(isolationPolicies=[GIVEN | changed]), *SWEPT]).policies
    own, other = policies.governed(("tenant/ns", "other/ns"))
    assert told in own.why
    assert not other.why


@pytest.mark.parametrize("given", ["text", {"one": 1}, [["deep"]], [1, None], 7, [{"namespaces": "tenant/.*"}]])
def test_policies_of_another_form_hold_the_namespace_of_the_record(given: Any) -> None:
    policies = view_of([namespace_state(isolationPolicies=given), *SWEPT]).policies
    own, other = policies.governed(("tenant/ns", "tenant/other"))
    assert own.why
    assert not other.why


def test_a_broker_of_which_nothing_else_is_said_takes_topics_of_both_kinds() -> None:
    policies = policies_of([], [BrokerState(broker="broker-1", version=1)])
    assert policies.without_persistent == policies.without_non_persistent == frozenset()
