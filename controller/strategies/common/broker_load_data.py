"""The extensible load manager's view of a broker: its usage and throughput, smoothed over its reports.

Unlike the modular load manager it also has a weight for heap memory (default 0), smooths throughput as well as usage,
and treats a broker that never reported as full.

Pulsar: org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLoadData
"""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from controller.model.load import BANDWIDTH_IN, BANDWIDTH_OUT, CPU, DIRECT_MEMORY, MEMORY, Bools, Floats
from controller.model.option import option
from controller.model.resource_usage import ResourceWeights, largest, percent_usage
from controller.strategies.common import options

#: A broker without a report counts as full, so that nothing is sent to it.
_UNKNOWN_USAGE: Final = 1.0
_UNWEIGHTED: Final = [CPU, DIRECT_MEMORY, BANDWIDTH_IN, BANDWIDTH_OUT]
_WEIGHTED: Final = [CPU, MEMORY, DIRECT_MEMORY, BANDWIDTH_IN, BANDWIDTH_OUT]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BrokerLoad:
    """The load of n brokers, in columns of (n,)."""

    #: The largest usage of a resource in the last report, a fraction, without weights and without heap memory.
    max_resource_usage: Floats
    #: The largest weighted usage of a resource, a fraction, smoothed.
    weighted_max_ema: Floats
    #: Bytes/s in + out, smoothed.
    msg_throughput_ema: Floats
    #: Whether the broker has reported; if not, the other columns hold assumed values.
    reported: Bools

    @classmethod
    def unknown(cls, brokers: int) -> Self:
        """*brokers* (a number) that have not reported: full, and without traffic.  Pulsar: BrokerLoadData.clear."""
        full = np.full(brokers, _UNKNOWN_USAGE)
        return cls(
            max_resource_usage=full,
            weighted_max_ema=full,
            msg_throughput_ema=np.zeros(brokers),
            reported=np.zeros(brokers, np.bool_),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLoadFeatures(ResourceWeights):
    """Base of strategies that measure brokers as the extensible load manager does."""

    memory_weight: float = option(
        "loadBalancerMemoryResourceWeight", default=0.0, meaning="weight of heap memory usage; deprecated in Pulsar"
    )
    history_fraction: float = options.history_fraction()

    def weighted_usage(self, usage: Floats, limit: Floats) -> Floats:
        """(n,) the largest weighted usage of each broker, a fraction, heap memory included.

        *usage* and *limit* are (n, 5), in the columns of BrokerTable.  -inf where every weighted usage is NaN.
        Pulsar: BrokerLoadData.getMaxResourceUsageWithWeight.
        """
        weights = np.array(
            [
                self.cpu_weight,
                self.memory_weight,
                self.direct_memory_weight,
                self.bandwidth_in_weight,
                self.bandwidth_out_weight,
            ]
        )
        percent = percent_usage(usage.T[_WEIGHTED], limit.T[_WEIGHTED]).astype(np.float64)
        with np.errstate(invalid="ignore"):
            return largest(percent * weights[:, None]) / 100

    def updated(self, before: BrokerLoad, usage: Floats, limit: Floats, throughput: Floats) -> BrokerLoad:
        """The load after one more report of each broker: (n, 5) *usage* and *limit*, (n,) bytes/s in + out.

        The first report initialises the averages; later ones give ``f * before + (1 - f) * report``, f being
        ``history_fraction``.  Pulsar: BrokerLoadData.update.
        """
        unweighted = percent_usage(usage.T[_UNWEIGHTED], limit.T[_UNWEIGHTED]).astype(np.float64)
        return BrokerLoad(
            max_resource_usage=largest(unweighted) / 100,
            weighted_max_ema=self._smoothed(before.weighted_max_ema, self.weighted_usage(usage, limit), before),
            msg_throughput_ema=self._smoothed(before.msg_throughput_ema, throughput, before),
            reported=np.ones(len(before.reported), np.bool_),
        )

    def _smoothed(self, history: Floats, report: Floats, before: BrokerLoad) -> Floats:
        with np.errstate(invalid="ignore"):
            moved = history * self.history_fraction + (1 - self.history_fraction) * report
        return np.where(before.reported, moved, report)
