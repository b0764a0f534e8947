import numpy as np
import pytest

from controller.model.load import BANDWIDTH_IN, CPU, DIRECT_MEMORY, MEMORY, Floats
from controller.strategies.common.broker_load_data import BrokerLoad, BrokerLoadFeatures

LIMIT = np.full((1, 5), 100.0)


def used(**percent: float) -> Floats:
    columns = {"cpu": CPU, "memory": MEMORY, "direct": DIRECT_MEMORY, "bw_in": BANDWIDTH_IN}
    usage = np.zeros((1, 5))
    for name, value in percent.items():
        usage[0, columns[name]] = value
    return usage


def after(features: BrokerLoadFeatures, *reports: tuple[Floats, float]) -> BrokerLoad:
    now = BrokerLoad.unknown(1)
    for usage, throughput in reports:
        now = features.updated(now, usage, LIMIT, np.array([throughput]))
    return now


def test_a_broker_that_never_reported_is_full_and_has_no_traffic() -> None:
    unknown = BrokerLoad.unknown(2)
    assert unknown.weighted_max_ema.tolist() == unknown.max_resource_usage.tolist() == [1.0, 1.0]
    assert unknown.msg_throughput_ema.tolist() == [0.0, 0.0]
    assert not unknown.reported.any()


def test_the_first_report_initialises_the_average_and_later_ones_are_smoothed() -> None:
    features = BrokerLoadFeatures(history_fraction=0.75)
    assert after(features, (used(cpu=50), 1000.0)).weighted_max_ema.tolist() == [0.5]
    later = after(features, (used(cpu=50), 1000.0), (used(cpu=100), 2000.0))
    assert later.weighted_max_ema.tolist() == [0.625]
    assert later.msg_throughput_ema.tolist() == [1250.0]
    assert later.max_resource_usage.tolist() == [1.0]


def test_heap_memory_counts_only_with_a_weight() -> None:
    assert after(BrokerLoadFeatures(), (used(cpu=25, memory=100), 0.0)).weighted_max_ema.tolist() == [0.25]
    assert after(BrokerLoadFeatures(memory_weight=0.5), (used(cpu=25, memory=100), 0.0)).weighted_max_ema == [0.5]
    assert after(BrokerLoadFeatures(memory_weight=0.5), (used(cpu=25, memory=100), 0.0)).max_resource_usage == [0.25]


def test_the_load_is_the_largest_usage_after_weighting() -> None:
    features = BrokerLoadFeatures(cpu_weight=0.5, bandwidth_in_weight=0.25, direct_memory_weight=2.0)
    now = after(features, (used(cpu=100, bw_in=75, direct=30), 0.0))
    assert now.weighted_max_ema == pytest.approx([0.6])
    assert now.max_resource_usage == pytest.approx([1.0])


def test_brokers_are_smoothed_independently() -> None:
    features = BrokerLoadFeatures(history_fraction=0.5)
    known_and_new = BrokerLoad(
        max_resource_usage=np.zeros(2),
        weighted_max_ema=np.array([0.25, 0.0]),
        msg_throughput_ema=np.array([100.0, 0.0]),
        reported=np.array([True, False]),
    )
    now = features.updated(
        known_and_new, np.vstack([used(cpu=75), used(cpu=75)]), np.vstack([LIMIT, LIMIT]), np.array([300.0, 300.0])
    )
    assert now.weighted_max_ema.tolist() == [0.5, 0.75]
    assert now.msg_throughput_ema.tolist() == [200.0, 300.0]
    assert now.reported.all()
