"""The collectors' log in Pulsar.

What is about to be ticked is first written to a topic that one collector at a time writes: once it is there, the
interval ends.  Then its ticks are written to all partitions, under one name and with a number that is stored there.  A
new writer fences the previous one, and first writes the ticks of its last interval again: what is there is dropped.  So
an interval is ticked in every partition or in none, and once, also when a writer that hung continues.

The number is the interval, or one more than the last number where that is higher.  For brokers drop numbers that do not
grow: once a collector whose clock is ahead has ticked an interval of the future, true intervals are lower.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from controller.adapters.network.deadline import Deadline
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.fenced import FencedPartition
from controller.adapters.pulsar.log.log import tick_records
from controller.adapters.pulsar.log.reader import LogRecord, Start, TopicReader
from controller.adapters.pulsar.log.sequenced import Numbered, SequencedWriter, WriteTarget, connected
from controller.adapters.pulsar.log.topics import create_topics, ticks_control
from controller.adapters.pulsar.log.writer import Outgoing, TopicWriter, now_ms
from controller.model.errors import AnotherClusterError, LeadershipLostError, StateError, TrimtabError, WireError
from controller.settings.pulsar_log import PulsarLogSettings
from controller.wire.chunks import Arrived, KeyValue, glance
from controller.wire.metrics import TickRecord, decode_metric

#: Seconds that one call reads at most: a collector has other work, too.
_AT_ONCE_SECONDS: Final = 0.5
#: Producers give the times.  One may be ahead of our clock by this much, ms; what is later counts as of then.
_SKEW_MS: Final = 60_000
#: A collector has a deadline for each interval: it does not wait as long as others.
_ANSWER_SECONDS: Final = 10.0
_CATCH_UP_SECONDS: Final = 60.0
#: The property that has the number of the ticks.
_NUMBER: Final = "number"
_DIGITS: Final = 18


class PulsarCollectorLog:
    """CollectorLog in Pulsar."""

    def __init__(self, settings: PulsarLogSettings, *, cluster: str) -> None:
        self._log, self._cluster = settings, cluster
        self._connection = LogConnection(settings, seconds=_ANSWER_SECONDS)
        create_topics(self._connection, settings.metrics_topic, settings.results_topic, ticks_control(settings))
        self._metrics = TopicWriter(self._connection, settings.metrics_topic)
        self._intents = FencedPartition(
            self._connection, ticks_control(settings), 0, writer=f"trimtab-ticks-control-{cluster}"
        )
        self._ticks = SequencedWriter(self._connection, writer=f"trimtab-ticks-{cluster}")
        #: Of the last ticks.
        self._number = 0
        self._reader: TopicReader | None = None
        self._caught_up = False

    def publish(self, records: Iterable[KeyValue], within_seconds: float) -> None:
        """See CollectorLog."""
        partitions = self._connection.existing(self._log.metrics_topic)
        self._metrics.append(
            (Outgoing(key, value) for key, value in records), partitions=partitions, within_seconds=within_seconds
        )

    def lead(self, since_ms: int) -> None:
        """See CollectorLog."""
        self.follow()
        self._intents.take_over()
        last = self._last_intent()
        if last is not None:
            targets = self._targets()
            tick = self._read(last.value)
            self._number = _number(last) or tick.interval
            with connected(self._ticks, targets) as ticks:
                self._write(ticks, tick, targets)
        # Only now does the end of the log show all ticks of the previous writer.
        self._reader = TopicReader(self._connection, self._log.metrics_topic, Start(since_ms=since_ms))

    def arrived(self) -> Iterator[Arrived]:
        """See CollectorLog."""
        if self._reader is None:
            return
        deadline = Deadline.after(_AT_ONCE_SECONDS if self._caught_up else _CATCH_UP_SECONDS)
        for record in self._reader.rest():
            head = glance(record.value)
            if head is not None:
                yield Arrived(head, min(record.timestamp_ms, now_ms() + _SKEW_MS))
            if deadline.passed:
                if self._caught_up:
                    return
                self.follow()
                raise TrimtabError(f"{self._log.metrics_topic}: not read to its end in {_CATCH_UP_SECONDS:g} s")
        self._caught_up = True

    def tick(self, interval: int, roster: Mapping[str, str | None]) -> None:
        """See CollectorLog."""
        if self._reader is None:
            raise LeadershipLostError("this collector does not write the ticks")
        # Asked each time: partitions can be added, and all of them have to be there.
        targets = self._targets()
        metrics = [each for each in targets if each[0] == self._log.metrics_topic]
        _, intent = tick_records(
            self._cluster, interval, roster, metrics=len(metrics), results=len(targets) - len(metrics)
        )
        with connected(self._ticks, targets) as ticks:
            self._number = max(self._number + 1, interval)
            self._intents.append(intent, {_NUMBER: str(self._number)})
            self._write(ticks, self._read(intent), targets)

    def follow(self) -> None:
        """See CollectorLog."""
        self._caught_up = False
        self._ticks.close()
        self._intents.close()
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def close(self) -> None:
        """See CollectorLog."""
        self.follow()
        self._metrics.close()
        self._connection.close()

    def _targets(self) -> list[WriteTarget]:
        names = (self._log.results_topic, self._log.metrics_topic)
        return [(name, each) for name in names for each in range(self._connection.existing(name))]

    def _last_intent(self) -> LogRecord | None:
        """What the last writer has ticked, or was about to tick; None where there was none."""
        last = None
        for start in self._intents.windows(now_ms()):
            for record in self._intents.before(start):
                last = record
            if last is not None:
                return last
        return None

    def _write(self, ticks: SequencedWriter, tick: TickRecord, targets: list[WriteTarget]) -> None:
        """The ticks that *tick*, the one with the roster, stands for; that one last of all."""
        plain, first = tick_records(
            self._cluster,
            tick.interval,
            {entry.broker: entry.sweep_id for entry in tick.roster or ()},
            metrics=tick.partitions.metrics,
            results=tick.partitions.results,
        )
        last = (self._log.metrics_topic, 0)
        ticks.write([(each, [Numbered(self._number, "", plain)]) for each in targets if each != last])
        ticks.write([(last, [Numbered(self._number, "", first)])])

    def _read(self, intent: bytes) -> TickRecord:
        try:
            found = decode_metric(intent, cluster=self._cluster, period_ms=1)
        except WireError as error:
            raise StateError(f"{ticks_control(self._log)}: its last record is no tick: {error}") from error
        if not isinstance(found, TickRecord):
            raise AnotherClusterError(
                f"{ticks_control(self._log)}: its last record is no tick of cluster {self._cluster!r}: give each"
                " cluster a namespace of its own in [log.pulsar]"
            )
        return found


def _number(intent: LogRecord) -> int:
    """The number of the ticks that follow from *intent*; 0 where it has none."""
    text = intent.properties.get(_NUMBER, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else 0
