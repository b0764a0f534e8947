from dataclasses import replace

import numpy as np
import pytest

from controller.model.load import MEMORY, ClusterView
from controller.strategies.placement.ext_least_resource_usage_with_weight import (
    ExtLeastResourceUsageWithWeight,
    IntervalUsageHistory,
)
from tests.cluster import INTERVAL, broker, view

PLACEMENT = ExtLeastResourceUsageWithWeight(difference_percent=10, history_fraction=0.5)
MINUTE = 60_000


def usages(**of_brokers: float) -> ClusterView:
    return view(*(broker(name, usage=usage, **{f"x{name}": 1}) for name, usage in of_brokers.items()))


def after(minutes: int, cluster: ClusterView) -> ClusterView:
    return replace(cluster, as_of_ms=INTERVAL + minutes * MINUTE)


def acceptable(cluster: ClusterView, *candidates: str) -> list[str]:
    rows = np.array(sorted(cluster.brokers.code_of[name] for name in candidates or cluster.brokers.names), np.int64)
    found, _ = PLACEMENT.acceptable(cluster, 0, rows, PLACEMENT.initial_memory())
    return [cluster.brokers.names[row] for row in found.tolist()]


def test_a_broker_that_left_is_forgotten_and_one_without_data_is_not() -> None:
    before = IntervalUsageHistory(as_of_ms=INTERVAL - MINUTE, usage={"b1": 0.5, "late": 0.75, "gone": 1.0})
    memory = PLACEMENT.observed(replace(usages(b1=0.25), missing=("late",)), before)
    assert memory.usage == {"b1": 0.375, "late": 0.75}


def test_a_broker_that_gave_or_got_a_bundle_begins_anew() -> None:
    given, got, other = {"x": 1.0, "y": 1.0}, {"z": 1.0}, {"w": 1.0}
    memory = PLACEMENT.initial_memory()
    for minutes, usages, averages in (
        (0, (0.8, 0.2, 0.4), (0.8, 0.2, 0.4)),
        (1, (0.4, 0.6, 0.2), (0.4, 0.6, 0.3)),
        (2, (0.8, 0.2, 0.2), (0.6, 0.4, 0.25)),
    ):
        if minutes == 1:
            got["y"] = given.pop("y")
        owned = zip(("b1", "b2", "b3"), usages, (given, got, other), strict=True)
        cluster = view(*(broker(name, usage=usage, **bundles) for name, usage, bundles in owned))
        memory = PLACEMENT.observed(after(minutes, cluster), memory)
        assert memory.usage == pytest.approx(dict(zip(("b1", "b2", "b3"), averages, strict=True)))


def test_heap_memory_counts_by_its_weight() -> None:
    cluster = usages(b1=0.1, b2=0.5)
    usage = cluster.brokers.usage.copy()
    usage[0, MEMORY] = 90
    heap = replace(cluster, brokers=replace(cluster.brokers, usage=usage))
    rows = np.arange(2)
    for weight, best in ((0.0, [0]), (1.0, [1])):
        placement = ExtLeastResourceUsageWithWeight(memory_weight=weight)
        found, _ = placement.acceptable(heap, 0, rows, placement.initial_memory())
        assert found.tolist() == best
