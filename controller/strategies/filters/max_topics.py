"""Leave out brokers that hold too many topics, those on their way counted.

If all hold too many, no broker is left out.

Pulsar: LoadManagerShared.filterBrokersWithLargeTopicCount
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from controller.model.decision import Reason
from controller.model.load import ClusterView, Ints
from controller.model.option import option


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxTopics:
    """See the module docstring."""

    reason: ClassVar[Reason] = Reason.MAX_TOPICS
    binding: ClassVar[bool] = False

    max_topics: int = option(
        "loadBalancerBrokerMaxTopics",
        default=50_000,
        unit="topics",
        meaning="a broker with more topics gets no bundle while another one can",
    )

    def keep(
        self,
        view: ClusterView,
        bundle: int,  # noqa: ARG002  its own topics do not count
        candidates: Ints,
    ) -> Ints:
        """The *candidates* at or below the limit; all of them where there is none."""
        topics, sent = view.brokers.topic_count, view.preallocated
        if len(sent):
            # bincount adds floats, which is exact for whole numbers of this size.
            coming = np.bincount(sent.broker, weights=view.bundles.topics[sent.bundle], minlength=len(topics))
            topics = topics + coming.astype(np.int64)
        fit = candidates[topics[candidates] <= self.max_topics]
        return fit if len(fit) else candidates
