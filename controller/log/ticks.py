"""Metrics, results and the ticks that end an interval in every partition of both topics."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from controller.adapters.network.deadline import Deadline
from controller.log.port import INTERVAL, Fenced, Log, LogRecord, Out, Reader, Scope, Start
from controller.model.errors import LeadershipLostError, StateError, TrimtabError, WireError
from controller.wire.base import encode
from controller.wire.chunks import Arrived, KeyValue, glance
from controller.wire.metrics import Partitions, RosterEntry, TickRecord, decode_metric

#: How long processes other than collectors, which have deadlines, wait until their records are stored.
_PATIENCE_SECONDS: Final = 30.0
#: How long catching up with the log may take when the ticks are taken over.
_CATCH_UP_SECONDS: Final = 60.0
#: Seconds that one call reads at most: a collector has other work, too.
_AT_ONCE_SECONDS: Final = 0.5


def tick_record(log: Log, cluster: str, interval: int, roster: Mapping[str, str | None]) -> TickRecord:
    """The tick of *interval* (T, epoch ms) with its *roster*, for the partitions that there are now.

    LogOfflineError where one of them cannot be written to.
    """
    partitions = log.partitions("metrics", "results", writable=True)
    return TickRecord(
        cluster=cluster,
        interval=interval,
        partitions=Partitions(metrics=partitions["metrics"], results=partitions["results"]),
        roster=tuple(RosterEntry(broker=broker, sweep_id=roster[broker]) for broker in sorted(roster)),
    )


def ticks_of(tick: TickRecord) -> list[Out]:
    """The ticks that *tick*, one with a roster, stands for: the last one is in partition 0 of metrics, and has it."""
    plain, headers = encode(tick.model_copy(update={"roster": None})), _headers(tick)
    results = [Out("results", plain, partition=each, headers=headers) for each in range(tick.partitions.results)]
    metrics = [Out("metrics", plain, partition=each, headers=headers) for each in range(1, tick.partitions.metrics)]
    return [*results, *metrics, Out("metrics", encode(tick), partition=0, headers=headers)]


def _headers(tick: TickRecord) -> Mapping[str, bytes]:
    return {INTERVAL: b"%d" % tick.interval}


class MetricsLog:
    """A writer of metrics and results in *log*."""

    def __init__(self, log: Log, *, cluster: str) -> None:
        self._log, self._cluster = log, cluster
        log.partitions("metrics", "results")

    def publish(self, records: Iterable[tuple[str, bytes]]) -> None:
        """Append (key, value) pairs to the metrics topic; returns when the log has acknowledged all of them."""
        self._append(Out("metrics", value, key=key.encode()) for key, value in records)

    def results(self, records: Iterable[tuple[str, bytes]]) -> None:
        """Append (key, value) pairs to the result topic; returns when the log has acknowledged all of them."""
        self._append(Out("results", value, key=key.encode()) for key, value in records)

    def tick(self, interval: int, roster: Mapping[str, str | None]) -> None:
        """Write the tick of *interval* (T, epoch ms) to every partition of both topics.

        *roster*: every active broker with the sweepId that counts, None if its sweep is missing.  The roster is in
        the tick of partition 0 of the metrics topic.  That tick is written last: when a reader sees it, all other
        ticks can be read too.
        """
        *others, last = ticks_of(tick_record(self._log, self._cluster, interval, roster))
        self._append(others)
        self._append([last])

    def close(self) -> None:
        """End all connections."""
        self._log.close()

    def _append(self, outs: Iterable[Out]) -> None:
        self._log.append(outs, within_seconds=_PATIENCE_SECONDS)


class CollectorLog:
    """The metrics in *log* as collectors see them.  Used from one thread.

    Every failure is a TrimtabError; afterwards the log can still be used, and nothing of the failed call is written.
    """

    def __init__(self, log: Log, *, cluster: str) -> None:
        self._log, self._cluster = log, cluster
        self._scope = Scope(name=f"ticks-{cluster}", decides=("ticks", 0), shares=("metrics", "results"))
        log.partitions("metrics", "results")
        self._ticks: Fenced | None = None
        self._reader: Reader | None = None
        self._caught_up = False

    def publish(self, records: Iterable[KeyValue], within_seconds: float) -> None:
        """Append *records* to the metrics topic; returns when all are there, fails when that takes longer."""
        outs = (Out("metrics", value, key=key.encode()) for key, value in records)
        self._log.append(outs, within_seconds=within_seconds)

    def lead(self, since_ms: int) -> None:
        """Become the writer of the ticks.  The earlier writer is fenced: no tick of it comes after this.

        ``arrived`` then begins with what was appended at *since_ms* or later.  LogOfflineError where ticks could not
        be written now.
        """
        self.follow()
        self._log.partitions("metrics", "results", writable=True)
        ticks = self._ticks = self._log.fence(self._scope)
        intent = None
        for intent in ticks.history(1):  # noqa: B007
            pass
        ticks.complete([] if intent is None else ticks_of(self._read(intent.value)))
        # Only now does the end of the log show all ticks of the writer before.
        self._reader = self._log.read("metrics", Start(since_ms=since_ms))

    def arrived(self) -> Iterator[Arrived]:
        """The sweeps and ticks that came since the last call, in the log's order; the first time, up to its end.

        The caller must exhaust it; records are not stored here.
        """
        if self._reader is None:
            return
        if self._caught_up:
            yield from self._available(self._reader)
        else:
            yield from self._behind(self._reader)

    def tick(self, interval: int, roster: Mapping[str, str | None]) -> None:
        """End *interval* in all partitions of the metrics and result topics, or in none.

        LeadershipLostError where another one leads by now; LogOfflineError where a partition of them is offline.
        """
        if self._ticks is None:
            raise LeadershipLostError("this collector does not write the ticks")
        # Partitions are asked each time: some can be added, and all of them have to be there.
        tick = tick_record(self._log, self._cluster, interval, roster)
        intent = Out("ticks", encode(tick), partition=0, headers=_headers(tick))
        self._ticks.append([intent], ticks_of(tick))

    def follow(self) -> None:
        """Stop writing ticks, until ``lead``."""
        self._caught_up = False
        if self._ticks is not None:
            self._ticks.close()
            self._ticks = None
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def close(self) -> None:
        """End all connections."""
        self.follow()
        self._log.close()

    def _behind(self, reader: Reader) -> Iterator[Arrived]:
        """All that is in the log when the ticks are taken over, or TrimtabError."""
        deadline = Deadline.after(_CATCH_UP_SECONDS)
        for record in reader.read_to_end():
            yield from _arrived(record)
            if deadline.passed:
                self.follow()
                raise TrimtabError(f"{self._log.name('metrics')}: not read to its end in {_CATCH_UP_SECONDS:g} s")
        self._caught_up = True

    def _available(self, reader: Reader) -> Iterator[Arrived]:
        """Records that arrived.  Does not wait: an open transaction of another producer could hide the others."""
        deadline = Deadline.after(_AT_ONCE_SECONDS)
        while not deadline.passed and (record := reader.next(0.0)) is not None:
            yield from _arrived(record)

    def _read(self, intent: bytes) -> TickRecord:
        name = self._log.name("ticks")
        try:
            tick = decode_metric(intent, cluster=self._cluster, period_ms=1)
        except WireError as error:
            raise StateError(f"{name}: its last record is not a tick: {error}") from error
        if not isinstance(tick, TickRecord):
            raise StateError(
                f"{name}: its last record is not a tick of cluster {self._cluster!r}: give each its own log"
            )
        return tick


def _arrived(record: LogRecord) -> Iterator[Arrived]:
    head = glance(record.value)
    if head is not None:
        yield Arrived(head, record.timestamp_ms)
