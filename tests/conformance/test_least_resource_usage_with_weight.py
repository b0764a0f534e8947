import numpy as np

from controller.strategies.placement.least_resource_usage_with_weight import LeastResourceUsageWithWeight
from tests.cluster import broker_table, bundle_table, cluster_view
from tests.conformance.vectors import Case, close_to, configured, resources, rows_of_4

COMPONENT = "least_resource_usage_with_weight"
_ONLY_LOGGED = ("loadBalancerBrokerOverloadedThresholdPercentage",)


def test_the_same_brokers_are_acceptable(case: Case) -> None:
    placement = configured(LeastResourceUsageWithWeight, case["config"], unused=_ONLY_LOGGED)
    memory = placement.initial_memory()
    for given, expected in zip(case["input"]["rounds"], case["expected"]["rounds"], strict=True):
        if given["active_brokers_change"] is not None:
            memory = memory.keep_brokers(tuple(given["active_brokers_change"]))
        usage, limit = resources(given["brokers"])
        brokers = broker_table(
            [broker["name"] for broker in given["brokers"]],
            usage=usage,
            limit=limit,
            load=rows_of_4([[*broker["rate"], 0, 0] for broker in given["brokers"]]),
            bundle_count=np.array([broker["num_bundles"] for broker in given["brokers"]], np.int64),
        )
        view = cluster_view(brokers, bundle_table(["any"], np.zeros(1, np.int64)))
        candidates = np.array(sorted(brokers.code_of[name] for name in given["candidates"]), np.int64)
        found, memory = placement.acceptable(view, 0, candidates, memory)
        assert [brokers.names[row] for row in found.tolist()] == sorted(expected["acceptable_brokers"])
        assert memory.usage == close_to(expected["usage_history"])
