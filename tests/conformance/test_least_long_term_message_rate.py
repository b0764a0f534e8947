import numpy as np

from controller.strategies.placement.least_long_term_message_rate import LeastLongTermMessageRate
from tests.cluster import broker_table, bundle_table, cluster_view
from tests.conformance.vectors import Case, configured, resources, rows_of_4

COMPONENT = "least_long_term_message_rate"


def test_the_same_brokers_are_acceptable(case: Case) -> None:
    placement = configured(LeastLongTermMessageRate, case["config"])
    given = case["input"]
    rates = {broker["name"]: broker for broker in given["broker_rates"]}
    names = [broker["name"] for broker in given["brokers"]]
    usage, limit = resources(given["brokers"])
    long_term = rows_of_4([[*rates[name]["long_term_rate"], 0, 0] for name in names])
    on_its_way = [
        sum(sum(given["bundle_long_term"][bundle][:2]) for bundle in rates[name]["preallocated"]) for name in names
    ]
    brokers = broker_table(
        names, usage=usage, limit=limit, long_term=long_term, preallocated_rate=np.array(on_its_way, np.float64)
    )
    view = cluster_view(brokers, bundle_table(["any"], np.zeros(1, np.int64)))
    candidates = np.array(sorted(brokers.code_of[name] for name in given["candidates"]), np.int64)
    found, _ = placement.acceptable(view, 0, candidates, placement.initial_memory())
    assert [brokers.names[row] for row in found.tolist()] == sorted(case["expected"]["acceptable_brokers"])
