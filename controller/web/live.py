"""What is read from the cluster itself while somebody looks: its status."""

import time
from collections.abc import Callable
from functools import cache
from typing import Final

from controller.adapters.pulsar.access import pulsar_admin
from controller.adapters.pulsar.admin import PulsarAdmin
from controller.settings.trimtab_toml import Settings
from controller.status.answer import status_answer
from controller.status.cluster import cluster_status
from controller.status.health import problems
from controller.wire.answers.status import StatusAnswer

#: Limit on each answer of a broker.
_ANSWER_SECONDS: Final = 5.0


def read_status(settings: Settings) -> Callable[[], StatusAnswer]:
    """Reads the status of the cluster in *settings*, each time it is called; connections to brokers stay open."""

    @cache
    def admin() -> PulsarAdmin | None:
        return None if settings.pulsar is None else pulsar_admin(settings, answer_seconds=_ANSWER_SECONDS)

    def read() -> StatusAnswer:
        cluster_state = cluster_status(settings, admin())
        return status_answer(cluster_state, problems(cluster_state, settings, time.time() * 1000))

    return read
