"""How full a broker is: its resources' usage over limit, in columns, bit for bit as Pulsar computes it.

Pulsar: org.apache.pulsar.policies.data.loadbalancer.{ResourceUsage.percentUsage, LocalBrokerData.getMaxResourceUsage,
getMaxResourceUsageWithWeight}.  Heap memory is never counted: garbage collection makes it noise.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from controller.model.load import BANDWIDTH_IN, BANDWIDTH_OUT, CPU, DIRECT_MEMORY, ClusterView, Floats
from controller.model.option import option

F = TypeVar("F", np.float32, np.float64)

_COUNTED = [CPU, DIRECT_MEMORY, BANDWIDTH_IN, BANDWIDTH_OUT]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceWeights:
    """Base of every strategy that weighs resources against each other; weight 0 leaves a resource out."""

    cpu_weight: float = option("loadBalancerCPUResourceWeight", default=1.0, meaning="weight of CPU usage")
    direct_memory_weight: float = option(
        "loadBalancerDirectMemoryResourceWeight", default=0.0, meaning="weight of direct memory usage"
    )
    bandwidth_in_weight: float = option(
        "loadBalancerBandwidthInResourceWeight",
        default=1.0,
        meaning="weight of inbound bandwidth",
        aliases=("loadBalancerBandwithInResourceWeight",),
    )
    bandwidth_out_weight: float = option(
        "loadBalancerBandwidthOutResourceWeight",
        default=1.0,
        meaning="weight of outbound bandwidth",
        aliases=("loadBalancerBandwithOutResourceWeight",),
    )

    def weighted_usage(self, usage: Floats, limit: Floats) -> Floats:
        """(n,) each broker's largest weighted usage as a fraction, of (n, 5) *usage* and *limit*.

        -inf where every weighted usage is NaN.  Pulsar: LocalBrokerData.getMaxResourceUsageWithWeight.
        """
        weights = np.array(
            [self.cpu_weight, self.direct_memory_weight, self.bandwidth_in_weight, self.bandwidth_out_weight]
        )
        with np.errstate(invalid="ignore"):
            return _largest(_counted(usage, limit).astype(np.float64) * weights[:, None]) / 100.0

    def usage_of_all(self, view: ClusterView) -> Floats:
        """(brokers,) :meth:`weighted_usage` of *view*, worked out once in an interval: each placement asks for it."""
        usage, limit = view.brokers.usage, view.brokers.limit

        def find() -> tuple[Floats, Floats, Floats]:
            # With the arrays, which so outlive the key that names them.
            return usage, limit, self.weighted_usage(usage, limit)

        return view.policies.derived(("weighted usage", self, id(usage), id(limit)), find)[2]


def percent_usage(usage: Floats, limit: Floats) -> NDArray[np.float32]:
    """Percent of each resource, in single precision, of *usage* and *limit* of any one shape; 0 without a limit.

    Pulsar: ResourceUsage.percentUsage.
    """
    with np.errstate(all="ignore"):
        percent = usage.astype(np.float32) / limit.astype(np.float32) * np.float32(100)
        return np.where(limit > 0, percent, np.float32(0))


def max_usage(usage: Floats, limit: Floats) -> Floats:
    """(n,) each broker's largest usage as a fraction.  Pulsar: LocalBrokerData.getMaxResourceUsage."""
    return (_largest(_counted(usage, limit)) / np.float32(100)).astype(np.float64)


def mean_usage(usage: Floats) -> float:
    """The average of (n,) *usage*, n > 0, added up one after the other.

    Java adds that way.  NumPy's pairwise sum can differ in the last bit, and with a threshold of 0 that bit decides.
    """
    with np.errstate(invalid="ignore"):
        return float(np.add.accumulate(usage)[-1] / len(usage))


def _counted(usage: Floats, limit: Floats) -> NDArray[np.float32]:
    """(4, n) percent of the resources that count; a row a resource, as NumPy runs along rows fastest."""
    return percent_usage(usage.T[_COUNTED], limit.T[_COUNTED])


def _largest(values: NDArray[F]) -> NDArray[F]:
    """Column maxima as ``if (x > max) max = x`` finds them: NaN never wins."""
    largest: NDArray[F] = np.fmax.reduce(values, axis=0, initial=-np.inf)
    return largest
