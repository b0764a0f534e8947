import numpy as np

from controller.model.load import ClusterView
from controller.strategies.common.usage_history import UsageHistory
from controller.strategies.placement.least_resource_usage_with_weight import LeastResourceUsageWithWeight
from tests.cluster import broker, view

PLACEMENT = LeastResourceUsageWithWeight(difference_percent=10, history_fraction=0)


def acceptable(
    cluster: ClusterView, *candidates: str, placement: LeastResourceUsageWithWeight = PLACEMENT
) -> list[str]:
    rows = np.array(sorted(cluster.brokers.code_of[name] for name in candidates or cluster.brokers.names), np.int64)
    found, _ = placement.acceptable(cluster, 0, rows, placement.initial_memory())
    return [cluster.brokers.names[row] for row in found.tolist()]


def test_without_candidates_there_is_no_broker_and_nothing_is_remembered() -> None:
    memory = UsageHistory(usage={"b1": 0.1})
    found, after = PLACEMENT.acceptable(view(broker("b1", usage=0.5, x=1)), 0, np.zeros(0, np.int64), memory)
    assert found.tolist() == []
    assert after == memory
