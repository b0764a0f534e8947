"""The newest tick in Kafka, a moment after it was written."""

import logging
import threading
from contextlib import closing
from typing import Final

import confluent_kafka as ck

from controller.adapters.kafka.reader import Reader
from controller.adapters.ticked import PARTITION, interval_ticked
from controller.model.errors import TrimtabError
from controller.settings.log import KafkaLogSettings

log = logging.getLogger(__name__)

_POLL_SECONDS: Final = 0.5
#: Nobody waits to hear that there is no tick, and each such answer takes processor time.
_END_KNOWN_MS: Final = 500
#: After an error, until Kafka is asked again.
_REST_SECONDS: Final = 2.0


class TickWatch:
    """Reads the ticks that come from now on, in a thread of its own: Kafka may not answer."""

    def __init__(self, settings: KafkaLogSettings, *, cluster: str) -> None:
        self._settings, self._cluster = settings, cluster
        #: The newest interval that was ticked, epoch ms; None before the first.
        self.newest: int | None = None
        self._came, self._closed = threading.Event(), threading.Event()
        threading.Thread(target=self._run, name="ticks", daemon=True).start()

    def wait(self, seconds: float) -> None:
        """Return when a tick has come since the last call, or after *seconds*."""
        if self._came.wait(seconds):
            self._came.clear()

    def close(self) -> None:
        """Stop reading, within a second where Kafka answers."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self._read()
            except (TrimtabError, ck.KafkaException) as error:
                # The query meets it, too, and reports it.  Until it is over, batches begin without a tick.
                log.debug("ticks cannot be read: %s", error)
                self._closed.wait(_REST_SECONDS)

    def _read(self) -> None:
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
            while not self._closed.is_set():
                record = reader.poll(_POLL_SECONDS)
                if record is not None:
                    self._look(record.value, record.timestamp_ms)

    def _look(self, value: bytes, append_time_ms: int) -> None:
        interval = interval_ticked(value, cluster=self._cluster, period_ms=1, append_time_ms=append_time_ms)
        if interval is not None:
            self.newest = max(interval, self.newest or 0)
            self._came.set()
