"""The newest tick in Pulsar, a moment after it was written."""

import threading
from contextlib import closing
from typing import Any, Final

import pulsar

from controller.adapters.pulsar.log.client import log_client, partition_name, topic_name
from controller.adapters.pulsar.log.messages import AS_THEY_ARE, published_ms
from controller.adapters.ticked import PARTITION, TickWatch
from controller.settings.pulsar_log import PulsarLogSettings

_READ_MILLIS: Final = 500
#: For what the client does besides reading.
_ANSWER_SECONDS: Final = 10.0


class PulsarTickWatch(TickWatch):
    """See TickWatch."""

    def __init__(self, settings: PulsarLogSettings, *, cluster: str) -> None:
        self._settings = settings
        super().__init__(cluster, pulsar.PulsarException)

    def _follow(self, closed: threading.Event) -> None:
        topic = partition_name(topic_name(self._settings, self._settings.results_topic), PARTITION)
        with closing(log_client(self._settings, seconds=_ANSWER_SECONDS)) as client:
            reader: Any = client.create_reader(topic, pulsar.MessageId.latest, **AS_THEY_ARE)
            while not closed.is_set():
                try:
                    message = reader.read_next(timeout_millis=_READ_MILLIS)
                except pulsar.Timeout:
                    continue
                self._look(message.data(), published_ms(message))
