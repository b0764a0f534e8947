"""Whether a broker must report its load again: it has changed enough, or the last report is old.

Pulsar: ModularLoadManagerImpl.needBrokerDataUpdate, called every loadBalancerReportUpdateMinIntervalMillis.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from controller.model.load import RATE_IN, RATE_OUT, THROUGHPUT_IN, THROUGHPUT_OUT, Bools, Floats, Ints
from controller.model.option import option
from controller.model.resource_usage import ResourceWeights

_MS_PER_MINUTE: Final = 60_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReportedLoad:
    """The load of n brokers, as last reported or as of now."""

    #: (n, 4) msg/s and bytes/s.
    load: Floats
    bundles: Ints
    #: (n, 5) usage and limit of each resource, in the columns of BrokerTable.
    usage: Floats
    limit: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportUpdate(ResourceWeights):
    """The options that say when a report is due."""

    threshold_percent: int = option(
        "loadBalancerReportUpdateThresholdPercentage",
        default=10,
        unit="%",
        meaning="a report is due when anything changed by more than this since the last one",
    )
    min_interval_ms: int = option(
        "loadBalancerReportUpdateMinIntervalMillis",
        default=5000,
        unit="ms",
        meaning="how often to look whether a report is due, so reports come no closer than this",
    )
    max_interval_minutes: int = option(
        "loadBalancerReportUpdateMaxIntervalMinutes",
        default=15,
        unit="min",
        meaning="a report older than this is renewed in any case",
    )

    def needed(self, last: ReportedLoad, now: ReportedLoad, age_ms: Ints) -> Bools:
        """(n,) whether each broker must report *now*; its *last* report is *age_ms* old.

        Message rate, throughput and number of bundles count by their change in percent of the last report; a change
        from zero is infinite.  Resource usage counts by its change in percentage points.
        """
        usage = 100.0 * np.abs(self.weighted_usage(last.usage, last.limit) - self.weighted_usage(now.usage, now.limit))
        changes = (
            _percent_change(
                last.load[:, RATE_IN] + last.load[:, RATE_OUT], now.load[:, RATE_IN] + now.load[:, RATE_OUT]
            ),
            _percent_change(
                last.load[:, THROUGHPUT_IN] + last.load[:, THROUGHPUT_OUT],
                now.load[:, THROUGHPUT_IN] + now.load[:, THROUGHPUT_OUT],
            ),
            _percent_change(last.bundles.astype(np.float64), now.bundles.astype(np.float64)),
            usage,
        )
        # A change that is NaN is ignored.
        largest = np.fmax.reduce(changes)
        changed: Bools = largest > self.threshold_percent
        return changed | (age_ms > self.max_interval_minutes * _MS_PER_MINUTE)


def _percent_change(old: Floats, new: Floats) -> Floats:
    with np.errstate(all="ignore"):
        change = 100 * np.abs((old - new) / old)
    from_nothing = np.where(new == 0, 0.0, np.inf)
    return np.where(old == 0, from_nothing, change)
