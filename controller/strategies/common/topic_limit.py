"""The limit of topics on a broker, which two filters read in different ways."""

from dataclasses import dataclass
from typing import ClassVar

from controller.model.decision import Reason
from controller.model.option import option


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLimit:
    """The option of MaxTopics and ExtMaxTopics.

    Pulsar: ServiceConfiguration.loadBalancerBrokerMaxTopics
    """

    reason: ClassVar[Reason] = Reason.MAX_TOPICS

    max_topics: int = option(
        "loadBalancerBrokerMaxTopics",
        default=50_000,
        unit="topics",
        meaning="modular load manager: a broker with more topics gets no bundle while another one can;"
        " extensible one: a broker with as many gets none",
    )
