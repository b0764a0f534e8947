from dataclasses import fields, is_dataclass

import pytest

from controller.strategies.catalogue import PLACEMENTS, SHEDDERS, SPLIT_ALGORITHMS, SPLIT_POLICIES, short_name


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ("org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder", "ThresholdShedder"),
        ("ThresholdShedder", "ThresholdShedder"),
        ("range_equally_divide", "range_equally_divide"),
    ],
)
def test_a_strategy_is_known_by_its_short_or_full_name(given: str, key: str) -> None:
    assert short_name(given) == key


@pytest.mark.parametrize("catalogue", [SHEDDERS, PLACEMENTS, SPLIT_POLICIES])
def test_a_strategy_is_called_as_in_pulsar_and_every_field_is_an_option_with_a_meaning(
    catalogue: dict[str, type],
) -> None:
    for name, cls in catalogue.items():
        assert cls.__name__ == name
        assert is_dataclass(cls)
        assert fields(cls)
        assert all(field.metadata["meaning"] for field in fields(cls))


def test_a_split_algorithm_is_known_by_its_own_name() -> None:
    for name, cls in SPLIT_ALGORITHMS.items():
        assert cls().name == name


def test_the_defaults_are_those_of_pulsar_4_0_8() -> None:
    defaults = {
        field.metadata["broker_conf"]: field.default
        for catalogue in (SHEDDERS, PLACEMENTS, SPLIT_POLICIES)
        for cls in catalogue.values()
        for field in fields(cls)  # type: ignore[arg-type]
    }
    assert defaults == {
        "loadBalancerCPUResourceWeight": 1.0,
        "loadBalancerDirectMemoryResourceWeight": 0.0,
        "loadBalancerBandwidthInResourceWeight": 1.0,
        "loadBalancerBandwidthOutResourceWeight": 1.0,
        "loadBalancerBrokerThresholdShedderPercentage": 10,
        "loadBalancerHistoryResourcePercentage": 0.9,
        "loadBalancerBundleUnloadMinThroughputThreshold": 10.0,
        "lowerBoundarySheddingEnabled": False,
        "loadBalancerBrokerOverloadedThresholdPercentage": 85,
        "loadBalancerAverageResourceUsageDifferenceThresholdPercentage": 10,
        "loadBalancerNamespaceBundleMaxTopics": 1000,
        "loadBalancerNamespaceBundleMaxSessions": 1000,
        "loadBalancerNamespaceBundleMaxMsgRate": 30_000,
        "loadBalancerNamespaceBundleMaxBandwidthMbytes": 100,
        "loadBalancerNamespaceMaximumBundles": 128,
    }
