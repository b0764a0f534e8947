"""The newest tick in Kafka, a moment after it was written."""

import threading
from contextlib import closing
from typing import Final

import confluent_kafka as ck

from controller.adapters.kafka.reader import Reader
from controller.adapters.ticked import PARTITION, TickWatch
from controller.settings.log import KafkaLogSettings

_POLL_SECONDS: Final = 0.5
#: Nobody waits to hear that there is no tick, and each such answer takes processor time.
_END_KNOWN_MS: Final = 500


class KafkaTickWatch(TickWatch):
    """See TickWatch."""

    def __init__(self, settings: KafkaLogSettings, *, cluster: str) -> None:
        self._settings = settings
        super().__init__(cluster, ck.KafkaException)

    def _follow(self, closed: threading.Event) -> None:
        settings = self._settings
        reader = Reader(
            settings.bootstrap,
            settings.results_topic,
            partition=PARTITION,
            offset=None,
            client=settings.client,
            end_known_ms=_END_KNOWN_MS,
        )
        with closing(reader):
            while not closed.is_set():
                record = reader.poll(_POLL_SECONDS)
                if record is not None:
                    self._look(record.value, record.timestamp_ms)
