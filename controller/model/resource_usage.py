"""The resource usage of brokers (usage / limit), in columns, bit for bit as Pulsar computes it.

Heap memory never counts: with garbage collection it says little.
Pulsar: org.apache.pulsar.policies.data.loadbalancer.{ResourceUsage.percentUsage, LocalBrokerData.getMaxResourceUsage,
getMaxResourceUsageWithWeight}.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from controller.model.load import (
    BANDWIDTH_IN,
    BANDWIDTH_OUT,
    CPU,
    DIRECT_MEMORY,
    RESOURCE_WORDS,
    ClusterView,
    Floats,
)
from controller.model.option import option

F = TypeVar("F", np.float32, np.float64)

_COUNTED = [CPU, DIRECT_MEMORY, BANDWIDTH_IN, BANDWIDTH_OUT]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceWeights:
    """Base of strategies that weigh resources; weight 0 excludes a resource."""

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
        """(n,) the largest weighted usage of each broker, a fraction; *usage* and *limit* are (n, 5).

        -inf where every weighted usage is NaN.  Pulsar: LocalBrokerData.getMaxResourceUsageWithWeight.
        """
        weights = np.array([self.weight_of(resource) for resource in _COUNTED])
        with np.errstate(invalid="ignore"):
            return largest(_counted(usage, limit).astype(np.float64) * weights[:, None]) / 100.0

    def fullest(self, usage: Floats, limit: Floats) -> list[str]:
        """The resource that ``weighted_usage`` is of, by name, for each broker; "" where that is not known."""
        weights = np.array([self.weight_of(resource) for resource in _COUNTED])
        with np.errstate(all="ignore"):
            shares = _counted(usage, limit).astype(np.float64) * weights[:, None]
        shares = np.where(np.isnan(shares), -np.inf, shares)
        names = [RESOURCE_WORDS[resource] for resource in _COUNTED]
        known = np.isfinite(shares.max(axis=0)).tolist()
        return [names[row] if there else "" for row, there in zip(shares.argmax(axis=0).tolist(), known, strict=True)]

    def weight_of(self, resource: int) -> float:
        """The weight of *resource*, a column of usage; 0 of those that never count."""
        weights = {
            CPU: self.cpu_weight,
            DIRECT_MEMORY: self.direct_memory_weight,
            BANDWIDTH_IN: self.bandwidth_in_weight,
            BANDWIDTH_OUT: self.bandwidth_out_weight,
        }
        return weights.get(resource, 0.0)

    def usage_of_all(self, view: ClusterView) -> Floats:
        """(brokers,) :meth:`weighted_usage` of *view*, computed once in an interval, since each placement needs it."""
        usage, limit = view.brokers.usage, view.brokers.limit

        def find() -> tuple[Floats, Floats, Floats]:
            # The arrays are kept with the result: the key has their ids, which must not be reused.
            return usage, limit, self.weighted_usage(usage, limit)

        return view.policies.derived(("weighted usage", self, id(usage), id(limit)), find)[2]


def percent_usage(usage: Floats, limit: Floats) -> NDArray[np.float32]:
    """Usage of each resource in percent, in single precision; 0 without a limit.  Both arguments have the same shape.

    Pulsar: ResourceUsage.percentUsage.
    """
    with np.errstate(all="ignore"):
        percent = usage.astype(np.float32) / limit.astype(np.float32) * np.float32(100)
        return np.where(limit > 0, percent, np.float32(0))


def max_usage(usage: Floats, limit: Floats) -> Floats:
    """(n,) the largest usage of each broker, a fraction.  Pulsar: LocalBrokerData.getMaxResourceUsage."""
    return (largest(_counted(usage, limit)) / np.float32(100)).astype(np.float64)


def mean_usage(usage: Floats) -> float:
    """The mean of *usage*, (n,), n > 0, added from left to right as in Java.

    NumPy's pairwise sum can differ in the last bit, and with a threshold of 0 that bit decides.
    """
    with np.errstate(invalid="ignore"):
        return float(np.add.accumulate(usage)[-1] / len(usage))


def _counted(usage: Floats, limit: Floats) -> NDArray[np.float32]:
    """(4, n) percent of the resources that count; one row for each resource, the faster layout for NumPy."""
    return percent_usage(usage.T[_COUNTED], limit.T[_COUNTED])


def largest(values: NDArray[F]) -> NDArray[F]:
    """(n,) the maximum of each column of (k, n), as Java's ``if (x > max) max = x`` gives it: NaN is ignored."""
    maximum: NDArray[F] = np.fmax.reduce(values, axis=0, initial=-np.inf)
    return maximum
