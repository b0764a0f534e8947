"""Cut a bundle into as many parts as are needed so that each stays below the limits of message rate and traffic.

Pulsar: org.apache.pulsar.common.naming.FlowOrQpsEquallyDivideBundleSplitAlgorithm
"""

from dataclasses import dataclass

import numpy as np

from controller.model.decision import Reason
from controller.model.load import RATE_IN, RATE_OUT, THROUGHPUT_IN, THROUGHPUT_OUT, Floats, Ints
from controller.model.option import option
from controller.strategies.common.bundle_limits import MB, TrafficLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowOrQpsEquallyDivide(TrafficLimits):
    """See the module docstring.

    Topics are added up along the ring, and a cut is made before the topic that would pass a limit.  Of topics at the
    same position Pulsar uses only the last one, and counts it as often as there are topics there.
    """

    name = "flow_or_qps_equally_divide"
    needs_topic_detail = True

    difference_percent: int = option(
        "flowOrQpsDifferenceThresholdPercentage",
        default=10,
        unit="%",
        meaning="flow_or_qps_equally_divide: a bundle must be this far above a limit to be cut",
    )
    fixed: bool = option(
        "trimtabFlowOrQpsSplitFixedCollisions",
        default=False,
        meaning="flow_or_qps_equally_divide: topics at one place of the hash ring count together, each once",
    )

    def cuts(
        self,
        lower: int,  # noqa: ARG002
        upper: int,  # noqa: ARG002
        positions: Ints,
        load: Floats,
    ) -> tuple[int, ...] | Reason:
        """The cuts, ascending; TooFewTopics without two topics of any load, BelowMinimum within the limits."""
        rate = load[:, RATE_IN] + load[:, RATE_OUT]
        throughput = load[:, THROUGHPUT_IN] + load[:, THROUGHPUT_OUT]
        busy = (rate > 0) | (throughput > 0)
        positions, rate, throughput = positions[busy], rate[busy], throughput[busy]
        places, place = np.unique(positions, return_inverse=True)
        if len(places) < 2:
            return Reason.TOO_FEW_TOPICS
        max_throughput, margin = self.max_bandwidth_mbytes * MB, 1 + self.difference_percent / 100
        # Added up one by one, as Java does it: the last bit may decide.
        if np.cumsum(rate)[-1] < self.max_msg_rate * margin and np.cumsum(throughput)[-1] < max_throughput * margin:
            return Reason.BELOW_MINIMUM
        if self.fixed:
            rate = np.bincount(place, rate).astype(np.float64)
            throughput = np.bincount(place, throughput).astype(np.float64)
        else:
            last = np.empty(len(places), np.int64)
            last[place] = np.arange(len(place))
            known: Ints = last[np.sort(place)]
            places, rate, throughput = positions[known], rate[known], throughput[known]
        return self._cuts(places.tolist(), rate.tolist(), throughput.tolist()) or Reason.BELOW_MINIMUM

    def _cuts(self, places: list[int], rate: list[float], throughput: list[float]) -> tuple[int, ...]:
        """Where to cut between *places*, which ascend, so that what lies between two cuts stays within the limits."""
        cuts = []
        sum_rate, sum_throughput = rate[0], throughput[0]
        for i in range(1, len(places)):
            sum_rate, sum_throughput = sum_rate + rate[i], sum_throughput + throughput[i]
            if sum_rate > self.max_msg_rate or sum_throughput > self.max_bandwidth_mbytes * MB:
                cuts.append(places[i - 1] + (places[i] - places[i - 1]) // 2 + 1)
                sum_rate, sum_throughput = rate[i], throughput[i]
        return tuple(cuts)
