"""Exclude brokers that hold the maximum number of topics, even if no broker is left, as the extensible load manager
does.

Topics count as the brokers last reported them; topics of bundles on their way do not count.

Pulsar: org.apache.pulsar.broker.loadbalance.extensions.filter.BrokerMaxTopicCountFilter
"""

from dataclasses import dataclass
from typing import ClassVar

from controller.model.load import ClusterView, Ints
from controller.strategies.common.topic_limit import TopicLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtMaxTopics(TopicLimit):
    """See the module docstring."""

    binding: ClassVar[bool] = True

    def keep(
        self,
        view: ClusterView,
        bundle: int,  # noqa: ARG002  its own topics do not count
        candidates: Ints,
    ) -> Ints:
        """The *candidates* below the limit, perhaps none."""
        fit: Ints = candidates[view.brokers.topic_count[candidates] < self.max_topics]
        return fit
