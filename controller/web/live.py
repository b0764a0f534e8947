"""What is read from the cluster itself while somebody looks: its status, and the topics of a bundle."""

import time
from collections.abc import Callable
from functools import cache
from typing import Final

from controller.adapters.pulsar.access import pulsar_admin
from controller.adapters.pulsar.admin import PulsarAdmin
from controller.model.names import is_bundle
from controller.settings.trimtab_toml import Settings
from controller.status.answer import status_answer
from controller.status.cluster import cluster_status
from controller.status.health import problems
from controller.web.topic_names import TopicLister
from controller.wire.answers.status import StatusAnswer

#: Limit on each answer of a broker.
_ANSWER_SECONDS: Final = 5.0
#: A longer list of topics is not read: tens of thousands of names.
_LONGEST_LIST: Final = 8 << 20


def read_status(settings: Settings) -> Callable[[], StatusAnswer]:
    """Reads the status of the cluster in *settings*, each time it is called; connections to brokers stay open."""

    @cache
    def admin() -> PulsarAdmin | None:
        return None if settings.pulsar is None else pulsar_admin(settings, answer_seconds=_ANSWER_SECONDS)

    def read() -> StatusAnswer:
        cluster_state = cluster_status(settings, admin())
        return status_answer(cluster_state, problems(cluster_state, settings, time.time() * 1000))

    return read


def topic_lister(settings: Settings) -> TopicLister | None:
    """Lists the topics of bundles, and scalable topics of namespaces, of the cluster in *settings*.

    None where these have no brokers to ask.
    """
    if settings.pulsar is None:
        return None

    @cache
    def admin() -> PulsarAdmin:
        return pulsar_admin(settings, answer_seconds=_ANSWER_SECONDS).reading_at_most(_LONGEST_LIST)

    def topics(place: str) -> tuple[str, ...]:
        broker = admin().within(2 * _ANSWER_SECONDS)
        return broker.topics(place) if is_bundle(place) else broker.scalable_topics(place)

    return topics
