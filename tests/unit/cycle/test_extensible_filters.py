"""The extensible load manager's filters: their order, their topic limit, and the shedder that asks them itself."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from controller.cycle import Policy, decide
from controller.model.controls import Controls
from controller.model.decision import Decision
from controller.model.load import ClusterView
from controller.model.policies import IsolationPolicy, Policies
from controller.settings.guardrails import GuardrailSettings
from controller.settings.policy import policy_of
from controller.settings.trimtab_toml import DecisionSettings
from controller.strategies.filters.ext_max_topics import ExtMaxTopics
from controller.strategies.shedding.transfer_shedder import TransferShedder
from tests.cluster import INTERVAL, broker, view

AT_ONCE = {
    "loadManagerClassName": "ExtensibleLoadManagerImpl",
    "loadBalancerLoadSheddingStrategy": "TransferShedder",
    "loadBalancerSheddingConditionHitCountThreshold": "0",
    "loadBalancerHistoryResourcePercentage": "0",
    "loadBalancerSheddingBundlesWithPoliciesEnabled": "true",
}
#: 42 of 96 MB/s are to move.
CLUSTER = view(
    broker("cold:80", usage=0.1),
    broker("hot:80", usage=0.8, **{"acme/a/0": 11, "acme/b/0": 20, "acme/c/0": 65}),
    broker("mid:80", usage=0.4, **{"acme/x/0": 40}),
)


def cycle_of(**conf: str) -> Policy:
    decisions = DecisionSettings(split=False, mode="active")
    return policy_of(AT_ONCE | conf, decisions, GuardrailSettings(brokers_balance_unknown="ignore"), 1, "lab", 60_000)


def decided(
    cluster: ClusterView = CLUSTER, topics: Mapping[str, int] | None = None, policies: Any = None, **conf: str
) -> Decision:
    count = np.array([(topics or {}).get(name, 0) for name in cluster.brokers.names], np.int64)
    cluster = replace(cluster, brokers=replace(cluster.brokers, topic_count=count), policies=Policies(**policies or {}))
    policy = cycle_of(**conf)
    memory = replace(policy.initial_memory(7), last_interval=INTERVAL - 60_000, samples=10)
    return decide(cluster, [], memory, Controls(mode="active"), policy)[0]


def moves(made: Decision) -> list[str]:
    return [f"{one.bundle}: {one.source} > {one.destination}" for one in made.commands]


def about(made: Decision, subject: str) -> list[tuple[str, str]]:
    return [(v.reason.value, v.by) for v in made.verdicts if v.subject == subject]


def test_filters_apply_in_the_order_of_the_extensible_load_manager() -> None:
    names = [type(step).__name__ for step in cycle_of().filters]
    assert names == [
        *("SheddingExcludedNamespaces", "BundlesWithPolicies", "TopicKinds", "ExtMaxTopics"),
        *("BrokerVersion", "ExtAntiAffinity", "IsolationPolicies"),
    ]


def test_the_shedder_has_the_filters_of_the_policy() -> None:
    policy = cycle_of(loadBalancerBrokerMaxTopics="7")
    assert isinstance(policy.shedder, TransferShedder)
    assert policy.shedder.filters == policy.filters
    assert ExtMaxTopics(max_topics=7) in policy.shedder.filters


def test_a_broker_at_its_topic_limit_is_excluded_even_if_no_broker_is_left() -> None:
    rows, limit = np.arange(3), ExtMaxTopics(max_topics=10)
    for topics, left in (([9, 10, 11], [0]), ([10, 10, 11], [])):
        brokers = replace(CLUSTER.brokers, topic_count=np.array(topics, np.int64))
        assert limit.keep(replace(CLUSTER, brokers=brokers), 0, rows).tolist() == left


def test_bundles_go_to_the_emptiest_broker() -> None:
    assert moves(decided()) == ["acme/a/0: hot:80 > cold:80", "acme/b/0: hot:80 > cold:80"]


def test_if_the_emptiest_broker_is_at_its_topic_limit_nothing_moves() -> None:
    made = decided(topics={"cold:80": 50_000})
    assert moves(made) == []
    assert ("NoBundles", "TransferShedder") in about(made, "cluster")
    assert about(made, "acme/a/0") == [("MaxTopics", "TransferShedder")]


def test_a_namespace_that_the_emptiest_broker_serves_of_the_group_already_stays_and_the_next_bundle_goes() -> None:
    cluster = view(
        broker("cold:80", usage=0.1, **{"acme/d/0": 1}),
        broker("hot:80", usage=0.8, **{"acme/a/0": 11, "acme/b/0": 20, "acme/c/0": 65}),
        broker("mid:80", usage=0.4, **{"acme/x/0": 40}),
    )
    made = decided(cluster, policies={"anti_affinity_group": {"acme/a": "red", "acme/d": "red"}})
    assert moves(made) == ["acme/b/0: hot:80 > cold:80"]
    assert about(made, "acme/a/0") == [("AntiAffinity", "TransferShedder")]


def test_a_bundle_of_a_group_moves_to_a_broker_that_serves_as_many_of_it() -> None:
    """The modular load manager would leave it where it is, as no broker would be better off."""
    cluster = view(
        broker("cold:80", usage=0.1, **{"acme/d/0": 1}),
        broker("hot:80", usage=0.8, **{"acme/a/0": 11, "acme/b/0": 20, "acme/c/0": 65}),
    )
    made = decided(cluster, policies={"anti_affinity_group": {"acme/a": "red", "acme/d": "red"}})
    assert moves(made)[0] == "acme/a/0: hot:80 > cold:80"


def test_where_a_version_is_not_known_the_shedder_moves_nothing() -> None:
    versions = {"cold:80": "4.0.8", "hot:80": "4.0.8"}
    made = decided(policies={"broker_version": versions}, preferLaterVersions="true")
    assert moves(made) == []
    assert about(made, "acme/a/0") == [("BrokerVersion", "TransferShedder")]


@pytest.mark.parametrize("transfer", ["true", "false"])
def test_the_emptiest_broker_must_be_open_to_a_bundle_also_where_it_is_only_taken_off(transfer: str) -> None:
    own = IsolationPolicy(namespaces=("acme/a",), primary=("hot", "mid"))
    made = decided(policies={"isolation": (own,)}, loadBalancerTransferEnabled=transfer)
    assert [one.bundle for one in made.commands] == ["acme/b/0"]
    assert about(made, "acme/a/0") == [("IsolationPolicy", "TransferShedder")]


def test_without_transfers_the_placement_keeps_to_what_the_filters_leave_however_full_they_are() -> None:
    cluster = view(
        broker("cold:80", usage=0.1, **{"acme/x/0": 1}),
        broker("hot:80", usage=0.99, **{"acme/a/0": 20, "acme/b/0": 60}),
    )
    policies = {"broker_version": {"cold:80": "4.0.8"}}
    made = decided(cluster, policies=policies, loadBalancerTransferEnabled="false")
    assert moves(made) == ["acme/a/0: hot:80 > cold:80"]
