from dataclasses import fields, is_dataclass

import pytest

from controller.strategies.catalogue import PLACEMENTS, SHEDDERS, SPLIT_ALGORITHMS, SPLIT_POLICIES, short_name


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ("org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder", "ThresholdShedder"),
        ("ThresholdShedder", "ThresholdShedder"),
        ("range_equally_divide", "range_equally_divide"),
        ("org.apache.pulsar.broker.loadbalance.impl.LeastResourceUsageWithWeight", "LeastResourceUsageWithWeight"),
        (
            "org.apache.pulsar.broker.loadbalance.extensions.strategy.LeastResourceUsageWithWeight",
            "ExtLeastResourceUsageWithWeight",
        ),
        ("ExtLeastResourceUsageWithWeight", "ExtLeastResourceUsageWithWeight"),
        # No class of Pulsar: another one of this name may do anything.
        ("de.example.ThresholdShedder", "de.example.ThresholdShedder"),
        # Pulsar has no class of this name, so it is a user's own, whatever its package.
        ("de.example.ThroughputDeviationShedder", "ThroughputDeviationShedder"),
        ("balance.ThresholdShedder", "balance.ThresholdShedder"),
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
        if "broker_conf" in field.metadata
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
        "loadBalancerMemoryResourceWeight": 0.0,
        "loadBalancerAvgShedderLowThreshold": 15,
        "loadBalancerAvgShedderHighThreshold": 40,
        "loadBalancerAvgShedderHitCountLowThreshold": 8,
        "loadBalancerAvgShedderHitCountHighThreshold": 2,
        "minUnloadMessage": 1000,
        "minUnloadMessageThroughput": 1024 * 1024,
        "maxUnloadPercentage": 0.2,
        "trimtabAvgShedderFixed": False,
        "trimtabAvgShedderPlansByBundle": False,
        "loadBalancerMaxNumberOfBundlesInBundleLoadReport": 10,
        "loadBalancerSheddingBundlesWithPoliciesEnabled": False,
        "loadBalancerSheddingExcludedNamespaces": frozenset(),
        "loadBalancerBrokerLoadTargetStd": 0.25,
        "loadBalancerSheddingConditionHitCountThreshold": 3,
        "loadBalancerTransferEnabled": True,
        "loadBalancerMaxNumberOfBrokerSheddingPerCycle": 3,
        "loadBalanceSheddingDelayInSeconds": 180,
        "loadBalancerBrokerLoadDataTTLInSeconds": 1800,
        "loadBalancerDebugModeEnabled": False,
        "trimtabTransferShedderCountsGain": False,
        "trimtabTransferShedderSwapsKeepGracePeriod": False,
        "loadBalancerMsgRateDifferenceShedderThreshold": 50.0,
        "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold": 4.0,
        "maxUnloadBundleNumPerShedding": -1,
        "trimtabUniformLoadShedderFixedExtremes": False,
        "trimtabUniformLoadShedderSlack": 1000,
        "trimtabPeakShedderMaxMoves": 50,
        "trimtabPeakShedderMaxConnections": 0,
        "trimtabPeakShedderMaxMovesPerBroker": 10,
        "trimtabPeakShedderGoalPercentage": 5.0,
        "trimtabPeakShedderMinGainPercentage": 5.0,
        "trimtabPeakShedderBrokerMsgRate": 0.0,
        "trimtabPeakShedderBrokerTopics": 0,
        "trimtabPeakShedderBrokerSessions": 0,
        "trimtabPeakShedderEffort": 1_000_000,
        "trimtabPeakShedderHold": 2,
        "trimtabPeakShedderHoldOf": 3,
        "trimtabPeakShedderSettleMinutes": 5.0,
        "trimtabPeakShedderLoadSettleMinutes": 5.0,
        "trimtabPeakShedderUrgentPercentage": 80.0,
        "trimtabPeakShedderIdlePercentage": 25.0,
        "trimtabPeakShedderReturnedPercentage": 60.0,
        "trimtabPeakShedderForecastMinutes": 60.0,
        "trimtabPeakShedderDayProfile": True,
        "trimtabPeakShedderMoveCost": 10.0,
        "trimtabPeakShedderUndo": True,
        # Pulsar leaves this to subclasses, and has none.
        "loadBalancerDeviationShedderThreshold": 0.9,
        "trimtabDeviationShedderMinAboveAveragePercentage": 10.0,
        "trimtabDeviationShedderMaxBundles": 1000,
        "trimtabDeviationShedderFixedReceiver": False,
        "loadBalancerNamespaceBundleMaxTopics": 1000,
        "loadBalancerNamespaceBundleMaxSessions": 1000,
        "loadBalancerNamespaceBundleMaxMsgRate": 30_000,
        "loadBalancerNamespaceBundleMaxBandwidthMbytes": 100,
        "loadBalancerNamespaceMaximumBundles": 128,
        "trimtabBundleMaxBandwidthFixed": False,
        "loadBalancerMaxNumberOfBundlesToSplitPerCycle": 10,
        "loadBalancerNamespaceBundleSplitConditionHitCountThreshold": 3,
        "trimtabSplitStrategySeveralCuts": False,
        "trimtabSplitStrategyFixedParents": False,
    }
