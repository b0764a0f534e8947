"""The ticks in the result topic: each of its partitions has all of them, and few other records."""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import closing
from typing import Final

from controller.log.port import Log, LogRecord, Position, Start
from controller.model.errors import TrimtabError, WireError
from controller.wire.metrics import TickRecord
from controller.wire.results import decode_result

log = logging.getLogger(__name__)

#: The partition that ticks are looked for in.
PARTITION: Final = 0
_TICK: Final = b'"tick"'
_READ_SECONDS: Final = 0.5
#: After an error, until the log is read again.
_RETRY_SECONDS: Final = 2.0


def ticked_interval(record: LogRecord, *, cluster: str, period_ms: int) -> int | None:
    """The interval that *record*, one of the results, ticks, epoch ms; None where it is no tick of *cluster*.

    An interval of the future is none.  A result costs one search in its bytes.
    """
    if _TICK not in record.value:
        return None
    try:
        decoded = decode_result(record.value, cluster=cluster, period_ms=period_ms, append_time_ms=record.timestamp_ms)
    except WireError:
        return None  # a dead letter
    return decoded.interval if isinstance(decoded, TickRecord) else None


def intervals_ticked(log: Log, first: Position, *, cluster: str, period_ms: int) -> int:
    """How many intervals are ticked in the records from *first* on, up to the present end.  TrimtabError."""
    with closing(log.read("results", Start(position=first), partition=PARTITION)) as reader:
        intervals = {ticked_interval(record, cluster=cluster, period_ms=period_ms) for record in reader.read_to_end()}
    return len(intervals - {None})


class TickWatch(ABC):
    """Reads the ticks that come from now on, in a thread of its own, since the log may not answer."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
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
                self._follow()
            except (TrimtabError, OSError) as error:
                # The query meets it, too, and reports it.  Until it is over, batches begin without a tick.
                log.debug("ticks cannot be read: %s", error)
                self._closed.wait(_RETRY_SECONDS)

    @abstractmethod
    def _follow(self) -> None:
        """Look at each record that comes, until this is closed."""

    def _look(self, record: LogRecord) -> None:
        """Remember *record* where it is a tick."""
        # The query judges more strictly; a clock of this host that is behind must not hide ticks here.
        interval = ticked_interval(record, cluster=self._cluster, period_ms=1)
        if interval is not None:
            self.newest = max(interval, self.newest or 0)
            self._came.set()


class LogTickWatch(TickWatch):
    """Ticks in the results of the log that *connect* opens, and opens anew after an error."""

    def __init__(self, connect: Callable[[], Log], *, cluster: str) -> None:
        self._connect = connect
        super().__init__(cluster)

    def _follow(self) -> None:
        with (
            closing(self._connect()) as connected,
            closing(connected.read("results", Start(end=True), partition=PARTITION)) as reader,
        ):
            while not self._closed.is_set():
                record = reader.next(_READ_SECONDS)
                if record is not None:
                    self._look(record)
