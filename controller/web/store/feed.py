"""Reads the log into a store: summaries, the journal, results, and what people did.  Never sweeps.

A source is read from the time up to which the store has it, a minute before that, or seven days ago; so restarts go on
where they stopped, on every log system.  What cannot be used is counted and passed over: one bad record hides nothing.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Final

from controller.log.journal_reading import epoch_in
from controller.log.port import Log, LogRecord, LogTopic, Reader, Start
from controller.model.controls import OperatorControls
from controller.model.decision import Decision
from controller.model.errors import TrimtabError, WireError
from controller.web.store.database import StoreDamagedError
from controller.web.store.store import Store
from controller.web.store.values import SourceProgress
from controller.wire.base import refuse_too_large
from controller.wire.journal import ControlsRecord, DecisionEntry, DeltaEntry, to_decision
from controller.wire.journal_records import LARGEST_ENTRY, RecordReader
from controller.wire.results import Result, decode_result
from controller.wire.summary import ReadSummary, read_summary

log = logging.getLogger(__name__)

#: How far before the last record reading begins again: clocks of producers differ.
_OVERLAP_MS: Final = 60_000
#: Records of the journal, or results, that are stored at once.
_AT_ONCE: Final = 256
_SUMMARIES_AT_ONCE: Final = 32
#: Summaries between two flushes while they are loaded, and seconds between two while records come one by one.
_FLUSH_EVERY: Final = 4_096
_FLUSH_SECONDS: Final = 600.0
_POLL_SECONDS: Final = 1.0
_PARTITIONS_SECONDS: Final = 60.0
_CONTROLS_SECONDS: Final = 10.0
_RETRY_SECONDS: Final = 5.0
_LONGEST_JOURNAL_RECORD: Final = LARGEST_ENTRY


@dataclass(slots=True)
class _Place:
    """How far a source is read."""

    since_ms: int
    until_ms: int
    refused: int = 0

    def share(self, at_ms: int) -> float:
        """Which share of the way to the end is behind, by append times; below 1."""
        whole = max(1, self.until_ms - self.since_ms)
        return min(0.999, max(0.0, (at_ms - self.since_ms) / whole))


class TopicFeed:
    """One topic, read into *store* by one thread at a time."""

    topic: LogTopic

    def __init__(self, store: Store, now_ms: Callable[[], int]) -> None:
        self.store, self._now_ms = store, now_ms
        #: Append time of the last record that was read, and of the last one up to which all are in the store, epoch ms.
        self.read_ms: int | None = store.positions().get(self.topic)
        self.stored_ms = self.read_ms
        self._place = _Place(0, 0)
        self._behind = True
        #: Whether all records up to the last one that was read were read: partitions are loaded one after the other.
        self._in_order = False
        #: Of the store that this was read into.
        self.generation = store.generation

    def read(self, log: Log, stop: threading.Event, *, follow: bool) -> None:
        """Read up to the present end of *log*; *follow*: and then what comes, until *stop*.  TrimtabError."""
        if self.generation != self.store.generation:
            self.generation, self._behind = self.store.generation, True
            self.stored_ms = self.store.positions().get(self.topic)
        # What was read and is not in the store, since an error came between, is read again.
        self.forget()
        self.read_ms = self.stored_ms
        partitions = sorted(log.ends(self.topic))
        if not partitions:
            self._report(1.0, "", behind=False)
            raise TrimtabError(f"{log.name(self.topic)} does not exist yet, or may not be seen")
        last = [end for each in partitions for end in log.read_backwards(self.topic, each, None, 1)[-1:]]
        # Age counts back from the last record: a log to which nobody has written for long is shown, too.
        until_ms = min(self._now_ms(), max((record.timestamp_ms for record in last), default=self._now_ms()))
        oldest = max(0, until_ms - self.store.retention_ms)
        since_ms = oldest if self.read_ms is None else max(oldest, self.read_ms - _OVERLAP_MS)
        self._place = _Place(since_ms, until_ms, self._place.refused)
        self._in_order = len(partitions) == 1
        self.begin(last)
        readers = [log.read(self.topic, Start(since_ms=since_ms), partition=each) for each in partitions]
        try:
            for reader in readers:
                for record in reader.read_to_end():
                    self._take(record)
                    if stop.is_set() or self._is_outdated():
                        return
            self.caught_up()
            if self._is_outdated():
                return
            self._in_order, self.stored_ms = True, self.read_ms
            self._report(1.0, "", behind=False)
            looked = time.monotonic()
            while follow and not stop.is_set() and not self._is_outdated():
                for reader in readers:
                    self._drain(reader, _POLL_SECONDS / len(readers))
                self.pause()
                if time.monotonic() - looked > _PARTITIONS_SECONDS:
                    looked = time.monotonic()
                    if len(log.ends(self.topic)) != len(partitions):
                        return  # partitions were added
        finally:
            for reader in readers:
                with suppress(TrimtabError):
                    reader.close()

    def _is_outdated(self) -> bool:
        """Whether the store was built anew meanwhile.  StoreDamagedError where it has to be."""
        if self.store.damage:
            raise StoreDamagedError(self.store.damage)
        return self.generation != self.store.generation

    def failed(self, error: Exception) -> None:
        """Show why the source cannot be read."""
        self._report(0.0 if self._behind else 1.0, str(error) or repr(error), behind=self._behind)

    def begin(self, last: Sequence[LogRecord]) -> None:
        """Called before the first record; *last*: the last one of each partition."""

    def take(self, record: LogRecord) -> None:
        """Take *record* in.  WireError where it cannot be used."""
        raise NotImplementedError

    def is_stored(self) -> bool:
        """Whether all that was taken is in the store."""
        return True

    def forget(self) -> None:
        """Forget what was taken and is not in the store."""

    def pause(self) -> None:
        """Called when no record comes."""

    def caught_up(self) -> None:
        """Called at the end of what was there."""

    def _drain(self, reader: Reader, seconds: float) -> None:
        """Take all records that *reader* has, and wait for the first one."""
        record = reader.next(seconds)
        while record is not None:
            self._take(record)
            record = reader.next(0.0)

    def _take(self, record: LogRecord) -> None:
        try:
            self.take(record)
        except WireError as error:
            self._place.refused += 1
            if self._place.refused == 1:
                log_refused(self.topic, error)
        self.read_ms = max(self.read_ms or 0, min(record.timestamp_ms, self._now_ms()))
        if self._in_order and self.is_stored():
            self.stored_ms = self.read_ms
        if self._behind:
            self._report(self._place.share(record.timestamp_ms), "", behind=True)

    def _report(self, done: float, error: str, *, behind: bool) -> None:
        self._behind = behind
        # A new version for each percent, not for each record.
        done = done if done >= 1.0 else int(100 * done) / 100
        self.store.set_progress(
            SourceProgress(
                source=self.topic, done=done, read_until_ms=self.read_ms, refused=self._place.refused, error=error
            )
        )


def log_refused(topic: str, error: WireError) -> None:
    """Say once what was passed over."""
    log.warning("a record of %s cannot be used and is not shown (further ones are only counted): %s", topic, error)


class SummarySource(TopicFeed):
    """The summaries."""

    topic: LogTopic = "summaries"

    def __init__(self, store: Store, now_ms: Callable[[], int], flush: Callable[[], None]) -> None:
        super().__init__(store, now_ms)
        self._flush, self._since_flush = flush, 0
        self._read: list[ReadSummary] = []

    def begin(self, last: Sequence[LogRecord]) -> None:
        """See TopicFeed."""
        for record in last:
            with suppress(WireError):
                read = self._summary_in(record)
                self.store.expect(0 if read is None else read.summary.interval)

    def take(self, record: LogRecord) -> None:
        """See TopicFeed."""
        read = self._summary_in(record)
        if read is not None:
            self._read.append(read)
        if len(self._read) >= _SUMMARIES_AT_ONCE or not self._behind:
            self._store()

    def _summary_in(self, record: LogRecord) -> ReadSummary | None:
        at_ms = min(record.timestamp_ms, self._now_ms())
        return read_summary(record.value, cluster=self.store.cluster, append_time_ms=at_ms)

    def is_stored(self) -> bool:
        """See TopicFeed."""
        return not self._read

    def forget(self) -> None:
        """See TopicFeed."""
        self._read = []

    def caught_up(self) -> None:
        """See TopicFeed."""
        self._store()
        if self._since_flush:
            self._do_flush()

    def _store(self) -> None:
        read, self._read = self._read, []
        if read:
            self._since_flush += self.store.add_summaries(read)
        if self._since_flush >= _FLUSH_EVERY:
            self._do_flush()

    def _do_flush(self) -> None:
        self._since_flush = 0
        self._flush()


class JournalSource(TopicFeed):
    """The decisions, without the memory behind them."""

    topic: LogTopic = "journal"

    def __init__(self, store: Store, now_ms: Callable[[], int]) -> None:
        super().__init__(store, now_ms)
        self._reader = RecordReader(store.cluster)
        self._decided: list[tuple[Decision, ControlsRecord, int]] = []

    def take(self, record: LogRecord) -> None:
        """See TopicFeed."""
        refuse_too_large(record.value, _LONGEST_JOURNAL_RECORD)
        whole = self._reader.read(record.value)
        entry = None if whole is None else whole.record
        if isinstance(entry, DecisionEntry | DeltaEntry) and entry.interval <= self._now_ms() + _OVERLAP_MS:
            controls = entry.controls
            if controls.orders is not None:
                controls = controls.model_copy(update={"orders": controls.orders.model_copy(update={"moves": ()})})
            self._decided.append((to_decision(entry), controls, epoch_in(record.headers)))
        if len(self._decided) >= _AT_ONCE or not self._behind:
            self._store()

    def is_stored(self) -> bool:
        """See TopicFeed."""
        return not self._decided

    def forget(self) -> None:
        """See TopicFeed."""
        self._decided, self._reader = [], RecordReader(self.store.cluster)

    def caught_up(self) -> None:
        """See TopicFeed."""
        self._store()

    def _store(self) -> None:
        if self._decided:
            decided, self._decided = self._decided, []
            self.store.add_decisions(decided)


class ResultSource(TopicFeed):
    """The results of commands."""

    topic: LogTopic = "results"

    def __init__(self, store: Store, now_ms: Callable[[], int]) -> None:
        super().__init__(store, now_ms)
        #: Each with its append time.
        self._results: list[tuple[Result, int]] = []

    def take(self, record: LogRecord) -> None:
        """See TopicFeed."""
        if b'"result"' not in record.value:
            return  # a tick
        result = decode_result(record.value, cluster=self.store.cluster, period_ms=1)
        if isinstance(result, Result):
            self._results.append((result, min(record.timestamp_ms, self._now_ms())))
        if len(self._results) >= _AT_ONCE or not self._behind:
            self._store()

    def is_stored(self) -> bool:
        """See TopicFeed."""
        return not self._results

    def forget(self) -> None:
        """See TopicFeed."""
        self._results = []

    def pause(self) -> None:
        """See TopicFeed."""
        self._store()

    def caught_up(self) -> None:
        """See TopicFeed."""
        self._store()

    def _store(self) -> None:
        if self._results:
            results, self._results = self._results, []
            self.store.add_results(results)


class Feed:
    """Fills *store* from the logs that *connect* opens, each source in a thread of its own."""

    def __init__(
        self,
        store: Store,
        connect: Callable[[], Log],
        controls: Callable[[], OperatorControls],
        *,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """*controls* reads what people did; it may raise TrimtabError."""
        self._store, self._connect, self._controls, self._now_ms = store, connect, controls, now_ms
        self._stop = threading.Event()
        #: The controls are to be read now.
        self._controls_due = threading.Event()
        self._rebuilding = threading.Lock()
        self._threads: list[threading.Thread] = []
        #: Source -> what it failed with last.
        self._failures: dict[str, str] = {}
        self._begin()

    def catch_up(self) -> None:
        """Read everything that is there now, in this thread.  TrimtabError."""
        self._store.add_controls(self._controls().events)
        self._controls_read("", 1.0)
        for source in self._sources:
            with closing(self._connect()) as connected:
                if connected.ends(source.topic):
                    source.read(connected, self._stop, follow=False)
                else:
                    source.failed(TrimtabError(f"{connected.name(source.topic)} does not exist yet"))
        self._flush()

    def start(self) -> None:
        """Begin to read, and to follow what comes."""
        targets = [(source.topic, lambda source=source: self._follow(source)) for source in self._sources]
        for name, run in [*targets, ("controls", self._follow_controls)]:
            thread = threading.Thread(target=run, name=f"page-{name}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def read_controls(self) -> None:
        """Have the controls read at once: they have changed."""
        self._controls_due.set()

    def close(self) -> None:
        """End reading, and make durable what was read."""
        self._stop.set()
        self._controls_due.set()
        for thread in self._threads:
            thread.join(30.0)
        with suppress(TrimtabError):
            self._flush()

    def _begin(self) -> None:
        self._sources: tuple[TopicFeed, ...] = (
            SummarySource(self._store, self._now_ms, self._flush),
            JournalSource(self._store, self._now_ms),
            ResultSource(self._store, self._now_ms),
        )
        self._controls_read("", 0.0)
        for source in self._sources:
            self._store.set_progress(
                SourceProgress(source=source.topic, done=0.0, read_until_ms=source.read_ms, refused=0, error="")
            )

    def _flush(self) -> None:
        """Positions first: what is read meanwhile is read again after a restart."""
        current = [each for each in self._sources if each.generation == self._store.generation]
        self._store.flush({each.topic: each.stored_ms for each in current if each.stored_ms is not None})

    def _follow(self, source: TopicFeed) -> None:
        while not self._stop.is_set():
            try:
                self._rebuild_damaged()
                with closing(self._connect()) as connected:
                    source.read(connected, self._stop, follow=True)
            except StoreDamagedError:
                continue
            except Exception as error:  # whatever it is: nobody else reads this source, or would say that it is not
                self._log_failure(source.topic, error)
                source.failed(error)
                self._stop.wait(_RETRY_SECONDS)

    def _rebuild_damaged(self) -> None:
        """Empty the store once, whichever thread sees first that it is damaged; all read from the beginning.

        TrimtabError or OSError where that fails, as on a full disk.
        """
        with self._rebuilding:
            if self._store.damage:
                try:
                    self._store.rebuild(self._store.damage)
                except StoreDamagedError as error:  # the new file as well: as soon again does not help
                    raise TrimtabError(str(error)) from error
                self._controls_due.set()

    def _follow_controls(self) -> None:
        """Also flushes now and then, whichever sources there are."""
        flushed = time.monotonic()
        while not self._stop.is_set():
            try:
                self._rebuild_damaged()
                if time.monotonic() - flushed > _FLUSH_SECONDS:
                    flushed = time.monotonic()
                    self._flush()
                self._store.add_controls(self._controls().events)
                self._controls_read("", 1.0)
            except StoreDamagedError:
                continue
            except Exception as error:  # as above
                self._log_failure("controls", error)
                self._controls_read(str(error) or repr(error), 1.0)
            self._controls_due.wait(_CONTROLS_SECONDS)
            self._controls_due.clear()

    def _log_failure(self, source: str, error: Exception) -> None:
        """Log what the page shows as well: a fault of trimtab's own with its trace, once."""
        is_new, self._failures[source] = self._failures.get(source) != repr(error), repr(error)
        is_fault = is_new and not isinstance(error, TrimtabError | OSError)
        log.log(logging.ERROR if is_fault else logging.DEBUG, "%s: not read: %s", source, error, exc_info=is_fault)

    def _controls_read(self, error: str, done: float) -> None:
        self._store.set_progress(
            SourceProgress(source="controls", done=done, read_until_ms=None, refused=0, error=error)
        )
