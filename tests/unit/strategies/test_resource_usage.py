import numpy as np

from controller.model.load import BANDWIDTH_IN, BANDWIDTH_OUT, CPU, DIRECT_MEMORY, MEMORY, Floats
from controller.strategies.common.resource_usage import ResourceWeights, max_usage, mean_usage, percent_usage

LIMIT = np.full((1, 5), 100.0)


def used(**percent: float) -> Floats:
    columns = {"cpu": CPU, "memory": MEMORY, "direct": DIRECT_MEMORY, "bw_in": BANDWIDTH_IN, "bw_out": BANDWIDTH_OUT}
    usage = np.zeros((1, 5))
    for name, value in percent.items():
        usage[0, columns[name]] = value
    return usage


def test_the_fullest_resource_counts_but_never_heap_memory() -> None:
    assert max_usage(used(cpu=25, memory=99, direct=50), LIMIT).tolist() == [0.5]


def test_by_default_cpu_and_bandwidth_have_weight_one_and_direct_memory_zero() -> None:
    weights = ResourceWeights()
    assert weights.weighted_usage(used(direct=99, bw_in=25), LIMIT).tolist() == [0.25]
    assert weights.weighted_usage(used(cpu=75, bw_out=50), LIMIT).tolist() == [0.75]


def test_a_weight_scales_its_resource() -> None:
    weights = ResourceWeights(cpu_weight=0.5, direct_memory_weight=2)
    assert weights.weighted_usage(used(cpu=100, direct=40), LIMIT).round(6).tolist() == [0.8]


def test_a_resource_without_limit_has_zero_usage() -> None:
    assert percent_usage(used(cpu=50), np.zeros((1, 5))).tolist() == [[0.0] * 5]


def test_the_mean_adds_from_left_to_right() -> None:
    usage = np.full(1000, 0.1)
    total = 0.0
    for value in usage.tolist():
        total += value
    assert mean_usage(usage) == total / 1000
    assert mean_usage(usage) != float(usage.mean())  # so the order does matter
