"""The ticks in the result topic of Kafka or Pulsar: each of its partitions has all of them, and few other records."""

import logging
import threading
from abc import ABC, abstractmethod
from typing import Final

from controller.model.errors import TrimtabError, WireError
from controller.wire.metrics import TickRecord
from controller.wire.results import decode_result

log = logging.getLogger(__name__)

#: The partition of the result topic that ticks are looked for in.
PARTITION: Final = 0
_TICK: Final = b'"tick"'
#: After an error, until the log is asked again.
_REST_SECONDS: Final = 2.0


def interval_ticked(value: bytes, *, cluster: str, period_ms: int, append_time_ms: int | None = None) -> int | None:
    """The interval that *value*, a record of the result topic, ticks, epoch ms; None where it is no tick of *cluster*.

    *append_time_ms*: when the log got it; an interval of the future is none.  A result costs one search in its bytes.
    """
    if _TICK not in value:
        return None
    try:
        said = decode_result(value, cluster=cluster, period_ms=period_ms, append_time_ms=append_time_ms)
    except WireError:
        return None  # a dead letter
    return said.interval if isinstance(said, TickRecord) else None


class TickWatch(ABC):
    """Reads the ticks that come from now on, in a thread of its own: the log may not answer."""

    def __init__(self, cluster: str, *failures: type[Exception]) -> None:
        """*failures*: what the log's client raises besides TrimtabError."""
        self._cluster = cluster
        self._failures: tuple[type[Exception], ...] = (TrimtabError, *failures)
        #: The newest interval that was ticked, epoch ms; None before the first.
        self.newest: int | None = None
        self._came, self._closed = threading.Event(), threading.Event()
        threading.Thread(target=self._run, name="ticks", daemon=True).start()

    def wait(self, seconds: float) -> None:
        """Return when a tick has come since the last call, or after *seconds*."""
        if self._came.wait(seconds):
            self._came.clear()

    def close(self) -> None:
        """Stop reading, within a second where the log answers."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self._follow(self._closed)
            except self._failures as error:
                # The query meets it, too, and reports it.  Until it is over, batches begin without a tick.
                log.debug("ticks cannot be read: %s", error)
                self._closed.wait(_REST_SECONDS)

    @abstractmethod
    def _follow(self, closed: threading.Event) -> None:
        """Give each record that comes to ``_look``, until *closed* is set."""

    def _look(self, value: bytes, append_time_ms: int) -> None:
        # The query judges more strictly; a clock of this host that is behind must not hide ticks here.
        interval = interval_ticked(value, cluster=self._cluster, period_ms=1, append_time_ms=append_time_ms)
        if interval is not None:
            self.newest = max(interval, self.newest or 0)
            self._came.set()
