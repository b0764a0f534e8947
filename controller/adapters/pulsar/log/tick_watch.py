"""The newest tick in Pulsar, a moment after it was written."""

import logging
import threading
from contextlib import closing
from typing import Any, Final

import pulsar

from controller.adapters.pulsar.log.client import log_client, partition_name, topic_name
from controller.adapters.pulsar.log.messages import AS_THEY_ARE, published_ms
from controller.adapters.ticked import PARTITION, interval_ticked
from controller.model.errors import TrimtabError
from controller.settings.pulsar_log import PulsarLogSettings

log = logging.getLogger(__name__)

_READ_MILLIS: Final = 500
#: After an error, until Pulsar is asked again.
_REST_SECONDS: Final = 2.0
#: For what the client does besides reading.
_ANSWER_SECONDS: Final = 10.0


class PulsarTickWatch:
    """Reads the ticks that come from now on, in a thread of its own: Pulsar may not answer."""

    def __init__(self, settings: PulsarLogSettings, *, cluster: str) -> None:
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
        """Stop reading, within a second where Pulsar answers."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                with closing(log_client(self._settings, seconds=_ANSWER_SECONDS)) as client:
                    self._follow(client)
            except (TrimtabError, pulsar.PulsarException) as error:
                # The query meets it, too, and reports it.  Until it is over, batches begin without a tick.
                log.debug("ticks cannot be read: %s", error)
                self._closed.wait(_REST_SECONDS)

    def _follow(self, client: pulsar.Client) -> None:
        topic = partition_name(topic_name(self._settings, self._settings.results_topic), PARTITION)
        reader: Any = client.create_reader(topic, pulsar.MessageId.latest, **AS_THEY_ARE)
        while not self._closed.is_set():
            try:
                message = reader.read_next(timeout_millis=_READ_MILLIS)
            except pulsar.Timeout:
                continue
            # The query judges more strictly; a clock of this host that is behind must not hide ticks here.
            self._look(message.data(), published_ms(message))

    def _look(self, value: bytes, append_time_ms: int) -> None:
        interval = interval_ticked(value, cluster=self._cluster, period_ms=1, append_time_ms=append_time_ms)
        if interval is not None:
            self.newest = max(interval, self.newest or 0)
            self._came.set()
