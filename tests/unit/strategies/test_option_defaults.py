"""The default of every option of every strategy; those that Pulsar has are Pulsar's of 4.0.8."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

from controller.strategies import catalogue

DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "AvgShedder": {
        "loadBalancerCPUResourceWeight": 1.0,
        "loadBalancerDirectMemoryResourceWeight": 0.0,
        "loadBalancerBandwidthInResourceWeight": 1.0,
        "loadBalancerBandwidthOutResourceWeight": 1.0,
        "loadBalancerAvgShedderLowThreshold": 15,
        "loadBalancerAvgShedderHighThreshold": 40,
        "loadBalancerAvgShedderHitCountLowThreshold": 8,
        "loadBalancerAvgShedderHitCountHighThreshold": 2,
        "minUnloadMessage": 1000,
        "minUnloadMessageThroughput": 1048576,
        "maxUnloadPercentage": 0.2,
        "trimtabAvgShedderFixed": False,
        "trimtabAvgShedderPlansByBundle": False,
        "loadBalancerBrokerOverloadedThresholdPercentage": 85,
    },
    "MessageRateDeviationShedder": {
        "loadBalancerDeviationShedderThreshold": 0.9,
        "trimtabDeviationShedderMinAboveAveragePercentage": 10.0,
        "trimtabDeviationShedderMaxBundles": 1000,
        "trimtabDeviationShedderFixedReceiver": False,
    },
    "OverloadShedder": {
        "loadBalancerCPUResourceWeight": 1.0,
        "loadBalancerDirectMemoryResourceWeight": 0.0,
        "loadBalancerBandwidthInResourceWeight": 1.0,
        "loadBalancerBandwidthOutResourceWeight": 1.0,
        "loadBalancerBrokerOverloadedThresholdPercentage": 85,
    },
    "PeakShedder": {
        "loadBalancerCPUResourceWeight": 1.0,
        "loadBalancerDirectMemoryResourceWeight": 0.0,
        "loadBalancerBandwidthInResourceWeight": 1.0,
        "loadBalancerBandwidthOutResourceWeight": 1.0,
        "trimtabPeakShedderMaxMoves": 50,
        "trimtabPeakShedderMaxConnections": 0,
        "trimtabPeakShedderMaxMovesPerBroker": 10,
        "trimtabPeakShedderGoalPercentage": 5.0,
        "trimtabPeakShedderMinGainPercentage": 5.0,
        "trimtabPeakShedderBrokerMsgRate": 0.0,
        "trimtabPeakShedderBrokerTopics": 0,
        "trimtabPeakShedderBrokerSessions": 0,
        "trimtabPeakShedderEffort": 1000000,
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
    },
    "ThresholdShedder": {
        "loadBalancerCPUResourceWeight": 1.0,
        "loadBalancerDirectMemoryResourceWeight": 0.0,
        "loadBalancerBandwidthInResourceWeight": 1.0,
        "loadBalancerBandwidthOutResourceWeight": 1.0,
        "loadBalancerBrokerThresholdShedderPercentage": 10,
        "loadBalancerHistoryResourcePercentage": 0.9,
        "loadBalancerBundleUnloadMinThroughputThreshold": 10.0,
        "lowerBoundarySheddingEnabled": False,
    },
    "ThroughputDeviationShedder": {
        "loadBalancerDeviationShedderThreshold": 0.9,
        "trimtabDeviationShedderMinAboveAveragePercentage": 10.0,
        "trimtabDeviationShedderMaxBundles": 1000,
        "trimtabDeviationShedderFixedReceiver": False,
    },
    "TransferShedder": {
        "loadBalancerMaxNumberOfBundlesInBundleLoadReport": 10,
        "loadBalancerSheddingBundlesWithPoliciesEnabled": False,
        "loadBalancerSheddingExcludedNamespaces": frozenset(),
        "loadBalancerCPUResourceWeight": 1.0,
        "loadBalancerDirectMemoryResourceWeight": 0.0,
        "loadBalancerBandwidthInResourceWeight": 1.0,
        "loadBalancerBandwidthOutResourceWeight": 1.0,
        "loadBalancerMemoryResourceWeight": 0.0,
        "loadBalancerHistoryResourcePercentage": 0.9,
        "loadBalancerBrokerLoadTargetStd": 0.25,
        "loadBalancerSheddingConditionHitCountThreshold": 3,
        "loadBalancerTransferEnabled": True,
        "loadBalancerMaxNumberOfBrokerSheddingPerCycle": 3,
        "loadBalanceSheddingDelayInSeconds": 180,
        "loadBalancerBrokerLoadDataTTLInSeconds": 1800,
        "loadBalancerBrokerOverloadedThresholdPercentage": 85,
        "loadBalancerDebugModeEnabled": False,
        "trimtabTransferShedderCountsGain": False,
        "trimtabTransferShedderSwapsKeepGracePeriod": False,
    },
    "UniformLoadShedder": {
        "loadBalancerMsgRateDifferenceShedderThreshold": 50.0,
        "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold": 4.0,
        "maxUnloadPercentage": 0.2,
        "minUnloadMessage": 1000,
        "minUnloadMessageThroughput": 1048576,
        "maxUnloadBundleNumPerShedding": -1,
        "trimtabUniformLoadShedderFixedExtremes": False,
        "trimtabUniformLoadShedderSlack": 1000,
    },
    "ExtLeastResourceUsageWithWeight": {
        "loadBalancerCPUResourceWeight": 1.0,
        "loadBalancerDirectMemoryResourceWeight": 0.0,
        "loadBalancerBandwidthInResourceWeight": 1.0,
        "loadBalancerBandwidthOutResourceWeight": 1.0,
        "loadBalancerMemoryResourceWeight": 0.0,
        "loadBalancerHistoryResourcePercentage": 0.9,
        "loadBalancerAverageResourceUsageDifferenceThresholdPercentage": 10,
    },
    "LeastLongTermMessageRate": {
        "loadBalancerCPUResourceWeight": 1.0,
        "loadBalancerDirectMemoryResourceWeight": 0.0,
        "loadBalancerBandwidthInResourceWeight": 1.0,
        "loadBalancerBandwidthOutResourceWeight": 1.0,
        "loadBalancerBrokerOverloadedThresholdPercentage": 85,
    },
    "LeastResourceUsageWithWeight": {
        "loadBalancerCPUResourceWeight": 1.0,
        "loadBalancerDirectMemoryResourceWeight": 0.0,
        "loadBalancerBandwidthInResourceWeight": 1.0,
        "loadBalancerBandwidthOutResourceWeight": 1.0,
        "loadBalancerAverageResourceUsageDifferenceThresholdPercentage": 10,
        "loadBalancerHistoryResourcePercentage": 0.9,
    },
    "BundleSplitterTask": {
        "loadBalancerNamespaceBundleMaxMsgRate": 30000,
        "loadBalancerNamespaceBundleMaxBandwidthMbytes": 100,
        "loadBalancerNamespaceBundleMaxTopics": 1000,
        "loadBalancerNamespaceBundleMaxSessions": 1000,
        "loadBalancerNamespaceMaximumBundles": 128,
        "trimtabBundleMaxBandwidthFixed": False,
    },
    "DefaultNamespaceBundleSplitStrategyImpl": {
        "loadBalancerNamespaceBundleMaxMsgRate": 30000,
        "loadBalancerNamespaceBundleMaxBandwidthMbytes": 100,
        "loadBalancerNamespaceBundleMaxTopics": 1000,
        "loadBalancerNamespaceBundleMaxSessions": 1000,
        "loadBalancerNamespaceMaximumBundles": 128,
        "trimtabBundleMaxBandwidthFixed": False,
        "loadBalancerMaxNumberOfBundlesToSplitPerCycle": 10,
        "loadBalancerNamespaceBundleSplitConditionHitCountThreshold": 3,
        "trimtabSplitStrategySeveralCuts": False,
        "trimtabSplitStrategyFixedParents": False,
    },
    "FlowOrQpsEquallyDivide": {
        "loadBalancerNamespaceBundleMaxMsgRate": 30000,
        "loadBalancerNamespaceBundleMaxBandwidthMbytes": 100,
        "flowOrQpsDifferenceThresholdPercentage": 10,
        "trimtabFlowOrQpsSplitFixedCollisions": False,
    },
    "TopicCountEquallyDivide": {
        "trimtabTopicCountSplitFixedBoundary": False,
    },
    "SheddingExcludedNamespaces": {
        "loadBalancerSheddingExcludedNamespaces": frozenset(),
    },
    "IsolationPolicies": {
        "trimtabIsolationPoliciesMatchBrokerIds": False,
    },
    "MaxTopics": {
        "loadBalancerBrokerMaxTopics": 50000,
    },
    "AntiAffinity": {
        "failureDomainsEnabled": False,
        "trimtabAntiAffinityCountsOwnNamespace": True,
    },
    "FewestBundles": {
        "loadBalancerDistributeBundlesEvenlyEnabled": True,
    },
    "BrokerVersion": {
        "preferLaterVersions": False,
    },
    "BundlesWithPolicies": {
        "loadBalancerSheddingBundlesWithPoliciesEnabled": False,
    },
    "ExtMaxTopics": {
        "loadBalancerBrokerMaxTopics": 50000,
    },
    "ExtAntiAffinity": {
        "failureDomainsEnabled": False,
        "trimtabAntiAffinityCountsOwnNamespace": True,
    },
}


def test_every_option_has_its_default() -> None:
    tables: tuple[Mapping[str, type], ...] = (
        catalogue.SHEDDERS,
        catalogue.PLACEMENTS,
        catalogue.SPLIT_POLICIES,
        catalogue.SPLIT_ALGORITHMS,
        catalogue.ASSIGNMENTS,
        catalogue.FILTERS,
        catalogue.EXTENSIBLE_FILTERS,
    )
    found: dict[str, dict[str, object]] = {}
    for kind in {each for table in tables for each in table.values() if is_dataclass(each)}:
        options = {one.metadata["broker_conf"]: one.default for one in fields(kind) if "broker_conf" in one.metadata}
        if options:
            # AvgShedder is a shedder and a placement, which share options.
            found[kind.__name__] = found.get(kind.__name__, {}) | options
    assert found == DEFAULTS
