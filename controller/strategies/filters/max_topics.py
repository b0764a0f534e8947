"""Exclude brokers that hold too many topics, including those on their way.

If all hold too many, no broker is left out.

Pulsar: LoadManagerShared.filterBrokersWithLargeTopicCount
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from controller.model.load import ClusterView, Ints
from controller.strategies.common.topic_limit import TopicLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxTopics(TopicLimit):
    """See the module docstring."""

    binding: ClassVar[bool] = False

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
