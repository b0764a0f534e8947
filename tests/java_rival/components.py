"""What is compared with Java: each component's random cases, and the jars and the driver that answer them."""

from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from controller.adapters.disk import jars
from controller.strategies.rebalance.incremental_cooperative import Release
from tests.java_rival import clusters
from tests.java_rival.clusters import Play
from tests.java_rival.extensible import transferring
from tests.java_rival.rebalances import rebalances

_LOCK: Final = Path(__file__).with_name("jars.lock")


class Rival(NamedTuple):
    """A driver in ``java``, its class, and the jars that it runs with."""

    driver: str
    main: str
    lock: Path
    #: The set of *lock*.
    jars: str


PULSAR: Final = Rival("BalancerCases.java", "BalancerCases", jars.LOCK, "pulsar-broker")
EXTENSIBLE: Final = Rival("ExtensibleCases.java", "ExtensibleCases", jars.LOCK, "pulsar-broker")


def _connect(release: str) -> Rival:
    main = "org.apache.kafka.connect.runtime.distributed.AssignorCases"
    return Rival("AssignorCases.java", main, _LOCK, f"connect-{release}")


def _assignor(release: Release) -> Play:
    return lambda random: rebalances(release, random)


def _weights(random: Random) -> dict[str, Any]:
    names = ("CPU", "DirectMemory", "BandwidthIn", "BandwidthOut")
    return {f"loadBalancer{name}ResourceWeight": random.choice((0.0, 0.5, 1.0)) for name in names}


def _overload(random: Random) -> dict[str, Any]:
    return {"loadBalancerBrokerOverloadedThresholdPercentage": random.choice((20, 50, 85))} | _weights(random)


def _threshold(random: Random) -> dict[str, Any]:
    return {
        "loadBalancerBrokerThresholdShedderPercentage": random.choice((5, 10, 30)),
        "loadBalancerHistoryResourcePercentage": random.choice((0.0, 0.5, 0.9)),
        "loadBalancerBundleUnloadMinThroughputThreshold": random.choice((0.0, 1.0, 10.0)),
        "lowerBoundarySheddingEnabled": random.random() < 0.5,
    } | _weights(random)


def _uniform(random: Random) -> dict[str, Any]:
    return {
        "loadBalancerMsgRateDifferenceShedderThreshold": random.choice((0, 20, 50)),
        "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold": random.choice((0, 2, 4)),
        "minUnloadMessage": random.choice((0, 100, 1000)),
        "minUnloadMessageThroughput": random.choice((0, 1024 * 1024)),
        "maxUnloadPercentage": random.choice((0.2, 0.5)),
    }


def _avg(random: Random) -> dict[str, Any]:
    return {
        "loadBalancerAvgShedderLowThreshold": random.choice((0, 5, 15)),
        "loadBalancerAvgShedderHighThreshold": random.choice((20, 40)),
        "loadBalancerAvgShedderHitCountLowThreshold": random.choice((1, 2, 3)),
        "loadBalancerAvgShedderHitCountHighThreshold": random.choice((1, 2)),
        "minUnloadMessage": random.choice((0, 100)),
        "minUnloadMessageThroughput": random.choice((1024, 1024 * 1024)),
        "maxUnloadPercentage": random.choice((0.2, 0.5, 1.0)),
    } | {"loadBalancerCPUResourceWeight": random.choice((0.5, 1.0))}


def _least_used(random: Random) -> dict[str, Any]:
    return {
        "loadBalancerAverageResourceUsageDifferenceThresholdPercentage": random.choice((0, 5, 10)),
        "loadBalancerHistoryResourcePercentage": random.choice((0.0, 0.5, 0.9)),
    } | _weights(random)


#: Component -> who answers in Java, and the cases.
COMPONENTS: Final[dict[str, tuple[Rival, Play]]] = {
    "OverloadShedder": (PULSAR, clusters.shedding("OverloadShedder", _overload)),
    "ThresholdShedder": (PULSAR, clusters.shedding("ThresholdShedder", _threshold)),
    "UniformLoadShedder": (PULSAR, clusters.shedding("UniformLoadShedder", _uniform)),
    "AvgShedder": (PULSAR, clusters.shedding("AvgShedder", _avg)),
    "TransferShedder": (EXTENSIBLE, transferring),
    "LeastLongTermMessageRate": (PULSAR, clusters.placing("LeastLongTermMessageRate", _overload)),
    "LeastResourceUsageWithWeight": (PULSAR, clusters.placing("LeastResourceUsageWithWeight", _least_used)),
    "BundleSplitterTask": (PULSAR, clusters.splitting),
    "TimeAverageMessageData": (PULSAR, clusters.averaging),
    "LocalBrokerData": (PULSAR, clusters.reporting),
    "IncrementalCooperativeAssignor 2.6.0": (_connect("2.6.0"), _assignor(Release.V2_6_0)),
    "IncrementalCooperativeAssignor 2.6.3": (_connect("2.6.3"), _assignor(Release.V2_6_3)),
    "IncrementalCooperativeAssignor 3.9.0": (_connect("3.9.0"), _assignor(Release.V3_9)),
}
