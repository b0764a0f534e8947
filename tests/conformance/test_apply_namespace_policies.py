import numpy as np

from controller.model.java_regex import matches
from controller.model.policies import BrokerAddresses, IsolationPolicy, MinAvailable, Policies
from controller.model.topic_kinds import NON_PERSISTENT, PERSISTENT
from controller.strategies.filters.isolation_policies import IsolationPolicies
from controller.strategies.filters.topic_kinds import TopicKinds
from tests.cluster import broker_table, bundle_table, cluster_view
from tests.conformance.vectors import Case, configured, isolation_policies

COMPONENT = "apply_namespace_policies"


def test_the_same_brokers_are_open_to_a_namespace(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    names, namespace = sorted(given["available_brokers"]), given["namespace"]
    bundle = f"{namespace}/0x00000000_0xffffffff"
    modes = given["topic_modes"]
    # In Pulsar a failed look-up counts as no policies.
    policies = Policies(
        isolation=() if given["policies_lookup_fails"] else isolation_policies(given["policies"]),
        without_persistent=frozenset(name for name, (persistent, _) in modes.items() if not persistent),
        without_non_persistent=frozenset(name for name, (_, non_persistent) in modes.items() if not non_persistent),
    )
    asks_for_non_persistent = given["service_unit_is_bundle"] and given["has_non_persistent_topic"]
    # Under a policy Pulsar asks for no kind of topics, so there the bundle has none here.
    kinds = 0 if policies.isolation_of(namespace) else NON_PERSISTENT if asks_for_non_persistent else PERSISTENT
    brokers = broker_table(names, usage=np.zeros((len(names), 5)), limit=np.zeros((len(names), 5)))
    table = bundle_table([bundle], np.full(1, -1), kinds=np.array([kinds], np.uint8))
    view = cluster_view(brokers, table, policies=policies)
    kept = np.arange(len(names), dtype=np.int64)
    for step in (TopicKinds(), configured(IsolationPolicies, case["config"], pulsar=case["pulsar"])):
        kept = step.keep(view, 0, kept)
    assert [names[row] for row in kept.tolist()] == sorted(expected["candidates"])

    policy = policies.isolation_of(namespace)
    assert (policy is not None) == expected["policies_present"]
    own = policy or IsolationPolicy(namespaces=(), primary=(), auto_failover=MinAvailable(min_limit=0))
    hosts = {name: name.rpartition(":")[0] or name for name in expected["brokers"]}
    assert {
        name: {
            "primary": matches(own.primary, host),
            "secondary": matches(own.secondary, host),
            "shared": not policies.reserved(BrokerAddresses((host,)))[0],
        }
        for name, host in hosts.items()
    } == expected["brokers"]
    fails_over = [own.auto_failover.fails_over(count) for count in range(7)]
    assert fails_over == expected["should_failover_by_primary_count"]
